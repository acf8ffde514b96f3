/* row_parts.h - the rows of a sample, divided among the slices of a model (ls_build_slice()): part
 * k of n, rows [T k / n, T (k + 1) / n), is a value of slice k. n divides T.
 *
 *     part k -> copies "gather.k.j", one for each other slice j -> slice j: all parts, in order
 *     slice j's rows -> "scatter.j.k", those of part k -> slice k: "scatter.k", their sum
 *
 * Sums over slices ascend; gradients of parts are summed from the last slice down. So n alone
 * decides the bits. A scope has one of each at most, for the names of layers. */
#ifndef LS_LAYERS_ROW_PARTS_H
#define LS_LAYERS_ROW_PARTS_H

#include "model/builder.h"

/* out [n]: all rows, for each slice, of part [n]. The slice is 0 afterwards. */
void ls_layers_gather_rows(ls_model *, ls_value *const *part, int n, ls_value **out);
/* out [n]: each part of the sum of x [n], of which x[k] [T, C] is slice k's. The slice is 0
 * afterwards. */
void ls_layers_scatter_rows(ls_model *, ls_value *const *x, int n, ls_value **out);

#endif
