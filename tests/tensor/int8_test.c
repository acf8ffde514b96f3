/* int8_test.c - products with activations in int8 against the rule of int8.h, computed from the
 * bytes of the blocks with sums in int64: all types, kernels, and ways to be called. */
#include "tensor/int8.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "base/random.h"
#include "tensor/block_scales.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"
#include "test.h"

enum { GROUP = LS_INT8_GROUP };

/* ---- the rule ---- */

static double f16_value(const uint8_t *p) {
    int h = p[0] | p[1] << 8, exponent = h >> 10 & 31, mantissa = h & 1023;
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa ? (double)NAN : sign * HUGE_VAL;
    if (exponent == 0) return sign * ldexp(mantissa, -24);
    return sign * ldexp(1024 + mantissa, exponent - 25);
}

/* Element i of a block: its number, and its group's scales. */
typedef struct weight {
    int number;
    float d, m;
} weight;

static int bit(const uint8_t *p, int i) { return p[i / 8] >> i % 8 & 1; }
static int nibble(int byte, int high) { return high ? byte >> 4 : byte & 15; }

static const int entries[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};

static weight of_32(ls_block_type t, const uint8_t *p, int i) {
    weight w = {.d = (float)f16_value(p)};
    const bool affine = t == LS_BLOCK_Q4_1 || t == LS_BLOCK_Q5_1;
    const bool fifth = t == LS_BLOCK_Q5_0 || t == LS_BLOCK_Q5_1;
    if (affine) w.m = (float)f16_value(p + 2);
    p += affine ? 4 : 2;
    if (t == LS_BLOCK_Q8_0) {
        w.number = (int8_t)p[i];
        return w;
    }
    if (t == LS_BLOCK_IQ4_NL) {
        w.number = entries[nibble(p[i % 16], i / 16)];
        return w;
    }
    w.number = nibble(p[(fifth ? 4 : 0) + i % 16], i / 16);
    if (fifth) w.number += 16 * bit(p, i);
    if (!affine) w.number -= fifth ? 16 : 8;
    return w;
}

