/* gemm_bf16_test.c - products in bf16, bit by bit against a sum in blocks over k for every
 * element. */
/* ctest: seconds=15 */
#include "tensor/gemm.h"

#include "tensor/bf16_chain.h"
#include "tensor/each_kernel.h"
#include "tensor/problem.h"
#include "test.h"

typedef struct subject {
    bool halves; /* operands are in bf16 */
    bool packed; /* b is packed beforehand */
} subject;

static float at(ls_matrix m, int64_t i, int64_t j) {
    return nearest_bf16(*(const float *)ls_matrix_from(m, i, j).p);
}

static float at_a(const problem *p, int64_t i, int64_t k) { return at(a_of(p), i, k); }
static float at_b(const problem *p, int64_t k, int64_t j) { return at(b_of(p), k, j); }

static float sum_of(const problem *p, int64_t i, int64_t j) {
    float start = p->start == LS_GEMM_ADD    ? p->c[i * p->ldc + j]
                  : p->start == LS_GEMM_BIAS ? p->bias[j]
                                             : 0.0f;
    block_sum s = block_sum_from(start);
    for (int64_t k = 0; k < p->K; k++) block_sum_add(&s, at_a(p, i, k), at_b(p, k, j));
    return block_sum_value(&s);
}

static ls_matrix halves_of(ls_matrix m, size_t n, uint16_t *room) {
    for (size_t i = 0; i < n; i++) {
        float x = nearest_bf16(((const float *)m.p)[i]);
        room[i] = isnan(x) ? 0x7fa5 : (uint16_t)(u32_of_f32(x) >> 16);
    }
    return (ls_matrix){room, m.rs, m.cs, true};
}

static void run(const ls_compute *c, const problem *p, subject how, float *got) {
    ls_gemm_job job = job_of(p, got);
    size_t na = (size_t)(p->M * p->K), nb = (size_t)(p->K * p->N);
    uint16_t *a = malloc(2 * na + 2), *b = malloc(2 * nb + 2);
    float *packed = malloc((size_t)ls_gemm_packed_floats(p->K, p->N) * sizeof(float) + 4);
    job.bf16 = true;
    if (how.halves) job.a = halves_of(job.a, na, a), job.b = halves_of(job.b, nb, b);
    if (how.packed) {
        ls_gemm_pack(c->k, true, p->K, p->N, job.b, packed);
        job.packed_b = packed;
        job.packed_K = p->K;
        job.b = (ls_matrix){0};
    }
    ls_gemm(c, &job);
    free(a);
    free(b);
    free(packed);
}

static void compare(const problem *p, const float *want, const float *got) {
    for (int64_t i = 0; i < p->M; i++)
        for (int64_t j = 0; j < p->ldc; j++) {
            float w = want[i * p->ldc + j], g = got[i * p->ldc + j];
            if (!same_or_nan(w, g))
                print_error("%lld x %lld x %lld, element %lld %lld: %a is not %a\n",
                            (long long)p->M, (long long)p->N, (long long)p->K, (long long)i,
                            (long long)j, (double)g, (double)w);
            assert_true(same_or_nan(w, g));
        }
}

static void check_problem(const ls_compute *c, const problem *p) {
    size_t n = (size_t)(p->M * p->ldc), nbytes = n * sizeof(float);
    float *want = malloc(nbytes + 4), *got = malloc(nbytes + 4);
    memcpy(want, p->c, nbytes);
    for (int64_t i = 0; i < p->M; i++)
        for (int64_t j = 0; j < p->N && p->K; j++) want[i * p->ldc + j] = sum_of(p, i, j);
    for (int64_t i = 0; i < p->M && !p->K && p->start != LS_GEMM_ADD; i++)
        for (int64_t j = 0; j < p->N; j++)
            want[i * p->ldc + j] = p->start == LS_GEMM_BIAS ? p->bias[j] : 0;
    for (int how = 0; how < 4; how++) {
        memcpy(got, p->c, nbytes);
        run(c, p, (subject){.halves = how & 1, .packed = how & 2}, got);
        compare(p, want, got);
    }
    free(want);
    free(got);
}

static void check(const ls_compute *c, int64_t M, int64_t N, int64_t K, int variant) {
    problem p = make_problem(M, N, K, variant);
    check_problem(c, &p);
    drop_problem(&p);
}

static void small_shapes(const ls_compute *c) {
    static const int64_t sizes[] = {0, 1, 3, 8, 17, 33, 48, 65};
    int variant = 0;
    for (int m = 0; m < 8; m++)
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < 8; k += 1 + (m + n) % 3)
                check(c, sizes[m], sizes[n], sizes[k], variant++ % 12);
}

/* Sizes beyond a block in each direction. */
static void large_shapes(const ls_compute *c) {
    for (int variant = 0; variant < 12; variant += 5) {
        check(c, LS_GEMM_MC + 3, 5, 2 * LS_GEMM_KALL + 1, variant);
        check(c, 7, LS_GEMM_NC + 1, 3, variant);
        check(c, 1, 20, 6 * LS_GEMM_KC + 7, variant);
    }
}

