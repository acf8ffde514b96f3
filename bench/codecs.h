/* codecs.h - how fast the codecs of compressed sums encode and decode, as shares of memory's
 * speed. */
#ifndef BENCH_CODECS_H
#define BENCH_CODECS_H

#include <stdbool.h>

#include "tensor/kernels.h"

/* Prints a table, on one core; the median of `rounds`. */
ls_status bench_codecs(const ls_kernels *, int rounds, bool json, ls_error *);

#endif
