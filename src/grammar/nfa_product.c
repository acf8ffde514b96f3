/* nfa_product.c - see nfa_product.h.
 *
 * Both automata read a text at the same time: a pair has a part of the first one, and the set of
 * all parts of the second one that the same bytes lead to. So it is known where the second one
 * does not allow a text, too.
 */
#include "grammar/nfa_product.h"

#include <stdlib.h>

#include "base/mem.h"

typedef struct nfa_product {
    ls_nfa *m;
    ls_nfa_sets sets;   /* of the second one's parts */
    ls_sequences pairs; /* a part of the first one, and the number of a set */
    uint32_t *firsts;   /* [pairs.n] the part that begins the pair: a split */
    uint32_t first_end, second_end, next;
    bool both;
} nfa_product;

static uint32_t add_pair(nfa_product *p, uint32_t part, uint32_t set) {
    const uint32_t pair[] = {part, set};
    uint32_t n = p->pairs.n, number = ls_sequences_add(&p->pairs, pair, 2);
    if (number == n) {
        p->firsts = ls_grow(p->firsts, n, sizeof *p->firsts);
        p->firsts[n] = ls_nfa_add_never(p->m);
    }
    return p->firsts[number];
}

static bool has_end(const nfa_product *p, uint32_t set) {
    size_t n = 0;
    const uint32_t *parts = ls_sequences_get(&p->sets.sets, set, &n);
    for (size_t i = 0; i < n; i++)
        if (parts[i] == p->second_end) return true;
    return false;
}

/* What the part's bytes lead to; 0: nothing. */
static uint32_t add_bytes(nfa_product *p, ls_nfa_part part, uint32_t set, ls_buf *own) {
    bool cut[257] = {false};
    uint32_t all = 0;
    size_t n = 0;
    const uint32_t *parts = ls_sequences_get(&p->sets.sets, set, &n);
    own->len = 0; /* a copy: sets are added */
    ls_buf_append(own, parts, n * sizeof *parts);
    parts = (const uint32_t *)(const void *)own->data;
    ls_nfa_cut(p->m, parts, n, cut);
    for (int first = part.first, last; first <= part.last && !p->m->full; first = last + 1) {
        for (last = first; last < part.last && !cut[last + 1]; last++) continue;
        ls_nfa_set_step(&p->sets, parts, n, (uint8_t)first);
        if (p->both && p->sets.nset == 0) continue;
        uint32_t to = add_pair(p, part.to, ls_nfa_set_end(&p->sets));
        uint32_t one =
            ls_nfa_add(p->m, (ls_nfa_part){LS_PART_BYTES, (uint8_t)first, (uint8_t)last, to, 0});
        all = all ? ls_nfa_add_split(p->m, one, all) : one;
    }
    return all;
}

/* Sets what begins the pair. */
static void make_pair(nfa_product *p, uint32_t number, ls_buf *own) {
    size_t n = 0;
    const uint32_t *pair = ls_sequences_get(&p->pairs, number, &n);
    uint32_t at = pair[0], set = pair[1], to = 0, other = 0;
    ls_nfa_part part = p->m->parts[at];
    if (at == p->first_end) {
        if (has_end(p, set) == p->both) to = other = p->next;
    } else if (part.kind == LS_PART_SPLIT) {
        to = add_pair(p, part.to, set);
        other = add_pair(p, part.other, set);
    } else if (part.kind == LS_PART_BYTES) {
        to = other = add_bytes(p, part, set, own);
    }
    if (!to || p->m->full) return; /* part 0 is the rule's end, which nothing but `next` may be */
    p->m->parts[p->firsts[number]].to = to;
    p->m->parts[p->firsts[number]].other = other;
}

uint32_t ls_nfa_add_product(ls_nfa *m, const ls_expression *x, uint32_t next) {
    nfa_product p = {.m = m, .next = ls_nfa_add_split(m, next, next)};
    ls_buf own = {0};
    p.both = x->kind == LS_EXPRESSION_BOTH;
    p.first_end = ls_nfa_add(m, (ls_nfa_part){.kind = LS_PART_END});
    p.second_end = ls_nfa_add(m, (ls_nfa_part){.kind = LS_PART_END});
    uint32_t a = ls_nfa_add_expression(m, x->a, p.first_end);
    uint32_t b = ls_nfa_add_expression(m, x->b, p.second_end);
    if (m->full) return 0;
    ls_nfa_sets_init(&p.sets, m);
    ls_nfa_set_begin(&p.sets);
    ls_nfa_set_add(&p.sets, b);
    uint32_t first = add_pair(&p, a, ls_nfa_set_end(&p.sets));
    for (uint32_t i = 0; i < p.pairs.n && !m->full; i++) {
        make_pair(&p, i, &own);
        m->full = m->full || m->work > LS_NFA_WORK;
    }
    ls_nfa_sets_free(&p.sets);
    ls_sequences_free(&p.pairs);
    ls_buf_free(&own);
    free(p.firsts);
    return first;
}
