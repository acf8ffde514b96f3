/* errors.c - see errors.h. */
#include "state/errors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

ls_status ls_errors_map(const ls_share *sh, float **errors_p, ls_error *e) {
    size_t nbytes = sh->nbytes.errors;
    void *m = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for compression errors, %.1f MB: %s",
                       (double)nbytes / 1e6, strerror(errno));
    *errors_p = m;
    return LS_OK;
}

void ls_errors_unmap(const ls_share *sh, float *errors) { munmap(errors, sh->nbytes.errors); }

ls_status ls_errors_collect(ls_group *g, const ls_share *sh, int64_t steps, float *errors,
                            ls_error *e) {
    int rank = ls_group_rank(g);
    size_t n = sh->error_floats;
    for (int worker = 1; worker < sh->nworkers; worker++)
        for (int i = 0; i < sh->workers[worker].nvws; i++) {
            float *x = ls_errors_of(errors, sh, steps, ls_share_vw(sh, worker, i));
            if (rank == worker) LS_TRY(ls_send(g, x, n, LS_F32, 0, e));
            if (rank == 0) LS_TRY(ls_recv(g, x, n, LS_F32, worker, e));
        }
    return LS_OK;
}

void ls_errors_drop(const ls_share *sh, int worker, float *errors) {
    size_t nbytes = sh->error_floats * sizeof *errors;
    for (int half = 0; half < 2; half++)
        for (int vw = 0; vw < sh->V; vw++)
            if (!ls_share_runs_vw(sh, worker, vw))
                madvise(ls_errors_of(errors, sh, half, vw), nbytes, MADV_DONTNEED);
}

/* ---- which are complete ---- */

static atomic_uint *mark_of(ls_store *s, const ls_share *sh, int64_t steps, int vw) {
    return ls_store_error_marks(s) + (steps % 2) * sh->V + vw;
}

void ls_errors_mark(const ls_world *w, const ls_share *sh, int64_t steps, int vw, bool good) {
    if (!w->store) return;
    atomic_store(mark_of(w->store, sh, steps, vw), good ? ls_store_mark(steps) : 0);
}

void ls_errors_mark_own(const ls_world *w, const ls_share *sh, int64_t steps) {
    int worker = ls_group_rank(w->group);
    for (int i = 0; sh->has_errors && i < sh->workers[worker].nvws; i++)
        ls_errors_mark(w, sh, steps, ls_share_vw(sh, worker, i), true);
}

bool ls_errors_are_in(ls_store *s, const ls_share *sh, int64_t steps, int vw) {
    return steps <= sh->compress.warmup ||
           atomic_load(mark_of(s, sh, steps, vw)) == ls_store_mark(steps);
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
static ls_status move(const ls_world *w, const ls_share *sh, int vw, int source, ls_error *e) {
    int64_t steps = ls_store_steps(w->store);
    size_t count = sh->error_floats;
    float *errors = ls_errors_of(w->errors, sh, steps, vw), *part = LS_NEW_ARRAY(float, MOST);
    bool sends = ls_group_rank(w->group) == source;
    bool takes = ls_share_runs_vw(sh, ls_group_rank(w->group), vw);
    ls_status s = LS_OK;
    for (size_t at = 0; s == LS_OK && at < count; at += MOST) {
        size_t left = count - at, n = left < MOST ? left : MOST;
        if (sends) memcpy(part, errors + at, n * sizeof *part);
        s = ls_broadcast(w->group, part, n, LS_F32, source, e);
        if (s == LS_OK && takes) memcpy(errors + at, part, n * sizeof *part);
    }
    if (s == LS_OK && takes) ls_errors_mark(w, sh, steps, vw, true);
    free(part);
    return s;
}

/* all [workers][V] */
static ls_status move_all(const ls_world *w, const ls_share *sh, const unsigned char *all,
                          ls_error *e) {
    for (int v = 0; v < sh->V; v++) {
        int source = -1;
        bool lacked = false;
        for (int r = sh->nworkers - 1; r >= 0; r--) {
            lacked = lacked || (all[r * sh->V + v] & LACKS);
            if (all[r * sh->V + v] & HAS) source = r;
        }
        if (lacked && source < 0) return lost(w, v, e);
        if (lacked) LS_TRY(move(w, sh, v, source, e));
    }
    return LS_OK;
}

ls_status ls_errors_adopt(const ls_world *w, const ls_share *sh, ls_error *e) {
    size_t V = (size_t)sh->V;
    int rank = ls_group_rank(w->group);
    int64_t steps = ls_store_steps(w->store);
    if (!sh->has_errors) return LS_OK;
    unsigned char *own = ls_alloc(V), *all = ls_alloc(V * (size_t)sh->nworkers);
    for (int v = 0; v < sh->V; v++) {
        bool has = ls_errors_are_in(w->store, sh, steps, v);
        own[v] = has ? HAS : ls_share_runs_vw(sh, rank, v) ? LACKS : 0;
    }
    ls_status s = ls_all_gather(w->group, own, all, V, LS_U8, e);
    if (s == LS_OK) s = move_all(w, sh, all, e);
    free(own);
    free(all);
    return s;
}
