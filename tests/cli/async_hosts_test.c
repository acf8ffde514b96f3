/* async_hosts_test.c - asynchronous runs whose workers are on several hosts: replays, workers and
 * hosts that are lost, and what is refused. */
/* ctest: busy seconds=60 timeout=600 */
/* ctest: long-asan: async/shard and net/tcp run the same code */
#include "cli/crew.h"
#include "cli/hosts.h"

static const char SETTINGS[] = "--set sync.mode=async --set train.steps=160 " SMALLER
                               "--set train.eval_every=80 --set checkpoint.every=50 "
                               "--set log.every=1000";

static host start(int workers, const char *run, const char *how, const char *more) {
    return host_start("train configs/tiny.yaml -n %d -o @/%s %s %s %s", workers, run, how, SETTINGS,
                      more);
}

/* From step 60 on the run is slow until let_go(). */
static pair two(const char *run, const char *more) {
    pair p = pair_of(start, run, "");
    pace_long(run, 60);
    p.a = pair_listen(&p, 1, more);
    p.b = pair_join(&p, 2, "");
    host_await(&p.a, "worker 2 has come from 127.0.0.1");
    await_step(run, 60, &p.a);
    return p;
}

static void check(const char *run) {
    expectf(0, ": clean: 160 steps", "ckpt ledger @/%s", run);
    expectf(0, ": the same bits after 160 steps by one worker", "replay @/%s", run);
}

/* Has a worker of this number made a step? */
static bool has_worked(const char *run, int worker) {
    char line[256];
    snprintf(line, sizeof line, "grep -q '\"worker\": %d' %s/%s/applications.jsonl", worker, folder,
             run);
    return system(line) == 0;
}

static void await_work(const char *run, int worker) {
    for (int i = 0; i < PATIENCE_S * 20 && !has_worked(run, worker); i++) sleep_ms(50);
    if (!has_worked(run, worker)) fail_msg("%s: worker %d makes no step", run, worker);
}

static void test_two(void **state) {
    (void)state;
    pair p = two("two", "--set sync.servers=2");
    for (int i = 0; i < 3; i++) await_work("two", i);
    let_go("two");
    host_expect(&p.a, 0, "staleness of gradients");
    host_expect(&p.b, 0, "2 workers for the parameter servers");
    check("two");
}

/* A host is lost, another one comes, and a worker of it is killed. */
static void test_lost(void **state) {
    (void)state;
    pair p = two("lost", "");
    host_kill(&p.b);
    host_await(&p.a, "is lost");
    p.b = pair_join(&p, 2, "");
    host_await(&p.b, "2 workers");
    host_await_times(&p.a, "has come from", 4);
    assert_true(host_signal_child(&p.b, SIGKILL));
    host_await(&p.b, "was killed by signal 9; another takes its place");
    let_go("lost");
    host_expect(&p.a, 0, NULL);
    host_expect(&p.b, 0, NULL);
    check("lost");
}

/* The gate is killed: another takes its place, and the workers come again. */
static void test_gate(void **state) {
    (void)state;
    pair p = two("gate", "");
    pid_t nursery = 0, pids[8];
    int n = crew_of(p.a.pid, &nursery, pids, 8);
    assert_int_equal(n, 2); /* a worker, and the gate */
    check_gate_listens(pids, 2);
    kill(pids[1], SIGKILL);
    host_await(&p.a, "gate 0 was killed by signal 9");
    host_await_times(&p.a, "has come from", 4);
    let_go("gate");
    host_expect(&p.a, 0, NULL);
    host_expect(&p.b, 0, NULL);
    check("gate");
}

/* The host of the servers is lost: workers wait for it to continue from its checkpoint. */
static void test_servers(void **state) {
    (void)state;
    pair p = two("servers", "");
    host_kill(&p.a);
    p.a = pair_listen(&p, 1, "--resume");
    host_await_times(&p.a, "has come from", 2);
    let_go("servers");
    host_expect(&p.a, 0, NULL);
    host_expect(&p.b, 0, NULL);
    check("servers");
}

/* The run ends while a host is stopped, whose connections are gone then: it ends well, too. */
static void test_missed_end(void **state) {
    (void)state;
    pair p = two("missed", "");
    pid_t pids[8];
    int n = children_of(p.b.pid, pids, 8);
    kill(p.b.pid, SIGSTOP); /* first: it would take the others for hung */
    for (int i = 0; i < n; i++) kill(pids[i], SIGSTOP);
    let_go("missed");
    host_expect(&p.a, 0, NULL);
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL); /* others take their place: they find nobody */
    kill(p.b.pid, SIGCONT);
    host_expect(&p.b, 0, "the run has ended, after step 160");
    check("missed");
}

/* A host with servers, one that can take over, and one more; from step 60 on the run is slow. */
static void three(pair *p, host *c, const char *more) {
    int port = free_port();
    char both[512];
    pace_long(p->run, 60);
    p->a = pair_listen(p, 1, more);
    snprintf(both, sizeof both, "--listen 127.0.0.1:%d %s", port, more);
    p->b = pair_join(p, 1, both);
    host_await(&p->a, "a host that can take over has come from");
    *c = host_start("train configs/tiny.yaml -n 2 -o @/%s --join 127.0.0.1:%d,127.0.0.1:%d %s %s",
                    p->run, p->port, port, SETTINGS, more);
    host_await(&p->a, "worker 3 has come from");
    await_step(p->run, 60, &p->a);
}

