/* front.h - what clients of a served model ask: OpenAI's paths, and those of health, metrics and
 * tokens. */
#ifndef LS_SERVE_FRONT_H
#define LS_SERVE_FRONT_H

#include <stdatomic.h>

#include "http/server.h"
#include "serve/reply_workers.h"

typedef struct ls_front ls_front;

typedef struct ls_front_options {
    ls_trained *trained;
    const ls_chat_format *format; /* NULL: there are no chats */
    const char *name;             /* of the model */
    const char *const *adapters;  /* [engine.nadapters] the names of its adapters */
    ls_engine_options engine;     /* without `progress` */
    int workers;                  /* processes that write replies; 1 or 0: this one */
    const char *device;   /* of several workers (ls_worker_options); NULL: what the model is on */
    int queue;            /* replies that may wait; further requests are refused */
    ls_http_options http; /* without `answer` */
} ls_front_options;

enum { LS_FRONT_BODY = 8 << 20 }; /* the largest body of a request */

/* LS_EINVAL, LS_EIO, LS_ENOMEM: the model can't be served, or not at this address. The options'
 * texts must outlive it. */
ls_status ls_front_open(const ls_front_options *, ls_front **f_p, ls_error *);
int ls_front_port(const ls_front *);
/* Serves until *asked_p is not 0; then begun replies have grace_s seconds to end. LS_EIO: it can't
 * go on, as ls_reply_workers_failed() says. */
ls_status ls_front_run(ls_front *, const atomic_int *asked_p, double grace_s, ls_error *);
void ls_front_close(ls_front *);

#endif
