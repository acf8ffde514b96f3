/* concat.c - y = values one after the other along one dimension. */
#include <string.h>

#include "layers/copy.h"
#include "model/row_ops.h"

_Static_assert((int)LS_MAX_VALUES <= (int)LS_LAYER_MAX_INPUTS, "each value is an input");

typedef struct options {
    int64_t outer, width;                /* y is [outer, width] */
    int64_t widths[LS_LAYER_MAX_INPUTS]; /* of the inputs */
} options;

/* The rows of input k, at `x`, and those of y that they become, at `y`. */
static ls_copy rows_of(const options *o, int64_t n, int k, const void *from, void *to) {
    return (ls_copy){.rows = n * o->outer,
                     .width = o->widths[k],
                     .from = from,
                     .from_stride = o->widths[k],
                     .to = to,
                     .to_stride = o->width};
}

/* Zeros in place of the samples that an incomplete one of the call's does not have: input k is what
 * a chunk has computed of a sample, and y begins with it. */
static void clear_missing(const ls_layer *l, const ls_layer_call *c, int k, ls_numbers y) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    int sample = l->spans * k / l->ninputs;
    int64_t has = c->ndata ? ls_chunk_samples(c->ndata, l->spans, sample) : c->n;
    ls_copy zeros = rows_of(o, c->n - has, k, NULL, ls_numbers_at(y, has * o->width).p);
    zeros.bf16 = y.bf16;
    if (has < c->n) ls_copy_run(c->compute, &zeros);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    ls_numbers y = ls_rows_y(l, c);
    for (int k = 0; k < l->ninputs; y = ls_numbers_at(y, o->widths[k++])) {
        ls_copy copy = rows_of(o, c->n, k, c->x[k], y.p);
        copy.bf16 = y.bf16;
        ls_copy_run(c->compute, &copy);
        clear_missing(l, c, k, y);
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    ls_matrix dy = ls_rows_dy(l, c, 0);
    for (int k = 0; k < l->ninputs; dy = ls_matrix_from(dy, 0, o->widths[k++])) {
        if (!c->dx[k]) continue;
        ls_copy copy = rows_of(o, c->n, k, dy.p, c->dx[k]);
        copy.from_stride = o->width;
        copy.to_stride = o->widths[k];
        copy.bf16 = dy.bf16;
        copy.adds = c->begun >> k & 1;
        ls_copy_run(c->compute, &copy);
    }
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.outer = o->outer, .widths = o->widths};
}

static const ls_layer_ops ops = {
    .kind = "concat", .forward = forward, .backward = backward, .describe = describe};

/* Whether x has the shape of `first`, apart from this dimension. */
static bool fits(ls_model *m, const ls_value *first, const ls_value *x, int dim) {
    ls_dims a = first->dims, b = x->dims;
    a.of[dim] = b.of[dim] = 1;
    if (first->ndims == x->ndims && memcmp(&a, &b, sizeof a) == 0) return true;
    ls_build_fail(m, "%s and %s differ in more than dimension %d", ls_dims_write(first->dims).text,
                  ls_dims_write(x->dims).text, dim);
    return false;
}

ls_value *(ls_concat)(ls_model *m, int dim, ls_values x) {
    int n = 0;
    ls_around a = {0};
    for (int i = 0; i < LS_MAX_VALUES; i++)
        if (x.of[i]) n = i + 1;
    if (ls_build_is_good(m) && n < 2)
        return ls_build_fail(m, "concat: at least two values are needed");
    for (int i = 0; i < n; i++) /* one number is a vector of one */
        if (x.of[i] && !x.of[i]->ndims && !x.of[i]->measure && ls_build_is_good(m))
            x.of[i] = ls_build_view(m, x.of[i], LS_DIMS(1));
    ls_layer *l = ls_build_layer(m, "concat", NULL, x.of, n);
    if (!l || !ls_around_dim(m, x.of[0], dim, &a)) return ls_build_failed(m);
    l->ops = &ops;
    l->half.as_stored = LS_OPERAND_ALL;
    l->traits.adds_itself = l->traits.on_device = true;
    ls_build_unread(l);
    options *o = &LS_LAYER_OWN_AS(options, l);
    *o = (options){.outer = a.outer};
    ls_dims dims = x.of[0]->dims;
    dims.of[a.dim] = 0;
    for (int k = 0; k < n; k++) {
        if (!fits(m, x.of[0], x.of[k], a.dim)) return ls_build_failed(m);
        dims.of[a.dim] += x.of[k]->dims.of[a.dim];
        o->widths[k] = x.of[k]->dims.of[a.dim] * a.inner;
        o->width += o->widths[k];
    }
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, a.outer * o->width);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, a.outer * o->width);
    return ls_build_value(m, dims);
}
