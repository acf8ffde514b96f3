/* survive_test.c - workers that are killed and stopped: the bits of an undisturbed run. */
/* ctest: busy seconds=40 */
/* ctest: long-asan: cli/resume and exec/restart run the same code */
#include "cli/program.h"

#if defined(__SANITIZE_ADDRESS__) /* many times slower */
enum { ALL_STEPS = 90, LESS = 8, SLOW_STEPS = 20, APART = 1 };
#else
enum { ALL_STEPS = 150, LESS = 2, SLOW_STEPS = 40, APART = 3 };
#endif
#define STEPS ncases(70, ALL_STEPS)
enum { MANY = 2000 /* steps: more than a slow worker can last */ };

static const char START[] = "train configs/tiny.yaml -n %d -o @/%s --set train.steps=%d " SMALLER
                            "--set train.eval_every=40 --set checkpoint.every=30 "
                            "--set log.every=1000 --set survival.balance=off %s";

static uint64_t state = 1;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static program start(int workers, const char *run, int steps, const char *more) {
    return startf(START, workers, run, steps, more);
}

/* From this step on the run is slow until check(). */
static program start_until(int step, int workers, const char *run, const char *more) {
    pace(run, step);
    return start(workers, run, STEPS, more);
}

static bool is_over(const program *p) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* Sends signal `number` to random children, at most `most` times; returns how often. */
static int signal_children(const program *p, int number, int most, unsigned pause_ms) {
    int times = 0;
    while (times < most && !is_over(p)) {
        pid_t pids[16];
        sleep_ms(5 + (long)draw(pause_ms));
        int n = children_of(p->pid, pids, 16);
        if (n && kill(pids[draw((unsigned)n)], number) == 0) times++;
    }
    return times;
}

/* like: a run with the same bits. */
static void check_like(program *p, const char *like, const char *run, int times, const char *what) {
    char want[256], got[256], *output = NULL;
    let_go(run);
    int code = program_end(p, &output);
    if (code != 0) fail_msg("%s: exit code %d:\n%s", run, code, output);
    hash_of(like, want);
    hash_of(run, got);
    if (strcmp(want, got) != 0) fail_msg("%s: other bits:\n%s%s%s", run, want, got, output);
    expectf(0, ": clean: ", "ckpt ledger @/%s", run);
    print_message("%s: %d workers %s\n", run, times, what);
    assert_true(times > 0);
    free(output);
}

static void check(program *p, const char *run, int times, const char *what) {
    check_like(p, "undisturbed", run, times, what);
}

static void test_undisturbed(void **arg) {
    (void)arg;
    program p = start(4, "undisturbed", STEPS, "");
    char *output = NULL;
    assert_int_equal(program_end(&p, &output), 0);
    assert_null(strstr(output, "view"));
    free(output);
    expect("ckpt ledger @/undisturbed", 0, "steps by 4 workers, 0 changes of view");
}

static void killed(const char *run, int workers, int times, const char *more) {
    program p = start_until(STEPS * 2 / 3, workers, run, more);
    check(&p, run, signal_children(&p, SIGKILL, 1 + times / ncases(2 * LESS, LESS), 150),
          "were killed");
}

static void test_killed(void **arg) {
    (void)arg;
    killed("one-copy", 4, 20, "");
    killed("replicas", 3, 15, "--set parallel.zero=0");
    killed("sharded", 4, 15, "--set parallel.zero=3");
    killed("hybrid", 4, 10, "--set parallel.zero=2 --set parallel.shard_group=2");
    killed("messages", 3, 10, "--set parallel.transport=tcp");
    if (!all_cases()) return;
    killed("messages-replicas", 2, 10, "--set parallel.transport=tcp --set parallel.zero=0");
    killed("threads", 2, 10, "--set parallel.threads=2");
}

/* Replicas that train apart: a worker may be lost in the middle of a synchronization, too. */
static void kill_apart(const char *name, const char *apart) {
    static const char *const how[] = {"", "--set parallel.zero=0",
                                      "--set parallel.zero=0 --set parallel.transport=tcp"};
    char more[320], *output = NULL;
    program p = start(2, name, STEPS, apart);
    assert_int_equal(program_end(&p, &output), 0);
    free(output);
    for (int i = 3 - APART; i < 3; i++) {
        if (!runs_case(i, 2)) continue; /* one of two: with messages */
        char run[32];
        snprintf(run, sizeof run, "%s-%d", name, i);
        snprintf(more, sizeof more, "%s %s", apart, how[i]);
        p = start_until(STEPS * 2 / 3, 3 + i, run, more);
        check_like(&p, name, run,
                   signal_children(&p, SIGKILL, 1 + 15 / ncases(2 * LESS, LESS), 150),
                   "were killed");
    }
}

