/* bench_compare.h - lockstep bench comm --vs: our collectives beside other systems', measured
 * alternately.
 *
 * In each of three passes, every system runs once on all sizes, in processes of its own, so that a
 * change of the machine's load affects all systems. The result for a size is the median of the
 * passes' medians.
 *
 * The peers' programs (bench/peers, bench/floor.c) are in the directory bench/ beside this program.
 */
#ifndef LS_CLI_BENCH_COMPARE_H
#define LS_CLI_BENCH_COMPARE_H

#include "cli/bench_comm.h"

enum {
    CLI_PEERS = 4,
    CLI_PASSES = 3,
    CLI_LEAST_ROUNDS = 5, /* in a pass */
    CLI_PEER_LIMIT_S = 120
};

/* "openmpi", "mpich", "gloo", "floor". */
extern const char *const cli_peer_names[CLI_PEERS];

/* Prints the table, or JSON; returns the exit code. A peer that fails does not make the
 * comparison fail.
 *
 * peers [npeers]   indices into cli_peer_names
 * o                transport isn't NULL; out_of_place and in_place are ignored: peers are measured
 *                  in place, except for all_to_all */
int cli_bench_compare_run(const cli_bench_comm *o, const int *peers, int npeers);

#endif
