/* terms.c - see terms.h. */
#include "config/terms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* The end of the part that begins at `s`: before the separator, or at `end`. */
static const char *part_end(const char *s, const char *end, const char *separator) {
    size_t n = strlen(separator);
    while (s < end && ((size_t)(end - s) < n || strncmp(s, separator, n) != 0)) s++;
    return s;
}

static bool begins(const char *s, const char *end, const char *with) {
    size_t n = strlen(with);
    return (size_t)(end - s) >= n && strncmp(s, with, n) == 0;
}

/* The kind of the term, by what follows its key; moves *words behind that. */
static ls_term_is kind_of(const char **words, const char *end) {
    static const struct {
        const char *text;
        ls_term_is is;
    } kinds[] = {{": other than ", LS_TERM_NONE_OF},
                 {": ", LS_TERM_ONE_OF},
                 {" > ", LS_TERM_ABOVE},
                 {" is a list", LS_TERM_LIST},
                 {" has a unit", LS_TERM_UNIT}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!begins(*words, end, kinds[i].text)) continue;
        *words += strlen(kinds[i].text);
        return kinds[i].is;
    }
    return LS_TERM_SET;
}

bool ls_term_read(const char **text, ls_term *t_p) {
    static const char no[] = "no ";
    const char *s = *text, *all = s + strlen(s);
    if (s == all) return false;
    const char * or = part_end(s, all, " or "), *and = part_end(s, all, "; ");
    const char *end = or < and? or : and;
    *t_p = (ls_term){.text = s, .end = end, .alternative = or < and};
    *text = end == all ? all : end + strlen(or < and? " or " : "; ");
    bool unset = begins(s, end, no);
    if (unset) s += strlen(no);
    size_t n = strcspn(s, ": ;");
    if (n > (size_t)(end - s)) n = (size_t)(end - s);
    snprintf(t_p->name, sizeof t_p->name, "%.*s", (int)n, s);
    t_p->key = ls_config_key_find(t_p->name);
    t_p->words = s + n;
    t_p->is = unset ? LS_TERM_UNSET : kind_of(&t_p->words, end);
    return true;
}

/* ---- does it hold? ---- */

/* The value as it is written in a config, without quotes. */
static char *value_of(const ls_config *c, const ls_config_key *k) {
    ls_buf text = {0};
    ls_config_key_write(c, k, &text);
    bool quoted = text.len > 1 && text.data[0] == '"';
    char *value =
        quoted ? ls_format("%.*s", (int)text.len - 2, text.data + 1) : ls_strdup(text.data);
    ls_buf_free(&text);
    return value;
}

static bool has_word(const ls_term *t, const char *value) {
    size_t n = strlen(value);
    for (const char *s = t->words, *end = NULL; s < t->end; s = end + strlen(", ")) {
        end = part_end(s, t->end, ", ");
        if ((size_t)(end - s) == n && strncmp(s, value, n) == 0) return true;
    }
    return false;
}

/* Is the key one that a published model's files decide? */
static bool is_open(const ls_config *c, const char *key) {
    static const char *const own[] = {"model.from", "model.adapter", "model.context",
                                      "model.sparse"};
    if (!*c->model.from || strncmp(key, "model.", strlen("model.")) != 0) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(key, own[i]) == 0) return false;
    return true;
}

/* Could the files decide so? They are of kind gpt2 or llama. */
static bool may_hold(const ls_term *t) {
    if (strcmp(t->name, "model.kind") != 0) return true;
    bool gpt2 = has_word(t, "gpt2"), llama = has_word(t, "llama");
    return t->is == LS_TERM_NONE_OF ? !gpt2 || !llama : gpt2 || llama;
}

static bool is_empty(const char *value) { return !*value || strcmp(value, "[]") == 0; }

/* A name may belong to two keys, a list and a value: then the list counts. */
static char *value_of_term(const ls_config *c, const ls_term *t) {
    const ls_config_key *tree = ls_config_key_find_tree(t->name);
    return value_of(c, tree ? tree : t->key);
}

bool ls_term_holds(const ls_config *c, const ls_term *t, ls_open_keys open) {
    if (open != LS_NONE_IS_OPEN && is_open(c, t->name))
        return open == LS_OPEN_MAY_HOLD && may_hold(t);
    char *value = value_of_term(c, t);
    bool good = false;
    switch (t->is) {
    case LS_TERM_ONE_OF: good = has_word(t, value); break;
    case LS_TERM_NONE_OF: good = !has_word(t, value); break;
    case LS_TERM_ABOVE: good = strtod(value, NULL) > strtod(t->words, NULL); break;
    case LS_TERM_SET:
    case LS_TERM_LIST: good = !is_empty(value); break;
    case LS_TERM_UNSET: good = is_empty(value); break;
    case LS_TERM_UNIT: good = strchr(value, ' ') != NULL; break;
    }
    free(value);
    return good;
}

bool ls_terms_hold(const ls_config *c, const char *terms, ls_open_keys open) {
    ls_term t;
    for (bool all = true; ls_term_read(&terms, &t);) {
        all = all && ls_term_holds(c, &t, open);
        bool ends = t.alternative || !*terms;
        if (ends && all) return true;
        all = all || ends;
    }
    return false;
}

/* ---- as a text ---- */

void ls_term_put_value(const ls_config *c, const ls_term *t, ls_open_keys open, ls_buf *out) {
    char *value = value_of_term(c, t);
    bool plain = t->is != LS_TERM_SET && t->is != LS_TERM_UNSET && t->is != LS_TERM_LIST;
    if (open != LS_NONE_IS_OPEN && is_open(c, t->name))
        ls_buf_printf(out, "the %s of model.from", t->name);
    else if (t->is == LS_TERM_LIST)
        ls_buf_printf(out, "a list in %s", t->name);
    else if (plain)
        ls_buf_printf(out, "%s: %s", t->name, value);
    else
        ls_buf_printf(out, "%s%s", is_empty(value) ? "no " : "", t->name);
    free(value);
}

void ls_terms_put(const char *terms, ls_buf *out) {
    ls_term t;
    while (ls_term_read(&terms, &t))
        ls_buf_printf(out, "%.*s%s", (int)(t.end - t.text), t.text,
                      !*terms         ? ""
                      : t.alternative ? ", or "
                                      : " and ");
}
