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

/* A rule's kernel takes n, scalars, perhaps a flag (below 0: it takes none), the gradient, the
 * parameter, and its states. */
typedef struct rule {
    ls_device_kernel kernel;
    float scalars[LS_LAUNCH_ARGS];
    int nscalars, flag, nstates;
} rule;

static void launch_rule(const ls_compute *c, const ls_update_device_call *u, const rule *r) {
    ls_device_call call = {.kernel = r->kernel};
    int n = 1; /* args[0]: launch() */
    for (int i = 0; i < r->nscalars; i++) call.args[n++].f = r->scalars[i];
    if (r->flag >= 0) call.args[n++].l = r->flag;
    call.args[n++].from = u->grad;
    call.args[n++].p = u->param;
    for (int i = 0; i < r->nstates; i++) call.args[n++].p = u->states[i];
    launch(c, call, u->n);
}

void ls_update_device(const ls_compute *c, const ls_update_device_call *u) {
    const ls_update_scalars *s = u->scalars;
    const float rest1 = 1.0f - s->beta1, rest2 = 1.0f - s->beta2, decay = s->weight_decay;
    const float keep = 1.0f - s->lr * s->weight_decay;
    const rule rules[LS_NUPDATES] = {
        [LS_RULE_ADAMW] = {LS_KERNEL_adamw,
                           {s->grad_scale, s->beta1, rest1, s->beta2, rest2, s->correct1,
                            s->correct2, s->eps, -s->lr, keep},
                           10,
                           -1,
                           2},
        [LS_RULE_ADAM] = {LS_KERNEL_adam,
                          {s->grad_scale, s->beta1, rest1, s->beta2, rest2, s->correct1,
                           s->correct2, s->eps, -s->lr, decay},
                          10,
                          -1,
                          2},
        [LS_RULE_SGD] = {LS_KERNEL_sgd, {s->grad_scale, decay, -s->lr}, 3, -1, 0},
        [LS_RULE_MOMENTUM] =
            {LS_KERNEL_momentum, {s->grad_scale, decay, -s->lr, s->momentum}, 4, s->nesterov, 1},
        [LS_RULE_LION] = {LS_KERNEL_lion,
                          {s->grad_scale, s->beta1, rest1, s->beta2, rest2, -s->lr, keep},
                          7,
                          -1,
                          1},
        [LS_RULE_ADAGRAD] = {LS_KERNEL_adagrad, {s->grad_scale, decay, -s->lr, s->eps}, 4, -1, 1},
        [LS_RULE_SCHEDULE_FREE] = {LS_KERNEL_schedule_free,
                                   {s->grad_scale, s->beta1, s->beta2, rest2, s->correct2, s->eps,
                                    -s->lr, decay, s->weight},
                                   9,
                                   s->first,
                                   3}};
    assert(ls_update_device_has(u->rule));
    launch_rule(c, u, &rules[u->rule]);
}

void ls_update_device_ema(const ls_compute *c, int64_t n, float weight, bool first, const float *x,
                          float *mean) {
    launch(c,
           (ls_device_call){.kernel = LS_KERNEL_ema,
                            .args = {{0}, {.f = weight}, {.l = first}, {.from = x}, {.p = mean}}},
           n);
}

void ls_update_device_running(const ls_compute *c, const ls_running_call *r, const float *sum,
                              float *x) {
    launch(c,
           (ls_device_call){.kernel = LS_KERNEL_running,
                            .args = {{0},
                                     {.f = r->momentum},
                                     {.f = r->samples},
                                     {.l = r->balances},
                                     {.from = sum},
                                     {.p = x}}},
           r->n);
}

void ls_update_device_squares(const ls_compute *c, const ls_squares_call *s, const float *x,
                              double *sums) {
    assert(!s->without || s->size <= 1024);
    LS_LAUNCH(c, LS_KERNEL_squares, ls_device_groups(s->nblocks, NORM_BLOCKS), 1, {.l = s->nblocks},
              {.l = s->size}, {.l = (int64_t)s->without}, {.from = x}, {.p = sums});
}
