/* mpi_native_test.c - MPI's own collectives, under real mpiruns, on the transport and through
 * groups; and groups whose workers share no memory.
 */
/* ctest: slow busy seconds=60 */
#include <signal.h>

#include "lockstep/group.h"
#include "net/mpi/mpirun.h"
#include "net/native.h"

/* ---- MPI's own collectives ---- */

typedef struct four {
    size_t count;
    ls_dtype t;
    unsigned char *all, *block; /* [size * count], [count] */
} four;

static void fill(const four *f, unsigned char *p, int rank, size_t n) {
    for (size_t i = 0; i < n; i++) put(f->t, p, i, value(rank, i));
}
static void check(const four *f, const unsigned char *p, ls_collective what, size_t n) {
    size_t size = ls_dtype_size(f->t);
    ls_call c = {.what = what, .count = f->count};
    for (size_t i = 0; i < n; i++) {
        uint64_t want[2] = {0};
        put(f->t, want, 0, expected(&c, net->rank, net->size, i));
        need(memcmp(want, p + i * size, size) == 0, "a native collective is wrong");
    }
}

/* Starts a collective, and waits for it. */
static void native(const four *f, ls_native_what what, ls_op op, const void *in, void *out) {
    ls_native_call c = {
        .what = what, .dtype = f->t, .op = op, .root = net->size - 1, .count = f->count};
    ls_message m = {.owner = &net};
    c.in = in;
    c.out = out;
    need(net->native->can(net, &c), "can() is wrong");
    succeed(net->native->start(net, &c, &m, &err));
    wait_messages(1);
}

static void check_reductions(const four *f) {
    size_t n = f->count, all = n * (size_t)net->size, size = ls_dtype_size(f->t);
    unsigned char *mine = f->all + (size_t)net->rank * n * size;
    fill(f, f->all, net->rank, n);
    native(f, LS_NATIVE_ALL_REDUCE, LS_SUM, f->all, f->block);
    check(f, f->block, LS_CALL_ALL_REDUCE, n);
    memset(f->block, 0, n * size);
    native(f, LS_NATIVE_REDUCE, LS_SUM, f->all, f->block);
    if (net->rank == net->size - 1) check(f, f->block, LS_CALL_ALL_REDUCE, n);
    native(f, LS_NATIVE_ALL_REDUCE, LS_SUM, f->all, f->all);
    check(f, f->all, LS_CALL_ALL_REDUCE, n);
    fill(f, f->all, net->rank, n);
    native(f, LS_NATIVE_REDUCE, LS_SUM, f->all, f->all);
    if (net->rank == net->size - 1) check(f, f->all, LS_CALL_ALL_REDUCE, n);
    fill(f, f->all, net->rank, all);
    native(f, LS_NATIVE_REDUCE_SCATTER, LS_SUM, f->all, f->block);
    check(f, f->block, LS_CALL_REDUCE_SCATTER, n);
    native(f, LS_NATIVE_REDUCE_SCATTER, LS_SUM, f->all, mine);
    check(f, mine, LS_CALL_REDUCE_SCATTER, n);
}

static void check_moves(const four *f) {
    size_t n = f->count, all = n * (size_t)net->size, size = ls_dtype_size(f->t);
    unsigned char *mine = f->all + (size_t)net->rank * n * size, *other = buffer(all * size);
    int last = net->size - 1;
    fill(f, f->block, net->rank, n);
    native(f, LS_NATIVE_ALL_GATHER, LS_SUM, f->block, f->all);
    check(f, f->all, LS_CALL_ALL_GATHER, all);
    memset(f->all, 0, all * size);
    native(f, LS_NATIVE_GATHER, LS_SUM, f->block, net->rank == last ? f->all : NULL);
    if (net->rank == last) check(f, f->all, LS_CALL_GATHER, all);
    memset(f->all, 0, all * size);
    fill(f, mine, net->rank, n);
    native(f, LS_NATIVE_ALL_GATHER, LS_SUM, mine, f->all);
    check(f, f->all, LS_CALL_ALL_GATHER, all);
    fill(f, f->all, net->rank, all);
    native(f, LS_NATIVE_ALL_TO_ALL, LS_SUM, f->all, other);
    check(f, other, LS_CALL_ALL_TO_ALL, all);
    native(f, LS_NATIVE_ALL_TO_ALL, LS_SUM, f->all, net->rank % 2 ? other : f->all);
    check(f, net->rank % 2 ? other : f->all, LS_CALL_ALL_TO_ALL, all);
    fill(f, f->all, net->rank, all);
    fill(f, f->block, net->rank, n);
    native(f, LS_NATIVE_BROADCAST, LS_SUM, NULL, f->block);
    for (size_t i = 0; i < n; i++) {
        uint64_t want[2] = {0};
        put(f->t, want, 0, value(last, i));
        need(memcmp(want, f->block + i * size, size) == 0, "a native broadcast is wrong");
    }
    native(f, LS_NATIVE_SCATTER, LS_SUM, net->rank == last ? f->all : NULL, f->block);
    for (size_t i = 0; i < n; i++) {
        uint64_t want[2] = {0};
        put(f->t, want, 0, value(last, (size_t)net->rank * n + i));
        need(memcmp(want, f->block + i * size, size) == 0, "a native scatter is wrong");
    }
    native(f, LS_NATIVE_BARRIER, LS_SUM, NULL, NULL);
    free(other);
}