static void test_killed_apart(void **arg) {
    (void)arg;
    kill_apart("apart", "--set sync.mode=diloco --set sync.replicas=4 --set sync.every=8 "
                        "--set sync.fragments=2 --set sync.mixing=0.5 --set sync.deltas=int4");
}

static void test_killed_in_gossip(void **arg) {
    (void)arg;
    kill_apart("gossip", "--set sync.mode=gossip --set sync.replicas=4 --set sync.graph=random "
                         "--set sync.algorithm=sgp");
}

/* A worker of a pipeline: its part of the model comes from the memory that outlives it. */
static void test_killed_in_a_pipeline(void **arg) {
    (void)arg;
    killed("pipeline", 4, 10, "--set parallel.mesh.pipe=2 --set parallel.zero=3");
    killed("pipeline-chunks", 2, 10,
           "--set parallel.mesh.pipe=2 --set parallel.schedule=interleaved --set "
           "parallel.chunks=2 --set parallel.transport=tcp");
    if (!all_cases()) return;
    killed("pipeline-alone", 3, 10,
           "--set parallel.mesh.pipe=3 --set parallel.zero=0 --set parallel.schedule=gpipe");
}

static void train_alone(const char *name, const char *model) {
    program p = start(1, name, STEPS, model);
    program_expect(&p, 0, NULL);
}

/* Workers of groups that divide slices or chunks, beside one worker whose run is `name`. */
static void kill_in_group(const char *name, const char *model, int n, const char *how) {
    char more[512], run[32];
    snprintf(run, sizeof run, "%s-of-%d", name, n);
    snprintf(more, sizeof more, "%s %s", model, how);
    program p = start_until(STEPS * 2 / 3, n, run, more);
    check_like(&p, name, run, signal_children(&p, SIGKILL, 1 + 10 / LESS, 150), "were killed");
}

#define TENSOR "--set parallel.mesh.tensor=2 "
static void test_killed_in_a_tensor_group(void **arg) {
    (void)arg;
    static const char sliced[] = "--set parallel.tensor_virtual=3";
    static const char experts[] =
        "--set parallel.tensor_virtual=3 --set model.kind=llama --set model.heads=3 --set "
        "model.head=own --set model.experts=5 --set model.ffn=16";
    train_alone("sliced", sliced);
    kill_in_group("sliced", sliced, 4, TENSOR "--set parallel.zero=3");
    if (!all_cases()) return;
    train_alone("experts", experts);
    kill_in_group("sliced", sliced, 2, TENSOR "--set parallel.transport=tcp");
    kill_in_group("experts", experts, 4, TENSOR "--set parallel.zero=1");
}

static void test_killed_in_a_context_group(void **arg) {
    (void)arg;
    static const char chunked[] = "--set parallel.context_virtual=2 --set model.kind=llama --set "
                                  "model.head=own --set train.virtual_workers=4";
    train_alone("chunked", chunked);
    kill_in_group("chunked", chunked, 4, "--set parallel.mesh.context=2 --set parallel.zero=2");
    kill_in_group("chunked", chunked, 2,
                  "--set parallel.mesh.context=2 --set parallel.transport=tcp");
}

static void test_killed_in_an_expert_group(void **arg) {
    (void)arg;
    static const char joint[] =
        "--set parallel.expert_virtual=2 --set train.micro_batch=2 --set model.kind=llama --set "
        "model.experts=5 --set model.ffn=16 --set train.virtual_workers=4";
    train_alone("joint", joint);
    kill_in_group("joint", joint, 4, "--set parallel.mesh.expert=2 --set parallel.zero=2");
    kill_in_group("joint", joint, 2, "--set parallel.mesh.expert=2 --set parallel.transport=tcp");
}

static void test_stopped(void **arg) {
    (void)arg;
    program p = start_until(STEPS / 2, 4, "stopped", "--set survival.heartbeat_s=0.3");
    check(&p, "stopped", signal_children(&p, SIGSTOP, 3, 300), "were stopped");
}

