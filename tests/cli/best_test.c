/* best_test.c - the best checkpoint by validation loss is retained (checkpoint.best), and a run
 * ends when that loss stops falling (train.patience).
 */
/* ctest: slow seconds=10 */
#include "cli/best.h"
#include "cli/hosts.h"

/* Half of a short text at a high rate: the validation loss soon rises. */
#define OVERFIT                                                                                    \
    "--set optim.lr=1e-2 --set optim.min_lr=1e-3 --set data.val_fraction=0.5 "                     \
    "--set train.eval_every=10 --set train.eval_samples=8 --set checkpoint.keep=1 "                \
    "--set survival.balance=off " SMALLER
#define ENDS "--set train.steps=1000 --set train.patience=2 " OVERFIT

static double loss_in_manifest(const char *run, const char *link) {
    char path[256], text[8192] = "", *at = NULL;
    snprintf(path, sizeof path, "%s/%s/checkpoints/%s/manifest.json", folder, run, link);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    at = strstr(text, "\"val_loss\": \"");
    assert_non_null(at);
    return strtod(at + 13, NULL);
}

/* Checks that of the steps 1 to `steps`, only a and b have checkpoints. */
static void only_these(const char *run, int a, int b, int steps) {
    char path[128];
    for (int step = 1; step <= steps; step++) {
        snprintf(path, sizeof path, "%s/checkpoints/step-%d", run, step);
        assert_int_equal(file_exists(path), step == a || step == b);
    }
}

static void test_best_retained(void **state) {
    double loss = 0, got = 0;
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/plain --set train.steps=100 " OVERFIT, 0, "val");
    expect("train configs/tiny.yaml -n 2 -o @/retained --set train.steps=100 "
           "--set checkpoint.best=on " OVERFIT,
           0, "/retained/checkpoints/best");
    same_hash("plain", "retained");
    assert_false(file_exists("plain/checkpoints/best"));
    int best = step_at("retained", "best");
    got = loss_in_manifest("retained", "best");
    int lowest = lowest_of("retained", 100, &loss);
    if (best < 100) assert_int_equal(best, lowest);
    assert_true(got < loss + 1e-6 && (best == 100 || got > loss - 1e-6));
    only_these("retained", best, 100, 100);
    assert_int_equal(step_at("retained", "latest"), 100);
    expect("eval @/retained/checkpoints/best", 0, "bigram");
    expect("train configs/tiny.yaml -n 1 -o @/tuned --set train.from=@/retained/checkpoints/best "
           "--set train.steps=2 --set optim.warmup=1 " SMALLER,
           0, "validation loss");
    expect("train configs/tiny.yaml -n 1 -o @/retained --resume --set train.steps=105 " OVERFIT, 0,
           "step-105");
    assert_int_equal(step_at("retained", "best"), best);
    only_these("retained", best, 105, 105);
    expect("train configs/tiny.yaml -n 1 -o @/retained --resume --set train.steps=110 "
           "--set checkpoint.best=off " OVERFIT,
           0, "step-110");
    assert_false(file_exists("retained/checkpoints/best"));
    only_these("retained", 110, 110, 110);
}

/* How the first run that stops early ended; all others must end the same. */
static int last_step, best_step;
static char ended[256];

static void ended_the_same(const char *run) {
    assert_int_equal(step_at(run, "latest"), last_step);
    assert_int_equal(step_at(run, "best"), best_step);
    only_these(run, best_step, last_step, last_step + 20);
    assert_hash(run, ended);
}

