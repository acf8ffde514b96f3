/* schema_set.c - see schema_set.h. */
#include "grammar/schema_set.h"

#include <stdlib.h>

#include "base/mem.h"
#include "grammar/schema_values.h"

void ls_schema_sets_free(ls_schema_sets *sets) {
    for (ls_schema_set *set = sets->first, *next; set; set = next) {
        next = set->next;
        free(set->list);
        free(set);
    }
    *sets = (ls_schema_sets){0};
}

ls_schema_set *ls_schema_set_new(ls_schema_sets *sets) {
    ls_schema_set *set = LS_NEW(ls_schema_set);
    set->next = sets->first;
    sets->first = set;
    sets->n++;
    return set;
}

void ls_schema_set_add(ls_schema_set *set, ls_schema_part part) {
    if (ls_json_is_bool(part.schema)) {
        set->never = set->never || !ls_json_is_true(part.schema);
        return;
    }
    if (ls_schema_has_id(part.schema)) part.root = part.schema;
    for (size_t i = 0; i < set->n; i++) {
        if (set->list[i].schema != part.schema) continue;
        set->list[i].done |= part.done;
        return;
    }
    set->list = ls_grow(set->list, set->n, sizeof *set->list);
    set->list[set->n++] = part;
}

bool ls_schema_set_equal(const ls_schema_set *a, const ls_schema_set *b) {
    if (a->n != b->n || a->never != b->never) return false;
    for (size_t i = 0; i < a->n; i++) {
        const ls_schema_part *x = &a->list[i], *y = &b->list[i];
        if (x->schema != y->schema || x->root != y->root || x->done != y->done) return false;
    }
    return true;
}
