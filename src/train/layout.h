/* layout.h - the model and the plan of a config: how the work of a step is laid out over
 * workers. */
#ifndef LS_TRAIN_LAYOUT_H
#define LS_TRAIN_LAYOUT_H

#include "config/config.h"
#include "plan/memory.h"
#include "plan/plan.h"

/* For base/waiting.h, while plans are made: workers. */
#define LS_LAYOUT_PLANNING "planning for %d workers"

typedef struct ls_layout {
    ls_model model;
    ls_plan plan; /* refers to the model: a layout is not copied */
    int *stages;  /* of a pipeline, as the config names them; NULL: it does not */
    ls_model one; /* where samples are computed together (ls_model.together): the same parameters,
                   * with layers of one sample; else {0} */
} ls_layout;

/* first [nworkers + 1]: worker w runs virtual workers [first[w], first[w + 1]); it must outlive the
 * layout. NULL: even ranges. */
ls_status ls_layout_make(const ls_config *, int nworkers, const int *first, ls_layout *l_p,
                         ls_error *);
/* Makes a layout for any number of workers up to one per virtual worker: settings that don't change
 * the bits (parallel.shard_group, accumulate, mesh) are replaced by the nearest possible ones.
 * group: the most workers that a sharding group may have; 0: all workers are one group. */
ls_status ls_layout_make_nearest(const ls_config *, int nworkers, int group, const int *first,
                                 ls_layout *l_p, ls_error *);
/* The most workers, up to n, for which there is such a layout: not all numbers above that of
 * virtual workers make a mesh. n itself where the config has no mesh, or none for n workers. */
int ls_layout_fit(const ls_config *, int n);
/* Changes the config so that each worker has the whole model: without pipelines. */
void ls_layout_config_whole(ls_config *);
/* Changes the config to that of workers without common memory: with compress.send auto they send
 * codes. */
void ls_layout_config_distributed(ls_config *);
/* Is any parameter large enough for the code of compress.kind? */
bool ls_layout_encodes(const ls_plan *);
/* Do the workers' devices sum? */
bool ls_layout_links_devices(const ls_config *);
void ls_layout_free(ls_layout *);
/* Do frozen parameters have the values of model.from's files? */
bool ls_layout_begins_published(const ls_config *);
/* The model whose layers compute one sample, for evaluations. */
const ls_model *ls_layout_evaluated(const ls_layout *);

/* Do the workers, of which `near` are on one host, share memory? */
bool ls_layout_shares_memory(const ls_config *, int nworkers, int near);
/* How the memory of a worker is counted (ls_plan_memory()): workers that share memory, and among
 * which the state is sharded, have one copy of parameters and optimizer. */
ls_memory_config ls_layout_memory_config(const ls_config *, int nworkers, int near);
/* The same of a plan on one host. processes: those of the host, where each has this plan (sync.mode
 * async, ssp). */
ls_memory_config ls_layout_memory_of(const ls_config *, const ls_plan *, int processes);
/* The most layers that can be computed again in Backward; 0: the config has no model. */
int64_t ls_layout_most_recomputed(const ls_config *);
/* Values of train.micro_batch are multiples of this number or all samples of a virtual worker: 1,
 * ls_model_unit_samples(), or if a layer joins samples (model/layer.h) all. */
int64_t ls_layout_micro_unit(const ls_config *);
/* Is this one possible, with this unit? */
bool ls_layout_takes_micro(const ls_config *, int64_t unit, int64_t micro_batch);
/* The lowest parallel.zero with which the config's other settings are possible. */
int64_t ls_layout_least_zero(const ls_config *);

/* Do waiting workers compute the gradients of slow ones (backup.h)? survives: the workers' state
 * lies in memory that outlives them. */
bool ls_layout_has_backups(const ls_config *, const ls_plan *, bool survives);
/* The threads that compute in each of `near` workers, which share `cores`: parallel.threads, but
 * with auto one of eight or more is left to communication. */
int ls_layout_threads(const ls_config *, const ls_plan *, bool survives, int near, int cores);
/* Does the communication of each worker run in its own thread? `near` workers of one host share
 * `cores`. A worker of a run with backups has none: it helps others while it waits for them. */
bool ls_layout_has_overlap(const ls_config *, const ls_plan *, bool survives, int near, int cores);

#endif
