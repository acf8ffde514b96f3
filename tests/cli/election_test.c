/* election_test.c - hosts that elect a leader through three real etcd servers; faults hit both.
 *
 * These tests are skipped if etcd is not installed.
 */
/* ctest: slow seconds=60 */

#include "base/mem.h"
#include "cli/hosts.h"
#include "cluster/etcd_nodes.h"

enum { HOSTS = 3, STEPS = 200 };

static etcd_nodes cluster = {.n = ETCD_NODES};
static bool installed;
static char *all; /* endpoints */

#define NEEDS_ETCD()                                                                               \
    do {                                                                                           \
        if (!installed) skip_because("etcd is not installed");                                     \
    } while (0)

typedef struct team {
    const char *run, *more;
    const char *endpoints;
    int port[HOSTS], led[HOSTS]; /* led: how often the host has logged that it leads */
    host h[HOSTS];
} team;

static void start(team *t, int i) {
    t->led[i] = 0;
    t->h[i] =
        host_start("train configs/tiny.yaml -n 2 -o @/%s --listen 127.0.0.1:%d --hosts %d " SMALLER
                   "--membership %s --set survival.etcd_run=%s --set survival.heartbeat_s=1.5 "
                   "--set survival.rejoin_s=100 --set train.steps=%d --set train.eval_every=40 "
                   "--set checkpoint.every=40 --set log.every=1000 --set survival.balance=off %s",
                   t->run, t->port[i], HOSTS, t->endpoints, t->run, STEPS, t->more);
}

/* In tests that inject faults, the run is slow at first: see advance(). */
static team begin(const char *run, const char *endpoints, const char *more) {
    team t = {.run = run, .more = more, .endpoints = endpoints};
    for (int i = 0; i < HOSTS; i++) t.port[i] = free_port();
    for (int i = 0; i < HOSTS; i++) start(&t, i);
    return t;
}

/* Waits for a leader elected since the last call and returns its index; -1: the run has ended. */
static int await_leader(team *t) {
    for (int k = 0; k < PATIENCE_S * 50; k++) {
        for (int i = 0; i < HOSTS; i++) {
            int times = t->h[i].pid ? host_count(&t->h[i], "this host leads now") : 0;
            if (times > t->led[i]) {
                t->led[i] = times;
                return i;
            }
        }
        bool runs = false;
        for (int i = 0; i < HOSTS; i++) runs = runs || !host_is_over(&t->h[i]);
        if (!runs) return -1;
        sleep_ms(20);
    }
    host_fail(&t->h[0], "no host leads");
    return -1;
}

/* Lets the run advance by `more` steps, after which it is slow again. */
static void advance(const team *t, int more) {
    int want = steps_of(t->run) + more;
    pace(t->run, want);
    await_step(t->run, want, &t->h[0]);
}

static void check_like(team *t, const char *undisturbed) {
    let_go(t->run);
    for (int i = 0; i < HOSTS; i++) host_expect(&t->h[i], 0, NULL);
    check_run(undisturbed, t->run, &t->h[0]);
}

static void check(team *t) { check_like(t, "undisturbed"); }

static void train_undisturbed(const char *run, const char *more) {
    host h = host_start("train configs/tiny.yaml -n 2 -o @/%s --set train.steps=%d " SMALLER
                        "--set train.eval_every=40 --set log.every=1000 %s",
                        run, STEPS, more);
    host_expect(&h, 0, NULL);
}

/* ---- hosts die ---- */

static void test_without_faults(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    team t = begin("elected", all, "");
    assert_true(await_leader(&t) >= 0);
    check(&t);
    int views = 0;
    for (int i = 0; i < HOSTS; i++)
        views += host_count(&t.h[i], "view 1: beginning after step 0, with 6 workers on 3 hosts");
    assert_int_equal(views, HOSTS);
}

