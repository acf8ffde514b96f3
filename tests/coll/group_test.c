/* group_test.c - the public collectives, as users call them: threads and processes, straight from
 * shared memory and by every algorithm over messages; blocking, started and waited for; split
 * groups; bad arguments. See health_test.c for workers that disagree, are late, or leave. */
/* ctest: busy seconds=30 */
#include <math.h>
#include <time.h>

#include "coll/request.h"
#include "coll/team.h"

static const int SIZES[] = {1, 2, 3, 5, 8};
enum { NSIZES = 5 };

/* ---- every collective, checked by every worker ---- */

typedef struct work {
    size_t count;
    bool in_place; /* where that is possible */
    bool arena;    /* buffers of the group */
    bool async;
} work;

/* Element i of worker r's input. */
static float value(int r, size_t i) { return (float)((i * 7 + (size_t)r * 13) % 31) - 15.0f; }

static float *take(ls_group *g, const work *w, size_t count) {
    return w->arena ? ls_group_alloc(g, count * sizeof(float))
                    : calloc(count ? count : 1, sizeof(float));
}
static void give(ls_group *g, const work *w, float *p) {
    if (w->arena)
        ls_group_free(g, p);
    else
        free(p);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return ls_fail(e, LS_EINVAL, "worker %d of %d, count %zu: not %s", r, n, w->count,     \
                           #condition);                                                            \
    } while (0)

static ls_status done(ls_status s, ls_request **q, ls_error *e) {
    return s == LS_OK ? ls_wait(q, -1, e) : s;
}

static ls_status try_all_reduce(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    float *in = take(g, w, w->count), *out = w->in_place ? in : take(g, w, w->count);
    ls_request *q = NULL;
    for (size_t i = 0; i < w->count; i++) in[i] = value(r, i);
    if (w->async)
        LS_TRY(done(ls_all_reduce_start(g, in, out, w->count, LS_F32, LS_SUM, &q, e), &q, e));
    else
        LS_TRY(ls_all_reduce(g, in, out, w->count, LS_F32, LS_SUM, e));
    for (size_t i = 0; i < w->count; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += value(k, i);
        CHECK(out[i] == sum);
        CHECK(w->in_place || in[i] == value(r, i));
    }
    LS_TRY(ls_barrier(g, e));
    if (!w->in_place) give(g, w, out);
    give(g, w, in);
    return LS_OK;
}

static ls_status try_reduce(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g), root = (int)(w->count % (size_t)n);
    float *in = take(g, w, w->count), *out = r == root ? take(g, w, w->count) : NULL;
    for (size_t i = 0; i < w->count; i++) in[i] = value(r, i);
    LS_TRY(ls_reduce(g, in, out, w->count, LS_F32, LS_MAX, root, e));
    for (size_t i = 0; i < w->count && r == root; i++) {
        float most = -100;
        for (int k = 0; k < n; k++) most = fmaxf(most, value(k, i));
        CHECK(out[i] == most);
    }
    LS_TRY(ls_barrier(g, e));
    if (r == root) give(g, w, out);
    give(g, w, in);
    return LS_OK;
}

static ls_status try_blocks(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t c = w->count, own = (size_t)r * c;
    float *all = take(g, w, c * (size_t)n), *one = w->in_place ? all + own : take(g, w, c);
    for (size_t i = 0; i < c * (size_t)n; i++) all[i] = value(r, i);
    LS_TRY(ls_reduce_scatter(g, all, one, c, LS_F32, LS_AVG, e));
    for (size_t i = 0; i < c; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += value(k, own + i);
        CHECK(one[i] == sum / (float)n);
    }
    for (size_t i = 0; i < c; i++) one[i] = value(r, i);
    LS_TRY(ls_all_gather(g, one, all, c, LS_F32, e));
    for (size_t i = 0; i < c * (size_t)n; i++) CHECK(all[i] == value((int)(i / c), i % c));
    LS_TRY(ls_barrier(g, e));
    if (!w->in_place) give(g, w, one);
    give(g, w, all);
    return LS_OK;
}

