/* learned.c - y = a parameter, the same for each sample.
 *
 * params: weight, of the value's shape. Its gradient is the sum of dy over samples. */
#include <string.h>

#include "layers/copy.h"
#include "layers/layers.h"

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_copy_run(c->compute, &(ls_copy){.rows = c->n,
                                       .width = l->C,
                                       .from = ls_layer_param(l, c, 0),
                                       .to = c->y,
                                       .to_stride = l->C});
}

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    float *sum = ls_layer_grad(j->l, j->c, 0);
    int64_t c0 = 0, c1 = 0;
    ls_pool_share(j->l->C, 16, thread, nthreads, &c0, &c1);
    if (j->c->grads_start) memset(sum + c0, 0, (size_t)(c1 - c0) * sizeof *sum);
    j->c->compute->k->column_sum(j->c->n, j->l->C, c0, c1, j->c->dy, sum);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!l->frozen[0]) ls_pool_run(c->compute->pool, backward_run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "learned", .forward = forward, .backward = backward};

/* p: its dims and initializer. */
static ls_value *finish(ls_model *m, ls_layer *l, const ls_param *p, ls_dims dims) {
    l->ops = &ops;
    l->C = 1;
    for (int i = 0; i < p->ndims; i++) l->C *= p->dims[i];
    ls_build_param(m, l, "weight", p);
    ls_works_pass(&l->forward_work, LS_WORK_ADD, l->C);
    ls_works_pass(&l->backward_work, LS_WORK_COLUMN_SUM, l->C);
    ls_works_grads(&l->backward_work, 1);
    return ls_build_value(m, dims);
}

ls_value *ls_layers_ones(ls_model *m, const char *name, int64_t C) {
    ls_layer *l = ls_build_layer(m, "learned", name, NULL, 0);
    if (!l) return ls_build_failed(m);
    const ls_param p = {.ndims = 1, .dims = {C}, .init_value = 1};
    return finish(m, l, &p, LS_DIMS(C));
}

ls_value *(ls_learned)(ls_model *m, ls_dims dims, ls_learned_options o) {
    ls_layer *l = ls_build_layer(m, "learned", o.name, NULL, 0);
    if (!l) return ls_build_failed(m);
    ls_param p = {.init_std = o.deviation != 0 ? o.deviation : 0.02f};
    int64_t count = 1;
    for (; p.ndims < LS_MAX_DIMS && dims.of[p.ndims]; p.ndims++) {
        int64_t n = dims.of[p.ndims];
        if (n < 1 || __builtin_mul_overflow(count, n, &count) || count > INT32_MAX)
            return ls_build_fail(m, "its shape is %s; 1 to %d numbers are possible",
                                 ls_dims_write(dims).text, INT32_MAX);
        p.dims[p.ndims] = n;
    }
    if (!p.ndims) p.dims[p.ndims++] = 1;
    if (o.deviation < 0)
        return ls_build_fail(m, "deviation is %g; it is not negative", (double)o.deviation);
    return finish(m, l, &p, dims);
}
