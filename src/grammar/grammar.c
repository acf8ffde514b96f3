/* grammar.c - see grammar.h.
 *
 * An expression becomes an automaton with steps that read nothing (Thompson's construction), and
 * that a deterministic one (the construction of subsets): its nodes are sets of the first one's. A
 * call is read like a byte. Source: Aho, Sethi and Ullman, "Compilers", 1986, chapter 3.
 */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/regex.h"
#include "grammar/sequences.h"

/* PART_CHAR: a character has been read; it is there only until these are counted. */
typedef enum part_kind { PART_END, PART_BYTES, PART_CALL, PART_SPLIT, PART_CHAR } part_kind;

/* A node of the automaton with steps that read nothing. */
typedef struct nfa_part {
    part_kind kind;
    uint8_t first, last;
    uint32_t to, other; /* other: of PART_SPLIT; the rule of PART_CALL */
} nfa_part;

typedef struct grammar_maker {
    ls_grammar *g;
    const ls_byte_set *bytes;
    nfa_part *parts; /* [nparts] of a rule */
    uint32_t nparts;
    bool full, counts; /* counts: parts are made whose characters are to be counted */
    int64_t work;
    ls_sequences sets; /* of parts: the rule's nodes */
    uint32_t *marks;   /* [nparts] the closure that has the part, by number */
    uint32_t mark;
    uint32_t *set; /* [nset] the closure that is being made */
    size_t nset;
    uint32_t *stack; /* [2 nparts] */
} grammar_maker;

/* ---- parts of an expression, from its end to its beginning ---- */

static uint32_t add_part(grammar_maker *m, nfa_part p) {
    if (m->nparts >= LS_GRAMMAR_NODES) {
        m->full = true;
        return 0;
    }
    m->parts = ls_grow(m->parts, m->nparts, sizeof *m->parts);
    m->parts[m->nparts] = p;
    return m->nparts++;
}

static uint32_t add_split(grammar_maker *m, uint32_t a, uint32_t b) {
    return add_part(m, (nfa_part){.kind = PART_SPLIT, .to = a, .other = b});
}

static uint32_t add_text(grammar_maker *m, const char *bytes, size_t n, uint32_t next) {
    while (n-- > 0 && !m->full) {
        uint8_t byte = (uint8_t)bytes[n];
        next = add_part(m, (nfa_part){PART_BYTES, byte, byte, next, 0});
    }
    return next;
}

/* Alternatives that lead to one part. */
typedef struct nfa_alternatives {
    grammar_maker *m;
    uint32_t next, first;
    bool any;
} nfa_alternatives;

static void add_alternative(nfa_alternatives *a, uint32_t first) {
    a->first = a->any ? add_split(a->m, first, a->first) : first;
    a->any = true;
}

static void add_bytes(void *arg, const ls_byte_ranges *r) {
    nfa_alternatives *a = arg;
    uint32_t next = a->next;
    for (int i = r->n; i-- > 0;)
        next = add_part(a->m, (nfa_part){PART_BYTES, r->first[i], r->last[i], next, 0});
    add_alternative(a, next);
}

/* A set without members leads nowhere: to itself. */
static uint32_t first_of(const nfa_alternatives *a) {
    if (a->any) return a->first;
    uint32_t part = add_part(a->m, (nfa_part){.kind = PART_SPLIT});
    if (!a->m->full) a->m->parts[part].to = a->m->parts[part].other = part;
    return part;
}

static uint32_t add_char_end(grammar_maker *m, uint32_t next) {
    return m->counts ? add_part(m, (nfa_part){.kind = PART_CHAR, .to = next}) : next;
}

static uint32_t add_chars(grammar_maker *m, const ls_char_set *s, uint32_t next) {
    nfa_alternatives a = {.m = m, .next = next};
    ls_char_set_bytes(s, add_bytes, &a);
    return first_of(&a);
}

