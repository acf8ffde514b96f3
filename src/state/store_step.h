/* store_step.h - the step in flight: what survivors retain of it if it is interrupted
 * (exec/exec.h).
 */
#ifndef LS_STATE_STORE_STEP_H
#define LS_STATE_STORE_STEP_H

#include "coll/algo/mark.h"
#include "state/store.h"

/* All gradients of the worker are complete, and are summed over workers next. */
void ls_store_set_computed(ls_store *, int worker, int64_t step);
bool ls_store_has_computed(const ls_store *, int worker, int64_t step);
/* The mark in which a collective records the worker's progress with the sum of a bucket: in its
 * sharding group, or among replicas. */
ls_call_mark ls_store_sum_mark(ls_store *, int worker, int bucket, bool replicas, int64_t step);
/* *some_p: is a sum complete? *half_p: is one half made, so that the step must be repeated? */
void ls_store_check_sums(const ls_store *, int worker, int64_t step, bool *some_p, bool *half_p);
/* All workers must repeat the step: ls_store_check_sums() says so from now on. */
void ls_store_give_up_step(ls_store *, int worker, int64_t step);
/* Discards all that the worker has done in it. */
void ls_store_forget_step(ls_store *, int worker);

#endif
