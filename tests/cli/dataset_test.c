/* dataset_test.c - runs on samples of files: the same bits for any layout, killed and resumed, with
 * validation files of their own and in folds; other data are refused, and a removed record comes
 * back from a checkpoint. GPT-2 on files of tokens; a classifier of real images (Fashion-MNIST) and
 * of small ones.
 */
/* ctest: slow seconds=20 */
#include "cli/killed_at.h"
#include "cli/program.h"

enum { NTOKENS = 12000, NVAL = 2000, VOCAB = 300 };

static char alone[256]; /* `ckpt hash` of the run with one worker */

/* Tokens that follow from those before, mostly. */
static void write_tokens(const char *name, int n, unsigned seed) {
    uint16_t *ids = LS_NEW_ARRAY(uint16_t, (size_t)n);
    for (int i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        ids[i] = (uint16_t)(i % 3 ? (ids[i - 1] * 7u + 3u) % VOCAB : (seed >> 16) % VOCAB);
    }
    write_file(name, ids, (size_t)n * sizeof *ids);
    free(ids);
}

/* A run on files of tokens. The window is that of model.context. */
#define TOKENS                                                                                     \
    "train configs/tiny.yaml -o @/%s --set train.steps=40 --set checkpoint.every=20 "              \
    "--set log.every=1000 --set train.eval_every=20 --set survival.balance=off "                   \
    "--set data.format=tokens --set data.path=@/train.bin "

static void train(const char *run, const char *more, int code, const char *says) {
    expectf(code, says, TOKENS "%s", run, more);
}

static int make(void **state) {
    if (folder_make(state)) return -1;
    write_tokens("train.bin", NTOKENS, 1);
    write_tokens("val.bin", NVAL, 2);
    write_tokens("other.bin", NTOKENS, 3);
    train("alone", "-n 1", 0, "training samples of tokens u32 [33], 1 worker");
    hash_of("alone", alone);
    return 0;
}

static void has_bits_of_alone(const char *run) {
    assert_hash(run, alone);
    expectf(0, ": clean: 40 steps", "ckpt ledger @/%s", run);
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const layouts[][2] = {{"two", "-n 2 --set parallel.zero=0"},
                                             {"three", "-n 3 --set parallel.zero=3"},
                                             {"threads", "-n 3 --set parallel.transport=thread"}};
    for (int i = 0; i < 3; i++) {
        train(layouts[i][0], layouts[i][1], 0, "of 37 samples\n");
        has_bits_of_alone(layouts[i][0]);
    }
}

/* A worker is killed, then the whole program. */
static void test_killed(void **state) {
    (void)state;
    char line[1024];
    snprintf(line, sizeof line, TOKENS "-n 2", "killed");
    kill_worker_at_20(line, "killed");
    has_bits_of_alone("killed");

    snprintf(line, sizeof line, TOKENS "-n 2", "ended");
    kill_run_at_20(line, "ended");
    train("ended", "-n 3 --resume", 0, "continuing from");
    has_bits_of_alone("ended");
}

static void copy_half(const char *run) {
    shell_of_run(run, "cp -r alone $r && rm -r $r/checkpoints/step-40 $r/checkpoints/latest");
}

static void test_other_data(void **state) {
    (void)state;
    copy_half("other");
    train("other", "--resume --set data.path=@/other.bin", 1,
          "other.bin: is not the data that this run was trained with (hash ");
    train("other", "--resume --set data.path=@/val.bin", 1, "samples, not 374; hash");
    train(
        "other", "--resume --set data.path=@/none.bin", 1,
        "none.bin: is not there; restore the files, or --set data.path=FILE names their new place");
    train("other", "--resume --set data.val_path=@/val.bin", 1,
          "data.val_fraction is 0.05, but the run began with 0.1");
    shell_of_run("other", "cp train.bin moved.bin");
    train("other", "--resume --set data.path=@/moved.bin", 0, "continuing from");
    has_bits_of_alone("other");
}

