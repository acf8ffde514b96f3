/* mesh_trial.h - a mesh planned and simulated.
 *
 * Workers that share the batch do the same at the same time. So one pipeline is planned in place of
 * all, and priced as what it is a part of (ls_site.copies): a mesh of thousands of workers takes no
 * longer than one of a few. What differs between workers by one virtual worker is taken for equal.
 * In a step with many micro-batches, only a first few and then a few more are planned: the others
 * take as long as these.
 */
#ifndef LS_PERF_MESH_TRIAL_H
#define LS_PERF_MESH_TRIAL_H

#include "perf/mesh_search.h"

/* Sets what is simulated. *possible_p: a plan exists; else e->msg says why not. */
ls_status ls_mesh_try(const ls_config *, int n, const ls_forecast_world *, ls_mesh *,
                      bool *possible_p, ls_error *);
/* Calls of layers in the trial's plan: what it costs. */
double ls_mesh_trial_calls(const ls_config *, const ls_model *, const ls_mesh *);

/* Simulates the whole plan, as `lockstep plan` does; and the calls of layers in it. */
ls_status ls_mesh_plan(const ls_config *, int n, const ls_forecast_world *, ls_mesh *,
                       bool *possible_p, ls_error *);
double ls_mesh_plan_calls(const ls_config *, const ls_model *, const ls_mesh *);

#endif
