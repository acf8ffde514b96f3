/* crew.h - a crew: processes that form a group over TCP, as their environment says, and what they
 * report.
 */
#ifndef LS_TEST_CREW_H
#define LS_TEST_CREW_H

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
#include "net/join_key.h"
#include "test.h"

enum { MOST = 72, SECRET = 65 };

typedef ls_status crew_fn(int rank, ls_group *, ls_error *);

/* How a worker deviates from what is right; all zeros: it does not. */
typedef struct crew_worker {
    int rank, size;     /* 0: the right ones; rank -1: 0 */
    int further;        /* its MASTER_PORT is that many above the crew's port */
    int delay_ms;       /* before it joins */
    bool absent, plain; /* plain: without a key */
    bool waits;         /* it does not join before the test sets *over */
    const char *secret;
} crew_worker;

/* What a worker reports, in memory that all share. */
typedef struct crew_report {
    ls_status status;
    int64_t came, open, end; /* when, ns */
    int port;                /* where it listens once the group is open */
    char doors[256];         /* the same, according to the kernel */
    atomic_int rounds;
    char msg[512];
} crew_report;

typedef struct crew {
    int n, size; /* processes; workers of the group */
    int port, listen_fd;
    bool plain;
    bool looks;       /* it reports `doors` */
    bool bind_itself; /* worker 0 makes its own listening socket */
    /* Workers have torchrun's variables. The test sets `port`, that of its agent, and `held`: its
     * own sockets [nheld], which are not the workers'. */
    bool torchrun;
    const int *held;
    int nheld;
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

static inline void pause_ms(int ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static inline int bound_socket(int *port_p) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port_p = ntohs(a.sin_port);
    return fd;
}

static inline crew *crew_new(int n, crew_fn *fn) {
    crew *c = calloc(1, sizeof *c);
    c->n = c->size = n;
    c->fn = fn;
    c->o.transport = "tcp";
    c->o.timeout_s = 60;
    c->listen_fd = -1;
    memset(reports, 0, MOST * sizeof *reports);
    atomic_store(over, 0);
    ls_key_make(c->secret);
    return c;
}

/* Where this process listens. */
static inline int listening_port(void) {
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in a = {0};
        int listens = 0;
        socklen_t n = sizeof listens, na = sizeof a;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || !listens) continue;
        if (getsockname(fd, (struct sockaddr *)&a, &na) == 0) return ntohs(a.sin_port);
    }
    return 0;
}

