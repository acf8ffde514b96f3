/* mean.c - y = the mean of x over one dimension.
 *
 * x is [outer, size, inner]. Each mean is one chain over the dimension, times 1 / size. */
#include <string.h>

#include "layers/copy.h"

typedef struct job {
    const ls_around *o;
    const ls_layer_call *c;
} job;

/* The column of width 1: kernels for columns compute 16 of them at a time. */
static float chain(int64_t n, const float *x) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    int64_t size = j->o->size, inner = j->o->inner, r = 0, end = 0;
    ls_pool_share(j->c->n * j->o->outer, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        const float *x = (const float *)j->c->x[0] + r * size * inner;
        float *y = (float *)j->c->y + r * inner;
        if (inner == 1) {
            *y = chain(size, x) * (1.0f / (float)size);
            continue;
        }
        memset(y, 0, (size_t)inner * sizeof *y);
        k->column_sum(size, inner, 0, inner, x, y);
        k->affine(inner, y, 1.0f / (float)size, 0, y);
    }
}

/* On the call's device: n numbers of y, or of dx. */
static void launch(const ls_layer *l, const ls_layer_call *c, bool back) {
    enum { ITEMS = 256 };
    const ls_around *o = &LS_LAYER_OWN_OF(ls_around, l);
    int64_t n = c->n * o->outer * o->inner * (back ? o->size : 1);
    LS_LAUNCH(c->compute, back ? LS_KERNEL_mean_dx : LS_KERNEL_mean, ls_device_groups(n, ITEMS), 1,
              {.l = n}, {.l = o->size}, {.l = o->inner}, {.from = back ? c->dy : c->x[0]},
              {.p = back ? c->dx[0] : c->y});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch(l, c, false);
        return;
    }
    ls_pool_run(c->compute->pool, forward_run, &(job){&LS_LAYER_OWN_OF(ls_around, l), c});
}

static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t size = j->o->size, inner = j->o->inner, r = 0, end = 0;
    ls_pool_share(j->c->n * j->o->outer, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        float *dx = (float *)j->c->dx[0] + r * size * inner;
        j->c->compute->k->affine(inner, (const float *)j->c->dy + r * inner, 1.0f / (float)size, 0,
                                 dx);
        for (int64_t i = 1; i < size; i++) memcpy(dx + i * inner, dx, (size_t)inner * sizeof *dx);
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device) {
        launch(l, c, true);
        return;
    }
    ls_pool_run(c->compute->pool, backward_run, &(job){&LS_LAYER_OWN_OF(ls_around, l), c});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const ls_around *o = &LS_LAYER_OWN_OF(ls_around, l);
    *f = (ls_facts){.outer = o->outer, .size = o->size, .inner = o->inner};
}

static const ls_layer_ops ops = {
    .kind = "mean", .forward = forward, .backward = backward, .describe = describe};

ls_value *(ls_mean)(ls_model *m, ls_value *x, int dim) {
    ls_layer *l = ls_build_layer(m, "mean", NULL, &x, 1);
    ls_around a = {0};
    if (!l || !ls_around_dim(m, x, dim, &a)) return ls_build_failed(m);
    l->ops = &ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(ls_around, l) = a;
    ls_dims dims = {{0}};
    for (int i = 0, to = 0; i < x->ndims; i++)
        if (i != a.dim) dims.of[to++] = x->dims.of[i];
    ls_works_pass(&l->cost.forward, LS_WORK_COLUMN_SUM, ls_value_count(x));
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, dims);
}
