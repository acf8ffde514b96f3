/* bad_input_test.c - user errors: each gives one clear line and an exit code, and loses nothing. */
#include "cli/program.h"

static const char *const TINY = "configs/tiny.yaml";

/* Runs `train` on a config with this text; it must fail with one line that says `says`. */
static void config_fails(const char *text, const char *says) {
    write_file("bad.yaml", text, strlen(text));
    expect_line("train @/bad.yaml -n 2 -o @/bad", 1, says);
    assert_false(file_exists("bad")); /* nothing half-written */
}

static void test_config(void **state) {
    (void)state;
    expect("train @/absent.yaml -o @/bad", 1, "absent.yaml: can't be opened");
    config_fails("train: {steps: 5\n", "is not valid YAML");
    config_fails("train: [1, 2]\n", "'train' is a list; a single value is expected");
    config_fails("\x01\x02\xff\xfe", "is not valid YAML");
    config_fails("train:\n  setps: 5\n",
                 ":2: unknown key 'train.setps'; did you mean 'train.steps'?");
    config_fails("train:\n  steps: ten\n", ":2: train.steps: 'ten' is not a whole number");
    config_fails("train:\n  steps: 0\n", ":2: train.steps: 0 is out of range; expected 1 to");
    config_fails("optim:\n  lr: fast\n", "optim.lr: 'fast' is not a number");
    config_fails("optim:\n  lr: nan\n", "optim.lr: 'nan' is not a number");
    config_fails("parallel:\n  reduce: quick\n", "'quick' is not one of tree, fastest");
    config_fails("model:\n  heads: 7\ndata:\n  path: LICENSE\n",
                 "model.heads 7 does not divide model.width 256");
    config_fails("train:\n  batch: 10\n  virtual_workers: 8\ndata:\n  path: LICENSE\n",
                 "train.virtual_workers 8 does not divide train.batch 10");
    config_fails("train:\n  steps: 1\n  steps: 2\n", "occurs twice");
    config_fails("", "data.path is missing");
    expect("train configs/tiny.yaml -o @/bad --set train.steps", 1, "has no '='");
    expect("train configs/tiny.yaml -o @/bad --set model.width=25", 1, "does not divide");
    assert_int_equal(setenv("LOCKSTEP_CPU", "abacus", 1), 0);
    expect("train configs/tiny.yaml -o @/bad", 1, "LOCKSTEP_CPU: no kernels 'abacus'");
    assert_int_equal(unsetenv("LOCKSTEP_CPU"), 0);
    assert_int_equal(setenv("LOCKSTEP_CORES", "16x", 1), 0);
    expect("train configs/tiny.yaml -o @/bad", 1, "LOCKSTEP_CORES: '16x' is no number of cores");
    assert_int_equal(unsetenv("LOCKSTEP_CORES"), 0);
    assert_int_equal(setenv("LOCKSTEP_WAIT_POLICY", "lazy", 1), 0);
    expect("train configs/tiny.yaml -o @/bad", 1, "LOCKSTEP_WAIT_POLICY: 'lazy' is not a policy");
    assert_int_equal(setenv("LOCKSTEP_WAIT_POLICY", "passive", 1), 0);
    expect("train configs/tiny.yaml -o @/bad -n 9", 1, "9 workers for train.virtual_workers 8");
    expect("train configs/tiny.yaml -o @/bad --min-workers 9", 1,
           "survival.min_workers 9 is more than train.virtual_workers 8");
    expect("train configs/tiny.yaml -o @/bad --min-workers 3 --max-workers 2", 1,
           "survival.min_workers 3 is more than survival.max_workers 2");
    expect("train configs/tiny.yaml -o @/bad -n 3 --max-workers 2 --listen 127.0.0.1:1", 1,
           "3 workers for survival.max_workers 2; use -n 2 or fewer, or a higher ");
    expect("plan configs/tiny.yaml -n 1 --set survival.min_workers=9", 1,
           "configs/tiny.yaml: survival.min_workers 9 is more than train.virtual_workers 8");
    assert_false(file_exists("bad"));
}

/* Distant words get no suggestion; names from other systems suggest ours. */
static void test_suggestions(void **state) {
    (void)state;
    static const char *const keys[][2] = {
        {"optim.learning_rate", "optim.lr"},
        {"learning_rate", "optim.lr"},
        {"optim.lrr", "optim.lr"},
        {"train.batch_size", "train.batch"},
        {"train.num_epochs", "train.epochs"},
        {"model.n_layer", "model.layers"},
        {"model.hidden_size", "model.width"},
        {"model.seq_len", "model.context"},
        {"optim.steps", "train.steps"},
        {"trian.steps", "train.steps"},
        {"train.setps", "train.steps"},
        {"optim.weight", "optim.weight_decay"},
    };
    char line[160], says[160];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(line, sizeof line, "plan configs/tiny.yaml --set %s=1", keys[i][0]);
        snprintf(says, sizeof says, "--set: unknown key '%s'; did you mean '%s'? 'lockstep help",
                 keys[i][0], keys[i][1]);
        expect(line, 1, says);
    }
    expect("plan configs/tiny.yaml --set model.colour=1", 1,
           "unknown key 'model.colour'; 'lockstep help config' lists all");
    expect("plan configs/tiny.yaml --set x=1", 1, "unknown key 'x'; 'lockstep help config'");
}

