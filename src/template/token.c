/* token.c - see token.h.
 *
 * White space around tags follows Jinja with trim_blocks and lstrip_blocks: a line break behind %}
 * or #} goes, and so do blanks between the beginning of a line and {% or {#. A "-" inside a
 * delimiter takes all white space on its side, a "+" none. The last line break of a template goes.
 */
#include "template/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "template/characters.h"
#include "template/escapes.h"

typedef struct lexer {
    const char *s; /* [n], line breaks are \n */
    size_t n, i;
    int line;
    size_t line_start; /* of the line that has s[counted] */
    size_t counted;
    bool at_line_start; /* the tag before s[i] ended with a line break */
    const char *name;
    ls_template_arena *arena;
    ls_template_token_list *out;
    ls_error *e;
} lexer;

/* Line and column of offset `at`, which never goes down. */
static void locate(lexer *l, size_t at, int *line_p, int *column_p) {
    for (; l->counted < at; l->counted++) {
        if (l->s[l->counted] != '\n') continue;
        l->line++;
        l->line_start = l->counted + 1;
    }
    *line_p = l->line;
    *column_p = (int)(at - l->line_start) + 1;
}

static ls_template_token *add(lexer *l, ls_template_token_kind kind, const char *text, size_t n) {
    ls_template_token_list *o = l->out;
    o->list = ls_grow(o->list, o->n, sizeof *o->list);
    ls_template_token *t = &o->list[o->n++];
    *t = (ls_template_token){.kind = kind, .n = n};
    locate(l, l->i, &t->line, &t->column);
    char *copy = ls_template_alloc(l->arena, n + 1);
    if (n) memcpy(copy, text, n);
    t->text = copy;
    return t;
}

static ls_status fail_here(lexer *l, const char *what) {
    int line, column;
    locate(l, l->i, &line, &column);
    return ls_fail(l->e, LS_EINVAL, "%s:%d:%d: %s", l->name, line, column, what);
}

