/* gemv_test.c - products of one row: chains by fmaf, and the same bits as ls_gemm(). */
#include "tensor/gemv.h"

#include <math.h>

#include "base/random.h"
#include "tensor/gemm.h"
#include "test.h"

static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};

/* Weights and a bias of a type, and the same values in f32. Each begins at an odd index, so that
 * nothing is aligned, and ends at the end of its allocation, so that the address sanitizer detects
 * an overrun. */
typedef struct problem {
    int64_t K, N;
    void *memory[2];
    const void *w, *bias;
    float *x, *w32, *bias32, *y, *want;
} problem;

static float *normal(int64_t n, uint64_t stream) {
    float *p = malloc(((size_t)n + 1) * sizeof *p);
    ls_random_normal((ls_random_place){12, LS_STREAM_SAMPLE, stream, 0}, (size_t)n, 1.0f, p);
    return p;
}

/* Returns x [n] rounded to the type, in new memory *memory_p, from its second element on; x gets
 * the rounded values. */
static const void *rounded(const ls_kernels *k, ls_dtype type, int64_t n, float *x,
                           void **memory_p) {
    size_t size = ls_dtype_size(type);
    char *p = malloc(((size_t)n + 1) * size);
    *memory_p = p;
    if (type == LS_F32) {
        memcpy(p + size, x, (size_t)n * size);
    } else {
        k->narrow(type, (size_t)n, x, p + size);
        k->widen(type, (size_t)n, p + size, x);
    }
    return p + size;
}

static problem make(const ls_kernels *k, ls_dtype type, int64_t K, int64_t N) {
    problem p = {.K = K, .N = N};
    p.x = normal(K, 1);
    p.w32 = normal(K * N, 2);
    p.bias32 = normal(N, 3);
    p.y = normal(N, 4);
    p.want = normal(N, 5);
    p.w = rounded(k, type, K * N, p.w32, &p.memory[0]);
    p.bias = rounded(k, type, N, p.bias32, &p.memory[1]);
    return p;
}

static void drop(problem *p) {
    free(p->memory[0]), free(p->memory[1]);
    free(p->x), free(p->w32), free(p->bias32), free(p->y), free(p->want);
}

static void equal(const problem *p, const char *what) {
    for (int64_t j = 0; j < p->N; j++)
        if (memcmp(p->y + j, p->want + j, sizeof *p->y) != 0)
            fail_msg("%s, %lld x %lld: element %lld is %.9g, not %.9g", what, (long long)p->K,
                     (long long)p->N, (long long)j, (double)p->y[j], (double)p->want[j]);
}

/* Chains over w [K, N] or, as a table, [N, K]. */
static void chains(problem *p, bool table, bool bias) {
    for (int64_t j = 0; j < p->N; j++) {
        float s = bias ? p->bias32[j] : 0.0f;
        for (int64_t k = 0; k < p->K; k++)
            s = fmaf(p->x[k], p->w32[table ? j * p->K + k : k * p->N + j], s);
        p->want[j] = s;
    }
}

static void by_gemm(const ls_compute *c, problem *p, bool table, bool bias) {
    ls_matrix b = table ? ls_matrix_transposed(p->w32, p->K) : ls_matrix_of(p->w32, p->N);
    ls_gemm(c, &(ls_gemm_job){.M = 1,
                              .N = p->N,
                              .K = p->K,
                              .a = ls_matrix_of(p->x, p->K),
                              .b = b,
                              .c = p->want,
                              .ldc = p->N,
                              .start = bias ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                              .bias = p->bias32});
}

typedef struct split_job {
    const ls_kernels *k;
    const ls_gemv_job *whole;
} split_job;

static void split_run(void *arg, int thread, int nthreads) {
    const split_job *s = arg;
    int64_t first = 0, end = 0;
    ls_gemv_share(s->whole, thread, nthreads, &first, &end);
    ls_gemv_columns(s->k, s->whole, first, end);
}

