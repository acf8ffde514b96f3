/* fork_server.h - forks workers of a program that has threads by now.
 *
 * fork() is for processes of one thread. So a process is forked before the threads start, which waits: asked for a
 * worker, it forks one, that has all that was in memory at that time.
 */
#ifndef LS_NET_LAUNCH_FORK_SERVER_H
#define LS_NET_LAUNCH_FORK_SERVER_H

#include "base/error.h"

typedef struct ls_fork_server ls_fork_server;

/* What a worker runs; fd: a socket to who asked for it, which ends when that process does. The result is its exit
 * code. */
typedef int ls_forked_worker(void *arg, int number, int fd);

/* For workers 0 to n - 1. Called before there are threads that hold locks; threads that wait are fine, and are not there
 * in workers. `what` begins the line in the log when a worker is killed. Signals that ask to stop are ignored there:
 * who asked for workers ends them. */
ls_status ls_fork_server_open(const char *what, int n, ls_forked_worker *, void *arg,
                              ls_fork_server **n_p, ls_error *);
/* Starts worker `number`; *fd_p is the other end of its socket, which does not block. LS_EIO: it was killed, or
 * there are no more files. */
ls_status ls_fork_server_start(ls_fork_server *, int number, int *fd_p, ls_error *);
/* Kills the workers that are left. NULL is allowed. */
void ls_fork_server_close(ls_fork_server *);

#endif
