/* reduction_test.c - reductions of the caller's own: a function that is not commutative, on
 * elements of several sizes, over every transport and algorithm; sums of floats to the bits of
 * LS_SUM. */
/* ctest: long-tsan: coll/group and coll/ops start the same threads */
#include <string.h>

#include "base/mem.h"
#include "coll/algo/algorithm.h"
#include "coll/team.h"

static const int SIZES[] = {1, 2, 3, 5, 8};
enum { NSIZES = 5, MOST = 2000 };

/* A number that looks random. */
static uint32_t number(uint32_t worker, uint32_t i) {
    uint32_t x = (worker + 1) * 2654435761u ^ (i + 7) * 2246822519u;
    x = (x ^ x >> 15) * 3266489917u;
    return x ^ x >> 13;
}

/* Pairs of bytes are maps x -> a x + b modulo 256, which follow each other; of a byte that is left
 * over the right one counts. Associative, exact, and not commutative. */
static void follow(void *arg, size_t n, const void *a, const void *b, void *out) {
    size_t nbytes = *(const size_t *)arg;
    const uint8_t *x = a, *y = b;
    uint8_t *to = out;
    for (; n > 0; n--, x += nbytes, y += nbytes, to += nbytes) {
        for (size_t i = 0; i + 1 < nbytes; i += 2) {
            uint8_t times = (uint8_t)(x[i] * y[i]), plus = (uint8_t)(x[i] * y[i + 1] + x[i + 1]);
            to[i] = times, to[i + 1] = plus;
        }
        if (nbytes % 2) to[nbytes - 1] = y[nbytes - 1];
    }
}

static void fill(uint8_t *x, size_t nbytes, int worker) {
    for (size_t i = 0; i < nbytes; i++)
        x[i] = (uint8_t)(number((uint32_t)worker, (uint32_t)i) | (i % 2 == 0));
}

/* The maps of workers 0 .. last, one after the other. */
static void expected(const ls_reduction *by, size_t count, int last, uint8_t *out) {
    uint8_t *next = ls_alloc(count * by->element_nbytes + 1);
    fill(out, count * by->element_nbytes, 0);
    for (int w = 1; w <= last; w++) {
        fill(next, count * by->element_nbytes, w);
        by->combine(by->arg, count, out, next, out);
    }
    free(next);
}

typedef struct buffers {
    ls_group *g;
    int n, rank;
    size_t nbytes, all; /* of count elements; of those of all workers */
    uint8_t *in, *out, *want;
} buffers;

static buffers open_buffers(ls_group *g, size_t nbytes, bool shared) {
    buffers b = {.g = g, .n = ls_group_size(g), .rank = ls_group_rank(g), .nbytes = nbytes};
    b.all = nbytes * (size_t)b.n + 1;
    b.in = shared ? ls_group_alloc(g, b.all) : ls_alloc(b.all);
    b.out = shared ? ls_group_alloc(g, b.all) : ls_alloc(b.all);
    b.want = ls_alloc(b.all);
    fill(b.in, b.all - 1, b.rank);
    return b;
}

static void close_buffers(buffers *b, bool shared) {
    if (shared) {
        ls_group_free(b->g, b->in);
        ls_group_free(b->g, b->out);
    } else {
        free(b->in);
        free(b->out);
    }
    free(b->want);
}

static void check_whole(const buffers *b, size_t count, const ls_reduction *by, ls_error *e) {
    int root = b->n / 2;
    memset(b->out, 0xee, b->nbytes);
    assert_ls_ok(ls_all_reduce_by(b->g, b->in, b->out, count, by, e), *e);
    expected(by, count, b->n - 1, b->want);
    assert_memory_equal(b->out, b->want, b->nbytes);
    memcpy(b->out, b->in, b->nbytes); /* in place */
    assert_ls_ok(ls_all_reduce_by(b->g, b->out, b->out, count, by, e), *e);
    assert_memory_equal(b->out, b->want, b->nbytes);
    memset(b->out, 0xee, b->nbytes);
    assert_ls_ok(ls_reduce_by(b->g, b->in, b->out, count, by, root, e), *e);
    if (b->rank == root) assert_memory_equal(b->out, b->want, b->nbytes);
}

