/* gpt_head.c - final layer norm, logits by the token embedding (tied), cross-entropy: vocabulary.h.
 *
 * params: gamma, beta [C]; wte [V, C], which belongs to the embedding forward: x -> losses [n], or
 * logits if the call has no losses, or the normalized rows if it wants them. backward: x -> losses,
 * dx, and the beginning of wte's gradient (see gpt_embedding.c). Nothing is saved, and training
 * needs no forward.
 */
#include "layers/gpt.h"

#include "layers/vocabulary_device.h"
#include "lockstep/infer.h"
#include "model/mixed.h"
#include "model/row_ops.h"

enum { WTE = 2 };

/* A block of rows, and where its parts are in `work`. */
typedef struct block {
    const ls_layer_call *c; /* of these rows alone: n = 1, T = rows */
    const ls_layer_call *whole;
    int64_t first;          /* its first row in the whole call */
    float *h, *mean, *rstd; /* [rows, C], [rows], [rows] */
    ls_vocabulary v;
} block;

static int64_t target_of(const void *arg, int64_t r) {
    const block *b = arg;
    int64_t T = b->whole->T, row = b->first + r;
    return ls_layer_tokens(b->whole, row / T)[row % T + 1];
}

static float scale_of(const void *arg, int64_t r) {
    const block *b = arg;
    (void)r;
    return b->c->loss_scale;
}

static ls_vocabulary_targets targets_of(const ls_layer_call *whole, int64_t first) {
    if (!whole->compute->device) return (ls_vocabulary_targets){0};
    return (ls_vocabulary_targets){.p = ls_layer_tokens(whole, 0) + 1,
                                   .row = ls_layer_tokens_row(whole),
                                   .T = whole->T,
                                   .first = first};
}

/* `b` must stay where it is. */
static void block_open(const ls_layer *l, const ls_layer_call *whole, const ls_layer_call *part,
                       int64_t first, block *b) {
    int64_t rows = part->T;
    *b = (block){.c = part, .whole = whole, .first = first};
    b->v = (ls_vocabulary){.l = l,
                           .c = part,
                           .table = WTE,
                           .start = first == 0,
                           .end = first + rows == whole->n * whole->T,
                           .rows = rows,
                           .units = ls_rows_units(whole),
                           .losses = (double *)(void *)part->work,
                           .targets = targets_of(whole, first),
                           .target = target_of,
                           .scale = scale_of,
                           .arg = b};
    b->v.units.first = first;
    b->h = part->work + 2 * rows;
    b->v.h = b->h;
    b->v.dh = ls_rows_norm_has_back(l, part) ? b->h + rows * l->C : NULL;
    b->mean = b->h + 2 * rows * l->C;
    b->rstd = b->mean + rows;
    b->v.stat = b->rstd + rows;
    b->v.logits = b->v.stat + 2 * rows;
}

static size_t block_floats(int64_t C, int64_t V) { return (size_t)(2 * C + V + 6); }

/* The call of rows [first, first + rows). */
static ls_layer_call part_of(const ls_layer *l, const ls_layer_call *c, int64_t first,
                             int64_t rows) {
    ls_layer_call part = *c;
    part.n = 1;
    part.T = rows;
    part.x[0] = ls_matrix_from(ls_rows_x(l, c, 0, l->C), first, 0).p;
    part.dx[0] = c->dx[0] ? ls_numbers_at(ls_rows_dx(l, c, 0), first * l->C).p : NULL;
    part.grads_start = c->grads_start && first == 0;
    return part;
}

/* A sample's loss is one chain over its positions, continued from block to block. */
static void find_losses(const block *b) {
    const ls_layer_call *whole = b->whole;
    ls_vocabulary_losses(&b->v);
    if (whole->compute->device) {
        ls_vocabulary_device_sum(&b->v, whole->losses);
        return;
    }
    for (int64_t r = 0; r < b->c->T; r++) {
        int64_t row = b->first + r;
        double *loss = &whole->losses[row / whole->T];
        *loss = (row % whole->T ? *loss : 0.0) + b->v.losses[r];
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, most = ls_layer_block(l, rows, ls_mixed_rounds(c));
    for (int64_t first = 0; first < rows; first += most) {
        ls_layer_call part = part_of(l, c, first, rows - first < most ? rows - first : most);
        block b;
        block_open(l, c, &part, first, &b);
        if (c->hidden) {
            ls_rows_norm(l, &part, ls_numbers_f32(c->hidden + first * l->C), b.mean, b.rstd);
            continue;
        }
        if (!c->losses) b.v.logits = (float *)c->y + first * l->V;
        ls_rows_norm(l, &part, ls_numbers_f32(b.h), b.mean, b.rstd);
        ls_vocabulary_logits(&b.v);
        if (c->losses) find_losses(&b);
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, most = ls_layer_block(l, rows, ls_mixed_rounds(c));
    int64_t first = 0, end = 0;
    ls_gemm_units units = ls_rows_units(c);
    do { /* also for no rows: gradients are set to 0 */
        end = ls_rows_block_end(&units, first, rows, most);
        ls_layer_call part = part_of(l, c, first, end - first);
        block b;
        block_open(l, c, &part, first, &b);
        ls_rows_norm(l, &part, ls_numbers_f32(b.h), b.mean, b.rstd);
        ls_vocabulary_logits(&b.v);
        find_losses(&b);
        ls_vocabulary_back(&b.v);
        if (b.v.dh) ls_rows_norm_back(l, &part, b.mean, b.rstd, b.v.dh, false);
        first = end;
    } while (first < rows);
}

static void describe(const ls_layer *l, ls_facts *f) {
    (void)l;
    f->is_gpt = true;
}

static const ls_layer_ops ops = {
    .kind = "head", .forward = forward, .backward = backward, .describe = describe};

void ls_gpt_head_declare(ls_layer *l, int64_t T, int64_t C, int64_t V) {
    ls_works unused = {0};
    l->ops = &ops;
    l->traits.on_device = true;
    l->end.predicts = LS_CLASSES;
    l->traits.norms = true;
    l->T = T;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(T * C);
    l->memory.block_floats = block_floats(C, V);
    l->half.as_stored = LS_OPERAND_X | LS_OPERAND_DX;
    l->memory.scratch = ls_rows_norm_scratch(C);
    ls_vocabulary_declare(l, C, V);
    ls_works_pass(&l->cost.backward, LS_WORK_NORM, T * C);
    ls_vocabulary_works(l, WTE, T);
    ls_works_norm(&unused, &l->cost.backward, T, C);
    ls_rows_norm_converts(l, T, C, false, false);
    ls_conversions_add(&l->cost.backward_converts, /* backward computes the norm, too */
                       (ls_conversion){.operand = LS_OPERAND_X, .numbers = T * C});
}
