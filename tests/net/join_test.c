/* join_test.c - groups form over TCP whoever comes, in whatever order, and whatever else knocks;
 * running workers are not disturbed by strangers; those who are missing, lost or stopped are named.
 */
#include "net/join.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "listeners.h"
#include "lockstep/group.h"
#include "net/conn.h"
#include "test.h"

/* ---- a crew: processes that are told by their environment to form a group ---------------------
 */

enum { MOST = 72, SECRET = 65 };

typedef ls_status crew_fn(int rank, ls_group *, ls_error *);

/* What a worker is told, where that is not what it should be told. */
typedef struct crew_worker {
    int rank, size;     /* 0: as it should be */
    int delay_ms;       /* before it comes */
    bool absent, plain; /* plain: without a key */
    const char *secret;
} crew_worker;

/* What it tells, in memory that all share. */
typedef struct crew_report {
    ls_status status;
    int64_t came, open, end; /* when, ns */
    int port;                /* where it listens once the group is open */
    char doors[256];         /* the same, as the kernel tells of it */
    atomic_int rounds;
    char msg[512];
} crew_report;

typedef struct crew {
    int n, size; /* processes; workers of the group */
    int port, listen_fd;
    bool plain;
    bool bind_itself; /* worker 0 makes its own listening socket */
    const char *host; /* NULL: 127.0.0.1; for workers that bind themselves */
    char secret[SECRET];
    crew_fn *fn;
    ls_group_options o;
    crew_worker workers[MOST];
    pid_t pids[MOST];
    FILE *log;
    char text[65536]; /* of the log */
} crew;

static crew_report *reports; /* [MOST] shared */
static atomic_int *over;     /* shared: the test has seen enough */

static void pause_ms(int ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static int bound_socket(int *port_p) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port_p = ntohs(a.sin_port);
    return fd;
}

static crew *crew_new(int n, crew_fn *fn) {
    crew *c = calloc(1, sizeof *c);
    c->n = c->size = n;
    c->fn = fn;
    c->o.transport = "tcp";
    c->o.timeout_s = 20;
    c->listen_fd = -1;
    memset(reports, 0, MOST * sizeof *reports);
    atomic_store(over, 0);
    ls_key_make(c->secret);
    return c;
}

/* Where this process listens. */
static int listening_port(void) {
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in a = {0};
        int listens = 0;
        socklen_t n = sizeof listens, na = sizeof a;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || !listens) continue;
        if (getsockname(fd, (struct sockaddr *)&a, &na) == 0) return ntohs(a.sin_port);
    }
    return 0;
}

