/* expert_groups.c - see expert_groups.h. */
#include "networks/expert_groups.h"

#include <stdio.h>

#include "layers/fork.h"

/* What groups read of a chunk, or of all. */
typedef struct rows {
    ls_value *x;
    ls_router_values r;
} rows;

typedef struct mixture {
    const ls_chunked *s;
    const ls_moe_options *o;
    int chunks, n;                               /* groups */
    rows of[LS_CHUNKS_MOST][LS_CHUNKS_MOST];     /* [s->n][n] for each group */
    rows all[LS_CHUNKS_MOST];                    /* [n] of all chunks */
    ls_value *y[LS_CHUNKS_MOST][LS_CHUNKS_MOST]; /* [s->n][n] what a group computes */
} mixture;

static int count(int64_t experts, int chunks) {
    return experts > 0 && experts < chunks ? (int)experts : chunks;
}

int ls_expert_groups_count(const ls_config *c) {
    return c->model.experts ? count(c->model.experts, ls_chunked_count(c)) : 1;
}

/* The layers that are added next are those of a chunk. Where samples are not cut, its parameters have
 * the places that they have where they are. */
static void begin(const mixture *m, int chunk) {
    if (m->s->n > 1)
        ls_chunked_begin(m->s, chunk);
    else
        m->s->m->chunk = chunk;
}

static int chunk_of(const mixture *m, int group) { return group * m->chunks / m->n; }

/* A copy for each group, so that all layers that read a value are of one chunk. */
static void share(const mixture *m, ls_value *x, ls_value **out) {
    if (m->s->n > 1) {
        ls_layers_copies(m->s->m, x, m->n, out);
        return;
    }
    for (int i = 0; i < m->n; i++) out[i] = x;
}

static ls_router_values route(mixture *m, ls_value *x, rows *of) {
    ls_value *copies[LS_CHUNKS_MOST], *logits[LS_CHUNKS_MOST], *scores[LS_CHUNKS_MOST] = {0};
    ls_router_values r = ls_layers_route(m->s->m, x, m->o);
    share(m, x, copies);
    share(m, r.logits, logits);
    if (r.scores) share(m, r.scores, scores);
    for (int i = 0; i < m->n; i++) of[i] = (rows){copies[i], {logits[i], scores[i]}};
    return r;
}

/* The rows of all chunks, for a group. */
static rows join(const mixture *m, int group) {
    ls_value *x[LS_CHUNKS_MOST], *logits[LS_CHUNKS_MOST], *scores[LS_CHUNKS_MOST];
    if (m->s->n == 1) return m->of[0][group];
    for (int k = 0; k < m->s->n; k++) {
        const rows *r = &m->of[k][group];
        x[k] = r->x;
        logits[k] = r->r.logits;
        scores[k] = r->r.scores;
    }
    rows all = {ls_chunked_join(m->s, x), {.logits = ls_chunked_join(m->s, logits)}};
    if (scores[0]) all.r.scores = ls_chunked_join(m->s, scores);
    return all;
}

static void mix_group(mixture *m, int group) {
    char name[32];
    int64_t experts = m->o->experts;
    ls_experts_slice own = {.name = name,
                            .first = experts * group / m->n,
                            .end = experts * (group + 1) / m->n,
                            .samples = m->s->together ? m->s->n : 1,
                            .apart = true};
    begin(m, chunk_of(m, group));
    const rows all = m->all[group] = join(m, group);
    snprintf(name, sizeof name, "experts.slice.%d", group);
    ls_value *y = ls_layers_experts_slice(m->s->m, all.x, all.r, m->o, own);
    ls_chunked_spanning(m->s, y);
    m->y[0][group] = y;
    for (int k = 0; m->s->n > 1 && k < m->s->n; k++) {
        snprintf(name, sizeof name, "rows.%d.%d", group, k);
        m->y[k][group] = ls_chunked_cut(m->s, y, name, k);
    }
}

void ls_expert_groups_mix(const ls_chunked *s, int chunks, const ls_moe_options *o, ls_value **x,
                          ls_value **out) {
    mixture m = {.s = s, .o = o, .chunks = chunks, .n = count(o->experts, chunks)};
    ls_router_values r[LS_CHUNKS_MOST];
    for (int k = 0; k < s->n; k++) {
        begin(&m, k);
        r[k] = route(&m, x[k], m.of[k]);
    }
    for (int i = 0; i < m.n; i++) mix_group(&m, i);
    for (int k = 0; k < s->n; k++) {
        begin(&m, k);
        out[k] = ls_layers_sum(s->m, m.y[k], m.n);
        if (o->shared) out[k] = (ls_add)(s->m, out[k], ls_layers_shared_experts(s->m, x[k], o));
        if (s->together || s->n == 1) ls_layers_router_balance(s->m, r[k], o);
    }
    begin(&m, 0);
    if (!s->together && s->n > 1) ls_layers_router_balance(s->m, m.all[0].r, o);
}