static void test_ends(void **state) {
    double loss = 0;
    char says[256];
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/one " ENDS, 0, "stopped early after step ");
    last_step = step_at("one", "latest");
    best_step = step_at("one", "best");
    assert_int_equal(last_step, best_step + 20);
    assert_int_equal(lowest_of("one", last_step + 1, &loss), best_step);
    hash_of("one", ended);
    expect("ckpt ledger @/one", 0, "clean");
    static const char *const layouts[] = {"-n 3 --set parallel.zero=3",
                                          "-n 2 --set parallel.zero=0 --set parallel.transport=tcp",
                                          "-n 2 --set parallel.transport=thread"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char line[768], run[32];
        snprintf(run, sizeof run, "layout-%zu", i);
        snprintf(line, sizeof line, "train configs/tiny.yaml -o @/%s %s " ENDS, run, layouts[i]);
        snprintf(says, sizeof says,
                 "stopped early after step %d: no lower validation loss in 2 evaluations; the best "
                 "is step %d (loss %.4f): %s/%s/checkpoints/best\n",
                 last_step, best_step, loss, folder, run);
        expect(line, 0, says);
        ended_the_same(run);
    }
}

/* Hosts that write a checkpoint together, one part each. */
static void test_hosts(void **state) {
    int port = free_port();
    (void)state;
    host first = host_start(
        "train configs/tiny.yaml -n 1 -o @/hosts --insecure --listen 127.0.0.1:%d --hosts 2 "
        "--set parallel.zero=2 " ENDS,
        port);
    host second =
        host_start("train configs/tiny.yaml -n 2 -o @/hosts --insecure --join 127.0.0.1:%d "
                   "--set parallel.zero=2 " ENDS,
                   port);
    host_expect(&first, 0, "stopped early after step ");
    host_expect(&second, 0, "the run has ended");
    ended_the_same("hosts");
}

static void test_complete(void **state) {
    char says[256];
    (void)state;
    snprintf(says, sizeof says,
             "is complete: stopped early after step %d, with the best at step %d", last_step,
             best_step);
    expect("train configs/tiny.yaml -n 1 -o @/one --resume " ENDS, 0, says);
    expect(
        "train configs/tiny.yaml -n 1 -o @/layout-2 --resume --set parallel.transport=thread " ENDS,
        0, says);
    ended_the_same("one");
    expect("train configs/tiny.yaml -n 1 -o @/one --resume " ENDS "--set train.patience=3", 0,
           "stopped early after step ");
    assert_true(step_at("one", "latest") > last_step);
}

/* Such a run is over for those who did not train it, too: no host is waited for, nor does one wait
 * for a leader, also where the validation part has fewer samples than train.eval_samples. */
static void test_over(void **state) {
    static const char all[] = "--set train.eval_samples=100000";
    char *output = NULL;
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/all " ENDS "--set train.eval_samples=100000", 0,
           "stopped early after step ");
    for (int i = 0; i < 2; i++) {
        const char *run = i ? "all" : "hosts", *more = i ? all : "";
        output = output_of("status @/%s", run);
        assert_output_has(output, " complete ");
        free(output);
        host h = host_start("train configs/tiny.yaml -n 1 -o @/%s --insecure --resume --listen "
                            "127.0.0.1:%d --hosts 2 --set parallel.zero=2 " ENDS "%s",
                            run, free_port(), more);
        host_expect(&h, 0, ": is complete: stopped early after step ");
        h = host_start("train configs/tiny.yaml -n 1 -o @/%s --insecure --join 127.0.0.1:%d "
                       "--set survival.rejoin_s=86400 " ENDS "%s",
                       run, free_port(), more);
        host_expect(&h, 0, ": is complete, and nobody leads it");
    }
    host h = host_start("train configs/tiny.yaml -n 1 -o @/hosts --insecure --join 127.0.0.1:%d "
                        "--set survival.rejoin_s=0.1 " ENDS "--set train.eval_samples=9",
                        free_port()); /* which begins to count anew */
    host_expect(&h, 1, "can't be reached (");
}

