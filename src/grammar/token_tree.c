/* token_tree.c - see token_tree.h. */
#include "grammar/token_tree.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1000 }; /* bytes of a token that is used */

enum { FIRST_DIGIT = 0xF8 }; /* eight of them */

typedef struct token_text {
    const uint8_t *bytes;
    size_t n;
    uint32_t token;
} token_text;

const uint8_t *ls_token_tree_bytes(const ls_tokenizer *t, uint32_t token,
                                   uint8_t digits[LS_TOKEN_DIGITS], size_t *n_p) {
    const uint8_t *bytes = ls_tokenizer_bytes(t, token, n_p);
    if (*n_p == 0 || ls_tokenizer_text_nbytes(t, token)) return bytes;
    for (int i = 0; i < LS_TOKEN_DIGITS; i++)
        digits[i] = (uint8_t)(FIRST_DIGIT + (token >> (3 * i) & 7));
    *n_p = LS_TOKEN_DIGITS;
    return digits;
}

/* Is a byte of it a digit? No character has one. */
static bool has_digit(const uint8_t *bytes, size_t n) {
    size_t i = 0;
    while (i < n && bytes[i] < FIRST_DIGIT) i++;
    return i < n;
}

static int compare_texts(const void *a, const void *b) {
    const token_text *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->bytes, y->bytes, n);
    if (order) return order;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

/* digits [V * LS_TOKEN_DIGITS] are those of special tokens. */
static token_text *sorted_texts(const ls_tokenizer *t, uint32_t V, uint8_t *digits, uint32_t *n_p) {
    token_text *texts = LS_NEW_ARRAY(token_text, (size_t)V + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < V; i++) {
        token_text x = {.token = i};
        x.bytes = ls_token_tree_bytes(t, i, digits, &x.n);
        bool special = x.bytes == digits;
        if (special) digits += LS_TOKEN_DIGITS;
        if (x.n && x.n <= LONGEST && (special || !has_digit(x.bytes, x.n))) texts[n++] = x;
    }
    qsort(texts, n, sizeof *texts, compare_texts);
    *n_p = n;
    return texts;
}

static size_t common(const token_text *a, const token_text *b) {
    size_t n = 0, most = a->n < b->n ? a->n : b->n;
    while (n < most && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

static void add_token(ls_token_tree *v, const token_text *before, const token_text *x) {
    for (size_t i = before ? common(before, x) : 0; i < x->n; i++) {
        v->nodes = ls_grow(v->nodes, v->n, sizeof *v->nodes);
        v->nodes[v->n++] =
            (ls_token_node){.tokens = v->ntokens, .depth = (uint16_t)(i + 1), .byte = x->bytes[i]};
    }
    v->tokens[v->ntokens++] = x->token;
    if (x->n == 1) v->bytes.has[x->bytes[0]] = true;
    for (size_t i = 0; i < x->n && x->bytes[0] >= FIRST_DIGIT; i++)
        v->bytes.has[x->bytes[i]] = true;
    if ((int)x->n > v->depth) v->depth = (int)x->n;
}

/* A node ends where the next one that is not deeper begins. */
static void set_ends(ls_token_tree *v) {
    uint32_t open[LONGEST + 1], n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        while (n && v->nodes[open[n - 1]].depth >= v->nodes[i].depth) v->nodes[open[--n]].end = i;
        open[n++] = i;
    }
    while (n) v->nodes[open[--n]].end = v->n;
}

ls_token_tree *ls_token_tree_new(const ls_tokenizer *t, uint32_t V) {
    ls_token_tree *v = LS_NEW(ls_token_tree);
    uint32_t n = 0;
    uint8_t *digits = ls_alloc((size_t)V * LS_TOKEN_DIGITS + 1);
    token_text *texts = sorted_texts(t, V, digits, &n);
    v->tokenizer = t;
    v->V = V;
    v->tokens = LS_NEW_ARRAY(uint32_t, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) add_token(v, i ? &texts[i - 1] : NULL, &texts[i]);
    v->nodes = ls_grow(v->nodes, v->n, sizeof *v->nodes);
    v->nodes[v->n] = (ls_token_node){.end = v->n, .tokens = v->ntokens};
    set_ends(v);
    free(texts);
    free(digits);
    return v;
}

void ls_token_tree_free(ls_token_tree *v) {
    if (!v) return;
    free(v->nodes);
    free(v->tokens);
    free(v);
}
