/* etcd_test.c - the client of etcd and three real servers, some of which are killed or stopped. */
/* ctest: slow seconds=15 */
#include "cluster/etcd.h"

#include <pthread.h>
#include <time.h>

#include "cluster/etcd_impostor.h"
#include "cluster/etcd_nodes.h"

static const double LIMIT_S = 15; /* for a call that must succeed, even on a busy machine */
static etcd_nodes cluster = {.n = ETCD_NODES};
static char *all; /* endpoints of the cluster */
static bool installed;

static void pause_ms(int ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
              NULL);
}

static double since(int64_t begin) { return (double)(ls_clock_ns() - begin) / 1e9; }

static ls_etcd *client_of(const ls_etcd_options *o) {
    ls_etcd *t = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_etcd_open(o, &t, &e), e);
    return t;
}

static ls_etcd *client(const char *endpoints, double timeout_s) {
    return client_of(&(ls_etcd_options){.endpoints = endpoints, .timeout_s = timeout_s});
}

static int64_t grant(ls_etcd *t, int64_t ttl_s) {
    int64_t lease = 0;
    ls_error e = {0};
    assert_ls_ok(ls_etcd_grant(t, ttl_s, &lease, &e), e);
    assert_true(lease > 0);
    return lease;
}

/* Returns the create_revision. ours_p NULL: the key must be ours. */
static int64_t create(ls_etcd *t, const char *key, const char *value, int64_t lease, bool *ours_p) {
    ls_etcd_value v = {0};
    ls_error e = {0};
    bool ours = false;
    assert_ls_ok(ls_etcd_create(t, &(ls_etcd_entry){key, value, lease}, &v, &ours, &e), e);
    int64_t revision = v.create_revision;
    assert_true(revision > 0 && v.revision >= revision && v.lease > 0);
    assert_true((strcmp(v.value, value) == 0 && v.lease == lease) == ours);
    assert_true(ours || ours_p);
    if (ours_p) *ours_p = ours;
    ls_etcd_value_free(&v);
    return revision;
}

/* Returns the value; free() it. NULL: there is none. */
static char *get(ls_etcd *t, const char *key, int64_t *revision_p) {
    ls_etcd_value v = {0};
    ls_error e = {0};
    assert_ls_ok(ls_etcd_get(t, key, &v, &e), e);
    assert_true(v.revision > 0 && !v.value == !v.create_revision);
    if (v.value) assert_int_equal(strlen(v.value), v.nbytes);
    if (revision_p) *revision_p = v.revision;
    return v.value;
}

static bool exists(ls_etcd *t, const char *key) {
    char *value = get(t, key, NULL);
    free(value);
    return value != NULL;
}

static bool watch(ls_etcd *t, const char *key, int64_t from, double timeout_s) {
    bool changed = false;
    ls_error e = {0};
    assert_ls_ok(ls_etcd_watch(t, key, from, timeout_s, &changed, &e), e);
    return changed;
}

/* Watches a key that does not change, for a while. */
static void watch_unchanged(ls_etcd *t, const char *key, int64_t from) {
    bool changed = true;
    ls_error e = {0};
    ls_status s = LS_ETIMEOUT; /* again if etcd is too slow for so short a watch */
    for (double limit_s = 0.3; s == LS_ETIMEOUT && limit_s < LIMIT_S; limit_s *= 2) {
        int64_t begin = ls_clock_ns();
        s = ls_etcd_watch(t, key, from, limit_s, &changed, &e);
        assert_true(since(begin) >= limit_s);
    }
    assert_ls_ok(s, e);
    assert_false(changed);
}

/* Makes all calls of a leader. */
static void call_as_leader(ls_etcd *t, const char *key) {
    ls_error e = {0};
    int64_t lease = grant(t, 60), revision = 0;
    create(t, key, "me", lease, NULL);
    char *value = get(t, key, &revision);
    assert_string_equal(value, "me");
    free(value);
    assert_ls_ok(ls_etcd_keep_alive(t, lease, &e), e);
    assert_ls_ok(ls_etcd_revoke(t, lease, &e), e);
    assert_true(watch(t, key, revision + 1, LIMIT_S));
    assert_false(exists(t, key));
}

