/* layout.h - the model and the plan of a config. */
#ifndef LS_TRAIN_LAYOUT_H
#define LS_TRAIN_LAYOUT_H

#include "config/config.h"
#include "plan/plan.h"

/* While plans are made, for base/waiting.h: layers, workers. */
#define LS_RUN_PLANNING "planning %lld layers for %d workers"

/* The model and the plan of a config. Both are the caller's; the plan refers to the model. */
ls_status ls_run_plan(const ls_config *, int nworkers, ls_model *m_p, ls_plan *p_p, ls_error *);
/* The same with shares of virtual workers: first [nworkers + 1] outlives the plan. */
ls_status ls_run_plan_shares(const ls_config *, int nworkers, const int *first, ls_model *m_p,
                             ls_plan *p_p, ls_error *);
/* Any number of workers up to one a virtual worker has a plan: where settings that don't touch the
 * bits (parallel.shard_group, accumulate) don't do, the nearest that do. group: the workers of a
 * sharding group at most; 0: all are one. */
ls_status ls_run_plan_any(const ls_config *, int nworkers, int group, const int *first,
                          ls_model *m_p, ls_plan *p_p, ls_error *);

#endif
