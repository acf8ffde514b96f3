/* async_hosts_test.c - asynchronous runs whose workers are on several hosts: replays, workers and
 * hosts that are lost, and what is refused. */
/* ctest: busy seconds=30 */
#include "cli/crew.h"
#include "cli/hosts.h"

static const char SETTINGS[] = "--set sync.mode=async --set train.steps=300 " SMALLER
                               "--set train.eval_every=100 --set checkpoint.every=50 "
                               "--set log.every=1000";

typedef struct pair {
    const char *run;
    int port;
    host a, b;
} pair;

static host start(const pair *p, const char *how, int workers, const char *more) {
    char line[1024];
    snprintf(line, sizeof line, "train configs/tiny.yaml -n %d -o @/%s --%s 127.0.0.1:%d %s %s",
             workers, p->run, how, p->port, SETTINGS, more);
    return host_start(line);
}

/* From step 60 on the run is slow until let_go(). */
static pair two(const char *run, const char *more) {
    pair p = {.run = run, .port = free_port()};
    pace(run, 60);
    p.a = start(&p, "listen", 1, more);
    p.b = start(&p, "join", 2, "");
    host_await(&p.a, "worker 2 has come from 127.0.0.1");
    await_step(run, 60, &p.a);
    return p;
}

static void check(const char *run) {
    char line[128];
    snprintf(line, sizeof line, "ckpt ledger @/%s", run);
    expect(line, 0, ": clean: 300 steps");
    snprintf(line, sizeof line, "replay @/%s", run);
    expect(line, 0, ": the same bits after 300 steps by one worker");
}

/* Has a worker of this number made a step? */
static bool has_worked(const char *run, int worker) {
    char line[256];
    snprintf(line, sizeof line, "grep -q '\"worker\": %d' %s/%s/applications.jsonl", worker, folder,
             run);
    return system(line) == 0;
}

static void test_two(void **state) {
    (void)state;
    pair p = two("two", "--set sync.servers=2");
    let_go("two");
    host_expect(&p.a, 0, "staleness of gradients");
    host_expect(&p.b, 0, "2 workers for the parameter servers");
    for (int i = 0; i < 3; i++) assert_true(has_worked("two", i));
    check("two");
}

/* A host is lost, another one comes, and a worker of it is killed. */
static void test_lost(void **state) {
    (void)state;
    pair p = two("lost", "");
    host_kill(&p.b);
    host_await(&p.a, "is lost");
    p.b = start(&p, "join", 2, "");
    host_await(&p.b, "2 workers");
    for (int i = 0; i < 6000 && host_count(&p.a, "has come from") < 4; i++) sleep_ms(10);
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
    kill(pids[1], SIGKILL);
    host_await(&p.a, "gate 0 was killed by signal 9");
    for (int i = 0; i < 6000 && host_count(&p.a, "has come from") < 4; i++) sleep_ms(10);
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
    let_go("servers");
    p.a = start(&p, "listen", 1, "--resume");
    host_await(&p.a, "worker 1 has come from");
    host_expect(&p.a, 0, NULL);
    host_expect(&p.b, 0, NULL);
    check("servers");
}

/* The host of the servers is lost: a host that listens takes its place, and others find it. */
static void test_taken_over(void **state) {
    (void)state;
    pair p = {.run = "taken", .port = free_port()};
    int port = free_port();
    char line[1024];
    pace("taken", 60);
    p.a = start(&p, "listen", 1, "");
    snprintf(line, sizeof line, "--listen 127.0.0.1:%d", port);
    p.b = start(&p, "join", 1, line);
    host_await(&p.a, "a host that can take over has come from");
    snprintf(line, sizeof line,
             "train configs/tiny.yaml -n 2 -o @/taken --join 127.0.0.1:%d,127.0.0.1:%d %s", p.port,
             port, SETTINGS);
    host c = host_start(line);
    host_await(&p.a, "worker 3 has come from");
    await_step("taken", 60, &p.a);
    host_kill(&p.a);
    host_await(&p.b, "the first host is lost: this one takes its place");
    host_await(&p.b, "worker 2 has come from");
    let_go("taken");
    host_expect(&p.b, 0, NULL);
    host_expect(&c, 0, NULL);
    check("taken");
}

static void test_refused(void **state) {
    (void)state;
    pair p = {.run = "refused", .port = free_port()};
    pace("refused", 20);
    p.a = start(&p, "listen", 1, "");
    await_step("refused", 20, &p.a);
    p.b = start(&p, "join", 1, "--set optim.lr=0.5");
    host_expect(&p.b, 1, "this host has optim.lr 0.5, the host of the servers has optim.lr");
    setenv("LOCKSTEP_KEY", "another-secret-of-some-length", 1);
    p.b = start(&p, "join", 1, "--set survival.rejoin_s=1");
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
        cmocka_unit_test(test_taken_over), cmocka_unit_test(test_refused)};
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
