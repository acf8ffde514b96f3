/* mesh_svg.h - a picture of a mesh: a box for each worker, with its layers, slices and shards. */
#ifndef LS_REPORT_MESH_SVG_H
#define LS_REPORT_MESH_SVG_H

#include "plan/plan.h"

/* Stages of a pipeline are columns; workers that divide slices are drawn side by side, and workers
 * that divide the batch one below the other, only the first ones if there are many. LS_EIO. */
ls_status ls_mesh_svg(const ls_plan *, const char *path, ls_error *);

#endif
