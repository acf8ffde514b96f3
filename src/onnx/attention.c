/* attention.c - attention by heads, and rotary positions.
 *
 * Tensors of heads are [N, heads, T, D]; where several heads of queries share one of keys,
 * [N, kv_heads, heads / kv_heads, T, D]. */
#include <math.h>
#include <stdio.h>

#include "onnx/kinds.h"

/* ---- which rows meet which ---- */

/* The numbers of the rows as tensors [T, 1], of queries, and [1, T], of keys; with places [N, T] in
 * their own texts, the number of the first row of each one's text, [N, T, 1] and [N, 1, T]. */
static const char *two_of(ls_onnx_writer *w, const char *x, int dim, const char **other_p) {
    const int64_t query = dim + 1, key = dim;
    *other_p = ls_onnx_expand(w, x, 1, &key);
    return ls_onnx_expand(w, x, 1, &query);
}

static const char * and (ls_onnx_writer * w, const char *a, const char *b) {
    return a ? LS_ONNX_ADD(w->g, "And", a, b) : b;
}

/* Causal: [T, T], or with places [N, T, T]. */
static const char *causal_mask(ls_onnx_writer *w, const ls_onnx_heads *h) {
    char key[160];
    snprintf(key, sizeof key, "causal %lld %lld %.100s", (long long)h->T, (long long)h->window,
             h->places ? h->places : "");
    if (*ls_onnx_share(w, key)) return *ls_onnx_share(w, key);
    const char *k = NULL, *rows = ls_onnx_row_numbers(w, h->T);
    const char *q = two_of(w, rows, 0, &k);
    const char *mask = LS_ONNX_ADD(w->g, "LessOrEqual", k, q);
    if (h->window) {
        const char *between = LS_ONNX_ADD(w->g, "Sub", q, k);
        mask = and(w, mask, LS_ONNX_ADD(w->g, "Less", between, ls_onnx_integer(w->g, h->window)));
    }
    if (h->places) {
        const char *places = LS_ONNX_ADD(w->g, "Cast", h->places);
        ls_onnx_set_int(w->g, "to", 7);
        const char *first_k = NULL, *first = LS_ONNX_ADD(w->g, "Sub", rows, places);
        const char *first_q = two_of(w, first, 1, &first_k);
        mask = and(w, mask, LS_ONNX_ADD(w->g, "Equal", first_q, first_k));
    }
    *ls_onnx_share(w, key) = mask;
    return mask;
}

/* The field [N, S] as a mask of keys, [N, 1, S]. */
static const char *key_mask(ls_onnx_writer *w, const char *field) {
    const int64_t query = 1;
    const char *there = LS_ONNX_ADD(w->g, "Cast", field);
    ls_onnx_set_int(w->g, "to", 9);
    return ls_onnx_expand(w, there, 1, &query);
}

/* ---- heads ---- */

/* [N, T, parts D] as heads, or with their columns before their rows. */
static const char *part(ls_onnx_writer *w, const char *x, int64_t parts, int64_t D, bool across) {
    static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};
    x = ls_onnx_reshape(w, x, (ls_onnx_shape){4, {0, 0, parts, D}});
    return ls_onnx_transpose(w, x, 4, across ? columns : rows);
}

/* Scores, their softmax, and the sum of values. A query that sees no key gives zeros: its numbers
 * are all the same, and are then set to 0. */
static const char *mix(ls_onnx_writer *w, const ls_onnx_heads *h, const char *scores,
                       const char *v) {
    ls_onnx_graph *g = w->g;
    bool shares = h->kv_heads != h->heads;
    const char *mask = h->causal ? causal_mask(w, h) : NULL;
    const char *keys = h->mask ? key_mask(w, h->mask) : NULL;
    if (keys) mask = and(w, mask, keys);
    if (keys || (mask && h->places)) /* [N, T, S]: for all heads */
        mask = ls_onnx_expand(w, mask, shares ? 2 : 1, (const int64_t[]){1, 2});
    if (mask) scores = LS_ONNX_ADD(g, "Where", mask, scores, ls_onnx_number(g, -3e38f));
    const char *p = LS_ONNX_ADD(g, "Softmax", scores);
    ls_onnx_set_int(g, "axis", -1);
    if (keys) p = LS_ONNX_ADD(g, "Where", mask, p, ls_onnx_number(g, 0));
    return LS_ONNX_ADD(g, "MatMul", p, v);
}

