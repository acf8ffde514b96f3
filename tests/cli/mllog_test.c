/* mllog_test.c - `lockstep train --mllog`: one well-formed log of a run, also of one that was
 * killed and continued; what is refused. The compliance checker reads such logs in
 * scripts/check_mllog.py. */
/* ctest: busy seconds=20 */
/* ctest: long-asan: the tests of report write the same files */
#include "cli/program.h"

#include "base/json.h"

#define TRAIN(name, target, more)                                                                  \
    "train configs/tiny.yaml -n 2 -o @/" name " --mllog @/" name ".log --target " target           \
    " --set log.every=1000 --set train.eval_every=5 --set survival.balance=off " SMALLER more

enum { MOST_KEYS = 256, MOST_KEY = 64 };

typedef struct log_read {
    char keys[MOST_KEYS][MOST_KEY];
    int64_t steps[MOST_KEYS]; /* metadata.step_num; -1: none */
    char status[16];          /* of run_stop */
    int n;
} log_read;

/* Every line must be one of a log, and times must not go back but in the header. */
static log_read read_log(const char *name) {
    static const char token[] = ":::MLLOG ";
    log_read r = {.n = 0};
    char path[256], line[4096];
    int64_t latest = 0, ms = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        ls_json *j = NULL;
        ls_error e;
        assert_memory_equal(line, token, sizeof token - 1);
        const char *object = line + sizeof token - 1;
        assert_ls_ok(ls_json_parse(object, strlen(object), name, &j, &e), e);
        const ls_json *metadata = ls_json_get(j, "metadata");
        assert_true(r.n < MOST_KEYS && ls_json_integer(ls_json_get(j, "time_ms"), &ms));
        assert_true(ms >= latest);
        latest = ms;
        snprintf(r.keys[r.n], MOST_KEY, "%s", ls_json_text(ls_json_get(j, "key")));
        if (!ls_json_integer(ls_json_get(metadata, "step_num"), &r.steps[r.n])) r.steps[r.n] = -1;
        const char *status = ls_json_text(ls_json_get(metadata, "status"));
        if (status) snprintf(r.status, sizeof r.status, "%s", status);
        r.n++;
        ls_json_free(j);
    }
    fclose(f);
    return r;
}

static int count_key(const log_read *r, const char *key) {
    int n = 0;
    for (int i = 0; i < r->n; i++) n += strcmp(r->keys[i], key) == 0;
    return n;
}

/* The lines from run_start on: blocks and evaluations take turns, at steps that ascend by 5. */
static void check_log(const char *name, int evaluations, const char *status) {
    static const char *const turn[] = {"block_start", "block_stop", "eval_start", "eval_accuracy",
                                       "eval_stop"};
    static const char *const once[] = {"submission_org", "submission_platform", "init_start",
                                       "init_stop",      "run_start",           "run_stop",
                                       "seed",           "global_batch_size",   "opt_name"};
    log_read r = read_log(name);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (count_key(&r, once[i]) != 1)
            fail_msg("%s: %d lines %s", name, count_key(&r, once[i]), once[i]);
    int at = 0;
    while (strcmp(r.keys[at], "run_start") != 0) at++;
    for (int i = 0; i < 5 * evaluations; i++) {
        assert_string_equal(r.keys[++at], turn[i % 5]);
        assert_int_equal(r.steps[at], i % 5 ? i / 5 * 5 + 5 : i / 5 * 5);
    }
    assert_string_equal(r.keys[at + 1], "run_stop");
    assert_string_equal(r.status, status);
    assert_int_equal(at + 2, r.n);
}

/* The steps after the target leave no lines. */
static void test_reached(void **state) {
    (void)state;
    expect(TRAIN("good", "val_loss<=100", "--set train.steps=15"), 0, NULL);
    check_log("good.log", 1, "success");
    shell_of_run("good", "grep -q '\"key\": \"submission_org\", \"value\": \"none\"' good.log && "
                         "grep -q '\"key\": \"global_batch_size\", \"value\": 16' good.log && "
                         "grep -q '\"key\": \"opt_adamw_beta_1\", \"value\": 0.9' good.log");
    expect(TRAIN("named", "val_loss<=100",
                 "--set train.steps=5 --set train.batch=24 --set train.micro_batch=2 "
                 "--submission org=us "
                 "--submission benchmark=tiny --set optim.optimizer=sgd --set optim.momentum=0.5"),
           0, NULL);
    shell_of_run("named",
                 "grep -q '\"key\": \"submission_org\", \"value\": \"us\"' named.log && "
                 "grep -q '\"key\": \"submission_benchmark\", \"value\": \"tiny\"' named.log && "
                 "grep -q '\"key\": \"gradient_accumulation_steps\", \"value\": 8' named.log && "
                 "grep -q '\"key\": \"sgd_opt_momentum\", \"value\": 0.5' named.log");
}

/* A run that goes on beyond its last step takes the end back. */
static void test_missed(void **state) {
    (void)state;
    expect(TRAIN("bad", "val_loss<=0.1", "--set train.steps=15"), 0, NULL);
    check_log("bad.log", 3, "aborted");
    expect(TRAIN("bad", "val_loss<=0.1", "--set train.steps=15 --resume"), 0, "is complete");
    check_log("bad.log", 3, "aborted");
    expect(TRAIN("bad", "val_loss<=0.1", "--set train.steps=20 --resume"), 0, NULL);
    log_read r = read_log("bad.log");
    assert_true(count_key(&r, "run_stop") == 1 && count_key(&r, "run_start") == 1);
    assert_int_equal(r.steps[r.n - 1], 20);
}

