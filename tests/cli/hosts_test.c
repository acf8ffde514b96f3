/* hosts_test.c - several hosts train one run despite faults, to the bits of an undisturbed run.
 *
 * Each supervisor counts as a host of its own; the first one leads. See election_test.c for hosts
 * that elect a leader.
 */
/* ctest: slow busy seconds=80 */
#include <errno.h>

#include "base/mem.h"
#include "cli/hosts.h"
#include "listeners.h"

enum { STEPS = 100 };

static const char SETTINGS[] =
    SMALLER "--set train.virtual_workers=8 --set train.steps=%d "
            "--set train.eval_every=40 --set checkpoint.every=30 "
            "--set log.every=1000 --set survival.balance=off "
            "--set survival.heartbeat_s=4 %s"; /* none is taken for lost */

static host start(int workers, const char *run, const char *how, const char *more) {
    char settings[1024];
    snprintf(settings, sizeof settings, SETTINGS, STEPS, more);
    return host_train(workers, run, how, settings);
}

static pair two(const char *run, const char *more) {
    pair p = pair_begin(start, run, 2, 2, more);
    p.b = pair_join(&p, 2, "");
    return p;
}

/* From this step on the run is slow until check(). */
static pair two_until(const char *run, int step, const char *more) {
    pace(run, step);
    pair p = two(run, more);
    await_step(run, step, &p.a);
    return p;
}

/* Starts the first host; others join later. */
static pair one_until(const char *run, int step, const char *more) {
    pace(run, step);
    pair p = pair_begin(start, run, 2, 1, more);
    await_step(run, step, &p.a);
    return p;
}

static void check(pair *p) {
    let_go(p->run);
    host_expect(&p->a, 0, NULL);
    if (p->b.pid) host_expect(&p->b, 0, "the run has ended");
    check_run("undisturbed", p->run, &p->a);
}

static void test_alone(void **arg) {
    (void)arg;
    host h = start(4, "undisturbed", "", "");
    host_expect(&h, 0, NULL);
    assert_false(host_says(&h, "view"));
}

/* ---- without faults ---- */

static void without_faults(const char *run, const char *more) {
    pair p = two(run, more);
    check(&p);
    assert_int_equal(host_count(&p.a, "view "), 1);
    assert_true(host_says(&p.b, "beginning after step 0, with 4 workers on 2 hosts, 2 of them"));
}

static void test_without_faults(void **arg) {
    (void)arg;
    without_faults("plain-0", "--set parallel.zero=0");
    without_faults("plain-wide", "--set parallel.zero=2 --set parallel.shard_group=4");
    if (all_cases()) {
        without_faults("plain-1", "");
        without_faults("plain-3", "--set parallel.zero=3");
        without_faults("plain-hybrid", "--set parallel.zero=2 --set parallel.shard_group=2");
    }
    without_faults("plain-copies", "--set parallel.zero=3 --set survival.copies=2");
}

/* No host is waited for once nothing is left to train: the others have ended. Nor does a host wait
 * for one that leads. */
static void test_complete(void **arg) {
    char how[64];
    (void)arg;
    snprintf(how, sizeof how, "--resume --listen 127.0.0.1:%d --hosts 2", free_port());
    host h = start(1, "plain-0", how, "--set parallel.zero=0");
    host_expect(&h, 0, "is complete");
    snprintf(how, sizeof how, "--join 127.0.0.1:%d", free_port());
    h = start(1, "plain-0", how, "--set parallel.zero=0 --set survival.rejoin_s=86400");
    host_expect(&h, 0, "/plain-0: is complete, and nobody leads it");
}

/* Each host has another number of workers. */
static void test_uneven(void **arg) {
    (void)arg;
    pace("uneven", STEPS / 4);
    pair p = pair_begin(start, "uneven", 1, 3, "--set parallel.zero=3 --set survival.copies=2");
    p.b = pair_join(&p, 2, "");
    host c = pair_join(&p, 3, "");
    await_step(p.run, STEPS / 4, &p.a);
    host_signal_child(&c, SIGKILL);
    check(&p);
    host_expect(&c, 0, "with 6 workers on 3 hosts, 3 of them here");
}

