/* shard_copy.h - the copy of the shards on a host that joins (sync.copies 2).
 *
 * It gets the state of the servers' host, and applies each gradient that was applied there, to the
 * same versions: so its bits are the same (mirror.h). If that host is lost, this one has the state
 * after all steps that are logged; if a step before these is missing, since no worker had completed
 * it, this host computes the step itself.
 */
#ifndef LS_ASYNC_SHARD_COPY_H
#define LS_ASYNC_SHARD_COPY_H

#include "async/beats.h"
#include "async/gradient.h"
#include "async/mirror.h"

typedef struct ls_shard_copy {
    const ls_config *config;
    const ls_plan *plan;
    int64_t steps; /* complete, and on disk; -1: it has no state */
    int nshards;
    ls_mirror_message *list; /* [n] later steps, in the order in which they came */
    size_t n, room;
    ls_async_parameters parameters;
    ls_async_shard shards[LS_ASYNC_SHARDS];
    atomic_uint *mark;
    ls_compute compute;
    void *rooms; /* for updates */
    /* The batch that comes: */
    ls_mirror_message *batch; /* [nroom] */
    void **grads;             /* [nroom] */
    int nroom;
} ls_shard_copy;

/* What it names must outlive it; it lasts until the process ends. */
ls_status ls_shard_copy_open(ls_shard_copy *, const ls_config *, const ls_plan *, ls_world *,
                             ls_error *);

/* Receives the state and gradients until the run is over (LS_OK), or the connection is lost. */
ls_status ls_shard_copy_serve(ls_shard_copy *, ls_conn *, double silence_s, ls_beats *, ls_error *);

/* Computes the steps that are missing before the last one. Then ls_shard_copy_steps() are complete,
 * and no others. */
ls_status ls_shard_copy_fill(ls_shard_copy *, ls_async_gradient *, ls_error *);
int64_t ls_shard_copy_steps(const ls_shard_copy *);
/* The message of a step from copy->steps on; NULL: there is none. */
const ls_mirror_message *ls_shard_copy_find(const ls_shard_copy *, int64_t step);
/* Writes RUN/applications.jsonl from copy->steps on. */
ls_status ls_shard_copy_log(const ls_shard_copy *, const char *run, ls_error *);
/* The learning rate of a step, by its first shard. */
double ls_shard_copy_rate(const ls_shard_copy *, const ls_mirror_message *);

#endif
