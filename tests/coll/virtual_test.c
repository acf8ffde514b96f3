/* virtual_test.c - sums over virtual workers: the same bits for any number of workers, over shared
 * memory and over messages; and memory in one copy. */
/* ctest: long-asan: coll/ops runs the same code */
/* ctest: long-tsan: coll/group and coll/ops start the same threads */
#include "coll/virtual.h"

#include "base/random.h"
#include "coll/algo/tree.h"
#include "coll/team.h"
#include "lockstep/virtual.h"

enum { V = 11, COUNT = 70001, MOST = 8 };

typedef struct job {
    size_t count;
    bool arena; /* inputs that others can read */
    ls_dtype dtype;
    float *want; /* [count] */
} job;

/* The gradient of virtual worker v. */
static float leaf(int v, size_t i) {
    uint32_t w[4];
    ls_random_words(9, LS_STREAM_SAMPLE, (uint64_t)v, i, w);
    return (float)(int32_t)w[0] * 0x1p-20f;
}

static float sum_of(int lo, int hi, size_t i) {
    if (hi - lo == 1) return leaf(lo, i);
    int middle = ls_tree_split(lo, hi);
    return sum_of(lo, middle, i) + sum_of(middle, hi, i);
}

/* Uneven blocks, some of them empty. */
static void cut(size_t count, int n, size_t *counts) {
    size_t left = count;
    for (int w = 0; w < n; w++) {
        counts[w] = w == n - 1 ? left : w % 3 == 1 ? 0 : left / 3;
        left -= counts[w];
    }
}

/* One worker in the middle has almost all. */
static void deal_out(int n, int first[MOST + 1]) {
    first[0] = 0;
    for (int w = 0; w < n; w++) first[w + 1] = first[w] + (w == n / 2 ? V - n + 1 : 1);
}

/* want [count]: the sum over all leaves. */
static ls_status reduce_scatter_parts(ls_group *g, const job *j, const ls_tree_parts *parts,
                                      const float *want, ls_error *e) {
    int n = ls_group_size(g), rank = ls_group_rank(g);
    ls_node nodes[LS_TREE_MAX_COVER];
    size_t inputs = (size_t)ls_tree_parts_cover(parts, rank, n, nodes), stride = j->count + 5;
    size_t nbytes = inputs * stride * sizeof(float), counts[MOST], first = 0;
    float *in = j->arena ? ls_group_alloc(g, nbytes) : malloc(nbytes);
    if (!in) return ls_fail(e, LS_ENOMEM, "no memory");
    for (size_t s = 0; s < inputs; s++)
        for (size_t i = 0; i < j->count; i++)
            in[s * stride + i] = sum_of(nodes[s].lo, nodes[s].hi, i);
    cut(j->count, n, counts);
    for (int w = 0; w < rank; w++) first += counts[w];
    for (int in_place = 0; in_place < 2; in_place++) {
        float *out = in_place ? in + first : calloc(counts[rank] + 1, sizeof *out);
        ls_request *r = NULL;
        LS_TRY(ls_reduce_scatter_virtual_start(g,
                                               &(ls_virtual_sum){.V = parts->V,
                                                                 .first = parts->first,
                                                                 .chunks = parts->chunks,
                                                                 .context = parts->context,
                                                                 .in = in,
                                                                 .stride = stride,
                                                                 .out = out,
                                                                 .dtype = LS_F32,
                                                                 .counts = counts},
                                               &r, e));
        LS_TRY(ls_wait(&r, -1, e));
        if (counts[rank] && memcmp(out, want + first, counts[rank] * sizeof *out) != 0)
            return ls_fail(e, LS_EINVAL, "worker %d of %d: wrong sum, in place %d", rank, n,
                           in_place);
        if (!in_place) free(out);
        LS_TRY(ls_barrier(g, e));
    }
    if (j->arena)
        ls_group_free(g, in);
    else
        free(in);
    return LS_OK;
}

static ls_status reduce_scatter(ls_group *g, void *arg, ls_error *e) {
    int first[MOST + 1];
    deal_out(ls_group_size(g), first);
    const job *j = arg;
    ls_tree_parts parts = {.V = V};
    LS_TRY(reduce_scatter_parts(g, j, &parts, j->want, e));
    parts.first = first;
    return reduce_scatter_parts(g, j, &parts, j->want, e);
}

static void run_all(size_t count, bool arena, const char *algorithm, bool processes) {
    job j = {.count = count, .arena = arena};
    j.want = malloc((count + 1) * sizeof *j.want);
    for (size_t i = 0; i < count; i++) j.want[i] = sum_of(0, V, i);
    ls_group_options o = {.timeout_s = 60, .algorithm = algorithm};
    for (int n = 1; n <= MOST; n++) {
        if (processes)
            run_processes(n, &o, reduce_scatter, &j);
        else
            run_threads(n, &o, reduce_scatter, &j, NULL);
    }
    free(j.want);
}