/* Hosts with other numbers of workers choose the same settings for a limit of memory. */
static void test_limit(void **arg) {
    (void)arg;
    pair p = pair_begin(start, "limit", 3, 2,
                        "--set train.micro_batch=2 --set parallel.memory_limit_mb=2.93 --set "
                        "parallel.fit=auto");
    p.b = pair_join(&p, 1, "");
    check(&p);
    const host *hosts[] = {&p.a, &p.b};
    for (int i = 0; i < 2; i++)
        assert_true(host_says(hosts[i], "to fit into 2.93 MB a worker: parallel.zero=0 "
                                        "train.micro_batch=1 (2.9 MB)"));
}

/* A warning is logged if the copies can't all be on different hosts. */
static void test_no_copies(void **arg) {
    (void)arg;
    pair p = pair_begin(start, "no-copies", 1, 2, "--set parallel.zero=3 --set survival.copies=2");
    p.b = pair_join(&p, 2, "");
    check(&p);
    assert_true(host_says(&p.a, "3 workers can't keep survival.copies 2 of the state"));
}

/* ---- workers die ---- */

static void killed(const char *run, const char *more) {
    pair p = two_until(run, 1, more);
    int times = 0;
    for (int i = 0; i < ncases(4, 8); i++) {
        pace(run, 20 * (i + 1));
        times += host_signal_child(draw(2) ? &p.a : &p.b, SIGKILL);
        sleep_ms(50 + (long)draw(400));
    }
    check(&p);
    assert_false(host_says(&p.a, "from the newest checkpoint"));
    assert_true(times > 0);
    print_message("%s: %d workers were killed\n", run, times);
}

static void test_killed(void **arg) {
    (void)arg;
    killed("killed-0", "--set parallel.zero=0");
    if (all_cases()) killed("killed-1", "");
    killed("killed-3", "--set parallel.zero=3");
}

/* ---- hosts die ---- */

/* The second host is lost and returns. */
static void lost(const char *run, const char *more) {
    pace(run, 1);
    pair p = two(run, more);
    for (int i = 0; i < 3; i++) {
        int step = 30 + i * (STEPS - 30) / 3 + (int)draw(20);
        pace(run, step);
        await_step(run, step, &p.a);
        host_kill(&p.b);
        sleep_ms((long)draw(500));
        p.b = pair_join(&p, 2, "");
        host_await(&p.b, "of them here");
    }
    check(&p);
    bool back = host_says(&p.a, "from the newest checkpoint");
    bool one_copy = strstr(more, "zero=3") && !strstr(more, "copies");
    assert_int_equal(back, one_copy);
}

static void test_host_lost(void **arg) {
    (void)arg;
    lost("lost-0", "--set parallel.zero=0 --set survival.rejoin_s=3");
    lost("lost-copies", "--set parallel.zero=3 --set survival.copies=2 --set survival.rejoin_s=3");
    if (all_cases()) lost("lost-1", "--set survival.copies=2 --set survival.rejoin_s=3");
    lost("lost-3", "--set parallel.zero=3 --set survival.rejoin_s=3");
}

/* The only copy of sharded state is lost before the first checkpoint: the run begins again. */
static void test_lost_early(void **arg) {
    (void)arg;
    pair p = two_until("early", 10, "--set parallel.zero=3 --set checkpoint.every=200");
    host_kill(&p.b);
    host_await(&p.a, "from the newest checkpoint");
    p.b = pair_join(&p, 2, "");
    check(&p);
}

/* ---- hosts come and go ---- */

static void test_late(void **arg) {
    (void)arg;
    pair p = one_until("late", 10, "");
    p.b = pair_join(&p, 2, "");
    host_await(&p.a, "with 4 workers on 2 hosts");
    host c = pair_join(&p, 3, "");
    host_await(&p.a, "with 7 workers on 3 hosts");
    kill(p.b.pid, SIGTERM);
    host_expect(&p.b, 0, "this host has left the run");
    check(&p);
    host_expect(&c, 0, "the run has ended");
    assert_true(host_says(&p.a, "with 5 workers on 2 hosts"));
}

/* A host that leaves has the only copy of its shards: it hands them over, so no step is made
 * again. */
