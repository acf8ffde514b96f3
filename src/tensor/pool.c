/* pool.c - see pool.h.
 *
 * The caller writes the job and raises `round`; helpers see it, run the job and lower `busy`. Both
 * sides spin for a while and then sleep in the kernel (futex), since a step has many short jobs but
 * a worker may also wait long for others. Threads that share cores sleep at once: spinning would
 * take the core from the threads that they wait for.
 *
 * No wake-up is lost: a sleeper first counts itself, then checks the value a last time; a waker
 * first stores the value, then checks for sleepers.
 */
#include "tensor/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/wait_policy.h"

enum { SPINS = 4000, FEW = 4096 };

struct ls_pool {
    int nthreads;
    pthread_t *helpers; /* [nthreads - 1] */
    ls_pool_fn *fn;
    void *arg;
    atomic_int spins;
    atomic_uint round; /* number of the current job */
    atomic_uint busy;  /* helpers that have not finished the job */
    atomic_int helpers_asleep, caller_asleep;
    atomic_bool quit;
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

static void sleep_while(atomic_uint *word, unsigned value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(atomic_uint *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void wait_for_job(ls_pool *p, unsigned last) {
    int spins = atomic_load_explicit(&p->spins, memory_order_relaxed);
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(&p->round, memory_order_acquire) != last) return;
        pause_briefly();
    }
    atomic_fetch_add(&p->helpers_asleep, 1);
    while (atomic_load(&p->round) == last) sleep_while(&p->round, last);
    atomic_fetch_sub(&p->helpers_asleep, 1);
}

static void wait_for_helpers(ls_pool *p) {
    int spins = atomic_load_explicit(&p->spins, memory_order_relaxed);
    for (int i = 0; i < spins && atomic_load(&p->busy) > 0; i++) pause_briefly();
    if (atomic_load(&p->busy) == 0) return;
    atomic_store(&p->caller_asleep, 1);
    for (unsigned left; (left = atomic_load(&p->busy)) > 0;) sleep_while(&p->busy, left);
    atomic_store(&p->caller_asleep, 0);
}

static void *helper_main(void *arg) {
    helper_start start = *(helper_start *)arg;
    free(arg);
    ls_pool *p = start.pool;
    for (unsigned last = 0;; last++) {
        wait_for_job(p, last);
        if (atomic_load(&p->quit)) return NULL;
        p->fn(p->arg, start.thread, p->nthreads);
        bool last_one = atomic_fetch_sub(&p->busy, 1) == 1;
        if (last_one && atomic_load(&p->caller_asleep)) wake_all(&p->busy);
    }
}

ls_status ls_pool_create(int nthreads, ls_pool **p_p, ls_error *e) {
    ls_pool *p = LS_NEW(ls_pool);
    p->nthreads = 1;
    p->helpers = LS_NEW_ARRAY(pthread_t, (size_t)nthreads);
    atomic_store(&p->spins, ls_wait_is_passive() ? 0 : SPINS);
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
        p->nthreads = i + 1; /* helpers read it only during a job */
    }
    *p_p = p;
    return LS_OK;
}

static void give_job(ls_pool *p) {
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->helpers_asleep)) wake_all(&p->round);
}

void ls_pool_share_cores(ls_pool *p) { atomic_store(&p->spins, 0); }

void ls_pool_free(ls_pool *p) {
    if (!p) return;
    atomic_store(&p->quit, true);
    give_job(p);
    for (int i = 1; i < p->nthreads; i++) pthread_join(p->helpers[i - 1], NULL);
    free(p->helpers);
    free(p);
}

void ls_pool_run(ls_pool *p, ls_pool_fn *fn, void *arg) {
    if (p->nthreads == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store(&p->busy, (unsigned)p->nthreads - 1);
    give_job(p);
    fn(arg, 0, p->nthreads);
    wait_for_helpers(p);
}

void ls_pool_run_sized(ls_pool *p, int64_t n, ls_pool_fn *fn, void *arg) {
    if (n < FEW)
        fn(arg, 0, 1);
    else
        ls_pool_run(p, fn, arg);
}

void ls_pool_share(int64_t n, int64_t unit, int thread, int nthreads, int64_t *first_p,
                   int64_t *end_p) {
    int64_t units = (n + unit - 1) / unit;
    int64_t first = units * thread / nthreads * unit, end = units * (thread + 1) / nthreads * unit;
    *first_p = first < n ? first : n;
    *end_p = end < n ? end : n;
}