/* A watch in a thread of its own. */
typedef struct waiter {
    pthread_t thread;
    ls_etcd *t;
    const char *key;
    int64_t from;
    double timeout_s;
    atomic_bool ended;
    bool changed;
    ls_status status;
    ls_error e;
} waiter;

static void *wait_in_thread(void *arg) {
    waiter *w = arg;
    w->status = ls_etcd_watch(w->t, w->key, w->from, w->timeout_s, &w->changed, &w->e);
    w->ended = true;
    return NULL;
}

static void waiter_start(waiter *w) {
    assert_int_equal(pthread_create(&w->thread, NULL, wait_in_thread, w), 0);
}

static void waiter_join(waiter *w) {
    pthread_join(w->thread, NULL);
    assert_ls_ok(w->status, w->e);
    assert_true(w->changed);
}

#define NEEDS_ETCD()                                                                               \
    do {                                                                                           \
        if (!installed) skip_because("etcd is not installed");                                     \
    } while (0)

/* ---- one HTTP request by hand, for calls that the client does not have ----------------------- */

/* The reply must contain `want`. */
static void post(int port, const char *token, const char *path, const char *body,
                 const char *want) {
    char *text =
        ls_format("POST %s HTTP/1.0\r\n%s%s\r\nContent-Length: %zu\r\n\r\n%s", path,
                  token ? "Authorization: " : "X: ", token ? token : "", strlen(body), body);
    ls_buf reply = {0};
    char part[4096];
    int fd = dial(port);
    assert_true(fd >= 0);
    send_all(fd, text, strlen(text));
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) ls_buf_append(&reply, part, (size_t)n);
    close(fd);
    assert_non_null(reply.data);
    if (!strstr(reply.data, want)) fail_msg("%s: %s", path, reply.data);
    free(text);
    ls_buf_free(&reply);
}

/* ---- an election ----------------------------------------------------------------------------- */

static void test_election(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *a = client(all, LIMIT_S), *b = client(all, LIMIT_S);
    ls_error e = {0};
    bool ours = true;
    int64_t la = grant(a, 60), lb = grant(b, 60);
    int64_t first = create(a, "election", "a:1", la, NULL);
    assert_int_equal(create(b, "election", "b:1", lb, &ours), first);
    assert_false(ours);
    assert_int_equal(create(a, "election", "a:1", la, NULL), first); /* again: it is ours */
    create(a, "election", "a:2", la, &ours);
    assert_false(ours);

    /* b waits until a resigns, and wins. */
    waiter w = {.t = b, .key = "election", .from = first + 1, .timeout_s = 60};
    waiter_start(&w);
    pause_ms(200);
    assert_false(w.ended);
    assert_ls_ok(ls_etcd_revoke(a, la, &e), e);
    assert_ls_ok(ls_etcd_revoke(a, la, &e), e); /* it is revoked already */
    waiter_join(&w);
    int64_t second = create(b, "election", "b:1", lb, NULL);
    assert_true(second > first);
    assert_ls_fails(ls_etcd_keep_alive(a, la, &e), LS_EPEER, "expired", e);
    assert_ls_fails(
        ls_etcd_create(a, &(ls_etcd_entry){"other", "a", la}, &(ls_etcd_value){0}, &ours, &e),
        LS_EPEER, "lease not found", e);
    assert_ls_ok(ls_etcd_revoke(b, lb, &e), e);
    ls_etcd_close(a);
    ls_etcd_close(b);
}

/* Renews a lease of `ttl` seconds until it is older than that and b sees that the key "left" is
 * gone. False: it expired, since this busy machine renewed it too late. */
static bool keep(ls_etcd *a, ls_etcd *b, int64_t lease, int ttl, int64_t from) {
    ls_error e = {0};
    bool gone = false;
    for (int64_t begin = ls_clock_ns(), before = begin; !gone || since(begin) < ttl + 0.5;) {
        ls_status s = LS_OK;
        if (gone)
            pause_ms(300);
        else
            s = ls_etcd_watch(b, "left", from, 0.3, &gone, &e);
        if (s != LS_ETIMEOUT) assert_ls_ok(s, e); /* etcd may be too slow for so short a watch */
        s = ls_etcd_keep_alive(a, lease, &e);
        if (s == LS_EPEER && since(before) > ttl / 2.0) return false;
        assert_ls_ok(s, e);
        before = ls_clock_ns();
    }
    return true;
}

