/* live.h - the stream of a page: server-sent events about all runs.
 *
 *     event   data
 *     hello   {"boot", "resumed"}: what the page has is still right, if resumed
 *     list    {}: there are new runs
 *     status  a run, as in the list
 *     rows    {"run", "generation", "begin", "count", "x", "series", "points", "marks"}: new steps
 *     stale   {"run", "rows"}: there are too many new steps to send; the page asks for its windows
 *             again
 *     back    {"run", "generation"}: steps were taken back; the same
 *
 * When all is sent, an id follows alone. A browser whose connection was lost sends it back as
 * Last-Event-ID, and gets what has come since. Nothing is queued for a page: the stream compares
 * what it has sent with what there is, when the client can take more.
 *
 * Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
#ifndef LS_WATCH_LIVE_H
#define LS_WATCH_LIVE_H

#include "http/server.h"
#include "watch/watcher.h"

/* after: the id that the page had last; NULL: none. The watcher must outlive it. */
typedef struct ls_live ls_live;
ls_live *ls_live_open(const ls_watcher *, const char *after);
extern const ls_http_source ls_live_source;

#endif
