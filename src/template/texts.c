/* texts.c - methods of texts, as Python has them. */
#include <string.h>

#include "base/unicode.h"
#include "template/characters.h"
#include "template/methods.h"

typedef const ls_template_arguments arguments;

/* Counts the work of comparing at each place of a text with another text. */
static ls_status count_product(ls_rendering *r, size_t n, size_t m) {
    return ls_render_count(r, m ? n / 16 + n / 1024 * m : n / 16);
}

/* ---- strip ---- */

/* Is the character at s [k] among those of `set`? */
static bool in_set(const char *s, size_t k, const ls_datum *set) {
    uint32_t point;
    for (size_t i = 0, n; i < set->n; i += n) {
        n = ls_character(set->text + i, set->n - i, &point);
        if (n == k && memcmp(set->text + i, s, k) == 0) return true;
    }
    return false;
}

static ls_datum strip_set(const ls_datum *x, const ls_datum *set, int sides) {
    const char *s = x->text;
    size_t n = x->n;
    uint32_t point;
    for (size_t k; (sides & LS_STRIP_LEFT) && n; s += k, n -= k) {
        k = ls_character(s, n, &point);
        if (!in_set(s, k, set)) break;
    }
    while ((sides & LS_STRIP_RIGHT) && n) {
        size_t first = n - 1;
        while (first && n - first < 4 && ((unsigned char)s[first] & 0xc0) == 0x80) first--;
        if (!in_set(s + first, n - first, set)) break;
        n = first;
    }
    return ls_datum_text(s, n);
}

ls_status ls_text_strip(ls_rendering *r, const ls_datum *x, const ls_datum *set, int sides,
                        ls_datum *y_p) {
    LS_TRY(ls_render_count(r, x->n / 64));
    if (set && set->kind != LS_DATUM_NONE) {
        if (set->kind != LS_DATUM_TEXT) return ls_render_fail(r, "what to strip must be text");
        LS_TRY(count_product(r, x->n, set->n));
        *y_p = strip_set(x, set, sides);
    } else {
        size_t left = sides & LS_STRIP_LEFT ? ls_spaces_at_start(x->text, x->n) : 0;
        *y_p = ls_datum_text(x->text + left, x->n - left);
        if (sides & LS_STRIP_RIGHT) y_p->n -= ls_spaces_at_end(y_p->text, y_p->n);
    }
    y_p->safe = x->safe;
    return LS_OK;
}

static ls_status strip(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return ls_text_strip(r, x, a->given[0], LS_STRIP_LEFT | LS_STRIP_RIGHT, y_p);
}
static ls_status lstrip(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return ls_text_strip(r, x, a->given[0], LS_STRIP_LEFT, y_p);
}
static ls_status rstrip(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return ls_text_strip(r, x, a->given[0], LS_STRIP_RIGHT, y_p);
}

static ls_status without(ls_rendering *r, const ls_datum *x, arguments *a, bool end,
                         ls_datum *y_p) {
    ls_datum w;
    LS_TRY(ls_argument_text(r, a, 0, &w));
    *y_p = *x;
    if (w.n > x->n || (w.n && memcmp(x->text + (end ? x->n - w.n : 0), w.text, w.n) != 0))
        return LS_OK;
    *y_p = ls_datum_text(x->text + (end ? 0 : w.n), x->n - w.n);
    return LS_OK;
}
static ls_status removeprefix(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return without(r, x, a, false, y_p);
}
static ls_status removesuffix(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return without(r, x, a, true, y_p);
}

/* ---- places ---- */

/* The part of the text from argument 1 to argument 2, as a slice has it. *first_p: the number of
 * characters before it; *inside_p: whether it begins inside the text. */
static ls_status part_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *part_p,
                         int64_t *first_p, bool *inside_p) {
    *part_p = *x;
    *first_p = 0;
    *inside_p = true;
    if (!a->given[1] && !a->given[2]) return LS_OK;
    int64_t n = (int64_t)ls_characters(x->text, x->n), at[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        const ls_datum *given = a->given[1 + i];
        if (given && given->kind != LS_DATUM_NONE)
            LS_TRY(ls_argument_integer(r, a, 1 + i, at[i], &at[i]));
        if (at[i] < 0) at[i] = at[i] < -n ? 0 : at[i] + n;
    }
    *inside_p = at[0] <= n && at[0] <= at[1];
    for (int i = 0; i < 2; i++)
        if (at[i] > n) at[i] = n;
    if (at[1] < at[0]) at[1] = at[0];
    size_t begin = ls_characters_bytes(x->text, x->n, (size_t)at[0]);
    size_t end = ls_characters_bytes(x->text, x->n, (size_t)at[1]);
    *part_p = ls_datum_text(x->text + begin, end - begin);
    *first_p = at[0];
    return LS_OK;
}

