/* nfa.c - see nfa.h. */
#include "grammar/nfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/nfa_product.h"

void ls_nfa_clear(ls_nfa *m) {
    free(m->parts);
    m->parts = NULL;
    m->n = 0;
    m->full = false;
}

/* ---- texts ---- */

uint32_t ls_nfa_add(ls_nfa *m, ls_nfa_part p) {
    if (m->n >= LS_NFA_PARTS) {
        m->full = true;
        return 0;
    }
    m->parts = ls_grow(m->parts, m->n, sizeof *m->parts);
    m->parts[m->n] = p;
    return m->n++;
}

uint32_t ls_nfa_add_split(ls_nfa *m, uint32_t a, uint32_t b) {
    return ls_nfa_add(m, (ls_nfa_part){.kind = LS_PART_SPLIT, .to = a, .other = b});
}

static uint32_t add_text(ls_nfa *m, const char *bytes, size_t n, uint32_t next) {
    while (n-- > 0 && !m->full) {
        uint8_t byte = (uint8_t)bytes[n];
        next = ls_nfa_add(m, (ls_nfa_part){LS_PART_BYTES, byte, byte, next, 0});
    }
    return next;
}

/* Alternatives that lead to one part. */
typedef struct nfa_alternatives {
    ls_nfa *m;
    uint32_t next, first;
    bool any;
    uint32_t from; /* parts from here on may be shared */
} nfa_alternatives;

static void add_alternative(nfa_alternatives *a, uint32_t first) {
    a->first = a->any ? ls_nfa_add_split(a->m, first, a->first) : first;
    a->any = true;
}

/* Characters share their last bytes: one of the last parts may be this one. */
static uint32_t add_shared(nfa_alternatives *a, ls_nfa_part p) {
    enum { SEEN = 24 };
    const ls_nfa *m = a->m;
    for (uint32_t i = m->n; i > a->from && i + SEEN > m->n; i--) {
        const ls_nfa_part *o = &m->parts[i - 1];
        if (o->kind == p.kind && o->first == p.first && o->last == p.last && o->to == p.to)
            return i - 1;
    }
    return ls_nfa_add(a->m, p);
}

static void add_bytes(void *arg, const ls_byte_ranges *r) {
    nfa_alternatives *a = arg;
    uint32_t next = a->next;
    for (int i = r->n; i-- > 0;)
        next = add_shared(a, (ls_nfa_part){LS_PART_BYTES, r->first[i], r->last[i], next, 0});
    add_alternative(a, next);
}

uint32_t ls_nfa_add_never(ls_nfa *m) {
    uint32_t part = ls_nfa_add(m, (ls_nfa_part){.kind = LS_PART_SPLIT});
    if (!m->full) m->parts[part].to = m->parts[part].other = part;
    return part;
}

/* A set may have no members. */
static uint32_t first_of(const nfa_alternatives *a) {
    return a->any ? a->first : ls_nfa_add_never(a->m);
}

static uint32_t add_chars(ls_nfa *m, const ls_char_set *s, uint32_t next) {
    nfa_alternatives a = {.m = m, .next = next, .from = m->n};
    ls_char_set_bytes(s, add_bytes, &a);
    return first_of(&a);
}

/* One of the bytes. */
static void add_byte_set(nfa_alternatives *a, const bool has[256]) {
    for (int first = 0, last; first < 256; first = last + 1) {
        for (last = first; last < 255 && has[last + 1] == has[first]; last++) continue;
        if (has[first])
            add_alternative(a, ls_nfa_add(a->m, (ls_nfa_part){LS_PART_BYTES, (uint8_t)first,
                                                              (uint8_t)last, a->next, 0}));
    }
}

/* What follows a \\ in JSON's strings: a letter, or u00 and two digits. */
static void add_escapes(ls_nfa *m, const ls_char_set *s, nfa_alternatives *a) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", digits[] = "0123456789abcdef";
    bool letters[256] = {false};
    for (size_t i = 0; i < sizeof from - 1; i++)
        letters[(uint8_t)to[i]] = ls_char_set_has(s, (uint32_t)from[i]);
    add_byte_set(a, letters);
    for (uint32_t high = 0; high < 2; high++) {
        const char before[] = {'u', '0', '0', digits[high]};
        nfa_alternatives low = {.m = m, .next = a->next};
        bool lows[256] = {false};
        for (uint32_t c = high ? 16 : 1; c < (high + 1) * 16; c++)
            lows[(uint8_t)digits[c & 15]] = ls_char_set_has(s, c) && !strchr(from, (int)c);
        add_byte_set(&low, lows);
        if (low.any) add_alternative(a, add_text(m, before, sizeof before, low.first));
    }
}

