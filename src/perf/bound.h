/* bound.h - what a mesh needs at least: estimates of a step's time and of memory without a plan.
 *
 * Layers are priced for a micro-batch of each size, stages cut as a plan cuts them, and what is
 * exchanged priced as one communication of each kind.
 */
#ifndef LS_PERF_BOUND_H
#define LS_PERF_BOUND_H

#include "perf/mesh_search.h"

typedef struct ls_bounds ls_bounds;

/* Bounds for meshes of n workers in this world; the arguments must outlive the bounds. The model's
 * parameters get their groups. */
ls_status ls_bounds_open(const ls_config *, ls_model *, int n, const ls_forecast_world *,
                         ls_bounds **b_p, ls_error *);
void ls_bounds_free(ls_bounds *);
/* Sets bubble, least_s and least_nbytes. *can_p: can the model be cut into the mesh's number of
 * stages? LS_EINVAL: the machine has no speeds for the config's types. */
ls_status ls_bounds_of(ls_bounds *, ls_mesh *, bool *can_p, ls_error *);

#endif
