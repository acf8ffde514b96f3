/* plan_mesh.h - lockstep plan --mesh auto: a table of the fastest meshes. */
#ifndef LS_CLI_PLAN_MESH_H
#define LS_CLI_PLAN_MESH_H

#include "cli/plan_forecast.h"

/* fit: megabytes of memory that a worker may have; 0: parallel.memory_limit_mb. Without a machine's
 * file the speeds are those of a typical one. */
ls_status cli_mesh_print(const cli_forecast *, const ls_config *, int workers, double fit,
                         ls_error *);

#endif