/* What follows a \\ in JSON's strings: a letter, or u00 and two digits. */
static void add_escapes(grammar_maker *m, const ls_char_set *s, nfa_alternatives *a) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof from - 1; i++)
        if (ls_char_set_has(s, (uint32_t)from[i]))
            add_alternative(a, add_text(m, &to[i], 1, a->next));
    for (uint32_t high = 0; high < 2; high++) {
        const char before[] = {'u', '0', '0', digits[high]};
        nfa_alternatives low = {.m = m, .next = a->next};
        for (uint32_t c = high ? 16 : 1; c < (high + 1) * 16; c++)
            if (ls_char_set_has(s, c) && !strchr(from, (int)c))
                add_alternative(&low, add_text(m, &digits[c & 15], 1, a->next));
        if (low.any) add_alternative(a, add_text(m, before, sizeof before, low.first));
    }
}

/* A character as JSON writes it. */
static uint32_t add_quoted(grammar_maker *m, const ls_char_set *s, uint32_t next) {
    nfa_alternatives a = {.m = m, .next = next}, escapes = a;
    ls_char_set plain = {0};
    ls_char_set_add_all(&plain, s);
    ls_char_set_remove(&plain, 0, 0x1f);
    ls_char_set_remove(&plain, '"', '"');
    ls_char_set_remove(&plain, '\\', '\\');
    ls_char_set_bytes(&plain, add_bytes, &a);
    ls_char_set_free(&plain);
    add_escapes(m, s, &escapes);
    if (escapes.any) add_alternative(&a, add_text(m, "\\", 1, escapes.first));
    return first_of(&a);
}

static uint32_t add_expression(grammar_maker *, const ls_expression *, uint32_t next);

static uint32_t add_repeat(grammar_maker *m, const ls_expression *x, uint32_t next) {
    uint32_t first = next;
    if (x->most == LS_NO_LIMIT) {
        first = add_split(m, next, next);
        uint32_t body = add_expression(m, x->a, first);
        if (!m->full) m->parts[first].to = body;
    }
    for (int64_t i = x->least; i < x->most && !m->full; i++)
        first = add_split(m, add_expression(m, x->a, first), next);
    for (int64_t i = 0; i < x->least && !m->full; i++) first = add_expression(m, x->a, first);
    return first;
}

/* From the last item back: where one follows others there is a comma before it. */
static uint32_t add_list(grammar_maker *m, const ls_expression *x, uint32_t next) {
    uint32_t first = next, later = next; /* before this item: none was there; one was */
    for (; x && !m->full; x = x->a) {
        uint32_t item = add_expression(m, x->b, later), after = add_text(m, ",", 1, item);
        first = x->least ? item : add_split(m, item, first);
        later = x->least ? after : add_split(m, after, later);
    }
    return first;
}

/* Parts [from, from + n) of a counted expression. */
typedef struct nfa_counted {
    uint32_t from, n, end; /* end: the part that follows the expression */
    uint32_t copies;       /* the first copy of them */
    int64_t least, last;   /* last: the number of the last copy */
    bool stays;            /* further characters are read there */
    uint32_t next;
} nfa_counted;

static uint32_t part_of_copy(const nfa_counted *c, int64_t copy, uint32_t part) {
    return c->copies + (uint32_t)copy * c->n + (part - c->from);
}

/* The part in the copy: in that of number k, k characters have been read. */
static nfa_part copy_of(const nfa_counted *c, int64_t copy, uint32_t number, nfa_part p) {
    uint32_t own = part_of_copy(c, copy, number);
    bool more = copy < c->last || c->stays;
    if (number == c->end) {
        uint32_t to = copy >= c->least ? c->next : own; /* leads nowhere: to itself */
        return (nfa_part){.kind = PART_SPLIT, .to = to, .other = to};
    }
    if (p.kind == PART_CHAR) {
        int64_t later = copy < c->last ? copy + 1 : copy;
        uint32_t to = more ? part_of_copy(c, later, p.to) : own;
        return (nfa_part){.kind = PART_SPLIT, .to = to, .other = to};
    }
    p.to = part_of_copy(c, copy, p.to);
    if (p.kind == PART_SPLIT) p.other = part_of_copy(c, copy, p.other);
    return p;
}