/* A lease that is kept alive outlives its TTL; one that is not expires. */
static void test_expiry(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *a = client(all, LIMIT_S), *b = client(all, LIMIT_S);
    ls_error e = {0};
    int64_t left = grant(b, 1), kept = 0;
    int64_t first = create(b, "left", "b", left, NULL);
    for (int ttl = 3; ttl < 60; ttl *= 2) {
        kept = grant(a, ttl);
        create(a, "kept", "a", kept, NULL);
        if (keep(a, b, kept, ttl, first + 1)) break;
    }
    assert_true(exists(b, "kept"));
    assert_false(exists(a, "left"));
    assert_ls_fails(ls_etcd_keep_alive(b, left, &e), LS_EPEER, "expired", e);
    assert_true(create(a, "left", "a", kept, NULL) > first);
    assert_ls_ok(ls_etcd_revoke(a, kept, &e), e);
    ls_etcd_close(a);
    ls_etcd_close(b);
}

static void test_values(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *t = client(all, LIMIT_S);
    ls_error e = {0};
    ls_etcd_value v = {0};
    int64_t lease = grant(t, 60);
    char text[300] = "";
    for (int n = 0; n < 300; n += n < 8 ? 1 : 97) {
        for (int i = 0; i < n; i++) text[i] = (char)(255 - i % 255);
        text[n] = 0;
        char *key = ls_format("values \"/\\\xff%d", n);
        create(t, key, text, lease, NULL);
        char *value = get(t, key, NULL);
        assert_string_equal(value, text);
        free(value);
        free(key);
    }
    /* A value written by another program may contain any byte. */
    post(cluster.port[0], NULL, "/v3/kv/put", "{\"key\":\"Zm9v\",\"value\":\"AP8A\"}", "200 OK");
    assert_ls_ok(ls_etcd_get(t, "foo", &v, &e), e);
    assert_int_equal(v.nbytes, 3);
    assert_memory_equal(v.value, "\0\xff\0", 4);
    assert_int_equal(v.lease, 0);
    ls_etcd_value_free(&v);
    assert_null(v.value);
    assert_ls_fails(ls_etcd_get(t, "", &v, &e), LS_EINVAL, "key is not provided", e);
    assert_ls_ok(ls_etcd_revoke(t, lease, &e), e);
    ls_etcd_close(t);
}

static void test_watch(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *t = client(all, LIMIT_S);
    ls_error e = {0};
    int64_t lease = grant(t, 60), revision = 0;
    get(t, "watched", &revision);
    watch_unchanged(t, "watched", revision + 1);
    create(t, "watched", "x", lease, NULL);
    assert_true(watch(t, "watched", revision + 1, LIMIT_S)); /* the change is in the past */
    assert_ls_ok(ls_etcd_revoke(t, lease, &e), e);
    char *now = get(t, "watched", &revision);
    assert_null(now);
    char *body = ls_format("{\"revision\":\"%lld\"}", (long long)revision);
    post(cluster.port[0], NULL, "/v3/kv/compaction", body, "200 OK");
    free(body);
    assert_true(watch(t, "watched", 1, LIMIT_S)); /* this revision is compacted */
    watch_unchanged(t, "watched", revision + 1);
    ls_etcd_close(t);
}

/* ---- endpoints that fail --------------------------------------------------------------------- */

static void restart(int i) {
    etcd_nodes_start(&cluster, i);
    assert_true(etcd_nodes_await(&cluster, i, &(ls_etcd_options){0}));
}

/* The endpoint that is asked first, perhaps etcd's leader, is killed: one client is idle, another
 * has a watch there. */
static void test_one_killed(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *t = client(all, LIMIT_S), *other = client(all, LIMIT_S);
    ls_error e = {0};
    int64_t lease = grant(t, 60);
    int64_t revision = create(t, "alive", "t", lease, NULL);
    waiter w = {.t = other, .key = "alive", .from = revision + 1, .timeout_s = 60};
    waiter_start(&w);
    pause_ms(200);
    etcd_nodes_kill(&cluster, 0);
    assert_ls_ok(ls_etcd_keep_alive(t, lease, &e), e);
    call_as_leader(t, "work");
    assert_ls_ok(ls_etcd_revoke(t, lease, &e), e);
    waiter_join(&w);
    restart(0);
    ls_etcd_close(t);
    ls_etcd_close(other);
}

