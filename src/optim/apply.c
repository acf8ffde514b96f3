/* apply.c - see apply.h. */
#include "optim/apply.h"

#include <string.h>

#include "optim/whole.h"
#include "tensor/dtype.h"

typedef struct job {
    const ls_optim_update *u;
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

void ls_optim_finish_range(const ls_optim_update *u, const ls_kernels *k, size_t from, size_t n) {
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
    ls_optim_finish_range(u, j->k, from, n);
}

/* Updates elements [first, end), at most LS_BLOCK. *param_p: the first parameter that may have
 * elements in the range, on return that of the next block. */
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
        if (from < to) update_range(j, p, base + from, base + to);
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

/* Updates elements [first, end), which have no whole parameter. */
static void update_elements(const ls_optim_update *u, const ls_compute *c, size_t first,
                            size_t end) {
    job j = {.u = u, .k = c->k, .first = first, .end = end};
    if (first >= end) return;
    for (int g = 0; g < u->optim->ngroups; g++)
        for (int decay = 0; decay < 2; decay++)
            j.scalars[g][decay] = ls_optim_scalars(&u->optim->groups[g], &u->step, decay);
    ls_pool_run(c->pool, update_run, &j);
}

void ls_optim_apply(const ls_optim_update *u, const ls_compute *c, size_t first, size_t end) {
    size_t at = first;
    for (int i = 0; i < u->model->nparams; i++) {
        const ls_param *p = &u->model->params[i];
        if (!p->whole || p->frozen || p->offset < first || p->offset >= end) continue;
        update_elements(u, c, at, p->offset);
        ls_whole_update(u, c, i);
        at = (p->offset + p->count + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
    }
    update_elements(u, c, at, end);
}
