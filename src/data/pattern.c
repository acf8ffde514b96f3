/* pattern.c - see pattern.h.
 *
 * An expression is read from left to right and copied, in PCRE2's spelling, to a new one:
 *  - \s is written out as the 25 characters with Unicode's property White_Space. PCRE2's own \s
 *    also has U+180E, which lost the property in Unicode 6.3.
 *  - \d is \p{Nd}; a full stop is [^\n], whatever line end PCRE2 was built with.
 * What the two libraries read differently is refused: \w and \b (other sets of characters), \h, ^
 * and $ (Oniguruma's always match at lines), sets within classes and &&, {,n}, quantifiers after a
 * {n}, names of scripts, and options that are not of a group. Without regard to case, Oniguruma
 * also lets pairs such as "ss" match one character (a sharp s), which PCRE2 doesn't: such pairs are
 * refused, too.
 *
 * A match that backtracks more often than MATCH_LIMIT ends with an error.
 */
#include "data/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_BYTES = 4096, MOST_DEPTH = 32 };
enum { MATCH_LIMIT = 10 * 1000 * 1000, HEAP_LIMIT = 64 << 10 }; /* times; KiB */

#define SPACES                                                                                     \
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"   \
    "\\x{3000}"

struct ls_pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

struct ls_matcher {
    const ls_pattern *pattern;
    pcre2_match_data *data;
};

/* ---- from Oniguruma's spelling to PCRE2's ---- */

typedef struct translation {
    const char *regex, *at; /* `at`: what is read next */
    const char *what;
    ls_buf out;
    int depth;     /* of groups */
    int caseless;  /* the depth of the group (?i:..) that is open; 0: none is */
    uint64_t look; /* bit d: the open group of depth d looks ahead or behind */
} translation;

static ls_status refuse(const translation *t, const char *found, size_t n, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%s: the expression has %.*s at byte %zu, which is not supported: %.200s",
                   t->what, (int)n, found, (size_t)(found - t->regex), t->regex);
}

static void put(translation *t, const char *text) { ls_buf_append(&t->out, text, strlen(text)); }

/* Reads the {..} of \p and \P, and copies both. */
static ls_status property(translation *t, ls_error *e) {
    static const char *const names[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn",
                                        "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc",
                                        "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm",
                                        "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc"};
    const char *begin = t->at, *name = begin + 3;
    size_t n = begin[2] == '{' ? strcspn(name, "}") : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != n || strncmp(names[i], name, n) != 0 || name[n] != '}') continue;
        ls_buf_append(&t->out, begin, n + 4);
        t->at += n + 4;
        return LS_OK;
    }
    return refuse(t, begin, begin[2] == '{' && name[n] ? n + 4 : begin[1] ? 2 : 1, e);
}

/* Reads a backslash and what belongs to it. *is_set_p: it stands for several characters. */
static ls_status escape(translation *t, bool in_class, bool *is_set_p, ls_error *e) {
    const char c = t->at[1];
    *is_set_p = c && strchr("sSdDpP", c);
    if (c == 'p' || c == 'P') return property(t, e);
    if (c == 's')
        put(t, in_class ? SPACES : "[" SPACES "]");
    else if (c == 'S' && !in_class)
        put(t, "[^" SPACES "]");
    else if (c == 'd' || c == 'D')
        put(t, c == 'd' ? "\\p{Nd}" : "\\P{Nd}");
    else if (c && strchr("rntf.\\[](){}*+?|^$/-#&~!\"%,:;=@_", c))
        ls_buf_append(&t->out, t->at, 2);
    else
        return refuse(t, t->at, c ? 2 : 1, e);
    t->at += 2;
    return LS_OK;
}

/* Copies one character, which stands for itself. */
static ls_status literal(translation *t, ls_error *e) {
    uint8_t c = (uint8_t)*t->at, next = (uint8_t)t->at[1];
    size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (t->caseless) {
        const char *pairs = tolower(c) == 's' ? "st[(" : tolower(c) == 'f' ? "fil[(" : "";
        if (c >= 0x80) return refuse(t, t->at, n, e);
        if (next && strchr(pairs, tolower(next)) && *pairs) return refuse(t, t->at, 2, e);
    }
    ls_buf_append(&t->out, t->at, n);
    t->at += n;
    return LS_OK;
}

/* Reads a class up to its end. */
static ls_status class_read(translation *t, ls_error *e) {
    const char *begin = t->at++;
    bool after_set = true, range = false; /* after_set: a '-' would not begin a range */
    put(t, "[");
    if (*t->at == '^') put(t, "^"), t->at++;
    if (*t->at == ']') return refuse(t, begin, (size_t)(t->at - begin) + 1, e);
    for (bool first = true; *t->at && *t->at != ']'; first = false) {
        bool is_set = false;
        if (*t->at == '[' || strncmp(t->at, "&&", 2) == 0) return refuse(t, t->at, 2, e);
        if (*t->at == '-' && !first && t->at[1] != ']') {
            if (after_set || range) return refuse(t, t->at, 1, e);
            range = true;
            put(t, "-");
            t->at++;
            continue;
        }
        LS_TRY(*t->at == '\\' ? escape(t, true, &is_set, e) : literal(t, e));
        if (is_set && range) return refuse(t, begin, (size_t)(t->at - begin), e);
        after_set = is_set || range;
        range = false;
    }
    if (!*t->at) return refuse(t, begin, 1, e);
    put(t, "]");
    t->at++;
    return LS_OK;
}