/* The endpoint that is asked first, perhaps etcd's leader, is stopped: it accepts connections, and
 * does not answer. */
static void test_one_hangs(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *t = client(all, LIMIT_S);
    kill(cluster.pid[0], SIGSTOP);
    ls_error e = {0};
    int64_t lease = 0;
    ls_status s = ls_etcd_grant(t, 60, &lease, &e);
    if (s == LS_OK) s = ls_etcd_revoke(t, lease, &e);
    kill(cluster.pid[0], SIGCONT);
    assert_ls_ok(s, e);
    ls_etcd_close(t);
}

/* A silent endpoint is asked first, and not again after another one has answered. On a busy machine
 * the other one may be late and the silent one be asked again: in one of several calls it is
 * not. */
static void test_silent_is_avoided(void **state) {
    (void)state;
    NEEDS_ETCD();
    impostor m = {.manner = HANGS, .reply = ""};
    impostor_start(&m);
    char *both = ls_format("etcd://127.0.0.1:%d,127.0.0.1:%d", m.port, cluster.port[1]);
    ls_etcd *t = client(both, LIMIT_S);
    exists(t, "silent");
    assert_true(m.nasked >= 1);
    bool avoided = false;
    for (int call = 0; call < 20 && !avoided; call++) {
        int before = m.nasked;
        exists(t, "silent");
        avoided = m.nasked == before;
    }
    assert_true(avoided);
    ls_etcd_close(t);
    free(both);
    impostor_stop(&m);
}

static void test_two_killed(void **state) {
    (void)state;
    NEEDS_ETCD();
    ls_etcd *t = client(all, 3);
    ls_etcd_value v = {0};
    ls_error e = {0};
    etcd_nodes_kill(&cluster, 0);
    etcd_nodes_kill(&cluster, 2);
    for (int k = 0; k < 2; k++) {
        int64_t begin = ls_clock_ns();
        bool changed = false;
        ls_status s = k ? ls_etcd_watch(t, "x", 1, 60, &changed, &e) : ls_etcd_get(t, "x", &v, &e);
        assert_int_equal(s, LS_ETIMEOUT);
        assert_true(since(begin) >= 3);
        for (int i = 0; i < 3; i++) {
            char *name = ls_format("http://127.0.0.1:%d: ", cluster.port[i]);
            if (!strstr(e.msg, name)) fail_msg("'%s' does not name %s", e.msg, name);
            free(name);
        }
        assert_non_null(strstr(e.msg, "within 3.0 s"));
        assert_non_null(strstr(e.msg, "Failed to connect"));
    }
    etcd_nodes_start(&cluster, 0);
    restart(2);
    assert_true(etcd_nodes_await(&cluster, 0, &(ls_etcd_options){0}));
    ls_etcd_close(t);
    t = client(all, LIMIT_S);
    call_as_leader(t, "again");
    ls_etcd_close(t);
}

/* The first try succeeds, but its answer is lost. */
static void test_lost_answer(void **state) {
    (void)state;
    NEEDS_ETCD();
    impostor m = {.manner = SWALLOWS, .real = cluster.port[0]};
    ls_error e = {0};
    impostor_start(&m);
    char *both = ls_format("etcd://127.0.0.1:%d,127.0.0.1:%d", m.port, cluster.port[1]);
    ls_etcd *direct = client(all, LIMIT_S), *t = client(both, LIMIT_S);
    int64_t lease = grant(direct, 60), revision = 0;
    get(direct, "lost", &revision);
    assert_int_equal(create(t, "lost", "mine", lease, NULL), revision + 1);
    assert_true(m.nasked >= 1);
    assert_ls_ok(ls_etcd_revoke(t, lease, &e), e);
    ls_etcd_close(t);
    ls_etcd_close(direct);
    free(both);
    impostor_stop(&m);
}