static bool can(ls_native_what what, ls_dtype t, ls_op op, size_t count) {
    return net->native->can(net,
                            &(ls_native_call){.what = what, .dtype = t, .op = op, .count = count});
}

static void case_native(void) {
    float x = (float)net->rank, y = 0;
    need(net->native, "there are no native collectives");
    for (int t = 0; t < LS_NDTYPES; t++)
        for (int k = 0; k < NCOUNTS; k++) {
            size_t nbytes = COUNTS[k] * ls_dtype_size((ls_dtype)t);
            four f = {COUNTS[k], (ls_dtype)t, buffer(nbytes * (size_t)net->size), buffer(nbytes)};
            if (can(LS_NATIVE_ALL_REDUCE, f.t, LS_SUM, f.count))
                check_reductions(&f);
            else
                need(ls_dtype_size(f.t) < 4 || t > LS_BOOL,
                     "only short ones and pairs can't be reduced");
            check_moves(&f);
            need(f.block[nbytes] == 0x77, "wrote behind a block");
            free(f.all);
            free(f.block);
        }
    four one = {1, LS_F32, NULL, NULL};
    native(&one, LS_NATIVE_ALL_REDUCE, LS_AVG, &x, &y);
    need(y == (float)(net->size - 1) / 2, "a wrong average");
    need(!can(LS_NATIVE_ALL_REDUCE, LS_F32, LS_MAX, 1) &&
             can(LS_NATIVE_ALL_REDUCE, LS_I32, LS_MAX, 1) &&
             !can(LS_NATIVE_ALL_REDUCE, LS_F32, LS_SUM, (size_t)1 << 31) &&
             can(LS_NATIVE_BARRIER, LS_U8, LS_SUM, 0),
         "can() is wrong");
}

/* Two collectives and messages are in flight at once; they end in any order. */
static void case_native_at_once(void) {
    enum { N = 300000 };
    int next = (net->rank + 1) % net->size, before = (net->rank + net->size - 1) % net->size;
    int32_t *a = LS_NEW_ARRAY(int32_t, N), *b = LS_NEW_ARRAY(int32_t, N), out = 5, in = 0;
    for (int i = 0; i < N; i++) a[i] = b[i] = net->rank;
    ls_message m[4] = {
        {.owner = a}, {.owner = b}, message(next, 7, &out, 4), message(before, 7, &in, 4)};
    ls_native_call sum = {LS_NATIVE_ALL_REDUCE, LS_I32, LS_SUM, 0, N, a, a};
    ls_native_call most = {LS_NATIVE_ALL_REDUCE, LS_I32, LS_MAX, 0, N, b, b};
    if (net->rank % 2) succeed(net->ops->send(net, &m[2], &err));
    succeed(net->native->start(net, &sum, &m[0], &err));
    if (net->rank % 2 == 0) succeed(net->ops->send(net, &m[2], &err));
    succeed(net->native->start(net, &most, &m[1], &err));
    succeed(net->ops->recv(net, &m[3], &err));
    wait_messages(4);
    int n = net->size;
    for (int i = 0; i < N; i++)
        need(a[i] == n * (n - 1) / 2 && b[i] == n - 1, "one of two native collectives is wrong");
    need(in == 5, "a message beside native collectives is wrong");
    free(a);
    free(b);
}

/* Worker 0 never joins a collective: the others give it up within its time, and the transport with
 * it. MPI can't end well after that: each worker prints that all is well, and waits for the
 * launcher. */