static void set_number(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void set_environment(const crew *c, int i) {
    const crew_worker *w = &c->workers[i];
    char address[300];
    int rank = w->rank ? w->rank : i;
    snprintf(address, sizeof address, "%s:%d", c->host ? c->host : "127.0.0.1", c->port);
    set_number("LOCKSTEP_RANK", rank);
    set_number("LOCKSTEP_SIZE", w->size ? w->size : c->size);
    setenv("LOCKSTEP_ADDR", address, 1);
    if (c->plain != w->plain)
        setenv("LOCKSTEP_INSECURE", "1", 1);
    else
        setenv("LOCKSTEP_KEY", w->secret ? w->secret : c->secret, 1);
    if (rank == 0 && !c->bind_itself)
        set_number("LOCKSTEP_LISTEN_FD", c->listen_fd);
    else if (c->listen_fd >= 0)
        close(c->listen_fd);
}

static _Noreturn void crew_main(const crew *c, int i) {
    crew_report *r = &reports[i];
    ls_group *g = NULL;
    ls_error e = {0};
    alarm(60);
    set_environment(c, i);
    dup2(fileno(c->log), STDERR_FILENO);
    pause_ms(c->workers[i].delay_ms);
    r->came = ls_clock_ns();
    r->status = ls_group_open(&c->o, &g, &e);
    r->open = ls_clock_ns();
    r->port = listening_port();
    listeners_of(getpid(), r->doors, sizeof r->doors);
    if (r->status == LS_OK) r->status = c->fn(ls_group_rank(g), g, &e);
    r->end = ls_clock_ns();
    memcpy(r->msg, e.msg, sizeof r->msg);
    ls_group_close(g);
    _exit(0);
}

static void crew_start(crew *c) {
    c->listen_fd = bound_socket(&c->port);
    if (c->bind_itself) {
        close(c->listen_fd);
        c->listen_fd = -1;
    } else {
        assert_int_equal(listen(c->listen_fd, 1024), 0);
    }
    c->log = tmpfile();
    fflush(NULL);
    for (int i = 0; i < c->n; i++) {
        if (c->workers[i].absent) continue;
        c->pids[i] = fork();
        if (c->pids[i] == 0) crew_main(c, i);
    }
    if (c->listen_fd >= 0) close(c->listen_fd);
}

static void crew_wait(crew *c) {
    for (int i = 0; i < c->n; i++)
        if (c->pids[i]) waitpid(c->pids[i], NULL, 0);
    rewind(c->log);
    c->text[fread(c->text, 1, sizeof c->text - 1, c->log)] = 0;
    fclose(c->log);
}

static void crew_stop(crew *c) {
    atomic_store(over, 1);
    crew_wait(c);
}

/* Until all of the group have made `rounds` rounds. */
static void crew_await(const crew *c, int rounds) {
    int64_t limit = ls_clock_ns() + (int64_t)30 * 1000000000;
    for (int i = 0; i < c->size; i++)
        while (atomic_load(&reports[i].rounds) < rounds) {
            if (ls_clock_ns() > limit || reports[i].end)
                fail_msg("worker %d made %d rounds of %d: %s", i, atomic_load(&reports[i].rounds),
                         rounds, reports[i].msg);
            pause_ms(1);
        }
}

static void check_worker(const crew *c, int i, ls_status want, const char *text) {
    const crew_report *r = &reports[i];
    bool told = !text || strstr(r->msg, text);
    if (r->status == want && told && r->end) return;
    print_error("worker %d: %s '%s', not %s '%s'; log:\n%s\n", i, ls_status_name(r->status), r->msg,
                ls_status_name(want), text ? text : "", c->text);
    fail();
}

static void check_log(const crew *c, const char *text) {
    if (strstr(c->text, text)) return;
    print_error("the log does not say '%s':\n%s\n", text, c->text);
    fail();
}

/* Until the workers have written it. */
static void await_log(const crew *c, const char *text) {
    static char said[65536];
    for (int ms = 0; ms < 15000; ms += 10) {
        ssize_t n = pread(fileno(c->log), said, sizeof said - 1, 0);
        said[n > 0 ? n : 0] = 0;
        if (strstr(said, text)) return;
        pause_ms(10);
    }
    fail_msg("the log does not say '%s':\n%s", text, said);
}

static void check_all_well(const crew *c) {
    for (int i = 0; i < c->size; i++) check_worker(c, i, LS_OK, NULL);
}

/* ---- what workers do --------------------------------------------------------------------------
 */

static ls_status sum_right(int rank, ls_group *g, size_t count, ls_error *e) {
    int n = ls_group_size(g);
    float *x = calloc(count + 1, sizeof *x);
    for (size_t i = 0; i < count; i++) x[i] = (float)((i * 7 + (size_t)rank * 13) % 31);
    ls_status s = ls_all_reduce(g, x, x, count, LS_F32, LS_SUM, e);
    for (size_t i = 0; i < count && s == LS_OK; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += (float)((i * 7 + (size_t)k * 13) % 31);
        if (x[i] != sum) s = ls_fail(e, LS_EIO, "element %zu is %g, not %g", i, x[i], sum);
    }
    free(x);
    return s;
}

static ls_status once(int rank, ls_group *g, ls_error *e) {
    LS_TRY(sum_right(rank, g, 1000, e));
    return sum_right(rank, g, 100000, e);
}

static ls_status nothing(int rank, ls_group *g, ls_error *e) {
    (void)rank;
    return ls_barrier(g, e);
}

/* Until the test has seen enough; all stop after the same round. */
static ls_status many(int rank, ls_group *g, ls_error *e) {
    static const size_t sizes[] = {1, 1000, 30000, 200000};
    for (int round = 0;; round++) {
        int32_t stop = atomic_load(over);
        LS_TRY(sum_right(rank, g, sizes[round % 4], e));
        LS_TRY(ls_all_reduce(g, &stop, &stop, 1, LS_I32, LS_MAX, e));
        atomic_store(&reports[rank].rounds, round + 1);
        if (stop) return LS_OK;
    }
}

/* ---- who comes, and when ----------------------------------------------------------------------
 */

static void test_any_order(void **state) {
    (void)state;
    static const int delays[][4] = {{0}, {300, 0, 0, 0}, {300, 200, 100, 0}, {0, 300, 0, 150}};
    for (int i = 0; i < 8; i++)
        for (int plain = 0; plain < 2; plain++) {
            crew *c = crew_new(4, once);
            c->plain = plain;
            c->bind_itself = i >= 4;
            for (int k = 0; k < 4; k++) c->workers[k].delay_ms = delays[i % 4][k];
            crew_start(c);
            crew_wait(c);
            check_all_well(c);
            free(c);
        }
}

static void test_missing(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++)
        for (int late = 0; late < 3; late++) { /* who comes last, of those who come */
            crew *c = crew_new(5, once);
            c->plain = plain;
            c->o.timeout_s = 0.8;
            c->workers[2].absent = c->workers[4].absent = true;
            c->workers[late == 2 ? 3 : late].delay_ms = 300;
            crew_start(c);
            crew_wait(c);
            for (int i = 0; i < 4; i++) {
                if (i == 2) continue;
                check_worker(c, i, LS_ETIMEOUT, "2 of 5 workers did not come within 0.8 s: 2 4");
                assert_true(reports[i].end - reports[i].came < 2000000000);
            }
            free(c);
        }
}

