/* bench_machine.h - lockstep bench machine */
#ifndef LS_CLI_BENCH_MACHINE_H
#define LS_CLI_BENCH_MACHINE_H

/* Measures this machine, prints its most important speeds, and writes all of them to the file
 * `save` unless it is NULL. Returns the exit code. */
int cli_bench_machine_run(const char *save);

#endif