static void case_native_forgotten(void) {
    int32_t x = 1;
    ls_message m = {.owner = &m}, other = message(0, 9, &x, 4);
    ls_native_call sum = {LS_NATIVE_ALL_REDUCE, LS_I32, LS_SUM, 0, 1, &x, &x};
    meet_all();
    if (net->rank) {
        succeed(net->native->start(net, &sum, &m, &err));
        net->ops->forget(net, &m);
        need(net->ops->send(net, &other, &err) == LS_EPEER, "the transport still works");
    }
    printf("ok %d\n", net->rank);
    fflush(stdout);
    nanosleep(&(struct timespec){.tv_sec = net->rank ? 10 : 2}, NULL);
    _exit(0);
}

/* ---- groups over MPI without shared memory, as workers of several hosts are ---- */

static ls_group *open_over_mpi(double report_s) {
    ls_group *g = NULL;
    ls_group_options o = {.transport = "mpi", .timeout_s = 60, .report_s = report_s};
    succeed(ls_group_open(&o, &g, &err));
    return g;
}

/* Each worker names the next one as the root: no message shows that. */
static void case_group_disagrees(void) {
    float x[50] = {0};
    ls_group *g = open_over_mpi(0);
    int n = ls_group_size(g);
    ls_status s = ls_broadcast(g, x, 50, LS_F32, (ls_group_rank(g) + 1) % n, &err);
    if (n == 1) succeed(s);
    if (n > 1 && (s != LS_EDISAGREE || !strstr(err.msg, "workers disagree: worker ") ||
                  !strstr(err.msg, "called broadcast f32, 50 elements, root ")))
        die(err.msg);
    printf("ok %d\n", ls_group_rank(g));
    fflush(stdout);
    ls_group_close(g);
    exit(0);
}

