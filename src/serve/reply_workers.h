/* reply_workers.h - what writes a server's replies: an engine in this process, or several worker
 * processes, each with an engine.
 *
 * Each worker writes some of the replies. When a worker is killed no reply is lost: other workers
 * continue its replies from the tokens received so far, to the same bytes, and a new process takes
 * its place.
 */
#ifndef LS_SERVE_REPLY_WORKERS_H
#define LS_SERVE_REPLY_WORKERS_H

#include "serve/request.h"
#include "serve/worker.h"

enum { LS_MOST_REPLY_WORKERS = 256 };

typedef struct ls_reply_workers ls_reply_workers;

typedef struct ls_reply_workers_counts {
    ls_engine_counts engine; /* of all workers together */
    int alive;
    int64_t lost; /* workers that have died */
} ls_reply_workers_counts;

/* n workers; 1: this process is the worker. The limits of the options' engine hold for all workers
 * together; another thread calls its `progress`, without the lock. With several workers, call it
 * before there are threads that hold locks (net/launch/fork_server.h). Fails as ls_engine_open()
 * and ls_fork_server_open() do. */
ls_status ls_reply_workers_open(const ls_worker_options *, ls_reply_workers **w_p, ls_error *);
/* Ends all replies that are not complete, and calls their `left`. */
void ls_reply_workers_close(ls_reply_workers *);

int64_t
ls_reply_workers_context(const ls_reply_workers *); /* of a reply with its prompt, at most */

/* The lock must be held while replies are read. */
void ls_reply_workers_lock(ls_reply_workers *);
void ls_reply_workers_unlock(ls_reply_workers *);

/* With the lock: adds a request. Its replies are added before the lock is released. Returns its
 * number. */
uint64_t ls_reply_workers_ask(ls_reply_workers *, ls_request_kind, const char *body, size_t nbytes);
/* With the lock: as ls_engine_add(). */
void ls_reply_workers_add(ls_reply_workers *, uint64_t request, ls_reply *);
/* With the lock: the reply is no longer needed. */
void ls_reply_workers_drop(ls_reply_workers *, ls_reply *);
/* With the lock: as ls_engine_waiting(). */
int ls_reply_workers_waiting(const ls_reply_workers *, int n);
/* With the lock. */
ls_reply_workers_counts ls_reply_workers_count(const ls_reply_workers *);
/* Without the lock: bytes of the model's file were lost. */
bool ls_reply_workers_failed(ls_reply_workers *, ls_error *);

#endif
