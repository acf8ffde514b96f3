/* constraint.c - see constraint.h. */
#include "grammar/constraint.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "grammar/walker.h"

typedef struct token_mask {
    uint64_t *bits; /* [nwords]; NULL: not yet made */
    uint32_t n;
} token_mask;

struct ls_constraint {
    const ls_token_tree *v;
    ls_grammar *g;
    ls_walker *walker;
    uint32_t epoch;    /* of the walker's states */
    token_mask *masks; /* [nmasks] by state */
    size_t nmasks, nmade, nwords;
    uint32_t *states; /* [v->depth + 1] of a walk: after the bytes of each depth */
};

ls_constraint *ls_constraint_new(const ls_token_tree *v, ls_grammar *g) {
    ls_constraint *c = LS_NEW(ls_constraint);
    *c = (ls_constraint){.v = v, .g = g, .epoch = 1, .nwords = ((size_t)v->V + 63) / 64};
    c->walker = ls_walker_new(g);
    c->states = LS_NEW_ARRAY(uint32_t, (size_t)v->depth + 1);
    return c;
}

static void drop_masks(ls_constraint *c) {
    for (size_t i = 0; i < c->nmasks; i++) free(c->masks[i].bits);
    free(c->masks);
    c->masks = NULL;
    c->nmasks = c->nmade = 0;
}

void ls_constraint_free(ls_constraint *c) {
    if (!c) return;
    drop_masks(c);
    ls_walker_free(c->walker);
    ls_grammar_free(c->g);
    free(c->states);
    free(c);
}

/* ---- masks ---- */

static void add_tokens(const ls_constraint *c, token_mask *m, const ls_token_node *node) {
    for (uint32_t i = node->tokens; i < node[1].tokens; i++) {
        uint32_t token = c->v->tokens[i];
        m->bits[token / 64] |= (uint64_t)1 << (token % 64);
        m->n++;
    }
}

static token_mask make_mask(ls_constraint *c, uint32_t state) {
    const ls_token_tree *v = c->v;
    token_mask m = {.bits = LS_NEW_ARRAY(uint64_t, c->nwords + 1)};
    c->states[0] = state;
    for (uint32_t i = 0; i < v->n;) {
        const ls_token_node *node = &v->nodes[i];
        uint32_t next = ls_walker_step(c->walker, c->states[node->depth - 1], node->byte);
        if (next == LS_WALKER_DEAD) {
            i = node->end;
            continue;
        }
        c->states[node->depth] = next;
        add_tokens(c, &m, node);
        i++;
    }
    return m;
}

static const token_mask *mask_of(ls_constraint *c, uint32_t state) {
    while (c->nmasks <= state) {
        c->masks = ls_grow(c->masks, c->nmasks, sizeof *c->masks);
        c->masks[c->nmasks++] = (token_mask){0};
    }
    if (!c->masks[state].bits) {
        c->masks[state] = make_mask(c, state);
        c->nmade++;
    }
    return &c->masks[state];
}

/* ---- a text ---- */

size_t ls_constraint_nbytes(const ls_constraint *c) {
    return ls_walker_nbytes(c->walker) + c->nmasks * sizeof *c->masks +
           c->nmade * c->nwords * sizeof(uint64_t);
}

static void read_token(ls_constraint *c, ls_constrained *at, uint32_t token) {
    size_t n = 0;
    uint8_t digits[LS_TOKEN_DIGITS];
    const uint8_t *bytes = ls_token_tree_bytes(c->v->tokenizer, token, digits, &n);
    if (token >= c->v->V || n == 0) at->state = LS_WALKER_DEAD;
    for (size_t i = 0; i < n; i++) at->state = ls_walker_step(c->walker, at->state, bytes[i]);
    at->n++;
}

ls_allowed ls_constraint_after(ls_constraint *c, ls_constrained *at, const uint32_t *tokens,
                               int64_t n) {
    if (ls_constraint_nbytes(c) > LS_CONSTRAINT_NBYTES) {
        drop_masks(c);
        ls_walker_clear(c->walker);
        c->epoch++;
    }
    if (at->epoch != c->epoch) *at = (ls_constrained){0, LS_WALKER_START, c->epoch};
    while (at->n < n) read_token(c, at, tokens[at->n]);
    const token_mask *m = mask_of(c, at->state);
    return (ls_allowed){m->bits, m->n, ls_walker_is_end(c->walker, at->state)};
}

static bool allows(const ls_allowed *a, uint32_t token) {
    return a->mask[token / 64] >> (token % 64) & 1;
}

void ls_allowed_forbid(const ls_allowed *a, const uint32_t *ends, int nends, float *logits,
                       size_t V) {
    float kept[LS_ALLOWED_ENDS];
    int n = nends < LS_ALLOWED_ENDS ? nends : LS_ALLOWED_ENDS;
    for (int i = 0; i < n; i++) kept[i] = a->end && ends[i] < V ? logits[ends[i]] : -INFINITY;
    for (size_t i = 0; i < V; i++)
        if (!allows(a, (uint32_t)i)) logits[i] = -INFINITY;
    for (int i = 0; i < n; i++)
        if (ends[i] < V) logits[ends[i]] = kept[i];
}