/* If an endpoint has no leader, the client goes to the next one. */
static void test_no_leader(void **state) {
    (void)state;
    NEEDS_ETCD();
    static const char *const replies[] = {
        "HTTP/1.1 503 No\r\nConnection: close\r\n\r\n"
        "{\"error\":\"etcdserver: no leader\",\"code\":14}",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n",
        "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n<html>",
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"header\":",
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        impostor m = {.reply = replies[i]};
        impostor_start(&m);
        char *both = ls_format("etcd://127.0.0.1:%d,127.0.0.1:%d", m.port, cluster.port[1]);
        ls_etcd *t = client(both, LIMIT_S);
        /* The endpoint that answered is asked from then on, unless it is too slow. */
        call_as_leader(t, "elsewhere");
        assert_true(m.nasked >= 1 && m.nasked < 4);
        ls_etcd_close(t);
        t = client(both, LIMIT_S);
        watch_unchanged(t, "nothing", INT32_MAX);
        assert_true(m.nasked >= 2 && m.nasked < 6);
        ls_etcd_close(t);
        free(both);
        impostor_stop(&m);
    }
}

/* ---- users ----------------------------------------------------------------------------------- */

static const char PASSWORD[] = "p\"\\\n\xc3\xa4ss"; /* the same as in the JSON below */
#define PASSWORD_JSON_ "p\\\"\\\\\\n\xc3\xa4ss"

static void enable_users(void) { post(cluster.port[0], NULL, "/v3/auth/enable", "{}", "200 OK"); }

static char *root_token(void) {
    /* The client has a token, too, but does not show it. */
    static const char body[] = "{\"name\":\"root\",\"password\":\"" PASSWORD_JSON_ "\"}";
    char part[4096], *token = NULL;
    char *text = ls_format("POST /v3/auth/authenticate HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s",
                           sizeof body - 1, body);
    ls_buf reply = {0};
    int fd = dial(cluster.port[0]);
    assert_true(fd >= 0);
    send_all(fd, text, strlen(text));
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) ls_buf_append(&reply, part, (size_t)n);
    close(fd);
    char *at = reply.data ? strstr(reply.data, "\"token\":\"") : NULL;
    assert_non_null(at);
    at += 9;
    *strchr(at, '"') = 0;
    token = ls_strdup(at);
    ls_buf_free(&reply);
    free(text);
    return token;
}

static void disable_users(void) {
    char *token = root_token();
    post(cluster.port[0], token, "/v3/auth/disable", "{}", "200 OK");
    free(token);
}