/* A text file in place of a config. */
static void test_text_as_config(void **state) {
    (void)state;
    static const char hint[] = "; a config is a YAML file; a text belongs in its key data.path";
    char *text = malloc(5000000), says[160];
    assert_non_null(text);
    memset(text, 'a', 5000000);
    write_file("large.txt", text, 5000000);
    free(text);
    snprintf(says, sizeof says, "has 5000000 bytes, at most 1048576 are expected here%s", hint);
    expect("train @/large.txt -o @/bad", 1, says);
    expect("train LICENSE -o @/bad", 1, hint);
    expect("train README.md -o @/bad", 1, hint);
    expect("train @/absent.txt -o @/bad", 1, "absent.txt: can't be opened: No such file");
    assert_false(file_exists("bad"));
}

/* Each key is looked up once, so that this is fast with the sanitizer's allocator, too. */
static void test_many_keys(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_buf_printf(&text, "train:\n  steps: 5\n");
    for (int i = 0; i < 60000; i++) ls_buf_printf(&text, "  k%d: 1\n", i);
    ls_buf_printf(&text, "  steps: 6\n");
    config_fails(text.data, "bad.yaml:3: unknown key 'train.k0'");
    ls_buf_free(&text);
}

static void test_text(void **state) {
    (void)state;
    static const char start[] = "train configs/tiny.yaml -n 2 -o @/bad --set data.path=@/";
    write_file("empty.txt", "", 0);
    write_file("short.txt", "In the beginning", 16);
    char latin[4096];
    for (size_t i = 0; i < sizeof latin; i++) latin[i] = (char)('a' + i % 26);
    memcpy(latin + 1000, "caf\xe9 ", 5);
    write_file("latin.txt", latin, sizeof latin);
    const char *const cases[][2] = {
        {"absent.txt", "absent.txt: is not there; --set data.path=FILE names another"},
        {"empty.txt", "empty.txt: is empty"},
        {"short.txt", "short.txt"},
        {"latin.txt", "is not UTF-8 at byte 1003"}};
    for (size_t i = 0; i < 4; i++) {
        expectf(1, cases[i][1], "%s%s", start, cases[i][0]);
        assert_false(file_exists("bad"));
    }
    expect("train configs/tiny.yaml -o @/bad --set data.val_path=@/absent.txt", 1,
           "absent.txt: is not there; --set data.val_path=FILE names another, --set data.val_path= "
           "none");
    shellf("cd %s && mkdir adapter model && echo '{}' >adapter/adapter_config.json && "
           "echo '{}' >model/config.json",
           folder);
    expect("generate @/adapter", 1, "adapter: is an adapter of peft's, without the model");
    expect("train @/model -o @/bad", 2, "model is a published model, not a config");
    expect("train configs/tiny.yaml -n 2 -o @/bad --set model.context=100000", 1,
           "use a longer text or a shorter context");
}

