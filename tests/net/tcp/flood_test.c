/* flood_test.c - strangers come by the thousand: the memory that they can take is bounded, they
 * don't fill the log, and workers that come among them get in. */
/* ctest: slow seconds=6 */
#include <sys/resource.h>

#include "net/crew.h"
#include "net/tcp/conn.h"

/* How much a worker may grow, whatever comes: the budget of strangers (16 MB), and what the
 * kernel, the allocator and the worker itself need beside it. */
enum { MOST_KB = 32 * 1024 };

static long peak_kb(pid_t pid) {
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %ld", &kb);
    if (f) fclose(f);
    return kb;
}

/* The hello that a stranger sends:
 *  LONG   one that announces 128 KB, without its end;
 *  SHORT  the first bytes of that one;
 *  CUT    the first half of one that is as long as ours;
 *  WHOLE  a worker's, recorded, after which nothing follows. */
typedef enum kind { LONG, SHORT, CUT, WHOLE, KINDS } kind;

static size_t long_hello(unsigned char *b, size_t most) {
    static const unsigned char message[] = {1, 1, 0xff, 0xf0};
    size_t n = 0;
    for (bool first = true; n + 16389 < most; first = false) {
        static const unsigned char record[] = {0x16, 3, 1, 0x40, 0};
        memcpy(b + n, record, sizeof record);
        memset(b + n + 5, 7, 16384);
        if (first) memcpy(b + n + 5, message, sizeof message);
        n += 5 + 16384;
    }
    return n;
}

static size_t record_hello(const char *secret, unsigned char *b, size_t most) {
    ls_secure *s = NULL;
    ls_error e = {0};
    ls_key key;
    bool found = false;
    int fd[2];
    setenv("LOCKSTEP_KEY", secret, 1);
    assert_ls_ok(ls_key_find(&key, &found, &e), e);
    unsetenv("LOCKSTEP_KEY");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    assert_ls_ok(ls_secure_open(fd[0], false, &key, &s, &e), e);
    assert_int_equal(ls_secure_handshake(s, &e), LS_IO_AGAIN_READ);
    ssize_t n = recv(fd[1], b, most, 0);
    assert_true(n > 100);
    ls_secure_close(s);
    close(fd[0]);
    close(fd[1]);
    return (size_t)n;
}

static size_t make_hello(kind k, const char *secret, unsigned char *b, size_t most) {
    static const unsigned char cut[] = {0x16, 3, 1, 1, 0x2c, 1, 0, 1, 0x28};
    if (k == WHOLE) return record_hello(secret, b, most);
    size_t n = long_hello(b, most);
    if (k == CUT) memcpy(b, cut, sizeof cut);
    return k == LONG ? n : k == SHORT ? 9 : 150;
}

static int connect_to(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) return fd;
    close(fd);
    return -1;
}

