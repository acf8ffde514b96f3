/* jobs.h - answers that take a while, made by threads beside the one that serves.
 *
 * The answer of a job is pending (server.h) until a thread has made it. Jobs begin in the order in
 * which they were added. The thread of the HTTP server calls all functions here. Whoever leaves a
 * job last frees it: its thread, or the server.
 */
#ifndef LS_HTTP_JOBS_H
#define LS_HTTP_JOBS_H

#include "http/server.h"

typedef struct ls_http_jobs ls_http_jobs;

typedef struct ls_http_work {
    void (*make)(void *arg, ls_http_answer *); /* in a thread, unless the client has gone by then */
    void (*free_arg)(void *arg);               /* in that thread, in any case */
} ls_http_work;

/* Starts at most `nthreads` threads. They call ready(arg) when an answer has been made, which
 * ls_http_wake() then sends; NULL: the user looks at the count. LS_EIO: no thread can be
 * started. */
ls_status ls_http_jobs_open(int nthreads, void (*ready)(void *arg), void *arg, ls_http_jobs **j_p,
                            ls_error *);
void ls_http_jobs_add(ls_http_jobs *, const ls_http_work *, void *arg, ls_http_answer *);
/* Jobs whose answers have not been made. */
int ls_http_jobs_count(ls_http_jobs *);
/* After the HTTP server has been closed. Jobs that have begun go on: `wait` waits for them,
 * otherwise nothing that they use may be freed. NULL is fine. */
void ls_http_jobs_close(ls_http_jobs *, bool wait);

#endif
