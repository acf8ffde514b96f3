/* ssp_hosts_test.c - runs with bounded staleness whose workers are on several hosts: their bits,
 * workers and hosts that are lost or stopped, and what is refused. */
/* ctest: busy seconds=30 */
/* ctest: long-asan: async/clocks and net/tcp run the same code */
#include "cli/crew.h"
#include "cli/hosts.h"

static const char SETTINGS[] = "--set sync.mode=ssp --set train.steps=150 " SMALLER
                               "--set train.eval_every=50 --set checkpoint.every=25 "
                               "--set log.every=1000 --set survival.heartbeat_s=0.5";

static host start(int workers, const char *run, const char *how, const char *more) {
    return host_start("train configs/tiny.yaml -n %d -o @/%s %s %s %s", workers, run, how, SETTINGS,
                      more);
}

/* From step 30 on the run is slow until let_go(). */
static pair two(const char *run, const char *bits, int here, int there) {
    pair p = pair_of(start, run, bits);
    pace_long(run, 30);
    p.a = pair_listen(&p, here, "");
    p.b = pair_join(&p, there, "");
    host_await_times(&p.a, "has come from", there);
    await_step(run, 30, &p.a);
    await_step(run, steps_of(run) + 3, &p.a); /* in which other workers have taken part */
    return p;
}

/* By one worker of one host. */
static void undisturbed(const char *run, const char *bits) {
    expectf(0, "gradients that each worker has computed: ",
            "train configs/tiny.yaml -n 1 -o @/%s %s %s", run, SETTINGS, bits);
}

static long of_other_hosts(const host *h) {
    static const char SAYS[] = "workers of other hosts: ";
    char *text = host_output(h), *at = strstr(text, SAYS);
    long n = at ? strtol(at + sizeof SAYS - 1, NULL, 10) : -1;
    free(text);
    return n;
}

static void end(pair *p, const char *want) {
    let_go(p->run);
    host_expect(&p->a, 0, NULL);
    check_run(want, p->run, &p->a);
}

/* The bits do not depend on the number of workers and hosts. */
static void test_workers(void **state) {
    (void)state;
    static const char *const bits[] = {
        "--set sync.staleness=0", "--set sync.staleness=2 --set train.compute=bf16",
        "--set sync.staleness=4 --set sync.staleness_drawn=on --set optim.clip=0.5",
        "--set train.freeze=wte.* --set optim.optimizer=muon"};
    static const int here[] = {1, 1, 2, 1}, there[] = {1, 2, 3, 1};
    int n = sizeof bits / sizeof *bits;
    for (int i = 0; i < n; i++) {
        char one[32], more[32];
        snprintf(one, sizeof one, "one-%d", i);
        snprintf(more, sizeof more, "more-%d", i);
        undisturbed(one, bits[i]);
        pair p = two(more, bits[i], here[i], there[i]);
        end(&p, one);
        assert_true(of_other_hosts(&p.a) > 0);
        host_expect(&p.b, 0, "for the parameter servers");
    }
}

static const char BITS[] = "--set sync.staleness=2";

static void test_whole(void **state) {
    (void)state;
    undisturbed("whole", BITS);
}

/* A host is lost, another one comes; a worker of it is killed, and another one stopped. */
static void test_lost(void **state) {
    (void)state;
    pair p = two("lost", BITS, 1, 2);
    host_kill(&p.b);
    host_await(&p.a, "is lost");
    p.b = pair_join(&p, 2, "");
    host_await_times(&p.a, "has come from", 4);
    assert_true(host_signal_child(&p.b, SIGKILL));
    host_await(&p.b, "was killed by signal 9; another takes its place");
    assert_true(host_signal_child(&p.b, SIGSTOP));
    host_await_times(&p.b, "another takes its place", 2);
    end(&p, "whole");
    host_expect(&p.b, 0, NULL);
}

