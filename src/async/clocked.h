/* clocked.h - a worker of a run with bounded staleness: takes a gradient that is to be computed,
 * copies the parameters that it needs, and computes it (clocks.h).
 *
 * The struct has all that a worker needs before the worker is forked, and does not change. The
 * parameters, their older versions, the gradients and the clocks are in memory that all processes
 * share.
 */
#ifndef LS_ASYNC_CLOCKED_H
#define LS_ASYNC_CLOCKED_H

#include "async/clocks.h"
#include "async/gate.h"
#include "async/nursery.h"
#include "exec/solo.h"

typedef struct ls_clocked_crew {
    ls_clocks *clocks;
    const ls_plan *plan;   /* of the main process */
    const ls_world *world; /* and its buffers */
    ls_plan solo;          /* of one virtual worker alone (exec/solo.h) */
    ls_async_prepare *prepare;
    void *prepare_arg;
    ls_loader_config loader;
    int threads; /* that a worker has */
    bool binds;  /* them to cores */
    const ls_kernels *kernels;
    unsigned char *grads; /* [cells][grads_nbytes] */
    unsigned char *parts; /* [cells][parts_nbytes] norms and losses */
    size_t grads_nbytes, parts_nbytes;
    ls_gate gate;     /* for workers of other hosts */
    ls_board *errors; /* why a worker failed */
    ls_patience patience;
} ls_clocked_crew;

void *ls_clocked_grads(const ls_clocked_crew *, int cell);
double *ls_clocked_parts(const ls_clocked_crew *, int cell);
/* The parameters of an earlier version [nfloats], in f32. */
float *ls_clocked_older(const ls_clocked_crew *, int64_t version);

/* Copies the parameters of a version that a task needs, to `to` [nfloats] of the compute type. */
void ls_clocked_pull(const ls_clocked_crew *, int worker, int64_t version, void *to);

/* For a nursery: a worker computes gradients until the process ends; after the workers of this host
 * comes the gate. */
ls_status ls_clocked_run_role(const void *crew, int role, ls_error *);
/* Gradients that are complete. */
long long ls_clocked_progress(const void *crew);

#endif
