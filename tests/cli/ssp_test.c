/* ssp_test.c - runs with bounded staleness: their bits, the parameters that gradients are of, and
 * workers that are killed and stopped. */
/* ctest: busy seconds=30 */
/* ctest: long-asan: async/clocks runs the same code */
#include <math.h>

#include "cli/crew.h"
#include "cli/ways.h"

static const char START[] = "train configs/tiny.yaml -n %d -o @/%s --set train.steps=60 " SMALLER
                            "--set sync.mode=ssp --set train.eval_every=20 "
                            "--set checkpoint.every=15 --set log.every=1000 %s";

static program start(int workers, const char *run, const char *more) {
    return startf(START, workers, run, more);
}

static void train(int workers, const char *run, const char *more) {
    program p = start(workers, run, more);
    program_expect(&p, 0, "gradients that each worker has computed: ");
}

/* With a staleness of 0 the bits are those of common steps. */
static void test_synchronous(void **arg) {
    (void)arg;
    expect("train configs/tiny.yaml -n 2 -o @/sync --set train.steps=60 " SMALLER
           "--set train.eval_every=0",
           0, NULL);
    train(3, "none", "--set sync.staleness=0");
    same_hash("sync", "none");
    expect("ckpt ledger @/none", 0, ": clean: 60 steps");
}

/* The bits do not depend on the number of workers. */
static void test_workers(void **arg) {
    (void)arg;
    static const char *const settings[] = {
        "--set sync.staleness=1",
        "--set sync.staleness=4 --set sync.staleness_drawn=on --set parallel.zero=0",
        "--set sync.staleness=2 --set train.compute=bf16 --set optim.ema=0.9",
        "--set sync.staleness=2 --set optim.optimizer=muon",
        "--set sync.staleness=2 --set train.freeze=wte.* --set optim.clip=0.5",
        "--set sync.staleness=16 --set parallel.threads=2"};
    static const int workers[] = {2, 3, 5};
    int n = sizeof settings / sizeof *settings;
    for (int i = 0; i < n; i++) {
        char one[32], more[32];
        snprintf(one, sizeof one, "one-%d", i);
        snprintf(more, sizeof more, "more-%d", i);
        train(1, one, settings[i]);
        train(workers[i % 3], more, settings[i]);
        same_hash(one, more);
    }
    expect("ckpt ledger @/more-1", 0, ": clean: 60 steps");
}

/* ---- the parameters that gradients are of ---- */

/* One weight w, and samples (1, 3): the gradient is 2 (w - 3). Returns the losses of the steps. */
static int losses_of(const char *run, const char *more, double *losses, int most) {
    char path[256], text[512];
    expectf(0, NULL,
            "train @/line.yaml --set data.path=@/line.csv -n 3 -o @/%s --set sync.mode=ssp %s", run,
            more);
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    FILE *f = fopen(path, "r");
    int n = 0;
    assert_non_null(f);
    while (n < most && fgets(text, sizeof text, f)) {
        const char *loss = strstr(text, "\"loss\": ");
        if (loss) losses[n++] = strtod(loss + 8, NULL);
    }
    fclose(f);
    return n;
}

static void write_line(void) {
    static const char config[] = "model:\n"
                                 "  kind: layers\n"
                                 "  layers:\n"
                                 "    - linear: {out: 1, no_bias: true}\n"
                                 "  loss: {mean_squared_error: {target: price}}\n"
                                 "train: {steps: 40, batch: 4, virtual_workers: 4, eval_every: 0}\n"
                                 "optim: {optimizer: sgd, momentum: 0, weight_decay: 0, warmup: 0, "
                                 "schedule: constant, clip: 0}\n"
                                 "log: {every: 1}\n";
    static const char rows[] = "x,price\n1,3\n1,3\n1,3\n1,3\n1,3\n1,3\n1,3\n1,3\n";
    write_file("line.csv", rows, sizeof rows - 1);
    write_file("line.yaml", config, sizeof config - 1);
}

/* A gradient is of the parameters `s` steps before those that it changes: with d = |w - 3| at
 * version c, d_{c+1} = d_c - 2 lr d_{c-s}, and the loss of step c is the square of d_{c-s}. */
static void check_recurrence(int s, double lr) {
    enum { STEPS = 40 };
    double loss[STEPS], d[STEPS + 1];
    char run[32], more[128];
    snprintf(run, sizeof run, "line-%d", s);
    snprintf(more, sizeof more, "--set sync.staleness=%d --set optim.lr=%g", s, lr);
    assert_int_equal(losses_of(run, more, loss, STEPS), STEPS);
    d[0] = sqrt(loss[0]);
    for (int c = 0; c < STEPS; c++) {
        double seen = d[c > s ? c - s : 0], want = seen * seen;
        if (fabs(loss[c] - want) > 1e-4 * want + 1e-6)
            fail_msg("staleness %d, step %d: loss %g, expected %g", s, c + 1, loss[c], want);
        d[c + 1] = d[c] - 2 * lr * seen;
    }
}

static void test_recurrence(void **arg) {
    (void)arg;
    write_line();
    check_recurrence(0, 0.1);
    check_recurrence(1, 0.1);
    check_recurrence(4, 0.05);
}

