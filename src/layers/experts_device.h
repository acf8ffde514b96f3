/* experts_device.h - the steps of experts (experts.c) on a device: queued there, with the bits of the host.
 *
 * How many rows an expert has, the device alone knows: kernels are launched for as many as there could be, and
 * read it there. Rows that are saved of all experts lie at the places of their choices; others lie one after
 * the other.
 */
#ifndef LS_LAYERS_EXPERTS_DEVICE_H
#define LS_LAYERS_EXPERTS_DEVICE_H

#include "layers/routing.h"
#include "tensor/gemm.h"

/* The rows of expert e, of the layer's experts [own, end). */
typedef struct ls_expert_there {
    const ls_compute *c;
    const ls_routing *r;
    int64_t own, end, e;
    bool saves; /* gate and up are those of all the layer's experts; else of this one */
} ls_expert_there;

/* to [., C] = the expert's rows of from [rows, C]; and the expert's rows, added to those of all. */
void ls_experts_device_gather(const ls_expert_there *, int64_t C, const float *from, float *to);
void ls_experts_device_scatter(const ls_expert_there *, int64_t C, const float *from, float *to);
/* Zeros in the rows [rows, C] that no expert of the layer computes. */
void ls_experts_device_clear(const ls_expert_there *, int64_t C, float *to);

/* The expert's rows of h; and the backward of that. */
typedef struct ls_expert_gates {
    const float *gate, *up;
    float *h;
    const float *dh; /* backward: */
    float *dgate, *dup, *dweight;
} ls_expert_gates;
void ls_experts_device_activate(const ls_expert_there *, int64_t F, const ls_expert_gates *);
void ls_experts_device_activate_back(const ls_expert_there *, int64_t F, const ls_expert_gates *);

/* A product with the expert's rows as those of a, and of c; saved: c is gate or up. And one of which they are
 * k, with units that are numbers of choices. a has whole rows, and c. */
void ls_experts_device_product(const ls_expert_there *, const ls_gemm_job *, bool saved);
void ls_experts_device_sum(const ls_expert_there *, const ls_gemm_job *);

#endif
