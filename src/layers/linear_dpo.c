/* linear_dpo.c - the end of a language model that learns from preferences: logits x . weight^T of
 * two texts, the chosen and the rejected answer to a prompt, and the loss of the pair (Rafailov et
 * al., "Direct Preference Optimization", arXiv 2305.18290).
 *
 * A sample has both texts, one after the other; its field `rejected` says where the second begins,
 * and `reference` what the reference model gives to both answers. With the log-probabilities of the
 * answers, sums over the rows with a label, and D = (chosen - its reference) - (rejected - its
 * reference):
 *
 *     sigmoid   -(1 - e) log s(beta D) - e log s(-beta D)     s: logistic function, e: smoothing
 *     hinge     max(0, 1 - beta D)
 *     ipo       (D - 1 / (2 beta))^2, of means over the rows  (Azar et al., arXiv 2310.12036)
 *
 * The gradient of a row needs the sums of all of its pair. So backward goes over the rows twice:
 * for the losses, a block of rows at a time (label_rows.h), then for the gradients, with the logits
 * computed again, unless all rows are one block. Log-probabilities are rounded to f32, as the
 * reference is, so that a model that is its own reference has D = 0.
 *
 * params: weight [V, C], a table; an embedding's, if the layer is tied to one. Nothing is saved,
 * and training needs no forward.
 */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "layers/label_rows.h"
#include "layers/layers.h"

enum { CHOSEN, REJECTED };
enum { TARGETS, BEGIN, REFERENCE }; /* fields of the layer */

/* What the loss notes of each pair, as TRL names it. */
enum {
    ACCURACIES,
    MARGINS,
    REWARD_CHOSEN,
    REWARD_REJECTED,
    LOGP_CHOSEN,
    LOGP_REJECTED,
    NUMBER_OF_NOTES
};
static const char *const note_names[NUMBER_OF_NOTES] = {"rewards/accuracies", "rewards/margins",
                                                        "rewards/chosen",     "rewards/rejected",
                                                        "logps/chosen",       "logps/rejected"};

typedef struct pair {
    double nats[2];  /* the sums of the rows' losses */
    double scale[2]; /* of the gradients of the rows */
    int64_t rows[2]; /* with a label */
} pair;

_Static_assert(LS_DPO_SIGMOID == 0 && LS_DPO_IPO == 1 && LS_DPO_HINGE == 2, "as dpo_losses.k");
_Static_assert((int)LOGP_CHOSEN == (int)LS_DPO_LOGP, "as layers.h says");
enum { PAIR_FLOATS = sizeof(pair) / sizeof(float) };

static ls_dpo_options options_of(const ls_layer *l) { return LS_LAYER_OWN_OF(ls_dpo_options, l); }

/* The pairs of the call: behind the numbers of its rows. */
static pair *pairs_of(const ls_layer *l, const ls_layer_call *c) {
    return (pair *)(void *)(c->work + (size_t)c->n * ls_label_rows_numbers(l->T));
}

static int side_of(const ls_layer *l, const ls_layer_call *c, int64_t row) {
    int32_t begin = 0;
    memcpy(&begin, ls_layer_field(l, c, BEGIN, row / l->T), sizeof begin);
    return row % l->T < begin ? CHOSEN : REJECTED;
}

static float scale_of(const ls_label_rows *b, int64_t row) {
    const pair *p = &pairs_of(b->l, b->c)[row / b->l->T];
    return b->c->loss_scale * (float)p->scale[side_of(b->l, b->c, row)];
}

/* The same memory as a device has it: of each pair the nats, then of each the rows, then the
 * scales. */
typedef struct pairs_there {
    double *nats;
    int32_t *rows;
    float *scales;
} pairs_there;

static pairs_there there_of(const ls_layer *l, const ls_layer_call *c) {
    pairs_there p = {.nats = (double *)(void *)pairs_of(l, c)};
    p.rows = (int32_t *)(void *)(p.nats + 2 * c->n);
    p.scales = (float *)(void *)(p.rows + 2 * c->n);
    return p;
}

static ls_label_rows rows_of(const ls_layer *l, const ls_layer_call *c) {
    ls_label_rows b = {.l = l, .c = c, .own = (size_t)c->n * PAIR_FLOATS, .scale = scale_of};
    if (c->compute->device) {
        b.scales = there_of(l, c).scales;
        b.begins = ls_layer_field(l, c, BEGIN, 0);
    }
    return b;
}

/* ---- the loss of a pair ---- */

/* log(1 + e^x) */
static double softplus(double x) {
    double more = ls_math_log(1 + ls_math_exp(x > 0 ? -x : x));
    return x > 0 ? x + more : more;
}

static double logistic(double x) {
    double y = ls_math_exp(x > 0 ? -x : x);
    return x > 0 ? 1 / (1 + y) : y / (1 + y);
}

