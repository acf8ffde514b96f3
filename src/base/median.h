/* median.h - the median of measurements. */
#ifndef LS_BASE_MEDIAN_H
#define LS_BASE_MEDIAN_H

#include <stddef.h>

/* The median of x [n], n > 0; of an even number the upper of the two. Sorts x. */
double ls_median(double *x, size_t n);

#endif