/* Does the text begin, or end, with argument 0, or with one of its items? */
static ls_status is_at(ls_rendering *r, const ls_datum *x, arguments *a, bool end, ls_datum *y_p) {
    const ls_datum *list = a->given[0];
    ls_datum part;
    int64_t first;
    bool inside, found = false;
    size_t n = 1;
    LS_TRY(part_of(r, x, a, &part, &first, &inside));
    if (list->kind == LS_DATUM_TUPLE) {
        n = list->n;
        list = list->items;
    }
    LS_TRY(ls_render_count(r, n));
    for (size_t i = 0; i < n; i++) {
        const ls_datum *w = &list[i];
        if (w->kind != LS_DATUM_TEXT)
            return ls_render_fail(r, "the argument must be text, or a tuple of texts");
        if (w->n > part.n || !inside) continue;
        found =
            found || w->n == 0 || memcmp(part.text + (end ? part.n - w->n : 0), w->text, w->n) == 0;
        if (found) break;
    }
    *y_p = ls_datum_bool(found);
    return LS_OK;
}

static ls_status startswith(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return is_at(r, x, a, false, y_p);
}
static ls_status endswith(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return is_at(r, x, a, true, y_p);
}

/* The last place of `what` in s [n], or NULL. */
static const char *find_last(const char *s, size_t n, const ls_datum *what) {
    for (size_t at = n < what->n ? 0 : n - what->n + 1; at-- > 0;)
        if (memcmp(s + at, what->text, what->n) == 0) return s + at;
    return NULL;
}

static ls_status look_for(ls_rendering *r, const ls_datum *x, arguments *a, bool last,
                          ls_datum *y_p) {
    ls_datum what, part;
    int64_t first;
    bool inside;
    LS_TRY(ls_argument_text(r, a, 0, &what));
    LS_TRY(part_of(r, x, a, &part, &first, &inside));
    LS_TRY(count_product(r, x->n, last ? what.n : 0));
    const char *at = !what.n ? part.text + (last ? part.n : 0)
                     : last  ? find_last(part.text, part.n, &what)
                             : memmem(part.text, part.n, what.text, what.n);
    if (!inside) at = NULL;
    *y_p = ls_datum_integer(at ? first + (int64_t)ls_characters(part.text, (size_t)(at - part.text))
                               : (int64_t)-1);
    return LS_OK;
}
static ls_status find(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return look_for(r, x, a, false, y_p);
}
static ls_status rfind(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return look_for(r, x, a, true, y_p);
}

static ls_status must_find(ls_rendering *r, const ls_datum *x, arguments *a, bool last,
                           ls_datum *y_p) {
    LS_TRY(look_for(r, x, a, last, y_p));
    return y_p->integer < 0 ? ls_render_fail(r, "the text has no such part") : LS_OK;
}
static ls_status index_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return must_find(r, x, a, false, y_p);
}
static ls_status rindex_of(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return must_find(r, x, a, true, y_p);
}

static ls_status count(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum what, part;
    int64_t first, n = 0;
    bool inside;
    LS_TRY(ls_argument_text(r, a, 0, &what));
    LS_TRY(part_of(r, x, a, &part, &first, &inside));
    LS_TRY(ls_render_count(r, x->n / 16));
    if (!what.n) n = (int64_t)ls_characters(part.text, part.n) + 1;
    const char *s = part.text, *end = s + part.n;
    for (const char *at; what.n && (at = memmem(s, (size_t)(end - s), what.text, what.n));
         s = at + what.n)
        n++;
    *y_p = ls_datum_integer(inside ? n : 0);
    return LS_OK;
}

/* ---- split, replace, join ---- */

typedef struct pieces {
    ls_datum *items; /* [n] */
    size_t n;
} pieces;

static void add_piece(pieces *p, const char *s, size_t n) {
    if (p->items) p->items[p->n] = ls_datum_text(s, n);
    p->n++;
}

