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

typedef struct ls_pool ls_pool;
typedef void ls_pool_fn(void *arg, int thread, int nthreads);

ls_status ls_pool_create(int nthreads, ls_pool **p_p, ls_error *);
void ls_pool_free(ls_pool *); /* NULL is allowed */

/* For more threads than cores: from now on threads sleep instead of spinning when they wait. */
void ls_pool_share_cores(ls_pool *);

/* One caller at a time. */
void ls_pool_run(ls_pool *, ls_pool_fn *fn, void *arg);

/* Runs fn for n elements of few operations each: if n is small, the calling thread does the work
 * alone, which takes less time than waking the others. */
void ls_pool_run_sized(ls_pool *, int64_t n, ls_pool_fn *fn, void *arg);

/* The part [*first_p, *end_p) of n items for thread `thread`, cut at multiples of `unit`. */
void ls_pool_share(int64_t n, int64_t unit, int thread, int nthreads, int64_t *first_p,
                   int64_t *end_p);

#endif
