/* patches.c - y = the patches of an image x [h, w, c]: [(h / p) (w / p), p p c].
 *
 * A patch is the image [p, p, c] as a vector. Patches are in the order of rows, then of columns. */
#include "layers/copy.h"

typedef struct options {
    int64_t down, across, p, c; /* patches down and across; of p by p pixels of c channels */
} options;

typedef struct job {
    const options *o;
    int64_t n;
    const float *image; /* NULL: it is written */
    const float *patches;
    float *to;
} job;

/* Line i of an image's pixels has a row of each of `across` patches. */
static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const options *o = j->o;
    int64_t width = o->p * o->c, patch = o->p * width, i = 0, end = 0;
    ls_pool_share(j->n * o->down * o->p, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t line = i * o->across * width;
        int64_t row = i / o->p * o->across * patch + i % o->p * width;
        ls_copy c = {.rows = o->across, .width = width};
        c.from = j->image ? j->image + line : j->patches + row;
        c.from_stride = j->image ? width : patch;
        c.to = j->to + (j->image ? row : line);
        c.to_stride = j->image ? patch : width;
        ls_copy_in_thread(&c);
    }
}

static void launch(const ls_layer *l, const ls_layer_call *c, bool back) {
    enum { ITEMS = 256 };
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t n = c->n * (int64_t)l->y_floats;
    LS_LAUNCH(c->compute, LS_KERNEL_patches, ls_device_groups(n, ITEMS), 1, {.l = n},
              {.l = o->down}, {.l = o->across}, {.l = o->p}, {.l = o->c}, {.l = back},
              {.from = back ? c->dy : c->x[0]}, {.p = back ? c->dx[0] : c->y});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch(l, c, false);
        return;
    }
    ls_pool_run(c->compute->pool, run,
                &(job){&LS_LAYER_OWN_OF(options, l), c->n, .image = c->x[0], .to = c->y});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device) {
        launch(l, c, true);
        return;
    }
    ls_pool_run(c->compute->pool, run,
                &(job){&LS_LAYER_OWN_OF(options, l), c->n, .patches = c->dy, .to = c->dx[0]});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.size = o->p, .outer = o->down, .inner = o->across, .count = o->c};
}

static const ls_layer_ops ops = {
    .kind = "patches", .forward = forward, .backward = backward, .describe = describe};

ls_value *(ls_patches)(ls_model *m, ls_value *x, int64_t size) {
    ls_layer *l = ls_build_layer(m, "patches", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    const int64_t *d = x->dims.of;
    if (x->ndims != 3)
        return ls_build_fail(m, "the input is %s; an image, [height, width, channels], is needed",
                             ls_dims_write(x->dims).text);
    if (size < 1 || d[0] % size || d[1] % size)
        return ls_build_fail(m, "%s is no whole number of patches of %lld x %lld",
                             ls_dims_write(x->dims).text, (long long)size, (long long)size);
    l->ops = &ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(options, l) = (options){d[0] / size, d[1] / size, size, d[2]};
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, ls_value_count(x));
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, LS_DIMS(d[0] / size * (d[1] / size), size * size * d[2]));
}
