/* mpirun.h - cases that run in workers, which are started by real mpiruns, of Open MPI and of
 * MPICH.
 *
 * A test starts itself under mpirun (`TEST worker MPI CASE...`), and checks the exit code and what
 * the workers print: each prints "ok" if all is well. Cases that leave the transport as they found
 * it share a launch, the others have one each. If an mpirun or a plugin is missing, its part is
 * skipped.
 */
#ifndef LS_TEST_MPIRUN_H
#define LS_TEST_MPIRUN_H

#include <libgen.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "coll/algo/algorithm.h"
#include "net/mpi/mpi.h"
#include "tensor/kernels.h"
#include "test.h"

/* ---- workers ---- */

static ls_net *net;
static ls_error err;
static const char *doing = "open"; /* the case */

_Noreturn static inline void die(const char *what) {
    fprintf(stderr, "worker %d, %s: %s\n", net ? net->rank : -1, doing, what);
    fflush(stderr);
    _exit(3);
}
static inline void need(bool good, const char *what) {
    if (!good) die(what);
}
static inline void succeed(ls_status s) {
    if (s != LS_OK) die(err.msg);
}

static inline uint64_t hash(uint64_t seed, uint64_t a, uint64_t b) {
    uint32_t w[4];
    ls_random_words(seed, LS_STREAM_FAKE, a, b, w);
    return (uint64_t)w[1] << 32 | w[0];
}

/* Waits for `n` messages; fails the worker after 60 s. */
static inline void wait_messages(int n) {
    int64_t end = ls_clock_ns() + 60000000000;
    while (n > 0) {
        ls_message *done = NULL;
        succeed(net->ops->poll(net, 20000000, &done, &err));
        for (; done; done = done->next) n--;
        if (ls_clock_ns() > end) die("messages did not come within 60 s");
    }
    need(n == 0, "more messages were done than posted");
}

static inline ls_message message(int peer, uint64_t tag, void *data, size_t nbytes) {
    return (ls_message){.peer = peer,
                        .tag = tag,
                        .data = data,
                        .nbytes = nbytes,
                        .print = tag * 3 + 1,
                        .owner = &net};
}

/* A barrier by messages: all workers send to worker 0, which then sends to all. */
static inline void meet_all(void) {
    static uint64_t round;
    int n = net->size;
    ls_message *m = LS_NEW_ARRAY(ls_message, 2 * (size_t)n);
    char byte[2] = {1, 0};
    round += 2;
    for (int phase = 0; phase < 2; phase++) {
        int posted = 0;
        bool sends = (phase == 0) == (net->rank != 0);
        for (int i = 1; i < n; i++) {
            if (net->rank != 0 && net->rank != i) continue;
            m[posted] =
                message(net->rank ? 0 : i, (uint64_t)0xffff << 48 | (round + (uint64_t)phase),
                        &byte[!sends], 1);
            succeed(sends ? net->ops->send(net, &m[posted], &err)
                          : net->ops->recv(net, &m[posted], &err));
            posted++;
        }
        wait_messages(posted);
    }
    free(m);
}

/* ---- elements: small integers, so that sums are exact in any type and any order ---- */

static inline const ls_kernels *kernels(void) {
    static const ls_kernels *portable;
    return portable ? portable : (portable = ls_kernels_named("portable"));
}

