/* row_ops.h - steps that several layers use, run with all threads of a worker.
 *
 * Row-wise steps split rows among threads; gradient chains down the rows split columns.
 */
#ifndef LS_MODEL_ROW_OPS_H
#define LS_MODEL_ROW_OPS_H

#include "model/layer.h"
#include "tensor/gemm.h"

/* Where the call's compute has a device, each of these steps is queued there (row_device.h); then
 * no operand is in bf16.
 *
 * The units (tensor/gemm.h) of a product in bf16 that sums over the call's rows: of
 * ls_layer_unit_samples() samples. In f32 there are none. */
ls_gemm_units ls_rows_units(const ls_layer_call *);

/* The end of a block of rows from `first` on, later and at most `most` (two blocks of a sum or
 * more), such that sums over blocks of rows are those over all rows. */
int64_t ls_rows_block_end(const ls_gemm_units *, int64_t first, int64_t rows, int64_t most);

/* Numbers in memory, in f32 or bf16. */
typedef struct ls_numbers {
    void *p;
    bool bf16;
} ls_numbers;

static inline ls_numbers ls_numbers_f32(float *p) { return (ls_numbers){p, false}; }
/* The numbers from number i on. */
static inline ls_numbers ls_numbers_at(ls_numbers x, int64_t i) {
    x.p = (char *)x.p + i * (x.bf16 ? 2 : 4);
    return x;
}
/* As rows of `width`. */
static inline ls_matrix ls_numbers_rows(ls_numbers x, int64_t width) {
    return (ls_matrix){x.p, width, 1, x.bf16};
}

/* Operands of the call: input k, and dy, as rows of `width`; y, and the gradient of input k; the
 * numbers that are saved and may be rounded. */
ls_matrix ls_rows_x(const ls_layer *, const ls_layer_call *, int k, int64_t width);
ls_matrix ls_rows_dy(const ls_layer *, const ls_layer_call *, int64_t width);
ls_numbers ls_rows_y(const ls_layer *, const ls_layer_call *);
ls_numbers ls_rows_dx(const ls_layer *, const ls_layer_call *, int k);
ls_numbers ls_rows_saved(const ls_layer *, const ls_layer_call *);

/* Parts of operands, for the calling thread alone. The first function reads n numbers of row r from
 * column j on, in place or widened into room. The second returns where to compute a result that
 * goes to y from number i on: there, or in room. The third ends that: it rounds what is in room as
 * layers' outputs are rounded. A layer that takes operands as they are stored reads and writes some
 * numbers at a time in this way. */
enum { LS_PART = 2048 }; /* as many numbers stay in the first-level cache */
const float *ls_part_read(const ls_kernels *, ls_matrix x, int64_t r, int64_t j, int64_t n,
                          float *room);
float *ls_part_result(ls_numbers y, int64_t i, float *room);
void ls_part_store(const ls_kernels *, ls_numbers y, int64_t i, int64_t n, const float *result);
/* y [n] = a + b, all in f32 or all in bf16, where the sum is rounded as layers' outputs are; y may
 * be a or b. */
void ls_part_add(const ls_kernels *, int64_t n, const void *a, const void *b, ls_numbers y);

/* Results that only products read are rounded as these round their operands (tensor/gemm.h). */

/* The layer norm with which attention, MLP and head begin; gamma and beta are their first two
 * parameters. h [rows, C] = norm of the call's x, for products; mean, rstd [rows] are saved for
 * backward. */
void ls_rows_norm(const ls_layer *, const ls_layer_call *, ls_numbers h, float *mean, float *rstd);

/* Backward of the norm: the call's dx, if it is wanted, = dy (if it is to be added) + the gradient
 * through the norm of dh, and the gradients of gamma and beta, unless they are frozen. */
void ls_rows_norm_back(const ls_layer *, const ls_layer_call *, const float *mean,
                       const float *rstd, const float *dh, bool add_dy);
/* Does the norm have any of these gradients? */
bool ls_rows_norm_has_back(const ls_layer *, const ls_layer_call *);
/* Declares what ls_rows_norm() and ls_rows_norm_back() convert; add_dy as above. h: it is stored in
 * the type of what is saved. */
void ls_rows_norm_converts(ls_layer *, int64_t T, int64_t C, bool add_dy, bool h);
/* Scratch memory of each thread for a norm whose x is in bf16. */
size_t ls_rows_norm_scratch(int64_t C);

/* y = gelu(x) for n numbers in contiguous rows, in bf16 where products read y. kept: x in bf16, as
 * a layer saves it. */
void ls_rows_gelu(const ls_compute *, int64_t n, ls_matrix x, ls_numbers y);
void ls_rows_gelu_keep(const ls_compute *, int64_t n, ls_matrix x, ls_numbers y, void *kept);
/* In one pass: multiplies d by the derivative at x; y = gelu(x), in bf16 for products. */
void ls_rows_gelu_back(const ls_compute *, int64_t n, ls_matrix x, float *d, ls_numbers y);
/* y = x + a; in bf16 it is rounded as an output of a layer. */
void ls_rows_add(const ls_compute *, int64_t n, ls_matrix x, const float *a, ls_numbers y);
/* y [n] in bf16 = x, for products. */
void ls_rows_round(const ls_compute *, int64_t n, const float *x, void *y);

/* sum [C] = the sums of the columns of x [rows, C], rows C apart; or they are added to a gradient
 * that an earlier call has begun. */
void ls_rows_column_sum(const ls_layer_call *, int64_t rows, ls_matrix x, float *sum);

/* Parameter w as rows of `width`, for products: as it is stored, or in f32. */
ls_matrix ls_rows_weights(const ls_layer *, const ls_layer_call *, int w, int64_t width);

/* Products with the layer's parameter number w, [in, out]; the next parameter is its bias [out]. A
 * weight that is the layer's last parameter has no bias, and `in` is the layer's C.
 * y [rows, out] = x [rows, in] . w + bias */
void ls_rows_linear(const ls_layer *, const ls_layer_call *, int w, ls_matrix x, float *y);
/* dx [rows, in] = dy [rows, out] . w^T */
void ls_rows_linear_dx(const ls_layer *, const ls_layer_call *, int w, ls_matrix dy, float *dx);
/* The gradients of w, by x^T . dy, and of the bias, by the sums of dy's columns, unless they are
 * frozen. */
void ls_rows_linear_dw(const ls_layer *, const ls_layer_call *, int w, ls_matrix x, ls_matrix dy);
/* Is there any of these gradients? */
bool ls_rows_linear_has_dw(const ls_layer *, int w);

#endif
