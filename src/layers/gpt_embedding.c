/* gpt_embedding.c - y = token embedding + position embedding, with a mask if there is dropout.
 *
 * params: wte [V, C] (tied: the head uses it too), wpe [T, C]
 * forward: tokens -> y [rows, C]. backward: dy -> gradients; no dx.
 *
 * Backward runs once for all samples of a virtual worker (backward_whole): wte's gradient is one
 * chain that begins with the head's product over all rows and continues here with the rows of each
 * token, so all micro-batches of the head must come first.
 */
#include "layers/gpt.h"

#include <assert.h>
#include <string.h>

#include "layers/dropout.h"
#include "layers/embedding_device.h"
#include "model/stored_table.h"
#include "tensor/dtype.h"

enum { WTE, WPE };

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* Columns [c0, c0 + n) of row t of a sample, with the mask if it acts: x, or y. */
static const float *drop(const job *j, int64_t r, int64_t c0, int64_t n, const float *x, float *y) {
    const ls_layer_call *c = j->c;
    const ls_dropout_mask *mask = &LS_LAYER_OWN_OF(ls_dropout_mask, j->l);
    if (!ls_dropout_acts(mask, c)) return x;
    ls_dropout_place place = ls_dropout_place_of(mask, c, r / c->T);
    c->compute->k->dropout(&place, r % c->T * j->l->C + c0, n, x, y);
    return y;
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    float *y = c->y;
    int64_t C = j->l->C, r = 0, end = 0;
    float *room = ls_compute_scratch(c->compute, thread);
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        int64_t sample = r / c->T, t = r % c->T;
        int64_t token = ls_layer_tokens(c, sample)[t];
        const float *word = ls_table_row(j->l, c, WTE, token, room);
        const float *place = ls_table_row(j->l, c, WPE, ls_past_place(&c->past, t), room + C);
        c->compute->k->add(C, word, place, y + r * C);
        drop(j, r, 0, C, y + r * C, y + r * C);
    }
}

/* A table as a device reads it. */
static const float *whole_table(const ls_layer *l, const ls_layer_call *c, int table) {
    ls_stored t = ls_table_stored(l, c, table, 0);
    assert(t.type == LS_BLOCK_F32);
    return t.data;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        ls_embedding_device_forward(l, c, &(ls_device_ids){c->samples, 0}, whole_table(l, c, WTE),
                                    whole_table(l, c, WPE) + c->past.n * l->C);
        ls_dropout_rows(c, &LS_LAYER_OWN_OF(ls_dropout_mask, l), l->C, c->y);
        return;
    }
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

typedef struct sums {
    const ls_layer *l;
    const ls_layer_call *c;
    float *dwte, *dwpe;   /* NULL: the table is frozen */
    const int32_t *place; /* [rows] the row of dwte; NULL: the token */
} sums;

static void add_row(const ls_kernels *k, int64_t n, const float *x, float *sum) {
    k->add(n, sum, x, sum);
}

/* Threads split the columns, so that every chain runs over the rows in order. */
static void sums_run(void *arg, int thread, int nthreads) {
    const sums *j = arg;
    const ls_layer_call *c = j->c;
    const float *all = c->dy;
    int64_t C = j->l->C, c0 = 0, c1 = 0;
    ls_pool_share(C, 16, thread, nthreads, &c0, &c1);
    int64_t width = c1 - c0;
    float *room = ls_compute_scratch(c->compute, thread);
    if (width == 0) return;
    for (int64_t t = 0; c->grads_start && j->dwpe && t < c->T; t++)
        memset(j->dwpe + t * C + c0, 0, (size_t)width * sizeof(float));
    for (int64_t r = 0; r < c->n * c->T; r++) {
        int64_t sample = r / c->T, t = r % c->T;
        int64_t row = ls_layer_tokens(c, sample)[t];
        if (j->place) row = j->place[r];
        const float *dy = drop(&(job){j->l, c}, r, c0, width, all + r * C + c0, room);
        if (j->dwte) add_row(c->compute->k, width, dy, j->dwte + row * C + c0);
        if (j->dwpe) add_row(c->compute->k, width, dy, j->dwpe + t * C + c0);
    }
}

