/* expert_groups.c - see expert_groups.h. */
#include "networks/expert_groups.h"

#include <stdio.h>

#include "layers/fork.h"

/* What experts read of a chunk, or of all. */
typedef struct rows {
    ls_value *x;
    ls_router_values r;
} rows;

typedef struct mixture {
    ls_cut *c;
    const ls_expert_groups *e;
    int n;                                          /* groups */
    rows sliced[LS_CHUNKS_MOST][LS_SLICES_MOST];    /* [chunks][slices] */
    rows of[LS_CHUNKS_MOST][LS_CHUNKS_MOST];        /* [chunks][n] of a slice, for each group */
    ls_value *y[LS_CHUNKS_MOST][LS_CHUNKS_MOST];    /* [chunks][n] what a group's slice computes */
    ls_value *sums[LS_CHUNKS_MOST][LS_SLICES_MOST]; /* [chunks][slices] */
    ls_router_values routed[LS_CHUNKS_MOST];        /* [chunks] */
    ls_router_values all;                           /* of all chunks, which the first group reads */
} mixture;

int ls_expert_groups_count(const ls_cut *c, int64_t experts) {
    int64_t most = experts / c->s.n;
    if (most < 1) most = 1;
    return experts && c->chunks.planned > most ? (int)most : experts ? c->chunks.planned : 1;
}

/* x, for each slice. */
static void fork(const ls_cut *c, ls_value *x, ls_value **of) {
    of[0] = x;
    if (c->s.n > 1 && x) ls_layers_fork(c->s.m, x, c->s.n, of);
}

/* Do routers see a part of a sample each, and experts several samples? */
static bool joins_samples(const ls_chunked *s) { return s->each > 1 && s->samples > 1; }

/* Makes a second copy of the logits of the chunk's router, for the loss of its sample. */
static void keep(mixture *m, int chunk, ls_router_values *r) {
    ls_value *copies[2];
    ls_layers_copies(m->c->s.m, r->logits, 2, copies);
    r->logits = copies[0];
    m->routed[chunk].logits = copies[1];
    if (!r->scores) return;
    ls_layers_copies(m->c->s.m, r->scores, 2, copies);
    r->scores = copies[0];
    m->routed[chunk].scores = copies[1];
}

static void route(mixture *m, const ls_sequence *x, int chunk) {
    ls_cut *c = m->c;
    ls_value *of[LS_SLICES_MOST], *logits[LS_SLICES_MOST], *scores[LS_SLICES_MOST] = {0};
    if (c->s.sequence) ls_cut_fork(c, x, of);
    ls_router_values r = ls_layers_route(c->s.m, c->s.sequence ? of[0] : x->of[0], m->e->o);
    if (!c->s.sequence) ls_cut_fork(c, x, of);
    m->routed[chunk] = r;
    if (joins_samples(&c->chunks)) keep(m, chunk, &r);
    fork(c, r.logits, logits);
    fork(c, r.scores, scores);
    for (int k = 0; k < c->s.n; k++) m->sliced[chunk][k] = (rows){of[k], {logits[k], scores[k]}};
}

/* A copy for each group, so that all layers that read a value are of one chunk; also for one group,
 * beside which shared experts read the value. */
static void share(const mixture *m, ls_value *x, ls_value **out) {
    if (m->c->chunks.n > 1 && m->n > 1) {
        ls_layers_copies(m->c->s.m, x, m->n, out);
        return;
    }
    if (m->c->chunks.n > 1) x = ls_layers_copy(m->c->s.m, x);
    for (int i = 0; i < m->n; i++) out[i] = x;
}

/* The experts of a group's slice; and the number of it. */
static int number_of(const mixture *m, int group, int slice) { return group * m->c->s.n + slice; }
static ls_experts_slice experts_of(const mixture *m, int number) {
    int64_t experts = m->e->o->experts, n = m->n * m->c->s.n;
    return (ls_experts_slice){.first = experts * number / n, .end = experts * (number + 1) / n};
}

/* Do groups read copies of a chunk's rows, each its own? */
static bool has_copies(const mixture *m) { return m->c->chunks.n > 1 && m->n > 1; }

static void share_rows(const mixture *m, const rows *r, int slice, rows *of) {
    ls_value *x[LS_CHUNKS_MOST], *logits[LS_CHUNKS_MOST], *scores[LS_CHUNKS_MOST] = {0};
    share(m, r->x, x);
    share(m, r->r.logits, logits);
    if (r->r.scores) share(m, r->r.scores, scores);
    for (int i = 0; i < m->n; i++) of[i] = (rows){x[i], {logits[i], scores[i]}};
    for (int i = 0; i < m->n && has_copies(m); i++)
        ls_layers_choose_rows(m->c->s.m, x[i], r->r, m->e->o, experts_of(m, number_of(m, i, slice)),
                              false);
}

