/* heads_device.c - see heads_device.h. */
#include "layers/heads_device.h"

#include <assert.h>
#include <math.h>

enum { TILE = 64, COMMON = 17 }; /* COMMON: parameters that all kernels begin with */

static int64_t tiles_of(int64_t n) { return ls_device_groups(n, TILE); }

static ls_device_call call_of(const ls_heads *a, ls_device_kernel kernel, int64_t groups) {
    assert(!a->bf16 && !a->stored && !(a->drop && ls_dropout_acts(a->drop, a->call)));
    assert(a->positions_nbytes % sizeof(int32_t) == 0);
    return (ls_device_call){.kernel = kernel,
                            .groups_x = groups,
                            .groups_y = 1,
                            .args = {{.l = a->T},
                                     {.l = a->S},
                                     {.l = a->D},
                                     {.l = a->heads},
                                     {.l = a->heads / a->kv_heads},
                                     {.l = a->causal},
                                     {.l = a->window},
                                     {.f = 1.0f / sqrtf((float)a->D)},
                                     {.from = a->q},
                                     {.l = a->q_row},
                                     {.from = a->k},
                                     {.from = a->v},
                                     {.l = a->kv_row},
                                     {.from = a->mask},
                                     {.l = (int64_t)a->mask_nbytes},
                                     {.from = a->positions},
                                     {.l = (int64_t)(a->positions_nbytes / sizeof(int32_t))}}};
}

void ls_heads_device_forward(const ls_heads *a) {
    ls_device_call call =
        call_of(a, LS_KERNEL_heads_forward, a->n * a->heads * tiles_of(a->T) * tiles_of(a->D));
    call.args[COMMON].p = a->stat;
    call.args[COMMON + 1].p = a->y;
    ls_compute_launch(a->compute, &call);
}

static ls_device_call back_call(const ls_heads *a, ls_device_kernel kernel, int64_t groups) {
    ls_device_call call = call_of(a, kernel, groups);
    assert(a->dy.cs == 1 && !a->dy.bf16);
    call.args[COMMON].p = a->stat;
    call.args[COMMON + 1].from = a->dy.p;
    call.args[COMMON + 2].l = a->dy.rs;
    call.args[COMMON + 3].p = a->dq;
    call.args[COMMON + 4].p = a->dk; /* of heads_dkv alone, as the next */
    call.args[COMMON + 5].p = a->dv;
    return call;
}

void ls_heads_device_backward(const ls_heads *a) {
    int64_t queries = a->n * a->heads * tiles_of(a->T);
    int64_t keys = a->n * a->kv_heads * tiles_of(a->S) * tiles_of(a->D);
    ls_device_call dot = back_call(a, LS_KERNEL_heads_dot, queries);
    ls_device_call dkv = back_call(a, LS_KERNEL_heads_dkv, keys);
    ls_device_call dq = back_call(a, LS_KERNEL_heads_dq, queries);
    ls_compute_launch(a->compute, &dot);
    ls_compute_launch(a->compute, &dkv);
    ls_compute_launch(a->compute, &dq);
}