/* The stored gradient of a table, in 16 bits; NULL: the table is frozen. */
static void *stored_grad(const ls_layer *l, const ls_layer_call *c, int table) {
    const ls_layer_call *s = c->given;
    return !ls_layer_trains(l, table)
               ? NULL
               : ls_flat_at_mut(s->grads_type, s->grads, l->link.offsets[table]);
}

/* room: the row of each token [V] | dwpe [T, C] | the row of each position [rows] | dwte of the
 * tokens that occur [rows, C] */
static void backward_half(const ls_layer *l, const ls_layer_call *c) {
    ls_dtype type = c->given->grads_type;
    int64_t C = l->C, rows = c->n * c->T, used = 0;
    int32_t *row_of_token = (int32_t *)(void *)c->room;
    float *dwpe = c->room + l->V;
    int32_t *place = (int32_t *)(void *)(dwpe + l->T * C);
    float *dwte = (float *)(void *)place + rows;
    void *wte = stored_grad(l, c, WTE), *wpe = stored_grad(l, c, WPE);
    for (int64_t v = 0; v < l->V; v++) row_of_token[v] = -1;
    for (int64_t r = 0; wte && r < rows; r++) {
        uint32_t token = ls_layer_tokens(c, r / c->T)[r % c->T];
        if (row_of_token[token] < 0) {
            row_of_token[token] = (int32_t)used;
            c->compute->k->widen(type, (size_t)C, ls_flat_at(type, wte, (size_t)token * (size_t)C),
                                 dwte + C * used++);
        }
        place[r] = row_of_token[token];
    }
    if (!c->grads_start && wpe) ls_table_widen(c->compute, type, (size_t)(c->T * C), wpe, dwpe);
    ls_pool_run(c->compute->pool, sums_run,
                &(sums){l, c, wte ? dwte : NULL, wpe ? dwpe : NULL, wte ? place : NULL});
    for (int64_t v = 0; v < l->V; v++)
        if (row_of_token[v] >= 0)
            c->compute->k->narrow(type, (size_t)C, dwte + C * row_of_token[v],
                                  ls_flat_at_mut(type, wte, (size_t)(v * C)));
    if (wpe) ls_table_narrow(c->compute, type, (size_t)(c->T * C), dwpe, wpe);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->given && ls_dtype_is_half(c->given->grads_type)) {
        backward_half(l, c);
        return;
    }
    float *grads = c->given ? c->given->grads : c->grads;
    sums j = {.l = l, .c = c};
    if (ls_layer_trains(l, WTE)) j.dwte = grads + l->link.offsets[WTE];
    if (ls_layer_trains(l, WPE)) j.dwpe = grads + l->link.offsets[WPE];
    if (c->compute->device) {
        ls_matrix dy = ls_dropout_of_dy(l, c, &LS_LAYER_OWN_OF(ls_dropout_mask, l), c->work);
        ls_embedding_device_backward(l, c, &(ls_device_ids){c->samples, 0}, dy.p, j.dwte, j.dwpe);
        return;
    }
    ls_pool_run(c->compute->pool, sums_run, &j);
}

static void describe(const ls_layer *l, ls_facts *f) {
    (void)l;
    f->is_gpt = true;
}

static const ls_layer_ops ops = {
    .kind = "embedding", .forward = forward, .backward = backward, .describe = describe};

void ls_gpt_embedding_declare(ls_layer *l, int64_t T, int64_t C, int64_t V) {
    l->ops = &ops;
    l->traits.on_device = true;
    l->T = T;
    l->C = C;
    l->V = V;
    l->y_floats = (size_t)(T * C);
    l->half.ntables = 2;
    l->nfields = 1; /* the tokens, the only field */
    l->memory.scratch = (size_t)(2 * C);
    l->half.room_floats = (size_t)(V + T * C);
    l->half.room_each = (size_t)(T * (C + 1));
    l->half.room_always = true;
    l->traits.backward_whole = true;
    l->traits.backward_alone = true;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, T * C);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, 2 * T * C);
}

void ls_gpt_embedding_drop(ls_layer *l, float rate) {
    l->memory.work = (size_t)(l->T * l->C); /* a device's dy with the mask */
    LS_LAYER_OWN_AS(ls_dropout_mask, l) =
        (ls_dropout_mask){.rate = rate, .number = LS_DROPOUT_EMBEDDING};
    ls_works_dropout(&l->cost.forward, l->T * l->C);
    ls_works_dropout(&l->cost.backward, l->T * l->C);
}
