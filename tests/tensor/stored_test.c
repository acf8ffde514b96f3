/* stored_test.c - products with weights as files have them: the bits of products with their values
 * in f32, for every type, shape of a product, number of threads and variant. */
#include "tensor/stored.h"

#include <math.h>

#include "base/min.h"
#include "base/random.h"
#include "tensor/block_scales.h"
#include "tensor/each_kernel.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"
#include "test.h"

/* Rows of blocks of any bytes, with finite scales, and their values. */
typedef struct table {
    int64_t rows, width;
    uint8_t *bytes;
    ls_stored w;
    float *values; /* [rows, width] */
} table;

static table make_table(const ls_kernels *k, ls_block_type type, int64_t rows, int64_t width) {
    int64_t elements = ls_block_elements(type), nblocks = rows * width / elements;
    size_t block = ls_block_nbytes(type, elements), nbytes = ls_block_nbytes(type, rows * width);
    table t = {rows, width, malloc(nbytes + 2), {.type = type}, NULL};
    uint8_t *p = t.bytes + 2; /* not aligned to more than two bytes */
    for (size_t i = 0; i < nbytes; i++)
        p[i] = (uint8_t)(ls_random_uniform(7, LS_STREAM_SAMPLE, type, i) * 256);
    int at = 0, n = block_scales(type, &at);
    for (int64_t i = 0; i < nblocks; i++)
        for (int s = 0; s < n; s++) p[(size_t)i * block + (size_t)(at + 2 * s) + 1] &= 0xb7;
    t.w.data = p;
    t.values = malloc((size_t)(rows * width) * sizeof *t.values + 4);
    ls_stored_read(k, t.w, 0, rows * width, t.values);
    return t;
}

/* Whole numbers of 16 bits, so that elements of one value are what they are. */
static table make_halves(const ls_kernels *k, ls_dtype type, int64_t rows, int64_t width) {
    size_t n = (size_t)(rows * width);
    table t = {rows, width, malloc(n * 4 + 4), {.type = ls_block_of_dtype(type)}, NULL};
    t.values = malloc(n * sizeof *t.values + 4);
    ls_random_normal((ls_random_place){3, LS_STREAM_SAMPLE, 1, 0}, n, 1.0f, t.values);
    t.w.data = t.bytes;
    if (type == LS_F32) {
        memcpy(t.bytes, t.values, n * sizeof(float));
    } else {
        k->narrow(type, n, t.values, t.bytes);
        k->widen(type, n, t.bytes, t.values);
    }
    return t;
}

static void drop(table *t) { free(t->bytes), free(t->values); }

static float *normal(int64_t n, uint64_t stream) {
    float *p = malloc((size_t)n * sizeof *p + 4);
    ls_random_normal((ls_random_place){5, LS_STREAM_SAMPLE, stream, 0}, (size_t)n, 1.0f, p);
    return p;
}

static void same(const table *t, int64_t M, const char *what, int64_t n, const float *got,
                 const float *want) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0)
            fail_msg("type %d, %s, %lld x %lld x %lld: element %lld is %.9g, not %.9g",
                     (int)t->w.type, what, (long long)M, (long long)t->rows, (long long)t->width,
                     (long long)i, (double)got[i], (double)want[i]);
}

/* x . w^T and dy . w, from both forms of w. */
static void check_gemm(const ls_compute *c, const table *t, int64_t M) {
    for (int transposed = 0; transposed < 2; transposed++) {
        int64_t N = transposed ? t->rows : t->width, K = transposed ? t->width : t->rows;
        float *a = normal(M * K, 1), *got = normal(M * N, 2), *want = normal(M * N, 2);
        float *bias = normal(N, 3);
        ls_gemm_job job = {.M = M, .N = N, .K = K, .a = ls_matrix_of(a, K), .ldc = N, .bias = bias};
        for (int start = 0; start < 3; start++) {
            ls_gemm_job plain = job, stored = job;
            plain.start = stored.start = (ls_gemm_start)start;
            plain.b = transposed ? ls_matrix_transposed(t->values, K) : ls_matrix_of(t->values, N);
            plain.c = want;
            stored.w = transposed ? ls_weights_transposed(t->w, K) : ls_weights_of(t->w, N);
            stored.c = got;
            ls_gemm(c, &plain);
            ls_gemm(c, &stored);
            same(t, M, transposed ? "transposed" : "not transposed", M * N, got, want);
        }
        free(a), free(got), free(want), free(bias);
    }
}

/* Weights with strips, beside a copy of the table whose whole groups are NaN: so the strips must be
 * read. */
typedef struct copy {
    ls_stored w;
    uint8_t *bytes;
    void *strips;
} copy;

