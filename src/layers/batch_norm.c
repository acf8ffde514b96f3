/* batch_norm.c - batch norm, and the ReLU that follows it if asked for.
 *
 * params: weight, bias, running_mean, running_var [C]; the last two are running values
 * saved, by the call's first sample: mean | variance, divided by count | 1 / deviation [C]
 * work in backward, the same: the sums of dy * h | of dy [C]
 * The normalized value h is computed again from x; so is the sign of what ReLU reads. */
#include <string.h>

#include "model/builder.h"
#include "model/row_ops.h"

enum { GAMMA, BETA, MEAN, VARIANCE };

typedef struct options {
    int64_t pixels;
    float eps;
    bool relu;
} options;

typedef void norm_fn(const ls_batch_norm_job *);

/* Kernels over the columns, or over the rows, of all samples. */
typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    norm_fn *first, *second; /* NULL: none */
    bool by_rows;
} job;

static int64_t rows_of(const ls_layer *l, const ls_layer_call *c) {
    return c->n * LS_LAYER_OWN_OF(options, l).pixels;
}

/* One number has no variance. Frozen running values are used as in evaluation. */
static bool uses_batch(const ls_layer *l, const ls_layer_call *c) {
    return c->training && ls_layer_trains(l, MEAN) && rows_of(l, c) > 1;
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer *l = j->l;
    const ls_layer_call *c = j->c;
    const options *o = &LS_LAYER_OWN_OF(options, l);
    float *saved = c->saved, *sums = c->work;
    ls_batch_norm_job b = {.rows = rows_of(l, c),
                           .C = l->C,
                           .eps = o->eps,
                           .relu = o->relu,
                           .gamma = ls_layer_param(l, c, GAMMA),
                           .beta = ls_layer_param(l, c, BETA),
                           .x = c->x[0],
                           .y = c->y,
                           .mean = saved,
                           .variance = saved + l->C,
                           .rstd = saved + 2 * l->C,
                           .dy = c->dy,
                           .dx = c->dx[0],
                           .sum_dyh = sums,
                           .sum_dy = sums + l->C};
    if (j->by_rows)
        ls_pool_share(b.rows, 1, thread, nthreads, &b.from, &b.to);
    else
        ls_pool_share(b.C, 16, thread, nthreads, &b.from, &b.to);
    if (j->first) j->first(&b);
    if (j->second) j->second(&b);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    const ls_norm_kernels *k = &c->compute->k->norm;
    bool own = uses_batch(l, c);
    size_t nbytes = (size_t)l->C * sizeof(float);
    if (c->n == 0) return;
    if (!own) memcpy(c->saved, ls_layer_param(l, c, MEAN), nbytes);
    if (!own) memcpy((float *)c->saved + l->C, ls_layer_param(l, c, VARIANCE), nbytes);
    ls_pool_run(c->compute->pool, run,
                &(job){l, c, own ? k->batch_norm_stats : NULL, k->batch_norm_rstd, false});
    ls_pool_run(c->compute->pool, run, &(job){l, c, k->batch_norm_apply, NULL, true});
}

/* Adds factor * x [C] to a gradient, or begins it. */
static void add_grad(const ls_layer *l, const ls_layer_call *c, int param, const float *x,
                     float factor) {
    float *sum = ls_layer_grad(l, c, param);
    if (!sum) return; /* it is frozen */
    for (int64_t i = 0; i < l->C; i++) {
        float more = c->n ? factor * x[i] : 0;
        sum[i] = c->grads_start ? more : sum[i] + more;
    }
}

/* The values of the batch, each as often as the call has samples. */
static void add_running(const ls_layer *l, const ls_layer_call *c) {
    const float *saved = c->saved;
    float n = (float)c->n, rows = (float)rows_of(l, c);
    add_grad(l, c, MEAN, saved, n);
    add_grad(l, c, VARIANCE, saved + l->C, uses_batch(l, c) ? n * (rows / (rows - 1)) : n);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const ls_norm_kernels *k = &c->compute->k->norm;
    if (c->n) ls_pool_run(c->compute->pool, run, &(job){l, c, k->batch_norm_sums, NULL, false});
    add_grad(l, c, GAMMA, c->work, 1);
    add_grad(l, c, BETA, c->work + l->C, 1);
    add_running(l, c);
    if (!c->n || !c->dx[0]) return;
    if (!uses_batch(l, c)) memset(c->work, 0, 2 * (size_t)l->C * sizeof(float));
    ls_pool_run(c->compute->pool, run, &(job){l, c, k->batch_norm_dx, NULL, true});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.eps = o->eps, .relu = o->relu};
}

static const ls_layer_ops ops = {
    .kind = "batch_norm", .forward = forward, .backward = backward, .describe = describe};

ls_value *(ls_batch_norm)(ls_model *m, ls_value *x, ls_batch_norm_options given) {
    ls_layer *l = ls_build_layer(m, "batch_norm", given.name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t C = ls_value_last(x), pixels = ls_value_count(x) / C;
    options o = {pixels, given.eps, given.relu};
    if (!(o.eps >= 0)) return ls_build_fail(m, "eps is %g; it is at least 0", (double)o.eps);
    if (!(given.momentum >= 0 && given.momentum <= 1))
        return ls_build_fail(m, "momentum is %g; it is from 0 to 1", (double)given.momentum);
    if (o.eps == 0) o.eps = 1e-5f;
    float momentum = given.momentum > 0 ? given.momentum : 0.1f;
    l->ops = &ops;
    l->C = C;
    LS_LAYER_OWN_AS(options, l) = o;
    l->traits.joins_samples = true;
    l->memory.saved = (size_t)(3 * C);
    l->memory.work = (size_t)(2 * C);
    ls_works_norm(&l->cost.forward, &l->cost.backward, pixels, C);
    ls_param p = {.ndims = 1, .dims = {C}, .init.value = 1};
    ls_build_param(m, l, "weight", &p);
    p.init.value = 0;
    ls_build_param(m, l, "bias", &p);
    p.momentum = momentum;
    ls_build_param(m, l, "running_mean", &p);
    p.init.value = 1;
    ls_build_param(m, l, "running_var", &p);
    return ls_build_value(m, x->dims);
}
