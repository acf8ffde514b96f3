/* apply.c - see apply.h. Where a whole parameter is updated, a worker's room has
 *
 *     head: what it is complete for, factors
 *     sums     [2][blocks]
 *     values   for applying
 *     scratch  for computing
 *     the gradient in f32, if gradients have 16 bits
 */
#include "optim/apply.h"

#include <stdatomic.h>
#include <string.h>

#include "base/round_up.h"
#include "model/mixed_device.h"
#include "tensor/dtype.h"
#include "tensor/update_device.h"

/* ---- ranges of elements ---- */

typedef struct job {
    const ls_optim_update *u;
    const ls_compute *c;
    const ls_kernels *k;
    size_t first, end;
    ls_update_scalars scalars[LS_OPTIM_GROUPS][2]; /* without weight decay, and with it */
} job;

/* Includes elements [from, from + n) in the average, which begins with the first update. */
static void average_range(const ls_optim_update *u, const ls_kernels *k, int ema, size_t from,
                          size_t n) {
    const float *params = u->flat.of[0] + from;
    float *mean = u->flat.of[1 + ema] + from;
    if (u->step.updates == 0)
        memcpy(mean, params, n * sizeof *mean);
    else
        k->ema((int64_t)n, (float)(1 - u->optim->ema), params, mean);
}

static void finish_range(const ls_optim_update *u, const ls_kernels *k, size_t from, size_t n) {
    int ema = ls_optim_ema(u->optim);
    if (ema >= 0) average_range(u, k, ema, from, n);
    if (ls_dtype_is_half(u->params_type))
        k->narrow(u->params_type, n, u->flat.of[0] + from, (uint16_t *)u->params + from);
}

/* A new running value; batch [n]: the sum over the samples of the batch's values. */
static void update_running(const job *j, const ls_param *p, size_t from, size_t n, float *batch) {
    float *x = j->u->flat.of[0] + from;
    for (size_t i = 0; p->balances && i < n; i++)
        x[i] += batch[i] < 0 ? p->momentum : batch[i] > 0 ? -p->momentum : 0;
    if (p->balances) return;
    for (size_t i = 0; i < n; i++) batch[i] /= (float)j->u->step.samples;
    j->k->ema((int64_t)n, p->momentum, batch, x);
}

/* Queues the update of elements [from, to) of one parameter on the device that has all buffers. */
static void update_there(const job *j, const ls_param *p, size_t from, size_t to) {
    const ls_optim_update *u = j->u;
    const ls_optim_group *g = &u->optim->groups[p->group];
    int ema = ls_optim_ema(u->optim);
    float *states[LS_OPTIM_STATES] = {0}, *params = u->flat.of[0] + from;
    const float *grad = ls_flat_at(u->grads_type, u->grads, from);
    const ls_running_call running = {(int64_t)(to - from), p->momentum, (float)u->step.samples,
                                     p->balances};
    for (int i = 1; i < u->flat.n; i++) states[i - 1] = u->flat.of[i] + from;
    if (p->momentum > 0)
        ls_update_device_running(j->c, &running, grad, params);
    else
        ls_update_device(j->c, &(ls_update_device_call){
                                   .rule = g->rule,
                                   .n = (int64_t)(to - from),
                                   .scalars = &j->scalars[p->group][p->decay || g->decays_all],
                                   .grad = grad,
                                   .param = params,
                                   .states = states});
    if (ema >= 0)
        ls_update_device_ema(j->c, (int64_t)(to - from), (float)(1 - u->optim->ema),
                             u->step.updates == 0, params, u->flat.of[1 + ema] + from);
}

/* Updates elements [from, to) of one parameter, at most LS_BLOCK. */
static void update_range(const job *j, const ls_param *p, size_t from, size_t to) {
    const ls_optim_update *u = j->u;
    const ls_optim_group *g = &u->optim->groups[p->group];
    bool half_grads = ls_dtype_is_half(u->grads_type), runs = p->momentum > 0;
    float wide[LS_BLOCK], *states[LS_OPTIM_STATES] = {0};
    size_t n = to - from;
    const void *grads = ls_flat_at(u->grads_type, u->grads, from);
    if (half_grads)
        j->k->widen(u->grads_type, n, grads, wide);
    else if (runs)
        memcpy(wide, grads, n * sizeof *wide);
    for (int i = 1; i < u->flat.n; i++) states[i - 1] = u->flat.of[i] + from;
    if (runs)
        update_running(j, p, from, n, wide);
    else
        j->k->update[g->rule]((int64_t)n, &j->scalars[p->group][p->decay || g->decays_all],
                              half_grads ? wide : grads, u->flat.of[0] + from, states);
    finish_range(u, j->k, from, n);
}

