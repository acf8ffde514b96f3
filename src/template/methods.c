/* methods.c - methods of texts and dicts, as Python has them. Those that would change a value do
 * not exist. */
#include "template/methods.h"

#include <string.h>

#include "template/characters.h"

/* ---- texts ---- */

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

ls_status ls_text_strip(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        int sides, ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 1, "chars"));
    const ls_datum *set = ls_template_argument(a, 0, "chars");
    LS_TRY(ls_render_count(r, x->n / 64));
    if (set && set->kind != LS_DATUM_NONE) {
        if (set->kind != LS_DATUM_TEXT) return ls_render_fail(r, "what to strip must be text");
        LS_TRY(ls_render_count(r, set->n));
        *y_p = strip_set(x, set, sides);
        return LS_OK;
    }
    size_t left = sides & LS_STRIP_LEFT ? ls_spaces_at_start(x->text, x->n) : 0;
    *y_p = ls_datum_text(x->text + left, x->n - left);
    if (sides & LS_STRIP_RIGHT) y_p->n -= ls_spaces_at_end(y_p->text, y_p->n);
    return LS_OK;
}

static ls_status strip(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    return ls_text_strip(r, x, a, LS_STRIP_LEFT | LS_STRIP_RIGHT, y_p);
}
static ls_status lstrip(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        ls_datum *y_p) {
    return ls_text_strip(r, x, a, LS_STRIP_LEFT, y_p);
}
static ls_status rstrip(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        ls_datum *y_p) {
    return ls_text_strip(r, x, a, LS_STRIP_RIGHT, y_p);
}

/* Does the text begin, or end, with argument 0, or with one of its items? */
static ls_status is_at(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a, bool end,
                       ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 1, ""));
    *y_p = ls_datum_bool(false);
    if (!a->n) return ls_render_fail(r, "an argument is missing");
    const ls_datum *first = a->list, *list = first;
    size_t n = 1;
    if (first->kind == LS_DATUM_LIST) {
        list = first->items;
        n = first->n;
    }
    LS_TRY(ls_render_count(r, n));
    for (size_t i = 0; i < n; i++) {
        const ls_datum *w = &list[i];
        if (w->kind != LS_DATUM_TEXT) return ls_render_fail(r, "the argument must be text");
        if (w->n > x->n) continue;
        y_p->truth |= w->n == 0 || memcmp(x->text + (end ? x->n - w->n : 0), w->text, w->n) == 0;
    }
    return LS_OK;
}

static ls_status startswith(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    return is_at(r, x, a, false, y_p);
}
static ls_status endswith(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                          ls_datum *y_p) {
    return is_at(r, x, a, true, y_p);
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

/* At white space, with no empty pieces. */
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
            add_piece(p, s, n - ls_spaces_at_end(s, n));
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

static void split_at(const ls_datum *x, const ls_datum *by, int64_t most, pieces *p) {
    const char *s = x->text, *end = s + x->n, *at;
    for (; most != 0 && (at = memmem(s, (size_t)(end - s), by->text, by->n)); most--) {
        add_piece(p, s, (size_t)(at - s));
        s = at + by->n;
    }
    add_piece(p, s, (size_t)(end - s));
}

static ls_status split(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 2, "sep maxsplit"));
    const ls_datum *by = ls_template_argument(a, 0, "sep"),
                   *limit = ls_template_argument(a, 1, "maxsplit");
    int64_t most = limit && limit->kind == LS_DATUM_INTEGER ? limit->integer : -1;
    pieces p = {0};
    bool spaces = !by || by->kind == LS_DATUM_NONE;
    if (!spaces && (by->kind != LS_DATUM_TEXT || !by->n))
        return ls_render_fail(r, "a text is split at a text that is not empty");
    for (int pass = 0; pass < 2; pass++) { /* the first one counts */
        p.n = 0;
        if (spaces)
            split_spaces(x, most, &p);
        else
            split_at(x, by, most, &p);
        LS_TRY(ls_render_count(r, p.n + x->n / 64));
        if (pass) break;
        void *room;
        LS_TRY(ls_render_alloc(r, p.n * sizeof(ls_datum), &room));
        p.items = room;
    }
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = p.n, .items = p.items};
    return LS_OK;
}

/* Joins into one block of the right size. */
ls_status ls_text_join(ls_rendering *r, const ls_datum *list, const ls_datum *between,
                       ls_datum *y_p) {
    ls_buf out = {0};
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < list->n; i++) {
        if (i) ls_buf_append(&out, between->text, between->n);
        s = ls_datum_print(r, &list->items[i], &out);
    }
    if (s == LS_OK) s = ls_datum_copy_text(r, out.data, out.len, y_p);
    ls_buf_free(&out);
    return s;
}

ls_status ls_text_replace(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                          ls_datum *y_p) {
    ls_datum from, to;
    LS_TRY(ls_arguments_check(r, a, 3, ""));
    LS_TRY(ls_template_argument_text(r, a, 0, &from));
    LS_TRY(ls_template_argument_text(r, a, 1, &to));
    if (!from.n) return ls_render_fail(r, "the text to replace must not be empty");
    ls_template_arguments by = {.n = a->n == 3 ? 2 : 1, .list = {from, a->list[2]}};
    ls_datum list;
    LS_TRY(split(r, x, &by, &list));
    return ls_text_join(r, &list, &to, y_p);
}

