/* batch_norm.c - batch norm, and the ReLU that follows it if asked for.
 *
 * params: weight, bias, running_mean, running_var [C]; the last two are running values
 * saved, by the call's first sample: mean | variance, divided by count | 1 / deviation [C]
 * work in backward, the same: the sums of dy * h | of dy [C]
 * The normalized value h is computed again from x; so is the sign of what ReLU reads. */
#include <string.h>

#include "layers/channels_device.h"
#include "layers/copy.h"
#include "model/builder.h"

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

/* ---- on the call's device ---- */

static ls_channels channels_of(const ls_layer *l, const ls_layer_call *c) {
    enum { RUN = 64 };
    const options *o = &LS_LAYER_OWN_OF(options, l);
    float *saved = c->saved;
    return (ls_channels){.compute = c->compute,
                         .samples = 1,
                         .rows = rows_of(l, c),
                         .C = l->C,
                         .size = 1,
                         .run = RUN,
                         .eps = o->eps,
                         .relu = o->relu,
                         .gamma = ls_layer_param(l, c, GAMMA),
                         .beta = ls_layer_param(l, c, BETA),
                         .x = c->x[0],
                         .y = c->y,
                         .mean = saved,
                         .rstd = saved + 2 * l->C,
                         .dy = c->dy,
                         .dx = c->dx[0],
                         .sums = c->work};
}

/* sum [C] = factor x (NULL: zeros), or that is added to it. */
static void launch_add(const ls_layer *l, const ls_layer_call *c, const float *x, float factor,
                       bool adds, float *sum) {
    enum { ITEMS = 256 };
    LS_LAUNCH(c->compute, LS_KERNEL_gradient_add, ls_device_groups(l->C, ITEMS), 1, {.l = l->C},
              {.f = factor}, {.from = x}, {.l = adds}, {.p = sum});
}

static void launch_copy(const ls_layer *l, const ls_layer_call *c, const float *x, float *y) {
    ls_copy_run(c->compute, &(ls_copy){.rows = 1, .width = l->C, .from = x, .to = y});
}

static void launch_forward(const ls_layer *l, const ls_layer_call *c) {
    ls_channels n = channels_of(l, c);
    float *variance = n.mean + l->C;
    if (uses_batch(l, c)) {
        ls_channels_sum(&n, NULL, (float)n.rows, n.mean, l->C);
        ls_channels_sum(&n, n.mean, (float)n.rows, variance, l->C);
    } else {
        launch_copy(l, c, ls_layer_param(l, c, MEAN), n.mean);
        launch_copy(l, c, ls_layer_param(l, c, VARIANCE), variance);
    }
    ls_channels_join(&n, variance, l->C, 1, true, n.rstd);
    ls_channels_apply(&n);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    const ls_norm_kernels *k = &c->compute->k->norm;
    bool own = uses_batch(l, c);
    size_t nbytes = (size_t)l->C * sizeof(float);
    if (c->n == 0) return;
    if (c->compute->device) {
        launch_forward(l, c);
        return;
    }
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
    if (c->compute->device) {
        launch_add(l, c, c->n ? x : NULL, factor, !c->grads_start, sum);
        return;
    }
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

static void launch_sums(const ls_layer *l, const ls_layer_call *c) {
    ls_channels n = channels_of(l, c);
    ls_channels_sum_back(&n);
}

static void launch_dx(const ls_layer *l, const ls_layer_call *c) {
    ls_channels n = channels_of(l, c);
    size_t nbytes = 2 * (size_t)l->C * sizeof(float);
    if (!uses_batch(l, c)) ls_device_clear(c->compute->device, LS_DEVICE_COMPUTE, c->work, nbytes);
    ls_channels_batch_dx(&n);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const ls_norm_kernels *k = &c->compute->k->norm;
    bool there = c->compute->device;
    if (c->n && there) launch_sums(l, c);
    if (c->n && !there)
        ls_pool_run(c->compute->pool, run, &(job){l, c, k->batch_norm_sums, NULL, false});
    add_grad(l, c, GAMMA, c->work, 1);
    add_grad(l, c, BETA, c->work + l->C, 1);
    add_running(l, c);
    if (!c->n || !c->dx[0]) return;
    if (there) {
        launch_dx(l, c);
        return;
    }
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
    if (!ls_build_takes(m, "eps", (double)o.eps, 0)) return ls_build_failed(m);
    if (!(given.momentum >= 0 && given.momentum <= 1))
        return ls_build_fail(m, "momentum is %g; it is from 0 to 1", (double)given.momentum);
    if (o.eps == 0) o.eps = 1e-5f;
    float momentum = given.momentum > 0 ? given.momentum : 0.1f;
    l->ops = &ops;
    l->traits.on_device = true;
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
