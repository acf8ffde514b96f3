/* bench_machine.h - lockstep bench machine */
#ifndef LS_CLI_BENCH_MACHINE_H
#define LS_CLI_BENCH_MACHINE_H

/* Measures this machine; writes what it can do to the file `save`, or prints it where that is NULL.
 * Exit code. */
int cli_bench_machine_run(const char *save);

#endif
