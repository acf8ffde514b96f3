/* site.h - what is at which path: the page, and what it asks for.
 *
 *     /  page.css  page.js      the page
 *     runs                      the list of runs, with the differences of their configs
 *     series?run=N&x=step|units|hours&from=&to=&columns=&smooth=&names=     a window of a run
 *     events                    the stream (live.h)
 *     samples?run=N  ledger?run=N  timeline?run=N&step=  compare?runs=N,M    details (details.h)
 *     metrics                   for Prometheus (prometheus.h)
 *
 * Runs have numbers there: no path comes from a URL.
 */
#ifndef LS_WATCH_SITE_H
#define LS_WATCH_SITE_H

#include "http/server.h"
#include "watch/watcher.h"

/* The answerer of a server; arg: the watcher. */
void ls_site_answer(void *watcher, const ls_http_request *, ls_http_answer *);

#endif
