/* pooling.c - maximum and average of windows of an image, and the mean over all its pixels.
 *
 * saved: max pooling: the place of each maximum in its window, 16 bits each; the others save
 * nothing. */
#include "model/builder.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* Samples [i, end) of the call. */
static ls_pooling pooling_of(const job *j, int64_t i, int64_t end) {
    ls_pooling p = LS_LAYER_OWN_OF(ls_pooling, j->l);
    p.samples = end - i;
    return p;
}

static int64_t inputs_of(const job *j) { return (int64_t)j->l->input_floats[0]; }
static int64_t outputs_of(const job *j) { return (int64_t)j->l->y_floats; }

/* ---- max ---- */

static uint16_t *places_of(const job *j, int64_t i) {
    return (uint16_t *)j->c->saved + i * outputs_of(j);
}

static void max_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    ls_pooling p = pooling_of(j, i, end);
    j->c->compute->k->pooling.max(&p, (const float *)j->c->x[0] + i * inputs_of(j),
                                  (float *)j->c->y + i * outputs_of(j), places_of(j, i));
}

static void max_back_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    ls_pooling p = pooling_of(j, i, end);
    j->c->compute->k->pooling.max_dx(&p, (const float *)j->c->dy + i * outputs_of(j),
                                     places_of(j, i), (float *)j->c->dx[0] + i * inputs_of(j));
}

/* ---- average ---- */

static void average_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    ls_pooling p = pooling_of(j, i, end);
    j->c->compute->k->pooling.average(&p, (const float *)j->c->x[0] + i * inputs_of(j),
                                      (float *)j->c->y + i * outputs_of(j));
}

static void average_back_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    ls_pooling p = pooling_of(j, i, end);
    j->c->compute->k->pooling.average_dx(&p, (const float *)j->c->dy + i * outputs_of(j),
                                         (float *)j->c->dx[0] + i * inputs_of(j));
}

/* ---- the mean over all pixels ---- */

static void mean_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, C = outputs_of(j);
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    j->c->compute->k->pooling.mean(end - i, inputs_of(j) / C, C,
                                   (const float *)j->c->x[0] + i * inputs_of(j),
                                   (float *)j->c->y + i * C);
}

static void mean_back_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, C = outputs_of(j);
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    j->c->compute->k->pooling.mean_dx(end - i, inputs_of(j) / C, C, (const float *)j->c->dy + i * C,
                                      (float *)j->c->dx[0] + i * inputs_of(j));
}

/* ---- on the call's device ---- */

enum { ITEMS = 256, SHAPE = 12 };

/* A kernel for windows, and n numbers that it writes; its arrays are the arguments from number
 * SHAPE on. */
static ls_device_call window_call(const ls_layer *l, ls_device_kernel kernel, int64_t n) {
    const ls_pooling *p = &LS_LAYER_OWN_OF(ls_pooling, l);
    return (ls_device_call){.kernel = kernel,
                            .groups_x = ls_device_groups(n, ITEMS),
                            .groups_y = 1,
                            .args = {{.l = n},
                                     {.l = p->C},
                                     {.l = p->in[0]},
                                     {.l = p->in[1]},
                                     {.l = p->out[0]},
                                     {.l = p->out[1]},
                                     {.l = p->window[0]},
                                     {.l = p->window[1]},
                                     {.l = p->stride[0]},
                                     {.l = p->stride[1]},
                                     {.l = p->padding[0]},
                                     {.l = p->padding[1]}}};
}

static void launch_max(const ls_layer *l, const ls_layer_call *c) {
    ls_device_call call = window_call(l, LS_KERNEL_max_pooling, c->n * (int64_t)l->y_floats);
    call.args[SHAPE].from = c->x[0];
    call.args[SHAPE + 1].p = c->y;
    call.args[SHAPE + 2].p = c->saved;
    ls_compute_launch(c->compute, &call);
}

static void launch_max_back(const ls_layer *l, const ls_layer_call *c) {
    int64_t n = c->n * (int64_t)l->input_floats[0];
    ls_device_call call = window_call(l, LS_KERNEL_max_pooling_dx, n);
    call.args[SHAPE].from = c->dy;
    call.args[SHAPE + 1].from = c->saved;
    call.args[SHAPE + 2].p = c->dx[0];
    ls_compute_launch(c->compute, &call);
}

static void launch_average(const ls_layer *l, const ls_layer_call *c, bool back) {
    ls_device_kernel kernel = back ? LS_KERNEL_average_pooling_dx : LS_KERNEL_average_pooling;
    ls_device_call call =
        window_call(l, kernel, c->n * (int64_t)(back ? l->input_floats[0] : l->y_floats));
    call.args[SHAPE].l = LS_LAYER_OWN_OF(ls_pooling, l).count_padding;
    call.args[SHAPE + 1].from = back ? c->dy : c->x[0];
    call.args[SHAPE + 2].p = back ? c->dx[0] : c->y;
    ls_compute_launch(c->compute, &call);
}

