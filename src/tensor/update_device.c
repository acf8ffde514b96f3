/* update_device.c - see update_device.h. */
#include "tensor/update_device.h"

#include <assert.h>

enum { ITEMS = 256, NORM_BLOCKS = 16 }; /* of a group */

bool ls_update_device_has(ls_update_rule rule) {
    return rule < LS_NUPDATES && rule != LS_RULE_ONEBIT_ADAM;
}

static void launch(const ls_compute *c, ls_device_call call, int64_t n) {
    call.groups_x = ls_device_groups(n, ITEMS);
    call.groups_y = 1;
    call.args[0].l = n;
    ls_compute_launch(c, &call);
}

static ls_device_call adam_call(const ls_update_device_call *u, bool decoupled) {
    const ls_update_scalars *s = u->scalars;
    return (ls_device_call){
        .kernel = decoupled ? LS_KERNEL_adamw : LS_KERNEL_adam,
        .args = {{0},
                 {.f = s->grad_scale},
                 {.f = s->beta1},
                 {.f = 1.0f - s->beta1},
                 {.f = s->beta2},
                 {.f = 1.0f - s->beta2},
                 {.f = s->correct1},
                 {.f = s->correct2},
                 {.f = s->eps},
                 {.f = -s->lr},
                 {.f = decoupled ? 1.0f - s->lr * s->weight_decay : s->weight_decay},
                 {.from = u->grad},
                 {.p = u->param},
                 {.p = u->states[0]},
                 {.p = u->states[1]}}};
}

static ls_device_call sgd_call(const ls_update_device_call *u) {
    const ls_update_scalars *s = u->scalars;
    return (ls_device_call){.kernel = LS_KERNEL_sgd,
                            .args = {{0},
                                     {.f = s->grad_scale},
                                     {.f = s->weight_decay},
                                     {.f = -s->lr},
                                     {.from = u->grad},
                                     {.p = u->param}}};
}

static ls_device_call momentum_call(const ls_update_device_call *u) {
    const ls_update_scalars *s = u->scalars;
    return (ls_device_call){.kernel = LS_KERNEL_momentum,
                            .args = {{0},
                                     {.f = s->grad_scale},
                                     {.f = s->weight_decay},
                                     {.f = -s->lr},
                                     {.f = s->momentum},
                                     {.l = s->nesterov},
                                     {.from = u->grad},
                                     {.p = u->param},
                                     {.p = u->states[0]}}};
}

static ls_device_call lion_call(const ls_update_device_call *u) {
    const ls_update_scalars *s = u->scalars;
    return (ls_device_call){.kernel = LS_KERNEL_lion,
                            .args = {{0},
                                     {.f = s->grad_scale},
                                     {.f = s->beta1},
                                     {.f = 1.0f - s->beta1},
                                     {.f = s->beta2},
                                     {.f = 1.0f - s->beta2},
                                     {.f = -s->lr},
                                     {.f = 1.0f - s->lr * s->weight_decay},
                                     {.from = u->grad},
                                     {.p = u->param},
                                     {.p = u->states[0]}}};
}

static ls_device_call adagrad_call(const ls_update_device_call *u) {
    const ls_update_scalars *s = u->scalars;
    return (ls_device_call){.kernel = LS_KERNEL_adagrad,
                            .args = {{0},
                                     {.f = s->grad_scale},
                                     {.f = s->weight_decay},
                                     {.f = -s->lr},
                                     {.f = s->eps},
                                     {.from = u->grad},
                                     {.p = u->param},
                                     {.p = u->states[0]}}};
}

static ls_device_call schedule_free_call(const ls_update_device_call *u) {
    const ls_update_scalars *s = u->scalars;
    return (ls_device_call){.kernel = LS_KERNEL_schedule_free,
                            .args = {{0},
                                     {.f = s->grad_scale},
                                     {.f = s->beta1},
                                     {.f = s->beta2},
                                     {.f = 1.0f - s->beta2},
                                     {.f = s->correct2},
                                     {.f = s->eps},
                                     {.f = -s->lr},
                                     {.f = s->weight_decay},
                                     {.f = s->weight},
                                     {.l = s->first},
                                     {.from = u->grad},
                                     {.p = u->param},
                                     {.p = u->states[0]},
                                     {.p = u->states[1]},
                                     {.p = u->states[2]}}};
}

void ls_update_device(const ls_compute *c, const ls_update_device_call *u) {
    switch (u->rule) {
    case LS_RULE_ADAMW: launch(c, adam_call(u, true), u->n); return;
    case LS_RULE_ADAM: launch(c, adam_call(u, false), u->n); return;
    case LS_RULE_SGD: launch(c, sgd_call(u), u->n); return;
    case LS_RULE_MOMENTUM: launch(c, momentum_call(u), u->n); return;
    case LS_RULE_LION: launch(c, lion_call(u), u->n); return;
    case LS_RULE_ADAGRAD: launch(c, adagrad_call(u), u->n); return;
    case LS_RULE_SCHEDULE_FREE: launch(c, schedule_free_call(u), u->n); return;
    default: assert(!ls_update_device_has(u->rule));
    }
}

void ls_update_device_ema(const ls_compute *c, int64_t n, float weight, bool first, const float *x,
                          float *mean) {
    launch(c,
           (ls_device_call){.kernel = LS_KERNEL_ema,
                            .args = {{0}, {.f = weight}, {.l = first}, {.from = x}, {.p = mean}}},
           n);
}

void ls_update_device_squares(const ls_compute *c, int64_t nblocks, int64_t size, const float *x,
                              double *sums) {
    ls_compute_launch(
        c, &(ls_device_call){.kernel = LS_KERNEL_squares,
                             .groups_x = ls_device_groups(nblocks, NORM_BLOCKS),
                             .groups_y = 1,
                             .args = {{.l = nblocks}, {.l = size}, {.from = x}, {.p = sums}}});
}
