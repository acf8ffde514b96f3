/* bench_comm.h - lockstep bench comm: times our own collectives by the procedure of
 * bench/measure.h, by which the peers' programs time theirs.
 *
 * The command starts its workers itself: forked processes, each bound to its part of the cores as
 * `lockstep run` does, or threads. If the environment shows that the process already is one of
 * several workers (`lockstep run -n 4 lockstep bench comm`, mpirun, srun), it acts as that worker,
 * and worker 0 prints.
 */
#ifndef LS_PERF_BENCH_COMM_H
#define LS_PERF_BENCH_COMM_H

#include <stdbool.h>

#include "base/error.h"
#include "bench/measure.h"
#include "coll/request.h"

struct ls_bench_choices;
struct ls_bench_comm;

/* How worker 0 shows results; with json only each() is called. */
typedef struct ls_bench_view {
    void (*begin)(const struct ls_bench_comm *, ls_group *);
    /* out, in: NULL: not measured out of place, in place */
    void (*size)(const bench_job *, const bench_result *out, const bench_result *in,
                 const char *algorithm);
    void (*begin_choices)(const struct ls_bench_choices *, int rounds);
    void (*choices)(const struct ls_bench_choices *, const bench_job *);
    void (*each)(ls_group *measured, const bench_peer *, const bench_job *, const bench_result *);
    void (*end)(double wrong, double busbw); /* elements; the mean, 0: not known */
} ls_bench_view;

typedef struct ls_bench_comm {
    bench_request request;
    int workers;           /* 0: from the environment */
    const char *transport; /* "shm", "thread", "tcp", "mpi"; NULL: as ls_group_open() chooses */
    const char *algorithm; /* NULL: the group chooses */
    bool all;              /* all algorithms, alternating (bench_choice.h); `algorithm` is NULL */
    bool insecure;         /* over tcp: no key, no encryption */
    const char *save;      /* NULL, or a file for the speed of the links (coll/link.h) */
    bool private_buffers;  /* the program's own memory; else the group's, readable by others */
    bool out_of_place, in_place; /* the places that are measured */
    int busy;                    /* other processes that compute meanwhile (busy.h) */
    bool json;
    const ls_bench_view *view;
} ls_bench_comm;

/* How the group makes a call of this size, and by which algorithm. */
ls_call ls_bench_comm_call(const bench_job *, const ls_group *);
const char *ls_bench_comm_algorithm(const ls_group *, const bench_job *);

/* Measures all sizes. Returns the exit code, which is 1 if any element is wrong. */
int ls_bench_comm_run(const ls_bench_comm *);

/* NULL if the reduction accepts these elements, else the elements that it accepts. */
const char *ls_bench_comm_misfit(bench_redop redop, bench_dtype dtype);

/* Whether the operation is possible out of place, and in place. A barrier counts as in place. */
bool ls_bench_comm_has_out_of_place(bench_op op);
bool ls_bench_comm_has_in_place(bench_op op);

/* LS_ENOMEM: `workers` of this host need more memory for a size than the host has. */
ls_status ls_bench_comm_fits(const ls_bench_comm *, int workers, size_t size, ls_error *);

#endif
