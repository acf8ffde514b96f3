/* grammar.c - see grammar.h.
 *
 * An expression becomes an automaton with steps that read nothing (nfa.h), and that a
 * deterministic one (the construction of subsets): its nodes are sets of the first one's parts. A
 * call is read like a byte. Source: Aho, Sethi and Ullman, "Compilers", 1986, chapter 3.
 */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/nfa.h"
#include "grammar/regex.h"

typedef struct grammar_maker {
    ls_grammar *g;
    const ls_byte_set *bytes;
    ls_nfa nfa;       /* of a rule */
    ls_nfa_sets sets; /* of its parts: the rule's nodes */
} grammar_maker;

/* ---- nodes ---- */

static void add_edge(grammar_maker *m, ls_grammar_node *node, int first, int last, uint32_t to) {
    ls_grammar *g = m->g;
    ls_grammar_edge *before = node->nedges ? &g->edges[g->nedges - 1] : NULL;
    if (before && before->last + 1 == first && before->to == to) {
        before->last = (uint8_t)last;
        return;
    }
    g->edges = ls_grow(g->edges, g->nedges, sizeof *g->edges);
    g->edges[g->nedges++] = (ls_grammar_edge){(uint8_t)first, (uint8_t)last, to};
    node->nedges++;
}

/* Bytes between two cuts lead to the same set. own [n] is the node's set; base: the number of the
 * rule's first node. */
static void add_edges(grammar_maker *m, ls_grammar_node *node, const uint32_t *own, size_t n,
                      uint32_t base) {
    ls_nfa_sets *s = &m->sets;
    bool cut[257] = {[0] = true, [256] = true};
    ls_nfa_cut(&m->nfa, own, n, cut);
    for (int b = 1; b < 256; b++) cut[b] = cut[b] || m->bytes->has[b] != m->bytes->has[b - 1];
    for (int first = 0, last; first < 256; first = last + 1) {
        for (last = first; !cut[last + 1]; last++) continue;
        if (!m->bytes->has[first]) continue;
        ls_nfa_set_step(s, own, n, (uint8_t)first);
        if (s->nset) add_edge(m, node, first, last, base + ls_nfa_set_end(s));
    }
}

static bool calls_before(const grammar_maker *m, const uint32_t *own, size_t i) {
    for (size_t k = 0; k < i; k++) {
        const ls_nfa_part *p = &m->nfa.parts[own[k]];
        if (p->kind == LS_PART_CALL && p->other == m->nfa.parts[own[i]].other) return true;
    }
    return false;
}

static void add_calls(grammar_maker *m, ls_grammar_node *node, const uint32_t *own, size_t n,
                      uint32_t base) {
    ls_grammar *g = m->g;
    ls_nfa_sets *s = &m->sets;
    for (size_t i = 0; i < n; i++) {
        const ls_nfa_part *p = &m->nfa.parts[own[i]];
        if (p->kind != LS_PART_CALL || calls_before(m, own, i)) continue;
        uint32_t rule = p->other;
        ls_nfa_set_begin(s);
        for (size_t k = i; k < n; k++) {
            const ls_nfa_part *q = &m->nfa.parts[own[k]];
            if (q->kind == LS_PART_CALL && q->other == rule) ls_nfa_set_add(s, q->to);
        }
        m->nfa.work += (int64_t)n;
        g->calls = ls_grow(g->calls, g->ncalls, sizeof *g->calls);
        g->calls[g->ncalls++] = (ls_grammar_call){rule, base + ls_nfa_set_end(s)};
        node->ncalls++;
    }
}

static ls_status fail_large(const char *why, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "it is too large: %s", why);
}