static void test_no_worker_0(void **state) {
    (void)state;
    crew *c = crew_new(3, once);
    c->o.timeout_s = 0.5;
    c->bind_itself = true;
    c->workers[0].absent = true;
    crew_start(c);
    crew_wait(c);
    for (int i = 1; i < 3; i++) {
        check_worker(c, i, LS_ETIMEOUT, "no one listens at 127.0.0.1:");
        check_worker(c, i, LS_ETIMEOUT, "where worker 0 should, within 0.5 s");
    }
    free(c);
}

/* A worker that has come dies before the group is complete, and comes again. */
static void test_comes_again(void **state) {
    (void)state;
    crew *c = crew_new(4, once);
    c->size = 3;
    c->workers[2].delay_ms = 600;
    c->workers[3] = (crew_worker){.rank = 1, .delay_ms = 400};
    crew_start(c);
    pause_ms(200);
    kill(c->pids[1], SIGKILL);
    crew_wait(c);
    check_worker(c, 0, LS_OK, NULL);
    check_log(c, "is gone");
    check_worker(c, 2, LS_OK, NULL);
    check_worker(c, 3, LS_OK, NULL); /* the second worker 1 */
    free(c);
}

/* ---- where they listen ------------------------------------------------------------------------
 */

static void check_doors(const crew *c, int from, const char *address) {
    for (int i = from; i < c->n; i++) {
        const char *at = reports[i].doors;
        if (strncmp(at, address, strlen(address)) == 0 && strchr(at, ' ') == strrchr(at, ' '))
            continue;
        fail_msg("worker %d listens at %s, not at %s; log:\n%s", i, at, address, c->text);
    }
}

