/* errands.h - questions whose answers take a while, answered by threads beside the one that serves.
 *
 * The answer is a stream (http/server.h) that rests until it is there. A few questions at a time; only some may
 * wait. A question has all that a thread needs, so the server may end while one is being answered.
 */
#ifndef LS_WATCH_ERRANDS_H
#define LS_WATCH_ERRANDS_H

#include "http/server.h"

enum { LS_ERRANDS_MOST = 32, LS_ERRANDS_THREADS = 3 };

typedef struct ls_errands ls_errands;

ls_errands *ls_errands_open(void);
void ls_errands_close(ls_errands *); /* does not wait; NULL is fine */

/* Calls run(arg, out), then free_arg(arg), and answers what is in `out`. False: too many wait; nothing was called. */
typedef void ls_errand_run(void *arg, ls_buf *out);
bool ls_errands_ask(ls_errands *, ls_errand_run *run, void (*free_arg)(void *), void *arg,
                    ls_http_answer *);

/* Answers that are not there yet. */
int ls_errands_waiting(const ls_errands *);

#endif
