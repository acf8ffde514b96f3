/* bench_compare.h - lockstep bench comm --vs: our collectives beside other systems', measured in
 * turns.
 *
 * Three passes; in each, every system runs once, in processes of its own, on all sizes. So a change
 * of the machine's load falls on all of them. What counts for a size is the median of the passes'
 * medians.
 *
 * The peers' programs (bench/peers, bench/floor.c) stand in the folder bench/ beside this one.
 */
#ifndef LS_CLI_BENCH_COMPARE_H
#define LS_CLI_BENCH_COMPARE_H

#include "cli/bench_comm.h"

enum {
    CLI_PEERS = 4,
    CLI_PASSES = 3,
    CLI_LEAST_ROUNDS = 5, /* of a pass */
    CLI_PEER_LIMIT_S = 120
};

/* "openmpi", "mpich", "gloo", "floor". */
extern const char *const cli_peer_names[CLI_PEERS];

/* Prints the table, or JSON; returns the exit code. A peer that fails doesn't make it fail.
 *
 * peers [npeers]   places in cli_peer_names
 * o                transport isn't NULL; the places are not looked at: the peers' own are
 *                  measured, which is in place, but for all_to_all */
int cli_bench_compare_run(const cli_bench_comm *o, const int *peers, int npeers);

#endif