/* At most `most` white spaces, with no empty pieces; the last piece keeps the space at its end. */
static void split_spaces(const ls_datum *x, int64_t most, pieces *p) {
    const char *s = x->text;
    size_t n = x->n;
    uint32_t point;
    for (;; most--) {
        size_t skip = ls_spaces_at_start(s, n), k = 0;
        s += skip;
        n -= skip;
        if (!n) return;
        if (most == 0) {
            add_piece(p, s, n);
            return;
        }
        while (k < n) {
            size_t c = ls_character(s + k, n - k, &point);
            if (ls_is_space(point)) break;
            k += c;
        }
        add_piece(p, s, k);
        s += k;
        n -= k;
    }
}

/* The same from the end; the pieces are in backward order. */
static void split_spaces_back(const ls_datum *x, int64_t most, pieces *p) {
    size_t n = x->n - ls_spaces_at_end(x->text, x->n);
    for (; n; most--, n -= ls_spaces_at_end(x->text, n)) {
        size_t k = n;
        if (most == 0) {
            add_piece(p, x->text, n);
            return;
        }
        while (k && !ls_spaces_at_end(x->text, k)) k--;
        add_piece(p, x->text + k, n - k);
        n = k;
    }
}

static void split_at(const ls_datum *x, const ls_datum *by, int64_t most, pieces *p) {
    const char *s = x->text, *end = s + x->n, *at;
    for (; most != 0 && (at = memmem(s, (size_t)(end - s), by->text, by->n)); most--) {
        add_piece(p, s, (size_t)(at - s));
        s = at + by->n;
    }
    add_piece(p, s, (size_t)(end - s));
}

static void split_at_back(const ls_datum *x, const ls_datum *by, int64_t most, pieces *p) {
    size_t n = x->n;
    for (const char *at; most != 0 && (at = find_last(x->text, n, by)); most--) {
        size_t begin = (size_t)(at - x->text) + by->n;
        add_piece(p, x->text + begin, n - begin);
        n = (size_t)(at - x->text);
    }
    add_piece(p, x->text, n);
}

/* by NULL: at white space. */
static ls_status split_pieces(ls_rendering *r, const ls_datum *x, const ls_datum *by, int64_t most,
                              bool back, ls_datum *y_p) {
    pieces p = {0};
    if (by && (by->kind != LS_DATUM_TEXT || !by->n))
        return ls_render_fail(r, "a text is split at a text that is not empty");
    LS_TRY(count_product(r, x->n, back && by ? by->n : 0));
    for (int pass = 0; pass < 2; pass++) { /* the first one counts */
        p.n = 0;
        if (!by)
            (back ? split_spaces_back : split_spaces)(x, most, &p);
        else
            (back ? split_at_back : split_at)(x, by, most, &p);
        LS_TRY(ls_render_count(r, p.n + x->n / 64));
        if (!pass) LS_TRY(ls_datum_new_list(r, p.n, &p.items, y_p));
    }
    for (size_t i = 0; back && i < p.n / 2; i++) {
        ls_datum other = p.items[i];
        p.items[i] = p.items[p.n - 1 - i];
        p.items[p.n - 1 - i] = other;
    }
    return LS_OK;
}

static ls_status split_from(ls_rendering *r, const ls_datum *x, arguments *a, bool back,
                            ls_datum *y_p) {
    int64_t most;
    const ls_datum *by = a->given[0] && a->given[0]->kind != LS_DATUM_NONE ? a->given[0] : NULL;
    LS_TRY(ls_argument_integer(r, a, 1, -1, &most));
    return split_pieces(r, x, by, most, back, y_p);
}
static ls_status split(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return split_from(r, x, a, false, y_p);
}
static ls_status rsplit(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return split_from(r, x, a, true, y_p);
}