/* Makes the nodes of the sets from the first on, which adds further sets. */
static ls_status make_nodes(grammar_maker *m, ls_error *e) {
    ls_grammar *g = m->g;
    uint32_t base = g->nnodes;
    ls_buf own = {0};
    for (uint32_t i = 0; i < m->sets.sets.n; i++) {
        size_t n = 0;
        if (g->nnodes >= LS_GRAMMAR_NODES || m->nfa.work > LS_NFA_WORK) break;
        const uint32_t *set = ls_sequences_get(&m->sets.sets, i, &n);
        own.len = 0; /* a copy: sets are added */
        ls_buf_append(&own, set, n * sizeof *set);
        const uint32_t *parts = (const uint32_t *)(const void *)own.data;
        ls_grammar_node node = {.edges = g->nedges, .calls = g->ncalls};
        for (size_t k = 0; k < n; k++)
            node.ends = node.ends || m->nfa.parts[parts[k]].kind == LS_PART_END;
        add_edges(m, &node, parts, n, base);
        add_calls(m, &node, parts, n, base);
        g->nodes = ls_grow(g->nodes, g->nnodes, sizeof *g->nodes);
        g->nodes[g->nnodes++] = node;
    }
    ls_buf_free(&own);
    if (g->nnodes - base == m->sets.sets.n) return LS_OK;
    return fail_large("its automaton has too many states", e);
}

static ls_status make_rule(grammar_maker *m, const ls_expression *x, ls_grammar_rule *rule,
                           ls_error *e) {
    uint32_t end = ls_nfa_add(&m->nfa, (ls_nfa_part){.kind = LS_PART_END});
    uint32_t first = ls_nfa_add_expression(&m->nfa, x, end);
    rule->start = m->g->nnodes;
    ls_status s = m->nfa.full ? fail_large("an expression has too many parts", e) : LS_OK;
    if (s == LS_OK) {
        ls_nfa_sets_init(&m->sets, &m->nfa);
        ls_nfa_set_begin(&m->sets);
        ls_nfa_set_add(&m->sets, first);
        ls_nfa_set_end(&m->sets);
        s = make_nodes(m, e);
        ls_nfa_sets_free(&m->sets);
    }
    ls_nfa_clear(&m->nfa);
    return s;
}

/* ---- what can be completed ---- */

static uint8_t depth_of(const ls_grammar *g, const ls_grammar_node *node) {
    uint8_t best = node->ends ? 0 : LS_GRAMMAR_NEVER;
    for (uint32_t i = 0; i < node->nedges; i++) {
        uint8_t d = g->nodes[g->edges[node->edges + i].to].depth;
        if (d < best) best = d;
    }
    for (uint32_t i = 0; i < node->ncalls; i++) {
        const ls_grammar_call *c = &g->calls[node->calls + i];
        uint8_t inner = g->nodes[g->rules[c->rule].start].depth, after = g->nodes[c->to].depth;
        if (inner >= LS_GRAMMAR_DEPTH) continue;
        inner++;
        if (after > inner) inner = after;
        if (inner < best) best = inner;
    }
    return best;
}

/* The least depths that satisfy depth_of(). */
static ls_status find_depths(ls_grammar *g, ls_error *e) {
    int64_t work = 0;
    for (uint32_t i = 0; i < g->nnodes; i++) g->nodes[i].depth = LS_GRAMMAR_NEVER;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = g->nnodes; i-- > 0;) {
            uint8_t depth = depth_of(g, &g->nodes[i]);
            changed = changed || depth != g->nodes[i].depth;
            g->nodes[i].depth = depth;
        }
        work += (int64_t)g->nedges + g->ncalls;
        if (work > (int64_t)LS_NFA_WORK * 10)
            return fail_large("its automaton has too many states", e);
    }
    return LS_OK;
}

/* Removes edges and calls to what can't be completed. */
static void remove_dead(ls_grammar *g) {
    uint32_t nedges = 0, ncalls = 0;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        ls_grammar_node *node = &g->nodes[i], old = *node;
        *node = (ls_grammar_node){nedges, ncalls, 0, 0, old.ends, old.depth};
        for (uint32_t k = 0; k < old.nedges; k++) {
            ls_grammar_edge x = g->edges[old.edges + k];
            if (g->nodes[x.to].depth != LS_GRAMMAR_NEVER) g->edges[nedges++] = x;
        }
        for (uint32_t k = 0; k < old.ncalls; k++) {
            ls_grammar_call x = g->calls[old.calls + k];
            if (g->nodes[x.to].depth != LS_GRAMMAR_NEVER &&
                g->nodes[g->rules[x.rule].start].depth < LS_GRAMMAR_DEPTH)
                g->calls[ncalls++] = x;
        }
        node->nedges = nedges - node->edges;
        node->ncalls = ncalls - node->calls;
    }
    g->nedges = nedges;
    g->ncalls = ncalls;
}

