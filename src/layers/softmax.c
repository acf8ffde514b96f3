/* softmax.c - y = the softmax of each vector of the last dimension.
 *
 * Saves nothing: backward computes y again. */
#include <string.h>

#include "model/builder.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* The thread's rows. */
static int64_t share_of(const job *j, int thread, int nthreads, int64_t *at_p) {
    int64_t r = 0, end = 0;
    ls_pool_share(j->c->n * j->l->T, 1, thread, nthreads, &r, &end);
    *at_p = r * j->l->C;
    return end - r;
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t at = 0, rows = share_of(j, thread, nthreads, &at);
    j->c->compute->k->softmax(rows, j->l->C, (const float *)j->c->x[0] + at, (float *)j->c->y + at);
}

/* work: y again. */
static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t at = 0, rows = share_of(j, thread, nthreads, &at), C = j->l->C;
    float *y = c->work + at, *dx = (float *)c->dx[0] + at;
    c->compute->k->softmax(rows, C, (const float *)c->x[0] + at, y);
    memcpy(dx, (const float *)c->dy + at, (size_t)(rows * C) * sizeof *dx);
    c->compute->k->softmax_causal_dx(rows, C, 1, y, dx);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) ls_pool_run(c->compute->pool, backward_run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "softmax", .forward = forward, .backward = backward};

ls_value *(ls_softmax)(ls_model *m, ls_value *x) {
    ls_layer *l = ls_build_layer(m, "softmax", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t count = ls_value_count(x);
    l->ops = &ops;
    l->C = ls_value_last(x);
    l->T = count / l->C;
    l->memory.work = (size_t)count;
    ls_works_pass(&l->cost.forward, LS_WORK_SOFTMAX, count);
    ls_works_pass(&l->cost.backward, LS_WORK_SOFTMAX, count);
    ls_works_pass(&l->cost.backward, LS_WORK_SOFTMAX_DX, count);
    return ls_build_value(m, x->dims);
}
