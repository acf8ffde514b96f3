/* worker_list.h - the worker processes of a server: starting them, and bytes to and from them.
 *
 * One thread at a time.
 */
#ifndef LS_SERVE_WORKER_LIST_H
#define LS_SERVE_WORKER_LIST_H

#include "net/launch/fork_server.h"
#include "serve/worker.h"

/* LS_BEGINNINGS: the beginnings of prompts that are remembered for each worker; LS_BEGINNING: their
 * length in tokens. */
enum { LS_BEGINNINGS = 256, LS_BEGINNING = LS_KEPT_PAGE };

/* A worker as the server sees it. */
typedef struct ls_worker_process {
    int number, fd;      /* -1: it does not run */
    bool ready;          /* it has reported that it can write replies */
    int failures;        /* starts in a row after which it was never ready */
    int64_t start_at_ns; /* it is not started again before */
    int nreplies;
    ls_buf out, come; /* bytes for it; bytes from it that are not yet read */
    size_t sent;      /* of `out` */
    ls_engine_counts counts;
    ls_page_name begun[LS_BEGINNINGS]; /* [nbegun], the latest ones; in a ring */
    size_t nbegun;
} ls_worker_process;

typedef struct ls_worker_list {
    const ls_worker_options *o;
    ls_fork_server *forks;
    ls_worker_process *list; /* [o->n] */
    int places;              /* replies that a worker has at a time */
    char part[1 << 16];      /* receives the bytes of one recv() */
} ls_worker_list;

/* Starts all workers; the list is {0} before. The options must outlive it. It must be closed in any
 * case. */
ls_status ls_worker_list_open(ls_worker_list *, const ls_worker_options *, ls_error *);
void ls_worker_list_close(ls_worker_list *);

/* Starts workers that do not run. One whose last starts failed waits before the next one, each time
 * longer: it may be killed for lack of memory, or be starved, which may pass. */
void ls_worker_list_restart(ls_worker_list *);
/* Milliseconds until a worker is to be started; -1: none waits. */
int ls_worker_list_pause(const ls_worker_list *);
/* The worker with the fewest replies, or one that may still have the keys and values of the
 * prompt's beginning; it counts as one that has them. NULL: no worker has a place. */
ls_worker_process *ls_worker_list_choose(const ls_worker_list *, const ls_reply *);

/* Sends what the worker can receive now. */
void ls_worker_send(ls_worker_process *);
/* Receives what it has sent. False: the worker has ended; what it sent before can be read. */
bool ls_worker_receive(ls_worker_list *, ls_worker_process *);
/* After a worker has ended: forgets what belonged to the process. If it was never ready, its start
 * has failed. */
void ls_worker_clear(ls_worker_process *);

#endif