static void check_prefixes(const buffers *b, size_t count, const ls_reduction *by, ls_error *e) {
    expected(by, count, b->rank, b->want);
    assert_ls_ok(ls_scan_by(b->g, b->in, b->out, count, by, e), *e);
    assert_memory_equal(b->out, b->want, b->nbytes);
    assert_ls_ok(ls_exscan_by(b->g, b->in, b->out, count, by, e), *e);
    if (b->rank == 0) return;
    expected(by, count, b->rank - 1, b->want);
    assert_memory_equal(b->out, b->want, b->nbytes);
}

/* in has a block of `count` elements for each worker. */
static void check_blocks(const buffers *b, size_t count, const ls_reduction *by, ls_error *e) {
    size_t counts[8], at = 0, left = count * (size_t)b->n;
    expected(by, left, b->n - 1, b->want);
    assert_ls_ok(ls_reduce_scatter_by(b->g, b->in, b->out, count, by, e), *e);
    assert_memory_equal(b->out, b->want + b->nbytes * (size_t)b->rank, b->nbytes);
    for (int i = 0; i < b->n; i++) {
        counts[i] = i == b->n - 1 ? left : left / 3;
        left -= counts[i];
        if (i < b->rank) at += counts[i];
    }
    assert_ls_ok(ls_reduce_scatter_v_by(b->g, b->in, b->out, counts, by, e), *e);
    assert_memory_equal(b->out, b->want + at * by->element_nbytes,
                        counts[b->rank] * by->element_nbytes);
}

static ls_status all_calls(ls_group *g, void *arg, ls_error *e) {
    static const size_t elements[] = {1, 2, 3, 24, LS_MOST_ELEMENT};
    static const size_t counts[] = {0, 1, 7, MOST};
    (void)arg;
    for (size_t k = 0; k < sizeof elements / sizeof *elements; k++)
        for (size_t c = 0; c < 4; c++) {
            size_t size = elements[k], count = counts[c] * size > 12000 ? 12000 / size : counts[c];
            ls_reduction by = {"follow", size, follow, &size};
            for (int shared = 0; shared < 2; shared++) {
                buffers b = open_buffers(g, count * size, shared);
                check_whole(&b, count, &by, e);
                check_prefixes(&b, count, &by, e);
                check_blocks(&b, count, &by, e);
                ls_barrier(g, e);
                close_buffers(&b, shared);
            }
        }
    return LS_OK;
}

static ls_status one_size(ls_group *g, void *arg, ls_error *e) {
    size_t size = 24, count = *(const size_t *)arg;
    ls_reduction by = {"follow", size, follow, &size};
    buffers b = open_buffers(g, count * size, false);
    check_whole(&b, count, &by, e);
    check_prefixes(&b, count, &by, e);
    check_blocks(&b, count, &by, e);
    close_buffers(&b, false);
    return LS_OK;
}

static void test_shared(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++) run_threads(SIZES[s], NULL, all_calls, NULL, NULL);
    size_t rounds = 12000; /* more than the stage holds at a time */
    run_threads(3, NULL, one_size, &rounds, NULL);
}

/* An algorithm that keeps another order than the tree's is not used. */
static void test_algorithms(void **state) {
    static const size_t counts[] = {0, 1, 200};
    (void)state;
    for (int s = 1; s < NSIZES; s++)
        for (int a = 0; ls_algorithms[a]; a++)
            for (int c = 0; c < 3; c++) {
                ls_group_options o = {.algorithm = ls_algorithms[a]->name};
                size_t count = counts[c];
                run_threads(SIZES[s], &o, one_size, &count, NULL);
            }
}

