/* mixed_device.h - calls in 16 bits (mixed.h) on a device: with the bits of the host, and all
 * operands in f32.
 *
 * The device's memory has the numbers that the host has in 16 bits as floats with the same values:
 * a layer computes in f32, with products in bf16 where the host's are, and what the host would
 * store in 16 bits is rounded in place. A sum over micro-batches waits in the gradient itself,
 * which is rounded at its end. So layers need no kernels of their own for 16 bits; the device's
 * memory is that of a model in f32.
 */
#ifndef LS_MODEL_MIXED_DEVICE_H
#define LS_MODEL_MIXED_DEVICE_H

#include "model/layer.h"
#include "tensor/dtype.h"

/* Is the call one of these? */
static inline bool ls_mixed_there(const ls_layer_call *c) {
    return c->compute->device && (ls_dtype_is_half(c->type) || ls_dtype_is_half(c->grads_type));
}

/* Work memory of a device for n samples. */
size_t ls_mixed_device_work_nbytes(const ls_layer *, int64_t n);

void ls_mixed_device_forward(const ls_layer *, const ls_layer_call *);
void ls_mixed_device_backward(const ls_layer *, const ls_layer_call *);

/* What a call for n samples rounds in place, and in how many kernels: for prices, as the floats
 * that cores convert (ls_mixed_forward_floats()). */
typedef struct ls_device_rounds {
    size_t floats;
    int kernels;
} ls_device_rounds;
ls_device_rounds ls_mixed_device_forward_rounds(const ls_layer *, int64_t n, ls_dtype compute);
ls_device_rounds ls_mixed_device_backward_rounds(const ls_layer *, int64_t n, ls_dtype compute,
                                                 ls_dtype grads, bool dx, bool last);

/* Queue: x [n] = the numbers nearest to them of a type of 16 bits; and conversions to and from
 * it. */
void ls_device_round(const ls_compute *, ls_dtype, size_t n, float *x);
void ls_device_narrow(const ls_compute *, ls_dtype, size_t n, const float *x, void *y);
void ls_device_widen(const ls_compute *, ls_dtype, size_t n, const void *x, float *y);

/* Elements of a call's operands, for `rows` rows: of input k; of the output; of `saved`, how many
 * of its first ones are rounded (mixed.c). */
size_t ls_mixed_input(const ls_layer *, int k, int64_t rows);
size_t ls_mixed_output(const ls_layer *, int64_t rows);
size_t ls_mixed_rough(const ls_layer *, int64_t rows);

#endif
