/* service.c - see service.h. */
#include "watch/service.h"

#include <stdlib.h>

#include "base/clock.h"

/* Seconds between two looks at the runs, while a page is open, while none is, and while runs are
 * read for the first time. Streams are woken at least every WAKE, so that one whose client is gone
 * is noticed. */
static const double LOOK = 0.1, IDLE_LOOK = 1, FIRST_LOOK = 0.02, WAKE = 5;
enum { DETAIL_THREADS = 3 };

ls_status ls_service_open(const ls_service_options *o, ls_service *s_p, ls_error *e) {
    ls_service s = {0};
    ls_status status = ls_watcher_open(o->dirs, o->ndirs, o->may_come, &s.watcher, e);
    if (status == LS_OK) {
        s.site = LS_NEW(ls_watch_site);
        *s.site = (ls_watch_site){.watcher = s.watcher};
        status = ls_http_jobs_open(DETAIL_THREADS, NULL, NULL, &s.site->jobs, e);
    }
    if (status == LS_OK)
        status = ls_http_open(&(ls_http_options){.address = o->address,
                                                 .port = o->port,
                                                 .names = o->names,
                                                 .nnames = o->nnames,
                                                 .token = o->token,
                                                 .certificate = o->certificate,
                                                 .key = o->key,
                                                 .answer = ls_site_answer,
                                                 .arg = s.site},
                              &s.http, e);
    if (status == LS_OK)
        *s_p = s;
    else
        ls_service_close(&s);
    return status;
}

/* Seconds until the next look. */
static double pause_of(const ls_service *s) {
    if (s->watcher->nunread || ls_http_jobs_count(s->site->jobs)) return FIRST_LOOK;
    return ls_http_nstreams(s->http) ? LOOK : IDLE_LOOK;
}

void ls_service_run(ls_service *s, const volatile sig_atomic_t *stop) {
    double looked = 0, woken = 0;
    int waiting = 0;
    while (!*stop) {
        double now = (double)ls_clock_ns() / 1e9, every = pause_of(s);
        if (now - looked >= every) {
            bool changed = ls_watcher_look(s->watcher, ls_clock_wall_s());
            int waits = ls_http_jobs_count(s->site->jobs);
            looked = now;
            if (changed || waits || waiting || now - woken >= WAKE) {
                ls_http_wake(s->http);
                woken = now;
            }
            waiting = waits;
        }
        double left = looked + every - now;
        ls_http_run(s->http, left > 0 ? (int)(left * 1000) + 1 : 0);
    }
}

void ls_service_close(ls_service *s) {
    ls_http_close(s->http);
    if (s->site) ls_http_jobs_close(s->site->jobs, false);
    free(s->site);
    ls_watcher_close(s->watcher);
    *s = (ls_service){0};
}