/* The expression is copied for each number of characters; those of one copy lead to the next. */
static uint32_t add_counted(grammar_maker *m, const ls_expression *x, uint32_t next) {
    nfa_counted c = {.from = m->nparts, .least = x->least, .next = next};
    c.stays = x->most == LS_NO_LIMIT;
    c.last = c.stays ? x->least : x->most;
    c.end = add_part(m, (nfa_part){.kind = PART_SPLIT});
    m->counts = true;
    uint32_t first = add_expression(m, x->a, c.end);
    m->counts = false;
    c.n = m->nparts - c.from;
    c.copies = m->nparts;
    if (m->full) return 0;
    if (c.last >= (LS_GRAMMAR_NODES - (int64_t)m->nparts) / c.n) m->full = true;
    for (int64_t k = 0; k <= c.last && !m->full; k++)
        for (uint32_t i = c.from; i < c.copies; i++) add_part(m, copy_of(&c, k, i, m->parts[i]));
    return m->full ? 0 : part_of_copy(&c, 0, first);
}

/* The part that begins x, after which comes `next`. */
static uint32_t add_expression(grammar_maker *m, const ls_expression *x, uint32_t next) {
    nfa_alternatives a = {.m = m, .next = next};
    while (x->kind == LS_EXPRESSION_SEQUENCE && !m->full) {
        next = add_expression(m, x->b, next);
        x = x->a;
    }
    a.next = next;
    for (; x->kind == LS_EXPRESSION_EITHER && !m->full; x = x->a)
        add_alternative(&a, add_expression(m, x->b, next));
    uint32_t first = next;
    switch (x->kind) {
    case LS_EXPRESSION_TEXT: first = add_text(m, x->bytes, x->nbytes, next); break;
    case LS_EXPRESSION_CHARS: first = add_chars(m, &x->chars, add_char_end(m, next)); break;
    case LS_EXPRESSION_QUOTED: first = add_quoted(m, &x->chars, add_char_end(m, next)); break;
    case LS_EXPRESSION_REPEAT: first = add_repeat(m, x, next); break;
    case LS_EXPRESSION_COUNTED: first = add_counted(m, x, next); break;
    case LS_EXPRESSION_LIST: first = add_list(m, x, next); break;
    case LS_EXPRESSION_SEQUENCE: first = m->full ? 0 : add_expression(m, x, next); break;
    case LS_EXPRESSION_EITHER: break; /* it is full */
    case LS_EXPRESSION_CALL:
        first = add_part(m, (nfa_part){.kind = PART_CALL, .to = next, .other = x->rule});
        break;
    }
    if (!a.any) return first;
    add_alternative(&a, first);
    return a.first;
}

/* ---- sets of parts ---- */

static void begin_set(grammar_maker *m) {
    m->nset = 0;
    m->mark++;
}

/* Adds the part, and what can be reached from it without reading. */
static void add_to_set(grammar_maker *m, uint32_t part) {
    size_t n = 0;
    m->stack[n++] = part;
    while (n) {
        part = m->stack[--n];
        if (m->marks[part] == m->mark) continue;
        m->marks[part] = m->mark;
        m->work++;
        const nfa_part *p = &m->parts[part];
        if (p->kind != PART_SPLIT) {
            m->set[m->nset++] = part;
            continue;
        }
        m->stack[n++] = p->to;
        m->stack[n++] = p->other;
    }
}

static int compare_parts(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The node that is this set. */
static uint32_t end_set(grammar_maker *m) {
    if (m->nset > 1) qsort(m->set, m->nset, sizeof *m->set, compare_parts);
    return ls_sequences_add(&m->sets, m->set, m->nset);
}

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
    bool cut[257] = {[0] = true, [256] = true};
    for (size_t i = 0; i < n; i++) {
        const nfa_part *p = &m->parts[own[i]];
        if (p->kind == PART_BYTES) cut[p->first] = cut[p->last + 1] = true;
    }
    for (int b = 1; b < 256; b++) cut[b] = cut[b] || m->bytes->has[b] != m->bytes->has[b - 1];
    for (int first = 0, last; first < 256; first = last + 1) {
        for (last = first; !cut[last + 1]; last++) continue;
        if (!m->bytes->has[first]) continue;
        begin_set(m);
        m->work += (int64_t)n;
        for (size_t i = 0; i < n; i++) {
            const nfa_part *p = &m->parts[own[i]];
            if (p->kind == PART_BYTES && p->first <= first && p->last >= first)
                add_to_set(m, p->to);
        }
        if (m->nset) add_edge(m, node, first, last, base + end_set(m));
    }
}