static void test_users(void **state) {
    (void)state;
    NEEDS_ETCD();
    int port = cluster.port[0];
    ls_etcd_options o = {
        .endpoints = all, .user = "root", .password = PASSWORD, .timeout_s = LIMIT_S};
    ls_etcd_value v = {0};
    ls_error e = {0};
    ls_etcd *root = client_of(&o);
    assert_ls_fails(ls_etcd_get(root, "k", &v, &e), LS_EINVAL, "authentication is not enabled", e);
    post(port, NULL, "/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"" PASSWORD_JSON_ "\"}",
         "200 OK");
    post(port, NULL, "/v3/auth/user/add", "{\"name\":\"guest\",\"password\":\"g\"}", "200 OK");
    post(port, NULL, "/v3/auth/role/add", "{\"name\":\"root\"}", "200 OK");
    post(port, NULL, "/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}", "200 OK");
    enable_users();
    call_as_leader(root, "rooted");

    ls_etcd *anonymous = client(all, LIMIT_S);
    assert_ls_fails(ls_etcd_get(anonymous, "k", &v, &e), LS_EINVAL, "asks for a user", e);
    bool changed = false;
    assert_ls_fails(ls_etcd_watch(anonymous, "k", 1, 9, &changed, &e), LS_EINVAL, "asks for a user",
                    e);
    o.password = "secret";
    ls_etcd *liar = client_of(&o);
    assert_ls_fails(ls_etcd_get(liar, "k", &v, &e), LS_EINVAL, "invalid user ID or password", e);
    assert_non_null(strstr(e.msg, "etcd at http://127.0.0.1:"));
    assert_null(strstr(e.msg, "secret"));
    o.user = "guest", o.password = "g";
    ls_etcd *guest = client_of(&o);
    assert_ls_fails(ls_etcd_get(guest, "k", &v, &e), LS_EINVAL, "permission denied", e);
    assert_ls_fails(ls_etcd_watch(guest, "k", 1, 9, &changed, &e), LS_EINVAL, "permission", e);

    /* All tokens become invalid; the next call is a leader's, then a watch. */
    for (int k = 0; k < 2; k++) {
        disable_users();
        enable_users();
        if (k)
            watch_unchanged(root, "k", INT32_MAX);
        else
            call_as_leader(root, "rooted");
    }
    /* A server that was restarted knows no tokens. */
    etcd_nodes_kill(&cluster, 0);
    call_as_leader(root, "rooted");
    ls_etcd_options again = {.user = "root", .password = PASSWORD};
    etcd_nodes_start(&cluster, 0);
    assert_true(etcd_nodes_await(&cluster, 0, &again));
    call_as_leader(root, "rooted");
    disable_users();
    ls_etcd_close(root);
    ls_etcd_close(anonymous);
    ls_etcd_close(liar);
    ls_etcd_close(guest);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static void test_tls(void **state) {
    (void)state;
    NEEDS_ETCD();
    etcd_nodes c = etcd_nodes_certified();
    etcd_nodes_certify(c.folder, "other", "stranger");
    char path[5][96];
    static const char *const files[] = {"ca.pem", "node.pem", "node.key", "other.pem",
                                        "stranger.pem"};
    for (int i = 0; i < 5; i++) snprintf(path[i], sizeof path[i], "%s/%s", c.folder, files[i]);
    ls_etcd_options o = {.ca = path[0], .cert = path[1], .key = path[2], .timeout_s = LIMIT_S};
    etcd_nodes_open(&c, &o);
    char *endpoints = etcd_nodes_endpoints(&c);
    o.endpoints = endpoints;
    ls_etcd *t = client_of(&o);
    call_as_leader(t, "secure");
    ls_etcd_close(t);

    ls_etcd_value v = {0};
    ls_error e;
    ls_etcd_options wrong[5] = {o, o, o, o, o};
    char *named = ls_format("etcds://localhost:%d", c.port[0]);
    wrong[0].ca = path[3];
    wrong[1].ca = NULL;         /* the system's authorities */
    wrong[2].endpoints = named; /* the certificate is of 127.0.0.1 */
    wrong[3].key = path[0];     /* this is no key */
    wrong[4].cert = wrong[4].key = NULL;
    wrong[4].timeout_s = 3;
    static const char *const texts[] = {"certificate", "certificate", "localhost", "private key",
                                        "certificate"};
    for (int i = 0; i < 5; i++) {
        t = client_of(&wrong[i]);
        assert_ls_fails(ls_etcd_get(t, "k", &v, &e), i == 4 ? LS_ETIMEOUT : LS_EIO, texts[i], e);
        assert_non_null(strstr(e.msg, i == 2 ? "https://localhost:" : "https://127.0.0.1:"));
        ls_etcd_close(t);
    }
    char *plain = ls_format("etcd://127.0.0.1:%d", c.port[0]);
    t = client(plain, 0.5);
    assert_ls_fails(ls_etcd_get(t, "k", &v, &e), LS_ETIMEOUT, "http://127.0.0.1:", e);
    ls_etcd_close(t);
    free(plain);
    free(named);
    free(endpoints);
    etcd_nodes_close(&c);
}

static int set_up(void **state) {
    (void)state;
    /* A proxy in the environment is not used. */
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    installed = etcd_is_installed();
    if (!installed) return 0;
    strcpy(cluster.folder, "/tmp/etcd_test_XXXXXX");
    if (!mkdtemp(cluster.folder)) return -1;
    etcd_nodes_open(&cluster, &(ls_etcd_options){0});
    all = etcd_nodes_endpoints(&cluster);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (installed) etcd_nodes_close(&cluster);
    free(all);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_election),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_one_killed),
        cmocka_unit_test(test_one_hangs),
        cmocka_unit_test(test_silent_is_avoided),
        cmocka_unit_test(test_two_killed),
        cmocka_unit_test(test_lost_answer),
        cmocka_unit_test(test_no_leader),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_tls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
