/* slice.c - y = a range of one dimension of x. */
#include "layers/copy.h"

typedef struct options {
    ls_around x;
    int64_t first, count;
} options;

/* The range's rows in x [n * outer, size * inner], and in y [n * outer, count * inner]. */
static void forward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t inner = o->x.inner;
    ls_copy_run(c->compute, &(ls_copy){.rows = c->n * o->x.outer,
                                       .width = o->count * inner,
                                       .from = (const float *)c->x[0] + o->first * inner,
                                       .from_stride = o->x.size * inner,
                                       .to = c->y,
                                       .to_stride = o->count * inner});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t inner = o->x.inner, end = o->first + o->count;
    if (!c->dx[0]) return;
    ls_copy range = {.rows = c->n * o->x.outer,
                     .width = o->count * inner,
                     .from = c->dy,
                     .from_stride = o->count * inner,
                     .to = (float *)c->dx[0] + o->first * inner,
                     .to_stride = o->x.size * inner};
    ls_copy before = {.rows = range.rows,
                      .width = o->first * inner,
                      .to = c->dx[0],
                      .to_stride = range.to_stride};
    ls_copy after = {.rows = range.rows,
                     .width = (o->x.size - end) * inner,
                     .to = (float *)c->dx[0] + end * inner,
                     .to_stride = range.to_stride};
    ls_copy_run(c->compute, &range);
    if (before.width) ls_copy_run(c->compute, &before);
    if (after.width) ls_copy_run(c->compute, &after);
}

static const ls_layer_ops ops = {.kind = "slice", .forward = forward, .backward = backward};

ls_value *(ls_slice)(ls_model *m, ls_value *x, ls_slice_options o) {
    ls_layer *l = ls_build_layer(m, "slice", o.name, &x, 1);
    ls_around a = {0};
    if (!l || !ls_around_dim(m, x, o.dim, &a)) return ls_build_failed(m);
    int64_t count = o.count ? o.count : a.size - o.first;
    if (o.first < 0 || count < 1 || o.first >= a.size || count > a.size - o.first)
        return ls_build_fail(m, "first is %lld, count %lld; dimension %d of %s has %lld",
                             (long long)o.first, (long long)count, a.dim,
                             ls_dims_write(x->dims).text, (long long)a.size);
    l->ops = &ops;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(options, l) = (options){a, o.first, count};
    ls_dims dims = x->dims;
    dims.of[a.dim] = count;
    ls_works_pass(&l->forward_work, LS_WORK_ADD, a.outer * count * a.inner);
    ls_works_pass(&l->backward_work, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, dims);
}
