/* rms_norm_by.c - RMS norm of each row, a vector of the last dimension, by a weight that is a value of
 * the sample, [C].
 *
 * inputs: x [rows, C], weight [C]
 * saved: 1 / root of the mean square [rows]
 */
#include <string.h>

#include "layers/layers.h"
#include "model/rows.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* The job of `n` rows from r on, all of one sample. */
static ls_rms_norm_job rows_of(const job *j, int64_t r, int64_t n) {
    int64_t C = j->l->C;
    return (ls_rms_norm_job){.C = C,
                             .rows = n,
                             .eps = LS_LAYER_OWN_OF(float, j->l),
                             .x = (const float *)j->c->x[0] + r * C,
                             .gamma = (const float *)j->c->x[1] + r / j->c->T * C,
                             .rstd = (float *)j->c->saved + r};
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        ls_rms_norm_job m = rows_of(j, r, 1);
        m.y = (float *)j->c->y + r * j->l->C;
        j->c->compute->k->norm.rms_norm(&m);
    }
}

static void dx_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0, C = j->l->C;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        ls_rms_norm_job m = rows_of(j, r, 1);
        m.dy = (const float *)j->c->dy + r * C;
        m.dx = (float *)j->c->dx[0] + r * C;
        j->c->compute->k->norm.rms_norm_dx(&m);
    }
}

/* Each sample's sum over its rows. */
static void dweight_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t C = j->l->C, T = j->c->T, from = 0, to = 0;
    ls_pool_share(C, 16, thread, nthreads, &from, &to);
    for (int64_t i = 0; i < j->c->n; i++) {
        ls_rms_norm_job m = rows_of(j, i * T, T);
        m.dy = (const float *)j->c->dy + i * T * C;
        m.from = from, m.to = to;
        m.dgamma = (float *)j->c->dx[1] + i * C;
        memset(m.dgamma + from, 0, (size_t)(to - from) * sizeof *m.dgamma);
        j->c->compute->k->norm.rms_norm_dparams(&m);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[1]) ls_pool_run(c->compute->pool, dweight_run, &(job){l, c});
    if (c->dx[0]) ls_pool_run(c->compute->pool, dx_run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "rms_norm_by", .forward = forward, .backward = backward};

ls_value *ls_layers_rms_norm_by(ls_model *m, ls_value *x, ls_value *weight, float eps) {
    ls_value *inputs[] = {x, weight};
    ls_layer *l = ls_build_layer(m, "rms_norm_by", NULL, inputs, 2);
    if (!l) return ls_build_failed(m);
    l->ops = &ops;
    l->C = ls_value_last(x);
    l->T = ls_value_count(x) / l->C;
    l->rowless = 1u << 1;
    l->saved_floats = (size_t)l->T;
    LS_LAYER_OWN_AS(float, l) = eps;
    ls_works_pass(&l->forward_work, LS_WORK_NORM, l->T * l->C);
    ls_works_pass(&l->backward_work, LS_WORK_NORM_DPARAMS, l->T * l->C);
    ls_works_pass(&l->backward_work, LS_WORK_NORM_DX, l->T * l->C);
    return ls_build_value(m, x->dims);
}
