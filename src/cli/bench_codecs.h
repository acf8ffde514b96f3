/* bench_codecs.h - how fast the codecs of compressed sums encode and decode, as shares of memory's
 * speed; a part of lockstep bench kernels. */
#ifndef LS_CLI_BENCH_CODECS_H
#define LS_CLI_BENCH_CODECS_H

#include <stdbool.h>

#include "tensor/kernels.h"

/* Prints a table, on one core; the median of `rounds`. */
ls_status cli_bench_codecs(const ls_kernels *, int rounds, bool json, ls_error *);

#endif
