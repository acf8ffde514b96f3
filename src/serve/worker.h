/* worker.h - a process that writes replies for a server: an engine behind a socket
 * (worker_message.h). */
#ifndef LS_SERVE_WORKER_H
#define LS_SERVE_WORKER_H

#include "serve/engine.h"
#include "serve/request.h"

typedef struct ls_worker_options {
    ls_trained *trained;      /* as it was when this process was forked */
    ls_request_model model;   /* without `context` and `constraints`: those are its own */
    ls_engine_options engine; /* limits of one worker; without `progress` */
    int n;                    /* workers; the cores are divided among them */
    const char *device; /* each has one of its kind, or all share one with a number; NULL: cores */
} ls_worker_options;

/* Returns the exit code when the other end of the socket is closed. */
int ls_worker_run(const ls_worker_options *, int number, int fd);

#endif
