/* beside.h - runs watched and served by a process beside another command, such as `lockstep
 * train`. */
#ifndef LS_WATCH_BESIDE_H
#define LS_WATCH_BESIDE_H

#include <sys/types.h>

#include "watch/service.h"

typedef struct ls_beside {
    pid_t pid; /* 0: there is none */
    int port;
} ls_beside;

/* Starts the process, before the command has threads, locks or workers. It has the lowest priority
 * but one, ends with the command, and does not hear Ctrl-C, since the command ends at a moment of
 * its own. LS_EIO, LS_EINVAL: it can't listen. The caller ends it with ls_beside_end(). */
ls_status ls_beside_begin(const ls_service_options *, ls_beside *b_p, ls_error *);
void ls_beside_end(ls_beside *);

#endif
