/* bench_kernels.h - how fast the kernels of this machine are: matrix products and passes over
 * memory, on one core. Other systems' products are measured in alternation with ours.
 */
#ifndef LS_PERF_BENCH_KERNELS_H
#define LS_PERF_BENCH_KERNELS_H

#include "tensor/gemm.h"

enum { LS_BENCH_ROWS = 8, LS_BENCH_RIVALS = 2, LS_BENCH_ROUNDS = 101 };

/* The matrix product of another library. */
typedef struct ls_rival {
    const char *name;
    void (*run)(const void *self, const ls_gemm_job *);
    const void *self;
} ls_rival;

/* FLOP/s; peak: of multiply-adds. */
typedef struct ls_bench_product {
    const char *shape, *product;
    int64_t rows, in, out;
    double peak, ours, rivals[LS_BENCH_RIVALS];
} ls_bench_product;

/* Bytes a second; limit: of a += b, or of a sum where nothing is written. */
typedef struct ls_bench_pass {
    const char *name;
    double speed, limit;
} ls_bench_pass;

typedef struct ls_bench_kernels {
    int64_t rows[LS_BENCH_ROWS]; /* [nrows] numbers of rows of activations */
    int nrows;
    const ls_rival *rivals; /* [nrivals] */
    int nrivals, rounds;
    bool bf16; /* matrix products in bf16, of operands in bf16, and nothing else */
    /* Called with each result as it comes, and before the first: the kernels' name, and their
     * peak. */
    void (*begin)(void *arg, const char *kernels, double peak);
    void (*product)(void *arg, const ls_bench_product *);
    void (*pass)(void *arg, const ls_bench_pass *);
    void *arg;
} ls_bench_kernels;

/* LS_ENOMEM. */
ls_status ls_bench_kernels_run(const ls_bench_kernels *, ls_error *);

/* Bytes of an array of a pass. */
size_t ls_bench_pass_nbytes(void);

#endif
