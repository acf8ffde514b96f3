/* async_test.c - asynchronous runs: the bits of one worker, replays, workers and servers that are
 * killed, runs that are stopped, and what is refused. */
/* ctest: busy seconds=40 */
/* ctest: long-asan: async/shard runs the same code */
#include "cli/crew.h"

enum { STEPS = 120 };

static const char START[] = "train configs/tiny.yaml -n %d -o @/%s --set train.steps=%d " SMALLER
                            "--set sync.mode=async --set train.eval_every=50 "
                            "--set checkpoint.every=40 --set log.every=1000 %s";

static program start(int workers, const char *run, const char *more) {
    return startf(START, workers, run, STEPS, more);
}

static void train(int workers, const char *run, const char *more) {
    program p = start(workers, run, more);
    program_expect(&p, 0, "staleness of gradients: mean ");
}

/* Each batch is used once, and one worker makes the same bits again. */
static void check(const char *run) {
    expectf(0, ": clean: 120 steps", "ckpt ledger @/%s", run);
    expectf(0, ": the same bits after 120 steps by one worker", "replay @/%s", run);
}

/* One worker's gradients are never stale: the bits are those of a synchronous run. */
static void test_one(void **arg) {
    (void)arg;
    expect("train configs/tiny.yaml -n 2 -o @/sync --set train.steps=120 " SMALLER
           "--set train.eval_every=0",
           0, NULL);
    train(1, "one", "");
    same_hash("sync", "one");
    check("one");
}

static void test_replay(void **arg) {
    (void)arg;
    train(3, "three", "");
    check("three");
    expect("replay @/three --step 80", 0, "after 80 steps");
    expect("replay @/three --json", 0, "\"same\": true");
    train(2, "servers", "--set sync.servers=3");
    check("servers");
    train(5, "aware", "--set sync.delay_aware=on --set optim.ema=0.9");
    check("aware");
    train(3, "bf16", "--set train.compute=bf16");
    check("bf16");
    train(3, "muon", "--set optim.optimizer=muon");
    check("muon");
    train(2, "frozen", "--set train.freeze=wte.* --set train.compute=bf16");
    check("frozen");
    train(2, "clip", "--set optim.clip=0.5");
    check("clip");
    train(2, "threads", "--set parallel.threads=2 --set train.steps=20 --set optim.warmup=5");
    expect("replay @/threads", 0, ": the same bits after 20 steps by one worker");
}

/* ---- processes that are killed ---- */

static int kill_some(const program *p, int most) {
    static uint64_t state = 1;
    int times = 0;
    for (int i = 0; i < most; i++) {
        pid_t nursery = 0, pids[16];
        sleep_ms(40);
        int n = crew_of(p->pid, &nursery, pids, 16);
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (n && kill(pids[(state >> 33) % (unsigned)n], SIGKILL) == 0) times++;
    }
    return times;
}

/* The run is slow from step 50 on, until enough were killed. */
static void killed(int workers, const char *run, const char *more) {
    pace_long(run, 50);
    program p = start(workers, run, more);
    char name[128];
    snprintf(name, sizeof name, "%s/checkpoints/step-40", run);
    wait_for_file(name);
    int times = kill_some(&p, 12);
    let_go(run);
    program_expect(&p, 0, "another takes its place, and the others continue");
    print_message("%s: %d processes were killed\n", run, times);
    assert_true(times > 6);
    check(run);
}

static void test_killed(void **arg) {
    (void)arg;
    killed(3, "killed", "");
    killed(3, "killed-servers", "--set sync.servers=2");
}

/* A worker that is stopped, as by a debugger, holds the run up only for a heartbeat. */
static void test_paused(void **arg) {
    (void)arg;
    pid_t nursery = 0, pids[16];
    pace_long("paused", 90);
    program p = start(3, "paused", "--set survival.heartbeat_s=0.5");
    wait_for_file("paused/checkpoints/step-80");
    assert_int_equal(crew_of(p.pid, &nursery, pids, 16), 3);
    kill(pids[1], SIGSTOP);
    while (kill(pids[1], 0) == 0) sleep_ms(10); /* until it is replaced */
    let_go("paused");
    program_expect(&p, 0, "was killed by signal 9; another takes its place");
    check("paused");
}

/* The disk is full: the run ends with one line, and continues when there is room. */
static void test_full(void **arg) {
    (void)arg;
    setenv("LOCKSTEP_FAULTS", "write applications.jsonl$ ENOSPC 90", 1);
    program p = start(2, "full", "");
    program_expect(&p, 1, "applications.jsonl: can't be written: No space left on device");
    unsetenv("LOCKSTEP_FAULTS");
    p = start(2, "full", "--resume");
    program_expect(&p, 0, NULL);
    check("full");
}

