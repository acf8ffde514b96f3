/* origin_test.c - a new run that begins with the weights of another one (train.from). */
#include <sys/stat.h>

#include "cli/program.h"

#define TUNE                                                                                       \
    "--set train.from=@/base --set train.steps=6 --set train.eval_every=1 --set optim.lr=1e-4 "    \
    "--set optim.min_lr=1e-5 --set optim.warmup=1 " SMALL_MODEL

static void test_base(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/base " SMALL_MODEL "--set train.steps=40", 0,
           "validation loss");
}

/* The validation loss after a step, from metrics.jsonl. */
static double val_after(const char *run, int step) {
    char path[256], line[1024], begin[64];
    double val = 0;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    snprintf(begin, sizeof begin, "{\"step\": %d, \"val_loss\": ", step);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, begin, strlen(begin)) == 0) val = strtod(line + strlen(begin), NULL);
    fclose(f);
    assert_true(val > 0);
    return val;
}

/* After one step at a low rate the loss is near that of the base: far from that of drawn weights,
 * which is that of even guesses. */
static void test_weights(void **state) {
    char alone[256];
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/tuned " TUNE, 0, "validation loss");
    double base = val_after("base", 40), tuned = val_after("tuned", 1);
    assert_true(tuned < base + 0.01 && tuned > base - 0.01);
    hash_of("tuned", alone);
    static const char *const layouts[] = {"-n 3 --set parallel.zero=3",
                                          "-n 2 --set parallel.zero=0 --set parallel.transport=tcp",
                                          "-n 2 --set parallel.transport=thread"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char run[32];
        expectf(0, "validation loss", "train configs/tiny.yaml -o @/layout-%zu " TUNE "%s", i,
                layouts[i]);
        snprintf(run, sizeof run, "layout-%zu", i);
        assert_hash(run, alone);
    }
}

/* The checkpoint that a run began with stays its origin, though the base has trained on. */
static void test_resume(void **state) {
    char alone[256], other[256];
    (void)state;
    pace("again", 3);
    program p = program_start("train configs/tiny.yaml -n 1 -o @/again " TUNE, 0);
    wait_for_file("again/metrics.jsonl");
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    char *output = NULL;
    program_end(&p, &output);
    free(output);
    let_go("again");
    expect("train configs/tiny.yaml -n 1 -o @/base --resume " SMALL_MODEL "--set train.steps=45", 0,
           "step-45");
    expect("train configs/tiny.yaml -n 2 -o @/again --resume " TUNE, 0, "validation loss");
    hash_of("tuned", alone);
    hash_of("again", other);
    assert_string_equal(other, alone);
    expect("train configs/tiny.yaml -n 1 -o @/later " TUNE, 0, "validation loss");
    hash_of("later", other);
    assert_string_not_equal(other, alone);
}

/* Numbers whose means differ by `shift`; the texts of the last columns are among these. */
static void write_table(const char *name, int shift, const char *const *cities, int n) {
    ls_buf b = {0};
    ls_buf_printf(&b, shift ? "city,age,price\n" : "age,city,price\n");
    for (int i = 0; i < 24; i++) {
        const char *city = cities[i % n];
        int age = 20 + i * 7 % 24 + shift, price = 1000 * (i % n) + age * 3;
        if (shift)
            ls_buf_printf(&b, "%s,%d,%d\n", city, age, price);
        else
            ls_buf_printf(&b, "%d,%s,%d\n", age, city, price);
    }
    write_text(name, b.data);
    ls_buf_free(&b);
}

/* Numbers of a table are scaled as in the base, and texts have its numbers: without a step that
 * changes weights the predictions are the same. */
