/* jobs.c - see jobs.h. */
#include "http/jobs.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"

typedef struct job job;
struct job {
    ls_http_jobs *all;
    const ls_http_work *work;
    void *arg;
    ls_http_answer answer;
    bool made, left; /* left: the server wants no answer any more */
    job *next;
};

struct ls_http_jobs {
    pthread_mutex_t lock; /* of all below, and of each job's `made` and `left` */
    pthread_cond_t changed, thread_ended;
    job *first, **last; /* that have not begun */
    int n;              /* with those that are being made */
    int users;          /* the owner and the threads; the last one frees it */
    bool closed;
    void (*ready)(void *arg);
    void *arg;
};

/* Unlocks it. */
static void leave(ls_http_jobs *all) {
    bool last = --all->users == 0;
    pthread_mutex_unlock(&all->lock);
    if (!last) return;
    pthread_cond_destroy(&all->changed);
    pthread_cond_destroy(&all->thread_ended);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- jobs, in the thread of the server ---- */

static void free_job(job *j) {
    if (j->answer.source) j->answer.source->close(j->answer.stream);
    ls_buf_free(&j->answer.body);
    free(j);
}

static bool job_ready(void *arg, ls_http_answer *a) {
    job *j = arg;
    pthread_mutex_lock(&j->all->lock);
    bool made = j->made;
    pthread_mutex_unlock(&j->all->lock);
    if (!made) return false;
    *a = j->answer;
    free(j);
    return true;
}

static void job_drop(void *arg) {
    job *j = arg;
    ls_http_jobs *all = j->all;
    pthread_mutex_lock(&all->lock);
    bool made = j->made;
    j->left = true;
    pthread_mutex_unlock(&all->lock);
    if (made) free_job(j);
}

static const ls_http_pending pending = {job_ready, job_drop};

void ls_http_jobs_add(ls_http_jobs *all, const ls_http_work *work, void *arg, ls_http_answer *a) {
    job *j = LS_NEW(job);
    *j = (job){.all = all, .work = work, .arg = arg};
    a->pending = &pending;
    a->job = j;
    pthread_mutex_lock(&all->lock);
    *all->last = j;
    all->last = &j->next;
    all->n++;
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

int ls_http_jobs_count(ls_http_jobs *all) {
    pthread_mutex_lock(&all->lock);
    int n = all->n;
    pthread_mutex_unlock(&all->lock);
    return n;
}

/* ---- threads ---- */

/* With the lock, which it gives back meanwhile. */
static void make_first(ls_http_jobs *all) {
    job *j = all->first;
    all->first = j->next;
    if (!all->first) all->last = &all->first;
    bool wanted = !j->left && !all->closed;
    pthread_mutex_unlock(&all->lock);
    if (wanted) j->work->make(j->arg, &j->answer);
    j->work->free_arg(j->arg);
    pthread_mutex_lock(&all->lock);
    all->n--;
    j->made = true; /* from here on, unless it has left, the server may free it */
    bool left = j->left;
    pthread_mutex_unlock(&all->lock);
    if (left)
        free_job(j);
    else if (all->ready)
        all->ready(all->arg);
    pthread_mutex_lock(&all->lock);
}

static void *run(void *arg) {
    ls_http_jobs *all = arg;
    pthread_mutex_lock(&all->lock);
    while (!all->closed || all->first) {
        if (all->first)
            make_first(all);
        else
            pthread_cond_wait(&all->changed, &all->lock);
    }
    pthread_cond_signal(&all->thread_ended);
    leave(all);
    return NULL;
}

ls_status ls_http_jobs_open(int nthreads, void (*ready)(void *arg), void *arg, ls_http_jobs **j_p,
                            ls_error *e) {
    ls_http_jobs *all = LS_NEW(ls_http_jobs);
    *all = (ls_http_jobs){.users = 1, .ready = ready, .arg = arg};
    all->last = &all->first;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    pthread_cond_init(&all->thread_ended, NULL);
    pthread_mutex_lock(&all->lock); /* new threads wait for it */
    pthread_t thread;
    int failed = 0;
    for (; all->users <= nthreads; all->users++) {
        failed = ls_thread_start(&thread, run, all);
        if (failed) break;
        pthread_detach(thread);
    }
    if (all->users == 1) {
        leave(all);
        return ls_fail(e, LS_EIO, "no thread to answer requests can be started: %s",
                       ls_thread_why(failed));
    }
    pthread_mutex_unlock(&all->lock);
    *j_p = all;
    return LS_OK;
}

void ls_http_jobs_close(ls_http_jobs *all, bool wait) {
    if (!all) return;
    pthread_mutex_lock(&all->lock);
    all->closed = true;
    pthread_cond_broadcast(&all->changed);
    while (wait && all->users > 1) pthread_cond_wait(&all->thread_ended, &all->lock);
    leave(all);
}
