/* remote.h - a worker on another host than the parameters: gets tasks and parameters over TCP,
 * computes, and sends gradients (wire.h). */
#ifndef LS_ASYNC_REMOTE_H
#define LS_ASYNC_REMOTE_H

#include "async/wire.h"

/* How the worker computes gradients. */
typedef struct ls_remote_job {
    void *params;                  /* [params_nbytes] set before a task, where they differ */
    const void *result, *gradient; /* [result_nbytes], [grads_nbytes] of the latest task */
    ls_status (*compute)(void *arg, const ls_wire_task *, ls_error *);
} ls_remote_job;

typedef struct ls_remote_config {
    const char *addresses; /* HOST:PORT,... of the other host, and of those that may replace it */
    const char *settings;  /* that must match: lines */
    /* Appends the run and its data, as far as this host has them (net/tcp/admission.h). */
    ls_status (*identity)(void *arg, ls_buf *out, ls_error *);
    double patience_s;  /* without a connection for longer, it gives up */
    double heartbeat_s; /* it shows a sign of life more often */
    /* Without a connection: has the run ended meanwhile? */
    bool (*has_ended)(const void *arg);
    /* Called once the settings match: opens the run's data, and sets the job; the caller closes
     * it. */
    ls_status (*begin)(void *arg, ls_remote_job *, ls_error *);
    void *arg;
    size_t params_nbytes, result_nbytes, grads_nbytes;
} ls_remote_config;

/* Computes gradients until the run is over. LS_OK also if it has ended while there was no
 * connection. LS_EPEER: the host can't be reached, LS_EINVAL: it has other settings. */
ls_status ls_remote_work(const ls_remote_config *, ls_error *);

#endif