static void test_processes(void **state) {
    (void)state;
    size_t count = 700;
    need_processes();
    run_processes(3, NULL, one_size, &count);
    ls_group_options o = {.transport = "tcp", .insecure = true};
    for (int s = 1; s < NSIZES; s += 2) run_processes(SIZES[s], &o, one_size, &count);
}

static void add(void *arg, size_t n, const void *a, const void *b, void *out) {
    const float *x = a, *y = b;
    float *to = out;
    (void)arg;
    for (size_t i = 0; i < n; i++) to[i] = x[i] + y[i];
}

/* A sum that is associative up to rounding has the bits of LS_SUM. */
static ls_status same_sum(ls_group *g, void *arg, ls_error *e) {
    enum { N = 3000 };
    static const ls_reduction by = {.name = "add", .element_nbytes = sizeof(float), .combine = add};
    float *x = LS_NEW_ARRAY(float, N), *own = LS_NEW_ARRAY(float, N), *sum = LS_NEW_ARRAY(float, N);
    (void)arg;
    for (int i = 0; i < N; i++)
        x[i] = (float)number((uint32_t)ls_group_rank(g), (uint32_t)i) / 1e8f - 21;
    ls_request *r = NULL;
    assert_ls_ok(ls_all_reduce_by_start(g, x, own, N, &by, &r, e), *e);
    assert_ls_ok(ls_all_reduce(g, x, sum, N, LS_F32, LS_SUM, e), *e);
    assert_ls_ok(ls_wait(&r, -1, e), *e);
    assert_memory_equal(own, sum, N * sizeof(float));
    free(x);
    free(own);
    free(sum);
    return LS_OK;
}

static void test_same_sum(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++) {
        run_threads(SIZES[s], NULL, same_sum, NULL, NULL);
        run_threads(SIZES[s], &(ls_group_options){.algorithm = "binomial"}, same_sum, NULL, NULL);
    }
}

static ls_status refused(ls_group *g, void *arg, ls_error *e) {
    size_t size = 8;
    uint8_t x[8] = {0}, y[8];
    ls_reduction none = {.element_nbytes = 8}, small = {"a", 0, follow, &size};
    ls_reduction large = {"a", LS_MOST_ELEMENT + 1, follow, &size};
    (void)arg;
    assert_ls_fails(ls_all_reduce_by(g, x, y, 1, NULL, e), LS_EINVAL, "its combine(), is NULL", *e);
    assert_ls_fails(ls_scan_by(g, x, y, 1, &none, e), LS_EINVAL, "scan: the reduction", *e);
    assert_ls_fails(ls_all_reduce_by(g, x, y, 1, &small, e), LS_EINVAL, "of 0 bytes", *e);
    assert_ls_fails(ls_all_reduce_by(g, x, y, 1, &large, e), LS_EINVAL, "of 513 bytes", *e);
    assert_int_equal(ls_all_reduce_by(g, x, y, 1, &large, NULL), LS_EINVAL);
    return ls_barrier(g, e);
}

static ls_status disagree(ls_group *g, void *arg, ls_error *e) {
    size_t size = 8;
    uint8_t x[8] = {0}, y[8];
    ls_reduction by = {ls_group_rank(g) ? "second" : "first", size, follow, &size};
    (void)arg;
    ls_status s = ls_all_reduce_by(g, x, y, 1, &by, e);
    return s == LS_OK ? ls_barrier(g, e) : s;
}

static void test_refused(void **state) {
    ls_error e[2] = {0};
    (void)state;
    run_threads(2, NULL, refused, NULL, NULL);
    for (int forced = 0; forced < 2; forced++) {
        ls_group_options o = {.timeout_s = 20, .algorithm = forced ? "binomial" : NULL};
        run_threads(2, &o, disagree, NULL, e);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(e[i].code, LS_EDISAGREE);
            assert_non_null(
                strstr(e[i].msg, "all_reduce of 8-byte elements by 'first', 1 element"));
            assert_non_null(strstr(e[i].msg, "by 'second'"));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),    cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_processes), cmocka_unit_test(test_same_sum),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
