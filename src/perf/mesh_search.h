/* mesh_search.h - which mesh of workers trains a config fastest (parallel.mesh: auto).
 *
 * All meshes that n workers can form are listed, with the settings that go with them; none of these
 * changes the bits. train.batch and train.virtual_workers, which do, stay as they are. A mesh is
 * dropped if a lower bound of its memory is over the limit, or if too much of a step is bubble. The
 * others are ranked by an estimate: computing / (1 - bubble) + communication. The best are tried
 * (mesh_trial.h): a part of a step is planned and simulated. The best of these are tried with other
 * values of zero and micro_batch. The first meshes of this list are planned as a whole, checked
 * against the limit, and ranked by the simulated step.
 */
#ifndef LS_PERF_MESH_SEARCH_H
#define LS_PERF_MESH_SEARCH_H

#include "perf/forecast.h"
#include "share/config.h"

/* A mesh, and values for parallel.schedule, chunks, zero, recompute and train.micro_batch. */
typedef struct ls_mesh {
    int64_t pipe, tensor, context, expert, data; /* degrees; their product: all workers */
    ls_pipe_kind schedule;
    int64_t stages_each; /* parallel.chunks */
    int64_t zero, recompute, micro_batch;
    /* Estimated (bound.h): */
    double least_s;      /* of a step */
    size_t least_nbytes; /* of memory */
    /* Simulated: first for a part of a step (mesh_trial.h), then for the whole plan: */
    double step_s;
    double bubble;    /* see ls_pipe_bubble() */
    double compute_s; /* of the worker that ends last; exposed_s: the rest of its step */
    double exposed_s;
    double received;      /* bytes that a worker reads from others, of the one that reads most */
    size_t memory_nbytes; /* of the worker that needs most */
} ls_mesh;

/* Workers that divide what one worker of a pipeline computes for a micro-batch. */
static inline int64_t ls_mesh_beside(const ls_mesh *m) {
    return m->tensor * m->context * m->expert;
}

enum { LS_MESH_BEST = 10 };
static const double LS_MESH_MOST_BUBBLE = 0.3;

typedef struct ls_mesh_choice {
    ls_mesh best[LS_MESH_BEST]; /* [n] the fastest first */
    int n;
    /* Numbers of meshes: listed; of these, over the memory limit, with too large a bubble, refused
     * by the config's other settings; simulated; and planned whole, as all of `best` are, or none
     * where a step is too large for that. */
    int listed, over, idle, refused, simulated, whole;
} ls_mesh_choice;

/* limit: bytes of memory that a worker may need; 0: any. LS_EINVAL: n workers form no mesh for this
 * config, or LS_ENOMEM: none is within the limit; the message has the nearest that is. */
ls_status ls_mesh_choose(const ls_config *, int n, size_t limit, const ls_forecast_world *,
                         ls_mesh_choice *choice_p, ls_error *);

/* All meshes of n workers; the caller frees *list_p. most_stages: into how many the model can be
 * cut. */
void ls_mesh_list(const ls_config *, int n, int most_stages, ls_mesh **list_p, int *n_p);
/* By degrees; and by degrees, the schedule and the stages of a worker. */
int ls_mesh_by_degrees(const ls_mesh *, const ls_mesh *);
int ls_mesh_by_shape(const ls_mesh *, const ls_mesh *);
/* Sets the config's keys. */
void ls_mesh_set(ls_config *, const ls_mesh *);
/* Appends the values as --set takes them; of context and expert a degree of 1 that the config has,
 * too, is left out. */
void ls_mesh_text(const ls_config *, const ls_mesh *, ls_buf *out);

/* Decides parallel.mesh: auto, within parallel.memory_limit_mb, and logs why; each worker of a
 * typical machine (typical.h) has a core. distributed: workers have no common memory. */
ls_status ls_mesh_auto(ls_config *, int n, bool distributed, ls_error *);

#endif