static void test_record(void **state) {
    (void)state;
    copy_half("record");
    shell_of_run("record", "rm $r/data.json");
    expect("eval @/record", 1, "data.json: is missing; resuming the run (--resume) restores it");
    train("record", "--resume", 0, "data.json: was missing; restored from");
    has_bits_of_alone("record");
    shell_of_run("record", "cmp $r/data.json alone/data.json");
    copy_half("damaged");
    shell_of_run("damaged", "echo {} > $r/data.json");
    train("damaged", "--resume", 1,
          "data.json: is not a record of data, version 1; remove it: --resume takes");
}

static void test_eval(void **state) {
    (void)state;
    expect("eval @/alone", 0, "1184 tokens of the validation part\nmodel    loss ");
    expect("eval @/alone --json", 0, "\"tokens\": 1184, \"model\": {\"loss\": ");
    expect("eval @/alone --data LICENSE", 1, "LICENSE: sample 0: 'tokens' is 8202");
    expect("predict @/alone LICENSE", 1, "was trained on files of tokens, without a tokenizer");
    expect("generate @/alone", 1, "without a tokenizer; generate is for runs on a text");
    expect("ckpt verify @/alone", 0, NULL);
    shell_of_run("alone", "test -f $r/checkpoints/step-40/data.json && "
                          "! test -e $r/tokenizer.json && ! test -e $r/tokens.bin");
}

/* Paths that are relative to where the run began, in other directories. */
static void test_elsewhere(void **state) {
    (void)state;
    char home[512], there[128], table[512] = "a,b,label\n";
    assert_non_null(getcwd(home, sizeof home));
    snprintf(there, sizeof there, "%s/there", folder);
    for (int i = 0; i < 40; i++)
        snprintf(table + strlen(table), sizeof table - strlen(table), "%d,%d,%d\n", i % 7, i % 5,
                 i % 2);
    shell_of_run("there", "mkdir -p $r/d");
    write_file("there/d/one.csv", table, strlen(table));
    write_file("there/d/val.csv", table, strlen(table));
    static const char config[] =
        "model: {kind: mlp, hidden: 3}\ndata: {mix: [{path: d/o*.csv}, {path: d/one.csv, weight: "
        "0.5}], val_path: d/val.csv}\ntrain: {steps: 4, batch: 4, virtual_workers: 2}\noptim: "
        "{warmup: 0}\ncheckpoint: {every: 2}\n";
    write_file("there/m.yaml", config, sizeof config - 1);
    assert_int_equal(chdir(there), 0);
    expect("train m.yaml -o run", 0, "accuracy ");
    assert_int_equal(chdir(folder), 0);
    expect("eval there/run", 0, "40 samples of the validation part");
    expect("eval there/run/checkpoints/step-2 --set model.metrics=top", 0, ", top5 1.0000\n");
    expect("train --resume there/run -n 1 --set train.steps=6", 0, "checkpoints/step-6");
    shell_of_run("there", "mv $r/d $r/e");
    expect_line("eval there/run", 1, "lockstep: data.mix: d/o*.csv: is neither here nor in /");
    expect("train --resume there/run --set train.steps=8", 1,
           "there, where the run began; restore the files, or --set data.mix=LIST names their new "
           "place\n");
    expect("eval there/run --set data.mix= --set data.path=there/e/val.csv", 1,
           "data.val_path: d/val.csv: is neither here");
    expect("eval there/run --set data.mix= --set data.path=there/e/one.csv --set "
           "data.val_path=there/e/val.csv",
           1, "data.mix has 0 sources, but the run began with 2");
    expect_line("eval there/run --set model.hidden=4", 1,
                "--set model.hidden: the run is trained with another value; an evaluation can't");
    assert_int_equal(symlink("there/e", "d"), 0); /* here they are, too */
    expect("train --resume there/run -n 1 --set train.steps=8", 0, "checkpoints/step-8");
    shell_of_run("there", "grep -q '\"directory\": \".*test-[^/]*\"' $r/run/data.json"); /* now */
    assert_int_equal(chdir(home), 0);
    expect("eval @/there/run", 0, "40 samples of the validation part");
}

