/* outer.c - see outer.h. */
#include "optim/outer.h"

#include "tensor/dtype.h"

typedef struct job {
    const ls_outer_change *c;
    const ls_kernels *k;
    size_t first, end;
    ls_update_scalars scalars;
} job;

/* In this order of operations, on any processor. */
static void mix(const ls_outer_change *c, size_t from, size_t n) {
    float *x = c->flat.of[0] + from, keep = (float)c->mixing, take = (float)(1 - c->mixing);
    const float *given = c->given + from;
    for (size_t i = 0; i < n; i++) x[i] = keep == 0 ? given[i] : keep * x[i] + take * given[i];
}

/* Changes elements [from, to), at most LS_BLOCK. */
static void change_range(const job *j, size_t from, size_t to) {
    const ls_outer_change *c = j->c;
    float *states[LS_OPTIM_STATES] = {0};
    size_t n = to - from;
    for (int i = 1; i < c->flat.n; i++) states[i - 1] = c->flat.of[i] + from;
    if (c->outer)
        j->k->update[c->outer->rule]((int64_t)n, &j->scalars, c->given + from, c->flat.of[0] + from,
                                     states);
    else
        mix(c, from, n);
    if (ls_dtype_is_half(c->params_type))
        j->k->narrow(c->params_type, n, c->flat.of[0] + from, (uint16_t *)c->params + from);
}

static void change_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_outer_change *c = j->c;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)(j->end - j->first), LS_BLOCK, thread, nthreads, &a, &b);
    size_t end = j->first + (size_t)b;
    for (size_t at = j->first + (size_t)a; at < end; at += LS_BLOCK) {
        if (c->journal && ls_journal_has(c->journal, at, c->steps)) continue;
        if (c->journal) ls_journal_begin(c->journal, thread, at, &c->flat);
        size_t to = end - at < LS_BLOCK ? end : at + LS_BLOCK;
        size_t first = at > c->part_first ? at : c->part_first;
        size_t last = to < c->part_end ? to : c->part_end;
        if (first < last) change_range(j, first, last);
        if (c->journal) ls_journal_end(c->journal, at, c->steps);
    }
}

void ls_outer_apply(const ls_outer_change *c, const ls_compute *compute, size_t first, size_t end) {
    job j = {.c = c, .k = compute->k, .first = first, .end = end};
    if (c->outer) j.scalars = ls_optim_scalars(c->outer, &c->step, false);
    ls_pool_run_sized(compute->pool, (int64_t)(end - first), change_run, &j);
}
