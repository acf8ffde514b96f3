/* errors.c - see errors.h. */
#include "exec/errors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "plan/memory.h"

ls_status ls_errors_map(const ls_plan *p, float **errors_p, ls_error *e) {
    size_t nbytes = ls_plan_errors_nbytes(p);
    void *m = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for compression errors, %.1f MB: %s",
                       (double)nbytes / 1e6, strerror(errno));
    *errors_p = m;
    return LS_OK;
}

void ls_errors_unmap(const ls_plan *p, float *errors) { munmap(errors, ls_plan_errors_nbytes(p)); }

ls_status ls_errors_collect(ls_group *g, const ls_plan *p, int64_t steps, float *errors,
                            ls_error *e) {
    int rank = ls_group_rank(g);
    size_t n = ls_plan_error_floats(p);
    for (int worker = 1; worker < p->c.nworkers; worker++)
        for (int i = 0; i < ls_plan_nvws(p, worker); i++) {
            float *x = ls_errors_of(errors, p, steps, ls_plan_vw(p, worker, i));
            if (rank == worker) LS_TRY(ls_send(g, x, n, LS_F32, 0, e));
            if (rank == 0) LS_TRY(ls_recv(g, x, n, LS_F32, worker, e));
        }
    return LS_OK;
}

void ls_errors_drop(const ls_plan *p, int worker, float *errors) {
    size_t nbytes = ls_plan_error_floats(p) * sizeof *errors;
    for (int half = 0; half < 2; half++)
        for (int vw = 0; vw < p->c.V; vw++)
            if (!ls_plan_runs_vw(p, worker, vw))
                madvise(ls_errors_of(errors, p, half, vw), nbytes, MADV_DONTNEED);
}

/* ---- which are complete ---- */

static atomic_uint *mark_of(ls_store *s, const ls_plan *p, int64_t steps, int vw) {
    return ls_store_error_marks(s) + (steps % 2) * p->c.V + vw;
}

void ls_errors_mark(const ls_world *w, const ls_plan *p, int64_t steps, int vw, bool good) {
    if (!w->store) return;
    atomic_store(mark_of(w->store, p, steps, vw), good ? ls_store_mark(steps) : 0);
}

void ls_errors_mark_own(const ls_world *w, const ls_plan *p, int64_t steps) {
    int worker = ls_group_rank(w->group);
    for (int i = 0; ls_plan_has_errors(p) && i < ls_plan_nvws(p, worker); i++)
        ls_errors_mark(w, p, steps, ls_plan_vw(p, worker, i), true);
}

bool ls_errors_are_in(ls_store *s, const ls_plan *p, int64_t steps, int vw) {
    return steps <= p->c.compress.warmup ||
           atomic_load(mark_of(s, p, steps, vw)) == ls_store_mark(steps);
}

/* ---- errors from other hosts ---- */

/* For each worker and virtual worker. */
enum { LACKS = 1, HAS = 2 };
enum { MOST = 1 << 20 }; /* floats of a message */

static ls_status lost(const ls_world *w, int vw, ls_error *e) {
    ls_store_set_finding(w->store, LS_STORE_LOST);
    return ls_fail(e, LS_EPEER,
                   "the state in memory after step %lld is incomplete: no remaining host has the "
                   "compression errors of virtual worker %d",
                   (long long)ls_store_steps(w->store), vw);
}

/* Sends the errors of one virtual worker from `source` to the worker that runs it. */
static ls_status move(const ls_world *w, const ls_plan *p, int vw, int source, ls_error *e) {
    int64_t steps = ls_store_steps(w->store);
    size_t count = ls_plan_error_floats(p);
    float *errors = ls_errors_of(w->errors, p, steps, vw), *part = LS_NEW_ARRAY(float, MOST);
    bool sends = ls_group_rank(w->group) == source;
    bool takes = ls_plan_runs_vw(p, ls_group_rank(w->group), vw);
    ls_status s = LS_OK;
    for (size_t at = 0; s == LS_OK && at < count; at += MOST) {
        size_t left = count - at, n = left < MOST ? left : MOST;
        if (sends) memcpy(part, errors + at, n * sizeof *part);
        s = ls_broadcast(w->group, part, n, LS_F32, source, e);
        if (s == LS_OK && takes) memcpy(errors + at, part, n * sizeof *part);
    }
    if (s == LS_OK && takes) ls_errors_mark(w, p, steps, vw, true);
    free(part);
    return s;
}

/* all [workers][V] */
static ls_status move_all(const ls_world *w, const ls_plan *p, const unsigned char *all,
                          ls_error *e) {
    for (int v = 0; v < p->c.V; v++) {
        int source = -1;
        bool lacked = false;
        for (int r = p->c.nworkers - 1; r >= 0; r--) {
            lacked = lacked || (all[r * p->c.V + v] & LACKS);
            if (all[r * p->c.V + v] & HAS) source = r;
        }
        if (lacked && source < 0) return lost(w, v, e);
        if (lacked) LS_TRY(move(w, p, v, source, e));
    }
    return LS_OK;
}

ls_status ls_errors_adopt(const ls_world *w, const ls_plan *p, ls_error *e) {
    size_t V = (size_t)p->c.V;
    int rank = ls_group_rank(w->group);
    int64_t steps = ls_store_steps(w->store);
    if (!ls_plan_has_errors(p)) return LS_OK;
    unsigned char *own = ls_alloc(V), *all = ls_alloc(V * (size_t)p->c.nworkers);
    for (int v = 0; v < p->c.V; v++) {
        bool has = ls_errors_are_in(w->store, p, steps, v);
        own[v] = has ? HAS : ls_plan_runs_vw(p, rank, v) ? LACKS : 0;
    }
    ls_status s = ls_all_gather(w->group, own, all, V, LS_U8, e);
    if (s == LS_OK) s = move_all(w, p, all, e);
    free(own);
    free(all);
    return s;
}
