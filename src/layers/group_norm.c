/* group_norm.c - group norm of an image, and the ReLU that follows it if asked for.
 *
 * params: weight, bias [C]
 * saved, per sample: mean [groups] | 1 / deviation [groups]
 * The normalized value is computed again from x; so is the sign of what ReLU reads. */
#include "layers/channels_device.h"
#include "model/builder.h"

enum { GAMMA, BETA };

typedef struct options {
    int64_t pixels, groups;
    float eps;
    bool relu;
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* Samples [i, i + n) of the call; work: sums [2, C] of each. */
static ls_group_norm_job norm_of(const job *j, int64_t i, int64_t n) {
    const ls_layer *l = j->l;
    const ls_layer_call *c = j->c;
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t at = i * o->pixels * l->C;
    float *saved = c->saved;
    return (ls_group_norm_job){.samples = n,
                               .pixels = o->pixels,
                               .C = l->C,
                               .groups = o->groups,
                               .eps = o->eps,
                               .relu = o->relu,
                               .gamma = ls_layer_param(l, c, GAMMA),
                               .beta = ls_layer_param(l, c, BETA),
                               .x = (const float *)c->x[0] + at,
                               .mean = saved + i * o->groups,
                               .rstd = saved + (c->n + i) * o->groups};
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    ls_group_norm_job g = norm_of(j, i, end - i);
    g.y = (float *)j->c->y + i * g.pixels * g.C;
    j->c->compute->k->norm.group_norm(&g);
}

static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t i = 0, end = 0;
    ls_pool_share(c->n, 1, thread, nthreads, &i, &end);
    ls_group_norm_job g = norm_of(j, i, end - i);
    int64_t at = i * g.pixels * g.C;
    g.dy = (const float *)c->dy + at;
    if (c->dx[0]) g.dx = (float *)c->dx[0] + at;
    g.sums = c->work + i * 2 * g.C;
    c->compute->k->norm.group_norm_dx(&g);
}

/* ---- on the call's device ---- */

static ls_channels channels_of(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    float *saved = c->saved;
    return (ls_channels){.compute = c->compute,
                         .samples = c->n,
                         .rows = o->pixels,
                         .C = l->C,
                         .size = l->C / o->groups,
                         .run = o->pixels,
                         .eps = o->eps,
                         .relu = o->relu,
                         .gamma = ls_layer_param(l, c, GAMMA),
                         .beta = ls_layer_param(l, c, BETA),
                         .x = c->x[0],
                         .y = c->y,
                         .mean = saved,
                         .rstd = saved + c->n * o->groups,
                         .dy = c->dy,
                         .dx = c->dx[0],
                         .sums = c->work};
}

/* A sample's sums by channel lie in the first pixel of y until y is computed. */
static void launch_forward(const ls_layer *l, const ls_layer_call *c) {
    ls_channels n = channels_of(l, c);
    int64_t row = n.rows * n.C;
    float count = (float)n.size * (float)n.rows;
    ls_channels_sum(&n, NULL, 1, n.y, row);
    ls_channels_join(&n, n.y, row, count, false, n.mean);
    ls_channels_sum(&n, n.mean, 1, n.y, row);
    ls_channels_join(&n, n.y, row, count, true, n.rstd);
    ls_channels_apply(&n);
}

static void launch_backward(const ls_layer *l, const ls_layer_call *c) {
    enum { ITEMS = 256 };
    ls_channels n = channels_of(l, c);
    ls_channels_sum_back(&n);
    if (n.dx) ls_channels_group_dx(&n);
    for (int p = GAMMA; p <= BETA; p++) {
        float *sum = ls_layer_grad(l, c, p);
        if (!sum) continue;
        LS_LAUNCH(c->compute, LS_KERNEL_column_sum, ls_device_groups(l->C, ITEMS), 1, {.l = c->n},
                  {.l = l->C}, {.from = c->work + p * l->C}, {.l = 2 * l->C},
                  {.l = !c->grads_start}, {.p = sum});
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_forward(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

/* The gradients of the parameters are chains over samples. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_backward(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, backward_run, &(job){l, c});
    for (int p = GAMMA; p <= BETA; p++) {
        float *sum = ls_layer_grad(l, c, p);
        if (!sum) continue;
        for (int64_t k = 0; k < l->C && c->grads_start; k++) sum[k] = 0;
        c->compute->k->column_sum(c->n, 2 * l->C, 0, l->C, c->work + p * l->C, sum);
    }
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.eps = o->eps, .groups = o->groups, .relu = o->relu};
}

static const ls_layer_ops ops = {
    .kind = "group_norm", .forward = forward, .backward = backward, .describe = describe};

/* The most groups, up to 32, of at least 4 channels. */
static int64_t usual_groups(int64_t C) {
    int64_t n = C / 4 < 32 ? C / 4 : 32;
    while (n > 1 && C % n) n--;
    return n < 1 ? 1 : n;
}

ls_value *(ls_group_norm)(ls_model *m, ls_value *x, ls_group_norm_options given) {
    ls_layer *l = ls_build_layer(m, "group_norm", given.name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t C = ls_value_last(x), pixels = ls_value_count(x) / C;
    options o = {pixels, given.groups ? given.groups : usual_groups(C), given.eps, given.relu};
    if (o.groups < 1 || C % o.groups)
        return ls_build_fail(m, "%lld channels can't be divided into %lld groups", (long long)C,
                             (long long)o.groups);
    if (!ls_build_takes(m, "eps", (double)o.eps, 0)) return ls_build_failed(m);
    if (o.eps == 0) o.eps = 1e-5f;
    l->ops = &ops;
    l->traits.on_device = true;
    l->C = C;
    LS_LAYER_OWN_AS(options, l) = o;
    l->memory.saved = (size_t)(2 * o.groups);
    l->memory.work = (size_t)(2 * C);
    ls_works_norm(&l->cost.forward, &l->cost.backward, pixels, C);
    ls_build_param(m, l, "weight", &(ls_param){.ndims = 1, .dims = {C}, .init.value = 1});
    ls_build_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {C}});
    return ls_build_value(m, x->dims);
}
