/* errands.c - see errands.h. */
#include "watch/errands.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

typedef struct errand errand;
struct errand {
    ls_errands *all;
    ls_errand_run *run;
    void (*free_arg)(void *);
    void *arg;
    ls_buf out;
    size_t sent;
    bool done, left; /* the answer is there; nobody reads it any more */
    errand *next;
};

struct ls_errands {
    pthread_mutex_t lock; /* of all below, and of errands that are not done */
    errand *first, **last;
    int waiting, users; /* users: the server, its streams, the threads */
    int nthreads;
    bool closed;
};

ls_errands *ls_errands_open(void) {
    ls_errands *e = LS_NEW(ls_errands);
    pthread_mutex_init(&e->lock, NULL);
    e->last = &e->first;
    e->users = 1;
    return e;
}

/* Unlocks it; the last user frees it. */
static void leave(ls_errands *e) {
    bool last = --e->users == 0;
    pthread_mutex_unlock(&e->lock);
    if (!last) return;
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static void errand_free(errand *x) {
    ls_buf_free(&x->out);
    free(x);
}

/* ---- the thread ---- */

static errand *take_next(ls_errands *e) {
    errand *x = e->first;
    if (!x) return NULL;
    e->first = x->next;
    if (!e->first) e->last = &e->first;
    return x;
}

static void *run_errands(void *arg) {
    ls_errands *e = arg;
    pthread_mutex_lock(&e->lock);
    for (errand *x; (x = take_next(e));) {
        bool wanted = !x->left && !e->closed;
        pthread_mutex_unlock(&e->lock);
        if (wanted) x->run(x->arg, &x->out);
        x->free_arg(x->arg);
        pthread_mutex_lock(&e->lock);
        e->waiting--;
        x->done = true;
        if (x->left) errand_free(x);
    }
    e->nthreads--;
    leave(e);
    return NULL;
}

static bool start_thread(ls_errands *e) {
    pthread_t thread;
    bool ok = ls_thread_start(&thread, run_errands, e) == 0;
    if (ok) pthread_detach(thread);
    return ok;
}

/* ---- the streams ---- */

static size_t stream_next(void *arg, char *bytes, size_t most) {
    errand *x = arg;
    pthread_mutex_lock(&x->all->lock);
    bool done = x->done;
    pthread_mutex_unlock(&x->all->lock);
    if (!done) return 0;
    size_t n = x->out.len - x->sent < most ? x->out.len - x->sent : most;
    if (!n) return LS_HTTP_END;
    memcpy(bytes, x->out.data + x->sent, n);
    x->sent += n;
    return n;
}

static void stream_close(void *arg) {
    errand *x = arg;
    ls_errands *e = x->all;
    pthread_mutex_lock(&e->lock);
    bool done = x->done;
    x->left = true;
    if (done) errand_free(x);
    leave(e);
}

static const ls_http_source source = {stream_next, stream_close};

bool ls_errands_ask(ls_errands *e, ls_errand_run *run, void (*free_arg)(void *), void *arg,
                    ls_http_answer *a) {
    pthread_mutex_lock(&e->lock);
    bool may = e->waiting < LS_ERRANDS_MOST;
    if (may && e->nthreads < LS_ERRANDS_THREADS && e->nthreads <= e->waiting) {
        bool started = start_thread(e); /* it waits for the lock */
        e->users += started;
        e->nthreads += started;
        may = e->nthreads > 0;
    }
    if (may) {
        errand *x = LS_NEW(errand);
        *x = (errand){.all = e, .run = run, .free_arg = free_arg, .arg = arg};
        *e->last = x;
        e->last = &x->next;
        e->waiting++;
        e->users++;
        a->source = &source;
        a->stream = x;
    }
    pthread_mutex_unlock(&e->lock);
    return may;
}

int ls_errands_waiting(const ls_errands *e) {
    ls_errands *x = (ls_errands *)(uintptr_t)e;
    pthread_mutex_lock(&x->lock);
    int n = x->waiting;
    pthread_mutex_unlock(&x->lock);
    return n;
}

void ls_errands_close(ls_errands *e) {
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    leave(e);
}
