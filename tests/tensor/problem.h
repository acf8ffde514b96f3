/* problem.h - the operands of a matrix product, for gemm_test.c and variant_bits.c. */
#ifndef LS_TEST_PROBLEM_H
#define LS_TEST_PROBLEM_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/random.h"
#include "tensor/gemm.h"

typedef struct problem {
    int64_t M, N, K, ldc;
    bool ta, tb;
    ls_gemm_start start;
    float *a, *b, *bias, *c; /* c [M, ldc], at a multiple of 64 bytes */
} problem;

static inline void fill_matrix(float *x, size_t n, uint64_t stream) {
    ls_random_normal((ls_random_place){11, LS_STREAM_SAMPLE, stream, 0}, n, 1.0f, x);
}

static inline problem make_problem(int64_t M, int64_t N, int64_t K, int variant) {
    problem p = {M,
                 N,
                 K,
                 N + variant % 3,
                 variant & 1,
                 (variant >> 1) & 1,
                 (ls_gemm_start)(variant % 3),
                 NULL,
                 NULL,
                 NULL,
                 NULL};
    p.a = calloc((size_t)(M * K + 1), sizeof(float));
    p.b = calloc((size_t)(K * N + 1), sizeof(float));
    p.bias = calloc((size_t)N + 1, sizeof(float));
    p.c = aligned_alloc(64, ((size_t)(M * p.ldc) * sizeof(float) + 64) / 64 * 64);
    fill_matrix(p.a, (size_t)(M * K), 1);
    fill_matrix(p.b, (size_t)(K * N), 2);
    fill_matrix(p.bias, (size_t)N, 3);
    fill_matrix(p.c, (size_t)(M * p.ldc), 4);
    return p;
}

static inline void drop_problem(problem *p) {
    free(p->a);
    free(p->b);
    free(p->bias);
    free(p->c);
}

static inline ls_matrix a_of(const problem *p) {
    return p->ta ? ls_matrix_transposed(p->a, p->M) : ls_matrix_of(p->a, p->K);
}
static inline ls_matrix b_of(const problem *p) {
    return p->tb ? ls_matrix_transposed(p->b, p->K) : ls_matrix_of(p->b, p->N);
}

static inline ls_gemm_job job_of(const problem *p, float *c) {
    return (ls_gemm_job){.M = p->M,
                         .N = p->N,
                         .K = p->K,
                         .a = a_of(p),
                         .b = b_of(p),
                         .c = c,
                         .ldc = p->ldc,
                         .start = p->start,
                         .bias = p->bias};
}

#endif
