/* mesh_svg.h - a picture of a mesh: a box for each worker, with its layers, slices and shards. */
#ifndef LS_REPORT_MESH_SVG_H
#define LS_REPORT_MESH_SVG_H

#include "plan/plan.h"

/* Stages of a pipeline are columns, workers that divide slices are beside each other, and those that
 * divide the batch below each other; of many of the latter the first ones are drawn. LS_EIO. */
ls_status ls_mesh_svg(const ls_plan *, const char *path, ls_error *);

#endif