/* Stable only below a rate of 2 sin(pi / (2 (2 s + 1))) / curvature; the curvature is 2. */
static void test_stability(void **arg) {
    (void)arg;
    enum { STEPS = 300 };
    double loss[STEPS], bound = sin(3.14159265358979 / (2 * (2 * 2 + 1)));
    char more[160];
    write_line();
    for (int above = 0; above < 2; above++) {
        snprintf(more, sizeof more,
                 "--set sync.staleness=2 --set train.steps=%d --set optim.lr=%.6f", STEPS,
                 bound * (above ? 1.05 : 0.95));
        assert_int_equal(losses_of(above ? "grows" : "falls", more, loss, STEPS), STEPS);
        assert_true(above ? loss[STEPS - 1] > 10 * loss[0] : loss[STEPS - 1] < 0.1 * loss[0]);
    }
}

/* ---- kills, stops, resuming ---- */

static void test_resumed(void **arg) {
    (void)arg;
    train(2, "whole", "--set sync.staleness=3");
    program p = start(3, "parts", "--set sync.staleness=3 --until 22");
    program_expect(&p, 75, "stopped after step 22 of 60");
    p = start(5, "parts", "--set sync.staleness=3 --resume --until 37");
    program_expect(&p, 75, "stopped after step 37 of 60");
    p = start(1, "parts", "--set sync.staleness=3 --resume");
    program_expect(&p, 0, NULL);
    same_hash("whole", "parts");
}

static void test_killed(void **arg) {
    (void)arg;
    uint64_t state = 1;
    int times = 0;
    train(1, "undisturbed", "--set sync.staleness=2");
    pace_long("killed", 15);
    program p = start(3, "killed", "--set sync.staleness=2");
    wait_for_file("killed/checkpoints/step-15");
    for (int i = 0; i < 12; i++) {
        pid_t nursery = 0, pids[16];
        sleep_ms(40);
        int n = crew_of(p.pid, &nursery, pids, 16);
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (n && kill(pids[(state >> 33) % (unsigned)n], SIGKILL) == 0) times++;
    }
    let_go("killed");
    program_expect(&p, 0, "another takes its place, and the others continue");
    assert_true(times > 6);
    same_hash("undisturbed", "killed");
}

/* A worker that is stopped holds the others up only beyond the staleness, and for a heartbeat. */
static void test_paused(void **arg) {
    (void)arg;
    pid_t nursery = 0, pids[16];
    train(2, "unpaused", "");
    pace_long("paused", 15);
    program p = start(3, "paused", "--set survival.heartbeat_s=0.5");
    wait_for_file("paused/checkpoints/step-15");
    assert_int_equal(crew_of(p.pid, &nursery, pids, 16), 3);
    kill(pids[1], SIGSTOP);
    while (kill(pids[1], 0) == 0) sleep_ms(10); /* until it is replaced */
    let_go("paused");
    program_expect(&p, 0, "was killed by signal 9; another takes its place");
    same_hash("unpaused", "paused");
}

/* The processes that compute, or the one that steps: the run goes on from its checkpoint. */
static void test_lost(void **arg) {
    (void)arg;
    pid_t nursery = 0, pids[16];
    train(2, "kept", "");
    for (int whole = 0; whole < 2; whole++) {
        const char *run = whole ? "lost-whole" : "lost";
        pace_long(run, 16);
        program p = start(3, run, "");
        char name[64];
        snprintf(name, sizeof name, "%s/checkpoints/step-15", run);
        wait_for_file(name);
        assert_true(crew_of(p.pid, &nursery, pids, 16) > 0);
        if (whole) {
            kill_paced(&p, run);
        } else {
            kill(nursery, SIGKILL);
            let_go(run);
            program_expect(&p, 1, "continue from the last checkpoint with --resume");
        }
        p = start(2, run, "--resume");
        program_expect(&p, 0, NULL);
        same_hash("kept", run);
    }
}

/* ---- what is refused ---- */

static void refuse(const char *more, const char *says) {
    char line[512];
    snprintf(line, sizeof line, "train configs/tiny.yaml -o @/refused --set sync.mode=ssp %s",
             more);
    expect_line(line, 1, says);
    assert_false(file_exists("refused"));
}

static void test_refused(void **arg) {
    (void)arg;
    refuse("-n 17", "at most 16 gradients are computed at a time; use -n 16 or fewer");
    refuse("-n 2 --listen localhost:0 --hosts 2", "start it without --hosts");
    refuse("-n 2 --set train.compute=f16",
           "sync.mode: ssp does not go with train.compute: f16: f16 needs a loss scale");
    refuse("-n 2 --set parallel.zero=3", "parallel.zero: 3: the latter is for workers that sum");
    refuse("-n 2 --set compress.kind=int8", "compress.kind");
    refuse("-n 2 --set sync.servers=2", "sync.servers acts only with sync.mode: async");
    refuse("-n 2 --set sync.staleness=17", "sync.staleness");
    expect_line("train configs/tiny.yaml -o @/refused --set sync.staleness=2", 1,
                "sync.staleness acts only with sync.mode: ssp");
    expect_line("bench train configs/tiny.yaml --set sync.mode=ssp", 1,
                "`bench train` times common steps");
    expect("plan configs/tiny.yaml -n 3 --set sync.mode=ssp --set sync.staleness=2", 0,
           "They lie in 24 places of 0.094 MB");
    expect_line("plan configs/tiny.yaml -n 2,4 --set sync.mode=ssp --machine configs/machines/x", 1,
                "for one number of workers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synchronous), cmocka_unit_test(test_workers),
        cmocka_unit_test(test_recurrence),  cmocka_unit_test(test_stability),
        cmocka_unit_test(test_resumed),     cmocka_unit_test(test_killed),
        cmocka_unit_test(test_paused),      cmocka_unit_test(test_lost),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
