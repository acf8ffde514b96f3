/* pool.c - see pool.h.
 *
 * Threads are the nodes of a tree: FAN children each, the caller at its root. A job goes down the
 * tree and its end comes up: a thread passes the job's number to its children, runs its part, waits
 * for its children and tells its parent. Each thread has a seat of its own, with the two numbers
 * that it and its parent exchange, so a cache line is written by two threads and waited for by one:
 * a job of n threads takes about 2 FAN log(n) / log(FAN) transfers of a line one after another,
 * where a counter that all threads lower would take n (56 threads: 24 for 55). Source:
 * Mellor-Crummey & Scott, "Algorithms for scalable synchronization on shared-memory
 * multiprocessors", ACM TOCS 9 (1991) 21-65, section 3.3.
 *
 * Both sides spin for a while and then sleep in the kernel (futex), since a step has many short
 * jobs but a worker may also wait long for others. Threads that share cores sleep at once: spinning
 * would take the core from the threads that they wait for.
 *
 * No wake-up is lost: a sleeper first says that it sleeps, then checks the value a last time; a
 * waker first stores the value, then checks for a sleeper.
 */
#include "tensor/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/wait_policy.h"

enum {
    SPINS = 4000,
    WORK = 2048, /* elements of few operations, for which waking a thread pays */
    FAN = 4,
    APART = 128 /* a cache line and the one fetched with it */
};

/* How many jobs a thread was given, and how many it and the threads below it have finished. */
typedef struct seat {
    _Alignas(APART) atomic_uint given;
    atomic_uint finished;
    atomic_bool asleep, parent_asleep;
    unsigned jobs; /* the parent's: what it has given */
    double took;   /* processor time of its last part, while parts are counted */
} seat;

struct ls_pool {
    int nthreads;
    int most;           /* in ls_pool_run() */
    int nrunning;       /* in the current job: the first ones */
    pthread_t *helpers; /* [nthreads - 1] */
    seat *seats;        /* [nthreads]; of the caller's only `took` is used */
    ls_pool_fn *fn;
    void *arg;
    atomic_int spins;
    atomic_bool quit;
    bool counts;
    ls_pool_counts counted;
    double alone_since; /* the caller's processor time when it last began to be alone */
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

/* Waits until *word is `value`. Only one thread waits for a word. */
static void wait_until(const ls_pool *p, atomic_uint *word, unsigned value, atomic_bool *asleep) {
    int spins = atomic_load_explicit(&p->spins, memory_order_relaxed);
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) == value) return;
        pause_briefly();
    }
    atomic_store(asleep, true);
    for (unsigned is; (is = atomic_load(word)) != value;)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0);
    atomic_store(asleep, false);
}

