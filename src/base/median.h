/* median.h - the middle of what was measured. */
#ifndef LS_BASE_MEDIAN_H
#define LS_BASE_MEDIAN_H

#include <stddef.h>

/* Of x [n], n > 0, which it sorts; of an even number the upper one. */
double ls_median(double *x, size_t n);

#endif