/* What routers say of the chunks in the range, from r [range.n]. */
static ls_router_values join_routed(const ls_chunked *s, const ls_router_values *r,
                                    ls_chunk_range range) {
    ls_value *logits[LS_CHUNKS_MOST], *scores[LS_CHUNKS_MOST];
    for (int k = 0; k < range.n; k++) {
        logits[k] = r[k].logits;
        scores[k] = r[k].scores;
    }
    ls_router_values all = {.logits = ls_chunked_join(s, logits, range)};
    if (scores[0]) all.scores = ls_chunked_join(s, scores, range);
    return all;
}

/* The rows of all chunks, for a group. */
static rows join(const mixture *m, int group) {
    const ls_chunked *s = &m->c->chunks;
    ls_router_values r[LS_CHUNKS_MOST];
    ls_value *x[LS_CHUNKS_MOST];
    if (s->n == 1) return m->of[0][group];
    for (int k = 0; k < s->n; k++) {
        x[k] = m->of[k][group].x;
        r[k] = m->of[k][group].r;
    }
    ls_value *all = ls_chunked_join(s, x, ls_chunked_all(s));
    return (rows){all, join_routed(s, r, ls_chunked_all(s))};
}

static void begin(const mixture *m, int chunk, int slice) {
    ls_cut_begin(m->c, chunk);
    ls_cut_begin_slice(m->c, slice);
}

/* The slice's experts of a group. */
static void mix_group(mixture *m, int group, int slice) {
    const ls_chunked *s = &m->c->chunks;
    char name[32];
    int number = number_of(m, group, slice);
    ls_experts_slice own = experts_of(m, number);
    own.name = m->n * m->c->s.n > 1 ? name : NULL;
    own.samples = s->samples;
    own.own_blocks = s->planned > 1;
    begin(m, group * s->planned / m->n, slice);
    const rows all = join(m, group);
    if (number == 0) m->all = all.r;
    snprintf(name, sizeof name, "experts.slice.%d", number);
    ls_value *y = ls_layers_experts_slice(s->m, all.x, all.r, m->e->o, own);
    ls_chunked_spanning(s, y, ls_chunked_all(s));
    m->y[0][group] = y;
    for (int k = 0; s->n > 1 && k < s->n; k++) {
        snprintf(name, sizeof name, "rows.%d.%d", number, k);
        m->y[k][group] = ls_chunked_cut(s, y, name, ls_chunked_all(s), k);
        if (has_copies(m))
            ls_layers_choose_rows(s->m, m->y[k][group], m->sliced[k][slice].r, m->e->o, own, true);
    }
}

static void mix_slice(mixture *m, int slice) {
    const ls_chunked *s = &m->c->chunks;
    for (int k = 0; k < s->n; k++) {
        begin(m, k, slice);
        share_rows(m, &m->sliced[k][slice], slice, m->of[k]);
    }
    for (int i = 0; i < m->n; i++) mix_group(m, i, slice);
    for (int k = 0; k < s->n; k++) {
        begin(m, k, slice);
        ls_value *y = ls_layers_sum(s->m, m->y[k], m->n);
        if (m->e->o->shared) y = (ls_add)(s->m, y, m->e->shared(m->e->of, m->sliced[k][slice].x));
        m->sums[k][slice] = y;
    }
}

/* The loss for an even load, of each sample; or what it adds to that of all layers. */
static void balance(mixture *m) {
    const ls_chunked *s = &m->c->chunks;
    for (int i = 0; i < s->samples; i++) {
        ls_chunk_range chunks = ls_chunked_of_sample(s, i);
        ls_cut_begin(m->c, chunks.first);
        ls_router_values r = s->each == 1      ? m->routed[i]
                             : s->samples == 1 ? m->all
                                               : join_routed(s, m->routed + chunks.first, chunks);
        ls_layers_router_balance(s->m, r, m->e->o);
        ls_value **sums = m->e->sums;
        if (sums) sums[i] = ls_layers_router_sums(s->m, r, m->e->o, sums[i]);
    }
}

void ls_expert_groups_mix(ls_cut *c, const ls_expert_groups *e, ls_sequence *x) {
    mixture m = {.c = c, .e = e, .n = ls_expert_groups_count(c, e->o->experts)};
    if (c->s.n == 1 && c->chunks.planned == 1) {
        x->of[0] = ls_layers_moe(c->s.m, x->of[0], e->o, true, e->sums);
        return;
    }
    for (int k = 0; k < c->chunks.n; k++) {
        ls_cut_begin(c, k);
        route(&m, &x[k], k);
    }
    for (int k = 0; k < c->s.n; k++) mix_slice(&m, k);
    for (int k = 0; k < c->chunks.n; k++) {
        ls_cut_begin(c, k);
        x[k] = ls_cut_join(c, m.sums[k]);
    }
    balance(&m);
}