/* Worker k's block has k * count elements. */
static ls_status try_uneven(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t counts[64], first[65] = {0};
    for (int k = 0; k < n; k++) {
        counts[k] = (size_t)k * (w->count / 4 + 1);
        first[k + 1] = first[k] + counts[k];
    }
    float *all = take(g, w, first[n]), *one = take(g, w, counts[r]);
    for (size_t i = 0; i < first[n]; i++) all[i] = value(r, i);
    LS_TRY(ls_reduce_scatter_v(g, all, one, counts, LS_F32, LS_MIN, e));
    for (size_t i = 0; i < counts[r]; i++) {
        float least = 100;
        for (int k = 0; k < n; k++) least = fminf(least, value(k, first[r] + i));
        CHECK(one[i] == least);
        one[i] = value(r, i);
    }
    LS_TRY(ls_all_gather_v(g, one, all, counts, LS_F32, e));
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < counts[k]; i++) CHECK(all[first[k] + i] == value(k, i));
    LS_TRY(ls_barrier(g, e));
    give(g, w, one);
    give(g, w, all);
    return LS_OK;
}

static ls_status try_rooted(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g), root = n - 1;
    size_t c = w->count;
    float *all = take(g, w, c * (size_t)n), *one = take(g, w, c);
    for (size_t i = 0; i < c; i++) one[i] = r == root ? value(77, i) : 0;
    LS_TRY(ls_broadcast(g, one, c, LS_F32, root, e));
    for (size_t i = 0; i < c; i++) CHECK(one[i] == value(77, i));
    for (size_t i = 0; i < c; i++) one[i] = value(r, i);
    ls_request *q = NULL;
    float *whole = r == root ? all : NULL;
    if (w->async)
        LS_TRY(done(ls_gather_start(g, one, whole, c, LS_F32, root, &q, e), &q, e));
    else
        LS_TRY(ls_gather(g, one, whole, c, LS_F32, root, e));
    for (size_t i = 0; i < c * (size_t)n && r == root; i++)
        CHECK(all[i] == value((int)(i / c), i % c));
    if (w->async)
        LS_TRY(done(ls_scatter_start(g, whole, one, c, LS_F32, root, &q, e), &q, e));
    else
        LS_TRY(ls_scatter(g, whole, one, c, LS_F32, root, e));
    for (size_t i = 0; i < c; i++) CHECK(one[i] == value(r, i));
    LS_TRY(ls_barrier(g, e));
    give(g, w, one);
    give(g, w, all);
    return LS_OK;
}

static ls_status try_all_to_all(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t c = w->count, all = c * (size_t)n;
    /* In place at some workers, or at all. */
    bool in_place = w->in_place && (r % 2 == 0 || c % 2);
    float *in = take(g, w, all), *out = in_place ? in : take(g, w, all);
    ls_request *q = NULL;
    for (size_t i = 0; i < all; i++) in[i] = value(r, i);
    if (w->async)
        LS_TRY(done(ls_all_to_all_start(g, in, out, c, LS_F32, &q, e), &q, e));
    else
        LS_TRY(ls_all_to_all(g, in, out, c, LS_F32, e));
    for (size_t i = 0; i < all; i++) CHECK(out[i] == value((int)(i / c), (size_t)r * c + i % c));
    LS_TRY(ls_barrier(g, e));
    give(g, w, in);
    if (!in_place) give(g, w, out);
    return LS_OK;
}

/* Round the ring, both started before either is waited for; then from all to worker 0. */
static ls_status try_messages(ls_group *g, const work *w, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    if (n == 1) return LS_OK;
    float *in = take(g, w, w->count), *out = take(g, w, w->count);
    for (size_t i = 0; i < w->count; i++) in[i] = value(r, i);
    ls_request *a = NULL, *b = NULL;
    LS_TRY(ls_send_start(g, in, w->count, LS_F32, (r + 1) % n, &a, e));
    LS_TRY(ls_recv_start(g, out, w->count, LS_F32, (r + n - 1) % n, &b, e));
    LS_TRY(ls_wait(&b, -1, e));
    LS_TRY(ls_wait(&a, -1, e));
    for (size_t i = 0; i < w->count; i++) CHECK(out[i] == value((r + n - 1) % n, i));
    if (r) LS_TRY(ls_send(g, in, w->count, LS_F32, 0, e));
    for (int k = n - 1; k > 0 && r == 0; k--) {
        LS_TRY(ls_recv(g, out, w->count, LS_F32, k, e));
        for (size_t i = 0; i < w->count; i++) CHECK(out[i] == value(k, i));
    }
    give(g, w, in);
    give(g, w, out);
    return LS_OK;
}