static void left(const char *run, const char *more) {
    pair p = two_until(run, 20, more);
    kill(p.b.pid, SIGTERM);
    host_expect(&p.b, 0, "this host has left the run");
    host_await(&p.a, "is saved, with the parts of the state that it has");
    check(&p);
    char *text = host_output(&p.a);
    const char *saved = strstr(text, "a host leaves: step "),
               *from = strstr(text, "checkpoints/step-");
    int at = 0, continued = -1;
    assert_true(saved && from && sscanf(saved, "a host leaves: step %d", &at) == 1);
    assert_int_equal(sscanf(from, "checkpoints/step-%d", &continued), 1);
    assert_int_equal(continued, at);
    free(text);
}

static void test_left(void **arg) {
    (void)arg;
    left("left-1", "--set checkpoint.every=0");
    if (all_cases()) left("left-3", "--set parallel.zero=3 --set checkpoint.every=0");
}

/* A host that is leaving is interrupted again: the run continues, and the host does not report lost
 * steps. */
static void test_left_at_once(void **arg) {
    (void)arg;
    pair p = two_until("left-at-once", 20, "--set parallel.zero=0 --set survival.heartbeat_s=60");
    pid_t pids[8];
    assert_true(children_of(p.b.pid, pids, 8) >= 1);
    kill(pids[0], SIGSTOP); /* so that the step in flight can't end */
    kill(p.b.pid, SIGTERM);
    host_await(&p.b, "this host leaves after the step in flight");
    sleep_ms(600); /* one that comes sooner belongs to the first */
    kill(p.b.pid, SIGINT);
    host_expect(&p.b, 1, "the other hosts continue the run");
    assert_false(host_says(&p.b, "lost; "));
    check(&p);
}

static void test_scale(void **arg) {
    (void)arg;
    pair p = two_until("scaled", 5, "");
    wait_for_file("scaled/control/socket");
    expect("scale @/scaled 7", 0, "from 4 to 7 workers");
    host_await(&p.b, "with 7 workers on 2 hosts, 3 of them here");
    expect("scale @/scaled 9", 1, "this run can have 1 to 8");
    expect("scale @/scaled 3", 0, "to 3 workers");
    host_await(&p.b, "with 3 workers on 2 hosts, 1 of them here");
    check(&p);
}

/* ---- hosts are silent ---- */

/* The supervisor is stopped for longer than the others wait; its workers keep running. */
static void test_paused(void **arg) {
    (void)arg;
    pair p = two_until("paused", 20, "--set parallel.zero=0 --set survival.heartbeat_s=0.3");
    kill(p.b.pid, SIGSTOP);
    host_await(&p.a, "it is silent");
    sleep_ms(300);
    kill(p.b.pid, SIGCONT);
    host_await(&p.a, "continuing after step");
    kill(p.a.pid, SIGSTOP);
    sleep_ms(1500);
    kill(p.a.pid, SIGCONT);
    check(&p);
}

/* The run ends while the host is unreachable: the host can only judge by the files it finds. */
static void test_missed_end(void **arg) {
    (void)arg;
    pair p = two_until("missed", 20,
                       "--set parallel.zero=0 --set survival.heartbeat_s=0.5 "
                       "--set survival.rejoin_s=2");
    kill(p.b.pid, SIGSTOP);
    host_await(&p.a, "it is silent");
    let_go(p.run);
    host_expect(&p.a, 0, "step 100/100");
    kill(p.b.pid, SIGCONT);
    host_expect(&p.b, 0, "the run has ended, after step 100");
    check_run("undisturbed", p.run, &p.b);
}

/* ---- the first host ---- */

/* The other hosts end with a checkpoint if they have the state; otherwise one exists already. */
static void leader_lost(const char *run, const char *more, bool whole) {
    char settings[512];
    snprintf(settings, sizeof settings, "--set survival.rejoin_s=0.5 %s", more);
    pair p = two_until(run, 45, settings);
    if (!whole) wait_for_file("led-3/checkpoints/latest");
    host_kill(&p.a);
    let_go(run);
    host_expect(&p.b, 1, "the leading host, 127.0.0.1:");
    if (whole) assert_true(host_says(&p.b, "the run ends here with a checkpoint of step "));
    host h = start(3, run, "--resume", more);
    host_expect(&h, 0, "continuing from ");
    check_run("undisturbed", run, &h);
}