static ls_status group_begin(translation *t, ls_error *e) {
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:"};
    if (t->depth++ == MOST_DEPTH) return refuse(t, t->at, 1, e);
    t->look &= ~(1ull << t->depth);
    if (t->at[1] != '?') {
        put(t, "(?:");
        t->at++;
        return LS_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(t->at, kinds[i], n) != 0) continue;
        if (i == 5 && !t->caseless) t->caseless = t->depth;
        if (i >= 1 && i <= 4) t->look |= 1ull << t->depth;
        put(t, kinds[i]);
        t->at += n;
        return LS_OK;
    }
    return refuse(t, t->at, strcspn(t->at, ":=!>") + 1, e);
}

static ls_status group_end(translation *t, ls_error *e) {
    if (t->depth == 0) return refuse(t, t->at, 1, e);
    if ((t->look >> t->depth & 1) && t->at[1] && strchr("?*+{", t->at[1]))
        return refuse(t, t->at, 2, e);
    if (t->caseless == t->depth--) t->caseless = 0;
    put(t, ")");
    t->at++;
    return LS_OK;
}

/* Reads {n}, {n,} or {n,m}. */
static ls_status repeat(translation *t, ls_error *e) {
    size_t n = 1 + strspn(t->at + 1, "0123456789");
    if (n > 1 && t->at[n] == ',') n += 1 + strspn(t->at + n + 1, "0123456789");
    if (n == 1 || t->at[n] != '}' || (t->at[n + 1] && strchr("?+*{", t->at[n + 1])))
        return refuse(t, t->at, strlen(t->at) < n + 2 ? strlen(t->at) : n + 2, e);
    ls_buf_append(&t->out, t->at, n + 1);
    t->at += n + 1;
    return LS_OK;
}

static ls_status translate(translation *t, ls_error *e) {
    bool is_set;
    while (*t->at) {
        char c = *t->at;
        if (c == '\\') {
            LS_TRY(escape(t, false, &is_set, e));
        } else if (c == '[') {
            LS_TRY(class_read(t, e));
        } else if (c == '(') {
            LS_TRY(group_begin(t, e));
        } else if (c == ')') {
            LS_TRY(group_end(t, e));
        } else if (c == '{') {
            LS_TRY(repeat(t, e));
        } else if (c == '^' || c == '$' || c == '}' || c == ']') {
            return refuse(t, t->at, 1, e);
        } else if (c == '.') {
            put(t, "[^\\n]");
            t->at++;
        } else {
            LS_TRY(literal(t, e)); /* or | ? * + */
        }
    }
    return LS_OK;
}

/* ---- compiling and matching ---- */

static ls_status compile(const translation *t, ls_pattern *p, ls_error *e) {
    int why = 0;
    PCRE2_SIZE where = 0;
    p->code = pcre2_compile((PCRE2_SPTR)(t->out.data ? t->out.data : ""), t->out.len,
                            PCRE2_UTF | PCRE2_UCP, &why, &where, NULL);
    if (!p->code) {
        PCRE2_UCHAR message[160];
        pcre2_get_error_message(why, message, sizeof message);
        return ls_fail(e, LS_EINVAL, "%s: is not a regular expression: %s: %.200s", t->what,
                       (const char *)message, t->regex);
    }
    uint32_t can_be_empty = 0;
    pcre2_pattern_info(p->code, PCRE2_INFO_MATCHEMPTY, &can_be_empty);
    if (can_be_empty)
        return ls_fail(e, LS_EINVAL,
                       "%s: the expression can match an empty text, which is not supported: %.200s",
                       t->what, t->regex);
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* if it fails, matching is only slower */
    p->limits = pcre2_match_context_create(NULL);
    if (!p->limits) abort(); /* no memory */
    pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(p->limits, HEAP_LIMIT);
    return LS_OK;
}

ls_status ls_pattern_create(const char *regex, const char *what, ls_pattern **p_p, ls_error *e) {
    if (strlen(regex) > MOST_BYTES)
        return ls_fail(e, LS_EINVAL, "%s: the expression has %zu bytes; at most %d are supported",
                       what, strlen(regex), MOST_BYTES);
    translation t = {.regex = regex, .at = regex, .what = what};
    ls_pattern *p = LS_NEW(ls_pattern);
    ls_status s = translate(&t, e);
    if (s == LS_OK) s = compile(&t, p, e);
    ls_buf_free(&t.out);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_pattern_free(p);
    return s;
}

void ls_pattern_free(ls_pattern *p) {
    if (!p) return;
    pcre2_match_context_free(p->limits);
    pcre2_code_free(p->code);
    free(p);
}

ls_matcher *ls_matcher_create(const ls_pattern *p) {
    ls_matcher *m = LS_NEW(ls_matcher);
    m->pattern = p;
    m->data = pcre2_match_data_create(1, NULL);
    if (!m->data) abort(); /* no memory */
    return m;
}

void ls_matcher_free(ls_matcher *m) {
    if (!m) return;
    pcre2_match_data_free(m->data);
    free(m);
}

ls_status ls_matcher_find(ls_matcher *m, const uint8_t *text, size_t nbytes, size_t at,
                          ls_match *m_p, ls_error *e) {
    const ls_pattern *p = m->pattern;
    uint32_t how = PCRE2_NO_UTF_CHECK;
    int n = pcre2_match(p->code, text, nbytes, at, how, m->data, p->limits);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT) /* without the compiled code, memory comes from the heap */
        n = pcre2_match(p->code, text, nbytes, at, how | PCRE2_NO_JIT, m->data, p->limits);
    *m_p = (ls_match){nbytes, nbytes};
    if (n == PCRE2_ERROR_NOMATCH) return LS_OK;
    if (n < 0) {
        PCRE2_UCHAR message[160];
        pcre2_get_error_message(n, message, sizeof message);
        return ls_fail(e, LS_EINVAL, "%s", (const char *)message);
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(m->data);
    *m_p = (ls_match){ends[0], ends[1]};
    return LS_OK;
}
