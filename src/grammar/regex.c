/* regex.c - see regex.h. */
#include "grammar/regex.h"

#include <string.h>

#include "base/utf8.h"

enum { MOST_NESTED = 100, MOST_REPEATED = 10000 };

typedef struct regex_reader {
    const char *text; /* [n] */
    size_t n, at;
    const ls_regex_options *o;
    ls_expressions *pool;
    int depth;
    ls_error *e;
} regex_reader;

static ls_status read_either(regex_reader *, const ls_expression **x_p);

static bool ends(const regex_reader *r) { return r->at >= r->n; }
static bool next_is(const regex_reader *r, char c) { return !ends(r) && r->text[r->at] == c; }

static bool skip(regex_reader *r, char c) {
    bool is = next_is(r, c);
    r->at += is;
    return is;
}

static ls_status fail_at(const regex_reader *r, size_t at, const char *what) {
    return ls_fail(r->e, LS_EINVAL, "character %zu of the expression: %s", at + 1, what);
}

static ls_status read_char(regex_reader *r, uint32_t *c_p) {
    size_t n = ls_utf8_decode(r->text + r->at, r->n - r->at, c_p);
    if (n == 0) return fail_at(r, r->at, "it is not UTF-8");
    r->at += n;
    return LS_OK;
}

/* ---- classes ---- */

static void add_word(ls_char_set *s) {
    ls_char_set_add(s, '0', '9');
    ls_char_set_add(s, 'A', 'Z');
    ls_char_set_add(s, '_', '_');
    ls_char_set_add(s, 'a', 'z');
}

/* U+FEFF is white space for ECMAScript, and is not for others: neither \\s has it, nor \\S, nor a
 * set [^...]. */
#define MARK 0xfeff