static ls_status join(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                      ls_datum *y_p) {
    ls_datum list;
    LS_TRY(ls_arguments_check(r, a, 1, ""));
    if (!a->n) return ls_render_fail(r, "an argument is missing");
    LS_TRY(ls_datum_items(r, &a->list[0], &list));
    return ls_text_join(r, &list, x, y_p);
}

/* ---- case ---- */

static char upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 32) : c; }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

ls_status ls_text_case(ls_rendering *r, const ls_datum *x, char which, ls_datum *y_p) {
    bool starts = true;
    LS_TRY(ls_render_count(r, x->n / 64));
    LS_TRY(ls_datum_copy_text(r, x->text, x->n, y_p));
    char *s = (char *)(uintptr_t)y_p->text;
    for (size_t i = 0; i < x->n; i++) {
        if (s[i] & (char)0x80)
            return ls_render_fail(r, "upper and lower case are supported for ASCII letters only");
        bool up = which == 'u' || (which != 'l' && starts);
        starts = which == 't' && lower(s[i]) == upper(s[i]);
        s[i] = up ? upper(s[i]) : lower(s[i]);
    }
    return LS_OK;
}

static ls_status upper_case(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_text_case(r, x, 'u', y_p);
}
static ls_status lower_case(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_text_case(r, x, 'l', y_p);
}
static ls_status capitalize(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                            ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_text_case(r, x, 'c', y_p);
}
static ls_status title(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_text_case(r, x, 't', y_p);
}

/* ---- find ---- */

static ls_status find(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                      ls_datum *y_p) {
    ls_datum what;
    LS_TRY(ls_arguments_check(r, a, 1, ""));
    LS_TRY(ls_template_argument_text(r, a, 0, &what));
    LS_TRY(ls_render_count(r, x->n / 16));
    const char *at = what.n ? memmem(x->text, x->n, what.text, what.n) : x->text;
    *y_p = ls_datum_integer(at ? (int64_t)ls_characters(x->text, (size_t)(at - x->text))
                               : (int64_t)-1);
    return LS_OK;
}

/* ---- dicts ---- */

ls_status ls_dict_items(ls_rendering *r, const ls_datum *x, ls_datum *y_p) {
    void *room;
    if (x->kind == LS_DATUM_UNDEFINED) return ls_datum_items(r, x, y_p);
    if (x->kind != LS_DATUM_DICT) return ls_render_fail(r, "%s has no keys", ls_datum_kind_name(x));
    LS_TRY(ls_render_alloc(r, x->n * sizeof(ls_datum), &room));
    ls_datum *pairs = room;
    for (size_t i = 0; i < x->n; i++)
        pairs[i] = (ls_datum){.kind = LS_DATUM_LIST, .n = 2, .items = &x->items[2 * i]};
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = x->n, .items = pairs};
    return LS_OK;
}

static ls_status items(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_dict_items(r, x, y_p);
}

static ls_status keys(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                      ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    return ls_datum_items(r, x, y_p);
}

static ls_status values(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                        ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 0, ""));
    LS_TRY(ls_datum_items(r, x, y_p));
    ls_datum *list = (ls_datum *)(uintptr_t)y_p->items;
    for (size_t i = 0; i < x->n; i++) list[i] = x->items[2 * i + 1];
    return LS_OK;
}

static ls_status get(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                     ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, 2, ""));
    if (!a->n) return ls_render_fail(r, "an argument is missing");
    ls_datum_kind kind = LS_DATUM_UNDEFINED;
    LS_TRY(ls_datum_item(r, x, &a->list[0], y_p));
    if (y_p->kind == kind) *y_p = a->n == 2 ? a->list[1] : ls_datum_none();
    return LS_OK;
}

/* ---- a loop ---- */

static ls_status cycle(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    LS_TRY(ls_arguments_check(r, a, LS_TEMPLATE_ARGUMENTS, ""));
    if (!a->n) return ls_render_fail(r, "an argument is missing");
    *y_p = a->list[x->loop->i % (size_t)a->n];
    return LS_OK;
}

ls_template_function *ls_template_method(const ls_datum *self, const char *name) {
    static const ls_template_entry of_text[] = {{"strip", strip},
                                                {"lstrip", lstrip},
                                                {"rstrip", rstrip},
                                                {"split", split},
                                                {"startswith", startswith},
                                                {"endswith", endswith},
                                                {"replace", ls_text_replace},
                                                {"join", join},
                                                {"upper", upper_case},
                                                {"lower", lower_case},
                                                {"capitalize", capitalize},
                                                {"title", title},
                                                {"find", find},
                                                {NULL, NULL}};
    static const ls_template_entry of_dict[] = {
        {"items", items}, {"keys", keys}, {"values", values}, {"get", get}, {NULL, NULL}};
    static const ls_template_entry of_loop[] = {{"cycle", cycle}, {NULL, NULL}};
    const ls_template_entry *t = self->kind == LS_DATUM_TEXT   ? of_text
                                 : self->kind == LS_DATUM_DICT ? of_dict
                                 : self->kind == LS_DATUM_LOOP ? of_loop
                                                               : NULL;
    for (; t && t->name; t++)
        if (strcmp(t->name, name) == 0) return t->call;
    return NULL;
}
