/* apart.c - see apart.h. */
#include "exec/apart.h"

#include <math.h>
#include <string.h>

#include "exec/exec_state.h"
#include "exec/round.h"
#include "exec/store_blocks.h"
#include "plan/memory.h"

size_t ls_apart_row(const ls_plan *p) {
    return p->c.islands ? ls_plan_nscalars(p) - ls_plan_floats(p) / LS_BLOCK - 1 : 0;
}

size_t ls_apart_rows_nbytes(const ls_plan *p) {
    return LS_APART_MOST * ls_apart_row(p) * sizeof(_Atomic double);
}

size_t ls_apart_marks_nbytes(const ls_plan *p) {
    return p->c.islands ? LS_APART_MOST * LS_PLAN_MAX_ISLANDS * sizeof(atomic_llong) : 0;
}

ls_status ls_apart_open(ls_world *w, const ls_plan *p, ls_error *e) {
    void *rows = NULL, *marks = NULL;
    if (!p->c.islands) return LS_OK;
    LS_TRY(ls_map(ls_apart_rows_nbytes(p), "losses of steps apart", &rows, e));
    w->apart_rows = rows;
    LS_TRY(ls_map(ls_apart_marks_nbytes(p), "losses of steps apart", &marks, e));
    w->apart_marks = marks;
    return LS_OK;
}

void ls_apart_close(ls_world *w, const ls_plan *p) {
    if (w->apart_rows) ls_unmap(w->apart_rows, ls_apart_rows_nbytes(p));
    if (w->apart_marks) ls_unmap(w->apart_marks, ls_apart_marks_nbytes(p));
}

/* ---- notes ---- */

