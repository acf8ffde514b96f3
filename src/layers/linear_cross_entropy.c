/* linear_cross_entropy.c - the end of a language model: logits x . weight^T, and their cross-entropy
 * with labels, a block of rows at a time (model/vocabulary.h).
 *
 * params: weight [V, C], a table; an embedding's, if the layer is tied to one.
 * losses: the mean over a sample's rows that have a label. Rows without one cost nothing: the others
 * are gathered. forward without losses: the logits of all rows. backward: losses, dx, and the
 * weight's gradient, which a tied embedding continues. Nothing is saved, and training needs no forward.
 */
#include <string.h>

#include "layers/layers.h"
#include "model/vocabulary.h"
#include "tensor/dtype.h"

enum { WEIGHT };

/* A block of the rows that count, and where its parts are in `work`. */
typedef struct block {
    const ls_layer *l;
    const ls_layer_call *c;
    const int32_t *row; /* [rows] their numbers in the call */
    ls_vocabulary v;
} block;

static int32_t label_of(const ls_layer *l, const ls_layer_call *c, int64_t row) {
    int32_t label = 0;
    const char *labels = ls_layer_field(l, c, 0, row / l->T);
    memcpy(&label, labels + (size_t)(row % l->T) * sizeof label, sizeof label);
    return label;
}

static int64_t target_of(const void *arg, int64_t r) {
    const block *b = arg;
    return label_of(b->l, b->c, b->row[r]);
}

/* Of a sample's rows, how many have a label? */
static int64_t count_labels(const ls_layer *l, const ls_layer_call *c, int64_t sample) {
    int64_t n = 0;
    for (int64_t t = 0; t < l->T; t++) n += label_of(l, c, sample * l->T + t) >= 0;
    return n;
}

/* A row's share of its sample's weight. */
static float scale_of(const void *arg, int64_t r) {
    const block *b = arg;
    int64_t sample = b->row[r] / b->l->T;
    double weight = b->c->weights ? b->c->weights[sample] : 1;
    return b->c->loss_scale * (float)(weight / (double)count_labels(b->l, b->c, sample));
}

/* Room for the numbers of all rows, an even number of floats, comes before that for a block. */
static int64_t numbers_floats(const ls_layer *l) { return l->T + l->T % 2; }

static size_t block_floats(int64_t C, int64_t V) { return (size_t)(2 * C + V + 4); }

/* `b` must stay where it is. rows are the first numbers of those of all rows that count. */
static void block_open(const ls_layer *l, const ls_layer_call *c, const int32_t *row, int64_t rows,
                       block *b) {
    float *room = c->work + c->n * numbers_floats(l);
    *b = (block){.l = l, .c = c, .row = row};
    b->v = (ls_vocabulary){.l = l,
                           .c = c,
                           .table = WEIGHT,
                           .start = row == (const int32_t *)(const void *)c->work,
                           .rows = rows,
                           .h = room + 2 * rows,
                           .dh = c->dx[0] ? room + (2 + l->C) * rows : NULL,
                           .stat = room + (2 + 2 * l->C) * rows,
                           .logits = room + (4 + 2 * l->C) * rows,
                           .losses = (double *)(void *)room,
                           .target = target_of,
                           .scale = scale_of,
                           .arg = b};
    for (int64_t r = 0; r < rows; r++)
        memcpy(room + 2 * rows + r * l->C, (const float *)c->x[0] + row[r] * l->C,
               (size_t)l->C * sizeof(float));
}

/* The numbers of the rows that count. */
static int64_t list_rows(const ls_layer *l, const ls_layer_call *c, int32_t *row) {
    int64_t n = 0;
    for (int64_t r = 0; r < c->n * c->T; r++)
        if (!c->losses || label_of(l, c, r) >= 0) row[n++] = (int32_t)r;
    return n;
}

/* A sample's loss is one chain over its rows, continued from block to block. */
static void add_losses(const block *b) {
    ls_vocabulary_losses(&b->v);
    for (int64_t r = 0; r < b->v.rows; r++) b->c->losses[b->row[r] / b->l->T] += b->v.losses[r];
}

static void end_losses(const ls_layer *l, const ls_layer_call *c) {
    for (int64_t i = 0; i < c->n; i++) {
        int64_t n = count_labels(l, c, i);
        c->losses[i] = n ? c->losses[i] / (double)n : 0;
    }
}

static bool has_half_grads(const ls_layer_call *c) {
    return c->given && ls_dtype_is_half(c->given->grads_type);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int32_t *row = (int32_t *)(void *)c->work;
    int64_t all = list_rows(l, c, row), most = ls_layer_block(l, c->n * l->T, has_half_grads(c));
    for (int64_t i = 0; c->losses && i < c->n; i++) c->losses[i] = 0;
    for (int64_t first = 0; first < all; first += most) {
        block b;
        block_open(l, c, row + first, all - first < most ? all - first : most, &b);
        if (!c->losses) b.v.logits = (float *)c->y + first * l->V;
        ls_vocabulary_logits(&b.v);
        if (c->losses) add_losses(&b);
    }
    if (c->losses) end_losses(l, c);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    int32_t *row = (int32_t *)(void *)c->work;
    int64_t all = list_rows(l, c, row), most = ls_layer_block(l, c->n * l->T, has_half_grads(c));
    int64_t first = 0;
    float *dx = c->dx[0];
    for (int64_t i = 0; i < c->n; i++) c->losses[i] = 0;
    if (dx) memset(dx, 0, (size_t)(c->n * l->T * l->C) * sizeof *dx);
    do { /* also for no rows: gradients are set to 0 */
        block b;
        block_open(l, c, row + first, all - first < most ? all - first : most, &b);
        ls_vocabulary_logits(&b.v);
        add_losses(&b);
        ls_vocabulary_back(&b.v);
        for (int64_t r = 0; dx && r < b.v.rows; r++)
            memcpy(dx + b.row[r] * l->C, b.v.dh + r * l->C, (size_t)l->C * sizeof *dx);
        first += most;
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

void(ls_linear_cross_entropy)(ls_model *m, ls_value *x, ls_value *label,
                              ls_linear_cross_entropy_options o) {
    ls_layer *l = ls_build_layer(m, "linear_cross_entropy", o.name, &x, 1);
    if (!l) return;
    int tied = o.tied ? ls_layers_tie_embedding(m, o.tied, ls_value_last(x)) : -1;
    int64_t V = tied >= 0 ? m->params[tied].dims[0] : o.classes;
    if (!ls_build_is_good(m) || !look(m, x, label, V)) return;
    l->ops = &ops;
    l->T = x->dims.of[0];
    ls_vocabulary_declare(l, ls_value_last(x), V);
    l->work_floats = (size_t)numbers_floats(l);
    l->block_floats = block_floats(l->C, V);
    ls_vocabulary_works(l, WEIGHT, l->T);
    if (tied >= 0)
        ls_build_shared(m, l, tied);
    else
        ls_build_param(
            m, l, "weight",
            &(ls_param){.ndims = 2, .dims = {V, l->C}, .decay = true, .init_std = 0.02f});
    ls_build_field(m, l, label);
    ls_build_classes(m, label, V, true);
    m->targets = 1;
    m->weighing.ntargets = l->T;
    m->weighing.labels_at = l->field_at[0];
    m->weighing.ignored = -1;
}
