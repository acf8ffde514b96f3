/* uneven_test.c - collectives with blocks of different lengths: results over every transport, and
 * workers whose counts don't fit together. Over MPI: net/mpi/mpi_calls_test.c. */
/* ctest: long-tsan: coll/group and coll/ops start the same threads */
#include "coll/uneven.h"

#include "coll/team.h"

static const int SIZES[] = {1, 2, 3, 5, 8};
enum { NSIZES = 5 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 3 };
#else
enum { STRIDE = 1 };
#endif

/* ---- results ---- */

/* Nothing, a few around the number of workers, and lengths for each of the ways. */
static size_t count_of(int k, int n) {
    const size_t counts[] = {0, 1, (size_t)n - 1, (size_t)n, (size_t)n + 1, 200, 5000, 300001};
    return counts[k];
}
enum { NCOUNTS = 8 };

static void test_threads(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++)
        for (int k = 0; k < NCOUNTS; k++) {
            uneven u = {.count = count_of(k, SIZES[s]), .async = k % 2};
            run_threads(SIZES[s], NULL, uneven_all, &u, NULL);
            if (k % 3 == 0)
                run_threads(SIZES[s], &(ls_group_options){.algorithm = "direct"}, uneven_all, &u,
                            NULL);
        }
}

static void test_processes(void **state) {
    (void)state;
    need_processes();
    for (int s = 0; s < NSIZES; s++)
        for (int k = s % STRIDE; k < NCOUNTS; k += STRIDE) {
            if (!runs_case(k / STRIDE + s, 2)) continue;
            uneven u = {.count = count_of(k, SIZES[s]), .async = k % 2, .arena = k % 3 == 1};
            run_processes(SIZES[s], NULL, uneven_all, &u);
        }
}

static void test_tcp(void **state) {
    (void)state;
    need_processes();
    for (int s = 0; s < NSIZES; s++)
        for (int k = s % STRIDE; k < NCOUNTS; k += STRIDE) {
            if (!runs_case(k / STRIDE + s, 2)) continue;
            ls_group_options o = {.transport = "tcp", .insecure = k % 2};
            uneven u = {.count = count_of(k, SIZES[s]), .async = k % 3 == 0};
            run_processes(SIZES[s], &o, uneven_all, &u);
        }
}

/* ---- counts that don't fit together ---- */

typedef enum kind { ALL_TO_ALL_V, GATHER_V, SCATTER_V, NKINDS } kind;

typedef struct miscount {
    int n, from, to; /* worker `to` expects `more` elements more than `from` sends */
    size_t sent, more;
    kind kind;
} miscount;

/* A worker's call; the other end of the count that differs is the root, where there is one. */
static ls_status call(ls_group *g, const miscount *m, ls_error *e) {
    static _Thread_local int32_t in[64], out[64];
    size_t sends[8], receives[8];
    int r = ls_group_rank(g);
    for (int i = 0; i < m->n; i++) {
        sends[i] = r == m->from && i == m->to ? m->sent : 2;
        receives[i] = r == m->to && i == m->from ? m->sent + m->more : 2;
    }
    switch (m->kind) {
    case GATHER_V: return ls_gather_v(g, in, sends[m->to], out, receives, LS_I32, m->to, e);
    case SCATTER_V: return ls_scatter_v(g, in, sends, out, receives[m->from], LS_I32, m->from, e);
    default: return ls_all_to_all_v(g, in, sends, out, receives, LS_I32, e);
    }
}

static ls_status miscounted(ls_group *g, void *arg, ls_error *e) {
    static const char *const names[] = {"all_to_all_v", "gather_v", "scatter_v"};
    const miscount *m = arg;
    int r = ls_group_rank(g);
    char a[160], b[160], c[80], msg[400];
    /* A third worker may still wait in the barrier that the two have left: it gets the error there.
     * Or it has all that it needs: then it gets the error in its next call at the latest. */
    ls_status s = ls_barrier(g, e);
    if (s == LS_OK) s = call(g, m, e);
    if (s == LS_OK && r != m->from && r != m->to) s = ls_barrier(g, e);
    snprintf(a, sizeof a, "workers disagree in %s i32 as call 1: worker %d (at ", names[m->kind],
             m->from);
    snprintf(b, sizeof b, " sends %zu elements to worker %d (at uneven_test.c:", m->sent, m->to);
    snprintf(c, sizeof c, "), which expects %zu", m->sent + m->more);
    if (s == LS_EDISAGREE && strstr(e->msg, a) && strstr(e->msg, b) && strstr(e->msg, c)) {
        e->code = LS_OK;
        return LS_OK;
    }
    snprintf(msg, sizeof msg, "%.399s", e->msg);
    return ls_fail(e, LS_EIO, "worker %d got another result: %s: %s", r, ls_status_name(s), msg);
}