/* Kills all workers at once. */
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
    char *output = NULL;
    program p = start_until(40, 3, "stop", "");
    wait_for_file("stop/checkpoints/step-30");
    signal_children(&p, SIGKILL, 1, 10);
    assert_int_equal(stop_paced(&p, "stop", &output), 75);
    assert_non_null(strstr(output, "continue with: "));
    free(output);
    p = startf(START, 2, "stop", STEPS, "--resume");
    check(&p, "stop", 1, "was killed before SIGTERM");
}

static bool is_among(pid_t pid, const pid_t *pids, int n) {
    for (int i = 0; i < n; i++)
        if (pids[i] == pid) return true;
    return false;
}

/* pids [16]: the previous workers; waits until there are `n` others. If their
 * number changes, all are new processes. */
static void await_others(const program *p, pid_t *pids, int n) {
    pid_t is[16];
    int count = 0, old = 1;
    for (int i = 0; i < PATIENCE_S * 100 && (count != n || old); i++) {
        sleep_ms(10);
        count = children_of(p->pid, is, 16);
        old = 0;
        for (int k = 0; k < count; k++) old += is_among(is[k], pids, 16);
    }
    assert_int_equal(old, 0);
    assert_int_equal(count, n);
    memcpy(pids, is, (size_t)n * sizeof *pids);
}

/* Waits until no process repairs the state and `lost` is gone; fills in the workers. */
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

/* Waits for the line of a step that this view, or a later one, has made. */
static bool has_step_of(const char *run, int view) {
    char path[256], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "\"view\":");
        found = at && atoi(at + 7) >= view;
    }
    if (f) fclose(f);
    return found;
}

static void await_view(const program *p, const char *run, int view) {
    while (!has_step_of(run, view)) {
        if (is_over(p)) fail_msg("%s: no step of view %d", run, view);
        sleep_ms(20);
    }
}

/* Workers are killed one after another: the others remain the same processes. None of them is taken
 * for hung, however busy the machine is. A worker that is killed before the one before it was
 * replaced is another matter: then all may end. */
