/* whole.c - see whole.h. A worker's room:
 *
 *     head: what it is complete for, factors
 *     sums     [2][blocks]
 *     values   for applying
 *     scratch  for computing
 *     the gradient in f32, if gradients have 16 bits
 */
#include "optim/whole.h"

#include <stdatomic.h>
#include <string.h>

#include "optim/whole_rule.h"
#include "tensor/dtype.h"

typedef struct head {
    _Alignas(64) atomic_ullong what; /* 1 + parameter, in the lower half the steps; 0: none */
    double factors[LS_WHOLE_FACTORS];
} head;

static const ls_whole_rule *rule_of(const ls_optim *o, const ls_param *p) {
    static const ls_whole_rule *const rules[LS_NRULES] = {[LS_RULE_LARS] = &ls_lars,
                                                          [LS_RULE_LAMB] = &ls_lamb,
                                                          [LS_RULE_ONEBIT_LAMB] = &ls_onebit_lamb,
                                                          [LS_RULE_ADAFACTOR] = &ls_adafactor,
                                                          [LS_RULE_MUON] = &ls_muon,
                                                          [LS_RULE_SOAP] = &ls_soap,
                                                          [LS_RULE_ROWWISE_ADAGRAD] = &ls_rowwise};
    return rules[o->groups[p->group].rule];
}

static size_t blocks_of(const ls_param *p) { return (p->count + LS_BLOCK - 1) / LS_BLOCK; }

/* Each part of the room begins a vector. */
static size_t vectors(size_t n) { return (n + 15) / 16 * 16; }

static size_t sums_of(const ls_param *p) {
    return vectors(2 * blocks_of(p) * sizeof(double) / sizeof(float));
}

static size_t floats_of(const ls_optim *o, const ls_param *p, ls_dtype grads_type) {
    const ls_whole_rule *r = rule_of(o, p);
    size_t grads = ls_dtype_is_half(grads_type) ? p->count : 0;
    return sums_of(p) + vectors(r->values(p)) + vectors(r->scratch(p)) + grads;
}

size_t ls_whole_nbytes(const ls_optim *o, const ls_model *m, ls_dtype grads_type) {
    size_t most = 0;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (!p->whole || p->frozen) continue;
        size_t floats = floats_of(o, p, grads_type);
        if (floats > most) most = floats;
    }
    return most ? sizeof(head) + most * sizeof(float) : 0;
}

size_t ls_whole_none(const ls_param *p) {
    (void)p;
    return 0;
}

void ls_whole_no_products(const ls_param *p, ls_whole_product *list) {
    (void)p;
    (void)list;
}

void ls_whole_products(const ls_optim *o, const ls_param *p, ls_whole_product *list) {
    memset(list, 0, LS_WHOLE_PRODUCTS * sizeof *list);
    if (p->whole && !p->frozen) rule_of(o, p)->products(p, list);
}

/* ---- blocks ---- */

typedef struct blocks {
    const ls_whole_call *call;
    ls_whole_block_fn *fn;
    void *arg;
} blocks;

static void blocks_run(void *arg, int thread, int nthreads) {
    const blocks *b = arg;
    size_t count = b->call->p->count;
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)count, LS_BLOCK, thread, nthreads, &first, &end);
    for (size_t at = (size_t)first; at < (size_t)end; at += LS_BLOCK)
        b->fn(b->call, b->arg, at, count - at < LS_BLOCK ? count - at : LS_BLOCK);
}

void ls_whole_each_block(const ls_whole_call *c, ls_whole_block_fn *fn, void *arg) {
    blocks b = {c, fn, arg};
    ls_pool_run(c->c->pool, blocks_run, &b);
}

double ls_whole_total(const ls_whole_call *c, const double *sums) {
    double total = 0;
    for (size_t i = 0; i < blocks_of(c->p); i++) total += sums[i];
    return total;
}

/* ---- one update ---- */

typedef struct widening {
    const ls_optim_update *u;
    float *to; /* [count] */
} widening;

static void widen(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    const widening *w = arg;
    const void *grads = ls_flat_at(w->u->grads_type, w->u->grads, c->p->offset + from);
    c->c->k->widen(w->u->grads_type, n, grads, w->to + from);
}

/* Its gradient is widened if it has 16 bits. */
static ls_whole_call call_of(const ls_optim_update *u, const ls_compute *c, const ls_param *p) {
    const ls_optim_group *g = &u->optim->groups[p->group];
    const ls_whole_rule *r = rule_of(u->optim, p);
    head *h = u->room;
    float *floats = (float *)(void *)(h + 1);
    ls_whole_call call = {.c = c,
                          .p = p,
                          .updates = u->step.updates,
                          .s = ls_optim_scalars(g, &u->step, p->decay || g->decays_all),
                          .params = u->flat.of[0] + p->offset,
                          .factors = h->factors,
                          .sums = (double *)(void *)floats};
    call.values = floats + sums_of(p);
    call.scratch = call.values + vectors(r->values(p));
    for (int i = 1; i < u->flat.n; i++) call.states[i - 1] = u->flat.of[i] + p->offset;
    if (ls_dtype_is_half(u->grads_type)) {
        widening w = {u, call.scratch + vectors(r->scratch(p))};
        ls_whole_each_block(&call, widen, &w);
        call.grads = w.to;
    } else {
        call.grads = ls_flat_at(u->grads_type, u->grads, p->offset);
    }
    return call;
}

typedef struct applying {
    const ls_optim_update *u;
    const ls_whole_call *call;
} applying;

static bool has_had(const ls_optim_update *u, const ls_param *p) {
    bool all = u->journal != NULL;
    for (size_t at = 0; all && at < p->count; at += LS_BLOCK)
        all = ls_journal_has(u->journal, p->offset + at, u->steps);
    return all;
}

static void apply_run(void *arg, int thread, int nthreads) {
    const applying *a = arg;
    const ls_optim_update *u = a->u;
    const ls_param *p = a->call->p;
    const ls_whole_rule *r = rule_of(u->optim, p);
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)p->count, LS_BLOCK, thread, nthreads, &first, &end);
    for (size_t from = (size_t)first; from < (size_t)end; from += LS_BLOCK) {
        size_t n = p->count - from < LS_BLOCK ? p->count - from : LS_BLOCK, at = p->offset + from;
        if (u->journal && ls_journal_has(u->journal, at, u->steps)) continue;
        if (u->journal) ls_journal_begin(u->journal, thread, at, &u->flat);
        r->apply(a->call, from, n);
        ls_optim_finish_range(u, a->call->c->k, at, n);
        if (u->journal) ls_journal_end(u->journal, at, u->steps);
    }
}

void ls_whole_update(const ls_optim_update *u, const ls_compute *c, int param) {
    const ls_param *p = &u->model->params[param];
    unsigned long long what = (unsigned long long)(param + 1) << 32 | u->steps;
    head *h = u->room;
    if (has_had(u, p)) return;
    ls_whole_call call = call_of(u, c, p);
    if (!u->journal || atomic_load(&h->what) != what) {
        atomic_store(&h->what, 0);
        atomic_signal_fence(memory_order_seq_cst);
        rule_of(u->optim, p)->compute(&call);
        if (u->journal) atomic_store(&h->what, what);
        atomic_signal_fence(memory_order_seq_cst);
    }
    applying a = {u, &call};
    ls_pool_run(c->pool, apply_run, &a);
    atomic_store(&h->what, 0);
}
