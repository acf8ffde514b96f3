/* post_thread.c - see post_thread.h. */
#include "serve/post_thread.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"

/* A request. It is freed by whoever leaves it last: the thread, or the HTTP server. */
typedef struct job {
    ls_post_thread *thread;
    int kind;
    ls_buf body;
    ls_http_answer answer;
    bool made, dropped;
    struct job *next;
} job;

struct ls_post_thread {
    ls_post_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    job *first, **last; /* that wait */
    int n;              /* with the one that is being read */
    bool ends;
};

/* ---- jobs ---- */

static void free_job(job *j) {
    if (j->answer.source) j->answer.source->close(j->answer.stream);
    ls_buf_free(&j->answer.body);
    ls_buf_free(&j->body);
    free(j);
}

static bool job_ready(void *arg, ls_http_answer *a) {
    job *j = arg;
    ls_post_thread *t = j->thread;
    pthread_mutex_lock(&t->lock);
    bool made = j->made;
    pthread_mutex_unlock(&t->lock);
    if (!made) return false;
    *a = j->answer;
    j->answer = (ls_http_answer){0};
    free_job(j);
    return true;
}

static void job_drop(void *arg) {
    job *j = arg;
    ls_post_thread *t = j->thread;
    pthread_mutex_lock(&t->lock);
    j->dropped = true;
    bool made = j->made;
    pthread_mutex_unlock(&t->lock);
    if (made) free_job(j);
}

static const ls_http_pending pending = {job_ready, job_drop};

/* ---- the thread ---- */

static job *take_first(ls_post_thread *t) {
    job *j = t->first;
    t->first = j->next;
    if (!t->first) t->last = &t->first;
    return j;
}

/* With the lock, which it gives back meanwhile. */
static void read_first(ls_post_thread *t) {
    job *j = take_first(t);
    bool dropped = j->dropped || t->ends;
    pthread_mutex_unlock(&t->lock);
    if (!dropped)
        t->o.answer(t->o.arg, j->kind, j->body.data ? j->body.data : "", j->body.len, &j->answer);
    pthread_mutex_lock(&t->lock);
    t->n--;
    j->made = true;
    if (j->dropped) {
        pthread_mutex_unlock(&t->lock);
        free_job(j);
    } else {
        pthread_mutex_unlock(&t->lock);
        t->o.ready(t->o.arg);
    }
    pthread_mutex_lock(&t->lock);
}

static void *run(void *arg) {
    ls_post_thread *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->ends || t->first) {
        if (t->first)
            read_first(t);
        else
            pthread_cond_wait(&t->work, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- ---- */

ls_status ls_post_thread_open(const ls_post_options *o, ls_post_thread **t_p, ls_error *e) {
    ls_post_thread *t = LS_NEW(ls_post_thread);
    *t = (ls_post_thread){.o = *o};
    t->last = &t->first;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    bool ok = ls_thread_start(&t->thread, run, t) == 0;
    if (ok) {
        *t_p = t;
        return LS_OK;
    }
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return ls_fail(e, LS_EIO, "no thread to read requests can be started");
}

void ls_post_thread_add(ls_post_thread *t, int kind, const ls_http_request *r, ls_http_answer *a) {
    job *j = LS_NEW(job);
    *j = (job){.thread = t, .kind = kind, .body = ls_http_take_posted(r)};
    a->pending = &pending;
    a->job = j;
    pthread_mutex_lock(&t->lock);
    *t->last = j;
    t->last = &j->next;
    t->n++;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
}

int ls_post_thread_count(ls_post_thread *t) {
    pthread_mutex_lock(&t->lock);
    int n = t->n;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void ls_post_thread_close(ls_post_thread *t) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->ends = true;
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
