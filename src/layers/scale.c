/* scale.c - y = x times a learned vector, for each row of a sample.
 *
 * params: weight [C]. work: dy x, the rows whose sum is the weight's gradient. */
#include <math.h>
#include <string.h>

#include "model/builder.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    const float *x;
    float *y;
} job;

/* y = x times the weight. */
static void scale_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t C = j->l->C, r = 0, end = 0;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++)
        j->c->compute->k->multiply(C, j->x + r * C, ls_layer_param(j->l, j->c, 0), j->y + r * C);
}

/* Threads split columns, whose sums are chains over the rows. */
static void weight_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    float *sum = ls_layer_grad(j->l, c, 0);
    int64_t C = j->l->C, rows = c->n * c->T, c0 = 0, c1 = 0;
    ls_pool_share(C, 16, thread, nthreads, &c0, &c1);
    if (c->grads_start) memset(sum + c0, 0, (size_t)(c1 - c0) * sizeof *sum);
    for (int64_t r = 0; r < rows; r++)
        c->compute->k->multiply(c1 - c0, j->x + r * C + c0, (const float *)c->dy + r * C + c0,
                                c->work + r * C + c0);
    c->compute->k->column_sum(rows, C, c0, c1, c->work, sum);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, scale_run, &(job){l, c, c->x[0], c->y});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) ls_pool_run(c->compute->pool, scale_run, &(job){l, c, c->dy, c->dx[0]});
    if (ls_layer_trains(l, 0))
        ls_pool_run(c->compute->pool, weight_run, &(job){l, c, c->x[0], NULL});
}

static const ls_layer_ops ops = {.kind = "scale", .forward = forward, .backward = backward};

ls_value *(ls_scale)(ls_model *m, ls_value *x, ls_scale_options o) {
    ls_layer *l = ls_build_layer(m, "scale", o.name, &x, 1);
    if (!l) return ls_build_failed(m);
    if (!ls_build_takes(m, "start", (double)o.start, -INFINITY)) return ls_build_failed(m);
    int64_t C = ls_value_last(x), count = ls_value_count(x);
    l->ops = &ops;
    l->T = count / C;
    l->C = C;
    l->memory.work = (size_t)count;
    ls_build_param(m, l, "weight",
                   &(ls_param){.ndims = 1, .dims = {C}, .init.value = o.start != 0 ? o.start : 1});
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, count);
    for (int k = 0; k < 2; k++) ls_works_pass(&l->cost.backward, LS_WORK_ADD, count);
    ls_works_pass(&l->cost.backward, LS_WORK_COLUMN_SUM, count);
    ls_works_grads(&l->cost.backward, 1);
    return ls_build_value(m, x->dims);
}