static ls_status try_one(ls_group *g, void *arg, ls_error *e) {
    const work *w = arg;
    LS_TRY(try_all_reduce(g, w, e));
    LS_TRY(try_reduce(g, w, e));
    LS_TRY(try_blocks(g, w, e));
    LS_TRY(try_uneven(g, w, e));
    LS_TRY(try_rooted(g, w, e));
    LS_TRY(try_all_to_all(g, w, e));
    return try_messages(g, w, e);
}

/* A worker that waits for two messages hears of the one that comes, whichever it is. Worker 1 sends
 * the first of them only when it has heard so. */
static ls_status wait_for_any(ls_group *g, void *arg, ls_error *e) {
    int own = ls_group_rank(g), late = 0, soon = 0;
    ls_request *first = NULL, *second = NULL;
    (void)arg;
    if (own == 1) {
        LS_TRY(ls_recv(g, &late, 1, LS_I32, 0, e));
        return ls_send(g, &late, 1, LS_I32, 0, e);
    }
    if (own == 2) return ls_send(g, &own, 1, LS_I32, 0, e);
    LS_TRY(ls_recv_start(g, &late, 1, LS_I32, 1, &first, e));
    LS_TRY(ls_recv_start(g, &soon, 1, LS_I32, 2, &second, e));
    LS_TRY(ls_request_wait_any(first, e));
    LS_TRY(ls_wait(&second, 0, e)); /* LS_EPENDING if it is not there */
    int answer = soon + 5;
    LS_TRY(ls_send(g, &answer, 1, LS_I32, 1, e));
    LS_TRY(ls_request_wait_any(first, e));
    LS_TRY(ls_wait(&first, 0, e));
    return soon == 2 && late == 7 ? LS_OK : ls_fail(e, LS_EINVAL, "%d and %d", soon, late);
}

/* Short and long ones, and those at the limits of the ways: inline, small, direct, staged. */
static const size_t COUNTS[] = {0, 1, 2, 7, 12, 13, 1000, 4096, 4097, 70001};
enum { NCOUNTS = 10 };

/* Workers are slow under sanitizers: every third count, another third for each number of workers,
 * or for each algorithm; and two numbers of workers where one count is tried. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 3 };
#else
enum { STRIDE = 1 };
#endif

typedef enum arenas { NO_ARENA, ODD_ARENA, EVEN_ARENA } arenas;

/* Counts first, first + stride, ..., in one group: to open a group of processes takes more time
 * than all of its calls. */
typedef struct series {
    int first, stride;
    bool async;    /* every third count */
    arenas arenas; /* which places of COUNTS have buffers of the group */
} series;

static ls_status try_everything(ls_group *g, void *arg, ls_error *e) {
    const series *s = arg;
    for (int k = s->first; k < NCOUNTS; k += s->stride) {
        work w = {.count = COUNTS[k],
                  .in_place = k % 2,
                  .async = s->async && k % 3 == 0,
                  .arena = s->arenas != NO_ARENA && k % 2 == (s->arenas == ODD_ARENA)};
        LS_TRY(try_one(g, &w, e));
    }
    return LS_OK;
}

static void test_threads(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++) {
        series all = {.first = s % STRIDE, .stride = STRIDE, .async = true};
        run_threads(SIZES[s], NULL, try_everything, &all, NULL);
    }
}

static void test_processes(void **state) {
    (void)state;
    need_processes();
    for (int s = 0; s < NSIZES; s++) {
        series all = {.first = s % STRIDE, .stride = STRIDE, .async = true, .arenas = ODD_ARENA};
        run_processes(SIZES[s], NULL, try_everything, &all);
        all.arenas = EVEN_ARENA;
        if (runs_case(s, 2)) run_processes(SIZES[s], NULL, try_everything, &all);
    }
}

static void test_any(void **state) {
    (void)state;
    run_threads(3, NULL, wait_for_any, NULL, NULL);
    need_processes();
    run_processes(3, NULL, wait_for_any, NULL);
}