/* Waits until a run's metrics have the evaluation after a step. */
static void wait_for_evaluation(const char *run, int step) {
    char path[256], line[1024], begin[64];
    bool found = false;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    int n = snprintf(begin, sizeof begin, "{\"step\": %d, \"val_loss\"", step);
    for (int i = 0; i < PATIENCE_S * 100 && !found; i++) {
        sleep_ms(10);
        FILE *f = fopen(path, "r");
        while (f && !found && fgets(line, sizeof line, f))
            found = strncmp(line, begin, (size_t)n) == 0;
        if (f) fclose(f);
    }
    assert_true(found);
}

/* Starts a run and waits until the first of two evaluations after the best one; from there on it is
 * slow. */
static program begin(const char *run, const char *layout) {
    pace(run, best_step + 10);
    program p = startf("train configs/tiny.yaml -o @/%s %s " ENDS, run, layout);
    wait_for_evaluation(run, best_step + 10);
    return p;
}

static void test_worker_killed(void **state) {
    pid_t pids[8];
    char *output = NULL;
    (void)state;
    program p = begin("worker-killed", "-n 3 --set parallel.zero=3");
    wait_for_children(p.pid, 3, pids, 8);
    assert_int_equal(kill(pids[0], SIGKILL), 0);
    let_go("worker-killed");
    assert_int_equal(program_end(&p, &output), 0);
    assert_non_null(strstr(output, "stopped early after step "));
    free(output);
    ended_the_same("worker-killed");
}

static void test_all_killed(void **state) {
    (void)state;
    program p = begin("killed", "-n 2 --set checkpoint.every=1");
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    program_expect(&p, 128 + SIGKILL, NULL);
    let_go("killed");
    expect("train configs/tiny.yaml -n 3 -o @/killed --resume " ENDS, 0,
           "stopped early after step ");
    ended_the_same("killed");
    expect("ckpt ledger @/killed", 0, "clean");
}

/* From step 20 on a rate that ruins the model. The end of the run says since when the loss has
 * risen, and where that step's checkpoint is, or how one is retained; not if the best is sought,
 * which says more, nor if the last loss of all is lower, where they are comparable. */
static void test_risen(void **state) {
    (void)state;
    static const struct {
        const char *more, *says;
        bool removed; /* the best checkpoint, before the end */
    } cases[] = {
        {"", "to 8.5950 after step 30; the checkpoint of step 20 is /", false},
        {"",
         "to 8.5950 after step 30; checkpoint.best: on retains the best checkpoint, and "
         "train.patience ends such a run early",
         true},
        {"--set checkpoint.best=on ", "\nthe best is step ", false},
        {"--set train.eval_samples=100000 ", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
#define RISES                                                                                      \
    "train configs/tiny.yaml -n 2 -o @/risen-%zu --set train.steps=40 --set train.eval_every=10 "  \
    "--set log.every=1000 --set checkpoint.every=20 " SMALLER "%s"
        snprintf(line, sizeof line, RISES "--until 20", i, cases[i].more);
        expect(line, 75, NULL);
        char *output = output_of(
            RISES "--resume --set optim.lr=0.5 --set optim.min_lr=0.5 %s", i, cases[i].more,
            cases[i].removed ? "--set checkpoint.best=off --set checkpoint.keep=1" : "");
        bool risen = strstr(output, "the validation loss has risen since step 20: from 5.1542 ");
        assert_int_equal(risen, i < 2);
        if (cases[i].says) assert_output_has(output, cases[i].says);
        free(output);
    }
}

static void test_errors(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -o @/wrong --set train.patience=2 --set train.eval_every=0", 1,
           "train.patience acts only with train.eval_every > 0");
    expect("train configs/tiny.yaml -o @/wrong --set checkpoint.best=maybe", 1, "off");
    assert_false(file_exists("wrong"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_retained), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_hosts),         cmocka_unit_test(test_complete),
        cmocka_unit_test(test_over),          cmocka_unit_test(test_worker_killed),
        cmocka_unit_test(test_all_killed),    cmocka_unit_test(test_risen),
        cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
