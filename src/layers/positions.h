/* positions.h - y = x + weight, for x [T, C]: a learned vector for each position. */
#ifndef LS_LAYERS_POSITIONS_H
#define LS_LAYERS_POSITIONS_H

#include "model/builder.h"

/* Parameter: weight [T, C], N(0, deviation^2). */
ls_value *ls_layers_positions(ls_model *, ls_value *x, const char *name, float deviation);

#endif
