/* client.h - asks an HTTP server, and takes its answer as it comes.
 *
 * Certificates are verified, redirects are not followed (a key would go to another server). One
 * thread at a time. A signal that interrupts this thread is noticed at once.
 */
#ifndef LS_HTTP_CLIENT_H
#define LS_HTTP_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

typedef struct ls_http_client ls_http_client; /* keeps its connections */

/* The strings must outlive it. authorities: a PEM file of those to trust; NULL: that of
 * SSL_CERT_FILE, else the system's. key: sent as "Authorization: Bearer KEY"; NULL: none. LS_EIO:
 * libcurl is not there. */
typedef struct ls_http_client_options {
    const char *authorities, *key;
} ls_http_client_options;
ls_status ls_http_client_open(const ls_http_client_options *, ls_http_client **c_p, ls_error *);
void ls_http_client_close(ls_http_client *); /* NULL is allowed */

/* "http://..." or "https://...", with a host, without user, password, query or white space. */
ls_status ls_http_client_check_url(const char *url, ls_error *);

typedef struct ls_http_question {
    const char *url, *body;             /* body: JSON to send by POST; NULL: GET */
    const volatile sig_atomic_t *asked; /* the answer is ended when it is not 0; may be NULL */
    /* Takes bytes of an answer with status 200; an error ends it. NULL: they go to `body`. */
    ls_status (*take)(void *arg, const char *bytes, size_t n, ls_error *);
    void *arg;
} ls_http_question;

typedef struct ls_http_reply {
    int status;
    bool asked;            /* the question's `asked` has ended it */
    int64_t retry_after_s; /* 0: the server does not say */
    char type[64];         /* of its content */
    ls_buf body; /* without the bytes that `take` got; the caller frees it, also after an error */
} ls_http_reply;

/* LS_EIO: the server can't be reached, or its answer breaks off; reply_p->status is then 0 or that
 * of the answer. Else what `take` returned. */
ls_status ls_http_client_ask(ls_http_client *, const ls_http_question *, ls_http_reply *reply_p,
                             ls_error *);

#endif
