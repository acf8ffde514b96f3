/* linear_cross_entropy.c - the end of a language model: logits x . weight^T, and their
 * cross-entropy with labels, a block of rows at a time (label_rows.h).
 *
 * params: weight [V, C], a table; an embedding's, if the layer is tied to one. losses: the mean
 * over a sample's rows that have a label. Rows without one cost nothing: the others are gathered.
 * forward without losses: the logits of all rows. backward: losses, dx, and the weight's gradient,
 * which a tied embedding continues. Nothing is saved, and training needs no forward.
 */
#include <string.h>

#include "layers/label_rows_device.h"
#include "layers/layers.h"
#include "lockstep/infer.h"

/* Floats of work memory for each sample: the factor of its rows' gradients, and on a device their
 * number. */
enum { OWN = 2 };

static float *scales_of(const ls_layer *l, const ls_layer_call *c) {
    return c->work + (size_t)c->n * ls_label_rows_numbers(l->T);
}

/* The share of a row in its sample's weight, once for each sample. */
static void find_scales(const ls_layer *l, const ls_layer_call *c) {
    for (int64_t i = 0; i < c->n; i++) {
        double weight = c->weights ? c->weights[i] : 1;
        scales_of(l, c)[OWN * i] =
            c->loss_scale * (float)(weight / (double)ls_labels_count(l, c, i));
    }
}

static float scale_of(const ls_label_rows *b, int64_t row) {
    return scales_of(b->l, b->c)[OWN * (row / b->l->T)];
}

static ls_label_rows rows_of(const ls_layer *l, const ls_layer_call *c) {
    return (ls_label_rows){
        .l = l, .c = c, .own = OWN * (size_t)c->n, .scale = scale_of, .scales = scales_of(l, c)};
}

/* scales: the gradient will be computed, too. */
static void begin_losses(const ls_layer *l, const ls_layer_call *c, bool scales) {
    if (c->compute->device) {
        ls_label_rows_device_count(l, c, scales_of(l, c));
        return;
    }
    for (int64_t i = 0; i < c->n; i++) c->losses[i] = 0;
    if (scales) find_scales(l, c);
}

/* A sample's loss is one chain over its rows, continued from block to block. */
static void add_losses(const ls_label_rows *b) {
    ls_vocabulary_losses(&b->v);
    if (b->c->compute->device) {
        ls_label_rows_device_sum(b, b->scales, b->v.start, b->v.end);
        return;
    }
    for (int64_t r = 0; r < b->v.rows; r++) b->c->losses[b->row[r] / b->l->T] += b->v.losses[r];
}

static void end_losses(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) return; /* add_losses() has done it */
    for (int64_t i = 0; i < c->n; i++) {
        int64_t n = ls_labels_count(l, c, i);
        c->losses[i] = n ? c->losses[i] / (double)n : 0;
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_label_rows b = rows_of(l, c);
    if (!c->losses) {
        ls_label_rows_logits(&b);
        return;
    }
    const int32_t *row = ls_label_rows_list(c);
    int64_t all = ls_label_rows_find(&b, false), first = 0, n = 0;
    begin_losses(l, c, false);
    do {
        n = ls_label_rows_count(&b, row + first);
        ls_label_rows_open(&b, row + first, n);
        add_losses(&b);
        first += n;
    } while (first < all);
    end_losses(l, c);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_label_rows b = rows_of(l, c);
    const int32_t *row = ls_label_rows_list(c);
    int64_t all = ls_label_rows_find(&b, false), first = 0, n = 0;
    begin_losses(l, c, true);
    ls_label_rows_clear(l, c);
    do { /* also for no rows: gradients are set to 0 */
        n = ls_label_rows_count(&b, row + first);
        ls_label_rows_open(&b, row + first, n);
        add_losses(&b);
        ls_label_rows_back(&b);
        first += n;
    } while (first < all);
    end_losses(l, c);
}

static const ls_layer_ops ops = {
    .kind = "linear_cross_entropy", .forward = forward, .backward = backward};

static bool look(ls_model *m, const ls_value *x, const ls_value *label, int64_t classes) {
    if (x->ndims != 2)
        ls_build_fail(m, "the input is %s; [T, C] is needed", ls_dims_write(x->dims).text);
    else if (!label || label->layer >= 0 || label->type != LS_I32 ||
             ls_value_count(label) != x->dims.of[0])
        ls_build_fail(m, "the labels are no field of %lld i32, one for each row",
                      (long long)x->dims.of[0]);
    else if (classes < 1 || classes > INT32_MAX)
        ls_build_fail(m, "classes is %lld; 1 to %d are possible", (long long)classes, INT32_MAX);
    return ls_build_is_good(m);
}

/* all_labels NULL: the layer has all rows. */
static void add_layer(ls_model *m, ls_value *x, ls_value *label, ls_value *all_labels,
                      ls_linear_cross_entropy_options o) {
    ls_layer *l = ls_build_layer(m, "linear_cross_entropy", o.name, &x, 1);
    if (!l) return;
    int tied = o.tied ? ls_layers_tie_embedding(m, o.tied, ls_value_last(x)) : -1;
    int64_t V = tied >= 0 ? m->params[tied].dims[0] : o.classes;
    if (!ls_build_is_good(m) || !look(m, x, label, V)) return;
    l->ops = &ops;
    l->traits.on_device = true;
    l->end.predicts = LS_CLASSES;
    l->T = x->dims.of[0];
    ls_label_rows_declare(l, ls_value_last(x), V);
    l->memory.work = ls_label_rows_numbers(l->T) + OWN;
    l->memory.block_floats = ls_label_rows_block(l->C, V);
    ls_vocabulary_works(l, 0, l->T);
    if (tied >= 0)
        ls_build_shared(m, l, tied);
    else
        ls_build_param(
            m, l, "weight",
            &(ls_param){.ndims = 2, .dims = {V, l->C}, .decay = true, .init.std = 0.02f});
    ls_build_field(m, l, label);
    ls_build_classes(m, label, V, true);
    ls_labels_weigh(m, l, all_labels);
}

void(ls_linear_cross_entropy)(ls_model *m, ls_value *x, ls_value *label,
                              ls_linear_cross_entropy_options o) {
    add_layer(m, x, label, NULL, o);
}

void ls_layers_chunk_cross_entropy(ls_model *m, ls_value *x, ls_value *label, ls_value *all_labels,
                                   ls_linear_cross_entropy_options o) {
    add_layer(m, x, label, all_labels, o);
}
