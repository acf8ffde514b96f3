/* gemm_test.c - products against a loop in double precision, and bit by bit against one chain over
 * k for every element. */
#include "tensor/gemm.h"

#include <math.h>

#include "tensor/each_kernel.h"
#include "tensor/problem.h"
#include "test.h"

static float at(ls_matrix m, int64_t i, int64_t j) {
    return *(const float *)ls_matrix_from(m, i, j).p;
}

/* The chain itself, and a double-precision sum of the same products. */
static float chain(const problem *p, int64_t i, int64_t j, double *exact) {
    float s = p->start == LS_GEMM_ADD    ? p->c[i * p->ldc + j]
              : p->start == LS_GEMM_BIAS ? p->bias[j]
                                         : 0.0f;
    *exact = (double)s;
    for (int64_t k = 0; k < p->K; k++) {
        s = fmaf(at(a_of(p), i, k), at(b_of(p), k, j), s);
        *exact += (double)at(a_of(p), i, k) * (double)at(b_of(p), k, j);
    }
    return s;
}

/* With b unpacked, or packed beforehand with more rows than are used. */
static void run(const ls_compute *c, const problem *p, bool pack, float *got) {
    ls_gemm_job job = job_of(p, got);
    float *packed = malloc((size_t)ls_gemm_packed_floats(p->K, p->N) * sizeof(float) + 4);
    if (pack) {
        ls_gemm_pack(c->k, job.bf16, p->K, p->N, job.b, packed);
        job.packed_b = packed;
        job.packed_K = p->K;
        job.b = (ls_matrix){0};
    }
    ls_gemm(c, &job);
    free(packed);
}

static void check(const ls_compute *c, int64_t M, int64_t N, int64_t K, int variant) {
    problem p = make_problem(M, N, K, variant);
    size_t n = (size_t)(M * p.ldc), nbytes = n * sizeof(float);
    float *got = malloc(nbytes + 4), *packed = malloc(nbytes + 4);
    memcpy(got, p.c, nbytes);
    memcpy(packed, p.c, nbytes);
    run(c, &p, false, got);
    run(c, &p, true, packed);
    assert_memory_equal(got, packed, nbytes);
    free(packed);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < p.ldc; j++) {
            double exact = 0;
            float want = j < N ? chain(&p, i, j, &exact) : p.c[i * p.ldc + j];
            if (memcmp(&want, &got[i * p.ldc + j], sizeof want) != 0)
                print_error("%lld x %lld x %lld, variant %d, element %lld %lld\n", (long long)M,
                            (long long)N, (long long)K, variant, (long long)i, (long long)j);
            assert_memory_equal(&want, &got[i * p.ldc + j], sizeof want);
            if (j < N) assert_true(fabs(exact - (double)want) <= 1e-5 * (1 + sqrt((double)K)));
        }
    free(got);
    drop_problem(&p);
}

static void small_shapes(const ls_compute *c) {
    static const int64_t sizes[] = {0, 1, 3, 4, 5, 17, 23, 24, 25, 31};
    int variant = 0;
    for (int m = 0; m < 10; m++)
        for (int n = 0; n < 10; n++)
            for (int k = 0; k < 10; k += 1 + (m + n) % 3)
                check(c, sizes[m], sizes[n], sizes[k], variant++ % 12);
}

/* Sizes beyond a block in each direction. */
static void large_shapes(const ls_compute *c) {
    for (int variant = 0; variant < 12; variant += 5) {
        check(c, LS_GEMM_MC + 3, 33, LS_GEMM_KALL + 1, variant);
        check(c, 7, LS_GEMM_NC + 1, 3, variant);
        check(c, 2 * LS_GEMM_MC + 1, 53, 2, variant);
        check(c, 1, 40, 3 * LS_GEMM_KC + 7, variant);
    }
}

static void test_small(void **state) {
    (void)state;
    each_kernel(small_shapes, 3);
}

static void test_large(void **state) {
    (void)state;
    each_kernel(large_shapes, 3);
}

/* A product in two parts over k, the second added to the first, has the bits of the whole. */
static void in_parts(const ls_compute *c) {
    problem p = make_problem(13, 21, 500, 0);
    float *whole = calloc(13 * 21, sizeof(float)), *parts = calloc(13 * 21, sizeof(float));
    p.ldc = 21;
    ls_gemm_job job = job_of(&p, whole);
    job.ldc = 21;
    ls_gemm(c, &job);
    for (int64_t first = 0, step = 77; first < p.K; first += step) {
        ls_gemm_job part = job;
        part.c = parts;
        part.K = p.K - first < step ? p.K - first : step;
        part.a = ls_matrix_from(part.a, 0, first);
        part.b = ls_matrix_from(part.b, first, 0);
        part.start = first ? LS_GEMM_ADD : LS_GEMM_ZERO;
        ls_gemm_in_thread(c, 0, &part);
    }
    assert_memory_equal(whole, parts, 13 * 21 * sizeof(float));
    free(whole);
    free(parts);
    drop_problem(&p);
}

static void test_parts(void **state) {
    (void)state;
    each_kernel(in_parts, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