/* Lines of steps that are lost are taken back; times go on. */
static void test_killed(void **state) {
    (void)state;
    pace("killed", 12);
    program p = program_start(
        TRAIN("killed", "val_loss<=0.1", "--set train.steps=30 --set checkpoint.every=7"), 0);
    wait_for_file("killed/checkpoints/step-7");
    wait_for_step("killed", 14); /* a checkpoint may be skipped then */
    kill_paced(&p, "killed");
    shell_of_run("killed", "printf ':::MLLOG {\"namespace' >>killed.log"); /* torn */
    expect("train --resume @/killed -n 1 --mllog @/killed.log --target val_loss<=0.1", 0, NULL);
    check_log("killed.log", 6, "aborted");
}

/* Another worker goes on with the log of the one that was killed. */
static void test_worker_killed(void **state) {
    (void)state;
    pid_t pids[8];
    hold_after("worker", 12);
    program p = program_start(TRAIN("worker", "val_loss<=0.1", "--set train.steps=30"), 0);
    wait_for_file("worker.log");
    for (int i = 0, n = 0; i < PATIENCE_S * 100 && n < 2; i++, sleep_ms(10)) {
        log_read r = read_log("worker.log");
        n = count_key(&r, "eval_stop");
    }
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[0], SIGKILL);
    sleep_ms(200);
    let_go("worker");
    program_expect(&p, 0, NULL);
    check_log("worker.log", 6, "aborted");
}

static void test_stopped_early(void **state) {
    (void)state;
    expect(TRAIN("early", "val_loss<=0.1",
                 "--set train.steps=60 --set optim.lr=0.3 --set train.patience=1"),
           0, "stopped early");
    log_read r = read_log("early.log");
    assert_string_equal(r.keys[r.n - 1], "run_stop");
    assert_string_equal(r.status, "aborted");
    assert_int_equal(count_key(&r, "block_start"), count_key(&r, "block_stop"));
}

/* A log that lacks lines ends no training, whose exit code says so. */
static void test_lost(void **state) {
    (void)state;
    const char *what = "lost.log: can't be written: No space left on device; the log lacks lines\n";
    char *output = NULL;
    setenv("LOCKSTEP_FAULTS", "write /lost.log ENOSPC 0", 1);
    program p = program_start(TRAIN("lost", "val_loss<=0.1", ""), 0);
    unsetenv("LOCKSTEP_FAULTS");
    assert_int_equal(program_end(&p, &output), 1);
    const char *last = strstr(output, what);
    while (last && strstr(last + 1, what)) last = strstr(last + 1, what);
    assert_non_null(last);
    assert_string_equal(last + strlen(what), "");
    free(output);
    expect("status @/lost", 0, "complete");
    expect("ckpt verify @/lost", 0, ": good: step ");
}

static void test_refused(void **state) {
    (void)state;
    expect_line("train configs/tiny.yaml -o @/x --mllog @/x.log", 2, "belong together");
    expect_line("train configs/tiny.yaml -o @/x --target val_loss<=3", 2, "belong together");
    expect_line("train configs/tiny.yaml -o @/x --submission org=us", 2, "belong together");
    expect_line(TRAIN("x", "val_loss", ""), 2, "'val_loss' is not a metric with its limit");
    expect_line(TRAIN("x", "val_loss<=3", "--submission name=us"), 2, "'name=us' is not a word");
    expect_line(TRAIN("x", "val_loss<=3", "--submission org="), 2, "'org=' is not a word");
    expect(TRAIN("x", "val_accuracy>=0.9", ""), 1,
           "evaluations of this model have no 'val_accuracy'");
    assert_false(file_exists("x") || file_exists("x.log"));
    expect("train configs/tiny.yaml -o @/y --mllog @/good.log --target val_loss<=3", 1,
           "good.log: exists, and a log has one run");
    expect("train configs/tiny.yaml -n 1 -o @/y --set train.steps=9 --until 4", 75, NULL);
    expect("train --resume @/y --mllog @/y.log --target val_loss<=3", 1,
           "y.log: is missing, and the run has made 4 steps without it");
    expect("train --resume @/y --mllog @/good.log --target val_loss<=3", 1,
           "good.log: is not the log of");
    expect("train --resume @/y --mllog @/y/config.yaml --target val_loss<=3", 1,
           "y/config.yaml: is not the log of");
    check_log("good.log", 1, "success"); /* untouched */
    expect("train --resume @/y", 0, NULL);
    expect(TRAIN("z", "val_loss<=0.5", "--set train.steps=9 --until 6"), 75, "--mllog");
    expect("train --resume @/z --mllog @/z.log --target val_loss<=0.6", 1,
           "z.log: was begun with --target 'val_loss<=0.5'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reached),       cmocka_unit_test(test_missed),
        cmocka_unit_test(test_killed),        cmocka_unit_test(test_worker_killed),
        cmocka_unit_test(test_stopped_early), cmocka_unit_test(test_lost),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