static void test_table(void **state) {
    (void)state;
    static const char *const all[] = {"aa", "bb", "cc"}, *const others[] = {"bb", "dd"};
    static const char config[] =
        "model: {kind: mlp, hidden: [4], loss: {mean_squared_error: {target: price}}}\n"
        "train: {steps: 3, batch: 8}\n"
        "optim: {lr: 0, min_lr: 0}\n";
    write_text("table.yaml", config);
    write_table("first.csv", 0, all, 3);
    write_table("second.csv", 500, all + 1, 2);
    write_table("third.csv", 500, others, 2);
    expect("train @/table.yaml -n 1 -o @/priced --set data.path=@/first.csv --set optim.lr=0.01", 0,
           "validation loss");
    expect("train @/table.yaml -n 1 -o @/moved --set data.path=@/second.csv "
           "--set train.from=@/priced",
           0, "data.normalize: numbers are scaled as in train.from");
    expect("predict @/priced @/second.csv -o @/before.csv", 0, "");
    expect("predict @/moved @/second.csv -o @/after.csv", 0, "");
    same_files("before.csv", "after.csv");
    expect("train @/table.yaml -n 1 -o @/other --set data.path=@/third.csv "
           "--set train.from=@/priced",
           1, "'city' has 'dd', which the training data do not have");
    shell_of_run("priced", "rm -r $r");
    expect("train -n 1 --resume @/moved --set train.steps=5", 0, "step-5");
    expect("predict @/moved @/second.csv -o @/after.csv", 0, "");
    same_files("before.csv", "after.csv");
}

/* Classes that the base does not have are numbered anew. */
static void test_classes(void **state) {
    (void)state;
    static const char config[] = "model: {kind: mlp, hidden: [4]}\ntrain: {steps: 3, batch: 8}\n";
    write_text("classes.yaml", config);
    for (int k = 0; k < 2; k++) {
        ls_buf b = {0};
        ls_buf_printf(&b, "x,label\n");
        for (int i = 0; i < 24; i++) ls_buf_printf(&b, "%d,%c%c\n", i, "ab"[k], "xy"[i % 2]);
        write_text(k ? "b.csv" : "a.csv", b.data);
        ls_buf_free(&b);
    }
    expect("train @/classes.yaml -n 1 -o @/ca --set data.path=@/a.csv", 0, "validation loss");
    expect("train @/classes.yaml -n 1 -o @/cb --set data.path=@/b.csv --set train.from=@/ca", 0,
           "'label' has classes that the run of train.from does not have");
    expect("predict @/cb @/b.csv", 0, "0,bx,");
}

/* Ids are numbered in the order of the files: rows of weights would stand for others. */
static void test_ids(void **state) {
    (void)state;
    write_text("ids.yaml",
               "model: {kind: wide_deep, width: 2, hidden: [4], loss: "
               "{binary_cross_entropy: {target: clicked}}}\n"
               "data: {val_fraction: 0.2, clicks: {clicked: y, ids: [u], numbers: [n]}}\n"
               "train: {steps: 2, batch: 4, virtual_workers: 2}\n");
    for (int k = 0; k < 2; k++) {
        ls_buf b = {0};
        ls_buf_printf(&b, "u,n,y\n");
        for (int i = 0; i < 20; i++) ls_buf_printf(&b, "u%d,%d,%d\n", (i + k) % 4, i, i % 2);
        write_text(k ? "ids-b.csv" : "ids-a.csv", b.data);
        ls_buf_free(&b);
    }
    expect("train @/ids.yaml -n 1 -o @/ia --set data.path=@/ids-a.csv", 0, "validation loss");
    expect("train @/ids.yaml -n 1 -o @/ib --set data.path=@/ids-b.csv --set train.from=@/ia", 1,
           "train.from: the ids of 'u' stand for others than in");
    expect("train @/ids.yaml -n 1 -o @/ic --set data.path=@/ids-a.csv --set train.from=@/ia", 0,
           "validation loss");
}

static void test_errors(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/base " SMALL_MODEL
           "--set model.layers=3",
           1, "set model.layers=2");
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/base --set model.layers=1 --set "
           "model.kind=llama",
           1, "has model.kind gpt2, the config has llama; the model must be the same");
    shellf("mkdir %s/model && echo '{}' >%s/model/config.json", folder, folder);
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/model", 1,
           "is a published model, not a run: model.from names it");
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/absent", 1, "does not exist");
    char path[128];
    snprintf(path, sizeof path, "%s/empty", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/empty", 1, "is neither a run");
    assert_false(file_exists("wrong"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base),  cmocka_unit_test(test_weights), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_table), cmocka_unit_test(test_classes), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
