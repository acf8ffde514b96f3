/* survive_test.c - workers are killed and stopped while they train: the bits of a run in peace. */
#include "cli/program.h"

#if defined(__SANITIZE_ADDRESS__) /* many times slower */
enum { STEPS = 120, LESS = 8, SLOW_STEPS = 20 };
#else
enum { STEPS = 300, LESS = 2, SLOW_STEPS = 40 };
#endif

static const char START[] = "train configs/tiny.yaml -n %d -o @/%s --set train.steps=%d " SMALLER
                            "--set train.eval_every=40 --set checkpoint.every=30 "
                            "--set log.every=1000 --set survival.balance=off %s";

static uint64_t state = 1;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static program start(int workers, const char *run, int steps, const char *more) {
    char line[512];
    snprintf(line, sizeof line, START, workers, run, steps, more);
    return program_start(line, 0);
}

/* From this step on it is slow until check(). */
static program start_until(int step, int workers, const char *run, const char *more) {
    pace(run, step);
    return start(workers, run, STEPS, more);
}

static bool is_over(const program *p) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* Sends `number` to some child, `most` times at most, now and then; returns how often. */
static int hurt(const program *p, int number, int most, unsigned pause_ms) {
    int times = 0;
    while (times < most && !is_over(p)) {
        pid_t pids[16];
        sleep_ms(5 + (long)draw(pause_ms));
        int n = children_of(p->pid, pids, 16);
        if (n && kill(pids[draw((unsigned)n)], number) == 0) times++;
    }
    return times;
}

static void check(program *p, const char *run, int times, const char *what) {
    char want[256], got[256], line[128], *output = NULL;
    let_go(run);
    int code = program_end(p, &output);
    if (code != 0) fail_msg("%s: exit code %d:\n%s", run, code, output);
    hash_of("peace", want);
    hash_of(run, got);
    if (strcmp(want, got) != 0) fail_msg("%s: other bits:\n%s%s%s", run, want, got, output);
    snprintf(line, sizeof line, "ckpt ledger @/%s", run);
    expect(line, 0, ": clean: ");
    print_message("%s: %d workers %s\n", run, times, what);
    assert_true(times > 0);
    free(output);
}

static void test_peace(void **arg) {
    (void)arg;
    program p = start(4, "peace", STEPS, "");
    char *output = NULL;
    assert_int_equal(program_end(&p, &output), 0);
    assert_null(strstr(output, "view"));
    free(output);
    expect("ckpt ledger @/peace", 0, "steps by 4 workers, 0 changes of view");
}

static void killed(const char *run, int workers, int times, const char *more) {
    program p = start_until(STEPS * 2 / 3, workers, run, more);
    check(&p, run, hurt(&p, SIGKILL, 1 + times / LESS, 150), "were killed");
}

static void test_killed(void **arg) {
    (void)arg;
    killed("one-copy", 4, 20, "");
    killed("replicas", 3, 15, "--set parallel.zero=0");
    killed("sharded", 4, 15, "--set parallel.zero=3");
    killed("hybrid", 4, 10, "--set parallel.zero=2 --set parallel.shard_group=2");
    killed("messages", 3, 10, "--set parallel.transport=tcp");
    killed("messages-replicas", 2, 10, "--set parallel.transport=tcp --set parallel.zero=0");
    killed("threads", 2, 10, "--set parallel.threads=2");
}

static void test_stopped(void **arg) {
    (void)arg;
    program p = start_until(STEPS / 2, 4, "stopped", "--set survival.heartbeat_s=0.3");
    check(&p, "stopped", hurt(&p, SIGSTOP, 3, 300), "were stopped");
}

/* All at once. */
static void test_all_killed(void **arg) {
    (void)arg;
    program p = start_until(STEPS / 2, 4, "all", "");
    int times = 0;
    for (int round = 0; round < 4 && !is_over(&p); round++) {
        pid_t pids[16];
        sleep_ms(200 + (long)draw(100));
        int n = children_of(p.pid, pids, 16);
        for (int i = 0; i < n; i++) times += kill(pids[i], SIGKILL) == 0;
    }
    check(&p, "all", times, "were killed, all at once");
}

/* SIGTERM to the program while workers die: it stops after a step, with a checkpoint. */
static void test_stop(void **arg) {
    (void)arg;
    char line[512], *output = NULL;
    program p = start_until(40, 3, "stop", "");
    wait_for_file("stop/checkpoints/step-30");
    hurt(&p, SIGKILL, 1, 10);
    kill(p.pid, SIGTERM);
    let_go("stop");
    assert_int_equal(program_end(&p, &output), 75);
    assert_non_null(strstr(output, "go on with: "));
    free(output);
    snprintf(line, sizeof line, START, 2, "stop", STEPS, "--resume");
    p = program_start(line, 0);
    check(&p, "stop", 1, "was killed before SIGTERM");
}

