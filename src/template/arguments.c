/* arguments.c - what a function, filter or test was called with. */
#include <string.h>

#include "template/value.h"

const ls_datum *ls_template_argument(const ls_template_arguments *a, int i, const char *keyword) {
    if (i < a->n) return &a->list[i];
    for (int k = 0; keyword && k < a->nkeywords; k++)
        if (strcmp(a->keywords[k], keyword) == 0) return &a->values[k];
    return NULL;
}

/* Is it one of the words? */
static bool is_among(const char *word, const char *words) {
    size_t n = strlen(word);
    for (const char *w = words; *w; w += *w == ' ') {
        size_t k = strcspn(w, " ");
        if (k == n && memcmp(w, word, n) == 0) return true;
        w += k;
    }
    return false;
}

ls_status ls_arguments_check(ls_rendering *r, const ls_template_arguments *a, int most,
                             const char *keywords) {
    if (a->n > most)
        return ls_render_fail(r, "%d arguments are given, and at most %d are taken", a->n, most);
    for (int k = 0; k < a->nkeywords; k++)
        if (!is_among(a->keywords[k], keywords))
            return ls_render_fail(r, "the argument \"%s\" is not supported", a->keywords[k]);
    return LS_OK;
}

ls_status ls_template_argument_text(ls_rendering *r, const ls_template_arguments *a, int i,
                                    ls_datum *text_p) {
    if (i >= a->n) return ls_render_fail(r, "an argument is missing");
    *text_p = a->list[i];
    if (text_p->kind != LS_DATUM_TEXT)
        return ls_render_fail(r, "the argument is %s, and must be text",
                              ls_datum_kind_name(text_p));
    return LS_OK;
}