static void test_miscounts(void **state) {
    (void)state;
    static const miscount cases[] = {{2, 0, 1, 0, 5, 0},
                                     {2, 1, 0, 0, 1, 0},
                                     {3, 2, 0, 1, 3, 0},
                                     {3, 1, 2, 6, (size_t)-6, 0},
                                     {5, 0, 3, 4, (size_t)-1, 0}};
    for (int k = 0; k < 5 * NKINDS; k++) {
        int i = k % 5;
        miscount m = cases[i];
        m.kind = (kind)(k / 5);
        ls_group_options o = {.timeout_s = 20};
        run_threads(m.n, &o, miscounted, &m, NULL);
        run_processes(m.n, &o, miscounted, &m);
        o.algorithm = "direct";
        run_processes(m.n, &o, miscounted, &m);
        o = (ls_group_options){.timeout_s = 20, .transport = "tcp", .insecure = i % 2};
        run_processes(m.n, &o, miscounted, &m);
    }
}

static ls_status bad_arguments(ls_group *g, void *arg, ls_error *unused) {
    int32_t in[8] = {1}, out[8] = {5};
    int r = ls_group_rank(g);
    ls_error e = {0};
    size_t ones[2] = {1, 1}, own[2] = {1, 1}, huge[2] = {SIZE_MAX / 4, SIZE_MAX / 4};
    (void)arg, (void)unused;
    own[r] = 3;
    assert_ls_fails(ls_all_to_all_v(g, in, NULL, out, ones, LS_I32, &e), LS_EINVAL,
                    "all_to_all_v: counts are NULL", e);
    assert_ls_fails(ls_all_to_all_v(g, in, ones, out, NULL, LS_I32, &e), LS_EINVAL,
                    "counts are NULL", e);
    assert_ls_fails(ls_all_to_all_v(g, in, own, out, ones, LS_I32, &e), LS_EINVAL,
                    "sends itself 3 elements, but expects 1 from itself", e);
    assert_ls_fails(ls_all_to_all_v(g, in, huge, out, huge, LS_I32, &e), LS_EINVAL, "too many", e);
    assert_ls_fails(ls_all_to_all_v(g, in, ones, in + 1, ones, LS_I32, &e), LS_EINVAL, "overlap",
                    e);
    assert_ls_fails(ls_all_to_all_v(g, NULL, ones, out, ones, LS_I32, &e), LS_EINVAL, "in is NULL",
                    e);
    assert_ls_fails(ls_gather_v(g, in, 1, out, NULL, LS_I32, r, &e), LS_EINVAL,
                    "gather_v: counts are NULL", e);
    assert_ls_fails(ls_gather_v(g, in, 1, out, own, LS_I32, r, &e), LS_EINVAL,
                    "gather_v: this worker, ", e);
    assert_ls_fails(ls_scatter_v(g, in, own, out, 1, LS_I32, r, &e), LS_EINVAL,
                    "scatter_v: this worker, ", e);
    assert_ls_fails(ls_scatter_v(g, in, ones, out, 1, LS_I32, 2, &e), LS_EINVAL, "root 2", e);
    assert_true(out[0] == 5);
    return ls_all_to_all_v(g, in, ones, out, ones, LS_I32, unused); /* the group lives */
}

static void test_bad_arguments(void **state) {
    (void)state;
    run_threads(2, NULL, bad_arguments, NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_processes),
        cmocka_unit_test(test_tcp),           cmocka_unit_test(test_miscounts),
        cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
