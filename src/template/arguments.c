/* arguments.c - what a function, filter or test was called with. */
#include <string.h>

#include "template/value.h"

const ls_template_entry *ls_template_entry_find(const ls_template_entry *table, const char *name) {
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

const ls_datum *ls_argument_keyword(const ls_template_arguments *a, const char *name) {
    for (int k = 0; k < a->nkeywords; k++)
        if (strcmp(a->keywords[k].name, name) == 0) return &a->keywords[k].value;
    return NULL;
}

static const ls_datum *find_keyword(const ls_template_arguments *a, const char *name, size_t n) {
    for (int k = 0; k < a->nkeywords; k++)
        if (strlen(a->keywords[k].name) == n && memcmp(a->keywords[k].name, name, n) == 0)
            return &a->keywords[k].value;
    return NULL;
}

/* Is it one of the words, which have blanks between them? */
static bool is_among(const char *word, const char *words) {
    size_t n = strlen(word);
    for (const char *w = words; *w; w += *w == ' ') {
        size_t k = strcspn(w, " ");
        if (k == n && memcmp(w, word, n) == 0) return true;
        w += k;
    }
    return false;
}

ls_status ls_template_apply(ls_rendering *r, const ls_template_entry *entry, const ls_datum *self,
                            const ls_template_arguments *a, ls_datum *x_p) {
    ls_template_arguments bound = *a;
    const char *p = entry->parameters;
    if (*p == '*') return entry->call(r, self, a, x_p);
    bool named = *p != '/', needed = true;
    int i = 0;
    memset(bound.given, 0, sizeof bound.given);
    for (p += !named; *p; p += *p == ' ') {
        size_t n = strcspn(p, " ");
        if (*p == '|') {
            needed = false;
        } else {
            const ls_datum *by_name = named ? find_keyword(a, p, n) : NULL;
            if (by_name && i < a->n)
                return ls_render_fail(r, "\"%s\" gets its argument \"%.*s\" twice", entry->name,
                                      (int)n, p);
            if (needed && !by_name && i >= a->n)
                return ls_render_fail(r, "\"%s\" lacks its argument \"%.*s\"", entry->name, (int)n,
                                      p);
            bound.given[i] = i < a->n ? &a->list[i] : by_name;
            i++;
        }
        p += n;
    }
    if (a->n > i)
        return ls_render_fail(r, "\"%s\" takes at most %d arguments, not %d", entry->name, i, a->n);
    for (int k = 0; k < a->nkeywords; k++)
        if (!named || !is_among(a->keywords[k].name, entry->parameters))
            return ls_render_fail(r, "\"%s\" has no argument of the name \"%s\"", entry->name,
                                  a->keywords[k].name);
    return entry->call(r, self, &bound, x_p);
}

ls_status ls_argument_text(ls_rendering *r, const ls_template_arguments *a, int i,
                           ls_datum *text_p) {
    *text_p = a->given[i] ? *a->given[i] : ls_datum_none();
    if (text_p->kind != LS_DATUM_TEXT)
        return ls_render_fail(r, "the argument is %s, and must be text",
                              ls_datum_kind_name(text_p));
    return LS_OK;
}

ls_status ls_argument_integer(ls_rendering *r, const ls_template_arguments *a, int i,
                              int64_t otherwise, int64_t *value_p) {
    const ls_datum *x = a->given[i];
    *value_p = otherwise;
    if (!x) return LS_OK;
    if (!ls_datum_is_integer(x))
        return ls_render_fail(r, "the argument is %s, and must be an integer",
                              ls_datum_kind_name(x));
    *value_p = ls_datum_integer_of(x);
    return LS_OK;
}

bool ls_argument_is_true(const ls_template_arguments *a, int i) {
    return a->given[i] && ls_datum_is_true(a->given[i]);
}
