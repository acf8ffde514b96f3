/* gemm.h - matrix products in which every element is a sum over k in a fixed order: one chain of
 * multiply-adds, or in bf16 blocks of LS_SUM_BLOCK (kernels.h).
 *
 * Products in bf16 round their operands to bf16 (to nearest, ties to even; NaN stays NaN) and sum
 * in f32; there, operands, start values and results below 1.2e-38 are zeros.
 *
 * So an element's bits do not depend on blocking, threads or other elements, and a product that is
 * continued over further rows (LS_GEMM_ADD) has the bits of one product over all rows, in bf16 if
 * it is continued where blocks begin. Weights may be in 16 bits or in blocks: they are widened as
 * they are packed, and the bits are those of their values in f32.
 */
#ifndef LS_TENSOR_GEMM_H
#define LS_TENSOR_GEMM_H

#include <stdbool.h>

#include "tensor/compute.h"
#include "tensor/stored.h"

enum {
    LS_GEMM_MC = 192,   /* rows of a that are packed at a time: with KC, 192 KB, a part of L2 */
    LS_GEMM_KC = 256,   /* depth of a packed panel, in words: a strip of b is 24 KB, a part of L1;
                         * whole blocks of LS_SUM_BLOCK, as LS_GEMM_KALL is */
    LS_GEMM_KALL = 384, /* up to this depth one panel is used, which saves another pass over c */
    LS_GEMM_NC = 1536,  /* columns of b that are packed at a time: 1.5 MB, a part of L3 */
    LS_GEMM_WORK = LS_GEMM_KALL * (LS_GEMM_MC + LS_GEMM_NC), /* floats of work memory a thread */
};

/* A matrix in memory: element (i, j) is p[i * rs + j * cs], in f32, or in bf16, for products in
 * bf16 alone. Transposing swaps the strides. */
typedef struct ls_matrix {
    const void *p;
    int64_t rs, cs;
    bool bf16;
} ls_matrix;

/* Rows of weights in a type of their own, and how they stand in a product. */
typedef struct ls_weight_matrix {
    ls_stored rows;  /* [., width] row-major; data NULL: there are none */
    int64_t width;   /* whole blocks */
    bool transposed; /* each row is a column of the matrix */
    int64_t first;   /* the matrix's first column: of its rows, or a row */
    int64_t end;     /* of what all threads take, set by ls_gemm() */
} ls_weight_matrix;

typedef enum ls_gemm_start {
    LS_GEMM_ZERO, /* chains start at 0 */
    LS_GEMM_BIAS, /* chains of column j start at bias[j] */
    LS_GEMM_ADD,  /* chains continue from the values in c */
} ls_gemm_start;

/* Where blocks begin anew, so that a sum over rows of a batch does not depend on which of them come
 * in a call: at each row of another unit than the row before it. Row k is in unit (first + k) /
 * rows or, of rows that were chosen among others, row[k] / rows. */
typedef struct ls_gemm_units {
    int64_t rows;       /* 0: all rows are one unit */
    int64_t first;      /* the number of row 0 */
    const int32_t *row; /* [K] their numbers, ascending, or NULL */
} ls_gemm_units;

/* Does a unit begin at k > 0? */
static inline bool ls_gemm_begins_unit(const ls_gemm_units *u, int64_t k) {
    if (!u->rows) return false;
    return u->row ? u->row[k] / u->rows != u->row[k - 1] / u->rows : (u->first + k) % u->rows == 0;
}

typedef struct ls_gemm_job {
    int64_t M, N, K;
    bool bf16;          /* the product is in bf16 */
    ls_matrix a;        /* [M, K] */
    ls_matrix b;        /* [K, N]; unused if one of the next is set */
    ls_weight_matrix w; /* b as weights of any type; only of ls_gemm() */
    float *c;           /* [M, N], rows ldc apart; does not overlap a or b */
    int64_t ldc;
    /* NULL, or [M, N], rows ldc apart: gets the sums of a product in bf16, rounded as kernel
     * `narrow` does, and c is work memory. Not on a device. */
    uint16_t *rounded;
    ls_gemm_start start;
    const float *bias;     /* [N] for LS_GEMM_BIAS */
    const float *packed_b; /* NULL, or the output of ls_gemm_pack() for a b [packed_K, >= N] */
    int64_t packed_K;      /* >= K; the first K rows are used; in bf16 K is it, or whole blocks */
    ls_gemm_units units;   /* of k, for bf16 */
} ls_gemm_job;

/* A row-major matrix with rows `ld` apart, and its transpose. */
static inline ls_matrix ls_matrix_of(const float *p, int64_t ld) {
    return (ls_matrix){p, ld, 1, false};
}
static inline ls_matrix ls_matrix_transposed(const float *p, int64_t ld) {
    return (ls_matrix){p, 1, ld, false};
}
/* A row-major matrix in bf16. */
static inline ls_matrix ls_matrix_bf16(const void *p, int64_t ld) {
    return (ls_matrix){p, ld, 1, true};
}

/* The transpose of any. */
static inline ls_matrix ls_matrix_across(ls_matrix m) {
    return (ls_matrix){m.p, m.cs, m.rs, m.bf16};
}

/* The part from element (i, j) on. */
static inline ls_matrix ls_matrix_from(ls_matrix m, int64_t i, int64_t j) {
    m.p = (const char *)m.p + (i * m.rs + j * m.cs) * (m.bf16 ? 2 : 4);
    return m;
}

/* Weights [in, out], or [out, in] transposed, as b [in, out]; and these as b [out, in]. */
static inline ls_weight_matrix ls_weights_of(ls_stored rows, int64_t width) {
    return (ls_weight_matrix){.rows = rows, .width = width};
}
static inline ls_weight_matrix ls_weights_transposed(ls_stored rows, int64_t width) {
    return (ls_weight_matrix){.rows = rows, .width = width, .transposed = true};
}

/* Packs b [K, N], which several products share, for products in bf16 or f32, into out
 * [ls_gemm_packed_floats()]. */
int64_t ls_gemm_packed_floats(int64_t K, int64_t N);
void ls_gemm_pack(const ls_kernels *, bool bf16, int64_t K, int64_t N, ls_matrix b, float *out);

/* Uses all threads of the worker. Must not be called inside ls_pool_run(). */
void ls_gemm(const ls_compute *, const ls_gemm_job *);

/* Uses only the calling thread, which is thread `thread` of the worker. */
void ls_gemm_in_thread(const ls_compute *, int thread, const ls_gemm_job *);

#endif