static _Atomic double *row_of(const ls_world *w, const ls_plan *p, int64_t step) {
    return w->apart_rows + (size_t)(step % LS_APART_MOST) * ls_apart_row(p);
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
static bool range_of(const ls_plan *p, int island, uint64_t count, size_t k, ls_bucket *r_p) {
    int vws = ls_plan_island_vws(p), at = (island - 1) * vws;
    size_t batch = (size_t)p->c.batch, islands = (size_t)p->c.islands;
    uint64_t first = 0, end = 0;
    *r_p = (ls_bucket){.first = (size_t)island - 1, .end = (size_t)island};
    if (k == 0) return true;
    if (k > (ls_apart_row(p) - islands) / batch) return false;
    ls_batch_share(count, p->c.V, at, at + vws, &first, &end);
    r_p->first = islands + (k - 1) * batch + first;
    r_p->end = islands + (k - 1) * batch + end;
    return true;
}

/* What is not finite becomes infinite, which survives LS_MAX. All workers of an island write the same
 * numbers. */
static void write_row(const ls_plan *p, int island, uint64_t count, const double *from,
                      _Atomic double *row) {
    ls_bucket r;
    for (size_t k = 0; range_of(p, island, count, k, &r); k++)
        for (size_t i = r.first; i < r.end; i++)
            atomic_store_explicit(&row[i], isfinite(from[i]) ? from[i] : INFINITY,
                                  memory_order_relaxed);
}

static void read_row(const ls_plan *p, int island, uint64_t count, const _Atomic double *row,
                     double *to) {
    ls_bucket r;
    for (size_t k = 0; range_of(p, island, count, k, &r); k++)
        for (size_t i = r.first; i < r.end; i++)
            to[i] = atomic_load_explicit(&row[i], memory_order_relaxed);
}

bool ls_exec_note_apart(ls_exec *x) {
    const ls_plan *p = x->c.plan;
    const ls_world *w = x->c.world;
    int first = 0, end = 0;
    bool some = false;
    ls_plan_islands_of(p, x->c.worker, &first, &end);
    for (int i = first; i < end; i++) {
        if (w->ahead[i - 1] >= ls_exec_changes(x)) continue;
        some = true;
        write_row(p, i, x->batch.count, ls_plan_squares(p, w->sums), row_of(w, p, x->in->step));
        atomic_store(mark_of(w, x->in->step, i), x->in->step + 1);
    }
    return some;
}

/* What the host has; of the rest, what is less than anything. */
static void own_notes(const ls_world *w, const ls_plan *p, int64_t step, uint64_t count,
                      double *to) {
    for (size_t i = 0; i < ls_apart_row(p); i++) to[i] = -INFINITY;
    for (int island = 1; island <= p->c.islands; island++)
        if (has_note(w, step, island)) read_row(p, island, count, row_of(w, p, step), to);
}

ls_status ls_apart_join(const ls_world *w, const ls_plan *p, const ls_apart_notes *x, ls_error *e) {
    size_t each = ls_apart_row(p);
    for (int i = 0; i < x->n; i++)
        own_notes(w, p, x->first + i, x->counts[i], x->rows + (size_t)i * each);
    return ls_all_reduce(w->group, x->rows, x->rows, (size_t)x->n * each, LS_F64, LS_MAX, e);
}

/* ---- islands that are ahead ---- */

/* Training steps that an island has had with its changes: it may lack the round after the last. */
static int64_t trained(const ls_plan *p, int64_t changes) {
    return (changes + 1) / ls_plan_changes(p);
}

static ls_status check_notes(ls_world *w, const ls_plan *p, int64_t from, ls_error *e) {
    int each = ls_plan_changes(p);
    int32_t has[LS_PLAN_MAX_ISLANDS];
    for (int i = 1; i <= p->c.islands; i++) {
        has[i - 1] = 1;
        for (int64_t step = from / each; step < trained(p, w->ahead[i - 1]); step++)
            has[i - 1] = has[i - 1] && has_note(w, step, i);
    }
    LS_TRY(ls_all_reduce(w->group, has, has, (size_t)p->c.islands, LS_I32, LS_MAX, e));
    for (int i = 0; i < p->c.islands; i++) {
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
ls_status ls_apart_agree(ls_world *w, const ls_plan *p, int64_t last, ls_error *e) {
    int64_t steps = ls_store_steps(w->store);
    if (!p->c.islands) return LS_OK;
    for (int i = 0; i < p->c.islands; i++) w->ahead[i] = steps;
    if (steps % ls_plan_changes(p) == 0) ls_store_find_ahead(w->store, p, last, w->ahead);
    LS_TRY(ls_all_reduce(w->group, w->ahead, w->ahead, (size_t)p->c.islands, LS_I64, LS_MAX, e));
    ls_store_set_ahead(w->store, p, w->ahead);
    return check_notes(w, p, steps, e);
}

int64_t ls_apart_most_ahead(const ls_world *w, const ls_plan *p, int64_t steps) {
    int64_t most = steps;
    for (int i = 0; i < p->c.islands; i++)
        if (trained(p, w->ahead[i]) > most) most = trained(p, w->ahead[i]);
    return most - steps;
}

/* ---- which actions run ---- */

/* The island that an action is for; 0: all, or none. */
static int island_of(const ls_plan *p, const ls_action *a) {
    switch (a->kind) {
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD:
    case LS_SQUARES:
    case LS_ENCODE: return ls_plan_island_of(p, a->vw);
    case LS_ALL_REDUCE:
        if (a->bucket == LS_SCALARS) return a->axis == LS_AXIS_ISLAND ? a->island : 0;
        return p->buckets[a->bucket].island;
    case LS_ADD:
    case LS_REDUCE_SCATTER:
    case LS_SEND:
    case LS_MIX:
    case LS_UPDATE:
    case LS_ALL_GATHER: return p->buckets[a->bucket].island;
    default: return 0;
    }
}

bool ls_exec_runs(const ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    if (!ls_plan_runs(p, a, x->in->step)) return false;
    bool mixes = p->c.task == LS_TASK_MIX;
    if (!p->c.islands || (p->c.task != LS_TASK_TRAIN && !mixes)) return true;
    if (mixes && a->bucket == LS_SCALARS)
        return ls_round_islands(x->c.world, p, x->c.worker, ls_exec_changes(x)) != 0;
    int island = island_of(p, a);
    return !island || x->c.world->ahead[island - 1] < ls_exec_changes(x);
}