/* The loss, and its derivative with respect to D. */
static double loss_of(const ls_dpo_options *o, double d, double *slope_p) {
    double x = o->beta * d, e = o->smoothing;
    if (o->loss == LS_DPO_IPO) {
        double off = d - 1 / (2 * o->beta);
        *slope_p = 2 * off;
        return off * off;
    }
    if (o->loss == LS_DPO_HINGE) {
        *slope_p = x < 1 ? -o->beta : 0;
        return x < 1 ? 1 - x : 0;
    }
    *slope_p = o->beta * (e * logistic(x) - (1 - e) * logistic(-x));
    return (1 - e) * softplus(-x) + e * softplus(x);
}

static void write_notes(const ls_layer_call *c, int64_t i, const double notes[NUMBER_OF_NOTES]) {
    for (int k = 0; c->notes && k < NUMBER_OF_NOTES; k++)
        c->notes[k * c->notes_stride + i] = notes[k];
}

/* From the sums of sample i: its loss, its notes, and the scale of its gradient. */
static void finish_pair(const ls_layer *l, const ls_layer_call *c, int64_t i) {
    ls_dpo_options o = options_of(l);
    pair *p = &pairs_of(l, c)[i];
    float reference[2];
    double logp[2], over[2], part[2] = {1, 1}, slope = 0, weight = c->weights ? c->weights[i] : 1;
    memcpy(reference, ls_layer_field(l, c, REFERENCE, i), sizeof reference);
    for (int side = 0; side < 2; side++) {
        logp[side] = (double)(float)-p->nats[side];
        over[side] = logp[side] - (double)reference[side];
        if (o.loss == LS_DPO_IPO && p->rows[side]) part[side] = 1 / (double)p->rows[side];
    }
    double margin = over[CHOSEN] - over[REJECTED];
    c->losses[i] =
        loss_of(&o, part[CHOSEN] * over[CHOSEN] - part[REJECTED] * over[REJECTED], &slope);
    p->scale[CHOSEN] = -slope * weight * part[CHOSEN]; /* a row's loss is -log of its probability */
    p->scale[REJECTED] = slope * weight * part[REJECTED];
    write_notes(c, i,
                (double[NUMBER_OF_NOTES]){
                    [ACCURACIES] = margin > 0,
                    [MARGINS] = o.beta * margin,
                    [REWARD_CHOSEN] = o.beta * over[CHOSEN],
                    [REWARD_REJECTED] = o.beta * over[REJECTED],
                    [LOGP_CHOSEN] = logp[CHOSEN],
                    [LOGP_REJECTED] = logp[REJECTED],
                });
}

/* ---- passes ---- */

static int64_t numbers_of_sample(const ls_layer_call *c) {
    return (int64_t)(c->sample_nbytes / sizeof(int32_t));
}

static void add_there(const ls_label_rows *b) {
    pairs_there p = there_of(b->l, b->c);
    LS_LAUNCH(b->c->compute, LS_KERNEL_dpo_sums, b->c->n, 1, {.l = b->v.rows}, {.l = b->c->T},
              {.from = b->row}, {.from = b->v.losses}, {.from = b->begins},
              {.l = numbers_of_sample(b->c)}, {.l = b->v.start}, {.p = p.nats}, {.p = p.rows});
}

static void finish_there(const ls_layer *l, const ls_layer_call *c) {
    enum { ITEMS = 256 };
    ls_dpo_options o = options_of(l);
    pairs_there p = there_of(l, c);
    int64_t beta = 0, smoothing = 0;
    memcpy(&beta, &o.beta, sizeof beta);
    memcpy(&smoothing, &o.smoothing, sizeof smoothing);
    LS_LAUNCH(c->compute, LS_KERNEL_dpo_losses, ls_device_groups(c->n, ITEMS), 1, {.l = c->n},
              {.l = o.loss}, {.l = beta}, {.l = smoothing}, {.f = c->loss_scale}, {.from = p.nats},
              {.from = p.rows}, {.from = ls_layer_field(l, c, REFERENCE, 0)},
              {.l = numbers_of_sample(c)}, {.from = c->weights}, {.p = c->losses}, {.p = c->notes},
              {.l = c->notes_stride}, {.p = p.scales});
}

/* The losses of the block's rows, for their pairs: each sum is one chain over its rows. */
static void add_losses(const ls_label_rows *b) {
    ls_vocabulary_losses(&b->v);
    if (b->c->compute->device) {
        add_there(b);
        return;
    }
    pair *pairs = pairs_of(b->l, b->c);
    for (int64_t r = 0; r < b->v.rows; r++) {
        pair *p = &pairs[b->row[r] / b->l->T];
        int side = side_of(b->l, b->c, b->row[r]);
        p->nats[side] += b->v.losses[r];
        p->rows[side]++;
    }
}