/* The text that is written to stderr while this waits for q, for up to 120 s. */
static void wait_for_report(ls_request **q, char *text, size_t nbytes) {
    FILE *log = tmpfile();
    int saved = dup(STDERR_FILENO);
    size_t n = 0;
    dup2(fileno(log), STDERR_FILENO);
    for (int i = 0; i < 120 && n == 0 && *q; i++) {
        ls_wait(q, 1, &err);
        rewind(log);
        n = fread(text, 1, nbytes - 1, log);
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    fclose(log);
    text[n] = 0;
}

/* Worker 1 makes no call until worker 0 has its report. */
static void case_group_late(void) {
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    ls_group *g = open_over_mpi(0.2);
    char text[4096] = "", want[128];
    int rank = ls_group_rank(g);
    int32_t other = rank == 1 ? getpid() : 0;
    ls_request *q = NULL;
    succeed(ls_all_reduce(g, &other, &other, 1, LS_I32, LS_MAX, &err));
    if (rank == 1) sigtimedwait(&wake, NULL, &(struct timespec){.tv_sec = 240});
    succeed(ls_barrier_start(g, &q, &err));
    if (rank == 0 && other) {
        snprintf(want, sizeof want, "worker 1 (pid %d) is ", other);
        wait_for_report(&q, text, sizeof text);
        kill(other, SIGUSR1);
        if (!strstr(text, " s in barrier as call 1 at mpi_native_test.c:") || !strstr(text, want) ||
            !strstr(text,
                    "; it has made all_reduce i32 max, 1 element as call 0 at mpi_native_test.c:"))
            die(text);
    }
    succeed(q ? ls_wait(&q, -1, &err) : LS_OK);
    printf("ok %d\n", rank);
    fflush(stdout);
    ls_group_close(g);
    exit(0);
}

/* ---- MPI's own collectives through groups ---- */

#define WHOLE(call)                                                                                \
    do {                                                                                           \
        if ((call) != LS_OK) die(err.msg);                                                         \
    } while (0)

/* The sums are of small integers, so that their order makes no difference. */
static void group_calls(ls_group *g, int n, int rank) {
    enum { COUNT = 5000 };
    float *in = LS_NEW_ARRAY(float, COUNT *(size_t)n), *out = LS_NEW_ARRAY(float, COUNT *(size_t)n);
    ls_request *r[3] = {NULL};
    float sums[3][4];
    for (int i = 0; i < COUNT; i++) in[i] = (float)(i % 7 + rank);
    WHOLE(ls_all_reduce(g, in, out, COUNT, LS_F32, LS_SUM, &err));
    for (int i = 0; i < COUNT; i++)
        need(out[i] == (float)(n * (i % 7) + n * (n - 1) / 2), "a native all_reduce is wrong");
    WHOLE(ls_all_gather(g, in, out, COUNT, LS_F32, &err));
    for (int i = 0; i < COUNT * n; i++)
        need(out[i] == (float)(i % COUNT % 7 + i / COUNT), "a native all_gather is wrong");
    WHOLE(ls_barrier(g, &err));
    /* Started in one order, and waited for in another. MPI can't do one of them right: it is done
     * with messages. */
    for (int k = 0; k < 3; k++)
        sums[k][0] = sums[k][1] = sums[k][2] = sums[k][3] = (float)(rank + k);
    WHOLE(ls_all_reduce_start(g, sums[0], sums[0], 4, LS_F32, LS_SUM, &r[0], &err));
    WHOLE(ls_all_reduce_start(g, sums[1], sums[1], 4, LS_F32, LS_MAX, &r[1], &err));
    WHOLE(ls_all_reduce_start(g, sums[2], sums[2], 4, LS_F32, LS_AVG, &r[2], &err));
    for (int k = 0; k < 3; k++) WHOLE(ls_wait(&r[(k + rank) % 3], -1, &err));
    need(sums[0][3] == (float)(n * (n - 1) / 2) && sums[1][3] == (float)n &&
             sums[2][3] == (float)(n - 1) / 2 + 2,
         "native calls in flight are wrong");
    free(in);
    free(out);
}

static void explains(ls_group *g, const char *what, const char *says) {
    char text[1024];
    WHOLE(ls_group_explain(g, what, 1000, LS_F32, text, sizeof text, &err));
    if (strstr(text, says)) return;
    fprintf(stderr, "%s\n", text);
    die("the explanation is another");
}

static void case_group(void) {
    ls_group *g = NULL, *half = NULL;
    setenv("LOCKSTEP_TRANSPORT", "mpi", 1);
    WHOLE(ls_group_open(&(ls_group_options){.algorithm = "native"}, &g, &err));
    int n = ls_group_size(g), rank = ls_group_rank(g);
    ls_counters before = ls_group_counters(g);
    group_calls(g, n, rank);
    ls_counters after = ls_group_counters(g);
    need(after.calls - before.calls == 6, "calls are not counted");
    if (n > 1) explains(g, "all_reduce", "native");
    WHOLE(ls_group_split(g, rank % 2, 0, &half, &err));
    if (ls_group_size(half) > 1) explains(half, "all_reduce", " by ");
    group_calls(half, ls_group_size(half), ls_group_rank(half));
    ls_group_close(half);
    printf("ok %d\n", rank);
    fflush(stdout);
    ls_group_close(g);
    exit(0);
}

/* The last worker closes its group; the others wait for it in a collective of MPI's own. */
static void case_group_left(void) {
    int32_t x = 1;
    ls_group *g = open_over_mpi(100);
    int n = ls_group_size(g), rank = ls_group_rank(g);
    char want[64], or_want[64]; /* or_want: another that has lost it has left, too */
    snprintf(want, sizeof want, "worker %d lost worker %d: it has left", rank, n - 1);
    snprintf(or_want, sizeof or_want, "it has left; before, it had lost worker %d", n - 1);
    succeed(ls_barrier(g, &err));
    ls_status s = LS_EPEER;
    if (rank < n - 1) s = ls_all_reduce(g, &x, &x, 1, LS_I32, LS_SUM, &err);
    bool named = rank == n - 1 || strstr(err.msg, want) || strstr(err.msg, or_want);
    if (s != LS_EPEER || !named) die(err.msg);
    printf("ok %d\n", rank);
    fflush(stdout);
    ls_group_close(g);
    _exit(0);
}

/* ---- the test ---- */

static const mpi_case cases[] = {
    {"native", case_native, SHARES},
    {"native_at_once", case_native_at_once, SHARES},
    {"native_forgotten", case_native_forgotten, ENDS_BADLY},
    {"group", case_group, OPENS_ITSELF},
    {"group_disagrees", case_group_disagrees, OPENS_ITSELF},
    {"group_late", case_group_late, OPENS_ITSELF},
    {"group_left", case_group_left, OPENS_ITSELF | ENDS_BADLY},
    {0},
};

static void test_openmpi(void **state) {
    (void)state;
    launch_cases(&openmpi, cases);
}
static void test_mpich(void **state) {
    (void)state;
    launch_cases(&mpich, cases);
}

int main(int argc, char **argv) {
    (void)argc;
    mpirun_begin(cases, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmpi),
        cmocka_unit_test(test_mpich),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
