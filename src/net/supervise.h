/* supervise.h - the part of supervision that both ways of starting workers share: signals and the
 * first error. */
#ifndef LS_NET_SUPERVISE_H
#define LS_NET_SUPERVISE_H

#include <signal.h>

#include "net/spawn.h"

typedef struct ls_supervisor {
    ls_region *region;
    sigset_t waited, before;
    int interrupts;
} ls_supervisor;

typedef enum ls_supervisor_event {
    LS_SUPERVISOR_LOOK,    /* a worker may have ended, or nothing for a moment */
    LS_SUPERVISOR_END_NOW, /* a second interrupt */
} ls_supervisor_event;

/* Blocks SIGCHLD, SIGINT, SIGTERM and SIGHUP in this thread and those that it starts. */
void ls_supervisor_begin(ls_supervisor *, ls_region *);
/* Waits for a signal, 100 ms at most; the first interrupt raises header->stop. */
ls_supervisor_event ls_supervisor_wait(ls_supervisor *);
/* Restores signals; returns the first error of the region. */
ls_status ls_supervisor_end(ls_supervisor *, ls_error *);

#endif
