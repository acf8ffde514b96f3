/* bench_comm.h - what lockstep bench comm prints. */
#ifndef LS_CLI_BENCH_COMM_H
#define LS_CLI_BENCH_COMM_H

#include "perf/bench_comm.h"

extern const ls_bench_view cli_bench_view;

#endif