static inline void set_number(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static inline void set_environment(const crew *c, int i) {
    const crew_worker *w = &c->workers[i];
    char address[300];
    int rank = w->rank ? w->rank : i;
    if (rank < 0) rank = 0;
    snprintf(address, sizeof address, "%s:%d", c->host ? c->host : "127.0.0.1", c->port);
    set_number(c->torchrun ? "RANK" : "LOCKSTEP_RANK", rank);
    set_number(c->torchrun ? "WORLD_SIZE" : "LOCKSTEP_SIZE", w->size ? w->size : c->size);
    if (c->torchrun) {
        setenv("MASTER_ADDR", "127.0.0.1", 1);
        set_number("MASTER_PORT", c->port + w->further);
        setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    } else {
        setenv("LOCKSTEP_ADDR", address, 1);
    }
    if (c->plain != w->plain)
        setenv("LOCKSTEP_INSECURE", "1", 1);
    else
        setenv("LOCKSTEP_KEY", w->secret ? w->secret : c->secret, 1);
    if (rank == 0 && !c->bind_itself && !c->torchrun)
        set_number("LOCKSTEP_LISTEN_FD", c->listen_fd);
    else if (c->listen_fd >= 0)
        close(c->listen_fd);
}

static inline _Noreturn void crew_main(const crew *c, int i) {
    crew_report *r = &reports[i];
    ls_group *g = NULL;
    ls_error e = {0};
    alarm(240); /* if it hangs */
    for (int k = 0; k < c->nheld; k++) close(c->held[k]);
    set_environment(c, i);
    dup2(fileno(c->log), STDERR_FILENO);
    pause_ms(c->workers[i].delay_ms);
    while (c->workers[i].waits && !atomic_load(over)) pause_ms(1);
    r->came = ls_clock_ns();
    r->status = ls_group_open(&c->o, &g, &e);
    r->open = ls_clock_ns();
    r->port = listening_port();
    if (r->status == LS_OK) r->status = c->fn(ls_group_rank(g), g, &e);
    r->end = ls_clock_ns();
    memcpy(r->msg, e.msg, sizeof r->msg);
    if (c->looks) listeners_of(getpid(), r->doors, sizeof r->doors);
    ls_group_close(g);
    _exit(0);
}

static inline void crew_start(crew *c) {
    if (!c->torchrun) c->listen_fd = bound_socket(&c->port);
    if (c->torchrun) {
    } else if (c->bind_itself) {
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

static inline void crew_wait(crew *c) {
    for (int i = 0; i < c->n; i++)
        if (c->pids[i]) waitpid(c->pids[i], NULL, 0);
    rewind(c->log);
    c->text[fread(c->text, 1, sizeof c->text - 1, c->log)] = 0;
    fclose(c->log);
}

static inline void crew_stop(crew *c) {
    atomic_store(over, 1);
    crew_wait(c);
}

/* Waits until all workers of the group have made `rounds` rounds. */
static inline void crew_await(const crew *c, int rounds) {
    int64_t limit = ls_clock_ns() + (int64_t)120 * 1000000000;
    for (int i = 0; i < c->size; i++)
        while (atomic_load(&reports[i].rounds) < rounds) {
            if (ls_clock_ns() > limit || reports[i].end)
                fail_msg("worker %d made %d rounds of %d: %s", i, atomic_load(&reports[i].rounds),
                         rounds, reports[i].msg);
            pause_ms(1);
        }
}

static inline void check_worker(const crew *c, int i, ls_status want, const char *text) {
    const crew_report *r = &reports[i];
    bool matches = !text || strstr(r->msg, text);
    if (r->status == want && matches && r->end) return;
    print_error("worker %d: %s '%s', not %s '%s'; log:\n%s\n", i, ls_status_name(r->status), r->msg,
                ls_status_name(want), text ? text : "", c->text);
    fail();
}

static inline void check_log(const crew *c, const char *text) {
    if (strstr(c->text, text)) return;
    print_error("the log does not say '%s':\n%s\n", text, c->text);
    fail();
}

/* Waits until the workers have logged it. */
static inline void await_log(const crew *c, const char *text) {
    static char log[65536];
    for (int ms = 0; ms < 120000; ms += 10) {
        ssize_t n = pread(fileno(c->log), log, sizeof log - 1, 0);
        log[n > 0 ? n : 0] = 0;
        if (strstr(log, text)) return;
        pause_ms(10);
    }
    fail_msg("the log does not say '%s':\n%s", text, log);
}

static inline void check_all_well(const crew *c) {
    for (int i = 0; i < c->size; i++) check_worker(c, i, LS_OK, NULL);
}

/* ---- what workers do ---- */

static inline ls_status sum_right(int rank, ls_group *g, size_t count, ls_error *e) {
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

static inline ls_status once(int rank, ls_group *g, ls_error *e) {
    LS_TRY(sum_right(rank, g, 1000, e));
    return sum_right(rank, g, 100000, e);
}

static inline ls_status nothing(int rank, ls_group *g, ls_error *e) {
    (void)rank;
    return ls_barrier(g, e);
}

/* Works until the test has seen enough; all workers stop after the same round. */
static inline ls_status many(int rank, ls_group *g, ls_error *e) {
    static const size_t sizes[] = {1, 1000, 30000, 200000};
    for (int round = 0;; round++) {
        int32_t stop = atomic_load(over);
        LS_TRY(sum_right(rank, g, sizes[round % 4], e));
        LS_TRY(ls_all_reduce(g, &stop, &stop, 1, LS_I32, LS_MAX, e));
        atomic_store(&reports[rank].rounds, round + 1);
        if (stop) return LS_OK;
    }
}

/* Makes the memory that all processes of the test share; called before the tests. */
static inline int crew_set_up(void) {
    size_t n = MOST * sizeof *reports + 64;
    void *shared = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return -1;
    over = shared;
    reports = (void *)((char *)shared + 64);
    return 0;
}

#endif