static void test_small(void **state) {
    (void)state;
    each_kernel(small_shapes, 2);
}

static void test_large(void **state) {
    (void)state;
    each_kernel(large_shapes, 2);
}

/* ---- extreme numbers ---- */

static uint32_t random_u32(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Numbers of any bits; or operands whose products are about 2^-126 and below, with start values
 * that are there, too, so that sums are rounded to that number or to the one below it. */
static void fill_wild(problem *p, int kind, uint64_t seed) {
    uint64_t state = seed * 2 + 1;
    for (int64_t i = 0; i < p->M * p->K; i++) {
        uint32_t u = random_u32(&state), exponent = kind == 1 ? 40 + u % 9 : 60 + u % 25;
        p->a[i] = f32_of_u32(kind ? (u & 0x807f0000u) | exponent << 23 : u);
    }
    for (int64_t i = 0; i < p->K * p->N; i++) {
        uint32_t u = random_u32(&state), exponent = kind == 1 ? 66 + u % 23 : 43 + u % 25;
        p->b[i] = f32_of_u32(kind ? (u & 0x807f0000u) | exponent << 23 : u);
    }
    for (int64_t i = 0; i < p->M * p->ldc; i++) {
        uint32_t u = random_u32(&state);
        uint32_t near = (u & 0x80000000u) | (u >> 5 & 1 ? 0x800000u : u >> 8 & 3u << 22) | (u & 3);
        p->c[i] = f32_of_u32(kind ? near : u);
    }
}

/* 256 x 256 pairs at a time, three million sums of three numbers a variant, and longer chains. */
static void extreme_numbers(const ls_compute *c) {
    for (int i = 0; i < 53; i++) {
        problem p = make_problem(i < 48 ? 256 : 31, i < 48 ? 256 : 49, i < 48 ? 2 : 77, 2);
        fill_wild(&p, i % 3, (uint64_t)i);
        float *want = malloc((size_t)(p.M * p.ldc) * sizeof(float));
        float *got = malloc((size_t)(p.M * p.ldc) * sizeof(float));
        memcpy(want, p.c, (size_t)(p.M * p.ldc) * sizeof(float));
        memcpy(got, p.c, (size_t)(p.M * p.ldc) * sizeof(float));
        for (int64_t r = 0; r < p.M; r++)
            for (int64_t j = 0; j < p.N; j++) want[r * p.ldc + j] = sum_of(&p, r, j);
        run(c, &p, (subject){.halves = i % 2}, got);
        compare(&p, want, got);
        free(want);
        free(got);
        drop_problem(&p);
    }
}

static void test_extreme(void **state) {
    (void)state;
    each_kernel(extreme_numbers, 1);
}

/* A product that is continued where a block begins has the bits of the whole, with sums that are
 * -0, too. */
static void in_parts(const ls_compute *c) {
    for (int kind = 0; kind < 3; kind++)
        for (int64_t step = LS_SUM_BLOCK; step <= 3 * LS_SUM_BLOCK; step += LS_SUM_BLOCK) {
            problem p = make_problem(13, 21, 101, 2);
            bool zeros = step == LS_SUM_BLOCK;
            fill_wild(&p, kind, (uint64_t)step);
            if (zeros) memset(p.a, 0, (size_t)(p.M * p.K) * sizeof *p.a);
            for (int64_t i = 0; zeros && i < p.M * p.ldc; i++) p.c[i] = -0.0f;
            float *whole = calloc((size_t)(p.M * p.ldc), sizeof(float));
            memcpy(whole, p.c, (size_t)(p.M * p.ldc) * sizeof(float));
            run(c, &p, (subject){.halves = kind == 1}, whole);
            ls_gemm_job job = job_of(&p, p.c);
            for (int64_t first = 0; first < p.K; first += step) {
                ls_gemm_job part = job;
                part.bf16 = true;
                part.K = p.K - first < step ? p.K - first : step;
                part.a = ls_matrix_from(job.a, 0, first);
                part.b = ls_matrix_from(job.b, first, 0);
                ls_gemm_in_thread(c, 0, &part);
            }
            compare(&p, whole, p.c);
            free(whole);
            drop_problem(&p);
        }
}

static void test_parts(void **state) {
    (void)state;
    each_kernel(in_parts, 1);
}

/* All depths, with edges of tiles, in each way of packing. */
static void all_depths(const ls_compute *c) {
    for (int64_t K = 1; K <= 97; K++) check(c, 9, 49, K, (int)K);
}

static void test_depths(void **state) {
    (void)state;
    each_kernel(all_depths, 1);
}

/* k in units of some rows: of all rows, and of some of them. */
static void check_units(const ls_compute *c, int64_t K, int64_t rows, bool chosen) {
    problem p = make_problem(5, 50, K, (int)rows % 12);
    int32_t *row = malloc((size_t)K * sizeof *row);
    float *want = malloc((size_t)(p.M * p.ldc) * sizeof(float));
    float *got = malloc((size_t)(p.M * p.ldc) * sizeof(float));
    for (int64_t k = 0, at = 0; k < K; k++, at += 1 + k % 3) row[k] = (int32_t)at;
    memcpy(want, p.c, (size_t)(p.M * p.ldc) * sizeof(float));
    memcpy(got, p.c, (size_t)(p.M * p.ldc) * sizeof(float));
    for (int64_t i = 0; i < p.M; i++)
        for (int64_t j = 0; j < p.N; j++) {
            block_sum s = block_sum_from(p.start == LS_GEMM_ADD    ? p.c[i * p.ldc + j]
                                         : p.start == LS_GEMM_BIAS ? p.bias[j]
                                                                   : 0);
            for (int64_t k = 0; k < K; k++) {
                int64_t at = chosen ? row[k] : k, before = !k ? at : chosen ? row[k - 1] : k - 1;
                if (at / rows != before / rows) block_sum_restart(&s);
                block_sum_add(&s, at_a(&p, i, k), at_b(&p, k, j));
            }
            want[i * p.ldc + j] = block_sum_value(&s);
        }
    ls_gemm_job job = job_of(&p, got);
    job.bf16 = true;
    job.units = (ls_gemm_units){.rows = rows, .row = chosen ? row : NULL};
    ls_gemm(c, &job);
    compare(&p, want, got);
    free(row), free(want), free(got);
    drop_problem(&p);
}

static void units(const ls_compute *c) {
    static const int64_t rows[] = {32, 33, 36, 64, 100, 1000};
    for (int i = 0; i < 6; i++)
        for (int64_t K = 1; K < 1300; K += 1 + K / 2) {
            check_units(c, K, rows[i], false);
            check_units(c, K, rows[i], true);
        }
}

static void test_units(void **state) {
    (void)state;
    each_kernel(units, 2);
}

/* Numbers of all kinds, rounded into other memory and in their own place. */
static void rounding(const ls_compute *c) {
    enum { MOST = 131 };
    uint64_t seed = 3;
    for (int64_t n = 0; n <= MOST; n++) {
        float x[MOST + 1], place[MOST + 1];
        uint16_t out[MOST + 1], again[MOST + 1];
        for (int64_t i = 0; i <= n; i++) x[i] = f32_of_u32(random_u32(&seed));
        if (n) x[0] = f32_of_u32(0x7fffffu), x[n / 2] = f32_of_u32(0x7f80u + (uint32_t)n);
        memcpy(place, x, sizeof x);
        out[n] = 0x1234;
        c->k->to_bf16(n, x, out);
        c->k->to_bf16(n, place, place);
        memcpy(again, place, (size_t)n * sizeof *again);
        assert_int_equal(out[n], 0x1234);
        for (int64_t i = 0; i < n; i++) {
            assert_true(same_or_nan(f32_of_u32((uint32_t)out[i] << 16), nearest_bf16(x[i])));
            assert_int_equal(out[i], again[i]);
        }
    }
}

static void test_rounding(void **state) {
    (void)state;
    each_kernel(rounding, 1);
}

/* ---- rounded products ---- */

/* What the product leaves, rounded: the numbers behind a row's end stay. */
static void check_rounded(const ls_compute *c, int64_t M, int64_t N, int64_t K, int how) {
    problem p = make_problem(M, N, K, how);
    size_t n = (size_t)(M * p.ldc);
    float *sums = malloc(n * sizeof *sums);
    uint16_t *want = malloc(n * sizeof *want), *got = aligned_alloc(64, (2 * n + 64) / 64 * 64);
    fill_wild(&p, how % 4 ? 2 : 0, (uint64_t)how);
    memcpy(sums, p.c, n * sizeof *sums);
    memset(want, 0x33, n * sizeof *want);
    memset(got, 0x33, n * sizeof *got);
    run(c, &p, (subject){.halves = how & 1}, sums);
    for (int64_t i = 0; i < M; i++)
        c->k->narrow(LS_BF16, (size_t)N, sums + i * p.ldc, want + i * p.ldc);
    ls_gemm_job job = job_of(&p, p.c);
    job.bf16 = true;
    job.rounded = got;
    ls_gemm(c, &job);
    assert_memory_equal(want, got, n * sizeof *want);
    free(sums), free(want), free(got);
    drop_problem(&p);
}

/* Rows that begin lines, and others; more than a panel, and none. */
static void rounded(const ls_compute *c) {
    static const int64_t depths[] = {0, 1, 33, 64, 2100};
    for (int how = 0; how < 12; how++)
        for (int k = 0; k < 5; k++) {
            check_rounded(c, 70, 96 - how % 3, depths[k], how);
            check_rounded(c, 32, 50, depths[k], how);
        }
}

static void test_rounded(void **state) {
    (void)state;
    each_kernel(rounded, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),    cmocka_unit_test(test_large),
        cmocka_unit_test(test_extreme),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_depths),
        cmocka_unit_test(test_units),    cmocka_unit_test(test_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
