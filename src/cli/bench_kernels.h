/* bench_kernels.h - lockstep bench kernels: matrix products, convolutions and passes over memory,
 * on one core, as fractions of the core's peak; other libraries' products alternate with ours.
 */
#ifndef LS_CLI_BENCH_KERNELS_H
#define LS_CLI_BENCH_KERNELS_H

#include "cli/gemm_library.h"

enum { CLI_MAX_ROWS = 8 };

typedef struct cli_bench_kernels {
    int64_t rows[CLI_MAX_ROWS]; /* numbers of rows of activations */
    int nrows;
    int libraries[CLI_GEMM_LIBRARIES]; /* indices into cli_gemm_library_names */
    int nlibraries;
    int rounds;
    bool bf16; /* matrix products in bf16, of operands in bf16, and nothing else */
    bool json;
} cli_bench_kernels;

/* Prints a table; returns the exit code. */
int cli_bench_kernels_run(const cli_bench_kernels *);

#endif
