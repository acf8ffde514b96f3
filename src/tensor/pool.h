/* pool.h - the threads of one worker.
 *
 * ls_pool_run() calls a function in every thread of the pool, including the caller's, and returns
 * when all calls have. The result must not depend on the number of threads: a function splits its
 * outputs among them (ls_pool_share), never a sum.
 */
#ifndef LS_TENSOR_POOL_H
#define LS_TENSOR_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Multiply-adds of a product that take as long as an element of few operations. */
enum { LS_POOL_FMAS = 32 };

typedef struct ls_pool ls_pool;
typedef void ls_pool_fn(void *arg, int thread, int nthreads);

ls_status ls_pool_create(int nthreads, ls_pool **p_p, ls_error *);
void ls_pool_free(ls_pool *); /* NULL is allowed */

/* For more threads than cores: from now on threads sleep instead of spinning when they wait. */
void ls_pool_share_cores(ls_pool *);

/* One caller at a time. */
void ls_pool_run(ls_pool *, ls_pool_fn *fn, void *arg);

/* Until it is called again, ls_pool_run() uses no more threads than pay for n elements of few
 * operations each. INFINITY: all. */
void ls_pool_limit(ls_pool *, double n);

/* By the first `nthreads` of the pool's threads; 1: by the caller alone. */
void ls_pool_run_in(ls_pool *, int nthreads, ls_pool_fn *fn, void *arg);

/* How many threads finish n elements of few operations each first: waking one takes as long as some
 * of the elements. At least 1. */
int ls_pool_threads_for(const ls_pool *, double n);

/* Runs fn for n elements of few operations each, by as many threads as pay. */
void ls_pool_run_sized(ls_pool *, int64_t n, ls_pool_fn *fn, void *arg);

/* What the threads did while they were counted, in seconds of processor time. */
typedef struct ls_pool_counts {
    double together; /* jobs of all threads, summed over threads */
    double longest;  /* of each of these jobs, the part that took longest */
    double alone;    /* the caller's outside of these jobs */
} ls_pool_counts;

/* Counts, from now on until ls_pool_counted(). Both by the thread that gives the jobs. */
void ls_pool_count(ls_pool *);
ls_pool_counts ls_pool_counted(ls_pool *);

/* The part [*first_p, *end_p) of n items for thread `thread`, cut at multiples of `unit`. */
void ls_pool_share(int64_t n, int64_t unit, int thread, int nthreads, int64_t *first_p,
                   int64_t *end_p);

#endif
