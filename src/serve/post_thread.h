/* post_thread.h - bodies of requests are read in a thread of their own.
 *
 * Parsing, templates, tokenizing and grammars take as long as a client's body makes them take; in that time the thread that
 * sends streams must go on. Requests are read one after the other, in the order in which they came.
 */
#ifndef LS_SERVE_POST_THREAD_H
#define LS_SERVE_POST_THREAD_H

#include "http/server.h"

typedef struct ls_post_thread ls_post_thread;

typedef struct ls_post_options {
    /* Answers a request. In the thread. */
    void (*answer)(void *arg, int kind, const char *body, size_t nbytes, ls_http_answer *);
    /* An answer is there: ls_http_wake() sends it. In the thread. */
    void (*ready)(void *arg);
    void *arg;
} ls_post_options;

/* LS_EIO: no thread can be started. */
ls_status ls_post_thread_open(const ls_post_options *, ls_post_thread **t_p, ls_error *);
/* Takes the request's body; the answer is pending. In the thread of the HTTP server, as ls_post_thread_count(). */
void ls_post_thread_add(ls_post_thread *, int kind, const ls_http_request *, ls_http_answer *);
/* Requests that wait, and the one that is being read. */
int ls_post_thread_count(ls_post_thread *);
/* After the HTTP server has been closed. Waits for the request that is being read. NULL is fine. */
void ls_post_thread_close(ls_post_thread *);

#endif
