/* sort.c - items in their order, as Python's stable sort.
 *
 * A merge sort from the bottom up: runs of 1, 2, 4 ... items. */
#include <string.h>

#include "template/methods.h"

/* An item, and what it is compared by. */
typedef struct entry {
    ls_datum item, by;
} entry;

static ls_status is_before(ls_rendering *r, bool down, const entry *a, const entry *b,
                           bool *before_p) {
    int compared;
    LS_TRY(ls_datum_compare(r, &a->by, &b->by, &compared));
    *before_p = down ? compared > 0 : compared < 0;
    return LS_OK;
}

/* Merges the sorted runs [0, half) and [half, n); of equal entries that of the first comes
 * first. */
static ls_status merge(ls_rendering *r, bool down, const entry *from, size_t half, size_t n,
                       entry *to) {
    size_t i = 0, j = half;
    for (size_t k = 0; k < n; k++) {
        bool second = i == half;
        if (i < half && j < n) LS_TRY(is_before(r, down, &from[j], &from[i], &second));
        to[k] = from[second ? j++ : i++];
    }
    return LS_OK;
}

static ls_status sort(ls_rendering *r, bool down, entry **list_p, entry *other, size_t n) {
    entry *list = *list_p;
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t i = 0; i < n; i += 2 * run) {
            size_t left = n - i, all = left < 2 * run ? left : 2 * run;
            LS_TRY(merge(r, down, list + i, all < run ? all : run, all, other + i));
        }
        entry *was = list;
        list = other;
        other = was;
    }
    *list_p = list;
    return LS_OK;
}

ls_status ls_items_sort(ls_rendering *r, const ls_item_key *key, bool down, const ls_datum *list,
                        ls_datum *sorted_p) {
    void *room;
    ls_datum *sorted;
    LS_TRY(ls_render_alloc(r, 2 * list->n * sizeof(entry), &room));
    entry *entries = room;
    for (size_t i = 0; i < list->n; i++) {
        entries[i].item = list->items[i];
        LS_TRY(ls_item_key_of(r, key, &list->items[i], &entries[i].by));
    }
    LS_TRY(sort(r, down, &entries, entries + list->n, list->n));
    LS_TRY(ls_datum_new_list(r, list->n, &sorted, sorted_p));
    for (size_t i = 0; i < list->n; i++) sorted[i] = entries[i].item;
    return LS_OK;
}

ls_status ls_dict_by_key(ls_rendering *r, const ls_datum *dict, ls_datum *dict_p) {
    ls_datum pairs, place = ls_datum_integer(0), *items;
    LS_TRY(ls_dict_items(r, dict, &pairs));
    LS_TRY(ls_items_sort(r, &(ls_item_key){.attribute = &place}, false, &pairs, &pairs));
    LS_TRY(ls_datum_new_list(r, 2 * dict->n, &items, dict_p));
    for (size_t i = 0; i < dict->n; i++)
        memcpy(&items[2 * i], pairs.items[i].items, 2 * sizeof *items);
    *dict_p = (ls_datum){.kind = LS_DATUM_DICT, .n = dict->n, .items = items};
    return LS_OK;
}