static inline void put(ls_dtype t, void *p, size_t i, int x) {
    float f = (float)x;
    switch (t) {
    case LS_F64: ((double *)p)[i] = x; break;
    case LS_F32: ((float *)p)[i] = f; break;
    case LS_I64: ((int64_t *)p)[i] = x; break;
    case LS_I32: ((int32_t *)p)[i] = x; break;
    case LS_I8: ((int8_t *)p)[i] = (int8_t)x; break;
    case LS_U8: ((uint8_t *)p)[i] = (uint8_t)x; break;
    case LS_U16: ((uint16_t *)p)[i] = (uint16_t)x; break;
    case LS_U32: ((uint32_t *)p)[i] = (uint32_t)x; break;
    case LS_U64: ((uint64_t *)p)[i] = (uint64_t)x; break;
    case LS_I16: ((int16_t *)p)[i] = (int16_t)x; break;
    case LS_BOOL: ((uint8_t *)p)[i] = x != 0; break;
    case LS_F64_I64: ((ls_f64_i64 *)p)[i] = (ls_f64_i64){x, -x}; break;
    case LS_F32_I32: ((ls_f32_i32 *)p)[i] = (ls_f32_i32){f, -x}; break;
    case LS_I64_I64: ((ls_i64_i64 *)p)[i] = (ls_i64_i64){x, -x}; break;
    case LS_I32_I32: ((ls_i32_i32 *)p)[i] = (ls_i32_i32){x, -x}; break;
    default: kernels()->narrow(t, 1, &f, (uint16_t *)p + i); break;
    }
}

static inline int value(int rank, size_t i) { return (int)((i * 7 + (size_t)rank * 5 + 3) % 11); }

static inline int expected(const ls_call *c, int rank, int n, size_t i) {
    size_t count = c->count;
    int sum = 0;
    switch (c->what) {
    case LS_CALL_BROADCAST: return value(c->root, i);
    case LS_CALL_SCATTER: return value(c->root, (size_t)rank * count + i);
    case LS_CALL_ALL_GATHER:
    case LS_CALL_GATHER: return value((int)(i / count), i % count);
    case LS_CALL_ALL_TO_ALL: return value((int)(i / count), (size_t)rank * count + i % count);
    case LS_CALL_REDUCE_SCATTER: i += (size_t)rank * count; break;
    case LS_CALL_SCAN: n = rank + 1; break;
    case LS_CALL_EXSCAN: n = rank; break;
    default: break;
    }
    for (int r = 0; r < n; r++) sum += value(r, i);
    return sum;
}

static inline unsigned char *buffer(size_t nbytes) {
    unsigned char *p = ls_alloc(nbytes + 1);
    memset(p, 0x77, nbytes + 1);
    return p;
}

/* Inline, in one piece, in several; even and odd. */
static const size_t COUNTS[] = {0, 1, 5, 1000, 60001};
enum { NCOUNTS = sizeof COUNTS / sizeof *COUNTS };

/* ---- cases ---- */

enum { SHARES = 1, OPENS_ITSELF = 2, ENDS_BADLY = 4, PRINTS_NOTHING = 8 };
typedef struct mpi_case {
    const char *name;
    void (*run)(void);
    int how;
} mpi_case;

static inline void worker_run(const mpi_case *cases, const char *which, const char *name) {
    const mpi_case *c = cases;
    while (c->name && strcmp(c->name, name) != 0) c++;
    need(c->name, "there is no such case");
    if (!net && !(c->how & OPENS_ITSELF))
        succeed(ls_mpi_open(strcmp(which, "-") == 0 ? NULL : which, -1, &net, &err));
    doing = c->name;
    if (c->how & SHARES) meet_all();
    c->run();
}

_Noreturn static inline void worker(const mpi_case *cases, char **argv) {
    for (char **name = argv + 3; *name; name++) worker_run(cases, argv[2], *name);
    printf("ok %d\n", net->rank);
    fflush(stdout);
    net->ops->close(net);
    exit(0); /* not _exit(), after which MPICH 4.2.1 takes a worker for lost now and then */
}

/* ---- the test ---- */

typedef struct launcher {
    const char *which, *mpirun;
} launcher;
static launcher openmpi = {"openmpi", "mpirun.openmpi --allow-run-as-root --oversubscribe"};
static launcher mpich = {"mpich", "mpirun.mpich"};
static char self[4096];

