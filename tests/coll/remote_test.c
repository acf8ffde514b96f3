/* remote_test.c - collectives of processes on memory of their own: sums go through the stage in
 * rounds, and others read the inputs of copies through the kernel (coll/shared_remote.c), with the
 * same results; some workers have memory of the group.
 */
/* ctest: long-asan: coll/in_place and coll/ops run the same code */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "coll/team.h"
#include "coll/virtual.h"

enum { MOST = 5, ATTACHED = 1 << 20 };
static const int sizes[] = {2, 3, 5};
static const size_t counts[] = {30000, 65536, 400003};

static int32_t value(int rank, int to, size_t i) {
    return (int32_t)(i * 7 + (size_t)rank * 1000003 + (size_t)to * 31);
}

/* Each block is for a worker. */
static void fill(int32_t *in, int rank, int n, size_t count) {
    for (int b = 0; b < n; b++)
        for (size_t i = 0; i < count; i++) in[(size_t)b * count + i] = value(rank, b, i);
}

static int32_t sum_of(int n, int block, size_t i) {
    uint32_t sum = 0;
    for (int r = 0; r < n; r++) sum += (uint32_t)value(r, block, i);
    return (int32_t)sum;
}

static ls_status check(const char *name, bool right, int rank, size_t i, ls_error *e) {
    return right ? LS_OK : ls_fail(e, LS_EIO, "%s: element %zu of worker %d", name, i, rank);
}

/* in, out [n * count] */
static ls_status try_sums(ls_group *g, int32_t *in, int32_t *out, size_t count, ls_error *e) {
    int n = ls_group_size(g), r = ls_group_rank(g);
    size_t all = (size_t)n * count;
    for (int in_place = 0; in_place < 2; in_place++) {
        fill(in, r, n, count);
        int32_t *to = in_place ? in : out;
        LS_TRY(ls_all_reduce(g, in, to, all, LS_I32, LS_SUM, e));
        for (size_t i = 0; i < all; i++)
            LS_TRY(check("all_reduce", to[i] == sum_of(n, (int)(i / count), i % count), r, i, e));
    }
    fill(in, r, n, count);
    LS_TRY(ls_reduce_scatter(g, in, out, count, LS_I32, LS_SUM, e));
    for (size_t i = 0; i < count; i++)
        LS_TRY(check("reduce_scatter", out[i] == sum_of(n, r, i), r, i, e));
    return LS_OK;
}

static ls_status try_copies(ls_group *g, int32_t *in, int32_t *out, size_t count, ls_error *e) {
    int n = ls_group_size(g), r = ls_group_rank(g), root = n - 1;
    size_t all = (size_t)n * count;
    fill(in, r, n, count);
    LS_TRY(ls_all_gather(g, in, out, count, LS_I32, e));
    for (size_t i = 0; i < all; i++)
        LS_TRY(check("all_gather", out[i] == value((int)(i / count), 0, i % count), r, i, e));
    LS_TRY(ls_all_to_all(g, in, out, count, LS_I32, e));
    for (size_t i = 0; i < all; i++)
        LS_TRY(check("all_to_all", out[i] == value((int)(i / count), r, i % count), r, i, e));
    memset(out, 0, all * sizeof *out);
    LS_TRY(ls_gather(g, in, out, count, LS_I32, root, e));
    for (size_t i = 0; i < all && r == root; i++)
        LS_TRY(check("gather", out[i] == value((int)(i / count), 0, i % count), r, i, e));
    LS_TRY(ls_scatter(g, in, out, count, LS_I32, root, e));
    for (size_t i = 0; i < count; i++)
        LS_TRY(check("scatter", out[i] == value(root, r, i), r, i, e));
    LS_TRY(ls_broadcast(g, in, count, LS_I32, root, e));
    for (size_t i = 0; i < count; i++)
        LS_TRY(check("broadcast", in[i] == value(root, 0, i), r, i, e));
    return LS_OK;
}

/* Worker r sends count - r elements to each other one. */
static ls_status try_uneven(ls_group *g, int32_t *in, int32_t *out, size_t count, ls_error *e) {
    int n = ls_group_size(g), r = ls_group_rank(g);
    size_t sends[MOST], receives[MOST], at = 0;
    for (int i = 0; i < n; i++) sends[i] = count - (size_t)r, receives[i] = count - (size_t)i;
    fill(in, r, n, count - (size_t)r);
    LS_TRY(ls_all_to_all_v(g, in, sends, out, receives, LS_I32, e));
    for (int b = 0; b < n; b++)
        for (size_t i = 0; i < receives[b]; i++, at++)
            LS_TRY(check("all_to_all_v", out[at] == value(b, r, i), r, at, e));
    return LS_OK;
}