static void launch_mean(const ls_layer *l, const ls_layer_call *c, bool back) {
    int64_t C = (int64_t)l->y_floats, inputs = (int64_t)l->input_floats[0];
    int64_t n = c->n * (back ? inputs : C);
    LS_LAUNCH(c->compute, back ? LS_KERNEL_mean_pooling_dx : LS_KERNEL_mean_pooling,
              ls_device_groups(n, ITEMS), 1, {.l = n}, {.l = inputs / C}, {.l = C},
              {.from = back ? c->dy : c->x[0]}, {.p = back ? c->dx[0] : c->y});
}

/* ---- the layers ---- */

static void run(const ls_layer *l, const ls_layer_call *c, ls_pool_fn *fn) {
    ls_pool_run(c->compute->pool, fn, &(job){l, c});
}
static void max_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        launch_max(l, c);
    else
        run(l, c, max_run);
}
static void max_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device)
        launch_max_back(l, c);
    else
        run(l, c, max_back_run);
}
static void average_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        launch_average(l, c, false);
    else
        run(l, c, average_run);
}
static void average_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device)
        launch_average(l, c, true);
    else
        run(l, c, average_back_run);
}
static void mean_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        launch_mean(l, c, false);
    else
        run(l, c, mean_run);
}
static void mean_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device)
        launch_mean(l, c, true);
    else
        run(l, c, mean_back_run);
}

static void describe(const ls_layer *l, ls_facts *f) {
    f->pooling = &LS_LAYER_OWN_OF(ls_pooling, l);
}

static const ls_layer_ops max_ops = {
    .kind = "max_pool", .forward = max_forward, .backward = max_backward, .describe = describe};
static const ls_layer_ops average_ops = {.kind = "average_pool",
                                         .forward = average_forward,
                                         .backward = average_backward,
                                         .describe = describe};
static const ls_layer_ops mean_ops = {
    .kind = "mean_pool", .forward = mean_forward, .backward = mean_backward};

/* ---- the calls ---- */

static bool is_good(ls_model *m, const ls_pooling *p) {
    if (p->window[0] < 1 || p->window[1] < 1 || p->stride[0] < 1 || p->padding[0] < 0) {
        ls_build_fail(m, "kernel %lld x %lld, stride %lld, pad %lld: the kernel is at least 1",
                      (long long)p->window[0], (long long)p->window[1], (long long)p->stride[0],
                      (long long)p->padding[0]);
    } else if (p->padding[0] >= p->window[0] || p->padding[1] >= p->window[1]) {
        ls_build_fail(m, "pad %lld is not less than the kernel of %lld x %lld",
                      (long long)p->padding[0], (long long)p->window[0], (long long)p->window[1]);
    } else if (p->window[0] > LS_POOLING_MOST_PLACES / p->window[1]) {
        ls_build_fail(m, "the kernel of %lld x %lld has more than %d pixels",
                      (long long)p->window[0], (long long)p->window[1], LS_POOLING_MOST_PLACES);
    } else if (p->out[0] < 1 || p->out[1] < 1) {
        ls_build_fail(m, "the kernel of %lld x %lld is larger than the padded image of %lld x %lld",
                      (long long)p->window[0], (long long)p->window[1],
                      (long long)(p->in[0] + 2 * p->padding[0]),
                      (long long)(p->in[1] + 2 * p->padding[1]));
    }
    return ls_build_is_good(m);
}

static ls_value *add(ls_model *m, ls_value *x, const ls_layer_ops *ops, const ls_pool_options *o) {
    ls_layer *l = ls_build_layer(m, ops->kind, o->name, &x, 1);
    if (!l) return ls_build_failed(m);
    if (x->ndims != 3)
        return ls_build_fail(m, "the input is %s; an image [height, width, channels] is needed",
                             ls_dims_write(x->dims).text);
    int64_t kernel_w = o->kernel_w ? o->kernel_w : o->kernel;
    ls_pooling p = {.C = x->dims.of[2],
                    .in = {x->dims.of[0], x->dims.of[1]},
                    .window = {o->kernel, kernel_w},
                    .stride = {o->stride ? o->stride : o->kernel, o->stride ? o->stride : kernel_w},
                    .padding = {o->pad, o->pad},
                    .count_padding = o->count_pad};
    for (int d = 0; d < 2 && p.window[d] > 0 && p.stride[d] > 0; d++)
        p.out[d] = ls_pooling_out(p.in[d], p.window[d], p.stride[d], p.padding[d]);
    if (!is_good(m, &p)) return ls_build_failed(m);
    int64_t count = p.out[0] * p.out[1] * p.C;
    l->ops = ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(ls_pooling, l) = p;
    if (ops == &max_ops) l->memory.saved = (size_t)(count + 1) / 2;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, count * p.window[0] * p.window[1]);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, count * p.window[0] * p.window[1]);
    return ls_build_value(m, LS_DIMS(p.out[0], p.out[1], p.C));
}

ls_value *(ls_max_pool)(ls_model *m, ls_value *x, ls_pool_options o) {
    return add(m, x, &max_ops, &o);
}

ls_value *(ls_average_pool)(ls_model *m, ls_value *x, ls_pool_options o) {
    return add(m, x, &average_ops, &o);
}

ls_value *(ls_mean_pool)(ls_model *m, ls_value *x) {
    ls_layer *l = ls_build_layer(m, mean_ops.kind, NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    l->ops = &mean_ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, ls_value_count(x));
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, LS_DIMS(ls_value_last(x)));
}