/* Returns the number of rows that count. *b: the last block, with its logits. */
static int64_t find_losses(const ls_layer *l, const ls_layer_call *c, ls_label_rows *b) {
    const int32_t *row = ls_label_rows_list(c);
    int64_t all = ls_label_rows_find(b, false), first = 0, n = 0;
    if (!c->compute->device) memset(pairs_of(l, c), 0, (size_t)c->n * sizeof(pair));
    do { /* also for no rows, so that there is a block */
        n = ls_label_rows_count(b, row + first);
        ls_label_rows_open(b, row + first, n);
        add_losses(b);
        first += n;
    } while (first < all);
    if (c->compute->device) finish_there(l, c);
    for (int64_t i = 0; i < c->n && !c->compute->device; i++) finish_pair(l, c, i);
    return all;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_label_rows b = rows_of(l, c);
    if (c->losses)
        find_losses(l, c, &b);
    else
        ls_label_rows_logits(&b);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_label_rows b = rows_of(l, c);
    const int32_t *row = ls_label_rows_list(c);
    int64_t all = find_losses(l, c, &b);
    bool whole = b.v.rows == all;
    ls_label_rows_clear(l, c);
    if (whole) ls_label_rows_back(&b);
    for (int64_t first = 0, n; !whole && first < all; first += n) {
        n = ls_label_rows_count(&b, row + first);
        ls_label_rows_open(&b, row + first, n);
        ls_vocabulary_losses(&b.v);
        ls_label_rows_back(&b);
    }
}

static const ls_layer_ops ops = {.kind = "linear_dpo", .forward = forward, .backward = backward};

/* ---- the call ---- */

static bool is_field(const ls_value *v, ls_dtype type, int64_t n) {
    return v && v->layer < 0 && v->field >= 0 && v->type == type && ls_value_count(v) == n;
}

static bool look(ls_model *m, const ls_value *x, const ls_dpo_fields *f, const ls_dpo_options *o,
                 int64_t classes) {
    if (x->ndims != 2)
        ls_build_fail(m, "the input is %s; [T, C] is needed", ls_dims_write(x->dims).text);
    else if (!is_field(f->targets, LS_I32, x->dims.of[0]))
        ls_build_fail(m, "the targets are no field of %lld i32, one for each row",
                      (long long)x->dims.of[0]);
    else if (!is_field(f->rejected, LS_I32, 1) || !is_field(f->reference, LS_F32, 2))
        ls_build_fail(m, "where the rejected text begins is no field of one i32, or the reference "
                         "none of two f32");
    else if (classes < 1 || classes > INT32_MAX)
        ls_build_fail(m, "classes is %lld; 1 to %d are possible", (long long)classes, INT32_MAX);
    else if (!(o->beta > 0))
        ls_build_fail(m, "beta is %g; it is above 0", o->beta);
    return ls_build_is_good(m);
}

void ls_linear_dpo(ls_model *m, ls_value *x, const ls_dpo_fields *f, ls_dpo_options o) {
    ls_layer *l = ls_build_layer(m, "linear_dpo", o.name, &x, 1);
    if (!l) return;
    int tied = o.tied ? ls_layers_tie_embedding(m, o.tied, ls_value_last(x)) : -1;
    int64_t V = tied >= 0 ? m->params[tied].dims[0] : o.classes;
    if (!ls_build_is_good(m) || !look(m, x, f, &o, V)) return;
    l->ops = &ops;
    l->traits.on_device = true;
    l->T = x->dims.of[0];
    ls_label_rows_declare(l, ls_value_last(x), V);
    l->memory.work = ls_label_rows_numbers(l->T) + PAIR_FLOATS;
    l->memory.block_floats = ls_label_rows_block(l->C, V);
    LS_LAYER_OWN_AS(ls_dpo_options, l) = o;
    ls_vocabulary_works(l, 0, l->T);
    if (l->T > l->memory.block_rows) /* the second pass */
        ls_works_product(&l->cost.backward, LS_WORK_PRODUCT_DX, 0, V, l->C);
    if (tied >= 0)
        ls_build_shared(m, l, tied);
    else
        ls_build_param(
            m, l, "weight",
            &(ls_param){.ndims = 2, .dims = {V, l->C}, .decay = true, .init.std = 0.02f});
    ls_build_field(m, l, f->targets);
    ls_build_field(m, l, f->rejected);
    ls_build_field(m, l, f->reference);
    ls_build_classes(m, f->targets, V, true);
    ls_build_classes(m, f->rejected, l->T, false);
    for (int k = 0; k < NUMBER_OF_NOTES; k++) ls_build_note(m, note_names[k]);
    m->targets = 1;
}