static copy with_strips(const ls_compute *c, const table *t) {
    size_t nbytes = ls_block_nbytes(t->w.type, t->rows * t->width);
    int64_t whole = t->rows / LS_GEMV_GROUP * LS_GEMV_GROUP;
    copy y = {.bytes = malloc(nbytes)};
    assert_int_equal(posix_memalign(&y.strips, 64, nbytes), 0);
    ls_gemv_strips(c, t->w, t->rows, t->width, y.strips);
    memcpy(y.bytes, t->w.data, nbytes);
    memset(y.bytes, 0xff, ls_block_nbytes(t->w.type, whole * t->width));
    y.w = (ls_stored){.data = y.bytes, .type = t->w.type, .strips = y.strips};
    return y;
}

/* One row: chains by fmaf. */
static void check_gemv(const ls_compute *c, const table *t) {
    float *x = normal(t->width, 4), *bias = normal(t->rows, 5);
    float *got = normal(t->rows, 6), *want = normal(t->rows, 6);
    copy second = {.w = t->w};
    if (ls_gemv_has_strips(t->w.type, t->width)) second = with_strips(c, t);
    for (int i = 0; i < 2; i++) {
        for (int64_t r = 0; r < t->rows; r++) {
            want[r] = i ? bias[r] : 0.0f;
            for (int64_t k = 0; k < t->width; k++)
                want[r] = fmaf(x[k], t->values[r * t->width + k], want[r]);
        }
        ls_gemv_table(
            c, &(ls_gemv_table_job){t->w, t->rows, t->width, x, i ? bias : NULL, got, false, NULL});
        same(t, 1, "a row", t->rows, got, want);
        ls_gemv_table(c, &(ls_gemv_table_job){second.w, t->rows, t->width, x, i ? bias : NULL, got,
                                              false, NULL});
        same(t, 1, "a row, from strips", t->rows, got, want);
        if (!i) continue;
        memcpy(got, bias, (size_t)t->rows * sizeof *got);
        ls_gemv_table(c,
                      &(ls_gemv_table_job){second.w, t->rows, t->width, x, got, got, false, NULL});
        same(t, 1, "a row, in place", t->rows, got, want);
    }
    free(x), free(bias), free(got), free(want), free(second.bytes), free(second.strips);
}

/* Whole groups, as products pack them: from values k on, some at a time; from each row on, one
 * column of a tile or several, also over the end of a group. */
static void check_unpack(const ls_compute *c, const table *t) {
    copy x = with_strips(c, t);
    const int64_t block = ls_max(ls_block_elements(t->w.type), LS_STRIP_DEPTH);
    const int64_t few = c->k->strip_rows, whole = t->rows / LS_GEMV_GROUP * LS_GEMV_GROUP;
    float *out = malloc((size_t)(t->width * c->k->tile_n) * sizeof *out);
    for (int64_t n = few; n <= c->k->tile_n; n += few)
        for (int64_t v = 0; v + n <= whole; v += few)
            for (int64_t k = 0; k < t->width; k += block) {
                ls_strip_part part = {.type = t->w.type,
                                      .strips = x.strips,
                                      .C = t->width,
                                      .v = v,
                                      .n = n,
                                      .k = k,
                                      .depth = k ? block : t->width};
                c->k->unpack_strips(&part, out);
                for (int64_t i = 0; i < part.depth; i++)
                    for (int64_t r = 0; r < n; r++)
                        same(t, 1, "from strips", 1, &out[i * n + r],
                             &t->values[(v + r) * t->width + k + i]);
            }
    free(out), free(x.bytes), free(x.strips);
}

/* A product that packs strips where they are whole, else rows. */
static void check_gemm_of_strips(const ls_compute *c, const table *t, int64_t M) {
    copy x = with_strips(c, t);
    table both = *t;
    both.w.strips = x.strips;
    check_gemm(c, &both, M);
    free(x.bytes), free(x.strips);
}

static void check(const ls_compute *c) {
    static const int64_t rows[] = {1, 16, 33, 130}, blocks[] = {1, 3};
    for (int type = 0; type < LS_NBLOCK_TYPES; type++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
                int64_t elements = ls_block_elements((ls_block_type)type);
                int64_t width = elements > 1 ? elements * blocks[b] : b ? 160 : 37;
                table t = elements > 1 ? make_table(c->k, (ls_block_type)type, rows[r], width)
                                       : make_halves(c->k,
                                                     type == LS_BLOCK_F32   ? LS_F32
                                                     : type == LS_BLOCK_F16 ? LS_F16
                                                                            : LS_BF16,
                                                     rows[r], width);
                check_gemv(c, &t);
                check_gemm(c, &t, 3);
                if (b == 1 && r == 2) check_gemm(c, &t, 200); /* more than are packed at a time */
                if (ls_gemv_has_strips(t.w.type, t.width)) {
                    check_unpack(c, &t);
                    int64_t some = r == 3 ? LS_GEMM_SOME + 1 : 4;
                    for (int64_t M = 2; M <= some; M++) check_gemm_of_strips(c, &t, M);
                }
                drop(&t);
            }
}

static void test_products(void **state) {
    (void)state;
    each_kernel(check, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
