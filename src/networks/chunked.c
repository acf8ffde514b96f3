/* chunked.c - see chunked.h. */
#include "networks/chunked.h"

#include <stdio.h>

#include "base/plural.h"

/* ---- what can be cut ---- */

static ls_status check_positions(const ls_config *c, ls_error *e) {
    int64_t n = c->parallel.context_virtual, T = ls_config_positions(c), below = n;
    while (T % below) below--;
    if (below == n) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.context_virtual %lld does not divide the %lld positions of a sample "
                   "(model.context); use %lld, or another context",
                   (long long)n, (long long)T, (long long)below);
}

/* n samples are computed together: of a micro-batch, and of a virtual worker. */
static ls_status check_samples(const ls_config *c, ls_error *e) {
    int64_t n = c->parallel.expert_virtual, micro = c->train.micro_batch;
    int64_t all = c->train.batch / c->train.virtual_workers, below = n, above = n;
    if (micro > all) micro = all;
    if (c->model.experts < n)
        return ls_fail(e, LS_EINVAL,
                       "parallel.expert_virtual %lld: the model has %lld expert%s (model.experts), "
                       "which as many parts divide; use at most %lld",
                       (long long)n, (long long)c->model.experts, ls_plural((int)c->model.experts),
                       (long long)(c->model.experts > 1 ? c->model.experts : 1));
    while (micro % below || all % below) below--;
    while (above <= micro && (micro % above || all % above)) above++;
    if (below == n) return LS_OK;
    char more[24] = "";
    if (above <= micro) snprintf(more, sizeof more, " or %lld", (long long)above);
    return ls_fail(e, LS_EINVAL,
                   "parallel.expert_virtual %lld: micro-batches have %lld samples "
                   "(train.micro_batch), and virtual workers %lld (train.batch / "
                   "train.virtual_workers): both must be multiples of it; use %lld%s, or other "
                   "micro-batches",
                   (long long)n, (long long)micro, (long long)all, (long long)below, more);
}

static ls_status check_product(int64_t Q, int64_t E, ls_error *e) {
    if (Q * E <= LS_CHUNKS_MOST) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.expert_virtual %lld times parallel.context_virtual %lld makes %lld "
                   "parts of the samples that are computed together, and %d are possible; use "
                   "parallel.context_virtual %lld, or fewer samples",
                   (long long)E, (long long)Q, (long long)(Q * E), LS_CHUNKS_MOST,
                   (long long)(LS_CHUNKS_MOST / E));
}

ls_status ls_chunked_check(const ls_config *c, ls_error *e) {
    int64_t Q = c->parallel.context_virtual, E = c->parallel.expert_virtual;
    if (E * Q > 1 && !ls_config_has_tokens(c))
        return ls_fail(e, LS_EINVAL,
                       "parallel.%s_virtual %lld: only models of kind gpt2 and llama are cut into "
                       "chunks; set 1",
                       E > 1 ? "expert" : "context", (long long)(E > 1 ? E : Q));
    if (E > 1) LS_TRY(check_samples(c, e));
    if (Q > 1) LS_TRY(check_positions(c, e));
    return check_product(Q, E, e);
}

ls_chunked ls_chunked_of(const ls_config *c, bool cut, ls_model *m) {
    int Q = (int)c->parallel.context_virtual, E = (int)c->parallel.expert_virtual;
    ls_chunked s = {.m = m, .T = ls_config_positions(c), .each_planned = Q, .planned = Q * E};
    s.each = cut ? Q : 1;
    s.samples = cut ? E : 1;
    s.n = s.each * s.samples;
    return s;
}

/* ---- chunks ---- */

int64_t ls_chunked_rows_each(const ls_chunked *s) { return s->T / s->each; }

ls_row_range ls_chunked_begin(const ls_chunked *s, int chunk) {
    if (s->n > 1)
        ls_build_chunk(s->m, chunk, s->n);
    else
        s->m->chunk = chunk;
    return (ls_row_range){ls_chunked_rows_each(s) * (chunk % s->each), s->T};
}

ls_value *ls_chunked_field(const ls_chunked *s, const ls_value *field, int chunk) {
    return ls_build_nth(s->m, field, chunk / s->each);
}

ls_value *ls_chunked_part(const ls_chunked *s, const ls_value *field, int chunk) {
    int64_t rows = ls_chunked_rows_each(s);
    return ls_build_part(s->m, ls_chunked_field(s, field, chunk), rows * (chunk % s->each), rows);
}

ls_chunk_range ls_chunked_all(const ls_chunked *s) { return (ls_chunk_range){0, s->n}; }

ls_chunk_range ls_chunked_of_sample(const ls_chunked *s, int sample) {
    return (ls_chunk_range){sample * s->each, s->each};
}

ls_value *ls_chunked_spanning(const ls_chunked *s, ls_value *y, ls_chunk_range r) {
    if (r.n > s->each && ls_build_is_good(s->m)) s->m->layers[y->layer].spans = s->samples;
    return y;
}

static ls_values listed(ls_value *const *x, int n) {
    ls_values all = {{0}};
    for (int i = 0; i < n; i++) all.of[i] = x[i];
    return all;
}

ls_value *ls_chunked_join(const ls_chunked *s, ls_value *const *x, ls_chunk_range r) {
    return ls_chunked_spanning(s, (ls_concat)(s->m, 0, listed(x, r.n)), r);
}