static void test_direct(void **state) {
    (void)state;
    run_all(COUNT, true, NULL, false);
    run_all(COUNT, true, NULL, true);
    run_all(0, true, NULL, false);
    run_all(1, true, NULL, false);
    run_all(7, true, NULL, false);
}

/* Processes can't read each other's ordinary memory. */
static void test_staged(void **state) {
    (void)state;
    need_processes();
    run_all(COUNT, false, NULL, true);
    run_all(7, false, NULL, true);
}

static void test_messages(void **state) {
    (void)state;
    run_all(COUNT, true, "direct", false);
    run_all(7, true, "direct", false);
    run_all(1, true, "ring", false); /* it has no virtual workers: the model chooses */
}

/* Three chunks of each of four virtual workers, among all numbers of workers that may divide
 * them. */
enum { CHUNKS = 3, EACH = 4 };

static ls_status sum_chunks(ls_group *g, void *arg, ls_error *e) {
    const job *j = arg;
    int n = ls_group_size(g);
    for (int context = 1; context <= CHUNKS; context++) {
        ls_tree_parts parts = {.V = CHUNKS * EACH, .chunks = CHUNKS, .context = context};
        if (n % context || n / context > EACH) continue;
        LS_TRY(reduce_scatter_parts(g, j, &parts, j->want, e));
    }
    return LS_OK;
}

static void test_chunks(void **state) {
    (void)state;
    static const char *const algorithms[] = {NULL, "direct"};
    job j = {.count = COUNT / 7, .arena = true};
    j.want = malloc((j.count + 1) * sizeof *j.want);
    for (size_t i = 0; i < j.count; i++) j.want[i] = sum_of(0, CHUNKS * EACH, i);
    for (int k = 0; k < 2; k++)
        for (int n = 1; n <= MOST; n++) {
            ls_group_options o = {.timeout_s = 60, .algorithm = algorithms[k]};
            run_threads(n, &o, sum_chunks, &j, NULL);
        }
    free(j.want);
}

static ls_status too_few(ls_group *g, void *arg, ls_error *e) {
    (void)arg;
    float in[4] = {0}, out[4] = {0};
    size_t counts[3] = {1, 1, 1};
    ls_request *r = NULL;
    ls_status s = ls_reduce_scatter_virtual_start(
        g, &(ls_virtual_sum){.V = 2, .in = in, .out = out, .dtype = LS_F32, .counts = counts}, &r,
        e);
    return s == LS_EINVAL ? LS_OK : ls_fail(e, LS_EINVAL, "2 virtual workers for 3 were taken");
}

static void test_too_few(void **state) {
    (void)state;
    run_threads(3, NULL, too_few, NULL, NULL);
}

/* Workers whose calls differ only in V disagree. */
static ls_status differ(ls_group *g, void *arg, ls_error *e) {
    (void)arg;
    float in[64] = {0}, out[64] = {0};
    size_t counts[2] = {4, 4};
    ls_request *r = NULL;
    int rank = ls_group_rank(g);
    LS_TRY(ls_reduce_scatter_virtual_start(g,
                                           &(ls_virtual_sum){.V = 4 + 4 * rank,
                                                             .in = in,
                                                             .stride = 8,
                                                             .out = out,
                                                             .dtype = LS_F32,
                                                             .counts = counts},
                                           &r, e));
    ls_status s = ls_wait(&r, -1, e);
    return s == LS_EDISAGREE ? LS_OK : ls_fail(e, LS_EIO, "no disagreement: %s", e->msg);
}

static void test_differ(void **state) {
    (void)state;
    run_threads(2, NULL, differ, NULL, NULL);
}

/* ---- ls_all_reduce_virtual(): each virtual worker's vector, from a program ---- */

/* f64 has the sum's formula in double precision, other types that of f32, rounded for halves. */
static void put(ls_dtype dtype, size_t i, float x, void *to) {
    if (dtype == LS_F64)
        ((double *)to)[i] = (double)x;
    else if (dtype == LS_I32)
        ((int32_t *)to)[i] = (int32_t)x;
    else if (dtype == LS_F32)
        ((float *)to)[i] = x;
    else
        memcpy((uint16_t *)to + i, (unsigned char *)&x + 2, 2); /* bf16, cut off */
}

static double double_sum(int lo, int hi, size_t i) {
    if (hi - lo == 1) return (double)leaf(lo, i);
    int middle = ls_tree_split(lo, hi);
    return double_sum(lo, middle, i) + double_sum(middle, hi, i);
}