static void test_validation(void **state) {
    (void)state;
    train("files", "--set data.val_path=@/val.bin --set train.steps=10", 0, "of 62 samples\n");
    expect("eval @/files", 0, "1984 tokens of the validation part");
    expect("eval @/alone --set data.val_path=@/val.bin", 0, "1984 tokens of /");
    expect_line("eval @/files --set data.val_path=", 1,
                "data.val_path is not set, but this run has files of its own for validation");
    train("fold0", "--set data.folds=4 --set train.steps=10", 0, "281 training samples");
    train("fold3", "--set data.folds=4 --set data.fold=3 --set train.steps=10", 0,
          "281 training samples");
    train("fold3", "--resume --set data.folds=4 --set data.fold=2", 1,
          "data.fold is 2, but the run began with 3");
}

static void test_refused(void **state) {
    (void)state;
    train("bad", "--set data.folds=4 --set data.fold=4", 1, "data.fold 4 of data.folds 4");
    train("bad", "--set data.fold=1", 1, "data.fold acts only with data.folds > 0");
    train("bad", "--set data.val_labels=@/val.bin", 1, "data.val_labels acts only with");
    train("bad", "--set data.folds=400", 1, "has 374 samples, fewer than data.folds 400");
    train("vocab", "--set model.vocab=299", 1, ", and the model takes 0 to 298; correct the data");
    expect("train configs/tiny.yaml -o @/bad --set data.labels=x", 1,
           "data.labels acts only with model.kind: other than gpt2, llama");
    assert_false(file_exists("bad"));
}

/* ---- images ---- */

#define FASHION "/usr/share/datasets/fashion-mnist/"
#define LAYOUT                                                                                     \
    "--set checkpoint.every=20 --set log.every=1000 --set survival.balance=off "                   \
    "--set data.cache=@/cache "

static void train_images(const char *config, const char *run, const char *more, int code,
                         const char *says) {
    expectf(code, says, "train @/%s -o @/%s " LAYOUT "%s", config, run, more);
}

static const char FASHION_YAML[] =
    "model:\n"
    "  kind: layers\n"
    "  layers: [flatten, linear: 24, gelu, dropout: 0.1, linear: 10]\n"
    "data:\n"
    "  path: " FASHION "train-images-idx3-ubyte.gz\n"
    "  labels: " FASHION "train-labels-idx1-ubyte.gz\n"
    "  val_path: " FASHION "t10k-images-idx3-ubyte.gz\n"
    "  val_labels: " FASHION "t10k-labels-idx1-ubyte.gz\n"
    "train: {steps: 40, batch: 48, virtual_workers: 6,\n"
    "  micro_batch: 4, eval_every: 20}\n"
    "optim: {lr: 3e-3, warmup: 5}\n";

/* The loss on the test images falls from log 10 = 2.30; dropout has the same zeros in each run. */
/* A row of a table with `columns` numbers, whose names have 255 bytes and differ in the last ones
 * alone, and the price. */
static void put_wide(ls_buf *b, int columns, int row) {
    for (int k = 0; k < columns; k++)
        if (row < 0)
            ls_buf_printf(b, "%0252d%03d,", 7, k);
        else
            ls_buf_printf(b, "%d.5,", (row * 7 + k) % 10);
    ls_buf_printf(b, row < 0 ? "price\n" : "%d.25\n", row);
}

/* Numbers are joined where they are many, but for those that the config names; names may be as long
 * as data have them. */