/* The first host is lost while it writes the line of a step that the others have completed. */
static void test_line_lost(void **arg) {
    (void)arg;
    setenv("LOCKSTEP_FAULTS", "write metrics.jsonl$ KILL 50-51", 1);
    pair p = pair_begin(start, "line", 2, 2, "--set parallel.zero=0 --set survival.rejoin_s=0.5");
    unsetenv("LOCKSTEP_FAULTS");
    p.b = pair_join(&p, 2, "");
    host_expect(&p.b, 1, "the run ends here with a checkpoint of step ");
    host_end(&p.a);
    assert_int_equal(steps_of("line"), host_count(&p.b, "checkpoint of step 50;") ? 50 : 49);
    host h = start(3, "line", "--resume", "");
    host_expect(&h, 0, "continuing from ");
    check_run("undisturbed", "line", &h);
}

static void test_leader_lost(void **arg) {
    (void)arg;
    leader_lost("led-0", "--set parallel.zero=0", true);
    leader_lost("led-copies", "--set parallel.zero=3 --set survival.copies=2", true);
    leader_lost("led-3", "--set parallel.zero=3", false);
}

/* The first host is lost with its replicas, of which some are ahead of others. It begins again, and
 * both continue from the newest checkpoint. */
static void test_leader_lost_apart(void **arg) {
    (void)arg;
    static const char gossip[] = "--set parallel.zero=0 --set sync.mode=gossip "
                                 "--set sync.replicas=4 --set sync.every=2";
    char listen[128];
    host h = start(4, "mixed", "", gossip);
    host_expect(&h, 0, NULL);
    pair p = two_until("led-mixed", 45, gossip);
    wait_for_file("led-mixed/checkpoints/latest");
    host_kill(&p.a);
    let_go(p.run);
    snprintf(listen, sizeof listen, "--listen %s --hosts 2 --resume", strchr(p.join, ' ') + 1);
    p.a = start(2, p.run, listen, gossip);
    host_expect(&p.a, 0, "continuing from the newest checkpoint");
    host_expect(&p.b, 0, "the run has ended");
    check_run("mixed", p.run, &p.a);
}

/* All hosts end, with one checkpoint and the same exit code, even one without a worker in the
 * view. */
static void test_stopped(void **arg) {
    (void)arg;
    char how[96], listen[64];
    pace("stopped", 40);
    pair p = two("stopped", "--set survival.max_workers=4");
    host c = pair_join(&p, 2, "");
    await_step(p.run, 40, &p.a);
    kill(p.a.pid, SIGTERM);
    host_expect(&p.a, 75, "continue with: ");
    host_expect(&p.b, 75, "the run has ended, after step ");
    host_expect(&c, 75, "the run has ended, after step ");
    int port = free_port();
    snprintf(listen, sizeof listen, "--listen 127.0.0.1:%d --hosts 2 --resume", port);
    snprintf(how, sizeof how, "--join 127.0.0.1:%d --resume", port);
    p.a = start(2, p.run, listen, "");
    p.b = start(1, p.run, how, "");
    check(&p);
}

/* ---- listening addresses ---- */

/* All processes of a host listen at `address`, at least `least` of them somewhere. */
static void check_listeners(const host *h, const char *address, int least) {
    pid_t pids[16];
    char text[1024], want[64];
    int n = children_of(h->pid, pids, 15), some = 0;
    pids[n++] = h->pid;
    snprintf(want, sizeof want, "%s:", address);
    for (int i = 0; i < n; i++) {
        some += listeners_of(pids[i], text, sizeof text) > 0;
        for (const char *at = text; *at; at += strcspn(at, " ") + 1)
            if (strncmp(at, want, strlen(want)) != 0) host_fail(h, at);
    }
    if (some < least) host_fail(h, "too few of them listen");
}

/* A worker that outlives its host for a moment must not keep the port that a new host needs. */
static void check_workers_leave(const host *h, int port) {
    pid_t pids[16];
    char text[1024], own[32];
    int n = children_of(h->pid, pids, 16);
    snprintf(own, sizeof own, "127.0.0.1:%d", port);
    listeners_of(h->pid, text, sizeof text);
    if (!strstr(text, own)) host_fail(h, "it does not listen at its port");
    for (int i = 0; i < n; i++) {
        listeners_of(pids[i], text, sizeof text);
        if (strstr(text, own)) host_fail(h, "its worker holds its port");
    }
}

