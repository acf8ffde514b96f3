/* median.c - see median.h. */
#include "base/median.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double ls_median(double *x, size_t n) {
    qsort(x, n, sizeof *x, by_value);
    return x[n / 2];
}
