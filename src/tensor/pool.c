/* pool.c - see pool.h.
 *
 * The caller writes the job and raises `round`; helpers see it, run the job and lower `busy`. Both
 * sides spin a little and then sleep on a condition variable, since a step has many short jobs but
 * a worker may also wait long for others.
 */
#include "tensor/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SPINS = 4000 };

struct ls_pool {
    int nthreads;
    pthread_t *helpers; /* [nthreads - 1] */
    ls_pool_fn *fn;
    void *arg;
    atomic_uint round; /* of jobs given out */
    atomic_int busy;   /* helpers still in the job */
    atomic_bool quit;
    pthread_mutex_t mutex;
    pthread_cond_t job_given, job_done;
};

typedef struct helper_start {
    ls_pool *pool;
    int thread;
} helper_start;

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void wait_for_job(ls_pool *p, unsigned last) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->round, memory_order_acquire) != last) return;
        pause_briefly();
    }
    pthread_mutex_lock(&p->mutex);
    while (atomic_load(&p->round) == last) pthread_cond_wait(&p->job_given, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

static void *helper_main(void *arg) {
    helper_start start = *(helper_start *)arg;
    free(arg);
    ls_pool *p = start.pool;
    for (unsigned last = 0;; last++) {
        wait_for_job(p, last);
        if (atomic_load(&p->quit)) return NULL;
        p->fn(p->arg, start.thread, p->nthreads);
        if (atomic_fetch_sub(&p->busy, 1) == 1) {
            pthread_mutex_lock(&p->mutex);
            pthread_cond_signal(&p->job_done);
            pthread_mutex_unlock(&p->mutex);
        }
    }
}

ls_status ls_pool_create(int nthreads, ls_pool **p_p, ls_error *e) {
    ls_pool *p = LS_NEW(ls_pool);
    p->nthreads = 1;
    p->helpers = LS_NEW_ARRAY(pthread_t, (size_t)nthreads);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->job_given, NULL);
    pthread_cond_init(&p->job_done, NULL);
    for (int i = 1; i < nthreads; i++) {
        helper_start *start = LS_NEW(helper_start);
        *start = (helper_start){p, i};
        int failed = pthread_create(&p->helpers[i - 1], NULL, helper_main, start);
        if (failed) {
            free(start);
            ls_pool_free(p);
            return ls_fail(e, LS_ENOMEM, "parallel.threads: thread %d can't be started: %s", i,
                           strerror(failed));
        }
        p->nthreads = i + 1; /* helpers read it only in a job */
    }
    *p_p = p;
    return LS_OK;
}

static void give_job(ls_pool *p) {
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add_explicit(&p->round, 1, memory_order_release);
    pthread_cond_broadcast(&p->job_given);
    pthread_mutex_unlock(&p->mutex);
}

void ls_pool_free(ls_pool *p) {
    if (!p) return;
    atomic_store(&p->quit, true);
    give_job(p);
    for (int i = 1; i < p->nthreads; i++) pthread_join(p->helpers[i - 1], NULL);
    pthread_cond_destroy(&p->job_done);
    pthread_cond_destroy(&p->job_given);
    pthread_mutex_destroy(&p->mutex);
    free(p->helpers);
    free(p);
}

int ls_pool_size(const ls_pool *p) { return p->nthreads; }

void ls_pool_run(ls_pool *p, ls_pool_fn *fn, void *arg) {
    if (p->nthreads == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store(&p->busy, p->nthreads - 1);
    give_job(p);
    fn(arg, 0, p->nthreads);
    for (int i = 0; i < SPINS && atomic_load(&p->busy) > 0; i++) pause_briefly();
    if (atomic_load(&p->busy) == 0) return;
    pthread_mutex_lock(&p->mutex);
    while (atomic_load(&p->busy) > 0) pthread_cond_wait(&p->job_done, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

void ls_pool_share(int64_t n, int64_t unit, int thread, int nthreads, int64_t *first_p,
                   int64_t *end_p) {
    int64_t units = (n + unit - 1) / unit;
    int64_t first = units * thread / nthreads * unit, end = units * (thread + 1) / nthreads * unit;
    *first_p = first < n ? first : n;
    *end_p = end < n ? end : n;
}