static bool is_sum(ls_dtype dtype, ls_op op, const void *out, size_t i) {
    int64_t whole = 0;
    int32_t most = INT32_MIN;
    float sum = sum_of(0, V, i);
    double wide = double_sum(0, V, i);
    for (int v = 0; v < V; v++) {
        whole += (int32_t)leaf(v, i);
        if ((int32_t)leaf(v, i) > most) most = (int32_t)leaf(v, i);
    }
    if (dtype == LS_I32) return ((const int32_t *)out)[i] == (op == LS_MAX ? most : (int32_t)whole);
    if (dtype == LS_F64) return ((const double *)out)[i] == (op == LS_AVG ? wide / V : wide);
    return ((const float *)out)[i] == (op == LS_AVG ? sum / (float)V : sum);
}

typedef struct given {
    ls_dtype dtype;
    ls_op op;
    size_t count;
    void *want; /* [count] of one worker; NULL: the sum's formula */
} given;

static ls_status sum_given(ls_group *g, void *arg, ls_error *e) {
    const given *x = arg;
    int first = 0, end = 0, n = ls_group_size(g);
    size_t size = ls_dtype_size(x->dtype), nbytes = x->count * size;
    ls_group_virtual_workers(g, V, &first, &end);
    size_t own = (size_t)(end - first);
    unsigned char *in = malloc(own * nbytes + 1), *out = malloc(nbytes + 1);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (size_t v = 0; v < own; v++)
            for (size_t i = 0; i < x->count; i++)
                put(x->dtype, i, leaf(first + (int)v, i), in + v * nbytes);
        void *to = in_place ? in : out;
        LS_TRY(ls_all_reduce_virtual(g, in, to, x->count, x->dtype, x->op, V, e));
        bool good = !x->want || memcmp(to, x->want, nbytes) == 0;
        for (size_t i = 0; !x->want && i < x->count; i++)
            good = good && is_sum(x->dtype, x->op, to, i);
        if (!good)
            return ls_fail(e, LS_EINVAL, "%s %s, %zu elements, %d workers, in place %d: wrong",
                           ls_dtype_name(x->dtype), ls_op_name(x->op), x->count, n, in_place);
        if (in_place && own > 1 && x->count) { /* the other contributions are as before */
            put(x->dtype, 0, leaf(first + 1, 0), out);
            if (memcmp(in + nbytes, out, size) != 0) return ls_fail(e, LS_EINVAL, "changed");
        }
    }
    free(in);
    free(out);
    return LS_OK;
}

static void test_given(void **state) {
    static const struct {
        ls_dtype dtype;
        ls_op op;
    } kinds[] = {
        {LS_F32, LS_SUM}, {LS_F32, LS_AVG}, {LS_F64, LS_SUM},
        {LS_F64, LS_AVG}, {LS_I32, LS_SUM}, {LS_I32, LS_MAX},
    };
    static const size_t counts[] = {0, 1, 7, 5001};
    static const int sizes[] = {1, 2, 3, 5, 8};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int c = 0; c < 4; c++)
            for (int s = 0; s < 5; s++) {
                given x = {kinds[k].dtype, kinds[k].op, counts[c], NULL};
                ls_group_options o = {.algorithm = s % 2 ? "direct" : NULL};
                run_threads(sizes[s], &o, sum_given, &x, NULL);
            }
}

static ls_status sum_halves(ls_group *g, void *arg, ls_error *e) {
    given *x = arg;
    uint16_t *in = calloc(V * x->count, sizeof *in);
    for (int v = 0; v < V; v++)
        for (size_t i = 0; i < x->count; i++)
            put(x->dtype, i, leaf(v, i), in + (size_t)v * x->count);
    x->want = calloc(x->count, sizeof *in);
    LS_TRY(ls_all_reduce_virtual(g, in, x->want, x->count, x->dtype, x->op, V, e));
    free(in);
    return LS_OK;
}

/* Halves are rounded at each node of the tree, so their bits don't depend on workers either. */
static void test_given_halves(void **state) {
    (void)state;
    for (int op = LS_SUM; op <= LS_AVG; op++) {
        given x = {LS_BF16, (ls_op)op, 1003, NULL};
        run_threads(1, NULL, sum_halves, &x, NULL);
        for (int n = 2; n <= 5; n++) run_threads(n, NULL, sum_given, &x, NULL);
        free(x.want);
    }
}

