/* launch.h - starts a program as n workers of one host, and watches over them: `lockstep run`.
 *
 * Each worker finds itself by its environment (environment.h); shared memory for the group is made
 * before they start and handed down as a descriptor. A worker that fails ends the others.
 */
#ifndef LS_NET_LAUNCH_H
#define LS_NET_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "net/board.h"

typedef struct ls_launch_options {
    int nworkers;
    size_t arena_nbytes; /* of the shared memory, a worker's part */
    bool bind;           /* each to its part of the cores, where there are enough */
    /* What a worker runs: a program (argv, NULL-terminated), or a function, whose result is the
     * exit code. */
    char *const *argv;
    int (*main)(void *arg);
    void *arg;
    /* May be NULL: where workers tell why they failed, which goes before what is seen from here;
     * and what is to be said of one that was killed, e.g. " in step 3, action 17", appended to the
     * message. */
    ls_board *board;
    void (*where)(int rank, void *arg, char *text, size_t nbytes);
} ls_launch_options;

/* Until all have ended. *code_p is 0, or the exit code of the first worker that failed (128 + the
 * signal's number, if it was killed); *e then says who and how. SIGINT, SIGTERM and SIGHUP are
 * passed on; a second one kills. */
ls_status ls_launch_run(const ls_launch_options *, int *code_p, ls_error *e);

#endif
