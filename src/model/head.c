/* head.c - final layer norm, logits by the token embedding (tied), cross-entropy.
 *
 * params: gamma, beta [C]; wte [V, C], which belongs to the embedding
 * forward: x -> losses [n], or logits if the call has no losses.
 * backward: x -> losses, dx, and the beginning of wte's gradient (see embedding.c).
 *
 * The logits [rows, V] are the largest tensor, and are never in memory as a whole: backward
 * computes a block of rows from x to its gradient before the next block (as in Hsu et al., "Liger
 * Kernel", arXiv 2410.10989). Nothing is saved, and training needs no forward. Chains over rows
 * continue from block to block, so the size of a block does not affect the bits.
 */
#include <string.h>

#include "base/math.h"
#include "model/rows.h"
#include "model/table.h"
#include "tensor/dtype.h"
#include "tensor/gemm.h"

enum { WTE = 2 };
enum {
    TABLE_BLOCK = 2048,      /* rows of a table that are widened at a time */
    LOGITS_FLOATS = 16 << 20 /* per block */
};

/* A block of rows, and where its parts are in `work`. */
typedef struct block {
    const ls_layer *l;
    const ls_layer_call *c; /* of these rows alone: n = 1, T = rows */
    int64_t first;          /* its first row in the whole call */
    double *losses;         /* [rows] */
    float *h, *dh;          /* [rows, C] */
    float *mean, *rstd;     /* [rows] */
    float *stat;            /* [rows, 2] */
    float *logits;          /* [rows, V] */
    const ls_layer_call *whole;
} block;

static block block_of(const ls_layer *l, const ls_layer_call *whole, const ls_layer_call *part,
                      int64_t first) {
    int64_t rows = part->T;
    block b = {.l = l, .c = part, .first = first, .whole = whole};
    b.losses = (double *)(void *)part->work;
    b.h = part->work + 2 * rows;
    b.dh = b.h + rows * l->C;
    b.mean = b.dh + rows * l->C;
    b.rstd = b.mean + rows;
    b.stat = b.rstd + rows;
    b.logits = b.stat + 2 * rows;
    return b;
}

static size_t block_floats(int64_t C, int64_t V) { return (size_t)(2 * C + V + 6); }

static bool has_half_grads(const ls_layer_call *c) {
    return c->given && ls_dtype_is_half(c->given->grads_type);
}

/* The call of rows [first, first + rows). */
static ls_layer_call part_of(const ls_layer *l, const ls_layer_call *c, int64_t first,
                             int64_t rows) {
    ls_layer_call part = *c;
    part.n = 1;
    part.T = rows;
    part.x[0] = (const float *)c->x[0] + first * l->C;
    part.dx[0] = c->dx[0] ? (float *)c->dx[0] + first * l->C : NULL;
    part.grads_start = c->grads_start && first == 0;
    return part;
}

static uint32_t target_of(const block *b, int64_t r) {
    int64_t T = b->whole->T, row = b->first + r;
    return ls_layer_tokens(b->whole, row / T)[row % T + 1];
}

/* A table that has to be widened is used in blocks of the vocabulary. */
static int64_t table_rows(const ls_layer *l, const ls_layer_call *c) {
    return c->given && l->V > TABLE_BLOCK ? TABLE_BLOCK : l->V;
}

/* Computes the logits [rows, V] of a block from x. */
static void find_logits(const block *b, float *logits) {
    const ls_layer *l = b->l;
    const ls_layer_call *c = b->c;
    int64_t V = l->V, most = table_rows(l, c);
    ls_rows_norm(l, c, b->h, b->mean, b->rstd);
    for (int64_t v = 0; v < V; v += most) {
        int64_t n = V - v < most ? V - v : most;
        const float *w = ls_table_rows(l, c, WTE, v, n, c->room);
        ls_gemm(c->compute, &(ls_gemm_job){.M = c->T,
                                           .N = n,
                                           .K = l->C,
                                           .a = ls_matrix_of(b->h, l->C),
                                           .b = ls_matrix_transposed(w, l->C),
                                           .c = logits + v,
                                           .ldc = V});
    }
}

static void losses_run(void *arg, int thread, int nthreads) {
    const block *b = arg;
    int64_t r = 0, end = 0, V = b->l->V;
    ls_pool_share(b->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        const float *x = b->logits + r * V;
        float *stat = b->stat + 2 * r;
        double sum = (double)b->c->compute->k->cross_entropy(V, x, stat);
        b->losses[r] = ls_math_log(sum) + (double)stat[0] - (double)x[target_of(b, r)];
    }
}