/* Kills the leader, then a follower, then the new leader. */
static void killed(const char *run, const char *more) {
    pace(run, 0);
    team t = begin(run, all, more);
    int leader = await_leader(&t);
    for (int round = 0; round < 3; round++) {
        advance(&t, 30 + (int)draw(20));
        int victim = round == 1 ? (leader + 1 + (int)draw(2)) % HOSTS : leader;
        host_kill(&t.h[victim]);
        if (victim == leader) leader = await_leader(&t);
        start(&t, victim);
        host_await(&t.h[victim], "with 6 workers on 3 hosts, 2 of them here");
    }
    check(&t);
    for (int i = 0; i < HOSTS; i++)
        if (host_says(&t.h[i], "from the newest checkpoint")) host_fail(&t.h[i], "steps are lost");
}

static void test_killed(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    if (all_cases()) killed("killed-0", "--set parallel.zero=0");
    killed("killed-3", "--set parallel.zero=3 --set survival.copies=2");
}

/* The leader is lost with its replicas, of which some are ahead of others: under a new one the
 * hosts continue from the newest checkpoint. */
static void test_killed_apart(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    static const char gossip[] = "--set sync.mode=gossip --set sync.replicas=4 --set sync.every=2 "
                                 "--set parallel.zero=0";
    train_undisturbed("mixed", gossip);
    pace("killed-mixed", 0);
    team t = begin("killed-mixed", all, gossip);
    int leader = await_leader(&t);
    advance(&t, 50);
    wait_for_file("killed-mixed/checkpoints/latest");
    host_kill(&t.h[leader]);
    await_leader(&t);
    start(&t, leader);
    check_like(&t, "mixed");
    int lost = 0;
    for (int i = 0; i < HOSTS; i++) lost += host_count(&t.h[i], "from the newest checkpoint");
    assert_true(lost > 0);
}

/* The leader is stopped for longer than its lease. */
static void test_paused(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    pace("paused", 0);
    team t = begin("paused", all, "--set parallel.zero=0");
    int leader = await_leader(&t);
    advance(&t, 20);
    kill(t.h[leader].pid, SIGSTOP);
    while (await_leader(&t) == leader) continue; /* it may have led twice before it was stopped */
    advance(&t, 5);
    kill(t.h[leader].pid, SIGCONT);
    check(&t);
}

/* ---- etcd dies ---- */

static void restart(int i) {
    etcd_nodes_start(&cluster, i);
    assert_true(etcd_nodes_await(&cluster, i, &(ls_etcd_options){0}));
}

/* Kills one server after another. */
static void test_server_killed(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    pace("served", 0);
    team t = begin("served", all, "");
    assert_true(await_leader(&t) >= 0);
    for (int i = 0; i < ncases(1, ETCD_NODES); i++) {
        advance(&t, 20);
        etcd_nodes_kill(&cluster, i);
        advance(&t, 20);
        restart(i);
    }
    check(&t);
}

/* Waits until no step has come for three seconds: a run that trains slowly does one a second. */
static void await_standstill(const char *run, const host *h) {
    int steps = steps_of(run), quiet = 0;
    for (int i = 0; i < PATIENCE_S * 10 && quiet < 30; i++) {
        sleep_ms(100);
        int now = steps_of(run);
        quiet = now == steps ? quiet + 1 : 0;
        steps = now;
    }
    if (quiet < 30 || steps >= STEPS) host_fail(h, "it continues to train");
}

/* Without a majority of servers, no host leads after the lease expires; when they are back, the run
 * continues. */
static void test_servers_stopped(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    pace("stopped", 0);
    team t = begin("stopped", all, "");
    int leader = await_leader(&t);
    advance(&t, 20);
    for (int i = 0; i < ETCD_NODES; i++) kill(cluster.pid[i], SIGSTOP);
    host_await(&t.h[leader], "view 1: ");
    host_await(&t.h[leader], "this host no longer leads: ");
    await_standstill(t.run, &t.h[leader]);
    for (int i = 0; i < ETCD_NODES; i++) kill(cluster.pid[i], SIGCONT);
    assert_true(await_leader(&t) >= 0);
    check(&t);
}

