/* expression.c - see expression.h. */
#include "grammar/expression.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static ls_expression *new_node(ls_expressions *p, ls_expression_kind kind) {
    ls_expression *x = LS_NEW(ls_expression);
    x->kind = kind;
    x->next = p->first;
    p->first = x;
    p->n++;
    return x;
}

void ls_expressions_free(ls_expressions *p) {
    for (ls_expression *x = p->first, *next; x; x = next) {
        next = x->next;
        free(x->bytes);
        ls_char_set_free(&x->chars);
        free(x);
    }
    *p = (ls_expressions){0};
}

const ls_expression *ls_expression_bytes(ls_expressions *p, const char *bytes, size_t n) {
    ls_expression *x = new_node(p, LS_EXPRESSION_TEXT);
    x->bytes = ls_alloc(n + 1);
    memcpy(x->bytes, bytes, n);
    x->nbytes = n;
    return x;
}

const ls_expression *ls_expression_text(ls_expressions *p, const char *text) {
    return ls_expression_bytes(p, text, strlen(text));
}

const ls_expression *ls_expression_chars(ls_expressions *p, ls_char_set *chars, bool quoted) {
    ls_expression *x = new_node(p, quoted ? LS_EXPRESSION_QUOTED : LS_EXPRESSION_CHARS);
    x->chars = *chars;
    *chars = (ls_char_set){0};
    return x;
}

const ls_expression *ls_expression_range(ls_expressions *p, uint32_t first, uint32_t last,
                                         bool quoted) {
    ls_char_set chars = {0};
    ls_char_set_add(&chars, first, last);
    return ls_expression_chars(p, &chars, quoted);
}

static const ls_expression *join(ls_expressions *p, ls_expression_kind kind, const ls_expression *a,
                                 const ls_expression *b) {
    if (!a) return b;
    ls_expression *x = new_node(p, kind);
    x->a = a;
    x->b = b;
    return x;
}

const ls_expression *ls_expression_then(ls_expressions *p, const ls_expression *a,
                                        const ls_expression *b) {
    return join(p, LS_EXPRESSION_SEQUENCE, a, b);
}

const ls_expression *ls_expression_or(ls_expressions *p, const ls_expression *a,
                                      const ls_expression *b) {
    return join(p, LS_EXPRESSION_EITHER, a, b);
}

static const ls_expression *bound(ls_expressions *p, ls_expression_kind kind,
                                  const ls_expression *a, int64_t least, int64_t most) {
    ls_expression *x = new_node(p, kind);
    x->a = a;
    x->least = least;
    x->most = most;
    return x;
}

const ls_expression *ls_expression_repeat(ls_expressions *p, const ls_expression *a, int64_t least,
                                          int64_t most) {
    return bound(p, LS_EXPRESSION_REPEAT, a, least, most);
}

const ls_expression *ls_expression_member(ls_expressions *p, const ls_expression *before,
                                          const ls_expression *b, int64_t least, int64_t most) {
    ls_expression *x = new_node(p, LS_EXPRESSION_MEMBER);
    x->a = before;
    x->b = b;
    x->least = least;
    x->most = most;
    return x;
}

const ls_expression *ls_expression_list(ls_expressions *p, const ls_expression *members,
                                        int64_t least, int64_t most) {
    return bound(p, LS_EXPRESSION_LIST, members, least, most);
}

const ls_expression *ls_expression_distinct(ls_expressions *p, const ls_expression *values,
                                            int64_t least, int64_t most) {
    return bound(p, LS_EXPRESSION_DISTINCT, values, least, most);
}

const ls_expression *ls_expression_both(ls_expressions *p, const ls_expression *a,
                                        const ls_expression *b) {
    return join(p, LS_EXPRESSION_BOTH, a, b);
}

const ls_expression *ls_expression_without(ls_expressions *p, const ls_expression *a,
                                           const ls_expression *b) {
    return join(p, LS_EXPRESSION_WITHOUT, a, b);
}

const ls_expression *ls_expression_multiple(ls_expressions *p, int64_t step, int places) {
    return bound(p, LS_EXPRESSION_MULTIPLE, NULL, step, places);
}

const ls_expression *ls_expression_never(ls_expressions *p) {
    return ls_expression_chars(p, &(ls_char_set){0}, false);
}

const ls_expression *ls_expression_call(ls_expressions *p, uint32_t rule) {
    ls_expression *x = new_node(p, LS_EXPRESSION_CALL);
    x->rule = rule;
    return x;
}

/* ---- lengths ---- */

#define LARGE (INT64_C(1) << 40)

typedef struct text_length {
    int64_t least, most; /* at most LARGE */
} text_length;

static int64_t limited(int64_t n) { return n < LARGE ? n : LARGE; }

/* n <= LARGE, times < 2^31 or LARGE */
static int64_t times(int64_t n, int64_t times) {
    return n == 0 || times == 0 ? 0 : n > LARGE / times ? LARGE : n * times;
}

static text_length length_of(const ls_expression *x);

/* Of the sequence that ends with x. */
static text_length sum_of(const ls_expression *x) {
    text_length sum = {0, 0};
    for (bool last = false; !last; x = x->a) {
        last = x->kind != LS_EXPRESSION_SEQUENCE;
        text_length one = length_of(last ? x : x->b);
        sum = (text_length){limited(sum.least + one.least), limited(sum.most + one.most)};
    }
    return sum;
}

static text_length range_of(const ls_expression *x) {
    text_length range = {LARGE, 0};
    for (bool last = false; !last; x = x->a) {
        last = x->kind != LS_EXPRESSION_EITHER;
        text_length one = length_of(last ? x : x->b);
        if (one.least < range.least) range.least = one.least;
        if (one.most > range.most) range.most = one.most;
    }
    return range;
}

static text_length length_of_both(text_length a, text_length b) {
    return (text_length){a.least > b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
}

static text_length length_of(const ls_expression *x) {
    text_length one;
    switch (x->kind) {
    case LS_EXPRESSION_TEXT: return (text_length){0, (int64_t)x->nbytes}; /* bytes */
    case LS_EXPRESSION_CHARS:
    case LS_EXPRESSION_QUOTED: return (text_length){1, 1};
    case LS_EXPRESSION_SEQUENCE: return sum_of(x);
    case LS_EXPRESSION_EITHER: return range_of(x);
    case LS_EXPRESSION_REPEAT:
        one = length_of(x->a);
        return (text_length){times(one.least, x->least),
                             times(one.most, x->most == LS_NO_LIMIT ? LARGE : x->most)};
    case LS_EXPRESSION_WITHOUT: return length_of(x->a);
    case LS_EXPRESSION_BOTH: return length_of_both(length_of(x->a), length_of(x->b));
    case LS_EXPRESSION_MULTIPLE:
    case LS_EXPRESSION_MEMBER:
    case LS_EXPRESSION_LIST:
    case LS_EXPRESSION_DISTINCT:
    case LS_EXPRESSION_CALL: break;
    }
    return (text_length){0, LARGE};
}

void ls_expression_length(const ls_expression *x, int64_t *least_p, int64_t *most_p) {
    text_length n = length_of(x);
    *least_p = n.least;
    *most_p = n.most == LARGE ? LS_NO_LIMIT : n.most;
}
