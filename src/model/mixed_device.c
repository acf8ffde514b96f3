/* mixed_device.c - see mixed_device.h. */
#include "model/mixed_device.h"

#include "model/mixed.h"

enum { ITEMS = 256 };

/* As the kernels number them. */
static int64_t number_of(ls_dtype type) { return type == LS_F16; }

void ls_device_round(const ls_compute *c, ls_dtype type, size_t n, float *x) {
    LS_LAUNCH(c, LS_KERNEL_round_to, ls_device_groups((int64_t)n, ITEMS), 1, {.l = (int64_t)n},
              {.l = number_of(type)}, {.p = x});
}

void ls_device_narrow(const ls_compute *c, ls_dtype type, size_t n, const float *x, void *y) {
    LS_LAUNCH(c, LS_KERNEL_narrow, ls_device_groups((int64_t)n, ITEMS), 1, {.l = (int64_t)n},
              {.l = number_of(type)}, {.from = x}, {.p = y});
}

void ls_device_widen(const ls_compute *c, ls_dtype type, size_t n, const void *x, float *y) {
    LS_LAUNCH(c, LS_KERNEL_widen, ls_device_groups((int64_t)n, ITEMS), 1, {.l = (int64_t)n},
              {.l = number_of(type)}, {.from = x}, {.p = y});
}

static ls_layer_call in_f32(const ls_layer_call *m) {
    ls_layer_call c = *m;
    c.type = c.grads_type = LS_F32;
    c.wide = NULL;
    c.in_bf16 = m->type == LS_BF16;
    return c;
}

size_t ls_mixed_device_work_nbytes(const ls_layer *l, int64_t n) {
    size_t nbytes = ls_mixed_work_nbytes(l, n, LS_F32, LS_F32, false);
    size_t there = (size_t)n * l->memory.there * sizeof(float);
    return there > nbytes ? there : nbytes;
}

/* An output that the host leaves to its readers (ls_layer_half.later) is not rounded, and neither
 * is its gradient. */
static bool rounds_output(const ls_layer *l) { return !l->traits.loss && l->half.later.scale == 0; }

static bool rounds_input(const ls_layer *l, int k) { return l->scales[k].scale == 0; }

void ls_mixed_device_forward(const ls_layer *l, const ls_layer_call *m) {
    ls_layer_call c = in_f32(m);
    int64_t rows = m->n * m->T;
    bool y = rounds_output(l) && !m->logits;
    ls_mixed_forward(l, &c);
    if (!ls_dtype_is_half(m->type)) return;
    if (y) ls_device_round(m->compute, m->type, ls_mixed_output(l, rows), m->y);
    ls_device_round(m->compute, m->type, ls_mixed_rough(l, rows), m->saved);
}

/* The finished chains. */
static void round_grads(const ls_layer *l, const ls_layer_call *m) {
    for (int i = 0; i < l->nparams; i++)
        if (ls_layer_trains(l, i))
            ls_device_round(m->compute, m->grads_type, l->counts[i], ls_layer_grad(l, m, i));
}

void ls_mixed_device_backward(const ls_layer *l, const ls_layer_call *m) {
    ls_layer_call c = in_f32(m);
    ls_mixed_backward(l, &c);
    if (ls_dtype_is_half(m->grads_type) && m->last) round_grads(l, m);
    for (int k = 0; k < l->ninputs && ls_dtype_is_half(m->type); k++)
        if (m->dx[k] && rounds_input(l, k))
            ls_device_round(m->compute, m->type, ls_mixed_input(l, k, m->n * m->T), m->dx[k]);
}

/* ---- for prices ---- */

static void count(ls_device_rounds *r, size_t floats) {
    r->floats += floats;
    r->kernels += floats > 0;
}

ls_device_rounds ls_mixed_device_forward_rounds(const ls_layer *l, int64_t n, ls_dtype compute) {
    ls_device_rounds r = {0};
    if (!ls_dtype_is_half(compute)) return r;
    if (rounds_output(l)) count(&r, ls_mixed_output(l, n * l->T));
    count(&r, ls_mixed_rough(l, n * l->T));
    return r;
}

ls_device_rounds ls_mixed_device_backward_rounds(const ls_layer *l, int64_t n, ls_dtype compute,
                                                 ls_dtype grads, bool dx, bool last) {
    ls_device_rounds r = {0};
    for (int i = 0; i < l->nparams && ls_dtype_is_half(grads) && last; i++)
        if (ls_layer_trains(l, i)) count(&r, l->counts[i]);
    for (int k = 0; k < l->ninputs && dx && ls_dtype_is_half(compute); k++)
        if (rounds_input(l, k)) count(&r, ls_mixed_input(l, k, n * l->T));
    return r;
}