/* At the address that worker 0 was given; the others where they reach it from. */
static void test_doors(void **state) {
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "localhost", "127.0.0.2"};
    for (int i = 0; i < 4; i++) {
        crew *c = crew_new(3, once);
        c->bind_itself = i > 0;
        c->host = i ? hosts[i - 1] : NULL;
        c->plain = i == 1;
        crew_start(c);
        crew_wait(c);
        check_all_well(c);
        if (i != 2) check_doors(c, 1, "127.0.0.1:"); /* localhost may be ::1 */
        if (i == 3) check_doors(&(crew){.n = 1}, 0, "127.0.0.2:");
        if (i < 2) check_doors(c, 0, "127.0.0.1:");
        for (int k = 0; k < 3; k++) assert_null(strstr(reports[k].doors, "0.0.0.0:"));
        assert_null(strstr(c->text, "all addresses"));
        free(c);
    }
    /* One that is told where, and does not come from another address. */
    crew *c = crew_new(3, once);
    c->bind_itself = true;
    setenv("LOCKSTEP_LISTEN", "127.0.0.3", 1);
    c->host = "127.0.0.3";
    crew_start(c);
    crew_wait(c);
    unsetenv("LOCKSTEP_LISTEN");
    check_all_well(c);
    check_doors(c, 0, "127.0.0.3:");
    free(c);
}

/* A host's own name is often a loopback address there (127.0.1.1), and another one elsewhere; an
 * address may be forwarded. Worker 0 is to be reached all the same, and says where it listens. */
static void test_other_addresses(void **state) {
    (void)state;
    crew *c = crew_new(1, nothing);
    c->size = 2;
    c->bind_itself = true;
    c->host = "192.0.2.1"; /* of nobody */
    c->o.timeout_s = 0.2;
    crew_start(c);
    crew_wait(c);
    check_worker(c, 0, LS_ETIMEOUT, "did not come");
    check_log(c, "worker 0 listens at all addresses of this host, port ");
    check_log(c, "'192.0.2.1' is none of them");
    free(c);
    c = crew_new(1, nothing);
    c->size = 2;
    c->bind_itself = true;
    setenv("LOCKSTEP_LISTEN", "192.0.2.1", 1);
    c->o.timeout_s = 0.2;
    crew_start(c);
    crew_wait(c);
    unsetenv("LOCKSTEP_LISTEN");
    check_worker(c, 0, LS_EIO, "can't listen at 192.0.2.1:");
    free(c);
}

/* ---- impostors --------------------------------------------------------------------------------
 */

typedef struct impostor {
    crew_worker worker;
    bool plain; /* the group */
    ls_status status;
    const char *told, *logged;
} impostor;

static void test_impostors(void **state) {
    (void)state;
    static const impostor tries[] = {
        {{.rank = 1}, false, LS_EPEER, "worker 1 has come already", "worker 1 has come already"},
        {{.rank = 1}, true, LS_EPEER, "worker 1 has come already", "worker 1 has come already"},
        {{.rank = 2, .size = 5},
         false,
         LS_EPEER,
         "it belongs to a group of 5 workers, this one has 3",
         "it belongs to a group of 5 workers"},
        {{.rank = 2, .secret = "another secret of enough characters"},
         false,
         LS_EPEER,
         "join key",
         "is dropped: "},
        {{.rank = 2, .plain = true}, false, LS_EPEER, "closed", "is dropped: "},
        {{.rank = 2, .plain = true}, true, LS_EPEER, "join key", "is dropped: "},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        crew *c = crew_new(4, once);
        c->size = 3;
        c->plain = tries[i].plain;
        c->workers[2].delay_ms = 500;
        c->workers[3] = tries[i].worker;
        c->workers[3].delay_ms = 250;
        crew_start(c);
        crew_wait(c);
        check_all_well(c);
        check_worker(c, 3, tries[i].status, tries[i].told);
        check_log(c, tries[i].logged);
        free(c);
    }
}

/* ---- strangers --------------------------------------------------------------------------------
 */

enum { IDLE = 200, STRANGERS = IDLE + 16 };

typedef struct crowd {
    int fds[STRANGERS];
    int n, slow;
} crowd;

static int knock(crowd *x, int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    x->fds[x->n++] = fd;
    return fd;
}