/* What ECMAScript has as white space, ends of lines among it. */
static void add_space(ls_char_set *s) {
    static const ls_char_range ranges[] = {
        {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {MARK, MARK}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        ls_char_set_add(s, ranges[i].first, ranges[i].last);
}

/* False: c is the letter of no class. */
static bool add_class(ls_char_set *s, char c) {
    ls_char_set own = {0};
    switch (c | 0x20) {
    case 'd': ls_char_set_add(&own, '0', '9'); break;
    case 'w': add_word(&own); break;
    case 's': add_space(&own); break;
    default: return false;
    }
    if (!(c & 0x20)) ls_char_set_invert(&own);
    if (c == 's') ls_char_set_remove(&own, MARK, MARK);
    ls_char_set_add_all(s, &own);
    ls_char_set_free(&own);
    return true;
}

static ls_status read_hex(regex_reader *r, int ndigits, uint32_t *c_p) {
    uint32_t c = 0;
    for (int i = 0; i < ndigits; i++, r->at++) {
        static const char digits[] = "0123456789abcdef";
        const char *d = ends(r) || !r->text[r->at] ? NULL : strchr(digits, r->text[r->at] | 0x20);
        if (!d) return fail_at(r, r->at, "a hexadecimal digit is expected");
        c = c * 16 + (uint32_t)(d - digits);
    }
    *c_p = c;
    return LS_OK;
}

/* What follows a backslash. *class_p: it was a class, which has been added to *s. */
static ls_status read_escape(regex_reader *r, ls_char_set *s, bool *class_p, uint32_t *c_p) {
    static const char from[] = "ntrfv", to[] = "\n\t\r\f\v";
    size_t at = r->at;
    if (ends(r)) return fail_at(r, at, "it ends with a backslash");
    char c = r->text[at];
    const char *known = c ? strchr(from, c) : NULL;
    *class_p = add_class(s, c);
    if (*class_p || known) {
        r->at++;
        if (known) *c_p = (uint32_t)to[known - from];
        return LS_OK;
    }
    if (skip(r, 'x')) return read_hex(r, 2, c_p);
    if (skip(r, 'u')) return read_hex(r, 4, c_p);
    LS_TRY(read_char(r, c_p));
    bool letter = (*c_p | 0x20) >= 'a' && (*c_p | 0x20) <= 'z';
    if (letter || (*c_p >= '0' && *c_p <= '9'))
        return ls_fail(r->e, LS_EINVAL, "character %zu of the expression: \\%c is not supported",
                       at, (char)*c_p);
    return LS_OK;
}

/* A character of [...], or a class, which is added. */
static ls_status read_member(regex_reader *r, ls_char_set *s, bool *class_p, uint32_t *c_p) {
    *class_p = false;
    if (next_is(r, '[') && r->at + 1 < r->n && strchr(":.=", r->text[r->at + 1]))
        return fail_at(r, r->at, "classes by name are not supported");
    if (!skip(r, '\\')) return read_char(r, c_p);
    if (skip(r, 'b')) {
        *c_p = '\b';
        return LS_OK;
    }
    return read_escape(r, s, class_p, c_p);
}

static ls_status read_members(regex_reader *r, ls_char_set *s) {
    size_t from = r->at;
    if (next_is(r, ']') && r->o->anywhere) /* ECMAScript's set ends there, others' has it */
        return fail_at(r, from, "the set begins with ]: write \\]");
    while (!next_is(r, ']') || r->at == from) {
        bool class = false, other = false;
        uint32_t first = 0, last = 0;
        size_t at = r->at;
        if (ends(r)) return fail_at(r, from, "this [ is not closed");
        LS_TRY(read_member(r, s, &class, &first));
        last = first;
        bool range = next_is(r, '-') && r->at + 1 < r->n && r->text[r->at + 1] != ']';
        if (range) {
            r->at++;
            LS_TRY(read_member(r, s, &other, &last));
            if (class || other || last < first) return fail_at(r, at, "this range is no range");
        }
        if (!class) ls_char_set_add(s, first, last);
    }
    r->at++;
    return LS_OK;
}

static ls_status read_set(regex_reader *r, const ls_expression **x_p) {
    ls_char_set s = {0};
    size_t at = r->at;
    bool inverted = skip(r, '^');
    ls_status status = read_members(r, &s);
    if (status == LS_OK && inverted) {
        ls_char_set_invert(&s);
        ls_char_set_remove(&s, MARK, MARK);
    }
    if (status == LS_OK && s.n == 0) status = fail_at(r, at, "this set has no characters");
    if (status == LS_OK)
        *x_p = ls_expression_chars(r->pool, &s, r->o->quoted);
    else
        ls_char_set_free(&s);
    return status;
}

/* ---- atoms ---- */

/* After "(": what may follow "?" */
static ls_status read_kind(regex_reader *r) {
    size_t at = r->at;
    if (!skip(r, '?') || skip(r, ':')) return LS_OK;
    skip(r, 'P');
    if (!skip(r, '<') || next_is(r, '=') || next_is(r, '!'))
        return fail_at(r, at, "look-around, flags and references are not supported");
    while (!ends(r) && r->text[r->at] != '>') r->at++;
    return skip(r, '>') ? LS_OK : fail_at(r, at, "this name of a group is not closed");
}

static ls_status read_group(regex_reader *r, const ls_expression **x_p) {
    size_t at = r->at - 1;
    LS_TRY(read_kind(r));
    if (++r->depth > MOST_NESTED) return fail_at(r, at, "groups are nested too deeply");
    LS_TRY(read_either(r, x_p));
    r->depth--;
    return skip(r, ')') ? LS_OK : fail_at(r, at, "this ( is not closed");
}

static ls_status read_escaped(regex_reader *r, const ls_expression **x_p) {
    ls_char_set s = {0};
    bool class = false;
    uint32_t c = 0;
    LS_TRY(read_escape(r, &s, &class, &c));
    if (!class) ls_char_set_add(&s, c, c);
    *x_p = ls_expression_chars(r->pool, &s, r->o->quoted);
    return LS_OK;
}

static const ls_expression *any_char(const regex_reader *r, bool line_ends) {
    ls_char_set s = {0};
    ls_char_set_add(&s, 0, LS_LAST_CHAR);
    if (!line_ends) {
        ls_char_set_remove(&s, '\n', '\n');
        ls_char_set_remove(&s, '\r', '\r');
        ls_char_set_remove(&s, 0x2028, 0x2029);
    }
    return ls_expression_chars(r->pool, &s, r->o->quoted);
}

static ls_status read_atom(regex_reader *r, const ls_expression **x_p) {
    size_t at = r->at;
    uint32_t c = 0;
    if (skip(r, '(')) return read_group(r, x_p);
    if (skip(r, '[')) return read_set(r, x_p);
    if (skip(r, '\\')) return read_escaped(r, x_p);
    if (skip(r, '.')) {
        *x_p = any_char(r, false);
        return LS_OK;
    }
    LS_TRY(read_char(r, &c));
    if (c < 0x80 && c && strchr("*+?{", (int)c))
        return fail_at(r, at, "there is nothing to repeat");
    if (c == '^' || c == '$')
        return fail_at(r, at, "^ and $ are supported at the ends of the expression alone");
    *x_p = ls_expression_range(r->pool, c, c, r->o->quoted);
    return LS_OK;
}

/* ---- how often ---- */

static bool read_count(regex_reader *r, int64_t *n) {
    size_t from = r->at;
    for (*n = 0; !ends(r) && r->text[r->at] >= '0' && r->text[r->at] <= '9'; r->at++)
        if (*n <= MOST_REPEATED) *n = *n * 10 + (r->text[r->at] - '0');
    return r->at > from;
}

static ls_status read_counts(regex_reader *r, int64_t *least, int64_t *most) {
    size_t at = r->at - 1;
    bool right = read_count(r, least);
    *most = *least;
    if (right && skip(r, ',') && !read_count(r, most)) *most = LS_NO_LIMIT;
    if (!right || !skip(r, '}')) return fail_at(r, at, "{n}, {n,} or {n,m} is expected");
    if (*least > MOST_REPEATED || *most > MOST_REPEATED)
        return fail_at(r, at, "at most 10000 repetitions are supported");
    if (*most != LS_NO_LIMIT && *most < *least) return fail_at(r, at, "{n,m}: m is less than n");
    return LS_OK;
}

/* A ? behind it says which match is preferred, and changes no language. */
static ls_status read_repeated(regex_reader *r, const ls_expression **x_p) {
    const ls_expression *x = NULL;
    LS_TRY(read_atom(r, &x));
    for (bool again = false;; again = true) {
        int64_t least = 0, most = LS_NO_LIMIT;
        size_t at = r->at;
        if (skip(r, '+')) {
            least = 1;
        } else if (skip(r, '?')) {
            most = 1;
        } else if (skip(r, '{')) {
            LS_TRY(read_counts(r, &least, &most));
        } else if (!skip(r, '*')) {
            break;
        }
        if (again) return fail_at(r, at, "a repetition can't be repeated; use (?:...)");
        skip(r, '?');
        x = ls_expression_repeat(r->pool, x, least, most);
    }
    *x_p = x;
    return LS_OK;
}

static bool sequence_ends(const regex_reader *r) {
    return ends(r) || next_is(r, '|') || next_is(r, ')');
}

static bool skip_end(regex_reader *r) {
    if (r->depth || !next_is(r, '$')) return false;
    bool last = r->at + 1 == r->n || r->text[r->at + 1] == '|';
    r->at += last;
    return last;
}

static ls_status read_sequence(regex_reader *r, const ls_expression **x_p) {
    const ls_expression *x = NULL, *more = NULL;
    bool begins = r->depth == 0 && skip(r, '^'), closed = false;
    bool anywhere = r->depth == 0 && r->o->anywhere;
    if (anywhere && !begins) x = ls_expression_repeat(r->pool, any_char(r, true), 0, LS_NO_LIMIT);
    while (!sequence_ends(r) && !(closed = skip_end(r))) {
        LS_TRY(read_repeated(r, &more));
        x = ls_expression_then(r->pool, x, more);
    }
    if (anywhere && !closed)
        x = ls_expression_then(r->pool, x,
                               ls_expression_repeat(r->pool, any_char(r, true), 0, LS_NO_LIMIT));
    *x_p = x ? x : ls_expression_text(r->pool, "");
    return LS_OK;
}

static ls_status read_either(regex_reader *r, const ls_expression **x_p) {
    const ls_expression *x = NULL;
    do {
        const ls_expression *one = NULL;
        LS_TRY(read_sequence(r, &one));
        x = ls_expression_or(r->pool, x, one);
    } while (skip(r, '|'));
    *x_p = x;
    return LS_OK;
}

ls_status ls_regex_read(ls_expressions *pool, const char *text, size_t n, const ls_regex_options *o,
                        const ls_expression **x_p, ls_error *e) {
    regex_reader r = {.text = text, .n = n, .o = o, .pool = pool, .e = e};
    LS_TRY(read_either(&r, x_p));
    return ends(&r) ? LS_OK : fail_at(&r, r.at, "this ) was not opened");
}
