/* norm_by.c - RMS norm and layer norm of each row, a vector of the last dimension, by weights that
 * are a value of the sample.
 *
 * inputs: x [rows, C], and weight [C]; layer norm: weight and bias [2, C]
 * saved: RMS norm: 1 / root of the mean square [rows];
 *        layer norm: mean [rows] | 1 / deviation [rows]
 */
#include <string.h>

#include "layers/layers.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* A function of `n` rows from r on, all of one sample. */
typedef void rows_fn(const job *j, int64_t r, int64_t n);

/* The sample's weight, which its bias follows. */
static const float *weight_of(const job *j, int64_t r) {
    int64_t width = (int64_t)j->l->input_floats[1];
    return (const float *)j->c->x[1] + r / j->c->T * width;
}
static const float *x_of(const job *j, int64_t r) {
    return (const float *)j->c->x[0] + r * j->l->C;
}
static const float *dy_of(const job *j, int64_t r) { return (const float *)j->c->dy + r * j->l->C; }
static float *dx_of(const job *j, int64_t r) { return (float *)j->c->dx[0] + r * j->l->C; }

/* ---- RMS norm ---- */

static ls_rms_norm_job rms_of(const job *j, int64_t r, int64_t n) {
    return (ls_rms_norm_job){.C = j->l->C,
                             .rows = n,
                             .eps = LS_LAYER_OWN_OF(float, j->l),
                             .x = x_of(j, r),
                             .gamma = weight_of(j, r),
                             .rstd = (float *)j->c->saved + r};
}

static void rms(const job *j, int64_t r, int64_t n) {
    ls_rms_norm_job m = rms_of(j, r, n);
    m.y = (float *)j->c->y + r * j->l->C;
    j->c->compute->k->norm.rms_norm(&m);
}

static void rms_dx(const job *j, int64_t r, int64_t n) {
    ls_rms_norm_job m = rms_of(j, r, n);
    m.dy = dy_of(j, r);
    m.dx = dx_of(j, r);
    j->c->compute->k->norm.rms_norm_dx(&m);
}

/* Columns [from, to) of the sample's sum over its rows. */
static void rms_dweight(const job *j, int64_t sample, int64_t from, int64_t to) {
    int64_t T = j->c->T;
    ls_rms_norm_job m = rms_of(j, sample * T, T);
    m.dy = dy_of(j, sample * T);
    m.from = from, m.to = to;
    m.dgamma = (float *)j->c->dx[1] + sample * j->l->C;
    memset(m.dgamma + from, 0, (size_t)(to - from) * sizeof *m.dgamma);
    j->c->compute->k->norm.rms_norm_dparams(&m);
}

/* ---- layer norm ---- */

static float *mean_of(const job *j, int64_t r) { return (float *)j->c->saved + r; }
static float *rstd_of(const job *j, int64_t r) { return mean_of(j, j->c->n * j->c->T + r); }

static void layer(const job *j, int64_t r, int64_t n) {
    const float *weight = weight_of(j, r);
    int64_t C = j->l->C;
    j->c->compute->k->layernorm(n, C, x_of(j, r), weight, weight + C, (float *)j->c->y + r * C,
                                mean_of(j, r), rstd_of(j, r));
}

static void layer_dx(const job *j, int64_t r, int64_t n) {
    j->c->compute->k->layernorm_dx(n, j->l->C, dy_of(j, r), x_of(j, r), weight_of(j, r),
                                   mean_of(j, r), rstd_of(j, r), NULL, dx_of(j, r));
}

static void layer_dweight(const job *j, int64_t sample, int64_t from, int64_t to) {
    int64_t T = j->c->T, C = j->l->C, r = sample * T;
    float *dweight = (float *)j->c->dx[1] + sample * 2 * C, *dbias = dweight + C;
    memset(dweight + from, 0, (size_t)(to - from) * sizeof *dweight);
    memset(dbias + from, 0, (size_t)(to - from) * sizeof *dbias);
    j->c->compute->k->layernorm_dparams(T, C, from, to, dy_of(j, r), x_of(j, r), mean_of(j, r),
                                        rstd_of(j, r), dweight, dbias);
}

/* ---- both ---- */

static const ls_layer_ops rms_ops, layer_ops;

static bool is_rms(const job *j) { return j->l->ops == &rms_ops; }

static void run_rows(const job *j, int thread, int nthreads, rows_fn *fn) {
    int64_t r = 0, end = 0, T = j->c->T;
    ls_pool_share(j->c->n * T, 1, thread, nthreads, &r, &end);
    for (int64_t n; r < end; r += n) {
        n = T - r % T < end - r ? T - r % T : end - r;
        fn(j, r, n);
    }
}

static void forward_run(void *arg, int thread, int nthreads) {
    run_rows(arg, thread, nthreads, is_rms(arg) ? rms : layer);
}

static void dx_run(void *arg, int thread, int nthreads) {
    run_rows(arg, thread, nthreads, is_rms(arg) ? rms_dx : layer_dx);
}

static void dweight_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t from = 0, to = 0;
    ls_pool_share(j->l->C, 16, thread, nthreads, &from, &to);
    for (int64_t i = 0; from < to && i < j->c->n; i++) {
        if (is_rms(j))
            rms_dweight(j, i, from, to);
        else
            layer_dweight(j, i, from, to);
    }
}

/* ---- on a device: the kernels of a sample's rows ---- */