/* A sample's loss is one chain over its positions, continued from block to block. */
static void find_losses(block *b) {
    const ls_layer_call *whole = b->whole;
    ls_pool_run(b->c->compute->pool, losses_run, b);
    for (int64_t r = 0; r < b->c->T; r++) {
        int64_t row = b->first + r;
        double *loss = &whole->losses[row / whole->T];
        *loss = (row % whole->T ? *loss : 0.0) + b->losses[r];
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, most = ls_layer_block(l, rows, has_half_grads(c));
    for (int64_t first = 0; first < rows; first += most) {
        ls_layer_call part = part_of(l, c, first, rows - first < most ? rows - first : most);
        block b = block_of(l, c, &part, first);
        find_logits(&b, c->losses ? b.logits : (float *)c->y + first * l->V);
        if (c->losses) find_losses(&b);
    }
}

static void dlogits_run(void *arg, int thread, int nthreads) {
    const block *b = arg;
    int64_t r = 0, end = 0, V = b->l->V;
    ls_pool_share(b->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++)
        b->c->compute->k->cross_entropy_dx(V, b->logits + r * V, b->stat + 2 * r, target_of(b, r),
                                           b->c->loss_scale);
}

/* Computes dh and the table's gradient from the gradient of the logits. */
static void back_through_table(const block *b) {
    const ls_layer *l = b->l;
    const ls_layer_call *c = b->c;
    int64_t rows = c->T, C = l->C, V = l->V, most = table_rows(l, c);
    for (int64_t v = 0; v < V; v += most) {
        int64_t n = V - v < most ? V - v : most;
        ls_table_grad g = ls_table_grad_begin(l, c, WTE, v, n, c->room);
        ls_gemm(c->compute, &(ls_gemm_job){.M = n,
                                           .N = C,
                                           .K = rows,
                                           .a = ls_matrix_transposed(b->logits + v, V),
                                           .b = ls_matrix_of(b->h, C),
                                           .c = g.p,
                                           .ldc = C,
                                           .start = g.start ? LS_GEMM_ZERO : LS_GEMM_ADD});
        ls_table_grad_end(l, c, WTE, v, n, &g);
        const float *w = ls_table_rows(l, c, WTE, v, n, c->room);
        ls_gemm(c->compute, &(ls_gemm_job){.M = rows,
                                           .N = C,
                                           .K = n,
                                           .a = ls_matrix_of(b->logits + v, V),
                                           .b = ls_matrix_of(w, C),
                                           .c = b->dh,
                                           .ldc = C,
                                           .start = v == 0 ? LS_GEMM_ZERO : LS_GEMM_ADD});
    }
}

/* The logits become their gradient in place. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * c->T, most = ls_layer_block(l, rows, has_half_grads(c));
    int64_t first = 0;
    do { /* also for no rows: gradients are set to 0 */
        ls_layer_call part = part_of(l, c, first, rows - first < most ? rows - first : most);
        block b = block_of(l, c, &part, first);
        find_logits(&b, b.logits);
        find_losses(&b);
        ls_pool_run(c->compute->pool, dlogits_run, &b);
        back_through_table(&b);
        ls_rows_norm_back(l, &part, b.mean, b.rstd, b.dh, NULL);
        first += most;
    } while (first < rows);
}

static const ls_layer_ops ops = {.kind = "head", .forward = forward, .backward = backward};

void ls_head_declare(ls_layer *l, int64_t T, int64_t C, int64_t V) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->ninputs = 1;
    l->input_floats[0] = (size_t)(T * C);
    l->V = V;
    l->block_floats = block_floats(C, V);
    l->block_rows = LOGITS_FLOATS / V < 64 ? 64 : LOGITS_FLOATS / V / 64 * 64;
    l->forward_flops = 2.0 * (double)(T * C * V);
    ls_works *b = &l->backward_work, unused = {0};
    ls_works_pass(b, LS_WORK_NORM, T * C);
    ls_works_product(b, LS_WORK_PRODUCT_DX, 0, V, C); /* the embedding, transposed */
    ls_works_pass(b, LS_WORK_LOSS, T * V);
    ls_works_pass(b, LS_WORK_LOSS_DX, T * V);
    ls_works_product(b, LS_WORK_PRODUCT_DW, V, C, 0);
    ls_works_product(b, LS_WORK_PRODUCT, 0, C, V);
    ls_works_norm(&unused, b, T, C);
    l->loss = true;
    l->ntables = 1;
    l->room_floats = (size_t)((V < TABLE_BLOCK ? V : TABLE_BLOCK) * C);
}
