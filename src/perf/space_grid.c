/* space_grid.c - see space_grid.h. */
#include "perf/space_grid.h"

#include <stdlib.h>

static ls_status add_point(ls_space *s, const ls_space_point *p, ls_error *e) {
    int64_t n = s->rules.trials;
    if (n == LS_SPACE_TRIALS)
        return ls_fail(e, LS_EINVAL,
                       "%s: the grid has more than %d combinations; use fewer values, or method "
                       "random",
                       s->path, LS_SPACE_TRIALS);
    s->grid = ls_grow(s->grid, (size_t)n, sizeof *s->grid);
    ls_space_point_copy(p, &s->grid[n]);
    s->rules.trials++;
    return LS_OK;
}

static ls_status check_range(const ls_space *s, int key, const ls_space_range *a, ls_error *e) {
    if (a->kind == LS_RANGE_CHOICE || a->kind == LS_RANGE_INT) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s:%d: %s: a grid takes the values of choice or int; list them, or use method "
                   "random",
                   s->path, a->line, s->keys[key].name);
}

/* Sets the keys from `key` on to all their values, one after the other. */
static ls_status expand(ls_space *s, int key, ls_space_point *p, ls_error *e) {
    if (key == s->nkeys) return add_point(s, p, e);
    const ls_space_range *a = ls_space_range_of(s, key, p);
    if (!a) return expand(s, key + 1, p, e);
    LS_TRY(check_range(s, key, a, e));
    double n = a->kind == LS_RANGE_CHOICE ? a->nchoices : a->high - a->low + 1;
    ls_status got = LS_OK;
    for (int i = 0; got == LS_OK && i < n; i++) {
        p->values[key] =
            a->kind == LS_RANGE_CHOICE ? ls_strdup(a->choices[i]) : ls_format("%.0f", a->low + i);
        got = expand(s, key + 1, p, e);
        free(p->values[key]);
        p->values[key] = NULL;
    }
    return got;
}

ls_status ls_space_grid(ls_space *s, ls_error *e) {
    ls_space_point p = {0};
    s->rules.trials = 0;
    return expand(s, 0, &p, e);
}
