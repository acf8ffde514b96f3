/* experts_device.h - the steps of experts (experts.c) on a device: queued there, with the bits of
 * the host.
 *
 * Each step is one kernel for all of the layer's experts. How many rows an expert has, the device
 * alone knows: kernels are launched for as many as there could be, and read it there. Rows of all
 * experts lie one after the other, by the places of their choices.
 */
#ifndef LS_LAYERS_EXPERTS_DEVICE_H
#define LS_LAYERS_EXPERTS_DEVICE_H

#include "layers/routing.h"
#include "tensor/gemm.h"

/* A call of the layer's experts [own, end). */
typedef struct ls_experts_there {
    const ls_compute *c;
    const ls_routing *r;
    int64_t own, end;
} ls_experts_there;

/* The most rows of n experts of which a row chooses k. */
int64_t ls_experts_device_rows(int64_t rows, int64_t k, int64_t n);

/* to [., C] = the experts' rows of from [rows, C]; and to [rows, C] = the sums of the experts'
 * rows, of rows that none computes 0. */
void ls_experts_device_gather(const ls_experts_there *, int64_t C, const float *from, float *to);
void ls_experts_device_scatter(const ls_experts_there *, int64_t C, const float *from, float *to);

/* The rows of h; and the backward of that, in which the gradient of gate takes the place of dh. */
typedef struct ls_expert_gates {
    const float *gate, *up;
    float *h;
    float *dh, *dup, *dweight; /* backward */
} ls_expert_gates;
void ls_experts_device_activate(const ls_experts_there *, int64_t F, const ls_expert_gates *);
void ls_experts_device_activate_back(const ls_experts_there *, int64_t F, const ls_expert_gates *);

/* A product for each expert, with its rows as those of a, and of c; b is that of the first, and
 * those of the others follow. And one of which its rows are k, with units that are numbers of
 * choices; c is that of the first. a has whole rows, and c. M, or K, is not read. */
void ls_experts_device_product(const ls_experts_there *, const ls_gemm_job *);
void ls_experts_device_sum(const ls_experts_there *, const ls_gemm_job *);

#endif
