/* braces.c - see braces.h. The first pair is replaced by each of its parts in turn, and what comes
 * out is expanded from there on. */
#include "data/braces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, LONGEST = 1 << 14, LONGEST_NUMBER = 18 };

typedef struct group {
    const char *open, *close; /* the braces */
    bool numbers;
    long long first, last; /* } of numbers */
    int width;             /* } */
} group;

/* The end of the part that begins here: a comma, or the closing brace; NULL: there is none. */
static const char *end_of_part(const char *s) {
    for (int depth = 0; *s; s++) {
        if (*s == '{') depth++;
        if (depth == 0 && (*s == ',' || *s == '}')) return s;
        if (*s == '}') depth--;
    }
    return NULL;
}

/* Reads digits with a sign; *width_p grows to their number where they begin with a 0. */
static const char *read_number(const char *s, long long *v_p, int *width_p) {
    const char *digits = s + (*s == '-');
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > LONGEST_NUMBER) return NULL;
    *v_p = strtoll(s, NULL, 10);
    int length = (int)(digits - s) + (int)n;
    if (n > 1 && *digits == '0' && length > *width_p) *width_p = length;
    return digits + n;
}

static bool read_range(group *g) {
    const char *s = read_number(g->open + 1, &g->first, &g->width);
    if (!s || strncmp(s, "..", 2) != 0) return false;
    s = read_number(s + 2, &g->last, &g->width);
    return g->numbers = s == g->close;
}

/* Finds the first pair from s on that stands for something else. */
static bool find_group(const char *s, group *g_p) {
    for (; (s = strchr(s, '{')); s++) {
        group g = {.open = s};
        const char *end = end_of_part(s + 1);
        bool list = end && *end == ',';
        while (end && *end == ',') end = end_of_part(end + 1);
        g.close = end;
        if (end && (list || read_range(&g))) {
            *g_p = g;
            return true;
        }
    }
    return false;
}

bool ls_braces_are_in(const char *name) {
    group g;
    return find_group(name, &g);
}

typedef struct expansion {
    const char *name; /* as given */
    ls_buf *names;
    size_t n;
} expansion;

/* `text` from `at` on. */
static ls_status expand(expansion *x, const char *text, size_t at, int depth, ls_error *e);

static ls_status expand_part(expansion *x, const char *text, const group *g, char *part, int depth,
                             ls_error *e) {
    size_t head = (size_t)(g->open - text);
    char *next = ls_format("%.*s%s%s", (int)head, text, part, g->close + 1);
    free(part);
    ls_status s = strlen(next) <= LONGEST ? expand(x, next, head, depth + 1, e)
                                          : ls_fail(e, LS_EINVAL, "%s: is too long", x->name);
    free(next);
    return s;
}

static ls_status too_many(const expansion *x, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: its braces stand for more than %d names", x->name,
                   LS_BRACES_MOST);
}

static ls_status expand_numbers(expansion *x, const char *text, const group *g, int depth,
                                ls_error *e) {
    long long step = g->first <= g->last ? 1 : -1;
    if ((g->last - g->first) * step >= LS_BRACES_MOST) return too_many(x, e);
    for (long long v = g->first;; v += step) {
        LS_TRY(expand_part(x, text, g, ls_format("%0*lld", g->width, v), depth, e));
        if (v == g->last) return LS_OK;
    }
}

static ls_status expand(expansion *x, const char *text, size_t at, int depth, ls_error *e) {
    group g;
    if (!find_group(text + at, &g)) {
        if (x->n++ == LS_BRACES_MOST) return too_many(x, e);
        ls_buf_printf(x->names, "%s\n", text);
        return LS_OK;
    }
    if (depth == DEEPEST)
        return ls_fail(e, LS_EINVAL, "%s: has more than %d pairs of braces", x->name, DEEPEST);
    if (g.numbers) return expand_numbers(x, text, &g, depth, e);
    for (const char *s = g.open + 1;; s++) {
        const char *end = end_of_part(s);
        LS_TRY(expand_part(x, text, &g, ls_format("%.*s", (int)(end - s), s), depth, e));
        if (end == g.close) return LS_OK;
        s = end;
    }
}

ls_status ls_braces_expand(const char *name, ls_buf *names, ls_error *e) {
    expansion x = {name, names, 0};
    return expand(&x, name, 0, 0, e);
}