static void test_wide(void **state) {
    (void)state;
    static const int columns[] = {1, 7, 12, 63, 200};
    static const char config[] =
        "model: {kind: mlp, hidden: [4], loss: {mean_squared_error: {target: price}}}\n"
        "train: {steps: 2, batch: 8}\n"
        "optim: {warmup: 0}\n";
    write_file("wide.yaml", config, sizeof config - 1);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        ls_buf table = {0};
        for (int row = -1; row < 40; row++) put_wide(&table, columns[i], row);
        write_file("wide.csv", table.data, table.len);
        ls_buf_free(&table);
        expectf(0, "validation loss", "train @/wide.yaml -o @/wide%d --set data.path=@/wide.csv",
                columns[i]);
        expectf(0, "sample,price\n0,", "predict @/wide%d @/wide.csv", columns[i]);
    }
    shell_of_run("wide12",
                 "grep -q 'input: {\"x\": \\[\"12\"\\], \"price\": \\[\\]}' $r/config.yaml");
}

static void test_fashion(void **state) {
    (void)state;
    if (!ls_file_exists(FASHION "train-images-idx3-ubyte.gz"))
        skip_because("dataset-fashion-mnist is not installed");
    write_text("fashion.yaml", FASHION_YAML);
    train_images("fashion.yaml", "f1", "-n 1", 0,
                 "60000 training samples of image u8 [28, 28, 1], label i32, 1 worker");
    train_images("fashion.yaml", "f2", "-n 2 --set parallel.zero=0", 0, ", of 10000 samples\n");
    train_images("fashion.yaml", "f3", "-n 3 --set parallel.zero=3", 0, NULL);
    same_hash("f1", "f2");
    same_hash("f1", "f3");
    train_images("fashion.yaml", "f5",
                 "-n 3 --set survival.backup_workers=1 --set parallel.recompute=2", 0, NULL);
    same_hash("f1", "f5");
    shell_of_run(
        "f1", "python3 -c 'import json; l = [json.loads(x) for x in open(\"'$m'\")]; "
              "v = [x[\"val_loss\"] for x in l if \"val_loss\" in x]; "
              "assert len(v) == 2 and v[-1] < 1.1 and any(\"samples_per_s\" in x for x in l), v'");
    expect("eval @/f1 --json", 0, "\"samples\": 10000, \"model\": {\"loss\": ");
    expect("ckpt ledger @/f1", 0, ": clean: 40 steps");

    hold_after("f4", 20);
    program p = startf("train @/fashion.yaml -o @/f4 -n 2 " LAYOUT);
    wait_for_file("f4/checkpoints/step-20");
    kill_paced(&p, "f4");
    train_images("fashion.yaml", "f4", "-n 3 --resume", 0, "continuing from");
    same_hash("f1", "f4");
    train_images("fashion.yaml", "f4",
                 "--resume --set data.labels=" FASHION "t10k-labels-idx1-ubyte.gz", 1, "labels");
}

/* n images of 2 x 2 pixels, and their labels, of `classes` classes. */
static void write_images(const char *name, int n, int classes) {
    unsigned char images[16 + 4 * 256] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2};
    unsigned char labels[8 + 256] = {0, 0, 8, 1};
    char path[64];
    images[6] = labels[6] = (unsigned char)(n >> 8);
    images[7] = labels[7] = (unsigned char)n;
    for (int i = 0; i < n; i++) {
        labels[8 + i] = (unsigned char)(i % classes);
        for (int k = 0; k < 4; k++) images[16 + 4 * i + k] = (unsigned char)(i * 31 + k * 7);
    }
    snprintf(path, sizeof path, "%s.idx3", name);
    write_file(path, images, 16 + 4 * (size_t)n);
    snprintf(path, sizeof path, "%s.idx1", name);
    write_file(path, labels, 8 + (size_t)n);
}