static ls_status refused(ls_group *g, void *arg, ls_error *e) {
    float x[40] = {0};
    (void)arg;
    const struct {
        const void *in;
        void *out;
        size_t count;
        ls_dtype dtype;
        ls_op op;
        int V;
        const char *message;
    } calls[] = {
        {x, x, 4, LS_F32, LS_SUM, 1, "1 virtual workers for 2 workers; each needs one"},
        {x, x, 4, LS_F32, LS_SUM, -7, "-7 virtual workers for 2 workers"},
        {NULL, x, 4, LS_F32, LS_SUM, 4, "in is NULL, but has 8 elements"},
        {x, NULL, 4, LS_F32, LS_SUM, 4, "out is NULL, but has 4 elements"},
        {x, x + 4, 4, LS_F32, LS_SUM, 4, "in and out overlap"},
        {(char *)x + 1, x + 20, 4, LS_F32, LS_SUM, 4, "in is not aligned"},
        {x, x + 20, SIZE_MAX / 8, LS_F32, LS_SUM, 4, "elements are too many"},
        {x, x + 20, 4, LS_I32, LS_AVG, 4, "no avg of i32"},
        {x, x + 20, 4, (ls_dtype)99, LS_SUM, 4, "dtype 99 does not exist"},
        {x, x + 20, 4, LS_F32, (ls_op)-1, 4, "operation -1 does not exist"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        ls_status s = ls_all_reduce_virtual(g, calls[i].in, calls[i].out, calls[i].count,
                                            calls[i].dtype, calls[i].op, calls[i].V, e);
        if (s != LS_EINVAL || !strstr(e->msg, calls[i].message))
            return ls_fail(e, LS_EIO, "call %zu was not refused: %s", i, e->msg);
    }
    return ls_all_reduce_virtual(g, x, x + 20, 4, LS_F32, LS_SUM, 4, e); /* the group lives */
}

/* Workers that give other numbers of virtual workers, or other operations, disagree. */
static ls_status other_v(ls_group *g, void *arg, ls_error *e) {
    float in[8] = {0}, out[1];
    bool averages = *(bool *)arg && ls_group_rank(g) == 1;
    int nvirtual = *(bool *)arg ? 4 : 4 + ls_group_rank(g);
    ls_status s =
        ls_all_reduce_virtual(g, in, out, 1, LS_F32, averages ? LS_AVG : LS_SUM, nvirtual, e);
    return s == LS_EDISAGREE ? LS_OK : ls_fail(e, LS_EIO, "no disagreement: %s", e->msg);
}

static void test_given_refused(void **state) {
    int first = 1, end = 1;
    bool averages = false;
    ls_error e;
    (void)state;
    run_threads(2, NULL, refused, NULL, NULL);
    run_threads(2, NULL, other_v, &averages, NULL);
    averages = true;
    run_threads(2, NULL, other_v, &averages, NULL);
    ls_group_virtual_workers(NULL, 4, &first, &end);
    assert_int_equal(first + end, 0);
    assert_int_equal(ls_all_reduce_virtual(NULL, &e, &e, 1, LS_U8, LS_SUM, 1, &e), LS_EINVAL);
}

/* Each worker writes its block; gathering the blocks moves nothing, and all see all of them. */
static ls_status one_copy(ls_group *g, void *arg, ls_error *e) {
    (void)arg;
    int n = ls_group_size(g), rank = ls_group_rank(g);
    enum { BLOCK = 3000 };
    void *p = NULL;
    LS_TRY(ls_group_alloc_one(g, (size_t)n * BLOCK * sizeof(int32_t), &p, e));
    if (n == 1) return p ? ls_fail(e, LS_EINVAL, "alone there is nothing to share") : LS_OK;
    if (!p) return ls_fail(e, LS_ENOMEM, "no memory in one copy");
    int32_t *x = p, *own = x + rank * BLOCK;
    size_t counts[MOST];
    for (int w = 0; w < n; w++) counts[w] = BLOCK;
    for (int round = 1; round < 50; round++) {
        for (int i = 0; i < BLOCK; i++) own[i] = round * (rank + 1);
        ls_request *r = NULL;
        LS_TRY(ls_all_gather_v_start(g, own, x, counts, LS_I32, &r, e));
        LS_TRY(ls_wait(&r, -1, e));
        for (int i = 0; i < n * BLOCK; i++)
            if (x[i] != round * (i / BLOCK + 1)) return ls_fail(e, LS_EINVAL, "not there");
        LS_TRY(ls_barrier(g, e)); /* all have looked */
    }
    return LS_OK;
}

static void test_one_copy(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) {
        run_threads(n, NULL, one_copy, NULL, NULL);
        run_processes(n, NULL, one_copy, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct),       cmocka_unit_test(test_staged),
        cmocka_unit_test(test_messages),     cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_differ),       cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_chunks),       cmocka_unit_test(test_given),
        cmocka_unit_test(test_given_halves), cmocka_unit_test(test_given_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
