/* launch.h - starts the workers of one host, and watches over them.
 *
 * Each worker learns its rank from the environment (environment.h). Shared memory for the group is
 * made before they start, and inherited as a descriptor. ls_launch_run() is `lockstep run`: a
 * worker that fails ends the others. The functions below it are the steps of which it is made.
 */
#ifndef LS_NET_LAUNCH_LAUNCH_H
#define LS_NET_LAUNCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/local/board.h"

typedef struct ls_launch_options {
    int nworkers; /* of this host */
    /* For a group that spans hosts: its size, the rank of the first worker here, and where worker 0
     * listens (listen_fd, if worker 0 is one of these). Its workers share no memory, and take the
     * join key from the environment. host: differs from other hosts', even if they are one machine.
     * size 0: all workers are of this host. */
    int size, first;
    const char *address, *host;
    const char *listen; /* the address that the workers listen at (door.h); NULL or "": none */
    int listen_fd;
    size_t arena_nbytes; /* of the shared memory, a worker's part */
    bool bind;           /* bind each to its part of the cores, if there are enough */
    /* What a worker runs: a program (argv, NULL-terminated), or a function, whose result is the
     * exit code. */
    char *const *argv;
    int restarts; /* of a program: how often all workers start again after one has failed */
    int (*main)(void *arg);
    void *arg;
    /* May be NULL. board: workers report on it why they failed, which takes precedence over what is
     * seen from here. where: describes where a killed worker was, e.g. " in step 3, action 17",
     * which is appended to the message. */
    ls_board *board;
    void (*where)(int rank, void *arg, char *text, size_t nbytes);
} ls_launch_options;

/* Returns when all workers have ended. *code_p is 0, or the exit code of the first worker that
 * failed (128 + the signal's number if it was killed); *e then names the worker and the reason.
 * SIGINT, SIGTERM and SIGHUP are passed on; a second SIGINT or SIGTERM kills.
 *
 * With `restarts` all workers start again after a failure, in a new group; LOCKSTEP_RESTART_COUNT
 * is then the number of starts before. They do not after a signal, nor where a program could not be
 * started, or ended with 75 (EX_TEMPFAIL: it was stopped). */
ls_status ls_launch_run(const ls_launch_options *, int *code_p, ls_error *e);

/* ---- the steps ---- */

/* The signals that ls_launch_wait() waits for: SIGCHLD and those that ask to stop, except SIGHUP if
 * it is ignored (nohup). They are blocked in this process, and in its workers until these run. */
typedef struct ls_launch_signals {
    sigset_t waited, before;
    struct sigaction child_before;
} ls_launch_signals;
void ls_launch_hold(ls_launch_signals *);
void ls_launch_release(const ls_launch_signals *);

typedef struct ls_launch ls_launch;

/* Starts all workers, which are numbered here from 0. The signals must be held. They and the
 * options stay the caller's, and must outlive *l_p. */
ls_status ls_launch_start(const ls_launch_options *, const ls_launch_signals *, ls_launch **l_p,
                          ls_error *);
/* Kills and reaps the remaining workers. NULL is fine. */
void ls_launch_close(ls_launch *);

/* Ends every wait of the workers in their group, with LS_EABORT. Not for a group that spans
 * hosts. */
void ls_launch_call_off(const ls_launch *);
/* After ls_launch_call_off(), when the survivors have closed their groups: starts new workers in
 * place of the others. */
ls_status ls_launch_renew(ls_launch *, ls_error *);

typedef struct ls_launch_event {
    enum {
        LS_LAUNCH_QUIET,  /* nothing happened within the timeout */
        LS_LAUNCH_ENDED,  /* worker `rank`; `how` is the status of waitpid() */
        LS_LAUNCH_SIGNAL, /* this process received signal `number` */
    } what;
    int rank, how, number;
    pid_t pid; /* of the worker that has ended */
} ls_launch_event;

/* Waits for the next event. LS_LAUNCH_QUIET also when a worker nudges. NULL: there are no workers
 * yet, only signals. */
ls_launch_event ls_launch_wait(ls_launch *, const ls_launch_signals *, int64_t timeout_ns);
/* Called by a worker: makes its parent check all workers at once. */
void ls_launch_nudge(void);
/* Lets the others know of a worker that has ended: those that wait for it give up if it had not
 * joined the group. */
void ls_launch_note_end(const ls_launch *, const ls_launch_event *);
int ls_launch_alive(const ls_launch *);
pid_t ls_launch_pid(const ls_launch *, int rank); /* 0: it has ended */
void ls_launch_signal(const ls_launch *, int rank, int number);
void ls_launch_signal_all(const ls_launch *, int number);

#endif
