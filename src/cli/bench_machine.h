/* bench_machine.h - lockstep bench machine */
#ifndef LS_CLI_BENCH_MACHINE_H
#define LS_CLI_BENCH_MACHINE_H

#include "perf/machine.h"

/* Measures this machine, prints its most important speeds, and writes all of them to the file
 * `save` unless it is NULL, with these prices; those that are not known stay as they are in an
 * older file of this name. Returns the exit code. */
int cli_bench_machine_run(const char *save, const ls_machine_prices *);

#endif
