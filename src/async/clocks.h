/* clocks.h - bounded staleness (sync.mode: ssp): the memory that its processes share, and which
 * worker computes which gradient.
 *
 * Clock c is step c, counted from 0. It needs the gradient of each virtual worker v at an earlier
 * version of the parameters: version c - s(v, c), where version n is that after n steps. s is the
 * staleness, or is drawn for each gradient from 0 to the staleness. A gradient of a version below 0
 * is computed at version 0. So a gradient is a function of the config, not of the worker that
 * computes it or of the time; only the duration of a run depends on these.
 *
 * A cell holds one gradient. There are V cells for each of staleness + 1 clocks, and clock c reuses
 * the cells of clock c - staleness - 1: a worker that can begin clock c has seen that step
 * complete. A worker claims a cell by one atomic store, so the successor of a worker that was
 * killed finds which gradient is to be computed. The main process makes the steps, in order
 * (bounded.h).
 *
 * After: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
 * server", NIPS 2013, where a read may include newer updates, and so depends on timing.
 */
#ifndef LS_ASYNC_CLOCKS_H
#define LS_ASYNC_CLOCKS_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"
#include "net/local/bell.h"

/* A gradient to compute: at which version of the parameters, and for the samples of which virtual
 * worker in which clock. */
typedef struct ls_clock_task {
    int64_t clock, version;
    int vw, cell;
} ls_clock_task;

typedef struct ls_clock_cell {
    atomic_ullong claim;    /* 1 + gradient's number, in the lower 16 bits 1 + its worker */
    atomic_ullong complete; /* 1 + number of the gradient that is here */
} ls_clock_cell;

typedef struct ls_clock_worker {
    ls_bell bell;
    atomic_int present;     /* of another host: somebody has this place (gate.h) */
    atomic_int reads;       /* it copies the newest parameters */
    atomic_llong ncomplete; /* gradients */
} ls_clock_worker;

typedef struct ls_clocks {
    /* set before the processes are forked: */
    int nlocal, nworkers; /* of this host; with places for workers of others, which follow */
    int V;
    int64_t staleness, until; /* the last clock + 1 */
    bool drawn;
    uint64_t seed;
    size_t nbytes;
    ls_clock_worker *workers; /* [nworkers] } in the same memory */
    ls_clock_cell *cells;     /* [(staleness + 1) * V] } */
    /* changed: */
    atomic_llong version;      /* of the newest parameters; -1: there are none yet */
    atomic_int changing;       /* they are being changed */
    atomic_int over;           /* the run is */
    _Alignas(64) ls_bell bell; /* the main process's */
} ls_clocks;

typedef struct ls_clocks_config {
    int nlocal, nguests, V;
    int64_t staleness, until;
    bool drawn; /* by the seed, from 0 to staleness */
    uint64_t seed;
} ls_clocks_config;

ls_status ls_clocks_open(const ls_clocks_config *, ls_clocks **c_p, ls_error *);
void ls_clocks_close(ls_clocks *); /* NULL is fine */

/* The version of the parameters at which virtual worker vw computes its gradient. */
int64_t ls_clocks_version_of(const ls_clocks *, int64_t clock, int vw);

/* ---- workers ---- */

/* A worker takes the place of one that has ended: parameters that the old one was reading may
 * change again. */
void ls_clocks_succeed(ls_clocks *, int worker);
/* Claims a gradient: the one that this worker, or its predecessor in this place, has begun; else
 * the first one that no worker has begun and whose parameters are there. False: there is none. */
bool ls_clocks_claim(ls_clocks *, int worker, ls_clock_task *t_p);
/* May ls_clocks_claim() find something? */
bool ls_clocks_has_task(const ls_clocks *, int worker);
/* The task's gradient is in its cell. */
void ls_clocks_complete(ls_clocks *, int worker, const ls_clock_task *);

/* Between these two calls the newest parameters do not change. False: they are no longer of this
 * version, and no reading has begun. */
bool ls_clocks_begin_read(ls_clocks *, int worker, int64_t version);
void ls_clocks_end_read(ls_clocks *, int worker);

/* Takes a free place for a worker of another host. False: there is none. */
bool ls_clocks_enter(ls_clocks *, int *worker_p);
/* The worker of another host has gone, or its place was never taken: gradients that it had begun
 * can be claimed by others. */
void ls_clocks_leave(ls_clocks *, int worker);

/* ---- the main process ---- */

/* The cell of a gradient that is complete; -1: it is not. */
int ls_clocks_find(const ls_clocks *, int64_t clock, int vw);
/* Between these two calls the newest parameters change to those of `version`. Waits until no worker
 * reads them; are_lost: can no worker end its read any more? */
void ls_clocks_begin_change(ls_clocks *, bool (*are_lost)(void *arg), void *arg);
void ls_clocks_end_change(ls_clocks *, int64_t version);

#endif