static void test_listeners(void **arg) {
    (void)arg;
    pair p = two_until("listeners", 5, "--set parallel.transport=tcp");
    check_workers_leave(&p.a, p.port);
    check_listeners(&p.a, "127.0.0.1", 3);
    check_listeners(&p.b, "127.0.0.1", 2);
    check(&p);
    setenv("LOCKSTEP_INSECURE", "1", 1);
    char *key = ls_format("%s", getenv("LOCKSTEP_KEY"));
    unsetenv("LOCKSTEP_KEY");
    p = two_until("open-listeners", 5, "--insecure --set parallel.transport=tcp");
    check_listeners(&p.a, "127.0.0.1", 3);
    check_listeners(&p.b, "127.0.0.1", 2);
    unsetenv("LOCKSTEP_INSECURE");
    setenv("LOCKSTEP_KEY", key, 1);
    free(key);
    check(&p);
}

/* A host with --listen and another address of its own listens, and connects, at that one. */
static void test_own_address(void **arg) {
    (void)arg;
    pace("own-address", 5);
    pair p = pair_begin(start, "own-address", 2, 2, "--set parallel.transport=tcp");
    char how[192];
    setenv("LOCKSTEP_LISTEN", "127.0.0.2", 1); /* as set for workers of a host that does not lead */
    snprintf(how, sizeof how, "%s", p.join);
    p.b = start(2, p.run, how, p.more);
    unsetenv("LOCKSTEP_LISTEN");
    await_step("own-address", 5, &p.a);
    check_listeners(&p.a, "127.0.0.1", 3);
    check_listeners(&p.b, "127.0.0.2", 2);
    check(&p);
}

/* ---- hosts that are refused ---- */

static void refused(const pair *p, const char *more, const char *says) {
    char settings[512];
    snprintf(settings, sizeof settings, "--set survival.rejoin_s=1 %s %s", p->more, more);
    host h = start(2, p->run, p->join, settings);
    host_expect(&h, 1, says);
}

/* A host with another config is refused with the difference, and training is not disturbed. */
static void test_other_config(void **arg) {
    (void)arg;
    pair p = one_until("refuses", 1, "");
    refused(&p, "--set optim.lr=0.1", "this host has optim.lr 0.1, the leading host has 0.003");
    refused(&p, "--set train.seed=2", "this host has train.seed 2, the leading host has 1");
    refused(&p, "--device c", "this host has parallel.device a device, the leading host has cores");
    refused(&p, "--set train.sample_file=LICENSE",
            "this host has train.sample_file a file, the leading host has none");
    setenv("LOCKSTEP_ALGORITHM", "ring", 1);
    refused(&p, "", "this host has environment.LOCKSTEP_ALGORITHM ring, the leading host has auto");
    unsetenv("LOCKSTEP_ALGORITHM");
    refused(&p, "--max-workers 2", "this host has survival.max_workers 2, the leading host has 8");
    check(&p);
    assert_false(host_says(&p.a, "view"));
}

/* Hosts without the key, with another key, or with an address where no host listens. */
static void test_keys(void **arg) {
    (void)arg;
    char line[96], *key = ls_format("%s", getenv("LOCKSTEP_KEY"));
    pair p = pair_begin(start, "keys", 2, 2, "");
    host_await(&p.a, "waiting at 127.0.0.1:");
    setenv("LOCKSTEP_KEY", "another key, of 16 characters at least", 1);
    refused(&p, "", "has another join key, or none), for 1 s");
    setenv("LOCKSTEP_KEY", "short", 1);
    refused(&p, "", "the join key has 5 characters; it needs at least 16");
    unsetenv("LOCKSTEP_KEY");
    refused(&p, "", "without a join key");
    refused(&p, "--insecure", "can't be reached (");
    setenv("LOCKSTEP_KEY", key, 1);
    free(key);
    p.b = pair_join(&p, 2, "");
    check(&p);
    snprintf(line, sizeof line, "--join 127.0.0.1:%d", free_port());
    host h = start(2, "nobody", line, "--set survival.rejoin_s=0.5");
    host_expect(&h, 1, "can't be reached (no connection: Connection refused)");
}