static void test_nobody(void **arg) {
    (void)arg;
    host h = host_start("train configs/tiny.yaml -n 1 -o @/nobody --listen 127.0.0.1:%d --set "
                        "survival.rejoin_s=3 --membership etcd://127.0.0.1:%d",
                        free_port(), free_port());
    host_expect(&h, 1, "there is no leading host: ");
    assert_true(host_says(&h, "127.0.0.1:"));
    assert_false(file_exists("nobody"));
    expect("train configs/tiny.yaml -o @/nobody --membership etcd://127.0.0.1:1", 1,
           "every host needs --listen HOST:PORT");
    expect("train configs/tiny.yaml -o @/nobody --listen 127.0.0.1:7000 --membership zk://a:1", 1,
           "etcd://");
}

/* ---- access to etcd ---- */

static void test_tls(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    etcd_nodes c = etcd_nodes_certified();
    char *ca = ls_format("%s/ca.pem", c.folder), *cert = ls_format("%s/node.pem", c.folder);
    char *key = ls_format("%s/node.key", c.folder);
    char *more = ls_format("--set survival.etcd_ca=%s --set survival.etcd_cert=%s "
                           "--set survival.etcd_key=%s",
                           ca, cert, key);
    etcd_nodes_open(&c, &(ls_etcd_options){.ca = ca, .cert = cert, .key = key});
    char *endpoints = etcd_nodes_endpoints(&c);
    team t = begin("tls", endpoints, more);
    check(&t);
    host h = host_start("train configs/tiny.yaml -n 1 -o @/stranger --listen 127.0.0.1:%d "
                        "--set survival.rejoin_s=3 --membership %s --set survival.etcd_ca=%s",
                        free_port(), endpoints, ca);
    host_expect(&h, 1, "there is no leading host: etcd: ");
    etcd_nodes_close(&c);
    char *const texts[] = {ca, cert, key, more, endpoints};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
}

static void post(const char *path, const char *body) {
    char text[512], reply[4096];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)cluster.port[0]);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    int n = snprintf(text, sizeof text, "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", path,
                     strlen(body), body);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    ssize_t got = read(fd, reply, sizeof reply - 1);
    reply[got > 0 ? got : 0] = 0;
    close(fd);
    if (!strstr(reply, "200 OK")) fail_msg("%s: %s", path, reply);
}

/* The last test: from here on the servers require a user. */
static void test_users(void **arg) {
    (void)arg;
    NEEDS_ETCD();
    post("/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"a secret\"}");
    post("/v3/auth/role/add", "{\"name\":\"root\"}");
    post("/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}");
    post("/v3/auth/enable", "{}");
    setenv("LOCKSTEP_ETCD_PASSWORD", "a secret", 1);
    team t = begin("users", all, "--set survival.etcd_user=root");
    check(&t);
    setenv("LOCKSTEP_ETCD_PASSWORD", "another", 1);
    host h = host_start("train configs/tiny.yaml -n 1 -o @/stranger --listen 127.0.0.1:%d "
                        "--set survival.rejoin_s=3 --membership %s "
                        "--set survival.etcd_user=root",
                        free_port(), all);
    host_expect(&h, 1, "invalid user ID or password");
    assert_false(host_says(&h, "another"));
}

static int set_up(void **state) {
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
    unsetenv("LOCKSTEP_KEY_FILE");
    unsetenv("LOCKSTEP_ETCD_PASSWORD");
    if (folder_make(state)) return -1;
    installed = etcd_is_installed();
    if (!installed) return 0;
    strcpy(cluster.folder, "/tmp/etcd_test_XXXXXX");
    if (!mkdtemp(cluster.folder)) return -1;
    etcd_nodes_open(&cluster, &(ls_etcd_options){0});
    all = etcd_nodes_endpoints(&cluster);
    train_undisturbed("undisturbed", "");
    return 0;
}

static int tear_down(void **state) {
    if (installed) etcd_nodes_close(&cluster);
    free(all);
    return folder_remove(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_faults),
        cmocka_unit_test(test_killed),
        slow_unit_test(test_killed_apart),
        slow_unit_test(test_paused),
        cmocka_unit_test(test_server_killed),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_servers_stopped),
        cmocka_unit_test(test_tls),
        slow_unit_test(test_users),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