static void test_stay(void **arg) {
    (void)arg;
    enum { N = 4 };
    pid_t was[16] = {0}, is[16] = {0};
    int times = 0;
    program p =
        start_until(20, N, "stay", "--set checkpoint.every=0 --set survival.heartbeat_s=60");
    wait_for_file("stay/control/socket");
    await_view(&p, "stay", 1);
    settled_children_of(&p, 0, was, N);
    while (times < N && !is_over(&p)) {
        kill(was[0], SIGKILL); /* the one that has lived longest */
        settled_children_of(&p, was[0], is, N);
        if (is_over(&p)) break;
        await_view(&p, "stay", times + 2);
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
    wait_for_file("scaled/control/socket");
    settled_children_of(&p, 0, pids, 2);
    expect("scale @/scaled 5", 0, "from 2 to 5 workers");
    await_others(&p, pids, 5);
    signal_children(&p, SIGKILL, 1, 10);
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

/* A ledger with a missing step, a repeated step, wrong samples, or from a version without
 * ledgers. */
static void test_bad_ledger(void **arg) {
    (void)arg;
    static const char *const bad[][2] = {
        {"1d", "has step 2 after step 0"},
        {"3p", "has step 3 after step 3"},
        {"5s/\"first\": [0-9]*/\"first\": 1/", "metrics.jsonl:5: step 5 has "},
        {"4s/\"view\"/\"vew\"/", "metrics.jsonl:4: step 4 does not name its view"},
    };
    char *output = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        shellf("rm -rf %s/bad && cp -r %s/undisturbed %s/bad && cd %s/bad && "
               "sed -i '/started/d' metrics.jsonl && sed -i '%s' metrics.jsonl",
               folder, folder, folder, folder, bad[i][0]);
        expect("ckpt ledger @/bad", 1, bad[i][1]);
    }
    assert_int_equal(run_program("ckpt ledger @/nothing", &output), 1);
    free(output);
}

/* SIGTERM to one worker: it leaves after the step, and is not replaced. */
static void test_leave(void **arg) {
    (void)arg;
    program p =
        start_until(5, 3, "left", "--min-workers 2 --max-workers 3 --set checkpoint.every=0");
    wait_for_file("left/control/socket");
    await_view(&p, "left", 1); /* the workers heed signals */
    pid_t pids[16] = {0};
    settled_children_of(&p, 0, pids, 3);
    kill(pids[2], SIGTERM);
    await_others(&p, pids, 2);
    expect(
        "scale @/left 4", 1,
        "4 workers: this run can have 2 to 3: survival.max_workers is 3; --resume can begin with "
        "another, up to train.virtual_workers 8");
    expect("scale @/left 1", 1, "survival.min_workers is 2; --resume can begin with another");
    await_view(&p, "left", 2);
    settled_children_of(&p, 0, pids, 2);
    kill(pids[0], SIGTERM);
    check(&p, "left", 2, "were asked to leave");
}

/* One of n workers leaves. Settings that are not possible with the remaining workers are replaced
 * by possible ones, and `left` workers continue. */
static void leaves(const char *like, const char *run, const char *settings, int n, int left,
                   const char *says) {
    char want[256], got[256], *output = NULL;
    program p = start_until(5, n, run, settings);
    pid_t pids[16] = {0};
    await_view(&p, run, 1); /* the workers heed signals */
    settled_children_of(&p, 0, pids, n);
    kill(pids[n - 1], SIGTERM);
    await_others(&p, pids, left);
    let_go(run);
    assert_int_equal(program_end(&p, &output), 0);
    if (!strstr(output, says)) fail_msg("expected: %s\n%s", says, output);
    free(output);
    hash_of(like, want);
    hash_of(run, got);
    assert_string_equal(got, want);
}

static void test_any_number(void **arg) {
    (void)arg;
    leaves("undisturbed", "groups",
           "--set parallel.zero=2 --set parallel.shard_group=2 --set checkpoint.every=0", 4, 3,
           ": parallel.shard_group 2 is not possible with 3 workers; using 3");
    leaves("undisturbed", "early",
           "--set parallel.zero=2 --set parallel.accumulate=early --set checkpoint.every=0", 4, 3,
           ": parallel.accumulate early is not possible with 3 workers; using late");
}

/* Two virtual workers, and a model that can be cut into three stages: no mesh has five workers. */
#define FEW                                                                                        \
    "--set model.kind=llama --set model.layers=1 --set train.virtual_workers=2 "                   \
    "--set parallel.context_virtual=2 --set checkpoint.every=0"

static void test_mesh_number(void **arg) {
    (void)arg;
    program p = start(1, "alone", STEPS, FEW);
    program_expect(&p, 0, NULL);
    leaves("alone", "fewer", FEW " --set parallel.mesh.context=2 --set parallel.mesh.pipe=3", 6, 4,
           "4 workers instead of 5, among whom the model can't be divided");
}

/* ---- slow workers ---- */

/* A rate that does not depend on train.steps, so that a run that was stopped has the bits of one
 * with so few steps. */
#define STEADY                                                                                     \
    "--set train.batch=160 --set checkpoint.every=0 --set train.eval_every=0 "                     \
    "--set optim.min_lr=3e-3 --set optim.warmup=0 "

/* Worker 1 of this test's runs takes `factor` times as long; 1: no longer. */
static void slow_down(int factor) {
    char path[256], hidden[256], text[32];
    int n = snprintf(text, sizeof text, "1 %d\n", factor);
    snprintf(path, sizeof path, "%s/slow-worker", folder);
    snprintf(hidden, sizeof hidden, "%s/.slow-worker", folder);
    write_file(".slow-worker", text, (size_t)n);
    assert_int_equal(rename(hidden, path), 0);
    assert_int_equal(setenv("LOCKSTEP_SLOW", path, 1), 0);
}

static int at_full_speed(void **arg) {
    (void)arg;
    return unsetenv("LOCKSTEP_SLOW");
}

/* Two workers, of which worker 1 is slow. */
static program start_slow(const char *run, int steps, int factor, const char *how) {
    char sets[256];
    snprintf(sets, sizeof sets, STEADY "%s", how);
    slow_down(factor);
    return start(2, run, steps, sets);
}

/* What a run has printed so far. */
typedef struct heard {
    char text[1 << 16];
    size_t n;
} heard;

/* Waits until the run has printed `what` after place `from`; returns the place behind it. */
static size_t await_line(const program *p, heard *h, size_t from, const char *what) {
    const char *at = NULL;
    while (!(at = strstr(h->text + from, what)) || !strchr(at, '\n')) {
        ssize_t got = read(p->out, h->text + h->n, sizeof h->text - 1 - h->n);
        if (got <= 0) fail_msg("the run has ended without: %s\n%s", what, h->text);
        h->n += (size_t)got;
    }
    return (size_t)(at - h->text) + strlen(what);
}

/* Stops the run after a step, ends it a few steps later, and compares its bits with those of one
 * that had no slow worker. */
static void check_slow(program *p, const char *run) {
    char alone[64], *output = NULL;
    int steps = 0;
    await_view(p, run, 2);
    slow_down(1);
    kill(p->pid, SIGTERM);
    assert_int_equal(program_end(p, &output), 75);
    const char *stopped = strstr(output, "stopped after step ");
    if (!stopped || sscanf(stopped, "stopped after step %d", &steps) != 1) fail_msg("%s", output);
    free(output);
    output = output_of("ckpt ledger @/%s", run);
    if (!strstr(output, ": clean: ") || strstr(output, " 0 changes of view"))
        fail_msg("%s", output);
    free(output);
    program on = start(2, run, steps + 2, STEADY "--resume");
    program_expect(&on, 0, NULL);
    snprintf(alone, sizeof alone, "%s-alone", run);
    on = start(2, alone, steps + 2, STEADY);
    program_expect(&on, 0, NULL);
    same_hash(alone, run);
}

/* The slow worker is named, and virtual workers move from it to the other. */
static void test_slow(void **arg) {
    (void)arg;
    static const char moved[] = "virtual workers are divided anew among workers 0 to 1: ";
    static heard h;
    int counts[2] = {0};
    program p = start_slow("slow", MANY, 4, "--set survival.balance=auto");
    size_t at = 0;
    await_line(&p, &h, 0, "worker 1 is slow: ");
    while (counts[0] <= counts[1]) {
        at = await_line(&p, &h, at, moved);
        assert_int_equal(sscanf(h.text + at, "%d %d", &counts[0], &counts[1]), 2);
        assert_int_equal(counts[0] + counts[1], 8);
    }
    await_line(&p, &h, at, ": continuing after step ");
    check_slow(&p, "slow");
    print_message("slow: %d virtual workers, and %d for the slow one\n", counts[0], counts[1]);
}

/* The waiting worker computes some of the slow worker's virtual workers first. */
static void test_backup(void **arg) {
    (void)arg;
    char *output = NULL;
    program p = start_slow("backup", SLOW_STEPS, 20,
                           "--set survival.balance=off --set survival.backup_workers=4");
    assert_int_equal(program_end(&p, &output), 0);
    assert_non_null(strstr(output, " a backup worker had a virtual worker's gradient first"));
    free(output);
    slow_down(1);
    p = start(2, "backup-alone", SLOW_STEPS, STEADY);
    program_expect(&p, 0, NULL);
    same_hash("backup-alone", "backup");
}

/* A worker that is much slower than the others is replaced by a new process. */
static void test_slow_limit(void **arg) {
    (void)arg;
    static heard h;
    pid_t pids[16] = {0};
    program p =
        start_slow("limit", MANY, 4, "--set survival.balance=auto --set survival.slow_limit=1.6");
    await_view(&p, "limit", 1);
    settled_children_of(&p, 0, pids, 2);
    size_t at = await_line(&p, &h, 0, "worker 1 is slow: ");
    const char *end = strchr(h.text + at, '\n'),
               *replaced = strstr(h.text + at, "; it is replaced");
    if (!replaced || replaced > end) fail_msg("the slow worker stays:\n%s", h.text);
    await_line(&p, &h, at, ": continuing after step ");
    await_others(&p, pids, 2);
    check_slow(&p, "limit");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undisturbed),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_all_killed),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_bad_ledger),
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_any_number),
        cmocka_unit_test(test_mesh_number),
        cmocka_unit_test_teardown(test_slow, at_full_speed),
        cmocka_unit_test_teardown(test_backup, at_full_speed),
        cmocka_unit_test_teardown(test_slow_limit, at_full_speed),
        cmocka_unit_test(test_stay),
        cmocka_unit_test(test_killed_apart),
        slow_unit_test(test_killed_in_gossip),
        cmocka_unit_test(test_killed_in_a_pipeline),
        slow_unit_test(test_killed_in_a_tensor_group),
        slow_unit_test(test_killed_in_an_expert_group),
        slow_unit_test(test_killed_in_a_context_group),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