static bool is_among(pid_t pid, const pid_t *pids, int n) {
    for (int i = 0; i < n; i++)
        if (pids[i] == pid) return true;
    return false;
}

/* pids [16]: workers that were; waits until there are `n` others, 20 s at most. Where their number
 * changes, all are new ones. */
static void await_others(const program *p, pid_t *pids, int n) {
    pid_t is[16];
    int count = 0, old = 1;
    for (int i = 0; i < 2000 && (count != n || old); i++) {
        sleep_ms(10);
        count = children_of(p->pid, is, 16);
        old = 0;
        for (int k = 0; k < count; k++) old += is_among(is[k], pids, 16);
    }
    assert_int_equal(old, 0);
    assert_int_equal(count, n);
    memcpy(pids, is, (size_t)n * sizeof *pids);
}

/* Of the workers, when nobody mends, and `lost` is not among them. */
static void settled_children_of(const program *p, pid_t lost, pid_t *pids, int n) {
    pid_t before[16] = {0};
    int count = 0;
    do {
        memcpy(before, pids, (size_t)n * sizeof *pids);
        sleep_ms(40);
        count = children_of(p->pid, pids, 16);
    } while (!is_over(p) && (count != n || pids[0] == lost ||
                             memcmp(before, pids, (size_t)n * sizeof *pids) != 0));
}

/* One after the other is killed: the others are the same processes all the time. */
static void test_stay(void **arg) {
    (void)arg;
    enum { N = 4 };
    pid_t was[16] = {0}, is[16] = {0};
    int times = 0;
    program p = start_until(20, N, "stay", "--set checkpoint.every=0");
    wait_for_file("stay/control");
    settled_children_of(&p, 0, was, N);
    while (times < N && !is_over(&p)) {
        kill(was[0], SIGKILL); /* the one that has lived longest */
        settled_children_of(&p, was[0], is, N);
        if (is_over(&p)) break;
        assert_memory_equal(is, was + 1, (N - 1) * sizeof *was);
        memcpy(was, is, sizeof was);
        times++;
    }
    check(&p, "stay", times, "were killed, and no other one ended");
    assert_int_equal(times, N);
}

static void test_scale(void **arg) {
    (void)arg;
    program p = start_until(5, 2, "scaled", "--set checkpoint.every=0");
    pid_t pids[16] = {0};
    wait_for_file("scaled/control");
    settled_children_of(&p, 0, pids, 2);
    expect("scale @/scaled 5", 0, "from 2 to 5 workers");
    await_others(&p, pids, 5);
    hurt(&p, SIGKILL, 1, 10);
    sleep_ms(50);
    expect("scale @/scaled 9", 1,
           "9 workers: this run can have 1 to 8: train.virtual_workers is 8, fixed when the run "
           "began");
    expect("scale @/scaled 0", 1, "0 workers: this run can have 1 to 8");
    expect("scale @/scaled none", 2, "'none' is not a number of workers");
    expect("scale @/scaled -1", 2, "unknown option -1");
    expect("scale @/scaled 3", 0, "to 3 workers");
    await_others(&p, pids, 3);
    check(&p, "scaled", 1, "were killed while their number changed");
    expect("scale @/scaled 3", 1, "is not running");
    expect("scale @/nowhere 3", 1, "nowhere");
}

/* A ledger with a step that is missing, there twice, with other samples, or from before there was
 * one. */
static void test_bad_ledger(void **arg) {
    (void)arg;
    static const char *const bad[][2] = {
        {"1d", "has step 2 after step 0"},
        {"3p", "has step 3 after step 3"},
        {"5s/\"first\": [0-9]*/\"first\": 1/", "metrics.jsonl:5: step 5 has "},
        {"4s/\"view\"/\"vew\"/", "metrics.jsonl:4: step 4 does not name its view"},
    };
    char line[512], *output = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line,
                 "rm -rf %s/bad && cp -r %s/peace %s/bad && sed -i '%s' %s/bad/metrics.jsonl",
                 folder, folder, folder, bad[i][0], folder);
        assert_int_equal(system(line), 0);
        expect("ckpt ledger @/bad", 1, bad[i][1]);
    }
    assert_int_equal(run_program("ckpt ledger @/nothing", &output), 1);
    free(output);
}

