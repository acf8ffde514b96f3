/* workers.h - starts the workers of a run, and waits for their end.
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
    /* "thread", or a transport of group.h. NULL: shared memory for processes started here, or what
     * all workers of the launcher can use. */
    const char *transport;
    size_t arena_nbytes;
    double timeout_s; /* limit of a wait */
    /* Describes a worker that was killed, from its slot: appended to the message. */
    void (*where)(const ls_board_slot *, const void *arg, char *text, size_t nbytes);
    ls_supervisor *survival; /* for processes started here; NULL: if a worker dies, all end */
} ls_workers;

/* Is this process one of the workers that a launcher has started? *n_p: their number. */
ls_status ls_workers_started(bool *started_p, int *n_p, ls_error *);

/* Runs `main` on each worker, to its end. Returns the first error that blames no other worker; its
 * message is empty where another process prints it. */
ls_status ls_workers_run(const ls_workers *, ls_worker_main *main, void *arg, ls_error *);

/* Called when the program begins: if a launcher has started it as one of several workers, its
 * messages are held until it meets the others (log.h); worker 0 also writes them at once. */
void ls_workers_hold_log(void);
/* Called by a process that ends: if it failed before it could open its group, it still meets the
 * others, if they come within seconds. */
void ls_workers_fail(void);

/* Was this process asked to stop (SIGINT, SIGTERM, SIGHUP)? In ls_workers_run() only. */
bool ls_interrupted(void);
/* Seconds since the first of these signals; 0: there was none. */
double ls_interrupted_s(void);

#endif
