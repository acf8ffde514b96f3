/* chunked.c - see chunked.h. */
#include "networks/chunked.h"

#include <stdio.h>

/* ---- what can be cut ---- */

static const char *find_conflict(const ls_config *c) {
    if (c->model.kind != LS_MODEL_LLAMA && c->model.kind != LS_MODEL_GPT2)
        return "only models of kind gpt2 and llama are cut into chunks";
    if (c->parallel.tensor_virtual > 1)
        return "models whose products are cut into slices (parallel.tensor_virtual) are not cut "
               "into chunks, too";
    if (c->model.experts) return "models with experts (model.experts) are not cut into chunks";
    if (c->lora.rank || *c->model.adapter)
        return "layers with adapters (lora.rank) are not cut into chunks";
    if (ls_config_has_pairs(c)) return "the loss dpo (train.loss) is not cut into chunks";
    return NULL;
}

ls_status ls_chunked_check(const ls_config *c, ls_error *e) {
    int64_t n = c->parallel.context_virtual, T = ls_config_positions(c), below = n;
    if (n == 1) return LS_OK;
    const char *conflict = find_conflict(c);
    if (conflict)
        return ls_fail(e, LS_EINVAL, "parallel.context_virtual %lld: %s; set 1", (long long)n,
                       conflict);
    while (T % below) below--;
    if (below == n) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.context_virtual %lld does not divide the %lld positions of a sample "
                   "(model.context); use %lld, or another context",
                   (long long)n, (long long)T, (long long)below);
}

/* ---- chunks ---- */

ls_row_range ls_chunked_begin(const ls_chunked *s, int chunk) {
    ls_build_chunk(s->m, chunk, s->n);
    return (ls_row_range){s->T / s->n * chunk, s->T};
}

ls_value *ls_chunked_part(const ls_chunked *s, const ls_value *field, int chunk) {
    int64_t rows = s->T / s->n;
    return ls_build_part(s->m, field, rows * chunk, rows);
}

/* ---- attention ---- */

/* Heads [first, end) of the keys, and of the queries that share them; D numbers a head. */
typedef struct group {
    int chunk; /* that it belongs to */
    int64_t first, end, share, D;
    char attention[LS_NAME], columns[24], rows[24]; /* names of layers */
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

static ls_values listed(ls_value *const *x, int n) {
    ls_values all = {{0}};
    for (int i = 0; i < n; i++) all.of[i] = x[i];
    return all;
}

static ls_value *cut_rows(const ls_chunked *s, ls_value *y, const group *g, int chunk) {
    char name[40];
    int64_t rows = s->T / s->n;
    snprintf(name, sizeof name, "%s.%d", g->rows, chunk);
    return (ls_slice)(s->m, y,
                      (ls_slice_options){.name = name, .first = chunk * rows, .count = rows});
}

/* out [n]: each chunk's rows of the group's heads. */
static void attend_group(const ls_chunked *s, const ls_chunked_rows *rows, const group *g,
                         ls_attention_options o, ls_value **out) {
    ls_value *parts[LS_CHUNKS_MOST];
    for (int k = 0; k < s->n; k++) {
        ls_chunked_begin(s, k);
        parts[k] = take(s, &rows[k], g, &o);
    }
    ls_chunked_begin(s, g->chunk);
    ls_value *all = (ls_concat)(s->m, 0, listed(parts, s->n));
    o.kv_heads = g->end - g->first;
    o.heads = o.kv_heads * g->share;
    o.name = g->attention;
    ls_value *y = (ls_attention)(s->m, all, o);
    for (int k = 0; k < s->n; k++) out[k] = cut_rows(s, y, g, k);
}

void ls_chunked_attend(const ls_chunked *s, const ls_chunked_rows *rows, ls_attention_options o,
                       ls_value **out) {
    ls_value *of[LS_CHUNKS_MOST][LS_CHUNKS_MOST], *mine[LS_CHUNKS_MOST];
    int n = s->n < o.kv_heads ? s->n : (int)o.kv_heads;
    for (int i = 0; i < n; i++) {
        group g = {.chunk = i * s->n / n,
                   .first = o.kv_heads * i / n,
                   .end = o.kv_heads * (i + 1) / n,
                   .share = o.heads / o.kv_heads};
        g.D = ls_value_last(rows[0].x[0]) / (rows[0].nx == 1 ? o.heads + 2 * o.kv_heads : o.heads);
        snprintf(g.attention, sizeof g.attention, "%.40s.heads.%d", o.name, i);
        snprintf(g.columns, sizeof g.columns, "columns.%d", i);
        snprintf(g.rows, sizeof g.rows, "rows.%d", i);
        attend_group(s, rows, &g, o, of[i]);
    }
    for (int k = 0; k < s->n; k++) {
        ls_chunked_begin(s, k);
        for (int i = 0; i < n; i++) mine[i] = of[i][k];
        out[k] = n > 1 ? (ls_concat)(s->m, 1, listed(mine, n)) : mine[0];
    }
    ls_chunked_begin(s, 0);
}
