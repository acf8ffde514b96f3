/* remote.h - a worker on another host than the servers: gets parameters over TCP, computes, and
 * sends gradients (wire.h). */
#ifndef LS_ASYNC_REMOTE_H
#define LS_ASYNC_REMOTE_H

#include "async/gradient.h"
#include "net/key.h"

typedef struct ls_remote_config {
    const char *address;  /* the servers' host */
    const char *settings; /* that must match: lines */
    double patience_s;    /* without a connection for longer, it gives up */
    /* Called once the settings match: opens the run's data, and sets what computes gradients; the
     * caller closes it. */
    ls_status (*begin)(void *arg, ls_async_gradient **g_p, ls_error *);
    void *arg;
    size_t params_nbytes, grads_nbytes;
} ls_remote_config;

/* Computes gradients until the run is over. LS_EPEER: the host can't be reached, LS_EINVAL: it has
 * other settings. */
ls_status ls_remote_work(const ls_remote_config *, ls_error *);

#endif