enum { ITEMS = 256, GROUP_ROWS = 16 }; /* of a group */

static void launch_forward(const job *j, int64_t r) {
    int64_t T = j->c->T, C = j->l->C, groups = ls_device_groups(T, GROUP_ROWS);
    const float *weight = weight_of(j, r);
    float *y = (float *)j->c->y + r * C;
    if (is_rms(j))
        LS_LAUNCH(j->c->compute, LS_KERNEL_rms_norm, groups, 1, {.l = T}, {.l = C},
                  {.f = LS_LAYER_OWN_OF(float, j->l)}, {.from = x_of(j, r)}, {.from = weight},
                  {.l = 0}, {.p = y}, {.p = (float *)j->c->saved + r});
    else
        LS_LAUNCH(j->c->compute, LS_KERNEL_layernorm, groups, 1, {.l = T}, {.l = C},
                  {.from = x_of(j, r)}, {.from = weight}, {.from = weight + C}, {.p = y},
                  {.p = mean_of(j, r)}, {.p = rstd_of(j, r)});
}

static void launch_dx(const job *j, int64_t r) {
    int64_t T = j->c->T, C = j->l->C, groups = ls_device_groups(T, GROUP_ROWS);
    if (is_rms(j))
        LS_LAUNCH(j->c->compute, LS_KERNEL_rms_norm_dx, groups, 1, {.l = T}, {.l = C},
                  {.from = dy_of(j, r)}, {.from = x_of(j, r)}, {.from = weight_of(j, r)}, {.l = 0},
                  {.from = (float *)j->c->saved + r}, {.l = 0}, {.p = dx_of(j, r)});
    else
        LS_LAUNCH(j->c->compute, LS_KERNEL_layernorm_dx, groups, 1, {.l = T}, {.l = C},
                  {.from = dy_of(j, r)}, {.from = x_of(j, r)}, {.from = weight_of(j, r)},
                  {.from = mean_of(j, r)}, {.from = rstd_of(j, r)}, {.p = NULL},
                  {.p = dx_of(j, r)});
}

static void launch_dweight(const job *j, int64_t r) {
    int64_t T = j->c->T, C = j->l->C, groups = ls_device_groups(C, ITEMS);
    float *dweight = (float *)j->c->dx[1] + r / T * (int64_t)j->l->input_floats[1];
    if (is_rms(j))
        LS_LAUNCH(j->c->compute, LS_KERNEL_rms_norm_dparams, groups, 1, {.l = T}, {.l = C},
                  {.from = dy_of(j, r)}, {.from = x_of(j, r)}, {.from = (float *)j->c->saved + r},
                  {.l = 0}, {.p = dweight});
    else
        LS_LAUNCH(j->c->compute, LS_KERNEL_layernorm_dparams, groups, 1, {.l = T}, {.l = C},
                  {.from = dy_of(j, r)}, {.from = x_of(j, r)}, {.from = mean_of(j, r)},
                  {.from = rstd_of(j, r)}, {.l = 0}, {.p = dweight}, {.p = dweight + C});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    const job j = {l, c};
    for (int64_t i = 0; c->compute->device && i < c->n; i++) launch_forward(&j, i * c->T);
    if (c->compute->device) return;
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const job j = {l, c};
    for (int64_t i = 0; c->compute->device && i < c->n; i++) {
        if (c->dx[1]) launch_dweight(&j, i * c->T);
        if (c->dx[0]) launch_dx(&j, i * c->T);
    }
    if (c->compute->device) return;
    if (c->dx[1]) ls_pool_run(c->compute->pool, dweight_run, &(job){l, c});
    if (c->dx[0]) ls_pool_run(c->compute->pool, dx_run, &(job){l, c});
}

static const ls_layer_ops rms_ops = {
    .kind = "rms_norm_by", .forward = forward, .backward = backward};
static const ls_layer_ops layer_ops = {
    .kind = "layer_norm_by", .forward = forward, .backward = backward};

static ls_layer *add(ls_model *m, ls_value *x, ls_value *weight, const ls_layer_ops *ops) {
    ls_value *inputs[] = {x, weight};
    ls_layer *l = ls_build_layer(m, ops->kind, NULL, inputs, 2);
    if (!l) return NULL;
    l->ops = ops;
    l->C = ls_value_last(x);
    l->T = ls_value_count(x) / l->C;
    l->rowless = 1u << 1;
    l->traits.on_device = true;
    ls_works_pass(&l->cost.forward, LS_WORK_NORM, l->T * l->C);
    ls_works_pass(&l->cost.backward, LS_WORK_NORM_DPARAMS, l->T * l->C);
    ls_works_pass(&l->cost.backward, LS_WORK_NORM_DX, l->T * l->C);
    return l;
}

ls_value *ls_layers_rms_norm_by(ls_model *m, ls_value *x, ls_value *weight, float eps) {
    ls_layer *l = add(m, x, weight, &rms_ops);
    if (!l) return ls_build_failed(m);
    l->memory.saved = (size_t)l->T;
    LS_LAYER_OWN_AS(float, l) = eps;
    return ls_build_value(m, x->dims);
}

ls_value *ls_layers_layer_norm_by(ls_model *m, ls_value *x, ls_value *weight_bias) {
    ls_layer *l = add(m, x, weight_bias, &layer_ops);
    if (!l) return ls_build_failed(m);
    l->memory.saved = (size_t)(2 * l->T);
    return ls_build_value(m, x->dims);
}
