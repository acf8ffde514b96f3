/* numbering.c - see numbering.h. */
#include "source/numbering.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plural.h"

ls_numbered *ls_numbering_add(ls_numbering *c, const char *name, const char *field) {
    c->list = ls_grow(c->list, c->n, sizeof *c->list);
    c->list[c->n] = (ls_numbered){.name = ls_strdup(name), .field = ls_strdup(field)};
    return &c->list[c->n++];
}

const ls_numbered *ls_numbering_find(const ls_numbering *c, const char *name, size_t near) {
    for (size_t i = 0; i < c->n; i++) {
        const ls_numbered *code = &c->list[(near + i) % c->n];
        if (strcmp(code->name, name) == 0) return code;
    }
    return NULL;
}

ls_numbering ls_numbering_copy(const ls_numbering *c) {
    ls_numbering copy = {0};
    for (size_t i = 0; i < c->n; i++) {
        const ls_numbered *from = &c->list[i];
        ls_numbered *to = ls_numbering_add(&copy, from->name, from->field);
        char *name = to->name, *field = to->field;
        *to = *from;
        to->name = name;
        to->field = field;
        to->in = ls_classes_copy(&from->in);
    }
    return copy;
}

void ls_numbering_free(ls_numbering *c) {
    for (size_t i = 0; i < c->n; i++) {
        free(c->list[i].name);
        free(c->list[i].field);
        ls_classes_free(&c->list[i].in);
    }
    free(c->list);
    *c = (ls_numbering){0};
}

static bool same_names(const ls_classes *a, const ls_classes *b) {
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++) same = strcmp(a->names[i], b->names[i]) == 0;
    return same;
}

bool ls_numbering_same(const ls_numbering *a, const ls_numbering *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        const ls_numbered *x = &a->list[i], *y = &b->list[i];
        bool fills = x->fills == y->fills && !(x->mean < y->mean) && !(x->mean > y->mean);
        same = strcmp(x->name, y->name) == 0 && strcmp(x->field, y->field) == 0 && fills &&
               x->joined == y->joined && x->text == y->text && same_names(&x->in, &y->in);
    }
    return same;
}

/* ---- names ---- */

static void append(ls_classes *c, const char *name) {
    c->names = ls_grow(c->names, (size_t)c->n, sizeof *c->names);
    c->names[c->n++] = ls_strdup(name);
}

ls_classes ls_classes_copy(const ls_classes *from) {
    ls_classes copy = {.too_many = from->too_many};
    for (int i = 0; i < from->n; i++) append(&copy, from->names[i]);
    return copy;
}

/* *to gets the names of `from`, too. */
static void unite_classes(ls_classes *to, const ls_classes *from) {
    ls_classes all = {0};
    for (int i = 0, k = 0; i < to->n || k < from->n;) {
        int order = i == to->n ? 1 : k == from->n ? -1 : strcmp(to->names[i], from->names[k]);
        append(&all, order <= 0 ? to->names[i] : from->names[k]);
        i += order <= 0;
        k += order >= 0;
    }
    ls_classes_free(to);
    *to = all;
}

/* Code i of all parts. */
static void unite_code(ls_numbered *to, size_t i, const ls_numbering *const *parts, int n) {
    double sum = to->mean * (double)to->nvalues;
    for (int k = 1; k < n; k++) {
        const ls_numbered *c = ls_numbering_find(parts[k], to->name, i);
        if (!c) continue;
        if (c->text) unite_classes(&to->in, &c->in);
        to->text = to->text || c->text;
        to->fills = to->fills || c->fills;
        to->nvalues += c->nvalues;
        sum += c->mean * (double)c->nvalues;
    }
    if (to->nvalues) to->mean = (float)(sum / (double)to->nvalues);
}

ls_numbering ls_numbering_unite(const ls_numbering *const *parts, int n) {
    ls_numbering all = ls_numbering_copy(parts[0]);
    for (size_t i = 0; i < all.n; i++) unite_code(&all.list[i], i, parts, n);
    return all;
}

/* The first names, in quotes. */
static void put_names(const ls_classes *c, ls_buf *b) {
    enum { SHOWN = 6 };
    for (int i = 0; i < c->n && i < SHOWN; i++)
        ls_buf_printf(b, "%s'%.40s'", i ? ", " : "", c->names[i]);
    if (c->n > SHOWN) ls_buf_printf(b, " and %d more", c->n - SHOWN);
}

ls_status ls_classes_check(const ls_classes *part, const ls_classes *all, const char *what,
                           const char *field, ls_error *e) {
    ls_classes unknown = {0};
    for (int i = 0; i < part->n; i++)
        if (ls_classes_find(all, part->names[i], strlen(part->names[i])) < 0)
            append(&unknown, part->names[i]);
    if (unknown.n == 0) return LS_OK;
    ls_buf has = {0}, known = {0};
    put_names(&unknown, &has);
    put_names(all, &known);
    ls_status s =
        ls_fail(e, LS_EINVAL,
                "%.100s: '%.40s' has %.250s, which the training data do not have: there it is "
                "%.250s; correct the text%s, leave these samples out, or train with them",
                what, field, has.data, known.data, ls_plural(unknown.n));
    ls_buf_free(&has);
    ls_buf_free(&known);
    ls_classes_free(&unknown);
    return s;
}

/* ---- in data.json ---- */

static ls_json *code_json(const ls_numbered *c) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "name", c->name);
    ls_json_set_path(o, "field", c->field);
    if (c->joined) ls_json_set_bool(o, "joined", true);
    if (c->text) {
        ls_json *names = ls_json_new_array();
        for (int i = 0; i < c->in.n; i++) ls_json_push(names, ls_json_new_path(c->in.names[i]));
        ls_json_set(o, "texts", names);
    }
    if (c->fills) ls_json_set_number(o, "mean", c->mean);
    return o;
}

ls_json *ls_numbering_json(const ls_numbering *c) {
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < c->n; i++) ls_json_push(list, code_json(&c->list[i]));
    return list;
}

/* Names ascend, or a text would not be found. */
static bool read_names(const ls_json *list, ls_classes *c) {
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        if (!name || (i && strcmp(c->names[i - 1], name) >= 0)) return false;
        append(c, name);
    }
    return true;
}

static bool read_code(const ls_json *o, ls_numbering *c) {
    const char *name = ls_json_text(ls_json_get(o, "name")),
               *field = ls_json_text(ls_json_get(o, "field"));
    const ls_json *texts = ls_json_get(o, "texts"), *mean = ls_json_get(o, "mean");
    if (!name || !field) return false;
    ls_numbered *code = ls_numbering_add(c, name, field);
    code->joined = ls_json_is_true(ls_json_get(o, "joined"));
    code->text = texts != NULL;
    code->fills = mean != NULL;
    if (texts && !read_names(texts, &code->in)) return false;
    if (!mean) return true;
    if (!ls_json_number(mean, &code->mean)) return false;
    code->mean = (float)code->mean; /* nine digits of the file say it exactly */
    return true;
}

bool ls_numbering_read(const ls_json *list, ls_numbering *c_p) {
    ls_numbering c = {0};
    bool good = !list || ls_json_is_array(list);
    for (size_t i = 0; good && list && i < ls_json_count(list); i++)
        good = read_code(ls_json_at(list, i), &c);
    if (good)
        *c_p = c;
    else
        ls_numbering_free(&c);
    return good;
}
