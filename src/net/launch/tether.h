/* tether.h - ends workers with their launcher, also where other programs stand between them.
 *
 * A launcher's children are killed when it dies (child.h). Where a child is a script that runs the
 * worker, the worker would train on, and keep its run directory locked. So a launcher has a pipe
 * to which it alone could write. A worker opens the other end and gets SIGKILL from the kernel when
 * the launcher has closed the pipe, or has died. This needs no thread, and no descriptor that a
 * script may not pass on.
 */
#ifndef LS_NET_LAUNCH_TETHER_H
#define LS_NET_LAUNCH_TETHER_H

#include "base/error.h"

typedef struct ls_tether {
    int ends[2]; /* of the pipe; -1: none */
} ls_tether;

/* By a launcher. LS_EIO: too many files are open. */
ls_status ls_tether_open(ls_tether *t_p, ls_error *);
/* In a process that is to run a program: its workers will find the launcher. */
void ls_tether_show(const ls_tether *);
/* Ends the workers that are left. */
void ls_tether_close(ls_tether *);

/* By a worker, when it joins the others; again does nothing. Nothing happens where no launcher has
 * a tether, or the launcher can't be seen (it is another user's, or outside of a container). */
void ls_tether_tie(void);

#endif