/* A call of more than one round through the stages. */
static void test_staged(void **state) {
    (void)state;
    need_processes();
    work w = {.count = 700001, .in_place = true};
    run_processes(3, NULL, try_one, &w);
    w = (work){.count = 300001};
    run_processes(2, &(ls_group_options){.arena_nbytes = 2 << 20}, try_one, &w);
}

static void test_forced(void **state) {
    (void)state;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int s = 0; s < NSIZES; s++) {
            ls_group_options o = {.algorithm = ls_algorithms[a]->name};
            series all = {(a + s) % STRIDE * 3, 3 * STRIDE, .arenas = ODD_ARENA};
            if (runs_case(a + s, 2)) run_threads(SIZES[s], &o, try_everything, &all, NULL);
            if (s == 2) run_processes(SIZES[s], &o, try_everything, &all);
        }
}

/* Workers without memory from a launcher meet over TCP, and then share some. */
static int neighbours(void *arg) {
    team_process p = {NULL, try_one, arg};
    unsetenv("LOCKSTEP_SHM");
    return team_process_main(&p);
}

static void test_neighbours(void **state) {
    (void)state;
    for (int s = STRIDE / 2; s < NSIZES; s += STRIDE) {
        work w = {.count = 4097, .arena = s % 2, .in_place = true};
        ls_launch_options l = {.nworkers = SIZES[s], .main = neighbours, .arg = &w};
        l.arena_nbytes = (size_t)16 << 20;
        ls_error e = {0};
        int code = 0;
        assert_ls_ok(ls_launch_run(&l, &code, &e), e);
        assert_int_equal(code, 0);
    }
}

static void over_tcp(bool insecure) {
    ls_group_options o = {.transport = "tcp", .insecure = insecure};
    for (int s = 0; s < NSIZES; s++) {
        series all = {.first = s % STRIDE, .stride = STRIDE, .async = true};
        run_processes(SIZES[s], &o, try_everything, &all);
    }
}

static void test_tcp(void **state) {
    (void)state;
    need_processes();
    over_tcp(false);
}

static void test_tcp_plain(void **state) {
    (void)state;
    need_processes();
    over_tcp(true);
}

static void test_tcp_forced(void **state) {
    (void)state;
    need_processes();
    for (int a = 1; ls_algorithms[a]; a++) { /* all but direct */
        if (!runs_case(a - 1, 3)) continue;
        ls_group_options o = {
            .transport = "tcp", .algorithm = ls_algorithms[a]->name, .insecure = a % 2 == 0};
        series all = {.first = (a - 1) % STRIDE * 3, .stride = 3 * STRIDE};
        run_processes(5, &o, try_everything, &all);
    }
}

/* ---- many in flight ---- */

static ls_status many(ls_group *g, void *arg, ls_error *e) {
    enum { CALLS = 100, COUNT = 5000 };
    static _Thread_local float x[CALLS][COUNT];
    work unused = {.count = *(const size_t *)arg}, *w = &unused;
    int r = ls_group_rank(g), n = ls_group_size(g);
    ls_request *q[CALLS] = {0};
    for (int k = 0; k < CALLS; k++) {
        size_t count = k % 3 ? w->count : w->count / 100;
        for (size_t i = 0; i < count; i++) x[k][i] = (float)(r + k);
        LS_TRY(ls_all_reduce_start(g, x[k], x[k], count, LS_F32, LS_SUM, &q[k], e));
    }
    for (int k = CALLS - 1; k >= 0; k -= 2) LS_TRY(ls_wait(&q[k], -1, e));
    for (int k = 0; k < CALLS; k++) {
        bool is_done = !q[k];
        while (!is_done) LS_TRY(ls_test(&q[k], &is_done, e));
        size_t count = k % 3 ? w->count : w->count / 100;
        for (size_t i = 0; i < count; i++) CHECK(x[k][i] == (float)(n * (n - 1) / 2 + n * k));
    }
    return LS_OK;
}

static void test_many(void **state) {
    (void)state;
    size_t counts[] = {100, 5000};
    for (int k = 0; k < 2; k++)
        for (int s = STRIDE / 2; s < NSIZES; s += STRIDE) {
            run_threads(SIZES[s], NULL, many, &counts[k], NULL);
            run_threads(SIZES[s], &(ls_group_options){.algorithm = "ring"}, many, &counts[k], NULL);
            run_processes(SIZES[s], NULL, many, &counts[k]);
            run_processes(SIZES[s], &(ls_group_options){.transport = "tcp"}, many, &counts[k]);
        }
}

