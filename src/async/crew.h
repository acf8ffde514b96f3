/* crew.h - the processes of an asynchronous run, and what they inherit from the process that starts
 * them.
 *
 *     coordinator    the process that runs the training loop: gives batches out, logs, saves
 *       nursery      starts the others, and starts another in place of one that was killed
 *         workers    compute gradients; with sync.servers 0 each also serves a shard
 *         servers    sync.servers of them
 *         gate       with --listen: plays the workers of other hosts (gate.h)
 *
 * The struct has all that a child needs before the child is forked, and does not change. The
 * parameters, the states, the gradients and the board are in memory that all of them share.
 */
#ifndef LS_ASYNC_CREW_H
#define LS_ASYNC_CREW_H

#include "async/gate.h"
#include "async/gradient_board.h"
#include "async/nursery.h"
#include "net/local/board.h"

typedef struct ls_async_crew {
    ls_async_board *board;
    ls_async_parameters parameters;
    const ls_plan *plan; /* of one worker */
    ls_async_prepare *prepare;
    void *prepare_arg;
    ls_loader_config loader;
    int threads; /* that a worker has */
    bool binds;  /* them to cores */
    double clip;
    unsigned char *grads; /* [nworkers][grads_nbytes] */
    size_t grads_nbytes;
    int nservers;       /* processes; 0: the first workers serve */
    double heartbeat_s; /* a process that is stopped for longer is replaced */
    ls_gate gate;       /* for workers of other hosts */
    ls_board *errors;   /* why a worker or server failed */
    ls_patience patience;
} ls_async_crew;

/* Where the worker computes gradients, and where in it the gradient of the whole batch is. */
void *ls_async_grads(const ls_async_crew *, int worker);
void *ls_async_gradient_of(const ls_async_crew *, int worker);

/* For a nursery: what the process of a role does (workers of this host, servers, the gate), and how
 * many gradients were pushed. */
ls_status ls_async_run_role(const void *crew, int role, ls_error *);
long long ls_async_pushed(const void *crew);

/* Records why this process ends. */
void ls_async_fail(const ls_async_crew *, const ls_error *);

/* ---- server.c ---- */

/* Serves a shard until the process ends. */
ls_status ls_async_serve(const ls_async_crew *, int shard, ls_error *);
/* Serves a shard in a thread. */
ls_status ls_async_serve_beside(const ls_async_crew *, int shard, ls_error *);

/* ---- worker.c ---- */

/* A worker pulls all shards into params [nfloats]; and it pushes, when the gradient and the result
 * are in their places. */
void ls_async_pull_all(const ls_async_crew *, int worker, void *params);
void ls_async_push_all(const ls_async_crew *, int worker);
/* Computes gradients until the process ends. */
ls_status ls_async_work(const ls_async_crew *, int worker, ls_error *);

#endif
