/* gemm.h - matrix products in which every element is one chain of multiply-adds over k, in order.
 *
 * So blocking, threads, and what else is in the matrices don't touch the bits of an element; and a
 * product over rows that come in parts (LS_GEMM_ADD) has the bits of the product over all of them.
 */
#ifndef LS_TENSOR_GEMM_H
#define LS_TENSOR_GEMM_H

#include "tensor/compute.h"

enum {
    LS_GEMM_MC = 192,   /* rows of a packed at a time: with KC, 192 KB, a part of L2 */
    LS_GEMM_KC = 256,   /* depth of a packed panel: a strip of b is 24 KB, a part of L1 ... */
    LS_GEMM_KALL = 384, /* ... but so much is taken at once, rather than to go through c again */
    LS_GEMM_NC = 1536,  /* columns of b packed at a time: 1.5 MB, a part of L3 */
    LS_GEMM_WORK = LS_GEMM_KALL * (LS_GEMM_MC + LS_GEMM_NC), /* floats of work memory a thread */
};

/* A matrix in memory: element (i, j) is p[i * rs + j * cs]. Transposing swaps the strides. */
typedef struct ls_matrix {
    const float *p;
    int64_t rs, cs;
} ls_matrix;

typedef enum ls_gemm_start {
    LS_GEMM_ZERO, /* chains start at 0 */
    LS_GEMM_BIAS, /* chains of column j start at bias[j] */
    LS_GEMM_ADD,  /* chains go on from what c holds */
} ls_gemm_start;

typedef struct ls_gemm_job {
    int64_t M, N, K;
    ls_matrix a; /* [M, K] */
    ls_matrix b; /* [K, N]; not looked at where it is packed */
    float *c;    /* [M, N], rows ldc apart; does not overlap a or b */
    int64_t ldc;
    ls_gemm_start start;
    const float *bias;     /* [N] for LS_GEMM_BIAS */
    const float *packed_b; /* NULL, or what ls_gemm_pack() made of a b [packed_K, at least N] of */
    int64_t packed_K;      /* which the first K rows count, K <= packed_K */
} ls_gemm_job;

/* Row-major [rows, cols] with rows `ld` apart, as it is and transposed. */
static inline ls_matrix ls_matrix_of(const float *p, int64_t ld) { return (ls_matrix){p, ld, 1}; }
static inline ls_matrix ls_matrix_transposed(const float *p, int64_t ld) {
    return (ls_matrix){p, 1, ld};
}

/* Floats of a packed b [K, N] at most, and packing it: for a b that several products share. */
int64_t ls_gemm_packed_floats(int64_t K, int64_t N);
void ls_gemm_pack(const ls_kernels *, int64_t K, int64_t N, ls_matrix b, float *out);

/* With all threads of the worker. Not from inside ls_pool_run(). */
void ls_gemm(const ls_compute *, const ls_gemm_job *);

/* In the calling thread, which is thread `thread` of the worker. */
void ls_gemm_in_thread(const ls_compute *, int thread, const ls_gemm_job *);

#endif