/* A model of images of n x n pixels; n 0: of those of the data. */
static void write_config(const char *name, int n) {
    char text[512], input[128] = "";
    if (n) snprintf(input, sizeof input, ", classes: 5, input: {image: [%d, %d, 1]}", n, n);
    snprintf(text, sizeof text,
             "model: {kind: mlp, hidden: [8]%s}\n"
             "data: {path: none.idx3}\n"
             "train: {steps: 5, batch: 16, virtual_workers: 4}\n"
             "optim: {warmup: 1}\n",
             input);
    write_text(name, text);
}

#define SMALL "--set data.path=@/small.idx3 --set data.labels=@/small.idx1"

/* Numbers that can't be classes are named as such. */
static void test_no_classes(void **state) {
    (void)state;
    static const char *const numbers[] = {"3000000000", "1.5"};
    static const char line[] =
        "train @/mlp.yaml -o @/none --set data.path=@/none.%s --set train.steps=2";
    write_text("mlp.yaml", "model: {kind: mlp, hidden: [4]}\n");
    for (int i = 0; i < 4; i++) {
        ls_buf b = {0};
        bool json = i >= 2;
        if (!json) ls_buf_printf(&b, "a,Label\n");
        for (int k = 0; k < 9; k++)
            ls_buf_printf(&b, json ? "{\"a\": %d, \"Label\": %s}\n" : "%d,%s\n", k,
                          k % 2 ? "1" : numbers[i % 2]);
        write_file(json ? "none.jsonl" : "none.csv", b.data, b.len);
        ls_buf_free(&b);
        expectf(1, "data.path: 'Label' has no classes, which the loss needs: ", line,
                json ? "jsonl" : "csv");
    }
    write_text("near.yaml",
               "model: {kind: mlp, hidden: [4], loss: {mean_squared_error: {target: Labl}}}\n");
    expect("train @/near.yaml -o @/none --set data.path=@/none.csv", 1,
           "no field 'Labl', which the loss needs (did you mean 'Label'?); the fields are a, ");
}

static void test_images_refused(void **state) {
    (void)state;
    write_images("small", 200, 5);
    write_images("more", 200, 7);
    write_config("small.yaml", 0);
    write_config("given.yaml", 2);
    write_config("large.yaml", 3);
    train_images("small.yaml", "s", SMALL, 0, "190 training samples of image u8 [2, 2, 1], label");
    shell_of_run("s", "grep -q 'classes: 5' $r/config.yaml");
    expect("plan @/small.yaml -n 2 " SMALL, 0, "hidden.0.linear");
    train_images("small.yaml", "t", "--set data.path=@/small.idx3", 1,
                 "no field 'label', which the loss needs; the fields are image: name the file of "
                 "labels by data.labels, or set model.loss");
    train_images("given.yaml", "t", "--set data.path=@/small.idx3", 1,
                 "small.idx3: has no field 'label', which the model reads; its fields are "
                 "'image' u8 [2, 2, 1]; name the file of labels by data.labels");
    train_images("large.yaml", "t", SMALL, 1,
                 "small.idx3: field 'image' is u8 [2, 2, 1]; the model's input 'image' is u8 [3, "
                 "3, 1]");
    train_images("given.yaml", "t", "", 1, "none.idx3: is not there");
    train_images("small.yaml", "t", "--set data.format=text", 1, "only gpt2 and llama read a text");
    train_images("small.yaml", "t", "--set model.kind=gpt2 --set data.format=idx", 1,
                 "a language model reads a text, conversations, or files of tokens");
    assert_false(file_exists("t"));
    expect_line("bench generate @/given.yaml", 1, "bench generate needs model.kind gpt2");
    train_images("given.yaml", "u", "--set data.path=@/more.idx3 --set data.labels=@/more.idx1", 1,
                 ", and the model takes 0 to 4");
}

