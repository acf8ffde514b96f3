/* beats.h - signs of life on a connection while its process computes: a thread sends BEATs
 * (wire.h), so the peer can distinguish a busy process from one that is stopped. */
#ifndef LS_ASYNC_BEATS_H
#define LS_ASYNC_BEATS_H

#include <pthread.h>

#include "async/wire.h"

typedef struct ls_beats {
    pthread_t thread;
    pthread_mutex_t lock;
    double every_s;
    ls_conn *conn; /* NULL: they are off */
} ls_beats;

/* The ls_beats must not move until it is closed. */
ls_status ls_beats_open(ls_beats *, double every_s, ls_error *);
void ls_beats_close(ls_beats *);
/* Sends BEATs on this connection; until they are switched off, only the thread may send on it.
 * NULL: switches off. */
void ls_beats_set(ls_beats *, ls_conn *);

#endif
