/* bench_kernels.h - what lockstep bench kernels prints, and programs that compare its products with
 * others'. */
#ifndef LS_CLI_BENCH_KERNELS_H
#define LS_CLI_BENCH_KERNELS_H

#include "perf/bench_kernels.h"

/* Reads the values of --rows, such as "256,1024", and --dtype. *why_p: why one is wrong; free() it. */
bool cli_bench_kernels_read(const char *rows, const char *dtype, ls_bench_kernels *, char **why_p);
/* Measures, and prints tables, or lines of JSON. */
ls_status cli_bench_kernels_run(ls_bench_kernels *, bool json, ls_error *);

#endif
