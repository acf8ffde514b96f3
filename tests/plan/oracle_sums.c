/* oracle_sums.c - see oracle_sums.h. */
#include "plan/oracle_sums.h"

int oracle_chain(oracle *o, int chain, int param, int vw) {
    for (int micro = 0; micro <= o->u.M; micro++)
        for (int l = o->u.m->nlayers - 1; l >= 0; l--) {
            const ls_layer *layer = &o->u.m->layers[l];
            bool whole = micro == o->u.M; /* the round after the last */
            if (!rules_has_param(layer, param) || layer->traits.backward_whole != whole) continue;
            chain = term_link(&o->terms, chain, (link_term){l, vw, whole ? -1 : micro});
        }
    return chain;
}

int oracle_encoded(oracle *o, int chain, int vw) {
    if (!o->u.c->compress.on || o->warm) return chain;
    return term_link(&o->terms, chain, (link_term){-1, vw, -1});
}

int oracle_expected(oracle *o, int param, int lo, int hi) {
    if (hi - lo == 1) return oracle_encoded(o, oracle_chain(o, TERM_EMPTY, param, lo), lo);
    int left = oracle_expected(o, param, lo, rules_middle_of(lo, hi));
    return term_sum(&o->terms, left, oracle_expected(o, param, rules_middle_of(lo, hi), hi));
}

static void add_leaves(leaves *l, int w, int a, int b) {
    span list[RULES_MAX_COVER];
    int n = rules_cover_of(0, l->size, a, b, list);
    for (int i = 0; i < n; i++) l->list[l->n++] = (leaf){list[i].lo, list[i].hi, w, i};
}

/* One each where rounds are reduced or the order is free, else the whole subtrees of their
 * ranges. */
leaves oracle_leaves(const oracle *o, int first, int count, int step) {
    leaves l = {.size = count};
    bool single = o->u.c->early || !o->u.c->tree;
    int base = 0, end = 0, a = 0, b = 0;
    rules_range_of(&o->u, first, &base, &end);
    if (step > 1) end = base; /* replicas: a group of `step` workers has one sum for its part */
    if (!single && step == 1) {
        rules_range_of(&o->u, first + count - 1, &a, &end);
        l.size = end - base;
    }
    for (int i = 0; i < count; i++) {
        rules_range_of(&o->u, first + i * step, &a, &b);
        if (single || step > 1)
            add_leaves(&l, first + i * step, i, i + 1);
        else
            add_leaves(&l, first + i, a - base, b - base);
    }
    return l;
}

int *oracle_grad_at(const oracle *o, int w, int slot, int i) {
    return &o->workers[w].grad[slot * o->natoms + i];
}

/* A sum over workers: in memory of its own where rounds are reduced, else in place of the worker's
 * own sum. */
int *oracle_sum_at(const oracle *o, int w, int slot, int i) {
    return o->u.c->early ? &o->workers[w].sum[slot * o->natoms + i] : oracle_grad_at(o, w, slot, i);
}

int oracle_sum_node(oracle *o, const summing *s, int lo, int hi) {
    for (int i = 0; i < s->l->n; i++) {
        const leaf *x = &s->l->list[i];
        if (x->lo != lo || x->hi != hi) continue;
        int got = s->partial ? *oracle_grad_at(o, x->worker, x->slot, s->atom)
                             : *oracle_sum_at(o, x->worker, s->slot, s->atom);
        if (got == TERM_NOTHING) oracle_wrong(o, "worker %d has no gradient to sum", x->worker);
        return got;
    }
    if (hi - lo < 2) {
        oracle_wrong(o, "no worker has the sum of leaf %d", lo);
        return TERM_NOTHING;
    }
    int left = oracle_sum_node(o, s, lo, rules_middle_of(lo, hi));
    return term_sum(&o->terms, left, oracle_sum_node(o, s, rules_middle_of(lo, hi), hi));
}