static void say(int fd, const void *data, size_t n) {
    if (send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return; /* it has hung up already */
}

static void say_frame(int fd, int kind, uint64_t nbytes, size_t more) {
    unsigned char b[LS_FRAME_NBYTES + 256] = {0x53, 0x4c};
    b[2] = (unsigned char)kind;
    for (int i = 0; i < 8; i++) b[24 + i] = (unsigned char)(nbytes >> 8 * i);
    memset(b + LS_FRAME_NBYTES, 1, 256);
    say(fd, b, LS_FRAME_NBYTES + more);
}

/* All that strangers do, at one door. */
static void crowd_comes(crowd *x, int port) {
    static const unsigned char record[] = {0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0x3f, 0xfc};
    unsigned char garbage[5000];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof garbage; i++) {
        seed = seed * 1664525 + 1013904223;
        garbage[i] = (unsigned char)(seed >> 24);
    }
    *x = (crowd){0};
    for (int i = 0; i < IDLE; i++) knock(x, port);
    say(knock(x, port), garbage, sizeof garbage);
    say(knock(x, port), "GET / HTTP/1.1\r\n\r\n", 18);
    say(knock(x, port), record, sizeof record); /* a TLS record that never ends */
    for (int kind = 0; kind < 4; kind++) say_frame(knock(x, port), kind, (uint64_t)1 << 62, 200);
    say_frame(knock(x, port), 1, 32, 7); /* a hello, or a greeting, that never ends */
    say_frame(knock(x, port), 1, 24, 7);
    say_frame(knock(x, port), 1, 32, 32); /* and whole ones without sense */
    say_frame(knock(x, port), 1, 24, 24);
    x->slow = knock(x, port);
    struct linger hard = {.l_onoff = 1};
    close(knock(x, port));
    x->n--;
    setsockopt(knock(x, port), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(x->fds[--x->n]); /* with a reset */
}

static void crowd_goes(crowd *x) {
    for (int i = 0; i < x->n; i++) close(x->fds[i]);
}

/* One of them sends a byte now and then. */
static void crowd_waits(crowd *x, int ms) {
    for (int64_t end = ls_clock_ns() + (int64_t)ms * 1000000; ls_clock_ns() < end; pause_ms(300))
        say(x->slow, "S", 1);
}

static void test_strangers_while_forming(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        crowd x;
        crew *c = crew_new(4, once);
        c->plain = plain;
        c->workers[1].delay_ms = 300;
        c->workers[2].delay_ms = 600;
        c->workers[3].delay_ms = 1500;
        crew_start(c);
        crowd_comes(&x, c->port);
        crowd_waits(&x, 1300);
        crew_wait(c);
        crowd_goes(&x);
        check_all_well(c);
        check_log(c, "a connection from 127.0.0.1:");
        check_log(c, "is dropped: ");
        for (int i = 0; i < 4; i++) /* in time, too */
            assert_true(reports[i].open - reports[3].came < 1500000000);
        free(c);
    }
}

static void test_strangers_at_running_workers(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        crowd x[3];
        crew *c = crew_new(3, many);
        c->plain = plain;
        crew_start(c);
        crew_await(c, 4);
        for (int i = 0; i < 3; i++) crowd_comes(&x[i], reports[i].port);
        int rounds = atomic_load(&reports[0].rounds);
        crowd_waits(&x[1], 1000);
        crew_await(c, rounds + 8);
        crew_stop(c);
        for (int i = 0; i < 3; i++) crowd_goes(&x[i]);
        check_all_well(c);
        check_log(c, plain ? "it does not greet" : "has another join key, or none");
        free(c);
    }
}

/* The first connections between workers are made while strangers hold the doors. */
static ls_status after_a_while(int rank, ls_group *g, ls_error *e) {
    reports[rank].port = listening_port();
    atomic_store(&reports[rank].rounds, 1);
    while (!atomic_load(over)) pause_ms(5);
    return once(rank, g, e);
}

static void test_strangers_come_first(void **state) {
    (void)state;
    crowd x[3];
    crew *c = crew_new(3, after_a_while);
    crew_start(c);
    crew_await(c, 1);
    for (int i = 0; i < 3; i++) crowd_comes(&x[i], reports[i].port);
    crew_stop(c);
    for (int i = 0; i < 3; i++) crowd_goes(&x[i]);
    check_all_well(c);
    free(c);
}