/* A character as JSON writes it. */
static uint32_t add_quoted(ls_nfa *m, const ls_char_set *s, uint32_t next) {
    nfa_alternatives a = {.m = m, .next = next, .from = m->n}, escapes = a;
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

static uint32_t add_repeat(ls_nfa *m, const ls_expression *x, uint32_t next) {
    uint32_t first = next;
    if (x->most == LS_NO_LIMIT) {
        first = ls_nfa_add_split(m, next, next);
        uint32_t body = ls_nfa_add_expression(m, x->a, first);
        if (!m->full) m->parts[first].to = body;
    }
    for (int64_t i = x->least; i < x->most && !m->full; i++)
        first = ls_nfa_add_split(m, ls_nfa_add_expression(m, x->a, first), next);
    for (int64_t i = 0; i < x->least && !m->full; i++)
        first = ls_nfa_add_expression(m, x->a, first);
    return first;
}

/* ---- lists ---- */

/* Before a member of a list: firsts[c] begins what follows where c members were written before. */
typedef struct nfa_list {
    ls_nfa *m;
    const ls_expression *list;
    uint32_t *firsts; /* [cap + 1] */
    uint32_t cap;     /* at it, further members are not counted, or not allowed */
} nfa_list;

static bool stays(const nfa_list *l) { return l->list->most == LS_NO_LIMIT; }

/* A member, and what follows it; with a comma before it where others were. */
static uint32_t add_member(const nfa_list *l, uint32_t c, uint32_t body) {
    return c ? add_text(l->m, ",", 1, body) : body;
}

static void add_single(nfa_list *l, const ls_expression *x) {
    uint32_t body = 0, to = UINT32_MAX;
    for (uint32_t c = 0; c <= l->cap && !l->m->full; c++) {
        bool more = c < l->cap || stays(l);
        uint32_t later = c < l->cap ? c + 1 : c, own = l->firsts[c];
        if (!more) {
            if (x->least) l->firsts[c] = ls_nfa_add_never(l->m);
            continue;
        }
        /* firsts[later] is still that of the members behind; the last two counts share one. */
        if (later != to) body = ls_nfa_add_expression(l->m, x->b, l->firsts[later]);
        to = later;
        l->firsts[c] = add_member(l, c, body);
        if (!x->least) l->firsts[c] = ls_nfa_add_split(l->m, l->firsts[c], own);
    }
}

static void add_any_number(nfa_list *l, const ls_expression *x) {
    for (uint32_t c = l->cap + 1; c-- > 0 && !l->m->full;) {
        uint32_t loop = ls_nfa_add_split(l->m, l->firsts[c], l->firsts[c]);
        if (c == l->cap && !stays(l)) continue;
        uint32_t to = c == l->cap ? loop : l->firsts[c + 1];
        uint32_t path = add_member(l, c, ls_nfa_add_expression(l->m, x->b, to));
        if (!l->m->full) l->m->parts[loop].to = path;
        l->firsts[c] = loop;
    }
}

/* From the last member back. */
static uint32_t add_list(ls_nfa *m, const ls_expression *x, uint32_t next) {
    int64_t cap = x->most != LS_NO_LIMIT ? x->most : x->least > 1 ? x->least : 1;
    if (cap >= LS_NFA_PARTS) m->full = true;
    if (m->full) return 0;
    nfa_list l = {m, x, LS_NEW_ARRAY(uint32_t, (size_t)cap + 1), (uint32_t)cap};
    for (uint32_t c = 0; c <= l.cap; c++) l.firsts[c] = c >= x->least ? next : ls_nfa_add_never(m);
    for (const ls_expression *member = x->a; member && !m->full; member = member->a)
        if (member->most == LS_NO_LIMIT)
            add_any_number(&l, member);
        else
            add_single(&l, member);
    uint32_t first = l.firsts[0];
    free(l.firsts);
    return first;
}

/* Each value at most once, in any order: a part for each set of those that were written. */
static uint32_t add_distinct(ls_nfa *m, const ls_expression *x, uint32_t next) {
    const ls_expression *values[LS_DISTINCT_VALUES];
    uint32_t n = 0, firsts[1 << LS_DISTINCT_VALUES];
    for (const ls_expression *v = x->a; v; v = v->kind == LS_EXPRESSION_EITHER ? v->a : NULL)
        values[n++] = v->kind == LS_EXPRESSION_EITHER ? v->b : v;
    for (uint32_t set = 1u << n; set-- > 0 && !m->full;) {
        int64_t written = __builtin_popcount(set);
        nfa_alternatives a = {.m = m};
        if (written >= x->least) add_alternative(&a, next);
        for (uint32_t i = 0; i < n && (x->most == LS_NO_LIMIT || written < x->most); i++) {
            if (set >> i & 1) continue;
            uint32_t one = ls_nfa_add_expression(m, values[i], firsts[set | 1u << i]);
            add_alternative(&a, set ? add_text(m, ",", 1, one) : one);
        }
        firsts[set] = first_of(&a);
    }
    return m->full ? 0 : firsts[0];
}

/* ---- multiples ---- */

/* A decimal number by the remainder of its digits so far, and how many of them are behind the
 * point. */
typedef struct nfa_multiple {
    ls_nfa *m;
    uint64_t step;        /* in units of the last place */
    int places;           /* at most so many digits behind the point */
    uint32_t first, next; /* first: [places + 1][step] a part each */
} nfa_multiple;

static uint32_t multiple_at(const nfa_multiple *x, int place, uint64_t remainder) {
    return x->first + (uint32_t)((uint64_t)place * x->step + remainder);
}

/* Is the number a multiple, if zeros follow? */
static bool is_multiple(const nfa_multiple *x, int place, uint64_t remainder) {
    for (; place < x->places; place++) remainder = remainder * 10 % x->step;
    return remainder == 0;
}

/* The digits from `first` on, behind which there are `place` digits behind the point. */
static void add_digits(const nfa_multiple *x, nfa_alternatives *a, int first, int place,
                       uint64_t remainder) {
    uint8_t last = x->step == 1 ? '9' : 0; /* of step 1 all digits lead to the same part */
    for (int d = first; d <= 9 && !x->m->full; d = last ? 10 : d + 1) {
        uint8_t byte = (uint8_t)('0' + d);
        uint32_t to = multiple_at(x, place, (remainder * 10 + (uint64_t)d) % x->step);
        add_alternative(
            a, ls_nfa_add(x->m, (ls_nfa_part){LS_PART_BYTES, byte, last ? last : byte, to, 0}));
    }
}

/* The end, if there may be one, and the point. */
static void add_rest(const nfa_multiple *x, nfa_alternatives *a, int place, uint64_t remainder) {
    if (is_multiple(x, place, remainder)) add_alternative(a, x->next);
    if (place > 0 || x->places == 0) return;
    nfa_alternatives behind = {.m = x->m};
    add_digits(x, &behind, 0, 1, remainder);
    add_alternative(a, add_text(x->m, ".", 1, first_of(&behind)));
}

static uint32_t add_multiple(ls_nfa *m, const ls_expression *e, uint32_t next) {
    nfa_multiple x = {m, (uint64_t)e->least, (int)e->most, m->n, next};
    nfa_alternatives zero = {.m = m}, start = {.m = m};
    for (uint64_t i = 0; i < x.step * (uint64_t)(x.places + 1) && !m->full; i++)
        ls_nfa_add_never(m);
    for (int place = 0; place <= x.places; place++)
        for (uint64_t r = 0; r < x.step && !m->full; r++) {
            nfa_alternatives a = {.m = m};
            if (place == 0 || place < x.places) add_digits(&x, &a, 0, place ? place + 1 : 0, r);
            add_rest(&x, &a, place, r);
            uint32_t first = first_of(&a);
            if (m->full) break;
            m->parts[multiple_at(&x, place, r)].to = first;
            m->parts[multiple_at(&x, place, r)].other = first;
        }
    add_rest(&x, &zero, 0, 0);
    add_alternative(&start, add_text(m, "0", 1, first_of(&zero)));
    add_digits(&x, &start, 1, 0, 0);
    return m->full ? 0 : ls_nfa_add_split(m, start.first, add_text(m, "-", 1, start.first));
}

/* ---- an expression ---- */

uint32_t ls_nfa_add_expression(ls_nfa *m, const ls_expression *x, uint32_t next) {
    nfa_alternatives a = {.m = m, .next = next};
    while (x->kind == LS_EXPRESSION_SEQUENCE && !m->full) {
        next = ls_nfa_add_expression(m, x->b, next);
        x = x->a;
    }
    a.next = next;
    for (; x->kind == LS_EXPRESSION_EITHER && !m->full; x = x->a)
        add_alternative(&a, ls_nfa_add_expression(m, x->b, next));
    uint32_t first = next;
    switch (x->kind) {
    case LS_EXPRESSION_TEXT: first = add_text(m, x->bytes, x->nbytes, next); break;
    case LS_EXPRESSION_CHARS: first = add_chars(m, &x->chars, next); break;
    case LS_EXPRESSION_QUOTED: first = add_quoted(m, &x->chars, next); break;
    case LS_EXPRESSION_REPEAT: first = add_repeat(m, x, next); break;
    case LS_EXPRESSION_BOTH:
    case LS_EXPRESSION_WITHOUT: first = ls_nfa_add_product(m, x, next); break;
    case LS_EXPRESSION_MULTIPLE: first = add_multiple(m, x, next); break;
    case LS_EXPRESSION_DISTINCT: first = add_distinct(m, x, next); break;
    case LS_EXPRESSION_MEMBER: break; /* a list has it */
    case LS_EXPRESSION_LIST: first = add_list(m, x, next); break;
    case LS_EXPRESSION_SEQUENCE: first = m->full ? 0 : ls_nfa_add_expression(m, x, next); break;
    case LS_EXPRESSION_EITHER: break; /* it is full */
    case LS_EXPRESSION_CALL:
        first = ls_nfa_add(m, (ls_nfa_part){.kind = LS_PART_CALL, .to = next, .other = x->rule});
        break;
    }
    if (!a.any) return first;
    add_alternative(&a, first);
    return a.first;
}

/* ---- sets of parts ---- */

void ls_nfa_sets_init(ls_nfa_sets *s, ls_nfa *m) {
    *s = (ls_nfa_sets){.nfa = m};
    s->marks = LS_NEW_ARRAY(uint32_t, m->n);
    s->set = LS_NEW_ARRAY(uint32_t, m->n);
    s->stack = LS_NEW_ARRAY(uint32_t, 2 * (size_t)m->n + 2);
}

void ls_nfa_sets_free(ls_nfa_sets *s) {
    ls_sequences_free(&s->sets);
    free(s->marks), free(s->set), free(s->stack);
    *s = (ls_nfa_sets){0};
}

void ls_nfa_set_begin(ls_nfa_sets *s) {
    s->nset = 0;
    s->mark++;
}

void ls_nfa_set_add(ls_nfa_sets *s, uint32_t part) {
    size_t n = 0;
    s->stack[n++] = part;
    while (n) {
        part = s->stack[--n];
        if (s->marks[part] == s->mark) continue;
        s->marks[part] = s->mark;
        s->nfa->work++;
        const ls_nfa_part *p = &s->nfa->parts[part];
        if (p->kind != LS_PART_SPLIT) {
            s->set[s->nset++] = part;
            continue;
        }
        s->stack[n++] = p->to;
        s->stack[n++] = p->other;
    }
}

static int compare_parts(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t ls_nfa_set_end(ls_nfa_sets *s) {
    if (s->nset > 1) qsort(s->set, s->nset, sizeof *s->set, compare_parts);
    return ls_sequences_add(&s->sets, s->set, s->nset);
}

void ls_nfa_cut(const ls_nfa *m, const uint32_t *parts, size_t n, bool cut[257]) {
    for (size_t i = 0; i < n; i++) {
        const ls_nfa_part *p = &m->parts[parts[i]];
        if (p->kind == LS_PART_BYTES) cut[p->first] = cut[p->last + 1] = true;
    }
}

void ls_nfa_set_step(ls_nfa_sets *s, const uint32_t *parts, size_t n, uint8_t byte) {
    ls_nfa_set_begin(s);
    s->nfa->work += (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const ls_nfa_part *p = &s->nfa->parts[parts[i]];
        if (p->kind == LS_PART_BYTES && p->first <= byte && p->last >= byte)
            ls_nfa_set_add(s, p->to);
    }
}

/* ---- comparing texts ---- */

struct ls_nfa_matcher {
    ls_nfa nfa;
    ls_nfa_sets sets;
    uint32_t first, end;
    ls_buf own; /* a set, while the next one is made */
};

ls_nfa_matcher *ls_nfa_matcher_new(const ls_expression *x) {
    ls_nfa_matcher *m = LS_NEW(ls_nfa_matcher);
    m->end = ls_nfa_add(&m->nfa, (ls_nfa_part){.kind = LS_PART_END});
    m->first = ls_nfa_add_expression(&m->nfa, x, m->end);
    if (!m->nfa.full) ls_nfa_sets_init(&m->sets, &m->nfa);
    return m;
}

void ls_nfa_matcher_free(ls_nfa_matcher *m) {
    if (!m) return;
    ls_nfa_sets_free(&m->sets);
    ls_nfa_clear(&m->nfa);
    ls_buf_free(&m->own);
    free(m);
}

bool ls_nfa_matches(ls_nfa_matcher *m, const char *text, size_t n) {
    ls_nfa_sets *s = &m->sets;
    if (ls_nfa_matcher_full(m)) return false;
    ls_nfa_set_begin(s);
    ls_nfa_set_add(s, m->first);
    for (size_t i = 0; i < n && s->nset && !ls_nfa_matcher_full(m); i++) {
        m->own.len = 0;
        ls_buf_append(&m->own, s->set, s->nset * sizeof *s->set);
        ls_nfa_set_step(s, (const uint32_t *)(const void *)m->own.data, s->nset, (uint8_t)text[i]);
    }
    return s->marks[m->end] == s->mark;
}

bool ls_nfa_matcher_full(const ls_nfa_matcher *m) {
    return m->nfa.full || m->nfa.work > LS_NFA_WORK;
}
