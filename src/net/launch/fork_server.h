/* fork_server.h - forks workers of a program that already has threads.
 *
 * fork() is safe only in a process with one thread. So a process is forked before the threads
 * start. It waits for requests, and forks a worker for each; the worker has the memory of that
 * time.
 */
#ifndef LS_NET_LAUNCH_FORK_SERVER_H
#define LS_NET_LAUNCH_FORK_SERVER_H

#include "base/error.h"

typedef struct ls_fork_server ls_fork_server;

/* What a worker runs. fd: a socket to the process that asked for the worker, which is closed when
 * that process ends. Returns the exit code. */
typedef int ls_forked_worker(void *arg, int number, int fd);

/* For workers 0 to n - 1. Call it before there are threads that hold locks; threads that wait are
 * harmless, and do not exist in workers. `what` begins the log line when a worker is killed. Fork
 * server and workers ignore signals that ask to stop: the process that asked for the workers ends
 * them. */
ls_status ls_fork_server_open(const char *what, int n, ls_forked_worker *, void *arg,
                              ls_fork_server **n_p, ls_error *);
/* Starts worker `number`; *fd_p is the other end of its socket, which does not block. LS_EIO: the
 * fork server was killed, or too many files are open. */
ls_status ls_fork_server_start(ls_fork_server *, int number, int *fd_p, ls_error *);
/* Kills the remaining workers. NULL is allowed. */
void ls_fork_server_close(ls_fork_server *);

#endif
