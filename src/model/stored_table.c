/* stored_table.c - see stored_table.h. */
#include "model/stored_table.h"

#include "base/mem.h"
#include "tensor/dtype.h"

typedef struct convert {
    const ls_kernels *k;
    ls_dtype type;
    size_t n;
    const void *from;
    void *to;
} convert;

static void widen_run(void *arg, int thread, int nthreads) {
    const convert *j = arg;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)j->n, 64, thread, nthreads, &a, &b);
    j->k->widen(j->type, (size_t)(b - a), ls_flat_at(j->type, j->from, (size_t)a),
                (float *)j->to + a);
}

static void narrow_run(void *arg, int thread, int nthreads) {
    const convert *j = arg;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)j->n, 64, thread, nthreads, &a, &b);
    j->k->narrow(j->type, (size_t)(b - a), (const float *)j->from + a,
                 ls_flat_at_mut(j->type, j->to, (size_t)a));
}

void ls_table_widen(const ls_compute *c, ls_dtype type, size_t n, const void *from, float *to) {
    ls_pool_run(c->pool, widen_run, &(convert){c->k, type, n, from, to});
}

void ls_table_narrow(const ls_compute *c, ls_dtype type, size_t n, const float *from, void *to) {
    ls_pool_run(c->pool, narrow_run, &(convert){c->k, type, n, from, to});
}

ls_status ls_table_round(const ls_compute *c, ls_dtype type, size_t n, void **weights_p,
                         size_t *nbytes_p, ls_error *e) {
    size_t nbytes = n * ls_dtype_size(type);
    void *rounded = NULL;
    LS_TRY(ls_map(nbytes, "weights", &rounded, e));
    ls_table_narrow(c, type, n, *weights_p, rounded);
    ls_unmap(*weights_p, *nbytes_p);
    *weights_p = rounded;
    *nbytes_p = nbytes;
    return LS_OK;
}

static size_t place(const ls_layer *l, int i, int64_t row) {
    return l->link.offsets[i] + (size_t)(row * l->C);
}

ls_stored ls_table_stored(const ls_layer *l, const ls_layer_call *c, int i, int64_t row) {
    const ls_layer_call *s = c->given;
    if (l->link.frozen[i]) return ls_stored_at(c->frozen[l->params[i]], row * l->C);
    ls_dtype type = s ? s->type : LS_F32;
    return (ls_stored){.data = ls_flat_at(type, s ? s->params : c->params, place(l, i, row)),
                       .type = ls_block_of_dtype(type)};
}

const float *ls_table_row(const ls_layer *l, const ls_layer_call *c, int i, int64_t row,
                          float *room) {
    ls_stored from = ls_table_stored(l, c, i, row);
    if (from.type == LS_BLOCK_F32) return from.data;
    ls_stored_read(c->compute->k, from, 0, l->C, room);
    return room;
}

ls_table_grad ls_table_grad_begin(const ls_layer *l, const ls_layer_call *c, int i, int64_t first,
                                  int64_t n, float *room) {
    const ls_layer_call *s = c->given;
    size_t at = place(l, i, first);
    if (l->link.frozen[i]) return (ls_table_grad){0};
    if (!s) return (ls_table_grad){(float *)c->grads + at, c->grads_start};
    void *stored = ls_flat_at_mut(s->grads_type, s->grads, at);
    if (!ls_dtype_is_half(s->grads_type)) return (ls_table_grad){stored, c->grads_start};
    float *p = s->wide ? s->wide + at : room;
    if (!s->first) return (ls_table_grad){p, false}; /* the chains are there */
    if (!c->grads_start) ls_table_widen(c->compute, s->grads_type, (size_t)(n * l->C), stored, p);
    return (ls_table_grad){p, c->grads_start};
}

uint16_t *ls_table_grad_rounded(const ls_layer *l, const ls_layer_call *c, int i, int64_t first) {
    return ls_layer_products_round(c) ? (uint16_t *)c->given->grads + place(l, i, first) : NULL;
}

void ls_table_grad_end(const ls_layer *l, const ls_layer_call *c, int i, int64_t first, int64_t n,
                       const ls_table_grad *g) {
    const ls_layer_call *s = c->given;
    if (!g->p || !s || !ls_dtype_is_half(s->grads_type) || !s->last) return;
    ls_table_narrow(c->compute, s->grads_type, (size_t)(n * l->C), g->p,
                    ls_flat_at_mut(s->grads_type, s->grads, place(l, i, first)));
}
