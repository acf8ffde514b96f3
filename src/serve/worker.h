/* worker.h - a process that writes replies for a server: an engine behind a socket (worker_message.h). */
#ifndef LS_SERVE_WORKER_H
#define LS_SERVE_WORKER_H

#include "serve/engine.h"
#include "serve/request.h"

typedef struct ls_worker_options {
    ls_trained *trained;      /* as it was when this process was forked */
    ls_request_model model;   /* without `context` and `constraints`: those are its own */
    ls_engine_options engine; /* its part; without `progress` */
    int n;                    /* workers; each has its part of the cores */
} ls_worker_options;

/* Returns when the socket ends. */
int ls_worker_run(const ls_worker_options *, int number, int fd);

#endif