static void test_usage(void **state) {
    (void)state;
    expect("", 2, "a command is missing");
    expect("fly", 2, "there is no command 'fly'");
    expect("train", 2, "CONFIG.yaml|RUN is missing");
    expect("train a b", 2, "one argument too many");
    expect("train configs/tiny.yaml -n zero", 2, "not a whole number from 1");
    expect("train configs/tiny.yaml -n 0", 2, "not a whole number from 1");
    expect("train configs/tiny.yaml --fast", 2, "train: unknown option --fast; see");
    expect("train tiny.yaml -q7", 2, "train: unknown option -q7; see");
    expect("eval base -5MB", 2, "eval: unknown option -5MB; see");
    expect("help -n2", 2, "help: unknown option -n2; see");
    expect("train -n 2 a.yaml -q", 2, "train: unknown option -q; see");
    expect("train a.yaml --outptu x", 2, "unknown option --outptu (did you mean --output?); see");
    expect("train a.yaml --m 3", 2,
           "unknown option --m (did you mean --min-workers or --max-workers or --membership or "
           "--mllog or --metrics-port?); see");
    expect("train a.yaml --resume=3", 2, "train: --resume takes no value; see");
    expect("plan a.yaml -o x", 2, "unknown option -o (did you mean --svg?); see");
    expect("train a.yaml --nproc 3", 2, "unknown option --nproc (did you mean --workers?); see");
    expect("run -q7 echo", 2, "run: unknown option -q7; see");
    expect("run -n 1 echo -q7", 0, "-q7");
    expect("trian a.yaml", 2, "there is no command 'trian' (did you mean 'train'?); see");
    expect("help steps", 2,
           "no command 'steps'; for the key of a config: 'lockstep help train.steps'");
    expect("help optim.lrr", 2,
           "no group or key 'optim.lrr' (did you mean 'optim.lr'?); the groups");
    expect("help lora", 0, "lora.rank = 0");
    expect("help evl", 2, "help: there is no command 'evl' (did you mean 'eval'?); see");
    expect("scale @/a", 2, "scale: N is missing; see");
    expect("scale @/a x", 2, "scale: 'x' is not a number of workers; see");
    expect("ckpt hash", 2, "ckpt: CHECKPOINT is missing; see");
    expect("eval -- -x", 1, "-x: does not exist");
    expect("train configs/tiny.yaml -o", 2, "needs a value");
    expect("ckpt crack @", 2, "there is no 'crack'");
    expect("bench fly configs/tiny.yaml", 2, "there is no 'fly'");
    expect("bench kernels --rows 0", 2, "'0' is not a list like 256,1024");
    expect("bench kernels --rows 8,x", 2, "is not a list like 256,1024");
    expect("bench kernels --rows ''", 2, "--rows");
    expect("bench kernels --dtype i8", 2, "in f32 or bf16, not in 'i8'");
    expect("bench kernels --rounds 0", 2, "--rounds");
    expect("bench kernels --steps 3", 2,
           "--steps is an option of bench train, not of bench kernels");
    expect("bench kernels configs/tiny.yaml", 2, "one argument too many");
    expect("bench generate", 2, "generate: CONFIG.yaml or a model is missing");
    expect("bench generate @/absent.yaml", 1, "absent.yaml");
    expect("bench generate configs/tiny.yaml --prompt 0", 2, "not a whole number from 1");
    expect("bench generate configs/tiny.yaml --tokens 0", 2, "not a whole number from 1");
    expect("bench generate configs/tiny.yaml --steps 3", 2,
           "--steps is an option of bench train, not of bench generate");
    expect("bench generate configs/tiny.yaml --set model.heads=5", 1, "model.heads");
    expect("bench generate configs/tiny.yaml --set model.width=16384 --set model.layers=96 --set "
           "model.heads=1",
           1, "no memory for weights");
    expect("generate @ --temperature hot", 2, "not a number");
    expect("generate @ --temperature -1", 2, "'-1' is not a number from 0");
    expect("train @ -o --resume", 2, "-o needs a value, and --resume is an option");
    expect("train @ --set -n 2", 2, "--set needs a value, and -n is an option");
    expect("plan configs/tiny.yaml -n 9", 1, "9 workers for train.virtual_workers 8");
    expect("plan configs/tiny.yaml -n 2 -w 2", 1, "there are workers 0 to 1");
    expect("plan configs/tiny.yaml --fit 2XB", 2, "--fit '2XB' is not a size such as 2GB");
    expect("plan configs/tiny.yaml -n 4 --set parallel.shard_group=3", 1,
           "parallel.shard_group 3 does not divide 4 workers");
    expect("plan configs/tiny.yaml -n 4 --set parallel.accumulate=early", 1,
           "parallel.accumulate acts only with parallel.zero: 2, 3");
    expect("plan configs/tiny.yaml --set parallel.zero=4", 1,
           "parallel.zero: 4 is out of range; expected 0 to 3");
    expect("plan configs/tiny.yaml --set train.compute=fp8", 1, "'fp8' is not one of f32, bf16");
    expect("train configs/tiny.yaml -o @/f16 -n 2 --set train.compute=f16 --set "
           "optim.loss_scale=1e9 --set optim.loss_scale_min=1e8",
           1, "head overflows in f16, with a loss scale of 1e+08, which is the lowest");
    expect("train configs/tiny.yaml -o @/never -n 2 --set parallel.optimizer_state=file --set "
           "parallel.state_dir=@/nowhere",
           1, "a file can't be created here");
    expect("serve @/absent --cache-mb 1e9", 1, "keys and values in 1000000000 MB; ");
    expect("help fly", 2, "there is no command 'fly'");
}

static void test_run_folder(void **state) {
    (void)state;
    char line[160];
    snprintf(line, sizeof line, "train %s -n 2 -o @/once --set train.steps=10", TINY);
    expect(line, 0, NULL);
    expect(line, 1, "exists already; continue it with --resume");
    expect("ckpt verify @/once", 0, "good: step 10");
    expect("train configs/tiny.yaml -o @/once --resume --set model.width=48", 1,
           "model.width is 48, but the run began with 24");
    expect("train configs/tiny.yaml -o @/once --resume --set train.steps=10", 0, "is complete");
    expect("generate @/absent --prompt a", 1, "does not exist");
    expect("eval @", 1, "neither a run nor a complete checkpoint");
}