/* What is before the first or last separator, it, and what is behind it. */
static ls_status part_at(ls_rendering *r, const ls_datum *x, arguments *a, bool last,
                         ls_datum *y_p) {
    ls_datum by, *items;
    LS_TRY(ls_argument_text(r, a, 0, &by));
    if (!by.n) return ls_render_fail(r, "a text is split at a text that is not empty");
    LS_TRY(count_product(r, x->n, last ? by.n : 0));
    LS_TRY(ls_datum_new_list(r, 3, &items, y_p));
    y_p->kind = LS_DATUM_TUPLE;
    const char *at = last ? find_last(x->text, x->n, &by) : memmem(x->text, x->n, by.text, by.n);
    for (int i = 0; i < 3; i++) items[i] = ls_datum_text("", 0);
    items[last ? 2 : 0] = *x;
    if (!at) return LS_OK;
    size_t n = (size_t)(at - x->text);
    items[0] = ls_datum_text(x->text, n);
    items[1] = by;
    items[2] = ls_datum_text(at + by.n, x->n - n - by.n);
    return LS_OK;
}
static ls_status partition(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return part_at(r, x, a, false, y_p);
}
static ls_status rpartition(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return part_at(r, x, a, true, y_p);
}

static bool ends_line(uint32_t p) {
    return (p >= 10 && p <= 13) || (p >= 0x1c && p <= 0x1e) || p == 0x85 || p == 0x2028 ||
           p == 0x2029;
}

ls_status ls_text_lines(ls_rendering *r, const ls_datum *x, bool ends, ls_datum *list_p) {
    pieces p = {0};
    for (int pass = 0; pass < 2; pass++) { /* the first one counts */
        size_t begin = 0;
        p.n = 0;
        for (size_t i = 0, k; i < x->n; i += k) {
            uint32_t point;
            k = ls_character(x->text + i, x->n - i, &point);
            if (!ends_line(point)) continue;
            if (point == '\r' && i + 1 < x->n && x->text[i + 1] == '\n') k = 2;
            add_piece(&p, x->text + begin, i + (ends ? k : 0) - begin);
            begin = i + k;
        }
        if (begin < x->n) add_piece(&p, x->text + begin, x->n - begin);
        LS_TRY(ls_render_count(r, p.n + x->n / 16));
        if (!pass) LS_TRY(ls_datum_new_list(r, p.n, &p.items, list_p));
    }
    return LS_OK;
}

static ls_status splitlines(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    return ls_text_lines(r, x, ls_argument_is_true(a, 0), y_p);
}

ls_status ls_text_join(ls_rendering *r, const ls_datum *list, const ls_datum *between,
                       ls_datum *y_p) {
    ls_buf out = {0};
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < list->n; i++) {
        if (i) ls_buf_append(&out, between->text, between->n);
        s = ls_datum_print(r, &list->items[i], &out);
    }
    return ls_datum_take(r, s, &out, y_p);
}

/* An empty text is found before each character, and at the end. */
static ls_status replace_empty(ls_rendering *r, const ls_datum *x, const ls_datum *to, int64_t most,
                               ls_datum *y_p) {
    ls_buf out = {0};
    ls_status s = LS_OK;
    for (size_t i = 0, k; s == LS_OK && i <= x->n; i += k) {
        uint32_t point;
        k = i < x->n ? ls_character(x->text + i, x->n - i, &point) : 1;
        if (most-- != 0) ls_buf_append(&out, to->text, to->n);
        if (most < -1) most = -1;
        if (i < x->n) ls_buf_append(&out, x->text + i, k);
        s = ls_datum_fits(r, out.len);
    }
    if (s == LS_OK) s = ls_render_count(r, x->n);
    return ls_datum_take(r, s, &out, y_p);
}

ls_status ls_text_replace(ls_rendering *r, const ls_datum *x, const ls_datum pair[2], int64_t most,
                          ls_datum *y_p) {
    ls_datum list;
    if (x->safe) return ls_render_fail(r, "replacing in a text marked as safe is not supported");
    if (!pair[0].n) return replace_empty(r, x, &pair[1], most, y_p);
    LS_TRY(split_pieces(r, x, &pair[0], most, false, &list));
    return ls_text_join(r, &list, &pair[1], y_p);
}

static ls_status replace(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum pair[2];
    int64_t most;
    LS_TRY(ls_argument_text(r, a, 0, &pair[0]));
    LS_TRY(ls_argument_text(r, a, 1, &pair[1]));
    LS_TRY(ls_argument_integer(r, a, 2, -1, &most));
    return ls_text_replace(r, x, pair, most, y_p);
}

static ls_status join(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    ls_datum list;
    LS_TRY(ls_datum_items(r, a->given[0], &list));
    for (size_t i = 0; i < list.n; i++)
        if (list.items[i].kind != LS_DATUM_TEXT)
            return ls_render_fail(r, "join() takes texts, not %s",
                                  ls_datum_kind_name(&list.items[i]));
    return ls_text_join(r, &list, x, y_p);
}

