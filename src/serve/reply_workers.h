/* reply_workers.h - who writes a server's replies: an engine of this process, or those of several processes that it
 * starts.
 *
 * Of several workers each writes some of the replies. One that is killed loses none: others write its replies
 * on from the tokens that have come, to the same bytes, and it is started again.
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
    int64_t lost; /* that have died */
} ls_reply_workers_counts;

/* worker.n workers; 1: this process. The limits of worker.engine are those of all together; `progress` is called
 * without the lock by a thread that is not the caller's. Several: called before there are threads that
 * hold locks (net/launch/fork_server.h). Errors as of ls_engine_open(), ls_fork_server_open(). */
ls_status ls_reply_workers_open(const ls_worker_options *, ls_reply_workers **w_p, ls_error *);
/* Ends all replies that are not complete: their `left` is called. */
void ls_reply_workers_close(ls_reply_workers *);

int64_t
ls_reply_workers_context(const ls_reply_workers *); /* of a reply with its prompt, at most */

/* Held by who reads replies. */
void ls_reply_workers_lock(ls_reply_workers *);
void ls_reply_workers_unlock(ls_reply_workers *);

/* With the lock: a request, whose replies are added before the lock is given back. */
uint64_t ls_reply_workers_ask(ls_reply_workers *, ls_request_kind, const char *body, size_t nbytes);
/* With the lock. Else as ls_engine_add(). */
void ls_reply_workers_add(ls_reply_workers *, uint64_t request, ls_reply *);
/* With the lock: nobody wants the reply any more. */
void ls_reply_workers_drop(ls_reply_workers *, ls_reply *);
/* With the lock. */
ls_reply_workers_counts ls_reply_workers_count(const ls_reply_workers *);
/* Without the lock: no worker is left and none can be started, or bytes of the model's file were lost. */
bool ls_reply_workers_failed(ls_reply_workers *, ls_error *);

#endif
