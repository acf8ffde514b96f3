/* compute.h - what a worker computes with: kernels, threads, and scratch memory of each thread; or
 * a device.
 *
 * Owned by one worker. Scratch is allocated once; its contents are valid only within one call.
 */
#ifndef LS_TENSOR_COMPUTE_H
#define LS_TENSOR_COMPUTE_H

#include <stddef.h>

#include "device/device.h"
#include "tensor/kernels.h"
#include "tensor/pool.h"

typedef struct ls_compute {
    /* The operands of a layer's call are in its memory, and what computes with them is queued on
     * its LS_DEVICE_COMPUTE (device/device.h); NULL: the host computes. Not owned. */
    ls_device *device;
    const ls_kernels *k;
    ls_pool *pool;
    int nthreads;
    size_t scratch_floats; /* of each thread */
    size_t stride;         /* floats between threads in `memory` */
    float *memory;
    size_t memory_nbytes;
} ls_compute;

ls_status ls_compute_init(ls_compute *, int nthreads, size_t scratch_floats, ls_error *);
void ls_compute_close(ls_compute *);

/* Queues a kernel on the device. */
static inline void ls_compute_launch(const ls_compute *c, const ls_device_call *call) {
    ls_device_launch(c->device, LS_DEVICE_COMPUTE, call);
}
/* The same in a line: LS_LAUNCH(c, LS_KERNEL_add, groups, 1, {.l = n}, {.from = a}, {.p = y}). */
#define LS_LAUNCH(c, kernel_, x, y, ...)                                                           \
    ls_compute_launch(                                                                             \
        c, &(ls_device_call){                                                                      \
               .kernel = (kernel_), .groups_x = (x), .groups_y = (y), .args = {__VA_ARGS__}})

float *ls_compute_scratch(const ls_compute *, int thread);   /* [scratch_floats] */
float *ls_compute_gemm_work(const ls_compute *, int thread); /* see gemm.c */

/* The number of bytes that ls_compute_init() maps. */
size_t ls_compute_nbytes(int nthreads, size_t scratch_floats);

#endif
