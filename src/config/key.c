/* key.c - see key.h. */
#include "config/key.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/utf8.h"

const char *const ls_config_span_units[] = {ls_span_unit_words(LS_CHOICE_WORD) NULL};

/* ---- which keys there are ---- */

static const ls_config_key *own; /* [nown] */
static int nown;

void ls_config_key_use_own(const ls_config_key *keys, int n) {
    own = keys;
    nown = n;
}

const ls_config_key *ls_config_key_at(int i) {
    if (i < LS_NCONFIG_KEYS) return &ls_config_keys[i];
    return i - LS_NCONFIG_KEYS < nown ? &own[i - LS_NCONFIG_KEYS] : NULL;
}

int ls_config_key_index(const ls_config_key *k) {
    int i = 0;
    while (ls_config_key_at(i) != k) i++;
    return i;
}

const ls_config_key *ls_config_key_find(const char *name) {
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

const ls_config_key *ls_config_key_find_tree(const char *name) {
    for (int i = 0; i < LS_NCONFIG_KEYS; i++)
        if (ls_config_keys[i].type == LS_KEY_TREE && strcmp(ls_config_keys[i].name, name) == 0)
            return &ls_config_keys[i];
    return NULL;
}

bool ls_config_key_is_text(const ls_config_key *k) {
    return k->type == LS_KEY_TEXT || k->type == LS_KEY_LIST || k->type == LS_KEY_MAPS ||
           k->type == LS_KEY_TREE;
}

/* A choice is an enum, which has the size of an int. */
static size_t size_of(const ls_config_key *k) {
    switch (k->type) {
    case LS_KEY_INTEGER: return sizeof(int64_t);
    case LS_KEY_REAL: return sizeof(double);
    case LS_KEY_CHOICE: return sizeof(int);
    case LS_KEY_SPAN: return sizeof(ls_config_span);
    case LS_KEY_TREE: return sizeof(ls_config_tree);
    case LS_KEY_TEXT:
    case LS_KEY_LIST:
    case LS_KEY_MAPS: break;
    }
    return sizeof(char *);
}

int64_t ls_config_key_whole(const ls_config *c, const ls_config_key *k) {
    const void *at = (const char *)c + k->offset;
    return k->type == LS_KEY_CHOICE ? *(const int *)at : *(const int64_t *)at;
}

bool ls_config_key_in_range(const ls_config *c, const ls_config_key *k) {
    const int64_t *whole = k->whole;
    const double *real = k->real;
    if (k->type == LS_KEY_INTEGER) {
        int64_t x = ls_config_key_whole(c, k);
        return (x >= whole[LS_KEY_LOW] && x <= whole[LS_KEY_HIGH]) || x == whole[LS_KEY_USUAL];
    }
    if (k->type != LS_KEY_REAL) return true;
    double x = *(const double *)(const void *)((const char *)c + k->offset);
    return (x >= real[LS_KEY_LOW] && x <= real[LS_KEY_HIGH]) || x == real[LS_KEY_USUAL];
}

void ls_config_key_copy(ls_config *to, const ls_config *from, const ls_config_key *k) {
    memcpy((char *)to + k->offset, (const char *)from + k->offset, size_of(k));
}

const char *ls_config_key_text(const ls_config *c, const ls_config_key *k) {
    const char *text = NULL;
    memcpy(&text, (const char *)c + k->offset, sizeof text);
    return text ? text : "";
}

bool ls_config_key_is_hidden(const ls_config *c, const ls_config_key *k) {
    const ls_config_key *plain = ls_config_key_find(k->name),
                        *tree = ls_config_key_find_tree(k->name);
    if (!tree || plain == tree) return false;
    bool has_tree = *ls_config_key_text(c, tree) != 0;
    return k == (has_tree ? plain : tree);
}

void ls_config_key_list_groups(ls_buf *out) {
    const char *last = "";
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        size_t n = strcspn(k->name, ".") + 1; /* with the dot */
        if (strncmp(last, k->name, n) == 0) continue;
        ls_buf_printf(out, "%s%.*s", i ? ", " : "", (int)n - 1, k->name);
        last = k->name;
    }
}

bool ls_config_key_is_group(const char *name) {
    size_t n = strlen(name);
    const ls_config_key *k = NULL;
    for (int i = 0; (k = ls_config_key_at(i)); i++)
        if (strncmp(k->name, name, n) == 0 && k->name[n] == '.') return true;
    return false;
}

