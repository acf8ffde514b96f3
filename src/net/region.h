/* region.h - memory that all workers of a host share, and what they say to each other in it.
 *
 * A region is created before the workers are started, at one address for all. It begins with a
 * header (who failed, who is where, signals) and goes on with an arena from which buffers are taken
 * at set-up. Processes share a memfd: it has no name, so nothing is left behind however they end;
 * threads share plain pages.
 *
 * Failing: the first worker to fail writes its error and raises `aborted`; from then on every wait
 * of any worker returns LS_EABORT within 20 ms.
 */
#ifndef LS_NET_REGION_H
#define LS_NET_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/signal.h"

/* What one worker tells the others and the supervisor. Alone on its cache lines. */
typedef struct ls_worker_slot {
    _Alignas(128) atomic_int pid;
    atomic_int action; /* index into the plan of the action that it is in; -1 outside a step */
    atomic_llong step;
    ls_signal arrived; /* collectives that this worker has come to */
} ls_worker_slot;

typedef struct ls_region_header {
    int nworkers;
    atomic_int failed;  /* 0, 1 while the error is written, 2 when it can be read */
    atomic_int aborted; /* waits end */
    int failed_worker;  /* -1: the supervisor */
    ls_error error;
    atomic_int stop;          /* asked to stop after the step in flight */
    atomic_int stopping;      /* worker 0 saw `stop` before a barrier; all read it after */
    ls_worker_slot workers[]; /* [nworkers] */
} ls_region_header;

typedef struct ls_region {
    ls_region_header *header; /* at the beginning of the mapping */
    size_t nbytes;            /* of the mapping */
    size_t used;
    int fd; /* of the memfd, or -1 */
} ls_region;

/* `shared`: a memfd that forked workers share; else pages for threads. arena_nbytes: what
 * ls_region_take() can give, at least. */
ls_status ls_region_create(int nworkers, size_t arena_nbytes, bool shared, ls_region *r_p,
                           ls_error *);
void ls_region_close(ls_region *);

/* Zeroed, page-aligned memory. Set-up only, before workers start; our own bug if the arena is full.
 */
void *ls_region_take(ls_region *, size_t nbytes);
/* What ls_region_take() uses up for nbytes. */
size_t ls_region_cost(size_t nbytes);

/* The first error is kept; any worker, any time. worker -1: the supervisor. */
void ls_region_fail(ls_region *, int worker, const ls_error *);
/* The first error, if any: fills in *e and *worker_p. */
bool ls_region_failed(const ls_region *, int *worker_p, ls_error *e);

#endif