static bool has(const lexer *l, size_t at, const char *word) {
    size_t n = strlen(word);
    return at + n <= l->n && memcmp(l->s + at, word, n) == 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Steps over a delimiter's end at s[i], "%}" with what it takes behind it. */
static void step_over(lexer *l, char sign, bool trims) {
    l->i += sign ? 3 : 2;
    if (sign == '-') l->i += ls_spaces_at_start(l->s + l->i, l->n - l->i);
    if (!sign && trims && l->i < l->n && l->s[l->i] == '\n') l->i++;
    l->at_line_start = l->s[l->i - 1] == '\n';
}

/* Is the end of this delimiter at s[at]? Then its sign, or 0, is in *sign_p. */
static bool ends_at(const lexer *l, size_t at, const char *end, bool plus, char *sign_p) {
    *sign_p = 0;
    if (has(l, at, end)) return true;
    if (at >= l->n || (l->s[at] != '-' && !(plus && l->s[at] == '+'))) return false;
    *sign_p = l->s[at];
    return has(l, at + 1, end);
}

/* The text before a tag at s[end], whose sign is given. */
static void add_text(lexer *l, size_t end, char sign, bool strips) {
    const char *s = l->s + l->i;
    size_t n = end - l->i;
    if (sign == '-') {
        n -= ls_spaces_at_end(s, n);
    } else if (sign != '+' && strips) {
        size_t line = n;
        while (line && s[line - 1] != '\n') line--;
        if ((line || l->at_line_start) && ls_spaces_at_start(s + line, n - line) == n - line)
            n = line;
    }
    if (n) add(l, LS_TTOKEN_TEXT, s, n);
}

static char sign_at(const lexer *l, size_t at) {
    return at < l->n && (l->s[at] == '-' || l->s[at] == '+') ? l->s[at] : 0;
}

static ls_status skip_comment(lexer *l) {
    char sign;
    size_t at = l->i + 2 + (sign_at(l, l->i + 2) != 0);
    while (at < l->n && !ends_at(l, at, "#}", true, &sign)) at++;
    if (at >= l->n) return fail_here(l, "this comment has no end; write #} behind it");
    l->i = at;
    step_over(l, sign, true);
    return LS_OK;
}

/* ---- inside a tag ---- */

/* The length of digits at l->s[at], which may have single underscores between them. */
static size_t digits_at(const lexer *l, size_t at) {
    size_t n = 0;
    while (at + n < l->n &&
           (is_digit(l->s[at + n]) || (n && l->s[at + n] == '_' && at + n + 1 < l->n &&
                                       is_digit(l->s[at + n - 1]) && is_digit(l->s[at + n + 1]))))
        n++;
    return n;
}

/* A number as Jinja writes it: no 0 before other digits, and digits around a dot. */
static ls_status add_number(lexer *l) {
    const char *s = l->s + l->i;
    size_t n = digits_at(l, l->i), k;
    bool real = false;
    if (s[0] == '0' && l->i + 1 < l->n && strchr("xXoObB", s[1]))
        return fail_here(l, "only decimal numbers are supported");
    if (l->i + n < l->n && s[n] == '.' && (k = digits_at(l, l->i + n + 1)) > 0) {
        real = true;
        n += 1 + k;
    }
    if (l->i + n < l->n && (s[n] == 'e' || s[n] == 'E')) {
        size_t sign = l->i + n + 1 < l->n && (s[n + 1] == '-' || s[n + 1] == '+');
        k = digits_at(l, l->i + n + 1 + sign);
        real = real || k;
        if (k) n += 1 + sign + k;
    }
    if (!real && s[0] == '0' && strspn(s, "0_") < n)
        return fail_here(l, "a number can't begin with 0");
    ls_template_token *t = add(l, real ? LS_TTOKEN_REAL : LS_TTOKEN_INTEGER, s, n);
    char *plain = ls_template_alloc(l->arena, n + 1), *end = plain;
    for (size_t i = 0; i < n; i++)
        if (s[i] != '_') *end++ = s[i];
    errno = 0;
    if (real)
        t->real = strtod(plain, &end);
    else
        t->integer = strtoll(plain, &end, 10);
    if (errno || *end) return fail_here(l, "this number is not one that templates can have");
    l->i += n;
    return LS_OK;
}

static ls_status add_string(lexer *l) {
    char quote = l->s[l->i];
    size_t end = l->i + 1;
    while (end < l->n && l->s[end] != quote) end += l->s[end] == '\\' ? 2 : 1;
    if (end >= l->n) return fail_here(l, "this string has no end");
    ls_template_token *t = add(l, LS_TTOKEN_STRING, l->s + l->i + 1, end - l->i - 1);
    char *text = ls_template_alloc(l->arena, t->n + 1);
    if (!ls_template_unescape(t->text, t->n, text, &t->n))
        return fail_here(l, "this string has an escape (\\x, \\u, \\U) that is no character");
    t->text = text;
    l->i = end + 1;
    return LS_OK;
}

static ls_status add_operator(lexer *l) {
    static const char *const longest[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t n = 1;
    for (size_t k = 0; k < sizeof longest / sizeof *longest; k++)
        if (has(l, l->i, longest[k])) n = 2;
    if (!l->s[l->i] || !strchr("+-/*%~[](){}=<>.:|,!", l->s[l->i]) || (n == 1 && l->s[l->i] == '!'))
        return fail_here(l, "a character that has no meaning in a tag");
    add(l, LS_TTOKEN_OPERATOR, l->s + l->i, n);
    l->i += n;
    return LS_OK;
}

static ls_status add_inner(lexer *l) {
    char c = l->s[l->i];
    if (is_digit(c)) return add_number(l);
    if (c == '\'' || c == '"') return add_string(l);
    if (!is_letter(c)) return add_operator(l);
    size_t n = 1;
    while (l->i + n < l->n && (is_letter(l->s[l->i + n]) || is_digit(l->s[l->i + n]))) n++;
    add(l, LS_TTOKEN_NAME, l->s + l->i, n);
    l->i += n;
    return LS_OK;
}

static int opens(const lexer *l) {
    const ls_template_token *t = &l->out->list[l->out->n - 1];
    if (t->kind != LS_TTOKEN_OPERATOR || t->n != 1) return 0;
    return strchr("([{", t->text[0]) ? 1 : strchr(")]}", t->text[0]) ? -1 : 0;
}

/* {% ... %} or {{ ... }}, from its beginning. */
static ls_status add_tag(lexer *l, bool prints) {
    const char *end = prints ? "}}" : "%}";
    size_t first = l->i;
    add(l, prints ? LS_TTOKEN_PRINT : LS_TTOKEN_TAG, l->s + first, 2);
    l->i += sign_at(l, first + 2) ? 3 : 2;
    for (int open = 0;;) {
        char sign;
        l->i += ls_spaces_at_start(l->s + l->i, l->n - l->i);
        if (l->i >= l->n) return fail_here(l, prints ? "}} is missing" : "%} is missing");
        if (open <= 0 && ends_at(l, l->i, end, !prints, &sign)) {
            add(l, prints ? LS_TTOKEN_PRINT_END : LS_TTOKEN_TAG_END, end, 2);
            step_over(l, sign, !prints);
            return LS_OK;
        }
        LS_TRY(add_inner(l));
        open += opens(l);
    }
}

/* ---- {% raw %} ---- */

/* Is {% word %} at s[at]? Then *end_p is the place of its end. */
static bool is_word_tag(const lexer *l, size_t at, const char *word, size_t *end_p, char *sign_p) {
    if (!has(l, at, "{%")) return false;
    at += sign_at(l, at + 2) ? 3 : 2;
    if (at > l->n) return false;
    at += ls_spaces_at_start(l->s + at, l->n - at);
    if (!has(l, at, word)) return false;
    at += strlen(word);
    at += ls_spaces_at_start(l->s + at, l->n - at);
    *end_p = at;
    return ends_at(l, at, "%}", word[0] == 'e', sign_p); /* no "+" ends {% raw %} */
}

static ls_status add_raw(lexer *l, size_t begin_end, char sign) {
    char end_sign;
    size_t end;
    l->i = begin_end;
    step_over(l, sign, false);
    for (size_t at = l->i; at < l->n; at++) {
        if (!is_word_tag(l, at, "endraw", &end, &end_sign)) continue;
        add_text(l, at, sign_at(l, at + 2), true);
        l->i = end;
        step_over(l, end_sign, true);
        return LS_OK;
    }
    return fail_here(l, "{% endraw %} is missing");
}

static ls_status add_next(lexer *l) {
    size_t at = l->i, raw_end;
    char raw_sign;
    while (at < l->n && !has(l, at, "{{") && !has(l, at, "{%") && !has(l, at, "{#")) at++;
    bool ends = at >= l->n, prints = !ends && l->s[at + 1] == '{';
    add_text(l, at, ends ? '+' : sign_at(l, at + 2), !prints);
    l->i = at;
    if (ends) return LS_OK;
    if (l->s[at + 1] == '#') return skip_comment(l);
    if (is_word_tag(l, at, "raw", &raw_end, &raw_sign)) return add_raw(l, raw_end, raw_sign);
    return add_tag(l, prints);
}

/* The text with \n as line breaks, without the last one. */
static char *normalize(const char *text, size_t *n_p) {
    size_t n = 0;
    char *s = ls_alloc(*n_p + 1);
    for (size_t i = 0; i < *n_p; i++) {
        bool pair = text[i] == '\r' && i + 1 < *n_p && text[i + 1] == '\n';
        if (pair) continue;
        s[n++] = text[i];
        if (text[i] == '\r') s[n - 1] = '\n';
    }
    if (n && s[n - 1] == '\n') n--;
    s[n] = 0;
    *n_p = n;
    return s;
}

ls_status ls_template_tokens(const char *text, size_t n, const char *name, ls_template_arena *arena,
                             ls_template_token_list *tokens_p, ls_error *e) {
    char *s = normalize(text, &n);
    lexer l = {.s = s,
               .n = n,
               .line = 1,
               .at_line_start = true,
               .name = name,
               .arena = arena,
               .out = tokens_p,
               .e = e};
    ls_status status = LS_OK;
    while (status == LS_OK && l.i < l.n) status = add_next(&l);
    if (status == LS_OK) add(&l, LS_TTOKEN_END, "", 0);
    free(s);
    return status;
}
