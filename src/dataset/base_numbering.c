/* base_numbering.c - see base_numbering.h. */
#include "dataset/base_numbering.h"

#include <string.h>

#include "source/note.h"
#include "source/numbering.h"

static bool is_label(const ls_numbered *c) { return c->text && strcmp(c->field, "label") == 0; }

static const ls_numbered *label_of(const ls_numbering *n) {
    for (size_t i = 0; i < n->n; i++)
        if (is_label(&n->list[i])) return &n->list[i];
    return NULL;
}

static void copy_to(const ls_numbered *from, ls_numbering *to) {
    ls_numbered *c = ls_numbering_add(to, from->name, from->field);
    c->text = from->text;
    c->in = ls_classes_copy(&from->in);
    c->fills = from->fills;
    c->mean = from->mean;
    c->nvalues = from->nvalues;
}

/* The classes of a source, in the place of the base's, if it has others. */
static void take_label(ls_numbered *c, const ls_numbering *own, const char *what) {
    const ls_numbered *label = label_of(own);
    if (!label || ls_classes_check(&label->in, &c->in, what, label->name, NULL) == LS_OK) return;
    ls_note("%s: '%s' has classes that the run of train.from does not have: they are numbered anew",
            what, label->name);
    ls_classes_free(&c->in);
    c->in = ls_classes_copy(&label->in);
}

/* The caller frees it. */
static ls_numbering make(const ls_numbering *base, const ls_numbering *own, const char *what) {
    ls_numbering n = ls_numbering_copy(base);
    for (size_t i = 0; i < n.n; i++)
        if (is_label(&n.list[i])) take_label(&n.list[i], own, what);
    for (size_t i = 0; i < own->n; i++) {
        const ls_numbered *c = &own->list[i];
        bool there = ls_numbering_find(base, c->name, i) || (is_label(c) && label_of(base));
        if (!c->joined && !there) copy_to(c, &n);
    }
    return n;
}

ls_status ls_base_numbering_follow(ls_source *s, const ls_numbering *base, const char *what,
                                   ls_error *e) {
    ls_error why = {0};
    if (!base || !base->n || !s->numbering) return LS_OK;
    ls_numbering n = make(base, s->numbering, what);
    ls_status status = ls_source_follow(s, &n, what, &why);
    ls_numbering_free(&n);
    if (status == LS_OK) return LS_OK;
    return ls_fail(e, status, "train.from: columns are read as its run reads its training data: %s",
                   why.msg);
}

/* ---- ids ---- */

static bool same_ids(const ls_id_column *a, const ls_id_column *b) {
    bool same = strcmp(a->name, b->name) == 0 && a->ids.n == b->ids.n;
    for (int32_t i = 0; same && i < a->ids.n; i++)
        same = strcmp(ls_id_name(&a->ids, i), ls_id_name(&b->ids, i)) == 0;
    return same;
}

static bool same_scales(const ls_ids *a, const ls_ids *b) {
    bool same = a->nnumbers == b->nnumbers;
    for (size_t i = 0; same && i < a->nnumbers; i++) {
        const ls_id_scale *x = &a->numbers[i], *y = &b->numbers[i];
        same =
            !(x->mean < y->mean || x->mean > y->mean || x->times < y->times || x->times > y->times);
    }
    return same;
}

ls_status ls_base_ids_check(const ls_ids *own, const char *base, ls_error *e) {
    ls_ids was = {0};
    if (!own || ls_ids_read(base, &was, NULL) != LS_OK) return LS_OK;
    bool same = own->n == was.n, scales = same_scales(own, &was);
    const char *other = NULL;
    for (size_t i = 0; same && !other && i < own->n; i++)
        if (!same_ids(&own->columns[i], &was.columns[i])) other = own->columns[i].name;
    ls_ids_free(&was);
    if (!same || other)
        return ls_fail(
            e, LS_EINVAL,
            "train.from: the ids of '%.80s' stand for others than in %.200s, and so would "
            "its rows of weights: name its files first in data.path, or begin without "
            "train.from",
            other ? other : "the columns", base);
    if (!scales)
        ls_note("train.from: numbers of data.clicks are scaled otherwise than in %s", base);
    return LS_OK;
}
