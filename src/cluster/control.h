/* control.h - a socket in the run directory, for requests of other programs to the supervisor.
 *
 * RUN/control/socket is a stream socket of the local host. A request is a line, and so is its
 * answer: "ok ..." or "error ...". Only the user who started the run, and root, may send requests:
 * RUN/control has mode 0700 and the socket 0600, whatever the umask, and the kernel says which
 * user's program has connected.
 */
#ifndef LS_CLUSTER_CONTROL_H
#define LS_CLUSTER_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { LS_CONTROL_LINE = 256 };

typedef struct ls_control ls_control;

/* Takes the place of what another program has left, or serves: hosts that share a run directory
 * replace each other, without a moment at which there is no socket. */
ls_status ls_control_open(const char *run, ls_control **c_p, ls_error *);
void ls_control_close(ls_control *); /* NULL is fine */

/* Takes a request, if there is one; its text ends with 0. Each must be answered. */
bool ls_control_next(ls_control *, char line[LS_CONTROL_LINE]);
void ls_control_answer(ls_control *, const char *text);

/* Sends a request and waits for the answer; if the run has no socket yet, it waits for up to three
 * seconds. LS_EIO: the run is not running on this host, or belongs to another user. */
ls_status ls_control_ask(const char *run, const char *line, char answer[LS_CONTROL_LINE],
                         ls_error *);

#endif
