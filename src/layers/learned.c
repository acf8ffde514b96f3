/* learned.c - y = a parameter, or one after the other, the same for each sample.
 *
 * params: weight, of the value's shape; or weight [C], bias [C], y [2, C]. A gradient is the sum of
 * dy over samples. */
#include <string.h>

#include "layers/copy.h"
#include "layers/layers.h"

static void forward(const ls_layer *l, const ls_layer_call *c) {
    float *y = c->y;
    for (int i = 0; i < l->nparams; y += l->counts[i++])
        ls_copy_run(c->compute, &(ls_copy){.rows = c->n,
                                           .width = (int64_t)l->counts[i],
                                           .from = ls_layer_param(l, c, i),
                                           .to = y,
                                           .to_stride = l->C});
}

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    int param;
    const float *dy; /* its part of each sample's */
} job;

static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    float *sum = ls_layer_grad(j->l, j->c, j->param);
    int64_t c0 = 0, c1 = 0;
    ls_pool_share((int64_t)j->l->counts[j->param], 16, thread, nthreads, &c0, &c1);
    if (j->c->grads_start) memset(sum + c0, 0, (size_t)(c1 - c0) * sizeof *sum);
    j->c->compute->k->column_sum(j->c->n, j->l->C, c0, c1, j->dy, sum);
}

static void launch_backward(const ls_layer *l, const ls_layer_call *c, int param, const float *dy) {
    enum { ITEMS = 256 };
    int64_t count = (int64_t)l->counts[param];
    LS_LAUNCH(c->compute, LS_KERNEL_column_sum, ls_device_groups(count, ITEMS), 1, {.l = c->n},
              {.l = count}, {.from = dy}, {.l = l->C}, {.l = !c->grads_start},
              {.p = ls_layer_grad(l, c, param)});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const float *dy = c->dy;
    for (int i = 0; i < l->nparams; dy += l->counts[i++]) {
        if (!ls_layer_trains(l, i)) continue;
        if (c->compute->device)
            launch_backward(l, c, i, dy);
        else
            ls_pool_run(c->compute->pool, backward_run, &(job){l, c, i, dy});
    }
}

static const ls_layer_ops ops = {.kind = "learned", .forward = forward, .backward = backward};

/* p: dims and initializer of a parameter that the value has next. */
static void add_param(ls_model *m, ls_layer *l, const char *suffix, const ls_param *p) {
    int64_t count = 1;
    for (int i = 0; i < p->ndims; i++) count *= p->dims[i];
    l->ops = &ops;
    l->traits.on_device = true;
    l->C = l->nparams ? l->C + count : count;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, count);
    ls_works_pass(&l->cost.backward, LS_WORK_COLUMN_SUM, count);
    ls_works_grads(&l->cost.backward, 1u << l->nparams);
    ls_build_param(m, l, suffix, p);
}

ls_value *ls_layers_weight(ls_model *m, const char *name, int64_t C, bool plus_one) {
    ls_layer *l = ls_build_layer(m, "learned", name, NULL, 0);
    if (!l) return ls_build_failed(m);
    ls_param p = {.ndims = 1, .dims = {C}, .init.value = plus_one ? 0 : 1};
    add_param(m, l, "weight", &p);
    ls_value *y = ls_build_value(m, LS_DIMS(C));
    return plus_one ? (ls_affine)(m, y, 1, 1) : y;
}

ls_value *ls_layers_ones_zeros(ls_model *m, const char *name, int64_t C) {
    ls_layer *l = ls_build_layer(m, "learned", name, NULL, 0);
    if (!l) return ls_build_failed(m);
    add_param(m, l, "weight", &(ls_param){.ndims = 1, .dims = {C}, .init.value = 1});
    add_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {C}});
    return ls_build_value(m, LS_DIMS(2, C));
}

ls_value *(ls_learned)(ls_model *m, ls_dims dims, ls_learned_options o) {
    ls_layer *l = ls_build_layer(m, "learned", o.name, NULL, 0);
    if (!l) return ls_build_failed(m);
    ls_param p = {.init.std = o.deviation != 0 ? o.deviation : 0.02f};
    int64_t count = 1;
    for (; p.ndims < LS_MAX_DIMS && dims.of[p.ndims]; p.ndims++) {
        int64_t n = dims.of[p.ndims];
        if (n < 1 || __builtin_mul_overflow(count, n, &count) || count > INT32_MAX)
            return ls_build_fail(m, "its shape is %s; 1 to %d numbers are possible",
                                 ls_dims_write(dims).text, INT32_MAX);
        p.dims[p.ndims] = n;
    }
    if (!p.ndims) p.dims[p.ndims++] = 1;
    if (!ls_build_takes(m, "deviation", (double)o.deviation, 0)) return ls_build_failed(m);
    add_param(m, l, "weight", &p);
    return ls_build_value(m, dims);
}