/* bench train writes what it trains on, samples of the files, and the weights after training. */
static void test_bench(void **state) {
    (void)state;
    write_images("small", 200, 5);
    write_config("given.yaml", 2);
    expect("bench train @/given.yaml -n 2 --steps 1", 0, "  samples/s        ");
    expect_line("bench train @/given.yaml -n 2 --steps 1 --export @/e", 1,
                "none.idx3: is not there");
    expect("bench train @/given.yaml -n 2 --steps 1 --json --export @/e " SMALL, 0,
           "\"samples_per_s\": ");
    /* 3 x 16 records of 68 bytes, pixels and at 64 the label: all different ones of the files. */
    shell_of_run("e",
                 "python3 -c 'd = open(\"e/samples.bin\", \"rb\").read(); "
                 "all = {bytes((i * 31 + k * 7) % 256 for k in range(4)) + bytes([i % 5]) for i in "
                 "range(200)}; r = {d[i:i + 4] + d[i + 64:i + 65] for i in range(0, len(d), 68)}; "
                 "assert len(d) == 3 * 16 * 68 and len(r) == 48 and r < all, r'");
    expect_line("bench train @/given.yaml --steps 10 --export @/f " SMALL, 1,
                "step 12, at the end of an epoch of 190 samples, has 14 of them, not 16: --export "
                "needs batches of one size; use fewer steps, or another train.batch");
    shell_of_run("e", "grep -q '^  kind: \"mlp\"' $r/config.yaml");
    /* Other weights than those at the beginning, the same for any number of workers. */
    expect("bench train @/given.yaml -n 3 --steps 1 --set parallel.zero=3 --export @/e3 " SMALL, 0,
           NULL);
    shell_of_run("e", "cmp -s $r/trained.safetensors $r/../e3/trained.safetensors && "
                      "! cmp -s $r/trained.safetensors $r/weights.safetensors");
}

/* Files with some of the classes, in which others come first: the names count, also in those that
 * are evaluated later, without the training data. */
static void test_classes(void **state) {
    (void)state;
    static const char *const names[] = {"ant", "bee", "cow"};
    ls_buf all = {0}, some = {0};
    ls_buf_printf(&all, "size,label\n");
    ls_buf_printf(&some, "label,size\n");
    for (int i = 0; i < 60; i++) {
        ls_buf_printf(&all, "%d,%s\n", i % 3 - 1, names[i % 3]);
        if (i % 3) ls_buf_printf(&some, "%s,%d\n", names[i % 3], i % 3 - 1);
    }
    write_file("all.csv", all.data, all.len);
    write_file("some.csv", some.data, some.len);
    ls_buf_printf(&some, "dog,1\n");
    write_file("more.csv", some.data, some.len);
    ls_buf_free(&all);
    ls_buf_free(&some);
    char config[300];
    int n =
        snprintf(config, sizeof config,
                 "model: {kind: mlp, hidden: 8}\ndata: {path: %s/all.csv, val_path: "
                 "%s/some.csv}\ntrain: {steps: 200, batch: 8, virtual_workers: 2}\noptim: {warmup: "
                 "0, lr: 0.1}\n",
                 folder, folder);
    write_file("classes.yaml", config, (size_t)n);
    expect("train @/classes.yaml -o @/classes", 0, "accuracy 1.0000, of 40 samples");
    shell_of_run("", "rm all.csv");
    expect("eval @/classes --set data.val_path=@/some.csv", 0, "accuracy 1.0000");
    expect("eval @/classes --set data.val_path=@/more.csv", 1,
           "more.csv: 'label' has 'dog', which the training data do not have: there it is 'ant', "
           "'bee', 'cow'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),    cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_killed),     cmocka_unit_test(test_other_data),
        cmocka_unit_test(test_record),     cmocka_unit_test(test_eval),
        cmocka_unit_test(test_elsewhere),  cmocka_unit_test(test_validation),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_fashion),
        cmocka_unit_test(test_wide),       cmocka_unit_test(test_images_refused),
        cmocka_unit_test(test_no_classes), cmocka_unit_test(test_bench)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
