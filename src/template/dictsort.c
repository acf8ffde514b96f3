/* dictsort.c - the filter dictsort: keys and values of a dict in their order, as Python's stable
 * sort.
 *
 * A merge sort from the bottom up: runs of 1, 2, 4 ... pairs. */
#include <string.h>

#include "template/methods.h"

/* A pair, and what it is compared by. */
typedef struct entry {
    ls_datum pair, by;
} entry;

typedef struct order {
    bool by_value, in_case, down;
} order;

static ls_status read_order(ls_rendering *r, const ls_template_arguments *a, order *o_p) {
    const ls_datum *in_case = ls_template_argument(a, 0, "case_sensitive");
    const ls_datum *by = ls_template_argument(a, 1, "by");
    const ls_datum *down = ls_template_argument(a, 2, "reverse");
    LS_TRY(ls_arguments_check(r, a, 3, "case_sensitive by reverse"));
    order o = {.in_case = in_case && ls_datum_is_true(in_case),
               .down = down && ls_datum_is_true(down)};
    bool key = !by || (by->kind == LS_DATUM_TEXT && by->n == 3 && !memcmp(by->text, "key", 3));
    o.by_value = by && by->kind == LS_DATUM_TEXT && by->n == 5 && !memcmp(by->text, "value", 5);
    if (!key && !o.by_value) return ls_render_fail(r, "dictsort is by \"key\" or \"value\"");
    *o_p = o;
    return LS_OK;
}

static ls_status is_before(ls_rendering *r, const order *o, const entry *a, const entry *b,
                           bool *before_p) {
    int compared;
    LS_TRY(ls_render_count(r, 1));
    LS_TRY(ls_datum_compare(r, &a->by, &b->by, &compared));
    *before_p = o->down ? compared > 0 : compared < 0;
    return LS_OK;
}

/* Merges the sorted runs [0, half) and [half, n); of equal entries that of the first comes
 * first. */
static ls_status merge(ls_rendering *r, const order *o, const entry *from, size_t half, size_t n,
                       entry *to) {
    size_t i = 0, j = half;
    for (size_t k = 0; k < n; k++) {
        bool second = i == half;
        if (i < half && j < n) LS_TRY(is_before(r, o, &from[j], &from[i], &second));
        to[k] = from[second ? j++ : i++];
    }
    return LS_OK;
}

static ls_status sort(ls_rendering *r, const order *o, entry **list_p, entry *other, size_t n) {
    entry *list = *list_p;
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t i = 0; i < n; i += 2 * run) {
            size_t left = n - i, all = left < 2 * run ? left : 2 * run;
            LS_TRY(merge(r, o, list + i, all < run ? all : run, all, other + i));
        }
        entry *was = list;
        list = other;
        other = was;
    }
    *list_p = list;
    return LS_OK;
}

ls_status ls_dict_sort(ls_rendering *r, const ls_datum *x, const ls_template_arguments *a,
                       ls_datum *y_p) {
    order o = {0};
    ls_datum list;
    void *room;
    LS_TRY(read_order(r, a, &o));
    LS_TRY(ls_dict_items(r, x, &list));
    LS_TRY(ls_render_alloc(r, 2 * list.n * sizeof(entry), &room));
    entry *entries = room;
    for (size_t i = 0; i < list.n; i++) {
        entries[i] = (entry){list.items[i], list.items[i].items[o.by_value]};
        if (!o.in_case && entries[i].by.kind == LS_DATUM_TEXT)
            LS_TRY(ls_text_case(r, &entries[i].by, 'l', &entries[i].by));
    }
    LS_TRY(sort(r, &o, &entries, entries + list.n, list.n));
    LS_TRY(ls_render_alloc(r, list.n * sizeof(ls_datum), &room));
    ls_datum *sorted = room;
    for (size_t i = 0; i < list.n; i++) sorted[i] = entries[i].pair;
    *y_p = (ls_datum){.kind = LS_DATUM_LIST, .n = list.n, .items = sorted};
    return LS_OK;
}
