/* spawn.h - how workers come to be and share memory on one host.
 *
 * shm: each worker is a process, forked by the supervisor; thread: each is a thread of it. The
 * supervisor never computes: it starts the workers, passes on an interrupt, notices a death at once
 * and ends the others.
 */
#ifndef LS_NET_SPAWN_H
#define LS_NET_SPAWN_H

#include "net/cores.h"
#include "net/region.h"

/* A worker's life. Returns LS_OK, or an error that ends all workers. */
typedef ls_status ls_worker_main(int worker, void *arg, ls_error *);

/* What the supervisor says of a dead worker, e.g. "in action 17, Backward h.2.mlp": appended to the
 * message; `text` has `nbytes`. May be NULL. */
typedef void ls_worker_where(int worker, void *arg, char *text, size_t nbytes);

typedef struct ls_launch {
    int nworkers;
    ls_worker_main *main;
    ls_worker_where *where;
    void *arg;
    ls_region *region;
} ls_launch;

typedef struct ls_spawn {
    const char *name;
    bool shared; /* the region must be a memfd */
    /* Runs the workers to their end. SIGINT, SIGTERM and SIGHUP raise header->stop; a second one
     * ends all at once. Returns the first error: a worker's own, or that it was killed. */
    ls_status (*run)(const ls_launch *, ls_error *);
} ls_spawn;

extern const ls_spawn ls_spawn_processes;
extern const ls_spawn ls_spawn_threads;

#endif
