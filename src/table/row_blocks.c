/* row_blocks.c - blocks of tables move to the workers to which they belong: see row_inside.h.
 *
 * When a view begins, some hosts may have come, or have been left behind, and the number of workers
 * may be another. All workers learn from each other which blocks each memory has, and after which
 * steps, and derive the same moves from that.
 *
 * Which blocks can be used after S steps?
 *  (1) Some memory has the marks (S, S): then the last step's rows are complete wherever workers
 *      took part in that, since the mark is set after all have written. These are memories with (S,
 *      S), and those with (S - 1, S) that were in the same view.
 *  (2) None has: then memories with (S - 1, S - 1) and (S - 1, S) can be used, since the rows of
 *      the last step are still in the windows, and are written again.
 * A block that can't be used, or that no memory has, has been lost. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "table/row_inside.h"

/* What workers send each other about their memories. */
typedef struct memory {
    int64_t steps, begun, view;
} memory;

typedef struct settling {
    memory *memories;   /* [workers] */
    unsigned char *all; /* [workers][nblocks] usable blocks */
    size_t nblocks;
    bool again;
} settling;

static const ls_model *model_of(const ls_step_rows *r) { return r->plan->share.model; }

static bool is_first(const ls_step_rows *r) { return r->memory_of[r->worker] == r->worker; }

/* The view of the memories that are complete after `steps`; -1: there is none. */
static int64_t complete_view(const settling *s, int n, int64_t steps) {
    int64_t view = -1;
    for (int i = 0; i < n; i++) {
        const memory *m = &s->memories[i];
        if (m->steps == steps && m->begun == steps && m->view > view) view = m->view;
    }
    return view;
}

static bool is_usable(const memory *m, int64_t steps, int64_t complete) {
    bool writes = m->steps == steps - 1 && m->begun == steps;
    if (m->steps < 0) return false; /* its rows were not complete yet */
    if (complete >= 0)
        return (m->steps == steps && m->begun == steps) || (writes && m->view == complete);
    return writes || (m->steps == steps - 1 && m->begun == steps - 1);
}

static ls_status learn(ls_step_rows *r, int64_t steps, settling *s, ls_error *e) {
    int n = r->nworkers;
    memory own = {atomic_load(&r->t.marks->steps), atomic_load(&r->t.marks->begun),
                  atomic_load(&r->t.marks->view)};
    LS_TRY(ls_all_gather(r->group, &own, s->memories, sizeof own / sizeof(int64_t), LS_I64, e));
    LS_TRY(ls_all_gather(r->group, r->t.here, s->all, s->nblocks, LS_U8, e));
    int64_t complete = complete_view(s, n, steps);
    for (int i = 0; i < n; i++)
        if (!is_usable(&s->memories[i], steps, complete))
            memset(s->all + (size_t)i * s->nblocks, 0, s->nblocks);
    s->again = complete < 0;
    return LS_OK;
}

/* The marks of all memories become the same. What can't be used is forgotten first. */
static void set_marks(ls_step_rows *r, int64_t steps, const settling *s) {
    const unsigned char *own = s->all + (size_t)r->worker * s->nblocks;
    ls_table_block b = LS_TABLE_BLOCKS;
    if (!is_first(r)) return;
    while (ls_table_block_next(model_of(r), &b))
        if (r->t.here[b.number] && !own[b.number]) ls_row_tables_drop(&r->t, r->plan, &b);
    atomic_store(&r->t.marks->begun, steps);
    atomic_store(&r->t.marks->steps, s->again ? steps - 1 : steps);
}

/* The first worker whose memory has a block; -1: there is none. */
static int source_of(const settling *s, int64_t block, int n) {
    for (int i = 0; i < n; i++)
        if (s->all[(size_t)i * s->nblocks + (size_t)block]) return i;
    return -1;
}

static ls_status fail_lost(const ls_step_rows *r, const ls_table_block *b,
                           const ls_step_rows_view *v, ls_error *e) {
    *v->lost_p = true;
    return ls_fail(
        e, LS_EPEER,
        "the tables in memory after step %lld are incomplete: no remaining host has rows "
        "%lld to %lld of %s",
        (long long)v->steps, (long long)b->first, (long long)b->end - 1,
        model_of(r)->params[b->param].name);
}