/* A whole host is stopped: the others wait for its gradients no longer than a few heartbeats. */
static void test_stopped(void **state) {
    (void)state;
    pair p = two("stopped", BITS, 1, 2);
    pid_t pids[8];
    int n = children_of(p.b.pid, pids, 8);
    assert_int_equal(n, 2);
    kill(p.b.pid, SIGSTOP);
    for (int i = 0; i < n; i++) kill(pids[i], SIGSTOP);
    host_await(&p.a, "is lost (no sign of life for 1.5 s)");
    end(&p, "whole");
    host_kill(&p.b);
}

/* The gate is killed: another takes its place, and the workers come again. */
static void test_gate(void **state) {
    (void)state;
    pair p = two("gate", BITS, 1, 2);
    pid_t nursery = 0, pids[8];
    assert_int_equal(crew_of(p.a.pid, &nursery, pids, 8), 2); /* a worker, and the gate */
    check_gate_listens(pids, 2);
    kill(pids[1], SIGKILL);
    host_await(&p.a, "gate 0 was killed by signal 9");
    host_await_times(&p.a, "has come from", 4);
    end(&p, "whole");
    host_expect(&p.b, 0, NULL);
}

/* The host of the parameters is lost: workers wait for it to continue from its checkpoint. */
static void test_parameters(void **state) {
    (void)state;
    pair p = two("parameters", BITS, 1, 2);
    host_kill(&p.a);
    p.a = pair_listen(&p, 1, "--resume");
    host_await_times(&p.a, "has come from", 2);
    end(&p, "whole");
    host_expect(&p.b, 0, NULL);
}

/* The host of the parameters is lost: a host that listens takes its place, and others find it; also
 * where the process that is to notice it is lost at that time, and replaced. */
static void test_taken_over(void **state) {
    (void)state;
    pair p = pair_of(start, "taken", BITS);
    int port = free_port();
    char line[1024];
    pace_long("taken", 30);
    p.a = pair_listen(&p, 1, "");
    snprintf(line, sizeof line, "--listen 127.0.0.1:%d", port);
    p.b = pair_join(&p, 1, line);
    host_await(&p.a, "a host that can take over has come from");
    host c =
        host_start("train configs/tiny.yaml -n 2 -o @/taken --join 127.0.0.1:%d,127.0.0.1:%d %s %s",
                   p.port, port, SETTINGS, BITS);
    host_await(&p.a, "worker 3 has come from");
    await_step("taken", 30, &p.a);
    pid_t pids[8];
    int n = wait_for_children(p.b.pid, 2, pids, 8); /* a worker, and the standby */
    host_kill(&p.a);
    kill(pids[n - 1], SIGKILL);
    host_await(&p.b, "a standby of this host was killed by signal 9; another takes its place");
    host_await(&p.b, "the first host is lost: this one takes its place");
    host_await_times(&p.b, "has come from", 2);
    let_go("taken");
    host_expect(&p.b, 0, NULL);
    host_expect(&c, 0, NULL);
    check_run("whole", "taken", &p.b);
    assert_true(of_other_hosts(&p.b) >= 0); /* it has a gate */
}

static void test_refused(void **state) {
    (void)state;
    pair p = pair_of(start, "refused", BITS);
    pace_long("refused", 20);
    p.a = pair_listen(&p, 1, "");
    await_step("refused", 20, &p.a);
    p.b = pair_join(&p, 1, "--set sync.staleness=3");
    host_expect(&p.b, 1, "this host has sync.staleness 3, the leading host has");
    setenv("LOCKSTEP_KEY", "another-secret-of-some-length", 1);
    p.b = pair_join(&p, 1, "--set survival.rejoin_s=1");
    host_expect(&p.b, 1, "no host of parameter servers for 1 s");
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    let_go("refused");
    host_expect(&p.a, 0, NULL);
    check_run("whole", "refused", &p.a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),    cmocka_unit_test(test_whole),
        cmocka_unit_test(test_lost),       cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_gate),       cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_taken_over), cmocka_unit_test(test_refused)};
    setenv("LOCKSTEP_KEY", "a-secret-that-is-long-enough", 1);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
