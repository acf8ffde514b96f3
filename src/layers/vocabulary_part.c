/* vocabulary_part.c - the logits of a slice of a vocabulary: see vocabulary_slices.h.
 *
 * params: weight [V, C], a table; or that of a slice of an embedding, whose gradient the layer
 * begins. y, per row: log(sum of e^logit), and the logit of the target or 0, three numbers each.
 * saved in training: logits [rows, V], which backward replaces by their gradient | for each row the
 * maximum and 1 / sum. Without training logits are computed a block of rows at a time.
 */
#include <stdio.h>

#include "base/math.h"
#include "layers/label_rows.h"
#include "layers/layers.h"
#include "layers/vocabulary_device.h"
#include "layers/vocabulary_slices.h"
#include "model/row_ops.h"
#include "model/tensor_part.h"

enum { TABLE, BLOCK = 64 }; /* rows of a sample */

typedef struct part {
    const ls_layer *l;
    const ls_layer_call *c;
    int64_t first; /* the block's first row */
    ls_vocabulary v;
} part;

/* The row's target among the slice's tokens; -1: it is none of them. */
static int64_t target_of(const void *arg, int64_t r) {
    const part *p = arg;
    int64_t label = ls_label_of(p->l, p->c, p->first + r) - p->l->end.first_logit;
    return label >= 0 && label < p->l->V ? label : -1;
}

/* All rows of the call, or those of a block without training. `p` must stay where it is. */
static void open(const ls_layer *l, const ls_layer_call *c, int64_t first, int64_t rows, part *p) {
    float *memory = c->training ? c->saved : c->work;
    *p = (part){.l = l, .c = c, .first = first};
    p->v = (ls_vocabulary){.l = l,
                           .c = c,
                           .table = TABLE,
                           .start = true,
                           .end = true,
                           .rows = rows,
                           .units = ls_rows_units(c),
                           .h = (const float *)c->x[0] + first * l->C,
                           .dh = c->dx[0],
                           .logits = memory,
                           .stat = memory + rows * l->V,
                           .target = target_of,
                           .arg = p};
    if (!c->compute->device) return;
    p->v.targets = (ls_vocabulary_targets){.p = ls_layer_field(l, c, 0, 0),
                                           .row = (int64_t)(c->sample_nbytes / sizeof(int32_t)),
                                           .T = c->T,
                                           .first = first,
                                           .token = l->end.first_logit};
    p->v.sums = (float *)c->y + first * LS_ROW_SUMS;
}

static void sums_run(void *arg, int thread, int nthreads) {
    const part *p = arg;
    int64_t r = 0, end = 0, V = p->l->V;
    ls_pool_share(p->v.rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        const float *x = p->v.logits + r * V;
        float *stat = p->v.stat + 2 * r, *y = (float *)p->c->y + (p->first + r) * LS_ROW_SUMS;
        double sum = (double)p->c->compute->k->cross_entropy(V, x, stat);
        int64_t target = target_of(p, r);
        ls_exact_put((float)(ls_math_log(sum) + (double)stat[0]), y);
        ls_exact_put(target < 0 ? 0 : x[target], y + LS_EXACT);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, most = c->n * (l->T < BLOCK ? l->T : BLOCK);
    part p;
    if (c->logits) {
        open(l, c, 0, rows, &p);
        p.v.logits = c->logits;
        ls_vocabulary_logits(&p.v);
        return;
    }
    if (c->training) most = rows;
    for (int64_t first = 0; first < rows; first += most) {
        open(l, c, first, rows - first < most ? rows - first : most, &p);
        ls_vocabulary_logits(&p.v);
        if (c->compute->device)
            ls_vocabulary_device_losses(&p.v);
        else
            ls_pool_run(c->compute->pool, sums_run, &p);
    }
}

/* work: the gradients of each row's sums [rows, 2] */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    const float *dy = c->dy;
    part p;
    open(l, c, 0, rows, &p);
    bool there = c->compute->device;
    for (int64_t i = 0; !there && i < 2 * rows; i++) c->work[i] = ls_exact_get(dy + i * LS_EXACT);
    p.v.logits = c->saved;
    p.v.stat = (float *)c->saved + rows * l->V;
    p.v.gradient = there ? dy : c->work;
    ls_vocabulary_back(&p.v);
}

static const ls_layer_ops ops = {
    .kind = "vocabulary_part", .forward = forward, .backward = backward};

static void declare(ls_layer *l, int64_t T, int64_t C, int64_t V) {
    int64_t block = T < BLOCK ? T : BLOCK;
    ls_works *f = &l->cost.forward, *b = &l->cost.backward;
    l->ops = &ops;
    ls_vocabulary_declare(l, C, V);
    l->traits.loss = false;
    l->traits.has_logits = l->traits.on_device = true;
    l->memory.block_rows = 0;
    l->half.chain_floats = 0;
    l->T = T;
    l->memory.saved = (size_t)(T * (V + 2));
    l->memory.work = (size_t)(block * (V + 2) > 2 * T ? block * (V + 2) : 2 * T);
    l->cost.flops = 2.0 * (double)(T * C * V);
    ls_works_product(f, LS_WORK_PRODUCT, 0, C, V);
    ls_works_pass(f, LS_WORK_LOSS, T * V);
    ls_works_product(b, LS_WORK_PRODUCT_DX, 0, V, C);
    ls_works_pass(b, LS_WORK_LOSS_DX, T * V);
    ls_works_product(b, LS_WORK_PRODUCT_DW, V, C, 0);
    ls_works_grads(b, 1u << TABLE);
}

ls_value *ls_vocabulary_part(ls_model *m, ls_value *x, ls_value *label,
                             const ls_vocabulary_slices *o, int k) {
    char name[LS_NAME];
    snprintf(name, sizeof name, "%.60s.slice.%d", o->name, k);
    ls_layer *l = ls_build_layer(m, "vocabulary_part", name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t first = o->classes * k / o->n, V = o->classes * (k + 1) / o->n - first;
    int tied = o->tied ? ls_layers_tie_embedding(m, o->tied[k], ls_value_last(x)) : -1;
    if (!ls_build_is_good(m)) return ls_build_failed(m);
    declare(l, x->dims.of[0], ls_value_last(x), V);
    l->end.first_logit = first;
    if (tied >= 0) {
        ls_build_shared(m, l, tied);
    } else {
        ls_param p = {.ndims = 2, .dims = {V, l->C}, .decay = true, .init.std = 0.02f};
        p.cut.part = (ls_tensor_part){.groups = 1, .first = first, .all = o->classes};
        ls_build_param(m, l, "weight", &p);
    }
    ls_build_field(m, l, label);
    ls_build_classes(m, label, o->classes, true);
    l->y_parts = LS_EXACT;
    return ls_build_value(m, LS_DIMS(l->T, LS_ROW_SUMS));
}
