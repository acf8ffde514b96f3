/* bench_train.h - lockstep bench train: measures how fast a config trains on this machine. */
#ifndef LS_CLI_BENCH_TRAIN_H
#define LS_CLI_BENCH_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

/* The command line. `set` [nset]: keys of the config, as KEY=VALUE. */
typedef struct cli_bench_train {
    const char *config; /* the file */
    const char *const *set;
    int nset;
    int workers;
    int64_t steps;
    const char *trace;      /* a file for a timeline, or NULL */
    const char *export_dir; /* a directory for the data that is trained on, or NULL */
    bool json;
} cli_bench_train;

/* Prints the numbers; returns the exit code. */
int cli_bench_train_run(const cli_bench_train *);

#endif