/* ---- two groups, whose calls workers wait for in different orders ---- */

static ls_status cross(ls_group *g, void *arg, ls_error *e) {
    work unused = {.count = *(const size_t *)arg}, *w = &unused;
    int r = ls_group_rank(g), n = ls_group_size(g);
    ls_group *both[2] = {g, NULL};
    float *x[2];
    LS_TRY(ls_group_dup(g, &both[1], e));
    for (int k = 0; k < 2; k++) x[k] = calloc(w->count, sizeof *x[k]);
    for (int round = 0; round < 20 / STRIDE; round++) {
        ls_request *q[2] = {0};
        for (int k = 0; k < 2; k++) {
            for (size_t i = 0; i < w->count; i++) x[k][i] = (float)(r + k);
            LS_TRY(ls_all_reduce_start(both[k], x[k], x[k], w->count, LS_F32, LS_SUM, &q[k], e));
        }
        LS_TRY(ls_wait(&q[r % 2], -1, e));
        LS_TRY(ls_wait(&q[1 - r % 2], -1, e));
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < w->count; i++)
                CHECK(x[k][i] == (float)(n * (n - 1) / 2 + n * k));
    }
    for (int k = 0; k < 2; k++) free(x[k]);
    ls_group_close(both[1]);
    return LS_OK;
}

static void test_cross(void **state) {
    (void)state;
    size_t counts[] = {10, 5000, 300000}; /* small; direct or staged; many rounds of it */
    for (int k = 0; k < 3; k++)
        for (int s = 1; s < 4; s++) {
            ls_group_options o = {.timeout_s = 20};
            run_threads(SIZES[s], &o, cross, &counts[k], NULL);
            if (!runs_case(k + s, 2)) continue;
            run_processes(SIZES[s], &o, cross, &counts[k]);
            o.transport = "tcp";
            run_processes(SIZES[s], &o, cross, &counts[k]);
        }
}

/* ---- splitting ---- */

static ls_status split(ls_group *g, void *arg, ls_error *e) {
    work unused = {0}, *w = &unused;
    (void)arg;
    int r = ls_group_rank(g), n = ls_group_size(g);
    for (int round = 0; round < 70; round++) { /* numbers of groups are used again */
        ls_group *odd = NULL, *same = NULL, *few = NULL;
        LS_TRY(ls_group_split(g, r % 2, -r, &odd, e));
        int m = ls_group_size(odd), last = r % 2 ? n - 1 - n % 2 : n - 1 - (n + 1) % 2;
        CHECK(m == (n + 1 - r % 2) / 2);
        CHECK(ls_group_rank(odd) == (last - r) / 2); /* the keys turn the order round */
        int64_t sum = r, all = 0;
        LS_TRY(ls_all_reduce(odd, &sum, &sum, 1, LS_I64, LS_SUM, e));
        for (int k = r % 2; k < n; k += 2) all += k;
        CHECK(sum == all);
        LS_TRY(ls_group_dup(odd, &same, e));
        LS_TRY(ls_all_reduce(same, &(int64_t){r}, &sum, 1, LS_I64, LS_MAX, e));
        CHECK(sum == last);
        LS_TRY(ls_group_split(g, r < 2 ? 0 : -1, 0, &few, e));
        CHECK((few != NULL) == (r < 2));
        if (few) LS_TRY(ls_barrier(few, e));
        ls_group_close(few);
        ls_group_close(same);
        ls_group_close(odd);
    }
    return LS_OK;
}

static void test_split(void **state) {
    (void)state;
    for (int s = STRIDE / 2; s < NSIZES; s += STRIDE) {
        if (!runs_case(s / STRIDE, 3)) continue;
        run_threads(SIZES[s], NULL, split, NULL, NULL);
        run_processes(SIZES[s], NULL, split, NULL);
        run_threads(SIZES[s], &(ls_group_options){.algorithm = "direct"}, split, NULL, NULL);
        run_processes(SIZES[s], &(ls_group_options){.transport = "tcp"}, split, NULL);
    }
}

/* ---- bad arguments ---- */