/* Damages one file of the newest checkpoint in a copy of @/good by `change`, and expects `says`. */
static void damage_fails(const char *file, const char *change, const char *says) {
    shellf("cd %s && rm -rf bad && cp -r good bad && cd bad/checkpoints/step-10 && f=%s && %s",
           folder, file, change);
    expect("ckpt verify @/bad", 1, says);
    expect("train configs/tiny.yaml -n 2 -o @/bad --resume --set train.steps=20", 1, says);
    expect("generate @/bad --prompt a", 1, NULL);
    shellf("cd %s && diff -r good/config.yaml bad/config.yaml && "
           "diff good/metrics.jsonl bad/metrics.jsonl",
           folder); /* a failed --resume has changed nothing */
}

static void test_checkpoint(void **state) {
    (void)state;
    static const char flip[] = "printf '\\377' | dd of=$f bs=1 seek=%d conv=notrunc status=none";
    char change[128];
    expect("train configs/tiny.yaml -n 2 -o @/good --set train.steps=10", 0, NULL);
    damage_fails("model.safetensors", "truncate -s -1 $f", "model.safetensors: has the wrong size");
    snprintf(change, sizeof change, flip, 30000);
    damage_fails("model.safetensors", change, "model.safetensors: is damaged");
    damage_fails("optimizer.safetensors", change, "optimizer.safetensors: is damaged");
    snprintf(change, sizeof change, flip, 3);
    damage_fails("tokenizer.json", change, "tokenizer.json: is damaged");
    damage_fails("manifest.json", "truncate -s 100 $f", "manifest.json");
    damage_fails("manifest.json", "rm $f", "manifest.json");
    /* a checkpoint of another architecture, whole in itself */
    expect("train configs/tiny.yaml -n 2 -o @/wide --set train.steps=10 --set model.width=48", 0,
           NULL);
    shellf("cd %s && rm -rf bad && cp -r good bad && cp wide/checkpoints/step-10/* "
           "bad/checkpoints/step-10/",
           folder);
    expect("train configs/tiny.yaml -n 2 -o @/bad --resume --set train.steps=20", 1,
           "/bad/config.yaml does not go with it: model.width is 24, but the run began with 48");
}

static void test_full_disk(void **state) {
    (void)state;
    /* threads: a process's shared memory counts as a file, too */
    static const char start[] = "train configs/tiny.yaml -n 2 -o @/full --set train.steps=10 "
                                "--set parallel.transport=thread";
    program p = program_start(start, 50000);
    char *output = NULL;
    assert_int_equal(program_end(&p, &output), 1);
    assert_non_null(strstr(output, "`ulimit -f` allows"));
    free(output);
    /* with a checkpoint there already, that one stays whole and nothing half-written is beside it
     */
    expect("train configs/tiny.yaml -n 2 -o @/more --set train.steps=10", 0, NULL);
    static const char more[] = "train configs/tiny.yaml -n 2 -o @/more --resume --set "
                               "train.steps=20 --set parallel.transport=thread";
    char path[256];
    struct stat largest;
    snprintf(path, sizeof path, "%s/more/checkpoints/step-10/optimizer.safetensors", folder);
    assert_int_equal(stat(path, &largest), 0);
    /* too small by a byte: the numbers themselves would fit, so the run begins */
    p = program_start(more, (rlim_t)largest.st_size - 1);
    assert_int_equal(program_end(&p, &output), 1);
    assert_non_null(strstr(output, "can't be written"));
    free(output);
    expect("ckpt verify @/more", 0, "good: step 10");
    assert_false(file_exists("more/checkpoints/.step-20"));
    assert_false(file_exists("more/checkpoints/step-20"));
}

/* Refused before anything is made, with the largest items: more memory than any machine has. */
static void test_too_large(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/large --set train.virtual_workers=2 "
           "--set train.batch=1048576 --set train.micro_batch=524288 --set model.context=256 "
           "--set model.width=1536",
           1, "at most (activations ");
    expect("train configs/tiny.yaml -n 2 -o @/large --set model.width=24576 --set model.heads=8 "
           "--set model.layers=130 --set parallel.bucket_mb=0.001",
           1, "GB of memory at least (parameters "); /* not: too many buckets */
    assert_false(file_exists("large"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),      cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_suggestions), cmocka_unit_test(test_text_as_config),
        cmocka_unit_test(test_text),        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_run_folder),  cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_full_disk),   cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