ls_status ls_text_escape(ls_rendering *r, const ls_datum *x, ls_datum *y_p) {
    static const char special[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    ls_buf out = {0};
    if (x->safe) {
        *y_p = *x;
        return LS_OK;
    }
    for (size_t i = 0; i < x->n; i++) {
        const char *at = strchr(special, x->text[i]);
        if (at && *at)
            ls_buf_printf(&out, "%s", names[at - special]);
        else
            ls_buf_append(&out, x->text + i, 1);
    }
    LS_TRY(ls_datum_take(r, ls_render_count(r, x->n / 16), &out, y_p));
    y_p->safe = true;
    return LS_OK;
}

/* ---- case ---- */

ls_status ls_text_case(ls_rendering *r, const ls_datum *x, char which, ls_datum *y_p) {
    bool first = true, in_word = false;
    ls_buf out = {0};
    ls_status s = ls_render_count(r, x->n / 16);
    for (size_t i = 0, k; s == LS_OK && i < x->n; i += k) {
        uint32_t point, cased = 0;
        char to = which, text[4];
        k = ls_character(x->text + i, x->n - i, &point);
        bool is_cased = ls_unicode_is_cased(point);
        if (which == 'c') to = first ? 't' : 'l';
        if (which == 't') to = in_word ? 'l' : 't';
        if (which == 's') {
            bool upper = ls_unicode_case(point, 'l', &cased) && cased != point;
            to = upper ? 'l' : 'u';
        }
        if (!ls_unicode_case(point, to, &cased))
            s = ls_render_fail(r, "the case of \"%.*s\" is not supported", (int)k, x->text + i);
        ls_buf_append(&out, text, ls_character_write(cased, text));
        first = false;
        in_word = is_cased;
    }
    LS_TRY(ls_datum_take(r, s, &out, y_p));
    y_p->safe = x->safe;
    return LS_OK;
}

#define CASE(name, which)                                                                          \
    static ls_status name(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {       \
        (void)a;                                                                                   \
        return ls_text_case(r, x, which, y_p);                                                     \
    }
CASE(upper, 'u')
CASE(lower, 'l')
CASE(capitalize, 'c')
CASE(title, 't')
CASE(swapcase, 's')

/* ---- kinds of characters ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

/* Are all characters of the kind? 'u', 'l': all letters are of this case, and there is one. */
static ls_status are_all(ls_rendering *r, const ls_datum *x, char kind, ls_datum *y_p) {
    bool all = x->n > 0, letter = false;
    LS_TRY(ls_render_count(r, x->n / 16));
    for (size_t i = 0; i < x->n; i++) {
        char c = x->text[i];
        bool word = is_upper(c) || is_lower(c);
        if (c & (char)0x80)
            return ls_render_fail(r, "kinds of characters beyond ASCII are not supported");
        letter = letter || word;
        all = all && (kind == 'd'   ? is_digit(c)
                      : kind == 'a' ? word
                      : kind == 'n' ? word || is_digit(c)
                      : kind == 'u' ? !is_lower(c)
                                    : !is_upper(c));
    }
    *y_p = ls_datum_bool(all && (letter || (kind != 'u' && kind != 'l')));
    return LS_OK;
}

#define KIND(name, kind)                                                                           \
    static ls_status name(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {       \
        (void)a;                                                                                   \
        return are_all(r, x, kind, y_p);                                                           \
    }
KIND(isdigit_all, 'd')
KIND(isalpha_all, 'a')
KIND(isalnum_all, 'n')
KIND(isupper_all, 'u')
KIND(islower_all, 'l')

static ls_status isspace_all(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    LS_TRY(ls_render_count(r, x->n / 64));
    *y_p = ls_datum_bool(x->n && ls_spaces_at_start(x->text, x->n) == x->n);
    return LS_OK;
}

static ls_status isascii_all(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    (void)a;
    LS_TRY(ls_render_count(r, x->n / 64));
    bool all = true;
    for (size_t i = 0; i < x->n; i++) all = all && !(x->text[i] & (char)0x80);
    *y_p = ls_datum_bool(all);
    return LS_OK;
}

/* ---- padding ---- */

ls_status ls_text_pad(ls_rendering *r, const ls_datum *x, int64_t width, char align,
                      const ls_datum *fill, ls_datum *y_p) {
    ls_datum blank = ls_datum_text(" ", 1), by = fill ? *fill : blank;
    ls_buf out = {0};
    if (by.kind != LS_DATUM_TEXT || ls_characters(by.text, by.n) != 1)
        return ls_render_fail(r, "a text is filled up with one character");
    int64_t more = width - (int64_t)ls_characters(x->text, x->n);
    *y_p = *x;
    if (more <= 0) return LS_OK;
    if (more > LS_TEMPLATE_OUTPUT / (int64_t)by.n) return ls_datum_fits(r, SIZE_MAX);
    LS_TRY(ls_render_count(r, (size_t)more / 16));
    int64_t left = align == '>' ? more : align == '<' ? 0 : more / 2 + (more & width & 1);
    ls_text_fill(&by, left, &out);
    ls_buf_append(&out, x->text, x->n);
    ls_text_fill(&by, more - left, &out);
    return ls_datum_take(r, LS_OK, &out, y_p);
}

#define PAD(name, align)                                                                           \
    static ls_status name(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {       \
        int64_t width;                                                                             \
        LS_TRY(ls_argument_integer(r, a, 0, 0, &width));                                           \
        return ls_text_pad(r, x, width, align, a->given[1], y_p);                                  \
    }
PAD(center, '^')
PAD(ljust, '<')
PAD(rjust, '>')

/* Zeros behind the sign. */
static ls_status zfill(ls_rendering *r, const ls_datum *x, arguments *a, ls_datum *y_p) {
    int64_t width;
    ls_datum zero = ls_datum_text("0", 1), rest = *x, sign = ls_datum_text(x->text, 0);
    LS_TRY(ls_argument_integer(r, a, 0, 0, &width));
    if (x->n && (x->text[0] == '-' || x->text[0] == '+')) {
        sign.n = 1;
        rest = ls_datum_text(x->text + 1, x->n - 1);
        width = width < 1 ? 0 : width - 1;
    }
    LS_TRY(ls_text_pad(r, &rest, width, '>', &zero, &rest));
    return ls_datum_math(r, "+", &sign, &rest, y_p);
}

const ls_template_entry *ls_text_method(const char *name) {
    static const ls_template_entry methods[] = {{"strip", strip, "/| chars"},
                                                {"lstrip", lstrip, "/| chars"},
                                                {"rstrip", rstrip, "/| chars"},
                                                {"removeprefix", removeprefix, "/prefix"},
                                                {"removesuffix", removesuffix, "/suffix"},
                                                {"split", split, "| sep maxsplit"},
                                                {"rsplit", rsplit, "| sep maxsplit"},
                                                {"splitlines", splitlines, "| keepends"},
                                                {"partition", partition, "/sep"},
                                                {"rpartition", rpartition, "/sep"},
                                                {"startswith", startswith, "/prefix | start end"},
                                                {"endswith", endswith, "/suffix | start end"},
                                                {"replace", replace, "/old new | count"},
                                                {"join", join, "/iterable"},
                                                {"upper", upper, ""},
                                                {"lower", lower, ""},
                                                {"capitalize", capitalize, ""},
                                                {"title", title, ""},
                                                {"swapcase", swapcase, ""},
                                                {"find", find, "/sub | start end"},
                                                {"rfind", rfind, "/sub | start end"},
                                                {"index", index_of, "/sub | start end"},
                                                {"rindex", rindex_of, "/sub | start end"},
                                                {"count", count, "/sub | start end"},
                                                {"isdigit", isdigit_all, ""},
                                                {"isdecimal", isdigit_all, ""},
                                                {"isnumeric", isdigit_all, ""},
                                                {"isalpha", isalpha_all, ""},
                                                {"isalnum", isalnum_all, ""},
                                                {"isupper", isupper_all, ""},
                                                {"islower", islower_all, ""},
                                                {"isspace", isspace_all, ""},
                                                {"isascii", isascii_all, ""},
                                                {"center", center, "/width | fillchar"},
                                                {"ljust", ljust, "/width | fillchar"},
                                                {"rjust", rjust, "/width | fillchar"},
                                                {"zfill", zfill, "/width"},
                                                {"format", ls_text_format, "*"},
                                                {NULL, NULL, NULL}};
    return ls_template_entry_find(methods, name);
}
