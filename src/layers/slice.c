/* slice.c - y = a range of one dimension of x. */
#include "layers/copy.h"
#include "model/row_ops.h"

typedef struct options {
    ls_around x;
    int64_t first, count;
} options;

/* The range's rows in x [n * outer, size * inner], and in y [n * outer, count * inner]. */
static void forward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t inner = o->x.inner;
    ls_matrix x = ls_rows_x(l, c, 0, 0);
    ls_copy_run(c->compute, &(ls_copy){.rows = c->n * o->x.outer,
                                       .width = o->count * inner,
                                       .from = ls_matrix_from(x, 0, o->first * inner).p,
                                       .from_stride = o->x.size * inner,
                                       .to = c->y,
                                       .to_stride = o->count * inner,
                                       .bf16 = x.bf16});
}

/* Sets `count` numbers of each row of dx to 0, from column `first` on. */
static void clear(const options *o, const ls_layer_call *c, ls_numbers dx, int64_t first,
                  int64_t count) {
    ls_copy zeros = {.rows = c->n * o->x.outer,
                     .width = count,
                     .to = ls_numbers_at(dx, first).p,
                     .to_stride = o->x.size * o->x.inner,
                     .bf16 = dx.bf16};
    if (count) ls_copy_run(c->compute, &zeros);
}

/* No gradient comes from a sample that an incomplete one of the call's does not have. */
static void clear_missing(const ls_layer *l, const ls_layer_call *c, ls_numbers dx) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t inner = o->x.inner, stride = o->x.size * inner;
    int sample = (int)(l->spans * o->first / o->x.size);
    int64_t has = c->ndata ? ls_chunk_samples(c->ndata, l->spans, sample) : c->n;
    ls_copy zeros = {.rows = c->n - has,
                     .width = o->count * inner,
                     .to = ls_numbers_at(dx, has * stride + o->first * inner).p,
                     .to_stride = stride,
                     .bf16 = dx.bf16};
    if (has < c->n) ls_copy_run(c->compute, &zeros);
}

/* To a gradient that has been begun the range alone is added. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int64_t inner = o->x.inner, end = o->first + o->count;
    ls_numbers dx = ls_rows_dx(l, c, 0);
    bool begun = c->begun & 1;
    if (!dx.p) return;
    ls_copy range = {.rows = c->n * o->x.outer,
                     .width = o->count * inner,
                     .from = c->dy,
                     .from_stride = o->count * inner,
                     .to = ls_numbers_at(dx, o->first * inner).p,
                     .to_stride = o->x.size * inner,
                     .bf16 = dx.bf16,
                     .adds = begun};
    ls_copy_run(c->compute, &range);
    clear_missing(l, c, dx);
    if (begun) return;
    clear(o, c, dx, 0, o->first * inner);
    clear(o, c, dx, end * inner, (o->x.size - end) * inner);
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.outer = o->x.outer,
                    .size = o->x.size,
                    .inner = o->x.inner,
                    .first = o->first,
                    .count = o->count};
}

static const ls_layer_ops ops = {
    .kind = "slice", .forward = forward, .backward = backward, .describe = describe};

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
    l->half.as_stored = LS_OPERAND_ALL;
    l->traits.adds_itself = l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(options, l) = (options){a, o.first, count};
    ls_dims dims = x->dims;
    dims.of[a.dim] = count;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, a.outer * count * a.inner);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x));
    return ls_build_value(m, dims);
}
