/* row_norms.c - layer norm and RMS norm of each row, a vector of the last dimension.
 *
 * params: weight [C]; layer norm: bias [C]
 * saved: layer norm: mean [rows] | 1 / deviation [rows]; RMS norm: 1 / root of the mean square [rows]
 */
#include <string.h>

#include "model/builder.h"
#include "model/rows.h"

/* ---- layer norm ---- */

static void layer_forward(const ls_layer *l, const ls_layer_call *c) {
    float *mean = c->saved;
    ls_rows_norm(l, c, ls_numbers_f32(c->y), mean, mean + c->n * c->T);
}

static void layer_backward(const ls_layer *l, const ls_layer_call *c) {
    const float *mean = c->saved;
    ls_rows_norm_back(l, c, mean, mean + c->n * c->T, c->dy, false);
}

static const ls_layer_ops layer_ops = {
    .kind = "layer_norm", .forward = layer_forward, .backward = layer_backward};

/* ---- RMS norm ---- */

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* Rows [r, end) of the call. */
static ls_rms_norm_job rms_of(const job *j, int64_t r, int64_t end) {
    const ls_layer *l = j->l;
    const ls_layer_call *c = j->c;
    return (ls_rms_norm_job){.rows = end - r,
                             .C = l->C,
                             .eps = LS_LAYER_OWN_OF(float, l),
                             .gamma = ls_layer_param(l, c, 0),
                             .x = (const float *)c->x[0] + r * l->C,
                             .rstd = (float *)c->saved + r};
}

static void rms_forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    ls_rms_norm_job m = rms_of(j, r, end);
    m.y = (float *)j->c->y + r * m.C;
    j->c->compute->k->norm.rms_norm(&m);
}

static void rms_dx_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    ls_rms_norm_job m = rms_of(j, r, end);
    m.dy = (const float *)j->c->dy + r * m.C;
    m.dx = (float *)j->c->dx[0] + r * m.C;
    j->c->compute->k->norm.rms_norm_dx(&m);
}

static void rms_dparams_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    ls_rms_norm_job m = rms_of(j, 0, c->n * c->T);
    ls_pool_share(m.C, 16, thread, nthreads, &m.from, &m.to);
    m.dy = c->dy;
    m.dgamma = ls_layer_grad(j->l, c, 0);
    if (c->grads_start) memset(m.dgamma + m.from, 0, (size_t)(m.to - m.from) * sizeof *m.dgamma);
    c->compute->k->norm.rms_norm_dparams(&m);
}

static void rms_forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, rms_forward_run, &(job){l, c});
}

static void rms_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!l->frozen[0]) ls_pool_run(c->compute->pool, rms_dparams_run, &(job){l, c});
    if (c->dx[0]) ls_pool_run(c->compute->pool, rms_dx_run, &(job){l, c});
}

static const ls_layer_ops rms_ops = {
    .kind = "rms_norm", .forward = rms_forward, .backward = rms_backward};

/* ---- the calls ---- */

static ls_layer *add(ls_model *m, ls_value *x, const ls_layer_ops *ops, const char *name) {
    ls_layer *l = ls_build_layer(m, ops->kind, name, &x, 1);
    if (!l) return NULL;
    l->ops = ops;
    l->C = ls_value_last(x);
    l->T = ls_value_count(x) / l->C;
    ls_works_norm(&l->forward_work, &l->backward_work, l->T, l->C);
    ls_build_param(m, l, "weight", &(ls_param){.ndims = 1, .dims = {l->C}, .init_value = 1});
    return l;
}

ls_value *(ls_layer_norm)(ls_model *m, ls_value *x, ls_layer_norm_options o) {
    ls_layer *l = add(m, x, &layer_ops, o.name);
    if (!l) return ls_build_failed(m);
    l->saved_floats = (size_t)(2 * l->T);
    ls_build_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {l->C}});
    return ls_build_value(m, x->dims);
}

ls_value *(ls_rms_norm)(ls_model *m, ls_value *x, ls_rms_norm_options o) {
    ls_layer *l = add(m, x, &rms_ops, o.name);
    if (!l) return ls_build_failed(m);
    if (!(o.eps >= 0)) return ls_build_fail(m, "eps is %g; it is at least 0", (double)o.eps);
    LS_LAYER_OWN_AS(float, l) = o.eps > 0 ? o.eps : 1e-5f;
    l->saved_floats = (size_t)l->T;
    return ls_build_value(m, x->dims);
}
