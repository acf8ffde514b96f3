/* space_grid.h - all combinations of a space's values, for the method grid. */
#ifndef LS_PERF_SPACE_GRID_H
#define LS_PERF_SPACE_GRID_H

#include "perf/space.h"

/* Sets s->grid and rules.trials; the last key changes fastest. LS_EINVAL: a range has not a number
 * of values, or there are too many combinations. */
ls_status ls_space_grid(ls_space *, ls_error *);

#endif
