/* nursery.h - the process that starts workers and servers, and starts another in place of one that
 * is killed: it finds in shared memory what is to be done (gradient_board.h, clocks.h), and nothing
 * is lost.
 */
#ifndef LS_ASYNC_NURSERY_H
#define LS_ASYNC_NURSERY_H

#include "exec/exec.h"
#include "net/launch/child.h"
#include "net/local/board.h"

/* Called in a worker once it has an executor and a first batch: prepares what did not exist when
 * the worker was forked. *values_p: the frozen values [nparams], valid as long as the worker lives;
 * NULL: there are none. */
typedef ls_status ls_async_prepare(void *arg, ls_exec *, const ls_frozen_value **values_p,
                                   ls_error *);

/* A run whose workers have no common step: sync.mode async (async.h) or ssp (bounded.h). */
typedef struct ls_async_config {
    const char *run; /* the directory */
    const ls_config *config;
    const ls_plan *plan;   /* of one worker */
    const ls_world *world; /* with the state, in shared memory (state/store.h) */
    ls_async_prepare *prepare;
    void *prepare_arg;
    ls_loader_config loader;
    int nworkers;         /* of this host */
    const char *listen;   /* the address for workers of other hosts; NULL: there are none */
    const char *settings; /* lines that must be the same on these hosts */
    int64_t steps;        /* async: complete */
} ls_async_config;

/* The processes of a nursery: `nworkers` workers, and others after them. */
typedef struct ls_nursery_roles {
    int n, nworkers, nservers;
    /* What the process of a role does; it returns after an error only. */
    ls_status (*run)(const void *crew, int role, ls_error *);
    /* Grows while the run makes progress. */
    long long (*progress)(const void *crew);
    const void *crew;
    ls_board *errors;   /* why a process failed */
    ls_bell *bell;      /* rung then */
    double heartbeat_s; /* a process that is stopped for longer is replaced */
} ls_nursery_roles;

typedef struct ls_nursery {
    ls_child child;
} ls_nursery;

/* What the roles name must outlive it. Call it while this process has few threads: they are lost in
 * the child. */
ls_status ls_nursery_open(ls_nursery *, const ls_nursery_roles *, ls_error *);
/* LS_EPEER: the nursery was killed, and with it all workers. */
ls_status ls_nursery_check(ls_nursery *, ls_error *);
/* Ends all workers and servers. */
void ls_nursery_close(ls_nursery *);

#endif
