/* affine.c - y = scale x + shift, by element. */
#include <math.h>

#include "layers/layers.h"

typedef struct options {
    float scale, shift;
} options;

typedef struct job {
    const ls_compute *compute;
    int64_t n;
    float scale, shift;
    const float *x;
    float *y;
} job;

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    j->compute->k->affine(end - i, j->x + i, j->scale, j->shift, j->y + i);
}

static void run_all(job *j) {
    enum { ITEMS = 256 };
    if (j->compute->device)
        LS_LAUNCH(j->compute, LS_KERNEL_affine, ls_device_groups(j->n, ITEMS), 1, {.l = j->n},
                  {.from = j->x}, {.f = j->scale}, {.f = j->shift}, {.p = j->y});
    else
        ls_pool_run(j->compute->pool, run, j);
}

/* What a call computes: nothing, where readers do it (ls_layer_half.later). */
static options options_of(const ls_layer *l, const ls_layer_call *c) {
    bool later = l->half.later.scale != 0 && c->given && ls_dtype_is_half(c->given->type);
    return later ? (options){1, 0} : LS_LAYER_OWN_OF(options, l);
}

/* A call may have fewer positions than T. */
static int64_t numbers_of(const ls_layer *l, const ls_layer_call *c) {
    return c->n * c->T * ((int64_t)l->y_floats / l->T);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    options o = options_of(l, c);
    run_all(&(job){c->compute, numbers_of(l, c), o.scale, o.shift, c->x[0], c->y});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    float scale = options_of(l, c).scale;
    run_all(&(job){c->compute, numbers_of(l, c), scale, 0, c->dy, c->dx[0]});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.scale = &o->scale, .shift = &o->shift, .nscales = 1};
}

static const ls_layer_ops ops = {
    .kind = "affine", .forward = forward, .backward = backward, .describe = describe};

ls_value *(ls_affine)(ls_model *m, ls_value *x, float scale, float shift) {
    bool is_field = ls_build_is_good(m) && x && x->layer < 0;
    ls_layer *l = is_field ? NULL : ls_build_layer(m, "affine", NULL, &x, 1);
    if (!ls_build_takes(m, "scale", (double)scale, -INFINITY) ||
        !ls_build_takes(m, "shift", (double)shift, -INFINITY))
        return ls_build_failed(m);
    if (is_field) return ls_layers_input(m, x, scale, shift);
    if (!l) return ls_build_failed(m);
    l->ops = &ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(options, l) = (options){scale, shift};
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, ls_value_count(x));
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, x->dims);
}

ls_value *ls_layers_unscale(ls_model *m, ls_value *x, float scale, float shift) {
    ls_value *y = (ls_affine)(m, x, scale, shift);
    if (ls_build_is_good(m)) m->layers[y->layer].half.later = (ls_layer_scale){scale, shift};
    return y;
}

ls_value *ls_layers_times(ls_model *m, ls_value *x, float factor) {
    ls_value *y = (ls_affine)(m, x, factor, 0);
    if (ls_build_is_good(m)) m->layers[y->layer].T = x->dims.of[0];
    return y;
}