/* The same bits as in memory of the group: the order of sums is the same. */
static ls_status try_bits(ls_group *g, size_t count, ls_dtype dtype, ls_error *e) {
    size_t size = ls_dtype_size(dtype), nbytes = count * size;
    unsigned char *own = malloc(nbytes), *shared = ls_group_alloc(g, nbytes);
    uint32_t x = (uint32_t)ls_group_rank(g) + 1;
    for (size_t i = 0; i < nbytes; i++) {
        x = x * 1664525 + 1013904223;
        bool high = i % size == size - 1; /* an exponent that makes numbers about 1 */
        own[i] = shared[i] = high ? 0x3f : (unsigned char)(x >> 24);
    }
    bool right = ls_group_readable(g, shared, nbytes) && !ls_group_readable(g, own, nbytes);
    ls_status s = check("readable", right, ls_group_rank(g), 0, e);
    if (s == LS_OK) s = ls_all_reduce(g, own, own, count, dtype, LS_AVG, e);
    if (s == LS_OK) s = ls_all_reduce(g, shared, shared, count, dtype, LS_AVG, e);
    if (s == LS_OK) s = check("bits", memcmp(own, shared, nbytes) == 0, ls_group_rank(g), 0, e);
    if (s == LS_OK) s = ls_barrier(g, e);
    free(own);
    ls_group_free(g, shared);
    return s;
}

static ls_status try_all(ls_group *g, void *arg, ls_error *e) {
    int n = ls_group_size(g), r = ls_group_rank(g);
    bool mixed = *(const bool *)arg && r == 0;
    for (int c = 0; c < 3; c++) {
        size_t nbytes = counts[c] * (size_t)n * sizeof(int32_t);
        int32_t *in = mixed ? ls_group_alloc(g, nbytes) : malloc(nbytes), *out = malloc(nbytes);
        ls_status s = try_sums(g, in, out, counts[c], e);
        if (s == LS_OK) s = try_copies(g, in, out, counts[c], e);
        if (s == LS_OK) s = try_uneven(g, in, out, counts[c], e);
        if (s == LS_OK) s = ls_barrier(g, e);
        if (mixed)
            ls_group_free(g, in);
        else
            free(in);
        free(out);
        LS_TRY(s);
        LS_TRY(try_bits(g, counts[c], LS_F32, e));
        LS_TRY(try_bits(g, counts[c], LS_BF16, e));
    }
    return LS_OK;
}

static void test_own(void **state) {
    (void)state;
    need_processes();
    for (int i = 0; i < 3; i++) run_processes(sizes[i], NULL, try_all, &(bool){false});
}

static void test_mixed(void **state) {
    (void)state;
    need_processes();
    for (int i = 0; i < 3; i++) run_processes(sizes[i], NULL, try_all, &(bool){true});
}

/* Workers share further memory. Their own lies above all that they share: on the stack. */
static ls_status try_attached(ls_group *g, void *arg, ls_error *e) {
    enum { COUNT = 30000 };
    int32_t in[MOST * COUNT], out[MOST * COUNT];
    ls_group_attach(g, arg, ATTACHED);
    for (int i = 0; i < 2; i++) { /* the first copy goes through the stage */
        LS_TRY(try_copies(g, in, out, COUNT, e));
        LS_TRY(try_uneven(g, in, out, COUNT, e));
    }
    return ls_barrier(g, e);
}

static void test_attached(void **state) {
    (void)state;
    need_processes();
    void *memory = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_map_shared(ATTACHED, "what is attached", &memory, &e), e);
    for (int i = 0; i < 3; i++) run_processes(sizes[i], NULL, try_attached, memory);
    ls_unmap(memory, ATTACHED);
}

/* A worker that is lost between or in calls: the others' calls fail. */
static ls_status lose(ls_group *g, void *arg, ls_error *e) {
    enum { N = 300000 };
    float *x = calloc(N, sizeof *x);
    ls_status s = LS_OK;
    (void)arg;
    for (int i = 0; s == LS_OK; i++) {
        if (i == 20 && ls_group_rank(g) == 1) _exit(0);
        s = ls_all_reduce(g, x, x, N, LS_F32, LS_SUM, e);
    }
    free(x);
    return s == LS_EPEER ? LS_OK : LS_EIO;
}

static void test_lost(void **state) {
    (void)state;
    need_processes();
    run_processes(3, NULL, lose, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_attached),
        cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
