/* bench_conv.h - lockstep bench kernels: the convolutions of a residual network. */
#ifndef LS_CLI_BENCH_CONV_H
#define LS_CLI_BENCH_CONV_H

#include "cli/bench_kernels.h"

/* Prints a table, or lines of JSON. Uses one thread. LS_ENOMEM; LS_EINVAL: see conv_library.h. */
ls_status cli_bench_conv(const cli_bench_kernels *, const ls_compute *, ls_error *);

#endif
