/* site.h - what is at which path: the page, and what it asks for.
 *
 *     /  page.css  page.js      the page
 *     runs                      the list of runs, with the differences of their configs
 *     series?run=N&x=step|units|hours&from=&to=&columns=&smooth=&names=     a window of a run
 *     events                    the stream (live.h)
 *     samples?run=N  ledger?run=N  timeline?run=N&step=
 *     workers?run=N  checkpoints?run=N  lost?run=N
 *     compare?run=N,M  difference?run=N,M&name=&columns=    details (details.h)
 *     metrics                   for Prometheus (prometheus.h)
 *
 * Runs have numbers there: no path comes from a URL.
 */
#ifndef LS_WATCH_SITE_H
#define LS_WATCH_SITE_H

#include "http/jobs.h"
#include "watch/watcher.h"

typedef struct ls_watch_site {
    ls_watcher *watcher;
    ls_http_jobs *jobs; /* that write details */
} ls_watch_site;

/* The answerer of a server; arg: the ls_watch_site. */
void ls_site_answer(void *arg, const ls_http_request *, ls_http_answer *);

#endif