static void check(const ls_compute *c, ls_dtype type, int64_t K, int64_t N) {
    problem p = make(c->k, type, K, N);
    for (int bias = 0; bias < 2; bias++) {
        ls_gemv_job job = {.type = type,
                           .K = K,
                           .N = N,
                           .x = p.x,
                           .w = p.w,
                           .bias = bias ? p.bias : NULL,
                           .y = p.y};
        ls_pool_run(c->pool, split_run, &(split_job){c->k, &job});
        chains(&p, false, bias);
        equal(&p, "chains");
        by_gemm(c, &p, false, bias);
        equal(&p, "ls_gemm");
    }
    for (int bias = 0; bias < 2; bias++) {
        const ls_stored w = {.data = p.w, .type = ls_block_of_dtype(type)};
        for (int64_t j = 0; j < N; j++) p.y[j] = NAN;
        ls_gemv_table(c,
                      &(ls_gemv_table_job){w, N, K, p.x, bias ? p.bias32 : NULL, p.y, false, NULL});
        chains(&p, true, bias);
        equal(&p, "chains of a table");
        by_gemm(c, &p, true, bias);
        equal(&p, "ls_gemm of a table");
    }
    memcpy(p.y, p.bias32, (size_t)N * sizeof *p.y); /* the bias may be y */
    ls_gemv_table(
        c, &(ls_gemv_table_job){
               {.data = p.w, .type = ls_block_of_dtype(type)}, N, K, p.x, p.y, p.y, false, NULL});
    chains(&p, true, true);
    equal(&p, "chains of a table, in place");
    drop(&p);
}

static void each_type(const char *kernels, void (*fn)(const ls_compute *, ls_dtype)) {
    if (!ls_kernels_named(kernels)) skip_because("this processor can't run %s kernels", kernels);
    setenv("LOCKSTEP_CPU", kernels, 1);
#if defined(__SANITIZE_THREAD__) /* it learns nothing from one thread */
    const int least = 3;
#else
    const int least = 1;
#endif
    for (int threads = least; threads <= 3; threads++) {
        ls_compute c;
        ls_error e;
        assert_ls_ok(ls_compute_init(&c, threads, 0, &e), e);
        ls_pool_share_cores(c.pool);
        for (int t = 0; t < 3; t++) fn(&c, types[t]);
        ls_compute_close(&c);
    }
    unsetenv("LOCKSTEP_CPU");
}

static void small_sizes(const ls_compute *c, ls_dtype type) {
    static const int64_t sizes[] = {0, 1, 2, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int k = 0; k < N; k++)
        for (int n = 0; n < N; n++) check(c, type, sizes[k], sizes[n]);
}

static void large_sizes(const ls_compute *c, ls_dtype type) {
    check(c, type, 389, 101);
    check(c, type, 61, 1031);
    check(c, type, 400, 96);
    check(c, type, 16, 2048);
}

static void test_small(void **state) { each_type(*state, small_sizes); }

static void test_large(void **state) { each_type(*state, large_sizes); }

/* Columns of a wider matrix, continued from the values in y, in any parts. */
static void in_parts(const ls_compute *c, ls_dtype type) {
    enum { K = 50, N = 77 };
    problem p = make(c->k, type, K, N);
    size_t size = ls_dtype_size(type);
    chains(&p, false, true);
    memcpy(p.y, p.bias32, N * sizeof *p.y);
    for (int64_t j = 0, step = 19; j < N; j += step)
        for (int64_t k = 0, deep = 11; k < K; k += deep)
            c->k->gemv(type, K - k < deep ? K - k : deep, N - j < step ? N - j : step, p.x + k,
                       (const char *)p.w + (size_t)(k * N + j) * size, N, p.y + j);
    equal(&p, "parts");
    drop(&p);
}

static void test_parts(void **state) { each_type(*state, in_parts); }

/* Every 16-bit float is widened as the kernel `widen` does it: -0 + 1 * w is w. */
static void every_half(const ls_compute *c, ls_dtype type) {
    enum { ALL = 65536 };
    static uint16_t w[ALL];
    static float y[ALL], want[ALL];
    const float one = 1.0f;
    if (type == LS_F32) return;
    for (int i = 0; i < ALL; i++) w[i] = (uint16_t)i, y[i] = -0.0f;
    c->k->widen(type, ALL, w, want);
    c->k->gemv(type, 1, ALL, &one, w, ALL, y);
    for (int i = 0; i < ALL; i++)
        if (isnan(want[i]) ? !isnan(y[i]) : memcmp(y + i, want + i, sizeof *y) != 0)
            fail_msg("0x%04x becomes %.9g, not %.9g", (unsigned)i, (double)y[i], (double)want[i]);
}

static void test_every_half(void **state) { each_type(*state, every_half); }

int main(void) {
    static char portable[] = "portable", avx2[] = "avx2";
    const struct CMUnitTest tests[] = {
        {"test_small_portable", test_small, NULL, NULL, portable},
        {"test_small_avx2", test_small, NULL, NULL, avx2},
        {"test_large_portable", test_large, NULL, NULL, portable},
        {"test_large_avx2", test_large, NULL, NULL, avx2},
        {"test_parts_portable", test_parts, NULL, NULL, portable},
        {"test_parts_avx2", test_parts, NULL, NULL, avx2},
        {"test_every_half_portable", test_every_half, NULL, NULL, portable},
        {"test_every_half_avx2", test_every_half, NULL, NULL, avx2},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