/* Two bits of element i of a block of 256, in 64 bytes. */
static int two_bits(const uint8_t *p, int i) {
    return p[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

static weight of_256(ls_block_type t, const uint8_t *p, int i) {
    int g = i / GROUP, in = i % GROUP, k = i / 16;
    if (t == LS_BLOCK_Q2_K)
        return (weight){two_bits(p + 16, i), (float)f16_value(p + 80) * (float)nibble(p[k], 0),
                        -((float)f16_value(p + 82) * (float)nibble(p[k], 1))};
    if (t == LS_BLOCK_Q3_K) {
        int six = nibble(p[96 + k % 8], k / 8) + 16 * (p[104 + k % 4] >> 2 * (k / 4) & 3);
        return (weight){two_bits(p + 32, i) + 4 * (p[in] >> g & 1) - 4,
                        (float)f16_value(p + 108) * (float)(six - 32), 0};
    }
    if (t == LS_BLOCK_IQ4_XS) {
        int six = nibble(p[4 + g / 2], g % 2) + 16 * ((p[2] | p[3] << 8) >> 2 * g & 3);
        return (weight){entries[nibble(p[8 + 16 * g + i % 16], in / 16)],
                        (float)f16_value(p) * (float)(six - 32), 0};
    }
    if (t == LS_BLOCK_Q6_K) {
        int low = nibble(p[g / 4 * 64 + g % 2 * 32 + in], g % 4 / 2);
        int high = p[128 + g / 4 * 32 + in] >> g % 4 * 2 & 3;
        float d = (float)f16_value(p + 208) * (float)(int8_t)p[192 + i / 16];
        return (weight){low + 16 * high - 32, d, 0};
    }
    const uint8_t *s = p + 4;
    int scale = g < 4 ? s[g] & 63 : (s[4 + g] & 15) | s[g - 4] >> 6 << 4;
    int minimum = g < 4 ? s[4 + g] & 63 : s[4 + g] >> 4 | s[g] >> 6 << 4;
    weight w = {.d = (float)f16_value(p) * (float)scale,
                .m = -((float)f16_value(p + 2) * (float)minimum)};
    bool fifth = t == LS_BLOCK_Q5_K;
    w.number = nibble(p[(fifth ? 48 : 16) + g / 2 * 32 + in], g % 2);
    if (fifth) w.number += 16 * (p[16 + in] >> g & 1);
    return w;
}

static weight weight_at(ls_block_type t, const uint8_t *row, int64_t i) {
    int64_t elements = ls_block_elements(t);
    const uint8_t *block = row + ls_block_nbytes(t, i / elements * elements);
    int in = (int)(i % elements);
    return elements == GROUP ? of_32(t, block, in) : of_256(t, block, in);
}

typedef struct quantized {
    int q[GROUP];
    float d;
} quantized;

static quantized quantize(const float *x) {
    quantized z = {.d = 0};
    float top = 0;
    bool finite = true;
    for (int i = 0; i < GROUP; i++) {
        finite = finite && isfinite(x[i]);
        if (fabsf(x[i]) > top) top = fabsf(x[i]);
    }
    if (!finite) {
        z.d = NAN;
        return z;
    }
    float d = top / 127.0f;
    if (d < FLT_MIN) return z;
    z.d = d;
    for (int i = 0; i < GROUP; i++) z.q[i] = (int)nearbyint((double)(x[i] / d));
    return z;
}

/* A row of weights times a row of activations, from `y` on. */
static float chain(ls_block_type t, const uint8_t *row, const quantized *x, int64_t C, float y) {
    int at = 0;
    const bool affine = block_scales(t, &at) == 2;
    const bool halves = t == LS_BLOCK_Q6_K || t == LS_BLOCK_Q3_K || t == LS_BLOCK_Q2_K;
    const int each = halves ? 16 : GROUP;
    for (int64_t b = 0; b < C; b += GROUP) {
        const quantized z = x[b / GROUP];
        for (int first = 0; first < GROUP; first += each) {
            int64_t sum = 0, all = 0;
            weight w = {0};
            for (int i = first; i < first + each; i++) {
                w = weight_at(t, row, b + i);
                sum += (int64_t)w.number * z.q[i];
                all += z.q[i];
            }
            float scale = w.d * z.d;
            y = fmaf(scale, (float)sum, y);
            float shift = z.d * (float)all;
            if (affine) y = fmaf(w.m, shift, y);
        }
    }
    return y;
}

/* ---- a product ---- */

enum { PLAIN, EXTREME };

typedef struct problem {
    ls_block_type type;
    int64_t M, V, C;
    uint8_t *w;
    void *strips;
    float *x, *bias, *y, *want;
    size_t strips_nbytes;
} problem;

static uint32_t bits_of(uint64_t stream, uint64_t i) {
    return (uint32_t)(ls_random_uniform(3, LS_STREAM_SAMPLE, stream, i) * 4294967295.0);
}

/* Scales of every kind where they are extreme, else of moderate size. */
static void fill_weights(const problem *p, int kind) {
    size_t nbytes = ls_block_nbytes(p->type, p->V * p->C);
    size_t block = ls_block_nbytes(p->type, ls_block_elements(p->type));
    for (size_t i = 0; i < nbytes; i++) p->w[i] = (uint8_t)(bits_of(1, i) >> 24);
    for (size_t b = 0; b < nbytes; b += block) {
        int at = 0, n = block_scales(p->type, &at);
        uint8_t *scale = p->w + b + at;
        for (int s = 0; s < n && kind == PLAIN; s++)
            scale[2 * s + 1] = (uint8_t)((scale[2 * s + 1] & 0x83) | 0x28);
        if (p->type == LS_BLOCK_Q8_0 && b / block % 3 == 0) memset(p->w + b + 2, 0x80, 20);
        if (kind == EXTREME && b / block % 7 == 0) scale[0] = scale[1] = 0;
    }
}

static void fill_activations(const problem *p, int kind) {
    static const float odd[] = {0,       -0.0f,    1e-45f, -FLT_MIN, 127 * FLT_MIN, 200 * 1e-45f,
                                FLT_MAX, -FLT_MAX, 3e38f,  1e-20f,   INFINITY,      -INFINITY,
                                NAN};
    size_t n = (size_t)(p->M * p->C);
    ls_random_normal((ls_random_place){4, LS_STREAM_SAMPLE, 1, 0}, n, 3.0f, p->x);
    for (size_t i = 0; i < n && kind == EXTREME; i++) {
        size_t block = i / GROUP;
        float all = odd[block % 13];
        if (block % 4 == 3) continue;
        if (block % 4 == 0) p->x[i] = all;
        if (i % GROUP == block % GROUP) p->x[i] = all;
        if (block % 4 == 2 && i % GROUP != block % GROUP) p->x[i] *= 1e-42f;
    }
    for (size_t i = 0; i < n && kind == PLAIN; i += 97) p->x[i] = -127.0f; /* ties: d is 1 */
    for (size_t i = 1; i < n && kind == PLAIN; i += 2)
        if (i / GROUP % 3 == 0) p->x[i] = (float)(int)p->x[i] + 0.5f;
}

static problem make(const ls_compute *c, ls_block_type type, const int64_t size[3], bool strips,
                    int kind) {
    problem p = {.type = type, .M = size[0], .V = size[1], .C = size[2]};
    size_t nbytes = ls_block_nbytes(type, p.V * p.C), ny = (size_t)(p.M * p.V);
    p.w = malloc(nbytes);
    p.x = malloc((size_t)(p.M * p.C) * sizeof *p.x);
    p.y = malloc(ny * sizeof *p.y);
    p.want = malloc(ny * sizeof *p.want);
    p.bias = malloc((size_t)p.V * sizeof *p.bias);
    fill_weights(&p, kind);
    fill_activations(&p, kind);
    ls_random_normal((ls_random_place){4, LS_STREAM_SAMPLE, 2, 0}, (size_t)p.V, 1.0f, p.bias);
    ls_random_normal((ls_random_place){4, LS_STREAM_SAMPLE, 3, 0}, ny, 1.0f, p.y);
    if (strips && ls_gemv_has_strips(type, p.C)) {
        ls_error e;
        p.strips_nbytes = nbytes;
        assert_ls_ok(ls_map(nbytes, "strips", &p.strips, &e), e);
        ls_gemv_strips(c, (ls_stored){.data = p.w, .type = type}, p.V, p.C, p.strips);
    }
    return p;
}

static void drop(problem *p) {
    free(p->w), free(p->x), free(p->y), free(p->want), free(p->bias);
    ls_unmap(p->strips, p->strips_nbytes);
}

static ls_stored stored(const problem *p) {
    return (ls_stored){.data = p->w, .type = p->type, .strips = p->strips, .int8 = true};
}

static float start_of(const problem *p, ls_gemm_start start, int64_t r, int64_t v) {
    if (start == LS_GEMM_ZERO) return 0;
    return start == LS_GEMM_BIAS ? p->bias[v] : p->y[r * p->V + v];
}

static void find_want(const problem *p, ls_gemm_start start) {
    size_t row = ls_block_nbytes(p->type, p->C);
    quantized *x = malloc((size_t)(p->C / GROUP) * sizeof *x);
    for (int64_t r = 0; r < p->M; r++) {
        for (int64_t b = 0; b < p->C / GROUP; b++) x[b] = quantize(p->x + r * p->C + b * GROUP);
        for (int64_t v = 0; v < p->V; v++)
            p->want[r * p->V + v] =
                chain(p->type, p->w + (size_t)v * row, x, p->C, start_of(p, start, r, v));
    }
    free(x);
}

static void equal(const problem *p, const float *y, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (isnan(p->want[i]) ? !isnan(y[i]) : memcmp(y + i, p->want + i, sizeof *y) != 0)
            fail_msg("type %d, %lld x %lld x %lld, %s: element %lld is %.9g, not %.9g",
                     (int)p->type, (long long)p->M, (long long)p->V, (long long)p->C, what,
                     (long long)i, (double)y[i], (double)p->want[i]);
}

static void product(const ls_compute *c, const problem *p, ls_gemm_start start) {
    find_want(p, start);
    ls_gemm(c, &(ls_gemm_job){.M = p->M,
                              .N = p->V,
                              .K = p->C,
                              .a = ls_matrix_of(p->x, p->C),
                              .w = ls_weights_transposed(stored(p), p->C),
                              .c = p->y,
                              .ldc = p->V,
                              .start = start,
                              .bias = p->bias});
    equal(p, p->y, p->M * p->V, "ls_gemm");
}

/* The first row alone has the bytes that it has among others. */
static void alone(const ls_compute *c, const problem *p, bool bias) {
    size_t row = (size_t)p->V * sizeof *p->y;
    float *y = malloc(row), *together = malloc(row);
    product(c, p, bias ? LS_GEMM_BIAS : LS_GEMM_ZERO);
    memcpy(together, p->y, row);
    memcpy(y, p->bias, row);
    ls_gemv_table(
        c, &(ls_gemv_table_job){
               .w = stored(p), .V = p->V, .C = p->C, .x = p->x, .bias = bias ? y : NULL, .y = y});
    assert_memory_equal(y, together, row);
    free(y), free(together);
}

static void check(const ls_compute *c, ls_block_type t, const int64_t size[3], int kind) {
    for (int strips = 0; strips < (ls_gemv_has_strips(t, size[2]) ? 2 : 1); strips++) {
        problem p = make(c, t, size, strips, kind);
        product(c, &p, LS_GEMM_ADD);
        alone(c, &p, false);
        alone(c, &p, true);
        drop(&p);
    }
}

/* ---- sizes, kernels, threads ---- */

static void each_type(const ls_compute *c, const int64_t (*sizes)[3], size_t n, int kind) {
    for (int t = LS_BLOCK_Q8_0; t < LS_NBLOCK_TYPES; t++)
        for (size_t i = 0; i < n; i++) {
            int64_t size[3] = {sizes[i][0], sizes[i][1], sizes[i][2]};
            if (size[2] % ls_block_elements((ls_block_type)t)) size[2] = LS_BLOCK_MOST;
            check(c, (ls_block_type)t, size, kind);
        }
}

static void each_kernel(const int64_t (*sizes)[3], size_t n, int kind) {
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)) && (i == 0 || !ONLY_THREADS); i++)
        for (int threads = i == 0 && !ONLY_THREADS ? 1 : 3; threads <= 3; threads += 2) {
            ls_compute c;
            ls_error e;
            assert_ls_ok(ls_compute_init(&c, threads, 0, &e), e);
            ls_pool_share_cores(c.pool);
            c.k = k;
            each_type(&c, sizes, n, kind);
            ls_compute_close(&c);
        }
}

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 32},  {2, 15, 64}, {3, 16, 32},
                                       {1, 17, 96}, {5, 33, 32}, {2, 131, 32}};
    each_kernel(sizes, sizeof sizes / sizeof *sizes, PLAIN);
}

