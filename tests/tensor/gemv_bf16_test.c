/* gemv_bf16_test.c - products of one row in bf16: every element is the sum of bf16_chain.h, with
 * weights in all types, on ordinary numbers and on those whose sums are near 1.2e-38. */
#include "tensor/gemv.h"

#include "base/random.h"
#include "tensor/bf16_chain.h"
#include "tensor/each_kernel.h"
#include "tensor/stored.h"
#include "test.h"

/* Normal numbers times 2^exponent; the allocation ends with the last. */
static float *normal(int64_t n, uint64_t stream, int exponent) {
    float *p = malloc(((size_t)n + !n) * sizeof *p);
    ls_random_normal((ls_random_place){12, LS_STREAM_SAMPLE, stream, 0}, (size_t)n, 1.0f, p);
    for (int64_t i = 0; i < n; i++) p[i] = ldexpf(p[i], exponent);
    return p;
}

/* Each value is the nearest bf16. */
static float *rounded(float *p, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = nearest_bf16(p[i]);
    return p;
}

static void compare(const char *what, int64_t K, int64_t n, const float *want, const float *got) {
    for (int64_t i = 0; i < n; i++)
        if (!same_or_nan(want[i], got[i]))
            fail_msg("%s, %lld x %lld: element %lld is %a, not %a", what, (long long)K,
                     (long long)n, (long long)i, (double)got[i], (double)want[i]);
}

/* Weights [K, N] in bf16. */
static void check_columns(const ls_compute *c, int64_t K, int64_t N, int exponent) {
    float *x = rounded(normal(K, 1, exponent), K), *w = rounded(normal(K * N, 2, 0), K * N);
    float *bias = rounded(normal(N, 3, exponent), N), *got = normal(N, 4, 0);
    float *want = normal(N, 4, 0);
    uint16_t *half = malloc(2 * (size_t)(K * N + N) + 2);
    c->k->narrow(LS_BF16, (size_t)(K * N), w, half);
    c->k->narrow(LS_BF16, (size_t)N, bias, half + K * N);
    for (int64_t i = 0; i < N; i++) {
        block_sum s = block_sum_from(bias[i]);
        for (int64_t k = 0; k < K; k++) block_sum_add(&s, x[k], w[k * N + i]);
        want[i] = block_sum_value(&s);
    }
    ls_gemv_job job = {.type = LS_BF16,
                       .K = K,
                       .N = N,
                       .x = x,
                       .w = half,
                       .bias = half + K * N,
                       .y = got,
                       .bf16 = true};
    ls_gemv_columns(c->k, &job, 0, N);
    compare("columns", K, N, want, got);
    free(x), free(w), free(bias), free(got), free(want), free(half);
}

/* Weights [V, C] of a type; x and the values of the weights are rounded for the product. */
static void check_table(const ls_compute *c, ls_block_type type, int64_t C, int64_t V,
                        int exponent) {
    float *x = normal(C, 1, exponent), *values = normal(V * C, 2, 0),
          *bias = normal(V, 3, exponent);
    float *got = normal(V, 4, 0), *want = normal(V, 4, 0);
    size_t nbytes = ls_block_nbytes(type, V * C);
    uint8_t *stored = malloc(nbytes + !nbytes);
    if (type == LS_BLOCK_F32) {
        memcpy(stored, values, nbytes);
    } else if (type == LS_BLOCK_BF16 || type == LS_BLOCK_F16) {
        c->k->narrow(type == LS_BLOCK_BF16 ? LS_BF16 : LS_F16, (size_t)(V * C), values, stored);
    } else { /* any bytes, with scales of at most 2 */
        for (size_t i = 0; i < nbytes; i++)
            stored[i] = (uint8_t)(u32_of_f32(values[i % (size_t)(V * C)]) >> 5 & 0x3f);
    }
    ls_stored w = {.data = stored, .type = type};
    ls_stored_read(c->k, w, 0, V * C, values);
    for (int with = 0; with < 2; with++) {
        for (int64_t i = 0; i < V; i++) {
            block_sum s = block_sum_from(with ? bias[i] : 0);
            for (int64_t k = 0; k < C; k++)
                block_sum_add(&s, nearest_bf16(x[k]), nearest_bf16(values[i * C + k]));
            want[i] = block_sum_value(&s);
        }
        ls_gemv_table(c, &(ls_gemv_table_job){w, V, C, x, with ? bias : NULL, got, true, NULL});
        compare("a table", C, V, want, got);
    }
    free(x), free(values), free(bias), free(got), free(want), free(stored);
}

static void check(const ls_compute *c) {
    static const int64_t depths[] = {1, 8, 13, 16, 31, 32, 33, 40, 48, 64, 97};
    static const int64_t widths[] = {1, 15, 16, 31, 32, 33, 70, 130};
    static const int exponents[] = {0, -126};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
        for (size_t j = 0; j < sizeof widths / sizeof *widths; j++)
            for (int e = 0; e < 2; e++) {
                if ((i + j) % 3 && depths[i] > 40) continue;
                check_columns(c, depths[i], widths[j], exponents[e]);
                for (int type = LS_BLOCK_F32; type < LS_NBLOCK_TYPES; type++) {
                    int64_t block = ls_block_elements((ls_block_type)type);
                    int64_t depth = block == 1 ? depths[i] : block * (1 + (int64_t)i % 2);
                    if (block > 1 && i > 1) continue;
                    check_table(c, (ls_block_type)type, depth, widths[j], exponents[e]);
                }
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