/* Updates elements [first, end), at most LS_BLOCK but on a device. *param_p: the first parameter
 * that may have elements in the range, on return that of the next block. */
static void update_block(const job *j, size_t first, size_t end, int *param_p) {
    const ls_model *m = j->u->model;
    size_t base = j->u->base;
    int i = *param_p;
    first -= base;
    end -= base;
    for (; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (p->frozen) continue;
        if (p->offset >= end) break;
        size_t from = p->offset > first ? p->offset : first;
        size_t to = p->offset + p->count < end ? p->offset + p->count : end;
        if (from < to) (j->c->device ? update_there : update_range)(j, p, base + from, base + to);
        if (p->offset + p->count <= end) *param_p = i + 1;
    }
}

static void update_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_optim_update *u = j->u;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)(j->end - j->first), LS_BLOCK, thread, nthreads, &a, &b);
    size_t first = j->first + (size_t)a, end = j->first + (size_t)b;
    int param = 0;
    for (size_t at = first; at < end; at += LS_BLOCK) {
        if (u->journal && ls_journal_has(u->journal, at, u->steps)) continue;
        if (u->journal) ls_journal_begin(u->journal, thread, at, &u->flat);
        update_block(j, at, end - at < LS_BLOCK ? end : at + LS_BLOCK, &param);
        if (u->journal) ls_journal_end(u->journal, at, u->steps);
    }
}

/* Queues the rounding of n new parameters that layers read: in f32, as all that a device has. */
static void round_there(const ls_optim_update *u, const ls_compute *c, size_t first, size_t n) {
    float *params = (float *)u->params + first;
    if (!ls_dtype_is_half(u->params_type)) return;
    ls_device_copy(c->device, LS_DEVICE_COMPUTE, params, u->flat.of[0] + first, n * sizeof *params);
    ls_device_round(c, u->params_type, n, params);
}

/* Updates elements [first, end), which have no whole parameter. */
static void update_elements(const ls_optim_update *u, const ls_compute *c, size_t first,
                            size_t end) {
    job j = {.u = u, .c = c, .k = c->k, .first = first, .end = end};
    int param = 0;
    if (first >= end) return;
    for (int g = 0; g < u->optim->ngroups; g++)
        for (int decay = 0; decay < 2; decay++)
            j.scalars[g][decay] = ls_optim_scalars(&u->optim->groups[g], &u->step, decay);
    if (c->device) {
        update_block(&j, first, end, &param);
        round_there(u, c, first, end - first);
    } else {
        ls_pool_run_sized(c->pool, (int64_t)(end - first), update_run, &j);
    }
}

/* ---- whole parameters ---- */

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
static size_t vectors(size_t n) { return ls_round_up(n, 16); }

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
        if (!p->cut.whole || p->frozen || !rule_of(o, p)) continue;
        size_t floats = floats_of(o, p, grads_type);
        if (floats > most) most = floats;
    }
    return most ? sizeof(head) + most * sizeof(float) : 0;
}

void ls_whole_products(const ls_optim *o, const ls_param *p, ls_whole_product *list) {
    memset(list, 0, LS_WHOLE_PRODUCTS * sizeof *list);
    if (p->cut.whole && !p->frozen) rule_of(o, p)->products(p, list);
}

typedef struct widening {
    const ls_optim_update *u;
    float *to; /* [count] */
} widening;

static void widen(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    const widening *w = arg;
    const void *grads = ls_flat_at(w->u->grads_type, w->u->grads, c->p->offset + from);
    c->c->k->widen(w->u->grads_type, n, grads, w->to + from);
}

/* The call of a rule for a whole parameter, whose gradient is widened if it has 16 bits. */
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
        finish_range(u, a->call->c->k, at, n);
        if (u->journal) ls_journal_end(u->journal, at, u->steps);
    }
}

static void update_whole(const ls_optim_update *u, const ls_compute *c, int param) {
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

/* ---- both ---- */

void ls_optim_apply(const ls_optim_update *u, const ls_compute *c, size_t first, size_t end) {
    size_t at = first;
    for (int i = 0; i < u->model->nparams; i++) {
        const ls_param *p = &u->model->params[i];
        if (!p->cut.whole || p->frozen || p->offset < first || p->offset >= end) continue;
        update_elements(u, c, at, p->offset);
        update_whole(u, c, i);
        at = ls_round_up(p->offset + p->count, LS_BLOCK);
    }
    update_elements(u, c, at, end);
}
