/* store_step.h - the step in flight, of which workers that stay keep what is done (exec/exec.h). */
#ifndef LS_EXEC_STORE_STEP_H
#define LS_EXEC_STORE_STEP_H

#include "coll/algo/mark.h"
#include "exec/store.h"

/* All gradients of the worker are there, and are to be summed over workers now. */
void ls_store_set_computed(ls_store *, int worker, int64_t step);
bool ls_store_has_computed(const ls_store *, int worker, int64_t step);
/* Where it notes what it has summed of a bucket: among those with whom it is sharded, or
 * (replicas) those with the same shard. */
ls_call_mark ls_store_sum_mark(ls_store *, int worker, int bucket, bool replicas, int64_t step);
/* Is something summed? And something half, so that the step has to be done again? */
void ls_store_check_sums(const ls_store *, int worker, int64_t step, bool *some_p, bool *half_p);
/* It is to be done again by all: looks like half a sum. */
void ls_store_give_up_step(ls_store *, int worker, int64_t step);
/* Nothing that the worker has done of it counts any more. */
void ls_store_forget_step(ls_store *, int worker);

#endif
