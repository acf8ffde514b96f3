/* etcd_nodes.h - a cluster of real etcd servers on this host, for tests.
 *
 * Each server is a child process with free ports of 127.0.0.1 and a temporary folder; it dies with
 * this program. It writes to the page cache only, which outlives a killed server.
 */
#ifndef LS_TESTS_CLUSTER_ETCD_NODES_H
#define LS_TESTS_CLUSTER_ETCD_NODES_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/etcd.h"
#include "free_port.h"
#include "test.h"

enum { ETCD_NODES = 3, ETCD_START_S = 120 };

typedef struct etcd_nodes {
    int n;
    bool tls; /* with certificates in the folder: ca.pem, node.pem, node.key */
    char folder[64];
    pid_t pid[ETCD_NODES];     /* 0: it does not run */
    int port[ETCD_NODES];      /* for clients */
    int peer_port[ETCD_NODES]; /* for other nodes */
} etcd_nodes;

static inline bool etcd_is_installed(void) {
    char folders[4096], *rest = folders;
    snprintf(folders, sizeof folders, "%s", getenv("PATH") ? getenv("PATH") : "/usr/bin");
    for (char *dir; (dir = strsep(&rest, ":"));) {
        char *path = ls_format("%s/etcd", dir);
        bool found = access(path, X_OK) == 0;
        free(path);
        if (found) return true;
    }
    return false;
}

/* Returns "etcd://..." with all nodes; free() it. */
static inline char *etcd_nodes_endpoints(const etcd_nodes *c) {
    ls_buf b = {0};
    for (int i = 0; i < c->n; i++)
        ls_buf_printf(&b, "%s127.0.0.1:%d", i ? "," : c->tls ? "etcds://" : "etcd://", c->port[i]);
    return b.data;
}

static inline void etcd_nodes_exec(const etcd_nodes *c, int i) {
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
    const char *s = c->tls ? "s" : "", *dir = c->folder;
    ls_buf cluster = {0};
    for (int k = 0; k < c->n; k++)
        ls_buf_printf(&cluster, "%sn%d=http://127.0.0.1:%d", k ? "," : "", k, c->peer_port[k]);
    char *args[40];
    int n = 0;
    args[n++] = ls_strdup("etcd");
    args[n++] = ls_format("--name=n%d", i);
    args[n++] = ls_format("--data-dir=%s/n%d", dir, i);
    args[n++] = ls_format("--listen-client-urls=http%s://127.0.0.1:%d", s, c->port[i]);
    args[n++] = ls_format("--advertise-client-urls=http%s://127.0.0.1:%d", s, c->port[i]);
    args[n++] = ls_format("--listen-peer-urls=http://127.0.0.1:%d", c->peer_port[i]);
    args[n++] = ls_format("--initial-advertise-peer-urls=http://127.0.0.1:%d", c->peer_port[i]);
    args[n++] = ls_format("--initial-cluster=%s", cluster.data);
    args[n++] = ls_strdup("--heartbeat-interval=50");
    args[n++] = ls_strdup("--election-timeout=300");
    args[n++] = ls_strdup("--snapshot-count=1000");
    args[n++] = ls_strdup("--bcrypt-cost=4");
    args[n++] = ls_strdup("--unsafe-no-fsync");
    args[n++] = ls_strdup("--logger=zap");
    args[n++] = ls_strdup("--log-level=error");
    if (c->tls) {
        args[n++] = ls_format("--cert-file=%s/node.pem", dir);
        args[n++] = ls_format("--key-file=%s/node.key", dir);
        args[n++] = ls_format("--trusted-ca-file=%s/ca.pem", dir);
        args[n++] = ls_strdup("--client-cert-auth");
    }
    args[n] = NULL;
    for (size_t k = 0; k < sizeof proxies / sizeof *proxies; k++) unsetenv(proxies[k]);
    setenv("GOMAXPROCS", "2", 1);
#ifdef __aarch64__
    setenv("ETCD_UNSUPPORTED_ARCH", "arm64", 1);
#endif
    execvp("etcd", args);
}

static inline void etcd_nodes_start(etcd_nodes *c, int i) {
    pid_t parent = getpid();
    assert_int_equal(c->pid[i], 0);
    c->pid[i] = fork();
    assert_true(c->pid[i] >= 0);
    if (c->pid[i]) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    char *path = ls_format("%s/log%d", c->folder, i);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    etcd_nodes_exec(c, i);
    _exit(127);
}

