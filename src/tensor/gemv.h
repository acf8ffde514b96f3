/* gemv.h - products of one row, at the speed at which memory delivers the weights.
 *
 * Every element has the bits of ls_gemm()'s result: one chain of multiply-adds over k, in order.
 * Weights may be stored in 16 bits, those of tables in blocks as well (stored.h): they are widened
 * in registers, so fewer bytes are read. Products in bf16 have the bits of those of ls_gemm().
 */
#ifndef LS_TENSOR_GEMV_H
#define LS_TENSOR_GEMV_H

#include "tensor/compute.h"
#include "tensor/stored.h"

typedef struct ls_gemv_job {
    ls_dtype type; /* of w and bias: LS_F32, LS_BF16 or LS_F16 */
    int64_t K, N;
    const float *x;   /* [K] */
    const void *w;    /* [K, N] */
    const void *bias; /* [N]: chains of column j start at bias[j]; NULL: at 0 */
    float *y;         /* [N]; does not overlap x */
    bool bf16;        /* the product is in bf16: x has bf16 values, type is LS_BF16 */
    bool bias_f32;    /* the bias is in f32, of whatever type w is */
} ls_gemv_job;

/* Computes columns [first, end) of y in the calling thread. */
void ls_gemv_columns(const ls_kernels *, const ls_gemv_job *, int64_t first, int64_t end);

/* A thread's columns, in whole cache lines, for ls_gemv_columns() inside ls_pool_run(). */
void ls_gemv_share(const ls_gemv_job *, int thread, int nthreads, int64_t *first_p, int64_t *end_p);

/* All columns, by all threads of the worker. Must not be called inside ls_pool_run(). */
void ls_gemv(const ls_compute *, const ls_gemv_job *);

/* Uses all threads of the worker, and in bf16 the work memory of ls_gemm(). Must not be called
 * inside ls_pool_run(). */
void ls_gemv_table(const ls_compute *, const ls_gemv_table_job *);

/* Strips: a table in blocks is read in another order than that of its rows, since a row is a lane
 * of vectors. Where its bytes are stored in that order, too, products have nothing to turn.
 * All types but f32 have them, in rows of C values that are whole blocks, or multiples of 32.
 * Products of more rows read them, too, but for products in bf16, which do not read those of
 * 16-bit floats either. */
bool ls_gemv_has_strips(ls_block_type, int64_t C);

/* to [ls_block_nbytes(w.type, V C)], aligned to 64 = the strips of w [V, C], for w.strips on this
 * processor. Uses all threads of the worker. */
void ls_gemv_strips(const ls_compute *, ls_stored w, int64_t V, int64_t C, void *to);

#endif
