/* clocked.h - a worker of a run with bounded staleness: takes a gradient that is to be computed,
 * copies the parameters that it needs, and computes it (clocks.h).
 *
 * What a worker needs is here before it is forked, and does not change. The parameters, their older
 * versions, the gradients and the clocks are in memory that all processes share.
 */
#ifndef LS_ASYNC_CLOCKED_H
#define LS_ASYNC_CLOCKED_H

#include "async/clocks.h"
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
    int threads;          /* that a worker has */
    unsigned char *grads; /* [cells][grads_nbytes] */
    unsigned char *parts; /* [cells][parts_nbytes] norms and losses */
    size_t grads_nbytes, parts_nbytes;
    ls_board *errors; /* why a worker failed */
    ls_patience patience;
} ls_clocked_crew;

void *ls_clocked_grads(const ls_clocked_crew *, int cell);
double *ls_clocked_parts(const ls_clocked_crew *, int cell);
/* The parameters of an earlier version [nfloats], in f32. */
float *ls_clocked_older(const ls_clocked_crew *, int64_t version);

/* For a nursery: computes gradients until the process ends. */
ls_status ls_clocked_work(const void *crew, int worker, ls_error *);
/* Gradients that are complete. */
long long ls_clocked_progress(const void *crew);

#endif
