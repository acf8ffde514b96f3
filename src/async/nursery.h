/* nursery.h - the process that starts workers and servers, and starts another in place of one that
 * is killed: it finds in shared memory what is to be done (board.h), and nothing is lost. */
#ifndef LS_ASYNC_NURSERY_H
#define LS_ASYNC_NURSERY_H

#include "async/crew.h"
#include "net/launch/process.h"

typedef struct ls_async_nursery {
    ls_child child;
} ls_async_nursery;

/* The crew outlives it. Called while this process has few threads: they are lost in the child. */
ls_status ls_async_nursery_open(ls_async_nursery *, const ls_async_crew *, ls_error *);
/* LS_EPEER: the nursery was killed, and with it all workers. */
ls_status ls_async_nursery_check(ls_async_nursery *, ls_error *);
/* Ends all workers and servers. */
void ls_async_nursery_close(ls_async_nursery *);

#endif