static void test_extreme_numbers(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{13, 65, 160}};
    each_kernel(sizes, 1, EXTREME);
}

/* Several panels, and more rows than fit into the work memory at once. */
static void test_many_rows(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{64, 3, 32}, {65, 3, 32}, {200, 2, 256}};
    each_kernel(sizes, sizeof sizes / sizeof *sizes, PLAIN);
    ls_compute c;
    ls_error e;
    assert_ls_ok(ls_compute_init(&c, 2, 0, &e), e);
    ls_pool_share_cores(c.pool);
    check(&c, LS_BLOCK_Q4_1, (const int64_t[]){30, 1, 64 * 1024}, PLAIN);
    ls_compute_close(&c);
}

/* Rows of x and y that are further apart, and weights from some row on. */
static void test_parts_of_matrices(void **state) {
    (void)state;
    enum { M = 6, V = 50, C = 64, FIRST = 7, LDX = C + 5, LDY = V + 3 };
    ls_compute c;
    ls_error e;
    assert_ls_ok(ls_compute_init(&c, 2, 0, &e), e);
    problem p = make(&c, LS_BLOCK_Q4_0, (const int64_t[]){M, V + FIRST, C}, false, PLAIN);
    static float x[M * LDX], y[M * LDY];
    for (int r = 0; r < M; r++) memcpy(x + r * LDX, p.x + r * C, C * sizeof *x);
    ls_weight_matrix w = ls_weights_transposed(stored(&p), C);
    w.first = FIRST;
    for (int i = 0; i < M * LDY; i++) y[i] = -7;
    ls_gemm(&c, &(ls_gemm_job){
                    .M = M, .N = V, .K = C, .a = ls_matrix_of(x, LDX), .w = w, .c = y, .ldc = LDY});
    find_want(&p, LS_GEMM_ZERO);
    for (int r = 0; r < M; r++) {
        assert_memory_equal(y + r * LDY, p.want + r * (V + FIRST) + FIRST, V * sizeof *y);
        for (int i = V; i < LDY; i++) assert_true(y[r * LDY + i] == -7);
    }
    drop(&p);
    ls_compute_close(&c);
}