static void set(atomic_uint *word, unsigned value, atomic_bool *asleep) {
    atomic_store(word, value);
    if (atomic_load(asleep)) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int first_child(int thread) { return FAN * thread + 1; }

static int end_child(const ls_pool *p, int thread) {
    int end = first_child(thread) + FAN;
    return end < p->nrunning ? end : p->nrunning;
}

static void give(ls_pool *p, int thread) {
    for (int i = first_child(thread); i < end_child(p, thread); i++) {
        seat *s = &p->seats[i];
        set(&s->given, ++s->jobs, &s->asleep);
    }
}

static void wait_for_children(ls_pool *p, int thread) {
    for (int i = first_child(thread); i < end_child(p, thread); i++) {
        seat *s = &p->seats[i];
        wait_until(p, &s->finished, s->jobs, &s->parent_asleep);
    }
}

static void run_part(ls_pool *p, int thread) {
    double begin = p->counts ? ls_clock_thread_s() : 0;
    p->fn(p->arg, thread, p->nrunning);
    if (p->counts) p->seats[thread].took = ls_clock_thread_s() - begin;
}

static void *helper_main(void *arg) {
    helper_start start = *(helper_start *)arg;
    free(arg);
    ls_pool *p = start.pool;
    seat *s = &p->seats[start.thread];
    for (unsigned job = 1;; job++) {
        wait_until(p, &s->given, job, &s->asleep);
        give(p, start.thread);
        if (atomic_load(&p->quit)) return NULL;
        run_part(p, start.thread);
        wait_for_children(p, start.thread);
        set(&s->finished, job, &s->parent_asleep);
    }
}

static seat *seats_of(int n) {
    seat *seats = aligned_alloc(APART, (size_t)n * sizeof *seats);
    if (!seats) abort();
    memset(seats, 0, (size_t)n * sizeof *seats);
    return seats;
}

ls_status ls_pool_create(int nthreads, ls_pool **p_p, ls_error *e) {
    ls_pool *p = LS_NEW(ls_pool);
    p->nthreads = 1;
    p->helpers = LS_NEW_ARRAY(pthread_t, (size_t)nthreads);
    p->seats = seats_of(nthreads);
    atomic_store(&p->spins, ls_wait_is_passive() ? 0 : SPINS);
    for (int i = 1; i < nthreads; i++) {
        helper_start *start = LS_NEW(helper_start);
        *start = (helper_start){p, i};
        int failed = pthread_create(&p->helpers[i - 1], NULL, helper_main, start);
        if (failed) {
            free(start);
            ls_pool_free(p);
            return ls_fail(e, LS_ENOMEM, "parallel.threads: thread %d can't be started: %s", i,
                           ls_thread_why(failed));
        }
        p->nthreads = i + 1; /* helpers read it only during a job */
    }
    p->most = p->nthreads;
    *p_p = p;
    return LS_OK;
}

void ls_pool_share_cores(ls_pool *p) { atomic_store(&p->spins, 0); }

void ls_pool_free(ls_pool *p) {
    if (!p) return;
    atomic_store(&p->quit, true);
    p->nrunning = p->nthreads;
    give(p, 0);
    for (int i = 1; i < p->nthreads; i++) pthread_join(p->helpers[i - 1], NULL);
    free(p->helpers);
    free(p->seats);
    free(p);
}

static void count_parts(ls_pool *p) {
    double most = 0;
    for (int i = 0; i < p->nrunning; i++) {
        double took = p->seats[i].took;
        p->counted.together += took;
        if (took > most) most = took;
    }
    p->counted.longest += most;
    p->alone_since = ls_clock_thread_s();
}

void ls_pool_run_in(ls_pool *p, int nthreads, ls_pool_fn *fn, void *arg) {
    if (nthreads == 1) {
        fn(arg, 0, 1);
        return;
    }
    if (p->counts) p->counted.alone += ls_clock_thread_s() - p->alone_since;
    p->fn = fn;
    p->arg = arg;
    p->nrunning = nthreads;
    give(p, 0);
    run_part(p, 0);
    wait_for_children(p, 0);
    if (p->counts) count_parts(p);
}

void ls_pool_run(ls_pool *p, ls_pool_fn *fn, void *arg) { ls_pool_run_in(p, p->most, fn, arg); }

int ls_pool_threads_for(const ls_pool *p, double n) {
    double threads = n / WORK;
    return threads <= 1 ? 1 : threads < p->nthreads ? (int)threads : p->nthreads;
}

void ls_pool_limit(ls_pool *p, double n) { p->most = ls_pool_threads_for(p, n); }

void ls_pool_count(ls_pool *p) {
    p->counted = (ls_pool_counts){0};
    p->counts = true;
    p->alone_since = ls_clock_thread_s();
}

ls_pool_counts ls_pool_counted(ls_pool *p) {
    p->counts = false;
    p->counted.alone += ls_clock_thread_s() - p->alone_since;
    return p->counted;
}

void ls_pool_run_sized(ls_pool *p, int64_t n, ls_pool_fn *fn, void *arg) {
    ls_pool_run_in(p, ls_pool_threads_for(p, (double)n), fn, arg);
}

void ls_pool_share(int64_t n, int64_t unit, int thread, int nthreads, int64_t *first_p,
                   int64_t *end_p) {
    int64_t units = (n + unit - 1) / unit;
    int64_t first = units * thread / nthreads * unit, end = units * (thread + 1) / nthreads * unit;
    *first_p = first < n ? first : n;
    *end_p = end < n ? end : n;
}