static bool calls_before(const grammar_maker *m, const uint32_t *own, size_t i) {
    for (size_t k = 0; k < i; k++) {
        const nfa_part *p = &m->parts[own[k]];
        if (p->kind == PART_CALL && p->other == m->parts[own[i]].other) return true;
    }
    return false;
}

static void add_calls(grammar_maker *m, ls_grammar_node *node, const uint32_t *own, size_t n,
                      uint32_t base) {
    ls_grammar *g = m->g;
    for (size_t i = 0; i < n; i++) {
        const nfa_part *p = &m->parts[own[i]];
        if (p->kind != PART_CALL || calls_before(m, own, i)) continue;
        uint32_t rule = p->other;
        begin_set(m);
        for (size_t k = i; k < n; k++) {
            const nfa_part *q = &m->parts[own[k]];
            if (q->kind == PART_CALL && q->other == rule) add_to_set(m, q->to);
        }
        m->work += (int64_t)n;
        g->calls = ls_grow(g->calls, g->ncalls, sizeof *g->calls);
        g->calls[g->ncalls++] = (ls_grammar_call){rule, base + end_set(m)};
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
    for (uint32_t i = 0; i < m->sets.n; i++) {
        size_t n = 0;
        if (g->nnodes >= LS_GRAMMAR_NODES || m->work > LS_GRAMMAR_WORK) break;
        const uint32_t *set = ls_sequences_get(&m->sets, i, &n);
        own.len = 0; /* a copy: sets are added */
        ls_buf_append(&own, set, n * sizeof *set);
        const uint32_t *parts = (const uint32_t *)(const void *)own.data;
        ls_grammar_node node = {.edges = g->nedges, .calls = g->ncalls};
        for (size_t k = 0; k < n; k++) node.ends = node.ends || m->parts[parts[k]].kind == PART_END;
        add_edges(m, &node, parts, n, base);
        add_calls(m, &node, parts, n, base);
        g->nodes = ls_grow(g->nodes, g->nnodes, sizeof *g->nodes);
        g->nodes[g->nnodes++] = node;
    }
    ls_buf_free(&own);
    if (g->nnodes - base == m->sets.n) return LS_OK;
    return fail_large("its automaton has too many states", e);
}

static void free_rule(grammar_maker *m) {
    ls_sequences_free(&m->sets);
    free(m->parts), free(m->marks), free(m->set), free(m->stack);
    m->parts = NULL;
    m->marks = m->set = m->stack = NULL;
    m->nparts = m->mark = 0;
}

static ls_status make_rule(grammar_maker *m, const ls_expression *x, ls_grammar_rule *rule,
                           ls_error *e) {
    uint32_t first = add_expression(m, x, add_part(m, (nfa_part){.kind = PART_END}));
    rule->start = m->g->nnodes;
    ls_status s = m->full ? fail_large("an expression has too many parts", e) : LS_OK;
    if (s == LS_OK) {
        m->marks = LS_NEW_ARRAY(uint32_t, m->nparts);
        m->set = LS_NEW_ARRAY(uint32_t, m->nparts);
        m->stack = LS_NEW_ARRAY(uint32_t, 2 * (size_t)m->nparts + 2);
        begin_set(m);
        add_to_set(m, first);
        end_set(m);
        s = make_nodes(m, e);
    }
    free_rule(m);
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
        if (work > (int64_t)LS_GRAMMAR_WORK * 10)
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
        return ls_fail(e, LS_EINVAL, "no text is allowed by it");
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