/* Connects `n` strangers, which each send `hello` and stay. */
static void flood(int *fds, int n, int port, const unsigned char *hello, size_t nbytes) {
    for (int i = 0; i < n; i++) {
        fds[i] = connect_to(port);
        if (fds[i] >= 0) (void)!send(fds[i], hello, nbytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

static void close_all(const int *fds, int n) {
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0) close(fds[i]);
}

enum { MANY = 4096, FEWER = 1024 };
static int fds[MANY];
static unsigned char hello[131072];

/* A worker has grown by `kb` in `s` seconds. Each process logs one line a second at most. */
static void check_growth(const crew *c, const char *when, long kb, double s) {
    int lines = occurrences(c->text, " dropped: ");
    print_message("%s: grew by %ld KB, %d lines in %.1f s\n", when, kb, lines, s);
#ifndef __SANITIZE_ADDRESS__
    assert_true(kb < MOST_KB);
#endif
    assert_true(lines <= c->n * ((int)s + 2));
}

/* Strangers send hellos to worker 0, which waits for the other workers; then these join. */
static void test_forming(void **state) {
    (void)state;
    static const char *const names[] = {"forming, long", "short", "cut", "whole"};
    for (kind k = 0; k < KINDS; k++) {
        crew *c = crew_new(3, once);
        size_t n = make_hello(k, c->secret, hello, sizeof hello);
        c->o.timeout_s = 60;
        c->workers[1].waits = c->workers[2].waits = true;
        int64_t begin = ls_clock_ns();
        crew_start(c);
        close(connect_to(
            c->port)); /* worker 0 listens, and soon has the pages that it always needs */
        pause_ms(200);
        long before = peak_kb(c->pids[0]);
        int come = k == WHOLE ? FEWER : MANY;
        flood(fds, come, c->port, hello, n);
        pause_ms(300);
        atomic_store(over, 1);
        while (!reports[0].open) pause_ms(5);
        long kb = peak_kb(c->pids[0]) - before;
        close_all(fds, come);
        crew_wait(c);
        check_all_well(c);
        check_growth(c, names[k], kb, (double)(ls_clock_ns() - begin) / 1e9);
        free(c);
    }
}

/* Floods workers that train. */
static void test_running(void **state) {
    (void)state;
    crew *c = crew_new(3, many);
    size_t n = make_hello(WHOLE, c->secret, hello, sizeof hello);
    int64_t begin = ls_clock_ns();
    crew_start(c);
    crew_await(c, 4);
    long before = peak_kb(c->pids[1]);
    flood(fds, FEWER, reports[1].port, hello, n);
    int rounds = atomic_load(&reports[0].rounds);
    crew_await(c, rounds + 8);
    pause_ms(300);
    long kb = peak_kb(c->pids[1]) - before;
    close_all(fds, FEWER);
    crew_stop(c);
    check_all_well(c);
    check_growth(c, "running", kb, (double)(ls_clock_ns() - begin) / 1e9);
    free(c);
}

/* Starts a process that floods these ports for as long as it lives. */
static pid_t start_flood(const int *ports, int n, const char *secret) {
    pid_t parent = getpid(), pid = fork();
    if (pid) return pid;
    int held[1500], at = 0;
    for (int i = 0; i < 1500; i++) held[i] = -1;
    size_t nbytes[KINDS];
    static unsigned char hellos[KINDS][20000];
    for (kind k = 0; k < KINDS; k++) nbytes[k] = make_hello(k, secret, hellos[k], sizeof hellos[k]);
    while (getppid() == parent) {
        if (held[at] >= 0) close(held[at]);
        held[at] = connect_to(ports[at % n]);
        if (held[at] >= 0)
            (void)!send(held[at], hellos[at % 7 % KINDS], nbytes[at % 7 % KINDS],
                        MSG_NOSIGNAL | MSG_DONTWAIT);
        at = (at + 1) % 1500;
    }
    _exit(0);
}

static void stop_flood(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static ls_status later(int rank, ls_group *g, ls_error *e) {
    reports[rank].port = listening_port();
    atomic_store(&reports[rank].rounds, 1);
    while (atomic_load(over) < 2) pause_ms(5);
    return once(rank, g, e);
}

/* Workers join during a flood at worker 0's port, and connect to each other during one at all
 * ports. */
static void test_in_a_flood(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        crew *c = crew_new(4, later);
        int ports[4];
        c->plain = plain;
        c->o.timeout_s = 60;
        c->workers[1].waits = c->workers[2].waits = c->workers[3].waits = true;
        crew_start(c);
        pid_t pid = start_flood(&c->port, 1, c->secret);
        pause_ms(300);
        atomic_store(over, 1);
        crew_await(c, 1);
        stop_flood(pid);
        for (int i = 0; i < 4; i++) ports[i] = reports[i].port;
        pid = start_flood(ports, 4, c->secret);
        pause_ms(300);
        atomic_store(over, 2);
        crew_wait(c);
        stop_flood(pid);
        check_all_well(c);
        free(c);
    }
}

int main(int argc, char **argv) {
    struct rlimit most;
    if (crew_set_up() != 0 || getrlimit(RLIMIT_NOFILE, &most) != 0) return 1;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forming),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_in_a_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
