/* virtual_test.c - sums over virtual workers: the same bits for any number of workers, over shared
 * memory and over messages; and memory in one copy. */
/* ctest: long-asan: coll/ops runs the same code */
/* ctest: long-tsan: coll/group and coll/ops start the same threads */
#include "coll/virtual.h"

#include "base/random.h"
#include "coll/algo/tree.h"
#include "coll/team.h"

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

/* Three chunks of each of four virtual workers, among all numbers of workers that may divide them. */
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
        cmocka_unit_test(test_direct),   cmocka_unit_test(test_staged),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_differ),   cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
