/* bench.h - what lockstep bench measures and prints, a file each. */
#ifndef LS_CLI_BENCH_H
#define LS_CLI_BENCH_H

#include "perf/bench_comm.h"
#include "perf/bench_device.h"
#include "perf/bench_kernels.h"
#include "perf/machine.h"

/* train. `set` [nset]: keys of the config, as KEY=VALUE. */
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

/* machine: measures it, prints its most important speeds, and writes all of them to the file `save`
 * unless it is NULL, with these prices; those that are not known, and a device, stay as they are in
 * an older file of this name. Returns the exit code. */
int cli_bench_machine_run(const char *save, const ls_machine_prices *);

/* comm */
extern const ls_bench_view cli_bench_view;

/* kernels, also for programs that compare products with others'. Reads the values of --rows, such
 * as "256,1024", and --dtype. *why_p: why one is wrong; free() it. */
bool cli_bench_kernels_read(const char *rows, const char *dtype, ls_bench_kernels *, char **why_p);
/* Measures, and prints tables, or lines of JSON. */
ls_status cli_bench_kernels_run(ls_bench_kernels *, bool json, ls_error *);

/* kernels and machine of a device; return the exit code. */
int cli_bench_device_kernels(ls_bench_device *, bool json);
int cli_bench_device_machine(const ls_bench_device *, bool json);
void cli_bench_device_print(const ls_device_figures *);

/* machine: the same, and the machine, into the file `save`: if it is one of a machine, that is not
 * measured again. Prices that are not given stay as they are. */
int cli_bench_machine_device(const ls_bench_device *, const char *save, const ls_machine_prices *);

#endif