/* SIGTERM to one worker: it leaves after the step, and is not followed. */
static void test_leave(void **arg) {
    (void)arg;
    program p =
        start_until(5, 3, "left", "--min-workers 2 --max-workers 3 --set checkpoint.every=0");
    wait_for_file("left/control");
    pid_t pids[16] = {0};
    settled_children_of(&p, 0, pids, 3);
    kill(pids[2], SIGTERM);
    await_others(&p, pids, 2);
    expect(
        "scale @/left 4", 1,
        "4 workers: this run can have 2 to 3: survival.max_workers is 3; --resume can begin with "
        "another, up to train.virtual_workers 8");
    expect("scale @/left 1", 1, "survival.min_workers is 2; --resume can begin with another");
    assert_int_equal(children_of(p.pid, pids, 16), 2);
    kill(pids[0], SIGTERM);
    check(&p, "left", 2, "were told to leave");
}

/* Settings that don't do for as many workers as are left are replaced by some that do. */
static void leaves(const char *run, const char *settings, const char *says) {
    char want[256], got[256], control[64], *output = NULL;
    program p = start_until(5, 4, run, settings);
    pid_t pids[16] = {0};
    snprintf(control, sizeof control, "%s/control", run);
    wait_for_file(control);
    settled_children_of(&p, 0, pids, 4);
    kill(pids[3], SIGTERM);
    await_others(&p, pids, 3);
    let_go(run);
    assert_int_equal(program_end(&p, &output), 0);
    if (!strstr(output, says)) fail_msg("expected: %s\n%s", says, output);
    free(output);
    hash_of("peace", want);
    hash_of(run, got);
    assert_string_equal(got, want);
}

static void test_any_number(void **arg) {
    (void)arg;
    leaves("groups", "--set parallel.zero=2 --set parallel.shard_group=2 --set checkpoint.every=0",
           "view 2: parallel.shard_group 2 is not possible with 3 workers; using 3");
    leaves("early",
           "--set parallel.zero=2 --set parallel.accumulate=early --set checkpoint.every=0",
           "view 2: parallel.accumulate early is not possible with 3 workers; using late");
}

/* One of two workers is stopped for most of the time, again and again. Returns what the run said;
 * its bits are those of a run in peace. */
static char *slow_down(const char *run, const char *how) {
    const char *fixed = "--set train.batch=160 --set checkpoint.every=0 --set train.eval_every=0";
    char want[256], got[256], sets[256], *output = NULL;
    snprintf(sets, sizeof sets, "%s %s", fixed, how);
    pace(run, 1);
    program p = start(2, run, SLOW_STEPS, sets);
    char control[64];
    snprintf(control, sizeof control, "%s/control", run);
    wait_for_file(control);
    let_go(run);
    while (!is_over(&p)) {
        pid_t pids[16];
        if (children_of(p.pid, pids, 16) < 2) continue;
        kill(pids[1], SIGSTOP);
        sleep_ms(8);
        kill(pids[1], SIGCONT);
        sleep_ms(4);
    }
    assert_int_equal(program_end(&p, &output), 0);
    if (!file_exists("steady")) {
        char *steady = NULL;
        p = start(2, "steady", SLOW_STEPS, fixed);
        assert_int_equal(program_end(&p, &steady), 0);
        free(steady);
    }
    hash_of("steady", want);
    hash_of(run, got);
    assert_string_equal(want, got);
    return output;
}

/* It gets fewer virtual workers. Whether that is seen in so short a run is for the machine to say.
 */
static void test_slow(void **arg) {
    (void)arg;
    char *output = slow_down("slow", "--set survival.balance=auto");
    print_message("slow: %s\n", strstr(output, "shared out anew") ? "virtual workers were moved"
                                                                  : "nothing was moved");
    free(output);
}

/* The other one, which waits for it, computes some of its virtual workers first. */
static void test_backup(void **arg) {
    (void)arg;
    char *output =
        slow_down("backup", "--set survival.balance=off --set survival.backup_workers=4");
    assert_non_null(strstr(output, " a backup worker had a virtual worker's gradient first"));
    free(output);
}

/* A new process may be faster than one that is much slower than the others. */
static void test_slow_limit(void **arg) {
    (void)arg;
    char *output = slow_down("limit", "--set survival.balance=auto --set survival.slow_limit=1.6");
    print_message("limit: %s\n", strstr(output, "is replaced") ? "the worker was replaced"
                                                               : "nobody was replaced");
    free(output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peace),      cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),    cmocka_unit_test(test_all_killed),
        cmocka_unit_test(test_stop),       cmocka_unit_test(test_scale),
        cmocka_unit_test(test_bad_ledger), cmocka_unit_test(test_leave),
        cmocka_unit_test(test_any_number), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_backup),     cmocka_unit_test(test_slow_limit),
        cmocka_unit_test(test_stay),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