static ls_status bad_arguments(ls_group *g, void *arg, ls_error *unused) {
    float in[8] = {1}, out[8] = {5};
    ls_error e = {0};
    size_t counts[] = {3, SIZE_MAX / 2};
    int32_t whole[4] = {0};
    (void)arg;
    (void)unused;
    assert_ls_fails(ls_all_reduce(NULL, in, out, 8, LS_F32, LS_SUM, &e), LS_EINVAL, "group is NULL",
                    e);
    assert_ls_fails(ls_all_reduce(g, NULL, out, 8, LS_F32, LS_SUM, &e), LS_EINVAL, "in is NULL", e);
    assert_ls_fails(ls_all_reduce(g, in, NULL, 8, LS_F32, LS_SUM, &e), LS_EINVAL, "out is NULL", e);
    assert_ls_fails(ls_all_reduce(g, in, in + 1, 4, LS_F32, LS_SUM, &e), LS_EINVAL, "overlap", e);
    assert_ls_fails(ls_all_reduce(g, in, out, (size_t)-1, LS_F32, LS_SUM, &e), LS_EINVAL,
                    "too many", e);
    assert_ls_fails(ls_all_gather(g, in, out, SIZE_MAX / 8, LS_F32, &e), LS_EINVAL, "too many", e);
    assert_ls_fails(ls_all_reduce(g, in, out, 8, (ls_dtype)99, LS_SUM, &e), LS_EINVAL, "dtype 99",
                    e);
    assert_ls_fails(ls_all_reduce(g, in, out, 8, LS_F32, (ls_op)-1, &e), LS_EINVAL, "operation -1",
                    e);
    assert_ls_fails(ls_all_reduce(g, whole, whole, 4, LS_I32, LS_AVG, &e), LS_EINVAL,
                    "no average of i32", e);
    assert_ls_fails(ls_broadcast(g, in, 8, LS_F32, 2, &e), LS_EINVAL, "root 2 is not in 0..1", e);
    assert_ls_fails(ls_broadcast(g, in, 8, LS_F32, -1, &e), LS_EINVAL, "root -1", e);
    assert_ls_fails(ls_broadcast(g, (char *)in + 1, 1, LS_F32, 0, &e), LS_EINVAL, "not aligned", e);
    assert_ls_fails(ls_all_to_all(g, in, in + 1, 2, LS_F32, &e), LS_EINVAL, "overlap", e);
    assert_ls_fails(ls_reduce_scatter_v(g, in, out, NULL, LS_F32, LS_SUM, &e), LS_EINVAL,
                    "counts is NULL", e);
    assert_ls_fails(ls_all_gather_v(g, in, out, counts, LS_F32, &e), LS_EINVAL, "worker 1", e);
    assert_ls_fails(ls_send(g, in, 1, LS_F32, 7, &e), LS_EINVAL, "to 7", e);
    assert_ls_fails(ls_recv(g, in, 1, LS_F32, ls_group_rank(g), &e), LS_EINVAL, "itself", e);
    assert_true(out[0] == 5);
    return ls_all_reduce(g, in, out, 8, LS_F32, LS_SUM, &e); /* the group is usable */
}

static void test_bad_arguments(void **state) {
    (void)state;
    run_threads(2, NULL, bad_arguments, NULL, NULL);
    ls_group *g[1];
    ls_error e = {0};
    assert_ls_fails(ls_group_open_threads(0, NULL, g, &e), LS_EINVAL, "0 threads", e);
    assert_ls_fails(ls_group_open_threads(1, &(ls_group_options){.algorithm = "best"}, g, &e),
                    LS_EINVAL, "there are direct exchange ring", e);
}

static ls_status twice(ls_group *g, void *arg, ls_error *e) {
    ls_group *again = NULL;
    (void)g, (void)arg;
    assert_ls_fails(ls_group_open(NULL, &again, e), LS_EINVAL, "ls_group_dup", *e);
    return LS_OK;
}

static void test_twice(void **state) {
    (void)state;
    need_processes();
    run_processes(2, NULL, twice, NULL);
}

