/* layer_groups.h - calls the f32 kernels of vision's and tables' layers, in groups: see groups.h. */
#ifndef LS_TEST_LAYER_GROUPS_H
#define LS_TEST_LAYER_GROUPS_H

#include "tensor/groups.h"

/* Outputs 2i and 2i + 1: activation i and its gradient. */
static inline void do_activations(const ls_kernels *k, int64_t n, values *v) {
    for (int i = 0; i < LS_NACTIVATIONS; i++) {
        float *y = v->out[2 * i], *dx = v->out[2 * i + 1];
        k->activation[i](n, v->in[0], y);
        start_from(v, 2 * i + 1, 1, n);
        k->activation_dx[i](n, i == LS_SILU ? v->in[0] : y, dx, dx); /* in place of dy */
    }
}

static const ls_dropout DROPOUT = {.seed = 3, .step = 5, .sample = 7, .layer = 11, .p = 0.3f};
enum { CHANNELS = 3 };

/* Dropout from the middle of a block on. */
static inline void do_elements_f32(const ls_kernels *k, int64_t n, values *v) {
    uint8_t bytes[CHANNELS * MAX_N];
    for (int64_t i = 0; i < CHANNELS * n; i++) bytes[i] = (uint8_t)(i * 37);
    k->multiply(n, v->in[0], v->in[1], v->out[0]);
    start_from(v, 1, 0, n);
    k->multiply(n, v->out[1], v->out[1], v->out[1]);
    k->affine(n, v->in[0], 0.3f, -7.0f, v->out[2]);
    start_from(v, 3, 0, n);
    k->affine(n, v->out[3], 1e3f, 0.1f, v->out[3]);
    k->bytes_affine(n, CHANNELS, bytes, v->in[1], v->in[2], v->out[4]);
    k->dropout(&DROPOUT, 29, n, v->in[0], v->out[5]);
    start_from(v, 6, 0, n);
    k->dropout(&DROPOUT, 29, n, v->out[6], v->out[6]);
}

#endif
