/* bench_comm.h - lockstep bench comm: times our own collectives by the procedure of
 * bench/measure.h, by which the peers' programs time theirs.
 *
 * The command starts its workers itself: forked processes, each bound to its part of the cores as
 * `lockstep run` does, or threads. Where the environment says that it is one of several workers
 * already (`lockstep run -n 4 lockstep bench comm`, mpirun, srun), it is that worker, and worker 0
 * prints.
 */
#ifndef LS_CLI_BENCH_COMM_H
#define LS_CLI_BENCH_COMM_H

#include <stdbool.h>

#include "base/error.h"
#include "bench/measure.h"
#include "coll/request.h"

typedef struct cli_bench_comm {
    bench_request request;
    int workers;           /* 0: as the environment says */
    const char *transport; /* "shm", "thread", "tcp", "mpi"; NULL: as ls_group_open() does */
    const char *algorithm; /* NULL: the one that is chosen */
    bool all;              /* all algorithms in turns (bench_choice.h); `algorithm` is NULL */
    bool insecure;         /* over tcp: no key, no encryption */
    const char *save;      /* NULL, or a file for what the links can do (coll/link.h) */
    bool private_buffers;  /* the program's own memory; else the group's, which others can read */
    bool out_of_place, in_place; /* which are measured */
    int busy;                    /* processes that compute beside the workers (busy.h) */
    bool json;
} cli_bench_comm;

/* How a call of this size is made by the group. */
ls_call cli_bench_comm_call(const bench_job *, const ls_group *);

/* Prints a line for each size; returns the exit code: 1 where elements are wrong, too. */
int cli_bench_comm_run(const cli_bench_comm *);

/* Is there an out of place, and an in place, of it? A barrier counts as in place. */
/* NULL, or what the operation takes, and these elements are not. */
const char *cli_bench_comm_misfit(bench_redop redop, bench_dtype dtype);
bool cli_bench_comm_has_out_of_place(bench_op op);
bool cli_bench_comm_has_in_place(bench_op op);

/* LS_ENOMEM: `workers` of this host want more memory for a size than it has. */
ls_status cli_bench_comm_fits(const cli_bench_comm *, int workers, size_t size, ls_error *);

#endif
