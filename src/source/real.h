/* real.h - numbers with fractions as samples have them: f64, f32 or f16. */
#ifndef LS_SOURCE_REAL_H
#define LS_SOURCE_REAL_H

#include "tensor/dtype.h"

bool ls_is_real(ls_dtype);
double ls_real_at(ls_dtype, const void *from);
/* Writes the nearest one. */
void ls_real_set(ls_dtype, double x, void *to);

#endif