const char *ls_onnx_attend(ls_onnx_writer *w, const ls_onnx_heads *h) {
    int64_t each = h->heads / h->kv_heads;
    float scale = 1 / sqrtf((float)h->D);
    const char *q = LS_ONNX_ADD(w->g, "Mul", h->q, ls_onnx_number(w->g, scale));
    q = part(w, q, h->heads, h->D, false);
    const char *k = part(w, h->k, h->kv_heads, h->D, true);
    const char *v = part(w, h->v, h->kv_heads, h->D, false);
    if (each > 1) {
        const int64_t at = 2;
        q = ls_onnx_reshape(w, q, (ls_onnx_shape){5, {0, h->kv_heads, each, -1, h->D}});
        k = ls_onnx_expand(w, k, 1, &at);
        v = ls_onnx_expand(w, v, 1, &at);
    }
    const char *y = mix(w, h, LS_ONNX_ADD(w->g, "MatMul", q, k), v);
    if (each > 1) y = ls_onnx_reshape(w, y, (ls_onnx_shape){4, {0, h->heads, -1, h->D}});
    y = ls_onnx_transpose(w, y, 4, (const int64_t[]){0, 2, 1, 3});
    return ls_onnx_reshape(w, y, (ls_onnx_shape){3, {0, 0, h->heads * h->D}});
}

/* ---- the layer ---- */

static ls_onnx_shape rows_of(int64_t T, int64_t columns) {
    return (ls_onnx_shape){2, {T, columns}};
}

void ls_onnx_write_attention(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t Q = f->Q, K = f->K;
    ls_onnx_heads h = {.heads = f->heads,
                       .kv_heads = f->kv_heads,
                       .D = Q / f->heads,
                       .T = f->T,
                       .window = f->window,
                       .causal = f->causal,
                       .mask = f->mask >= 0 ? ls_onnx_field(w, l, f->mask) : NULL,
                       .places = f->places >= 0 ? ls_onnx_field(w, l, f->places) : NULL};
    const char *x = ls_onnx_read(w, l, 0, rows_of(f->T, l->ninputs == 1 ? Q + 2 * K : Q));
    if (l->ninputs == 3) {
        h.q = x;
        h.k = ls_onnx_read(w, l, 1, rows_of(f->S, K));
        h.v = ls_onnx_read(w, l, 2, rows_of(f->S, K));
    } else {
        int64_t at = l->ninputs == 1 ? Q : 0;
        const char *keys = at ? x : ls_onnx_read(w, l, 1, rows_of(f->S, 2 * K));
        h.q = at ? ls_onnx_slice(w, x, 2, 0, Q) : x;
        h.k = ls_onnx_slice(w, keys, 2, at, at + K);
        h.v = ls_onnx_slice(w, keys, 2, at + K, at + 2 * K);
    }
    ls_onnx_set(w, l, ls_onnx_attend(w, &h), rows_of(f->T, Q));
}

/* ---- rotary positions ---- */

/* Cosines, or sines, for the rows of a layer: [T, 1, D / 2], or of a field's places [N, T, 1, D /
 * 2]. */
static const char *turns_of(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f, bool sines) {
    char key[200], name[LS_NAME + 16];
    const char *places = f->places >= 0 ? ls_onnx_field(w, l, f->places) : NULL;
    snprintf(key, sizeof key, "turns %p %lld %.100s", (const void *)f->turns, (long long)f->first,
             places ? places : "");
    snprintf(name, sizeof name, "%s/turns", l->name);
    const char *table = *ls_onnx_share(w, key);
    if (!table) {
        const char *all = ls_onnx_numbers(w->g, name, rows_of(f->T, f->D), f->turns);
        const int64_t at = -2;
        if (!places) places = ls_onnx_row_numbers(w, l->T);
        if (f->first) places = LS_ONNX_ADD(w->g, "Add", places, ls_onnx_integer(w->g, f->first));
        table = ls_onnx_expand(w, LS_ONNX_ADD(w->g, "Gather", all, places), 1, &at);
        *ls_onnx_share(w, key) = table;
    }
    return ls_onnx_slice(w, table, -1, sines ? f->D / 2 : 0, sines ? f->D : f->D / 2);
}

void ls_onnx_write_rope(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_graph *g = w->g;
    int64_t D = f->D, heads = l->C / f->head;
    const char *x = ls_onnx_read(w, l, 0, rows_of(l->T, l->C));
    x = ls_onnx_reshape(w, x, (ls_onnx_shape){4, {0, 0, heads, f->head}});
    const char *a = ls_onnx_slice(w, x, 3, 0, D / 2), *b = ls_onnx_slice(w, x, 3, D / 2, D);
    const char *c = turns_of(w, l, f, false), *s = turns_of(w, l, f, true);
    const char *first =
        LS_ONNX_ADD(g, "Sub", LS_ONNX_ADD(g, "Mul", a, c), LS_ONNX_ADD(g, "Mul", b, s));
    const char *second =
        LS_ONNX_ADD(g, "Add", LS_ONNX_ADD(g, "Mul", b, c), LS_ONNX_ADD(g, "Mul", a, s));
    const char *rest = f->head > D ? ls_onnx_slice(w, x, 3, D, f->head) : NULL;
    const char *y = rest ? LS_ONNX_ADD(g, "Concat", first, second, rest)
                         : LS_ONNX_ADD(g, "Concat", first, second);
    ls_onnx_set_int(g, "axis", -1);
    y = ls_onnx_reshape(w, y, (ls_onnx_shape){3, {0, 0, l->C}});
    ls_onnx_set(w, l, y, rows_of(l->T, l->C));
}