void ls_config_key_write_range(const ls_config_key *k, char text[LS_KEY_RANGE]) {
    if (k->type == LS_KEY_SPAN)
        snprintf(text, LS_KEY_RANGE, "%.15g to %.15g steps, samples or epochs", k->real[LS_KEY_LOW],
                 k->real[LS_KEY_HIGH]);
    else if (k->type == LS_KEY_INTEGER)
        snprintf(text, LS_KEY_RANGE, "%lld to %lld", (long long)k->whole[LS_KEY_LOW],
                 (long long)k->whole[LS_KEY_HIGH]);
    else
        snprintf(text, LS_KEY_RANGE, "%.15g to %.15g", k->real[LS_KEY_LOW], k->real[LS_KEY_HIGH]);
}

/* ---- its value ---- */

static int64_t *integer_at(ls_config *c, const ls_config_key *k) {
    return (int64_t *)(void *)((char *)c + k->offset);
}
static int *choice_at(ls_config *c, const ls_config_key *k) {
    return (int *)(void *)((char *)c + k->offset);
}
static double *real_at(ls_config *c, const ls_config_key *k) {
    return (double *)(void *)((char *)c + k->offset);
}
static ls_config_span *span_at(ls_config *c, const ls_config_key *k) {
    return (ls_config_span *)(void *)((char *)c + k->offset);
}
static const char **text_at(ls_config *c, const ls_config_key *k) {
    return (const char **)(void *)((char *)c + k->offset);
}

void ls_config_key_reset(ls_config *c, const ls_config_key *k) {
    if (k->type == LS_KEY_INTEGER) *integer_at(c, k) = k->whole[LS_KEY_USUAL];
    if (k->type == LS_KEY_CHOICE) *choice_at(c, k) = (int)k->whole[LS_KEY_USUAL];
    if (k->type == LS_KEY_REAL) *real_at(c, k) = k->real[LS_KEY_USUAL];
    if (k->type == LS_KEY_SPAN) span_at(c, k)->n = k->real[LS_KEY_USUAL];
    if (ls_config_key_is_text(k)) *text_at(c, k) = "";
}

static bool is_white(char c) { return c == ' ' || c == '\n'; }

/* Trees may be written in other lines. */
static bool equal_trees(const char *a, const char *b) {
    bool quoted = false;
    for (;; a++, b++) {
        while (!quoted && is_white(*a)) a++;
        while (!quoted && is_white(*b)) b++;
        if (*a != *b || !*a) return *a == *b;
        if (*a == '"') quoted = !quoted;
        if (*a != '\\') continue; /* else the next one is no end of quotes */
        a++, b++;
        if (*a != *b || !*a) return *a == *b;
    }
}

/* A warm-up of `auto` equals the number that it stands for. */
static bool equal_spans(const ls_config *a, const ls_config *b, const ls_config_key *k) {
    const ls_config_span *x = (const void *)((const char *)a + k->offset),
                         *y = (const void *)((const char *)b + k->offset);
    const ls_config_span p = ls_config_warmup(a), q = ls_config_warmup(b);
    return (x->n == y->n && x->unit == y->unit) || (p.n == q.n && p.unit == q.unit);
}

bool ls_config_key_is_equal(const ls_config *a, const ls_config *b, const ls_config_key *k) {
    const char *x = (const char *)a + k->offset, *y = (const char *)b + k->offset;
    if (k->type == LS_KEY_TREE)
        return equal_trees(ls_config_key_text(a, k), ls_config_key_text(b, k));
    if (k->type == LS_KEY_SPAN) return equal_spans(a, b, k);
    if (ls_config_key_is_text(k))
        return strcmp(ls_config_key_text(a, k), ls_config_key_text(b, k)) == 0;
    return memcmp(x, y, size_of(k)) == 0;
}

/* ---- setting it from a text ---- */

static ls_status range_failed(const char *where, const ls_config_key *k, const char *value,
                              ls_error *e) {
    char range[LS_KEY_RANGE];
    ls_config_key_write_range(k, range);
    return ls_fail(e, LS_EINVAL, "%s: %s: %.60s is out of range; expected %s", where, k->name,
                   value, range);
}

static ls_status not_a_number(const char *where, const ls_config_key *k, const char *value,
                              const char *what, ls_error *e) {
    char range[LS_KEY_RANGE];
    ls_config_key_write_range(k, range);
    return ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not a %s; expected %s", where, k->name, value,
                   what, range);
}

static ls_status set_integer(ls_config *c, const ls_config_key *k, const char *where,
                             const char *value, ls_error *e) {
    char *end = NULL;
    errno = 0;
    if (k->choices && strcmp(value, k->choices[0]) == 0) {
        *integer_at(c, k) = LS_AUTO;
        return LS_OK;
    }
    long long v = strtoll(value, &end, 10);
    bool number = *value && !*end && strspn(value, "+-0123456789") == strlen(value);
    if (!number) return not_a_number(where, k, value, "whole number", e);
    if (errno || v < k->whole[LS_KEY_LOW] || v > k->whole[LS_KEY_HIGH])
        return range_failed(where, k, value, e);
    *integer_at(c, k) = v;
    return LS_OK;
}