static int run_in_folder(const char *shell, const char *run) {
    char line[512];
    snprintf(line, sizeof line, "cd %s && r=%s && %s", folder, run, shell);
    return system(line);
}

/* The host of the servers is lost: a host that listens takes its place, and others find it. */
static void take_over(pair *p, host *c) {
    host_kill(&p->a);
    assert_int_equal(run_in_folder("grep step $r/applications.jsonl >$r.log", p->run), 0);
    host_await(&p->b, "the first host is lost: this one takes its place");
    host_await_times(&p->b, "has come from", 2);
    let_go(p->run);
    host_expect(&p->b, 0, NULL);
    host_expect(c, 0, NULL);
    check(p->run);
}

static void test_taken_over(void **state) {
    (void)state;
    pair p = pair_of(start, "taken", "");
    host c;
    three(&p, &c, "");
    take_over(&p, &c);
}

static const char COPY[] = "another host has a copy of the state";

/* A host that is stopped is found; one that a busy machine keeps waiting is not. */
#define HEARTBEAT "--set survival.heartbeat_s=3"

/* The copy is lost, and its host comes again, is stopped, and continues: the run goes on
 * meanwhile. */
static void test_copy_lost(void **state) {
    (void)state;
    pair p = pair_of(start, "copy-lost", "");
    char more[512];
    host c;
    three(&p, &c, "--set sync.copies=2 " HEARTBEAT);
    host_await(&p.a, COPY);
    host_kill(&p.b);
    host_await(&p.a, "the run has one copy of its state");
    snprintf(more, sizeof more, "--listen 127.0.0.1:%d --set sync.copies=2 " HEARTBEAT,
             free_port());
    p.b = pair_join(&p, 1, more);
    host_await_times(&p.a, COPY, 2);
    pid_t pids[8];
    int n = wait_for_children(p.b.pid, 2, pids, 8); /* a worker, and the standby */
    kill(p.b.pid, SIGSTOP);
    for (int i = 0; i < n; i++) kill(pids[i], SIGSTOP);
    host_await_times(&p.a, "one copy of its state", 2);
    for (int i = 0; i < n; i++) kill(pids[i], SIGCONT);
    kill(p.b.pid, SIGCONT);
    host_await_times(&p.a, COPY, 3);
    let_go("copy-lost");
    host_expect(&p.a, 0, NULL);
    host_expect(&p.b, 0, NULL);
    host_expect(&c, 0, NULL);
    assert_false(host_says(&p.b, "this one takes its place"));
    check("copy-lost");
}

/* With a copy of the shards, what the lost host has logged is in the run. A process that a busy
 * machine keeps waiting must not be replaced meanwhile, and its copy with it. */
static void test_copied(void **state) {
    (void)state;
    static const char ALL[] = "test -s $r.log && ! grep -vFxf $r/applications.jsonl $r.log";
    static const char *const runs[] = {"copied", "copied-more"};
    static const char *const more[] = {HEARTBEAT " --set sync.copies=2 --set checkpoint.every=0",
                                       HEARTBEAT " --set sync.copies=2 --set checkpoint.every=0 "
                                                 "--set sync.servers=3 --set train.compute=bf16 "
                                                 "--set optim.optimizer=muon --set optim.ema=0.9"};
    for (int i = 0; i < 2; i++) {
        pair p = pair_of(start, runs[i], "");
        host c;
        three(&p, &c, more[i]);
        host_await(&p.a, COPY);
        if (i == 1) {
            pid_t nursery = 0, pids[8];
            int n = crew_of(p.a.pid, &nursery, pids, 8);
            kill(pids[n - 1], SIGKILL); /* the gate: the copy begins again */
            host_await_times(&p.a, COPY, 2);
        }
        take_over(&p, &c);
        if (!host_says(&p.b, "and no step is lost that was logged"))
            host_fail(&p.b, "its copy was not whole");
        assert_int_equal(run_in_folder(ALL, p.run), 0);
    }
}

static void test_refused(void **state) {
    (void)state;
    expect_line("train configs/tiny.yaml -o @/none --set sync.mode=async --set sync.copies=2", 1,
                "the copy is on another host (--listen, --join)");
    expect_line("train configs/tiny.yaml -o @/none --set sync.mode=ssp --set sync.copies=2", 1,
                "sync.copies acts only with sync.mode: async");
    expect_line("train configs/tiny.yaml -o @/none --join a:1,b:2", 1,
                "a list of hosts is for sync.mode async and ssp");
    expect("plan configs/tiny.yaml -n 2 --set sync.mode=async --set sync.copies=2", 0,
           "another host has the parameters");
    pair p = pair_of(start, "refused", "");
    pace_long("refused", 20);
    p.a = pair_listen(&p, 1, "");
    await_step("refused", 20, &p.a);
    p.b = pair_join(&p, 1, "--set optim.lr=0.5");
    host_expect(&p.b, 1, "this host has optim.lr 0.5, the leading host has 0.003");
    setenv("LOCKSTEP_KEY", "another-secret-of-some-length", 1);
    p.b = pair_join(&p, 1, "--set survival.rejoin_s=1");
    host_expect(&p.b, 1, "no host of parameter servers for 1 s");
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    let_go("refused");
    host_expect(&p.a, 0, NULL);
    check("refused");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two),        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_gate),       cmocka_unit_test(test_servers),
        cmocka_unit_test(test_missed_end), cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_copied),     cmocka_unit_test(test_copy_lost),
        cmocka_unit_test(test_refused)};
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
