/* first_reading.c - see first_reading.h. */
#include "watch/first_reading.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

enum { MOST_THREADS = 16, PIECE = 4 << 20 };

typedef struct job {
    ls_watcher_run *run;
    ls_run_stage stage; /* that it has reached */
    bool busy, wanted;
} job;

struct ls_first_reading {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t idle;  /* a thread has ended */
    job *jobs;            /* [njobs] */
    int njobs, nthreads;
    bool stop; /* atomic */
};

ls_first_reading *ls_first_reading_open(void) {
    ls_first_reading *f = LS_NEW(ls_first_reading);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->idle, NULL);
    return f;
}

static bool is_stopped(ls_first_reading *f) { return __atomic_load_n(&f->stop, __ATOMIC_RELAXED); }

/* ---- the threads ---- */

/* The job to do next; -1: none. */
static int next_job(const ls_first_reading *f) {
    int best = -1;
    for (int i = 0; i < f->njobs; i++) {
        const job *j = &f->jobs[i];
        if (j->busy || j->stage == LS_RUN_READ) continue;
        if (j->stage == LS_RUN_FOUND) return i;
        if (best < 0 || (j->wanted && !f->jobs[best].wanted)) best = i;
    }
    return best;
}

static void read_lines(ls_first_reading *f, ls_watcher_run *r) {
    while (!is_stopped(f) && ls_watched_read(&r->lines, ls_clock_wall_s(), PIECE))
        __atomic_store_n(&r->nread, r->lines.file.place.at, __ATOMIC_RELAXED);
    ls_watched_shrink(&r->lines);
}

static void *read_runs(void *arg) {
    ls_first_reading *f = arg;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        int i = is_stopped(f) ? -1 : next_job(f);
        if (i < 0) break;
        ls_watcher_run *r = f->jobs[i].run;
        ls_run_stage stage = f->jobs[i].stage;
        f->jobs[i].busy = true;
        pthread_mutex_unlock(&f->lock);
        if (stage == LS_RUN_FOUND)
            ls_watcher_run_know(r, ls_clock_wall_s());
        else
            read_lines(f, r);
        pthread_mutex_lock(&f->lock);
        f->jobs[i].busy = false; /* jobs stay at their places while one is left */
        f->jobs[i].stage = stage + 1;
    }
    f->nthreads--;
    pthread_cond_broadcast(&f->idle);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static bool start_thread(ls_first_reading *f) {
    pthread_t thread;
    bool ok = ls_thread_start(&thread, read_runs, f) == 0;
    if (ok) pthread_detach(thread);
    return ok;
}

void ls_first_reading_add(ls_first_reading *f, ls_watcher_run *const *runs, int n) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int most = cores < MOST_THREADS ? (int)cores : MOST_THREADS;
    pthread_mutex_lock(&f->lock);
    f->jobs = ls_realloc(f->jobs, (size_t)(f->njobs + n) * sizeof *f->jobs);
    for (int i = 0; i < n; i++) f->jobs[f->njobs++] = (job){.run = runs[i]};
    for (int i = 0; i < n && f->nthreads < most; i++) {
        f->nthreads++;
        if (start_thread(f)) continue;
        f->nthreads--;
        break;
    }
    bool alone = n && !f->nthreads;
    if (alone) f->nthreads++;
    pthread_mutex_unlock(&f->lock);
    if (alone) read_runs(f); /* the system lets it have no thread */
}

/* ---- the thread that serves ---- */

void ls_first_reading_want(ls_first_reading *f, const ls_watcher_run *r) {
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->njobs; i++)
        if (f->jobs[i].run == r) f->jobs[i].wanted = true;
    pthread_mutex_unlock(&f->lock);
}

bool ls_first_reading_take(ls_first_reading *f, int *left_p, int *found_p) {
    bool any = false;
    *left_p = *found_p = 0;
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->njobs; i++) {
        const job *j = &f->jobs[i];
        any = any || j->run->stage != j->stage;
        j->run->stage = j->stage;
        *left_p += j->stage != LS_RUN_READ;
        *found_p += j->stage == LS_RUN_FOUND;
    }
    if (!*left_p) f->njobs = 0;
    pthread_mutex_unlock(&f->lock);
    return any;
}

void ls_first_reading_wait(ls_first_reading *f) {
    pthread_mutex_lock(&f->lock);
    while (f->nthreads) pthread_cond_wait(&f->idle, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

void ls_first_reading_close(ls_first_reading *f) {
    __atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
    ls_first_reading_wait(f);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->idle);
    free(f->jobs);
    free(f);
}