static inline void skip_without(const launcher *l) {
    char *find = ls_format("command -v %.*s >/dev/null", (int)strcspn(l->mpirun, " "), l->mpirun);
    char *plugin = ls_format("%s/lockstep-mpi-%s.so", getenv("LOCKSTEP_PLUGINS"), l->which);
    bool launches = system(find) == 0, built = access(plugin, F_OK) == 0;
    free(find);
    free(plugin);
    if (!launches) skip_because("there is no %.14s", l->mpirun);
    if (!built) skip_because("there is no plugin for %s in LOCKSTEP_PLUGINS", l->which);
}

/* After LIMIT_S a launch hangs: `timeout` ends it with this exit code. */
enum { LIMIT_S = 240, TIMEOUT_CODE = 124 };

static inline int launch_once(const launcher *l, int n, const char *which, const char *names,
                              ls_buf *output) {
    /* MPI's libraries leak memory, which a leak sanitizer would report */
    char *command =
        ls_format("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 timeout -k 5 %d %s -n %d '%s' worker "
                  "%s %s 2>&1",
                  LIMIT_S, l->mpirun, n, self, which, names);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char text[4096];
    for (size_t got; (got = fread(text, 1, sizeof text, f)) > 0;) ls_buf_append(output, text, got);
    int status = pclose(f);
    free(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* MPICH's launcher itself is killed by SIGPIPE now and then if workers end soon, and loses what
 * they printed (4.0.2: one in a hundred of `mpirun.mpich -n 1 true`, on a busy machine). */
enum { SIGPIPE_CODE = 128 + 13, TRIES = 4 };

/* Runs cases; the caller frees what they printed. */
static inline int launch(const launcher *l, int n, const char *which, const char *names,
                         ls_buf *output) {
    int code = 0;
    for (int i = 0; i < TRIES; i++) {
        code = launch_once(l, n, which, names, output);
        if (code != SIGPIPE_CODE || output->len) break;
    }
    return code;
}

static inline int count_ok(const ls_buf *output) {
    int n = 0;
    for (const char *at = output->data; at && (at = strstr(at, "ok ")); at += 3) n++;
    return n;
}

static inline void launch_case(const launcher *l, int n, const char *names, int how) {
    ls_buf output = {0};
    bool silent = how & PRINTS_NOTHING;
    int64_t start = ls_clock_ns();
    int code = launch(l, n, "-", names, &output);
    double s = (double)(ls_clock_ns() - start) / 1e9;
    bool good = silent ? code != TIMEOUT_CODE && (n == 1 || count_ok(&output) == 0)
                       : count_ok(&output) == n && (code == 0 || how & ENDS_BADLY);
    print_message("%s, %d workers, %s: %.1f s\n", l->which, n, names, s);
    if (!good) {
        print_error("exit code %d; it printed:\n%s\n", code, output.data ? output.data : "");
        fail();
    }
    ls_buf_free(&output);
}

/* Launches all cases with each number of workers; make check: with one and three, and those that
 * have a launch of their own with three. */
static inline void launch_cases(const launcher *l, const mpi_case *cases) {
    static const int sizes[] = {1, 3, 2, 5};
    skip_without(l);
    ls_buf shared = {0};
    for (const mpi_case *c = cases; c->name; c++)
        if (c->how & SHARES) ls_buf_printf(&shared, "%s%s", shared.len ? " " : "", c->name);
    for (int i = 0; i < ncases(2, 4); i++) {
        launch_case(l, sizes[i], shared.data, 0);
        for (const mpi_case *c = cases; c->name; c++)
            if (!(c->how & SHARES) && runs_case(i + 1, 2))
                launch_case(l, sizes[i], c->name, c->how);
    }
    ls_buf_free(&shared);
}

/* The beginning of main(): does not return in a worker. */
static inline void mpirun_begin(const mpi_case *cases, char **argv) {
    char program[] = LOCKSTEP_PROGRAM;
    char *plugins = ls_format("%s/plugins", dirname(program));
    setenv("LOCKSTEP_PLUGINS", plugins, 1);
    free(plugins);
    if (argv[1] && strcmp(argv[1], "worker") == 0) worker(cases, argv);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) exit(1);
}

#endif
