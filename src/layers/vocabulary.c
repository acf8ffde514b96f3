/* vocabulary.c - see vocabulary.h. */
#include "layers/vocabulary.h"

#include "base/math.h"
#include "layers/vocabulary_device.h"
#include "model/mixed.h"
#include "model/stored_table.h"
#include "tensor/gemm.h"
#include "tensor/gemv.h"

enum {
    TABLE_BLOCK = 512,       /* rows of a gradient that are rounded at a time */
    LOGITS_FLOATS = 16 << 20 /* per block */
};

/* A gradient that has to be rounded is computed in blocks of the vocabulary, unless its chains are
 * in memory. */
static int64_t gradient_rows(const ls_vocabulary *b) {
    bool whole = b->start && b->end; /* all rows are in one block */
    return ls_mixed_rounds(b->c) && whole && b->l->V > TABLE_BLOCK ? TABLE_BLOCK : b->l->V;
}

void ls_vocabulary_logits(const ls_vocabulary *b) {
    const ls_layer *l = b->l;
    ls_stored w = ls_table_stored(l, b->c, b->table, 0);
    if (b->rows == 1 && !b->c->compute->device)
        ls_gemv_table(b->c->compute, &(ls_gemv_table_job){.w = w,
                                                          .V = l->V,
                                                          .C = l->C,
                                                          .x = b->h,
                                                          .y = b->logits,
                                                          .bf16 = ls_layer_in_bf16(b->c)});
    else
        ls_gemm(b->c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(b->c),
                                              .M = b->rows,
                                              .N = l->V,
                                              .K = l->C,
                                              .a = ls_matrix_of(b->h, l->C),
                                              .w = ls_weights_transposed(w, l->C),
                                              .c = b->logits,
                                              .ldc = l->V});
}

static void losses_run(void *arg, int thread, int nthreads) {
    const ls_vocabulary *b = arg;
    int64_t r = 0, end = 0, V = b->l->V;
    ls_pool_share(b->rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        const float *x = b->logits + r * V;
        float *stat = b->stat + 2 * r;
        double sum = (double)b->c->compute->k->cross_entropy(V, x, stat);
        b->losses[r] = ls_math_log(sum) + (double)stat[0] - (double)x[b->target(b->arg, r)];
    }
}

void ls_vocabulary_losses(const ls_vocabulary *b) {
    ls_vocabulary job = *b;
    if (b->c->compute->device)
        ls_vocabulary_device_losses(b);
    else
        ls_pool_run(b->c->compute->pool, losses_run, &job);
}

/* Replaces the row's logits of a slice by their gradient. A stat below 0 marks a row where that is
 * done. */
static void slice_dlogits(const ls_vocabulary *b, int64_t r, float *x) {
    float *stat = b->stat + 2 * r;
    int64_t target = b->target(b->arg, r);
    if (stat[1] < 0) return;
    b->c->compute->k->cross_entropy_dx(b->l->V, x, stat, -1, b->gradient[2 * r]);
    if (target >= 0) x[target] += b->gradient[2 * r + 1];
    if (ls_layer_in_bf16(b->c)) b->c->compute->k->to_bf16(b->l->V, x, x);
    stat[1] = -1;
}

static void dlogits_run(void *arg, int thread, int nthreads) {
    const ls_vocabulary *b = arg;
    const ls_kernels *k = b->c->compute->k;
    int64_t r = 0, end = 0, V = b->l->V;
    ls_pool_share(b->rows, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        float *x = b->logits + r * V;
        if (b->gradient) {
            slice_dlogits(b, r, x);
            continue;
        }
        k->cross_entropy_dx(V, x, b->stat + 2 * r, b->target(b->arg, r), b->scale(b->arg, r));
        if (ls_layer_in_bf16(b->c)) k->to_bf16(V, x, x);
    }
}

/* The gradient of the logits [rows, V]. In bf16 a row has the first half of its place; a device
 * does not round it before its products do. */