static ls_status set_real(ls_config *c, const ls_config_key *k, const char *where,
                          const char *value, ls_error *e) {
    char *end = NULL;
    double v = strtod(value, &end);
    bool number = *value && !*end && strspn(value, "+-.0123456789eE") == strlen(value);
    if (!number) return not_a_number(where, k, value, "number", e);
    if (!isfinite(v) || v < k->real[LS_KEY_LOW] || v > k->real[LS_KEY_HIGH])
        return range_failed(where, k, value, e);
    *real_at(c, k) = v;
    return LS_OK;
}

/* "100", "2000 samples", "0.5 epochs", "auto": steps and samples are whole. */
static ls_status set_span(ls_config *c, const ls_config_key *k, const char *where,
                          const char *value, ls_error *e) {
    char *end = NULL;
    if (k->choices && strcmp(value, k->choices[0]) == 0) {
        *span_at(c, k) = (ls_config_span){.n = LS_AUTO};
        return LS_OK;
    }
    double v = strtod(value, &end);
    const char *unit = end + strspn(end, " ");
    int u = 0;
    while (ls_config_span_units[u] && strcmp(ls_config_span_units[u], unit) != 0) u++;
    bool number = end > value && strspn(value, "+-.0123456789eE") >= (size_t)(end - value);
    bool whole = u == LS_SPAN_EPOCHS || v == floor(v);
    if (!number || (*unit && !ls_config_span_units[u]) || !whole)
        return ls_fail(e, LS_EINVAL,
                       "%s: %s: '%.60s' is neither a number of steps nor a text such as \"2000 "
                       "samples\" or \"0.5 epochs\"",
                       where, k->name, value);
    if (!isfinite(v) || v < k->real[LS_KEY_LOW] || v > k->real[LS_KEY_HIGH])
        return range_failed(where, k, value, e);
    *span_at(c, k) = (ls_config_span){v, *unit ? (ls_span_unit)u : LS_SPAN_STEPS};
    return LS_OK;
}

int ls_config_truth(const char *word) {
    static const char *const words[] = {"off", "on", "false", "true"};
    for (int i = 0; i < 4; i++)
        if (strcmp(word, words[i]) == 0) return i % 2;
    return -1;
}

/* Where a key may be on or off, YAML's true and false are these, too. */
static const char *word_of(const ls_config_key *k, const char *value) {
    bool on = false, off = false;
    int truth = ls_config_truth(value);
    for (int i = 0; k->choices[i]; i++) {
        on = on || strcmp(k->choices[i], "on") == 0;
        off = off || strcmp(k->choices[i], "off") == 0;
    }
    return on && off && truth >= 0 ? (truth ? "on" : "off") : value;
}

static ls_status set_choice(ls_config *c, const ls_config_key *k, const char *where,
                            const char *value, ls_error *e) {
    ls_buf list = {0};
    value = word_of(k, value);
    for (int i = 0; k->choices[i]; i++) {
        if (strcmp(k->choices[i], value) == 0) {
            *choice_at(c, k) = i;
            ls_buf_free(&list);
            return LS_OK;
        }
        ls_buf_printf(&list, "%s%s", i ? ", " : "", k->choices[i]);
    }
    ls_status s =
        ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not one of %s", where, k->name, value, list.data);
    ls_buf_free(&list);
    return s;
}

static ls_status set_text(ls_config *c, const ls_config_key *k, const char *where,
                          const char *value, ls_error *e) {
    size_t size = k->type == LS_KEY_TEXT ? LS_CONFIG_TEXT : LS_CONFIG_TREE;
    if (strlen(value) >= size)
        return ls_fail(e, LS_EINVAL, "%s: %s: is longer than %zu bytes", where, k->name, size - 1);
    if (!ls_utf8_is_valid(value, strlen(value))) /* else it could not be written as YAML */
        return ls_fail(e, LS_EINVAL, "%s: %s: is not UTF-8", where, k->name);
    *text_at(c, k) = ls_intern(value);
    return LS_OK;
}

ls_status ls_config_key_set(ls_config *c, const ls_config_key *k, const char *where,
                            const char *value, ls_error *e) {
    switch (k->type) {
    case LS_KEY_INTEGER: return set_integer(c, k, where, value, e);
    case LS_KEY_REAL: return set_real(c, k, where, value, e);
    case LS_KEY_CHOICE: return set_choice(c, k, where, value, e);
    case LS_KEY_SPAN: return set_span(c, k, where, value, e);
    case LS_KEY_TEXT:
    case LS_KEY_MAPS:
    case LS_KEY_TREE:
    case LS_KEY_LIST: break;
    }
    return set_text(c, k, where, value, e);
}
