/* bounded.h - training with bounded staleness (sync.mode: ssp): the main process.
 *
 * It runs the plan of one worker, step by step, as any run does, but computes no gradient: workers
 * have computed them ahead (clocks.h), from the parameters of earlier steps, which are states of
 * the optimizer's (ls_optim.older). So sums, clipping, updates, metrics and checkpoints are those
 * of every run, and with a staleness of 0 the bits are those of sync.mode all_reduce.
 */
#ifndef LS_ASYNC_BOUNDED_H
#define LS_ASYNC_BOUNDED_H

#include "async/nursery.h"
#include "exec/solo.h"

typedef struct ls_bounded ls_bounded;

/* Starts workers, by forks: before this process starts threads. What the config names must outlive
 * it; the state may be set until ls_bounded_stepped() is called first. */
ls_status ls_bounded_open(const ls_async_config *, ls_bounded **b_p, ls_error *);
/* over: workers of other hosts learn that the run is over. NULL is fine. */
void ls_bounded_close(ls_bounded *, bool over);

/* Sets what an executor of the plan needs to get its gradients from the workers. */
void ls_bounded_connect(ls_bounded *, ls_exec_config *);
/* The state is that after `steps` steps: workers may continue. */
void ls_bounded_stepped(ls_bounded *, int64_t steps);
/* Has a worker failed? The executor then gives its step up. */
ls_status ls_bounded_check(ls_bounded *, ls_error *);

/* Appends how many gradients each worker has computed: "12, 14, 5", and all of other hosts. */
void ls_bounded_shares(const ls_bounded *, ls_buf *out);

#endif
