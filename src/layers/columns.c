/* columns.c - y = some columns of values, next to each other: e.g. the queries, keys and values of
 * some heads. Backward sets the gradients of the other columns to 0. */
#include "layers/copy.h"
#include "layers/layers.h"

typedef struct options {
    int n;
    ls_columns of[LS_COLUMNS_MOST];
} options;

static int64_t width_of(const options *o) {
    int64_t width = 0;
    for (int i = 0; i < o->n; i++) width += o->of[i].count;
    return width;
}

static int64_t input_width(const ls_layer *l, int k) { return (int64_t)l->input_floats[k] / l->T; }

static void forward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    float *y = c->y;
    for (int i = 0; i < o->n; y += o->of[i++].count)
        ls_copy_run(c->compute,
                    &(ls_copy){.rows = c->n * c->T,
                               .width = o->of[i].count,
                               .from = (const float *)c->x[o->of[i].input] + o->of[i].first,
                               .from_stride = input_width(l, o->of[i].input),
                               .to = y,
                               .to_stride = width_of(o)});
}

/* Columns [first, end) of input k. */
static void clear(const ls_layer *l, const ls_layer_call *c, int k, int64_t first, int64_t end) {
    if (first < end)
        ls_copy_run(c->compute, &(ls_copy){.rows = c->n * c->T,
                                           .width = end - first,
                                           .to = (float *)c->dx[k] + first,
                                           .to_stride = input_width(l, k)});
}

/* An input's ranges ascend. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    for (int k = 0; k < l->ninputs; k++) {
        const float *dy = c->dy;
        int64_t done = 0;
        for (int i = 0; c->dx[k] && i < o->n; dy += o->of[i++].count) {
            if (o->of[i].input != k) continue;
            clear(l, c, k, done, o->of[i].first);
            ls_copy_run(c->compute, &(ls_copy){.rows = c->n * c->T,
                                               .width = o->of[i].count,
                                               .from = dy,
                                               .from_stride = width_of(o),
                                               .to = (float *)c->dx[k] + o->of[i].first,
                                               .to_stride = input_width(l, k)});
            done = o->of[i].first + o->of[i].count;
        }
        if (c->dx[k]) clear(l, c, k, done, input_width(l, k));
    }
}

static const ls_layer_ops ops = {.kind = "columns", .forward = forward, .backward = backward};

ls_value *ls_layers_columns(ls_model *m, const char *name, ls_value *const *x, int nx,
                            const ls_columns *of, int n) {
    ls_layer *l = ls_build_layer(m, "columns", name, x, nx);
    if (!l) return ls_build_failed(m);
    options *o = &LS_LAYER_OWN_AS(options, l);
    l->ops = &ops;
    l->T = x[0]->dims.of[0];
    l->traits.on_device = true;
    ls_build_unread(l);
    *o = (options){.n = n};
    for (int i = 0; i < n; i++) o->of[i] = of[i];
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, l->T * width_of(o));
    for (int k = 0; k < nx; k++)
        ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x[k]));
    return ls_build_value(m, LS_DIMS(l->T, width_of(o)));
}