static inline void etcd_nodes_kill(etcd_nodes *c, int i) {
    if (!c->pid[i]) return;
    kill(c->pid[i], SIGKILL);
    waitpid(c->pid[i], NULL, 0);
    c->pid[i] = 0;
}

/* Waits until node i answers a client with these options. False: it has ended, or is too slow. */
static inline bool etcd_nodes_await(etcd_nodes *c, int i, const ls_etcd_options *like) {
    ls_etcd_options o = *like;
    ls_etcd *t = NULL;
    ls_etcd_value v = {0};
    ls_error e = {0};
    char *one = ls_format("etcd%s://127.0.0.1:%d", c->tls ? "s" : "", c->port[i]);
    int64_t begin = ls_clock_ns();
    o.endpoints = one;
    o.timeout_s = 0.5;
    assert_ls_ok(ls_etcd_open(&o, &t, &e), e);
    ls_status s;
    while ((s = ls_etcd_get(t, "none", &v, &e)) != LS_OK) {
        if (waitpid(c->pid[i], NULL, WNOHANG) == c->pid[i]) c->pid[i] = 0;
        if (!c->pid[i] || ls_clock_ns() - begin > (int64_t)ETCD_START_S * 1000000000) break;
    }
    if (s != LS_OK) {
        print_error("%s; the log of node %d:\n", e.msg, i);
        char *show = ls_format("tail -n 5 %s/log%d >&2", c->folder, i);
        if (system(show) != 0) print_error("it has none\n");
        free(show);
    }
    ls_etcd_value_free(&v);
    ls_etcd_close(t);
    free(one);
    return s == LS_OK;
}

/* Starts all nodes; the folder exists. Another program may take a port first: then tries again. */
static inline void etcd_nodes_open(etcd_nodes *c, const ls_etcd_options *o) {
    for (int tries = 0; tries < 3; tries++) {
        int up = 0;
        for (int i = 0; i < c->n; i++) {
            c->port[i] = free_port();
            c->peer_port[i] = free_port();
        }
        for (int i = 0; i < c->n; i++) etcd_nodes_start(c, i);
        while (up < c->n && etcd_nodes_await(c, up, o)) up++;
        if (up == c->n) return;
        for (int i = 0; i < c->n; i++) etcd_nodes_kill(c, i);
        char *remove = ls_format("rm -rf %s/n[0-9]", c->folder);
        assert_int_equal(system(remove), 0);
        free(remove);
    }
    fail_msg("etcd does not start");
}

static inline void etcd_nodes_close(etcd_nodes *c) {
    for (int i = 0; i < c->n; i++) etcd_nodes_kill(c, i);
    char *remove = ls_format("rm -rf %s", c->folder);
    if (system(remove) != 0) print_error("%s is left\n", c->folder);
    free(remove);
}

/* Makes an authority, NAME.pem and NAME.key, and a certificate that it signs, SIGNED.pem and
 * SIGNED.key. */
static inline void etcd_nodes_certify(const char *dir, const char *name, const char *signed_) {
    static const char words[] =
        "cd %s && printf '[req]\\ndistinguished_name=dn\\n[dn]\\n[ca]\\nbasicConstraints=CA:TRUE\\n"
        "[leaf]\\nbasicConstraints=CA:FALSE\\nsubjectAltName=IP:127.0.0.1\\n' >config && "
        "new='openssl req -config config -x509 -days 2 -nodes -newkey ec "
        "-pkeyopt ec_paramgen_curve:P-256' && "
        "$new -extensions ca -subj /CN=%s -keyout %s.key -out %s.pem 2>log && "
        "$new -extensions leaf -subj /CN=%s -CA %s.pem -CAkey %s.key -keyout %s.key -out %s.pem "
        "2>log";
    char *command = ls_format(words, dir, name, name, name, signed_, name, name, signed_, signed_);
    assert_int_equal(system(command), 0);
    free(command);
}

/* A node with TLS that is not started yet: its folder, with certificates. Skips the test if the
 * program that makes them is not installed. */
static inline etcd_nodes etcd_nodes_certified(void) {
    if (system("openssl version >/dev/null 2>&1") != 0)
        skip_because("the program openssl is not installed");
    etcd_nodes c = {.n = 1, .tls = true, .folder = "/tmp/etcd_tls_XXXXXX"};
    assert_non_null(mkdtemp(c.folder));
    etcd_nodes_certify(c.folder, "ca", "node");
    return c;
}

#endif
