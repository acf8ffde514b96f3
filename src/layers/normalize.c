/* normalize.c - y = (x - mean) / deviation by channel, as scale * x + shift; the numbers of an
 * image of bytes are 0 to 1. */
#include <math.h>

#include "layers/layers.h"

typedef struct options {
    ls_dtype type; /* of the field; LS_F32 also for a value */
    bool is_field;
    int64_t C, count;
    float scale[LS_NORMALIZE_CHANNELS], shift[LS_NORMALIZE_CHANNELS];
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static void from_integers(const options *o, const int32_t *x, float *y) {
    for (int64_t i = 0; i < o->count; i += o->C)
        for (int64_t k = 0; k < o->C; k++) y[i + k] = (float)x[i + k] * o->scale[k] + o->shift[k];
}

static void from_floats(const options *o, const float *x, float *y) {
    for (int64_t i = 0; i < o->count; i += o->C)
        for (int64_t k = 0; k < o->C; k++) y[i + k] = x[i + k] * o->scale[k] + o->shift[k];
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    const ls_kernels *k = j->c->compute->k;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        float *y = (float *)j->c->y + i * o->count;
        const void *x = o->is_field ? ls_layer_field(j->l, j->c, 0, i)
                                    : (const float *)j->c->x[0] + i * o->count;
        if (o->type == LS_U8)
            k->bytes_affine(o->count / o->C, o->C, x, o->scale, o->shift, y);
        else if (o->type == LS_I32)
            from_integers(o, x, y);
        else
            from_floats(o, x, y);
    }
}

/* ---- on the call's device: a channel after the other ---- */

enum { ITEMS = 256 };

static void launch_forward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t n = c->n * o->count / o->C;
    const void *from = o->is_field ? ls_layer_field(l, c, 0, 0) : c->x[0];
    int64_t nbytes = o->is_field ? (int64_t)c->sample_nbytes : o->count * (int64_t)sizeof(float);
    for (int64_t k = 0; k < o->C; k++)
        LS_LAUNCH(c->compute, LS_KERNEL_normalize_channel, ls_device_groups(n, ITEMS), 1, {.l = n},
                  {.l = o->C}, {.l = k}, {.l = o->count}, {.from = from},
                  {.l = ls_layers_device_type(o->type)}, {.l = nbytes}, {.f = o->scale[k]},
                  {.f = o->shift[k]}, {.p = c->y});
}

static void launch_backward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t n = c->n * o->count / o->C;
    for (int64_t k = 0; k < o->C; k++)
        LS_LAUNCH(c->compute, LS_KERNEL_normalize_channel_dx, ls_device_groups(n, ITEMS), 1,
                  {.l = n}, {.l = o->C}, {.l = k}, {.from = c->dy}, {.f = o->scale[k]},
                  {.p = c->dx[0]});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_forward(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    const float *dy = j->c->dy;
    float *dx = j->c->dx[0];
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n * o->count / o->C, 1, thread, nthreads, &i, &end);
    for (int64_t at = i * o->C; at < end * o->C; at += o->C)
        for (int64_t k = 0; k < o->C; k++) dx[at + k] = dy[at + k] * o->scale[k];
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device)
        launch_backward(l, c);
    else
        ls_pool_run(c->compute->pool, backward_run, &(job){l, c});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.type = o->type,
                    .is_field = o->is_field,
                    .scale = o->scale,
                    .shift = o->shift,
                    .nscales = o->C};
}

static const ls_layer_ops ops = {
    .kind = "normalize", .forward = forward, .backward = backward, .describe = describe};

/* A field is converted by this layer itself. */
ls_value *(ls_normalize)(ls_model *m, ls_value *x, ls_normalize_options given) {
    bool is_field = x && x->layer < 0 && ls_build_is_good(m);
    ls_layer *l = ls_build_layer(m, "normalize", given.name, &x, is_field ? 0 : 1);
    if (!l) return ls_build_failed(m);
    options o = {x->type, is_field, ls_value_last(x), ls_value_count(x), {0}, {0}};
    if (o.C > LS_NORMALIZE_CHANNELS)
        return ls_build_fail(m, "the input is %s; at most %d channels are possible",
                             ls_dims_write(x->dims).text, LS_NORMALIZE_CHANNELS);
    for (int64_t k = 0; k < o.C; k++) {
        float deviation = given.deviation[k], mean = given.mean[k];
        if (!(deviation > 0) || !isfinite(deviation))
            return ls_build_fail(m, "the deviation of channel %lld is %g; it must be above 0",
                                 (long long)k, (double)deviation);
        o.scale[k] = (float)(1.0 / (double)deviation / (x->type == LS_U8 ? 255 : 1));
        o.shift[k] = -mean / deviation;
        if (!isfinite(o.scale[k]) || !isfinite(o.shift[k]))
            return ls_build_fail(m,
                                 "the mean of channel %lld is %g and its deviation %g, and "
                                 "1 / deviation and mean / deviation are not finite",
                                 (long long)k, (double)mean, (double)deviation);
    }
    l->ops = &ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(options, l) = o;
    if (is_field) ls_build_field(m, l, x);
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, o.count);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, o.count);
    return ls_build_value(m, x->dims);
}