static ls_matrix dlogits_of(const ls_vocabulary *b) {
    bool half = ls_layer_in_bf16(b->c) && !b->c->compute->device;
    return (ls_matrix){b->logits, (half ? 2 : 1) * b->l->V, 1, half};
}

/* The gradient of rows [v, v + n) of the table: += dlogits^T . h */
static void add_to_table(const ls_vocabulary *b, int64_t v, int64_t n) {
    const ls_layer *l = b->l;
    ls_layer_call given, c = *b->c;
    if (c.given) { /* the first and the last block of the rows begin and end its sum */
        given = *c.given;
        given.first = given.first && b->start;
        given.last = given.last && b->end;
        c.given = &given;
    }
    ls_table_grad g = ls_table_grad_begin(l, &c, b->table, v, n, c.room);
    if (!g.p) return; /* it is frozen */
    uint16_t *rounded = ls_table_grad_rounded(l, &c, b->table, v);
    ls_gemm(b->c->compute,
            &(ls_gemm_job){.bf16 = ls_layer_in_bf16(b->c),
                           .M = n,
                           .N = l->C,
                           .K = b->rows,
                           .a = ls_matrix_across(ls_matrix_from(dlogits_of(b), 0, v)),
                           .b = ls_matrix_of(b->h, l->C),
                           .c = g.p,
                           .ldc = l->C,
                           .rounded = rounded,
                           .units = b->units,
                           .start = g.start && b->start ? LS_GEMM_ZERO : LS_GEMM_ADD});
    if (!rounded) ls_table_grad_end(l, &c, b->table, v, n, &g);
}

void ls_vocabulary_back(const ls_vocabulary *b) {
    const ls_layer *l = b->l;
    int64_t C = l->C, V = l->V, most = gradient_rows(b);
    ls_vocabulary job = *b;
    if (b->c->compute->device)
        ls_vocabulary_device_dlogits(b);
    else
        ls_pool_run(b->c->compute->pool, dlogits_run, &job);
    for (int64_t v = 0; v < V; v += most) add_to_table(b, v, V - v < most ? V - v : most);
    if (!b->dh) return;
    ls_stored w = ls_table_stored(l, b->c, b->table, 0);
    ls_gemm(b->c->compute, &(ls_gemm_job){.bf16 = ls_layer_in_bf16(b->c),
                                          .M = b->rows,
                                          .N = C,
                                          .K = V,
                                          .a = dlogits_of(b),
                                          .w = ls_weights_of(w, C),
                                          .c = b->dh,
                                          .ldc = C});
}

void ls_vocabulary_declare(ls_layer *l, int64_t C, int64_t V) {
    l->C = C;
    l->V = V;
    l->memory.block_rows = LOGITS_FLOATS / V < 64 ? 64 : LOGITS_FLOATS / V / 64 * 64;
    l->traits.loss = true;
    l->half.ntables = 1;
    l->half.room_floats = (size_t)((V < TABLE_BLOCK ? V : TABLE_BLOCK) * C);
    l->half.chain_floats = (size_t)(V * C);
}

void ls_vocabulary_works(ls_layer *l, int table, int64_t T) {
    int64_t C = l->C, V = l->V;
    ls_works *b = &l->cost.backward;
    l->cost.flops = 2.0 * (double)(T * C * V);
    ls_works_product(b, LS_WORK_PRODUCT_DX, 0, V, C); /* the table, transposed */
    ls_works_pass(b, LS_WORK_LOSS, T * V);
    ls_works_pass(b, LS_WORK_LOSS_DX, T * V);
    ls_works_product(b, LS_WORK_PRODUCT_DW, V, C, 0);
    ls_works_grads(b, 1u << table);
    ls_works_product(b, LS_WORK_PRODUCT, 0, C, V);
    ls_conversions_add(&l->cost.backward_converts, /* the gradient of the logits */
                       (ls_conversion){.operand = LS_OPERAND_X, .rounds = true, .numbers = T * V});
}