/* ---- workers that are lost or stopped ---------------------------------------------------------
 */

static void kill_one(int n, int victim, const char *algorithm, bool plain) {
    crew *c = crew_new(n, many);
    char name[32];
    c->plain = plain;
    c->o.algorithm = algorithm;
    crew_start(c);
    crew_await(c, 5);
    int64_t killed = ls_clock_ns();
    kill(c->pids[victim], SIGKILL);
    crew_wait(c);
    snprintf(name, sizeof name, "lost worker %d (pid %d", victim, c->pids[victim]);
    for (int i = 0; i < n; i++) {
        if (i == victim) continue;
        check_worker(c, i, LS_EPEER, name);
        assert_true(reports[i].end - killed < 2000000000);
    }
    free(c);
}

static void test_killed(void **state) {
    (void)state;
    static const char *const algorithms[] = {NULL, "ring", "double_tree", "halving"};
    for (int plain = 0; plain < 2; plain++)
        for (int a = 0; a < 4; a++) {
            kill_one(2, 1, algorithms[a], plain);
            kill_one(3, 0, algorithms[a], plain);
            kill_one(8, 3, algorithms[a], plain);
        }
}

static void test_stopped(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        char name[64];
        crew *c = crew_new(3, many);
        c->plain = plain;
        c->o.report_s = 0.3;
        crew_start(c);
        crew_await(c, 5);
        kill(c->pids[1], SIGSTOP);
        snprintf(name, sizeof name, "worker 1 (pid %d) is stopped", c->pids[1]);
        await_log(c, name);
        kill(c->pids[1], SIGCONT);
        crew_stop(c);
        check_all_well(c);
        free(c);
    }
}

/* It stays so: the limit ends it. */
static void test_stays_stopped(void **state) {
    (void)state;
    crew *c = crew_new(3, many);
    c->o.timeout_s = 1;
    c->o.report_s = 0.3;
    crew_start(c);
    crew_await(c, 5);
    kill(c->pids[1], SIGSTOP);
    for (int i = 0; i < 3; i += 2) {
        for (int ms = 0; ms < 20000 && !reports[i].end; ms++) pause_ms(1);
        assert_true(reports[i].status == LS_ETIMEOUT || reports[i].status == LS_EPEER);
    }
    kill(c->pids[1], SIGKILL);
    crew_wait(c);
    check_log(c, "is stopped");
    free(c);
}

/* ---- how long it takes ------------------------------------------------------------------------
 */

static void test_time(void **state) {
    (void)state;
    static const int sizes[] = {2, 8, 32, 64};
    for (int plain = 1; plain >= 0; plain--)
        for (int s = 0; s < 4; s++) {
            crew *c = crew_new(sizes[s], nothing);
            int64_t first = INT64_MAX, open = 0, end = 0;
            c->plain = plain;
            crew_start(c);
            crew_wait(c);
            check_all_well(c);
            for (int i = 0; i < c->n; i++) {
                if (reports[i].came < first) first = reports[i].came;
                if (reports[i].open > open) open = reports[i].open;
                if (reports[i].end > end) end = reports[i].end;
            }
            print_message("%2d workers, %s: formed in %4.0f ms, first barrier done at %4.0f ms\n",
                          c->n, plain ? "plain" : "TLS  ", (double)(open - first) / 1e6,
                          (double)(end - first) / 1e6);
            free(c);
        }
}

/* join_test [name]: one of the tests. */
int main(int argc, char **argv) {
    size_t n = MOST * sizeof *reports + 64;
    void *shared = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    over = shared;
    reports = (void *)((char *)shared + 64);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_no_worker_0),
        cmocka_unit_test(test_comes_again),
        cmocka_unit_test(test_doors),
        cmocka_unit_test(test_other_addresses),
        cmocka_unit_test(test_impostors),
        cmocka_unit_test(test_strangers_while_forming),
        cmocka_unit_test(test_strangers_at_running_workers),
        cmocka_unit_test(test_strangers_come_first),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_stays_stopped),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