static ls_status limited(ls_group *g, void *arg, ls_error *e) {
    work unused = {0}, *w = &unused;
    int r = ls_group_rank(g), n = ls_group_size(g), x = 1;
    ls_request *q = NULL;
    (void)arg;
    LS_TRY(ls_all_reduce_start(g, &x, &x, 1, LS_I32, LS_SUM, &q, e));
    if (r == 0) {
        ls_status s = ls_wait(&q, 0.02, e);
        CHECK(s == LS_OK || s == LS_EPENDING);
    } else {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    if (q) LS_TRY(ls_wait(&q, -1, e));
    CHECK(x == n);
    return LS_OK;
}

/* Worker 1 is late; worker 0's own limit runs out before, and it waits again. */
static void test_limit(void **state) {
    (void)state;
    run_threads(2, NULL, limited, NULL, NULL);
    run_threads(2, &(ls_group_options){.algorithm = "direct"}, limited, NULL, NULL);
}

/* What has no use here is refused by its name all the same: a group of one, and threads, need no
 * transport and no links. */
static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *variable, *says;
        ls_group_options options;
    } bad[] = {
        {"LOCKSTEP_TRANSPORT", "transport 'none' does not exist", {.transport = "none"}},
        {"LOCKSTEP_ALGORITHM", "algorithm 'none' does not exist", {.algorithm = "none"}},
        {"LOCKSTEP_LINKS", "none: can't be opened", {.links = "none"}},
        {"LOCKSTEP_EXPLAIN", "LOCKSTEP_EXPLAIN: 'none' is neither 0 nor 1", {0}},
        {"LOCKSTEP_WAIT_POLICY", "LOCKSTEP_WAIT_POLICY: 'none' is not", {0}},
        {"LOCKSTEP_CORES", "LOCKSTEP_CORES: 'none' is no number", {0}},
        {"LOCKSTEP_CPU", "LOCKSTEP_CPU: no kernels 'none'", {0}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const ls_group_options *o = &bad[i].options;
        ls_group *g = NULL, *threads[2];
        ls_error e = {0};
        for (int named = o->transport || o->algorithm || o->links; named >= 0; named--) {
            if (!named) setenv(bad[i].variable, "none", 1);
            ls_status s = ls_group_open(named ? o : NULL, &g, &e);
            if (s == LS_OK || !strstr(e.msg, bad[i].says)) fail_msg("%s: %s", bad[i].says, e.msg);
            s = ls_group_open_threads(2, named ? o : NULL, threads, &e);
            if (s == LS_OK || !strstr(e.msg, bad[i].says)) fail_msg("%s: %s", bad[i].says, e.msg);
        }
        unsetenv(bad[i].variable);
        assert_ls_ok(ls_group_open(NULL, &g, &e), e);
        ls_group_close(g);
    }
    ls_error e = {0};
    ls_group *threads[2];
    assert_ls_fails(ls_group_open_threads(2, &(ls_group_options){.transport = "tcp"}, threads, &e),
                    LS_EINVAL, "transport tcp: threads of one process share memory", e);
}

static void test_null(void **state) {
    (void)state;
    ls_error e = {0};
    float x = 1;
    char text[64];
    assert_int_equal(ls_group_rank(NULL), 0);
    assert_int_equal(ls_group_size(NULL), 0);
    assert_null(ls_group_alloc(NULL, 8));
    ls_group_free(NULL, &x);
    assert_false(ls_group_readable(NULL, &x, sizeof x));
    assert_true(ls_group_counters(NULL).calls == 0);
    assert_null(ls_group_at(NULL, __FILE__, __LINE__));
    assert_ls_fails(ls_all_reduce(NULL, &x, &x, 1, LS_F32, LS_SUM, &e), LS_EINVAL,
                    "the group is NULL", e);
    assert_ls_fails(ls_group_explain(NULL, "barrier", 0, LS_F32, text, sizeof text, &e), LS_EINVAL,
                    "no group", e);
    assert_int_equal(ls_group_dup(NULL, NULL, NULL), LS_EINVAL);
    ls_group_close(NULL);
}

/* group_test [TEST] */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_processes),
        cmocka_unit_test(test_staged),     cmocka_unit_test(test_forced),
        cmocka_unit_test(test_neighbours), cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_tcp_plain),  plain_unit_test(test_tcp_forced),
        cmocka_unit_test(test_many),       cmocka_unit_test(test_cross),
        cmocka_unit_test(test_split),      cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_twice),      cmocka_unit_test(test_limit),
        cmocka_unit_test(test_any),        cmocka_unit_test(test_names),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