static void test_quantization(void **state) {
    (void)state;
    enum { N = 13 * 4 * GROUP };
    const ls_kernels *k = NULL;
    problem p = {.M = 1, .C = N, .x = malloc(N * sizeof(float))};
    for (int kind = PLAIN; kind <= EXTREME; kind++) {
        fill_activations(&p, kind);
        for (int i = 0; (k = ls_kernels_at(i)); i++) {
            static ls_int8_block blocks[3 * N / GROUP];
            memset(blocks, 0x55, sizeof blocks);
            k->int8_quantize(N, p.x, blocks, 3);
            for (int b = 0; b < N / GROUP; b++) {
                const ls_int8_block *got = &blocks[3 * b];
                quantized want = quantize(p.x + b * GROUP);
                int sum = 0, first = 0;
                for (int j = 0; j < GROUP; j++) {
                    assert_int_equal(got->q[j], want.q[j]);
                    sum += want.q[j];
                    if (j < GROUP / 2) first += want.q[j];
                }
                assert_int_equal(got->sum, sum);
                assert_int_equal(got->first, first);
                float shift = want.d * (float)sum;
                assert_true(isnan(want.d) ? isnan(got->d) && isnan(got->shift)
                                          : got->d == want.d && got->shift == shift);
                assert_int_equal(got[1].sum, 0x55555555);
            }
        }
    }
    free(p.x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantization),      cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_extreme_numbers),   cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_parts_of_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
