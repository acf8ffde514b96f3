/* apart.c - see apart.h. */
#include "state/apart.h"

#include <math.h>
#include <string.h>

#include "state/store_blocks.h"

size_t ls_apart_row(const ls_share *sh) {
    return sh->islands ? sh->nscalars - sh->floats / LS_BLOCK - 1 : 0;
}

size_t ls_apart_rows_nbytes(const ls_share *sh) {
    return LS_APART_MOST * ls_apart_row(sh) * sizeof(_Atomic double);
}

size_t ls_apart_marks_nbytes(const ls_share *sh) {
    return sh->islands ? LS_APART_MOST * LS_PLAN_MAX_ISLANDS * sizeof(atomic_llong) : 0;
}

ls_status ls_apart_open(ls_world *w, const ls_share *sh, ls_error *e) {
    void *rows = NULL, *marks = NULL;
    if (!sh->islands) return LS_OK;
    LS_TRY(ls_map(ls_apart_rows_nbytes(sh), "losses of steps apart", &rows, e));
    w->apart_rows = rows;
    LS_TRY(ls_map(ls_apart_marks_nbytes(sh), "losses of steps apart", &marks, e));
    w->apart_marks = marks;
    return LS_OK;
}

void ls_apart_close(ls_world *w, const ls_share *sh) {
    if (w->apart_rows) ls_unmap(w->apart_rows, ls_apart_rows_nbytes(sh));
    if (w->apart_marks) ls_unmap(w->apart_marks, ls_apart_marks_nbytes(sh));
}

/* ---- notes ---- */

static _Atomic double *row_of(const ls_world *w, const ls_share *sh, int64_t step) {
    return w->apart_rows + (size_t)(step % LS_APART_MOST) * ls_apart_row(sh);
}

/* 1 + the step of which the island has a note in the row. */
static atomic_llong *mark_of(const ls_world *w, int64_t step, int island) {
    return &w->apart_marks[step % LS_APART_MOST * LS_PLAN_MAX_ISLANDS + island - 1];
}

static bool has_note(const ls_world *w, int64_t step, int island) {
    return atomic_load(mark_of(w, step, island)) == step + 1;
}

/* The k-th range of a row that is the island's, in a step with `count` samples: the square of its
 * norm, then each kind of loss, and weights. False: there are no more. */
static bool range_of(const ls_share *sh, int island, uint64_t count, size_t k, ls_range *r_p) {
    int vws = sh->island_vws, at = (island - 1) * vws;
    size_t batch = (size_t)sh->batch, islands = (size_t)sh->islands;
    uint64_t first = 0, end = 0;
    *r_p = (ls_range){.first = (size_t)island - 1, .end = (size_t)island};
    if (k == 0) return true;
    if (k > (ls_apart_row(sh) - islands) / batch) return false;
    ls_batch_share(count, sh->V, at, at + vws, &first, &end);
    r_p->first = islands + (k - 1) * batch + first;
    r_p->end = islands + (k - 1) * batch + end;
    return true;
}

/* Writes the notes of an island. Values that are not finite become INFINITY, which LS_MAX keeps.
 * All workers of an island write the same numbers. */
static void write_row(const ls_share *sh, int island, uint64_t count, const double *from,
                      _Atomic double *row) {
    ls_range r;
    for (size_t k = 0; range_of(sh, island, count, k, &r); k++)
        for (size_t i = r.first; i < r.end; i++)
            atomic_store_explicit(&row[i], isfinite(from[i]) ? from[i] : INFINITY,
                                  memory_order_relaxed);
}

static void read_row(const ls_share *sh, int island, uint64_t count, const _Atomic double *row,
                     double *to) {
    ls_range r;
    for (size_t k = 0; range_of(sh, island, count, k, &r); k++)
        for (size_t i = r.first; i < r.end; i++)
            to[i] = atomic_load_explicit(&row[i], memory_order_relaxed);
}

bool ls_apart_note(const ls_world *w, const ls_share *sh, const ls_apart_step *x) {
    const ls_worker_share *own = &sh->workers[x->worker];
    bool some = false;
    for (int i = own->first_island; i < own->end_island; i++) {
        if (w->ahead[i - 1] >= x->changes) continue;
        some = true;
        write_row(sh, i, x->count, ls_share_scalars(sh, w->sums).squares, row_of(w, sh, x->step));
        atomic_store(mark_of(w, x->step, i), x->step + 1);
    }
    return some;
}

/* Fills in the notes that this host has; all other values are -INFINITY, which LS_MAX ignores. */
static void own_notes(const ls_world *w, const ls_share *sh, int64_t step, uint64_t count,
                      double *to) {
    for (size_t i = 0; i < ls_apart_row(sh); i++) to[i] = -INFINITY;
    for (int island = 1; island <= sh->islands; island++)
        if (has_note(w, step, island)) read_row(sh, island, count, row_of(w, sh, step), to);
}

ls_status ls_apart_join(const ls_world *w, const ls_share *sh, const ls_apart_notes *x,
                        ls_error *e) {
    size_t each = ls_apart_row(sh);
    for (int i = 0; i < x->n; i++)
        own_notes(w, sh, x->first + i, x->counts[i], x->rows + (size_t)i * each);
    return ls_all_reduce(w->group, x->rows, x->rows, (size_t)x->n * each, LS_F64, LS_MAX, e);
}

/* ---- islands that are ahead ---- */

/* Training steps that an island has had with its changes: it may lack the round after the last. */
static int64_t trained(const ls_share *sh, int64_t changes) { return (changes + 1) / sh->changes; }

static ls_status check_notes(ls_world *w, const ls_share *sh, int64_t from, ls_error *e) {
    int each = sh->changes;
    int32_t has[LS_PLAN_MAX_ISLANDS];
    for (int i = 1; i <= sh->islands; i++) {
        has[i - 1] = 1;
        for (int64_t step = from / each; step < trained(sh, w->ahead[i - 1]); step++)
            has[i - 1] = has[i - 1] && has_note(w, step, i);
    }
    LS_TRY(ls_all_reduce(w->group, has, has, (size_t)sh->islands, LS_I32, LS_MAX, e));
    for (int i = 0; i < sh->islands; i++) {
        if (has[i]) continue;
        ls_store_set_finding(w->store, LS_STORE_LOST);
        return ls_fail(e, LS_EPEER,
                       "the state in memory after step %lld is incomplete: no remaining host has "
                       "the losses of replica %d",
                       (long long)from / each, i);
    }
    return LS_OK;
}

/* Between a step's changes no island is ahead. */
ls_status ls_apart_agree(ls_world *w, const ls_share *sh, int64_t last, ls_error *e) {
    int64_t steps = ls_store_steps(w->store);
    if (!sh->islands) return LS_OK;
    for (int i = 0; i < sh->islands; i++) w->ahead[i] = steps;
    if (steps % sh->changes == 0) ls_store_find_ahead(w->store, sh, last, w->ahead);
    LS_TRY(ls_all_reduce(w->group, w->ahead, w->ahead, (size_t)sh->islands, LS_I64, LS_MAX, e));
    ls_store_set_ahead(w->store, sh, w->ahead);
    return check_notes(w, sh, steps, e);
}

int64_t ls_apart_most_ahead(const ls_world *w, const ls_share *sh, int64_t steps) {
    int64_t most = steps;
    for (int i = 0; i < sh->islands; i++)
        if (trained(sh, w->ahead[i]) > most) most = trained(sh, w->ahead[i]);
    return most - steps;
}