ls_value *ls_chunked_cut(const ls_chunked *s, ls_value *y, const char *name, ls_chunk_range r,
                         int chunk) {
    int64_t rows = ls_chunked_rows_each(s);
    ls_slice_options o = {.name = name, .first = (chunk - r.first) * rows, .count = rows};
    return ls_chunked_spanning(s, (ls_slice)(s->m, y, o), r);
}

/* ---- attention ---- */

/* Heads [first, end) of the keys, and of the queries that share them; D numbers a head. */
typedef struct group {
    ls_chunk_range of; /* the sample's */
    int chunk;         /* that it belongs to */
    int64_t first, end, share, D;
    char attention[LS_NAME], columns[LS_NAME], rows[LS_NAME]; /* names of layers */
} group;

/* One chunk's columns of the group, or all that are needed if it is the only one. */
static ls_value *take(const ls_chunked *s, const ls_chunked_rows *r, const group *g,
                      const ls_attention_options *o) {
    int64_t C = o->heads * g->D, K = o->kv_heads * g->D, n = g->end - g->first;
    bool one = r->nx == 1;
    const ls_columns of[] = {{0, g->first * g->share * g->D, n * g->share * g->D},
                             {one ? 0 : 1, (one ? C : 0) + g->first * g->D, n * g->D},
                             {one ? 0 : 2, (one ? C + K : 0) + g->first * g->D, n * g->D}};
    return ls_layers_columns(s->m, g->columns, r->x, r->nx, of, 3);
}

/* parts [each]: what the group reads of each chunk. out [each]: each chunk's rows of its heads. */
static void attend_group(const ls_chunked *s, ls_value *const *parts, const group *g,
                         ls_chunked_heads h, ls_value **out) {
    ls_chunked_begin(s, g->chunk);
    ls_value *all = ls_chunked_join(s, parts, g->of);
    h.o.kv_heads = g->end - g->first;
    h.o.heads = h.o.kv_heads * g->share;
    h.o.name = g->attention;
    h.drop.first += g->first * g->share;
    ls_value *y = ls_layers_attention(s->m, all, h.o, h.drop);
    for (int k = 0; k < s->each; k++) {
        char name[LS_NAME];
        snprintf(name, sizeof name, "%.60s.%d", g->rows, k);
        out[k] = ls_chunked_cut(s, y, name, g->of, g->of.first + k);
    }
}

/* Group i of n. Where a slice has fewer groups than there are chunks, those of the next slice begin
 * with another chunk. */
static group nth_group(const ls_chunked *s, ls_chunk_range of, const ls_chunked_rows *r, int i,
                       int n, const ls_attention_options *o) {
    int turn = n < of.n ? s->m->slice : 0;
    group g = {.of = of,
               .chunk = of.first + (i * of.n / n + turn) % of.n,
               .first = o->kv_heads * i / n,
               .end = o->kv_heads * (i + 1) / n,
               .share = o->heads / o->kv_heads};
    g.D = ls_value_last(r->x[0]) / (r->nx == 1 ? o->heads + 2 * o->kv_heads : o->heads);
    snprintf(g.attention, sizeof g.attention, "%.40s.heads.%d", o->name, i);
    snprintf(g.columns, sizeof g.columns, "%.40s.columns.%d", o->name, i);
    snprintf(g.rows, sizeof g.rows, "%.40s.rows.%d", o->name, i);
    return g;
}

/* All chunks' parts come before all groups, so that groups of several workers are computed at the
 * same time, forward and backward. */
static void attend_groups(const ls_chunked *s, ls_chunk_range all, const ls_chunked_rows *rows,
                          ls_chunked_heads h, ls_value **out) {
    group groups[LS_CHUNKS_MOST];
    ls_value *parts[LS_CHUNKS_MOST][LS_CHUNKS_MOST]; /* [n][all.n] */
    ls_value *of[LS_CHUNKS_MOST][LS_CHUNKS_MOST], *mine[LS_CHUNKS_MOST];
    int n = all.n < h.o.kv_heads ? all.n : (int)h.o.kv_heads;
    for (int i = 0; i < n; i++) groups[i] = nth_group(s, all, &rows[0], i, n, &h.o);
    for (int k = 0; k < all.n; k++) {
        ls_chunked_begin(s, all.first + k);
        for (int i = 0; i < n; i++) parts[i][k] = take(s, &rows[k], &groups[i], &h.o);
    }
    for (int i = 0; i < n; i++) attend_group(s, parts[i], &groups[i], h, of[i]);
    for (int k = 0; k < all.n; k++) {
        ls_chunked_begin(s, all.first + k);
        for (int i = 0; i < n; i++) mine[i] = of[i][k];
        out[k] = n > 1 ? (ls_concat)(s->m, 1, listed(mine, n)) : mine[0];
    }
}

/* Attention where one chunk has all rows of its sample. */
static ls_value *attend_whole(const ls_chunked *s, const ls_chunked_rows *rows,
                              ls_chunked_heads h) {
    h.o.keys = rows->nx > 1 ? rows->x[1] : NULL;
    h.o.values = rows->nx > 1 ? rows->x[2] : NULL;
    return ls_layers_attention(s->m, rows->x[0], h.o, h.drop);
}

void ls_chunked_attend(const ls_chunked *s, int sample, const ls_chunked_rows *rows,
                       ls_chunked_heads h, ls_value **out) {
    if (s->each > 1)
        attend_groups(s, ls_chunked_of_sample(s, sample), rows, h, out);
    else
        out[0] = attend_whole(s, rows, h);
}