/* All is lost: the run continues from its checkpoint, and the log with it. */
static void test_lost(void **arg) {
    (void)arg;
    pid_t nursery = 0, pids[16];
    pace_long("lost", 90);
    program p = start(3, "lost", "");
    wait_for_file("lost/checkpoints/step-80");
    assert_true(crew_of(p.pid, &nursery, pids, 16) > 0);
    kill(nursery, SIGKILL);
    let_go("lost");
    program_expect(
        &p, 1,
        "continue from the last checkpoint with --resume, which begins again where there "
        "is none");
    p = start(2, "lost", "--set sync.servers=1 --resume");
    program_expect(&p, 0, NULL);
    check("lost");
}

/* SIGTERM: the gradients on their way are applied, and the run is saved. */
static void test_stopped(void **arg) {
    (void)arg;
    pace("stopped", 90);
    program p = start(3, "stopped", "");
    wait_for_file("stopped/checkpoints/step-80");
    char *output = NULL;
    assert_int_equal(stop_paced(&p, "stopped", &output), 75);
    assert_output_has(output, "with a checkpoint");
    free(output);
    expect("replay @/stopped", 0, ": the same bits after ");
    p = start(4, "stopped", "--resume");
    program_expect(&p, 0, NULL);
    check("stopped");
}

/* ---- what is refused ---- */

static void refuse(const char *set, const char *says) {
    char line[512];
    snprintf(line, sizeof line,
             "train configs/tiny.yaml -n 2 -o @/refused --set sync.mode=async %s", set);
    expect_line(line, 1, says);
    assert_false(file_exists("refused"));
}

static void test_refused(void **arg) {
    (void)arg;
    refuse("--set parallel.zero=3",
           "parallel.zero: 3: the latter is for workers that sum their gradients");
    refuse("--set survival.audit=5", "survival.audit acts only with sync.mode: all_reduce");
    refuse("--set train.compute=f16", "use train.compute: bf16 or f32");
    refuse("--set parallel.transport=tcp",
           "parallel.transport acts only with sync.mode: all_reduce");
    refuse("--trace @/t.json", "--trace: sync.mode async has no common steps");
    refuse("--listen localhost:0 --hosts 2", "start it without --hosts");
    refuse("--listen localhost:0 --set survival.membership=etcd://localhost:1",
           "start it without survival.membership");
    expect_line("train configs/tiny.yaml -o @/refused --set sync.servers=2", 1,
                "sync.servers acts only with sync.mode: async");
    expect_line("plan configs/tiny.yaml --set sync.mode=async -n 2,4 --link 1Gb/s,10us", 1,
                "sync.mode async is predicted for one number of workers");
    expect_line("bench train configs/tiny.yaml --set sync.mode=async", 1,
                "`bench train` times common steps");
    expect("plan configs/tiny.yaml --set sync.mode=async -n 3", 0, "it pulls 0.094 MB of");
    expect_line("replay @/sync", 1, "sync.mode is not async");
    expect_line("replay @/nothing", 1, "nothing/config.yaml: can't be opened");
}

/* ---- a log that is damaged ---- */

static void edit(const char *command) { shellf("cd %s/three && %s", folder, command); }

static void test_log(void **arg) {
    (void)arg;
    edit("cp applications.jsonl good && sed -i '7d' applications.jsonl");
    expect_line("replay @/three", 1, "lacks lines of some steps from 1 to 120");
    edit("cp good applications.jsonl && sed -i '7{p}' applications.jsonl");
    expect_line("replay @/three", 1, "lacks lines of some steps from 1 to 120");
    edit("cp good applications.jsonl && sed -i '9s/base/based/' applications.jsonl");
    expect_line("replay @/three", 1, "applications.jsonl:9: does not name the versions");
    edit("cp good applications.jsonl && sed -i '9s/\"base\": \\[[0-9]*/\"base\": [999/' "
         "applications.jsonl");
    expect_line("replay @/three", 1, "applications.jsonl:9: names a version that is not possible");
    edit("cp good applications.jsonl && sed -i '1d' applications.jsonl");
    expect_line("replay @/three", 1, "applications.jsonl:1: comes before the line about shards");
    edit("cp good applications.jsonl && sed -i '4s/.*/{/' applications.jsonl");
    expect_line("replay @/three", 1, "applications.jsonl:4: is damaged");
    edit("rm applications.jsonl");
    expect_line("replay @/three", 1, "applications.jsonl");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),     cmocka_unit_test(test_replay),
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_paused),
        cmocka_unit_test(test_full),    cmocka_unit_test(test_lost),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_log)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
