/* globals.c - functions that every template has. */
#include <string.h>

#include "template/methods.h"

typedef const ls_template_arguments arguments;

static ls_status raise_exception(ls_rendering *r, const ls_datum *self, arguments *a,
                                 ls_datum *y_p) {
    (void)self;
    (void)y_p;
    ls_datum why;
    LS_TRY(ls_datum_str(r, a->given[0], &why));
    return ls_render_fail(r, "the template refuses this conversation: %.*s", (int)why.n, why.text);
}

static ls_status strftime_now(ls_rendering *r, const ls_datum *self, arguments *a, ls_datum *y_p) {
    (void)self;
    ls_datum format;
    char text[256];
    LS_TRY(ls_argument_text(r, a, 0, &format));
    LS_TRY(ls_datum_copy_text(r, format.text, format.n, &format));
    for (const char *s = format.text; (s = strchr(s, '%')); s += s[1] ? 2 : 1)
        if (s[1] == 0 || strchr("fzZ:", s[1]))
            return ls_render_fail(r, "this format of a date is not supported");
    size_t n = strftime(text, sizeof text, format.text, r->now);
    if (!n && format.n) return ls_render_fail(r, "this format of a date is not supported");
    return ls_datum_copy_text(r, text, n, y_p);
}

/* What dict() makes of its arguments: a dict or pairs, and name=value. */
static ls_status new_dict(ls_rendering *r, const ls_datum *self, arguments *a, ls_datum *y_p) {
    (void)self;
    ls_datum list = {.kind = LS_DATUM_LIST}, *items;
    if (a->n > 1) return ls_render_fail(r, "a dict is made of one value, and name=value");
    if (a->n && a->list[0].kind == LS_DATUM_DICT)
        LS_TRY(ls_dict_items(r, &a->list[0], &list));
    else if (a->n && a->list[0].kind != LS_DATUM_UNDEFINED)
        LS_TRY(ls_datum_items(r, &a->list[0], &list));
    LS_TRY(ls_datum_new_list(r, 2 * (list.n + (size_t)a->nkeywords), &items, y_p));
    *y_p = (ls_datum){.kind = LS_DATUM_DICT, .items = items};
    for (size_t i = 0; i < list.n; i++) {
        ls_datum pair;
        LS_TRY(ls_datum_items(r, &list.items[i], &pair));
        if (pair.n != 2) return ls_render_fail(r, "a dict is made of pairs");
        LS_TRY(ls_dict_put(r, y_p, &pair.items[0], &pair.items[1]));
    }
    for (int i = 0; i < a->nkeywords; i++) {
        ls_datum key = ls_datum_text(a->keywords[i].name, strlen(a->keywords[i].name));
        LS_TRY(ls_dict_put(r, y_p, &key, &a->keywords[i].value));
    }
    return LS_OK;
}

static ls_status new_space(ls_rendering *r, const ls_datum *self, arguments *a, ls_datum *y_p) {
    void *room;
    ls_datum dict, name;
    LS_TRY(new_dict(r, self, a, &dict));
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_scope), &room));
    *y_p = (ls_datum){.kind = LS_DATUM_SPACE, .space = room};
    for (size_t i = 0; i < dict.n; i++) {
        const ls_datum *pair = &dict.items[2 * i];
        if (pair->kind != LS_DATUM_TEXT)
            return ls_render_fail(r, "the members of a namespace have names");
        LS_TRY(ls_datum_copy_text(r, pair->text, pair->n, &name));
        if (name.text[0] == '_')
            return ls_render_fail(r, "a namespace's member can't begin with an underscore");
        LS_TRY(ls_scope_set(r, room, name.text, pair[1]));
    }
    return LS_OK;
}

static ls_status range(ls_rendering *r, const ls_datum *self, arguments *a, ls_datum *y_p) {
    (void)self;
    enum { MOST = 100000 }; /* Jinja's own limit */
    int64_t part[3] = {0, 0, 1}, n = 0;
    for (int i = 0; i < 3; i++) {
        LS_TRY(ls_argument_integer(r, a, i, part[i], &part[i]));
        if (part[i] > INT32_MAX || part[i] < INT32_MIN)
            return ls_render_fail(r, "range() takes integers of 32 bits");
    }
    if (!a->given[1]) {
        part[1] = part[0];
        part[0] = 0;
    }
    if (!part[2]) return ls_render_fail(r, "the step of range() is not 0");
    if (part[2] > 0 ? part[1] > part[0] : part[1] < part[0])
        n = (part[1] - part[0] + part[2] - (part[2] > 0 ? 1 : -1)) / part[2];
    if (n > MOST) return ls_render_fail(r, "range() has at most %d items", MOST);
    ls_datum *items;
    LS_TRY(ls_datum_new_list(r, (size_t)n, &items, y_p));
    for (int64_t i = 0; i < n; i++) items[i] = ls_datum_integer(part[0] + i * part[2]);
    y_p->kind = LS_DATUM_RANGE;
    return LS_OK;
}

const ls_template_entry *ls_template_global(const char *name) {
    static const ls_template_entry globals[] = {{"raise_exception", raise_exception, "message"},
                                                {"strftime_now", strftime_now, "format"},
                                                {"namespace", new_space, "*"},
                                                {"dict", new_dict, "*"},
                                                {"range", range, "/start | stop step"},
                                                {"cycler", NULL, ""},
                                                {"joiner", NULL, ""},
                                                {"lipsum", NULL, ""},
                                                {NULL, NULL, NULL}};
    return ls_template_entry_find(globals, name);
}