/* ---- rules that begin with calls ---- */

typedef struct rule_visit {
    uint8_t state; /* 0: not yet; 1: being visited; 2: has its rank */
    uint32_t next; /* call */
} rule_visit;

/* Gives each rule a lower rank than those that its first node calls: rules get theirs when all of
 * those have theirs. False: a rule calls itself first, or may be empty and is called. */
static bool rank_from(ls_grammar *g, uint32_t rule, rule_visit *visits, uint32_t *stack,
                      uint32_t *rank) {
    size_t n = 0;
    if (visits[rule].state == 2) return true;
    visits[rule].state = 1;
    stack[n++] = rule;
    while (n) {
        uint32_t r = stack[n - 1];
        const ls_grammar_node *start = &g->nodes[g->rules[r].start];
        if (visits[r].next == start->ncalls) {
            visits[r].state = 2;
            g->rules[r].rank = --*rank;
            n--;
            continue;
        }
        uint32_t to = g->calls[start->calls + visits[r].next++].rule;
        if (visits[to].state == 1) return false;
        if (visits[to].state == 2) continue;
        visits[to].state = 1;
        stack[n++] = to;
    }
    return true;
}

static ls_status rank_rules(ls_grammar *g, ls_error *e) {
    rule_visit *visits = LS_NEW_ARRAY(rule_visit, g->nrules);
    uint32_t *stack = LS_NEW_ARRAY(uint32_t, g->nrules), rank = g->nrules;
    bool right = true;
    for (uint32_t i = 0; right && i < g->nrules; i++) right = rank_from(g, i, visits, stack, &rank);
    free(visits);
    free(stack);
    if (!right)
        return ls_fail(e, LS_EINVAL, "something in it refers to itself before it has any text");
    for (uint32_t i = 0; i < g->ncalls; i++)
        if (g->nodes[g->rules[g->calls[i].rule].start].ends)
            return ls_fail(e, LS_EINVAL, "something in it that is referred to may be empty");
    return LS_OK;
}

/* ---- making ---- */

static ls_status make_all(grammar_maker *m, const ls_expression *const *rules, ls_error *e) {
    ls_grammar *g = m->g;
    for (uint32_t i = 0; i < g->nrules; i++) LS_TRY(make_rule(m, rules[i], &g->rules[i], e));
    LS_TRY(rank_rules(g, e));
    LS_TRY(find_depths(g, e));
    remove_dead(g);
    if (g->nodes[g->rules[0].start].depth > LS_GRAMMAR_DEPTH)
        return ls_fail(e, LS_EINVAL,
                       "no text is allowed by it, or only one that is nested more than %d deep",
                       LS_GRAMMAR_DEPTH);
    return LS_OK;
}

ls_status ls_grammar_make(const ls_expression *const *rules, uint32_t nrules,
                          const ls_byte_set *bytes, ls_grammar **g_p, ls_error *e) {
    ls_byte_set all;
    memset(&all, true, sizeof all);
    grammar_maker m = {.g = LS_NEW(ls_grammar), .bytes = bytes ? bytes : &all};
    m.g->rules = LS_NEW_ARRAY(ls_grammar_rule, nrules);
    m.g->nrules = nrules;
    ls_status s = make_all(&m, rules, e);
    if (s == LS_OK)
        *g_p = m.g;
    else
        ls_grammar_free(m.g);
    return s;
}

void ls_grammar_free(ls_grammar *g) {
    if (!g) return;
    free(g->nodes), free(g->edges), free(g->calls), free(g->rules);
    free(g);
}

ls_status ls_grammar_of_regex(const char *text, size_t n, const ls_byte_set *bytes,
                              ls_grammar **g_p, ls_error *e) {
    ls_expressions pool = {0};
    const ls_expression *x = NULL;
    ls_status s = ls_regex_read(&pool, text, n, &(ls_regex_options){0}, &x, e);
    if (s == LS_OK) s = ls_grammar_make(&x, 1, bytes, g_p, e);
    ls_expressions_free(&pool);
    return s;
}
