/* positions.h - y = x + weight, for x [T, C]: a learned vector for each position. */
#ifndef LS_LAYERS_POSITIONS_H
#define LS_LAYERS_POSITIONS_H

#include "layers/layers.h"

/* x has these rows of a sample. Parameter: weight [all rows, C], N(0, deviation^2). */
ls_value *ls_layers_positions(ls_model *, ls_value *x, ls_row_range, const char *name,
                              float deviation);

#endif