/* ---- moves ---- */

static size_t pack(ls_step_rows *r, const ls_table_block *b, float *message, bool packs) {
    size_t n = 0;
    for (int k = 0; k < ls_optim_table_buffers(&r->plan->share.optim); k++) {
        ls_optim_range x = ls_optim_table_block(&r->plan->share.optim, model_of(r), b, k);
        float *at = r->t.values + x.first;
        size_t nbytes = (x.end - x.first) * sizeof *at;
        if (message) memcpy(packs ? message + n : at, packs ? at : message + n, nbytes);
        n += x.end - x.first;
    }
    return n;
}

/* From the memory of one worker to that of another. */
static ls_status move_block(ls_step_rows *r, const ls_table_block *b, int from, int to,
                            ls_error *e) {
    int me = r->worker;
    if (me != from && me != to) return LS_OK;
    size_t n = pack(r, b, NULL, true);
    float *message = LS_NEW_ARRAY(float, n);
    ls_status s = LS_OK;
    if (me == from) {
        pack(r, b, message, true);
        s = ls_send(r->group, message, n, LS_F32, to, e);
    } else {
        s = ls_recv(r->group, message, n, LS_F32, from, e);
        if (s == LS_OK) {
            pack(r, b, message, false);
            r->t.here[b->number] = 1;
        }
    }
    free(message);
    return s;
}

static ls_status move_blocks(ls_step_rows *r, const ls_step_rows_view *v, const settling *s,
                             ls_error *e) {
    ls_table_block b = LS_TABLE_BLOCKS;
    int n = r->nworkers;
    while (ls_table_block_next(model_of(r), &b))
        if (source_of(s, b.number, n) < 0) return fail_lost(r, &b, v, e);
    b = LS_TABLE_BLOCKS;
    while (ls_table_block_next(model_of(r), &b)) {
        int home = (int)(b.number % n);
        if (!s->all[(size_t)home * s->nblocks + (size_t)b.number])
            LS_TRY(move_block(r, &b, source_of(s, b.number, n), home, e));
    }
    return LS_OK;
}

ls_status ls_row_blocks_settle(ls_step_rows *r, const ls_step_rows_view *v, bool *again_p,
                               ls_error *e) {
    settling s = {.nblocks = (size_t)ls_table_blocks(model_of(r))};
    s.memories = LS_NEW_ARRAY(memory, (size_t)r->nworkers);
    s.all = ls_alloc(s.nblocks * (size_t)r->nworkers);
    ls_status status = learn(r, v->steps, &s, e);
    if (status == LS_OK) status = ls_barrier(r->group, e); /* all have read their marks */
    if (status == LS_OK) set_marks(r, v->steps, &s);
    if (status == LS_OK) status = ls_barrier(r->group, e);
    if (status == LS_OK) status = move_blocks(r, v, &s, e);
    if (status == LS_OK) status = ls_barrier(r->group, e);
    *again_p = s.again;
    free(s.memories);
    free(s.all);
    return status;
}

/* No memory gives up a block before all have theirs, and no step begins before. */
ls_status ls_row_blocks_tidy(ls_step_rows *r, ls_error *e) {
    ls_table_block b = LS_TABLE_BLOCKS;
    LS_TRY(ls_barrier(r->group, e));
    while (is_first(r) && ls_table_block_next(model_of(r), &b)) {
        if (!r->mine[b.number] && r->t.here[b.number]) ls_row_tables_drop(&r->t, r->plan, &b);
    }
    return ls_barrier(r->group, e);
}

ls_status ls_row_blocks_collect(ls_step_rows *r, ls_error *e) {
    ls_table_block b = LS_TABLE_BLOCKS;
    while (ls_table_block_next(model_of(r), &b)) {
        int home = (int)(b.number % r->nworkers);
        if (home != 0) LS_TRY(move_block(r, &b, home, 0, e));
    }
    return LS_OK;
}
