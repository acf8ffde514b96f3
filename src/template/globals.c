/* globals.c - functions that every template has. */
#include <string.h>

#include "template/value.h"

static ls_status raise_exception(ls_rendering *r, const ls_datum *self,
                                 const ls_template_arguments *a, ls_datum *y_p) {
    (void)self;
    (void)y_p;
    ls_datum why;
    LS_TRY(ls_template_argument_text(r, a, 0, &why));
    return ls_render_fail(r, "the template refuses this conversation: %.*s", (int)why.n, why.text);
}

static ls_status strftime_now(ls_rendering *r, const ls_datum *self, const ls_template_arguments *a,
                              ls_datum *y_p) {
    (void)self;
    ls_datum format;
    char text[256];
    LS_TRY(ls_template_argument_text(r, a, 0, &format));
    LS_TRY(ls_datum_copy_text(r, format.text, format.n, &format));
    size_t n = strftime(text, sizeof text, format.text, r->now);
    if (!n && format.n) return ls_render_fail(r, "this format of a date is not supported");
    return ls_datum_copy_text(r, text, n, y_p);
}

static ls_status new_space(ls_rendering *r, const ls_datum *self, const ls_template_arguments *a,
                           ls_datum *y_p) {
    (void)self;
    void *room;
    LS_TRY(ls_render_alloc(r, sizeof(ls_template_scope), &room));
    *y_p = (ls_datum){.kind = LS_DATUM_SPACE, .space = room};
    if (a->n > 1 || (a->n && a->list[0].kind != LS_DATUM_DICT))
        return ls_render_fail(r, "namespace() takes name=value, or a dict");
    for (size_t i = 0; a->n && i < a->list[0].n; i++) {
        const ls_datum *pair = &a->list[0].items[2 * i];
        ls_datum name;
        LS_TRY(ls_datum_str(r, pair, &name));
        LS_TRY(ls_datum_copy_text(r, name.text, name.n, &name));
        LS_TRY(ls_scope_set(r, room, name.text, pair[1]));
    }
    for (int i = 0; i < a->nkeywords; i++)
        LS_TRY(ls_scope_set(r, room, a->keywords[i], a->values[i]));
    return LS_OK;
}

static ls_status new_dict(ls_rendering *r, const ls_datum *self, const ls_template_arguments *a,
                          ls_datum *y_p) {
    (void)self;
    void *room;
    if (a->n) return ls_render_fail(r, "dict() takes name=value");
    LS_TRY(ls_render_alloc(r, 2 * (size_t)a->nkeywords * sizeof(ls_datum), &room));
    ls_datum *items = room;
    for (int i = 0; i < a->nkeywords; i++) {
        items[2 * i] = ls_datum_text(a->keywords[i], strlen(a->keywords[i]));
        items[2 * i + 1] = a->values[i];
    }
    *y_p = (ls_datum){.kind = LS_DATUM_DICT, .n = (size_t)a->nkeywords, .items = items};
    return LS_OK;
}

static ls_status range(ls_rendering *r, const ls_datum *self, const ls_template_arguments *a,
                       ls_datum *y_p) {
    (void)self;
    enum { MOST = 100000 }; /* Jinja's own limit */
    int64_t part[3] = {0, 0, 1}, n = 0;
    LS_TRY(ls_arguments_check(r, a, 3, ""));
    for (int i = 0; i < a->n; i++) {
        if (a->list[i].kind != LS_DATUM_INTEGER || a->list[i].integer > INT32_MAX ||
            a->list[i].integer < INT32_MIN)
            return ls_render_fail(r, "range() takes integers of 32 bits");
        part[i] = a->list[i].integer;
    }
    if (a->n == 1) {
        part[1] = part[0];
        part[0] = 0;
    }
    if (!a->n || !part[2]) return ls_render_fail(r, "range() takes 1 to 3 integers, a step not 0");
    if (part[2] > 0 ? part[1] > part[0] : part[1] < part[0])
        n = (part[1] - part[0] + part[2] - (part[2] > 0 ? 1 : -1)) / part[2];
    if (n > MOST) return ls_render_fail(r, "range() has at most %d items", MOST);
    void *room;
    LS_TRY(ls_render_alloc(r, (size_t)n * sizeof(ls_datum), &room));
    for (int64_t i = 0; i < n; i++) ((ls_datum *)room)[i] = ls_datum_integer(part[0] + i * part[2]);
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = (size_t)n, .items = room};
    return LS_OK;
}

ls_template_function *ls_template_global(const char *name) {
    static const ls_template_entry globals[] = {{"raise_exception", raise_exception},
                                                {"strftime_now", strftime_now},
                                                {"namespace", new_space},
                                                {"dict", new_dict},
                                                {"range", range}};
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (strcmp(globals[i].name, name) == 0) return globals[i].call;
    return NULL;
}
