/* workers.h - how a run's workers are started, and what happens to them.
 *
 * Each worker runs the same function with its group. They are processes of this host or threads of
 * this process, started here; or, under `lockstep run`, mpirun, srun or torchrun, this process is
 * one of them already.
 */
#ifndef LS_CLUSTER_WORKERS_H
#define LS_CLUSTER_WORKERS_H

#include "cluster/supervisor.h"
#include "lockstep/group.h"
#include "net/local/board.h"

/* Runs a worker. *me: where it reports what it does. */
typedef ls_status ls_worker_main(ls_group *g, ls_board_slot *me, void *arg, ls_error *e);

typedef struct ls_workers {
    int n;
    const char *transport; /* "thread"; else of group.h, or NULL: processes that share memory, or
                              what the launcher's workers have in common */
    size_t arena_nbytes;
    double timeout_s; /* of a wait */
    /* Describes a worker that was killed, from its slot: appended to the message. */
    void (*where)(const ls_board_slot *, const void *arg, char *text, size_t nbytes);
    ls_supervisor *survival; /* of processes started here; NULL: a worker that dies ends all */
} ls_workers;

/* Is this process one of several that a launcher has started? *n_p: how many. */
ls_status ls_workers_started(bool *started_p, int *n_p, ls_error *);

/* Runs `main` on each worker, to its end. Returns the first error that blames no other worker; its
 * message is empty where another process prints it. */
ls_status ls_workers_run(const ls_workers *, ls_worker_main *main, void *arg, ls_error *);

/* When the program begins: where a launcher has started it as one of several workers, its messages
 * are kept until it meets the others (log.h); worker 0 also writes them at once. */
void ls_workers_hold_log(void);
/* Called by a process that ends: if it failed before it could open its group, it still meets the
 * others, if they come within seconds. */
void ls_workers_fail(void);

/* Collective: fails on all if it failed on one, with the error of the first such worker. */
ls_status ls_agree(ls_group *, ls_status own, ls_error *e);

/* Was this process asked to stop (SIGINT, SIGTERM, SIGHUP)? In ls_workers_run() only. */
bool ls_interrupted(void);
/* Seconds since the first of these signals; 0: there was none. */
double ls_interrupted_s(void);

#endif
