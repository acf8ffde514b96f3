/* service.h - runs watched and served, until a signal. */
#ifndef LS_WATCH_SERVICE_H
#define LS_WATCH_SERVICE_H

#include <signal.h>

#include "http/server.h"
#include "watch/site.h"

typedef struct ls_service {
    ls_watcher *watcher;
    ls_watch_site *site;
    ls_http *http;
} ls_service;

typedef struct ls_service_options {
    const char *const *dirs; /* [ndirs], which outlive the service */
    int ndirs;
    bool may_come;       /* a directory may be missing yet */
    const char *address; /* } as of ls_http_options */
    int port;
    const char *const *names;
    int nnames;
    const char *token;             /* } */
    const char *certificate, *key; /* } */
} ls_service_options;

ls_status ls_service_open(const ls_service_options *, ls_service *s_p, ls_error *);
/* Serves until *stop is not 0, which a handler of signals sets: then for at most a quarter of a
 * second. */
void ls_service_run(ls_service *, const volatile sig_atomic_t *stop);
void ls_service_close(ls_service *);

#endif