static void test_bad_addresses(void **arg) {
    (void)arg;
    static const char *const bad[][2] = {
        {"--listen 127.0.0.1", "'127.0.0.1' is not an address; expected HOST:PORT"},
        {"--join 127.0.0.1:0", "is not an address"},
        {"--join 127.0.0.1:65536", "is not an address"},
        {"--join 127.0.0.1:80x", "is not an address"},
        {"--join :7000", "HOST is missing"},
        {"--listen 192.0.2.1:7000", "can't listen at 192.0.2.1:7000: "},
        {"--listen 127.0.0.1:7000 --join 127.0.0.1:7001", "--listen and --join: "},
        {"--hosts 2", "--hosts 2 is for a host with --listen"},
    };
    char line[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        host h = start(1, "bad", bad[i][0], "--set survival.rejoin_s=0.5");
        int code = host_end(&h);
        if ((code != 1 && code != 2) || !host_says(&h, bad[i][1])) {
            print_error("%s: exit code %d, expected: %s\n", bad[i][0], code, bad[i][1]);
            host_fail(&h, "the exit code or the output is wrong");
        }
        assert_false(file_exists("bad"));
    }
    pair p = pair_begin(start, "taken", 1, 2, "");
    host_await(&p.a, "waiting at 127.0.0.1:");
    snprintf(line, sizeof line, "--listen %.60s", p.join + sizeof "--join");
    host h = start(1, "bad", line, "");
    host_expect(&h, 1, "Address already in use");
    kill(p.a.pid, SIGTERM);
    host_expect(&p.a, 75, "interrupted before the first step; start it again with the same");
}

/* ---- strangers ---- */

enum { STRANGERS = 300 };

static int stranger(const char *address) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) assert_int_equal(errno, EINPROGRESS);
    return fd;
}

/* Strangers send nothing or nonsense, or disconnect. A host with the key joins nevertheless. */
static void test_strangers(void **arg) {
    (void)arg;
    pair p = two_until("strange", 5, "");
    int fds[STRANGERS];
    unsigned char nonsense[512];
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = stranger(p.join);
        for (size_t k = 0; k < sizeof nonsense; k++) nonsense[k] = (unsigned char)draw(256);
        if (i % 3 == 1 && send(fds[i], nonsense, sizeof nonsense, MSG_NOSIGNAL) < 0) continue;
        if (i % 3 == 2) close(fds[i]);
    }
    host c = pair_join(&p, 1, "");
    host_await(&c, "with 5 workers on 3 hosts, 1 of them here");
    check(&p);
    host_expect(&c, 0, "the run has ended");
    assert_false(host_says(&p.a, "is lost"));
    for (int i = 0; i < STRANGERS; i++)
        if (i % 3 != 2) close(fds[i]);
}

/* ---- two runs ---- */

static void test_two_runs(void **arg) {
    (void)arg;
    pair q = two("other", "--set parallel.zero=0"), p = two_until("one", 20, "");
    host_signal_child(&p.b, SIGKILL);
    check(&p);
    check(&q);
}

int main(void) {
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
    unsetenv("LOCKSTEP_KEY_FILE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),         cmocka_unit_test(test_without_faults),
        cmocka_unit_test(test_complete),      cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_limit),         cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_killed),        cmocka_unit_test(test_host_lost),
        slow_unit_test(test_lost_early),      cmocka_unit_test(test_late),
        cmocka_unit_test(test_left),          slow_unit_test(test_left_at_once),
        cmocka_unit_test(test_scale),         cmocka_unit_test(test_paused),
        cmocka_unit_test(test_missed_end),    cmocka_unit_test(test_leader_lost),
        cmocka_unit_test(test_line_lost),     cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_other_config),  cmocka_unit_test(test_keys),
        cmocka_unit_test(test_bad_addresses), cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_two_runs),      cmocka_unit_test(test_listeners),
        cmocka_unit_test(test_own_address),   slow_unit_test(test_leader_lost_apart),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
