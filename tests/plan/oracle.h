/* oracle.h - what a plan does, found by running it on symbols.
 *
 * The oracle takes a plan's actions one after the other and does to symbols what the executor does
 * to numbers. A gradient element is the chain of (layer, virtual worker, micro-batch) terms that
 * were added to it, and sums are trees of chains; a parameter element is its version; an activation
 * is the micro-batch that it belongs to. At the end, every chain must have every term once and in
 * order, and every sum must be the tree over virtual workers.
 *
 * It is written from the definitions (docs/design/plan.md, plan.h) and shares no code with the
 * passes: it reads the plan's settings, buckets and actions, and calls only the functions that
 * number buffers and print actions. So it finds a rule that both the passes and ls_plan_verify()
 * have wrong. It is slow: for small plans.
 *
 * Checked:
 *  - which worker runs which virtual worker; layers and micro-batches come once and in order;
 *  - parameters: present, and of the right version, for each Forward, Recompute, Backward, Update;
 *  - gradients: each owner updates with the whole sum, in the tree's order; each block is squared
 *    once; each loss is counted once;
 *  - gathers: they deliver what is missing, `prefetch` layers ahead;
 *  - buffers: written before they are read, not read after Free, freed right after the last use,
 *    none left in use at the end;
 *  - bytes: what each communication moves.
 */
#ifndef LS_TEST_ORACLE_H
#define LS_TEST_ORACLE_H

#include "plan/plan.h"

enum { ORACLE_MESSAGE = 400 };

typedef struct oracle_result {
    char wrong[ORACLE_MESSAGE];       /* the first fault; empty: none */
    int64_t nbytes[LS_NACTION_KINDS]; /* that all workers read from others, by kind of action */
    int64_t scalars_nbytes;           /* of AllReduce, those for norm and loss */
} oracle_result;

/* Runs the actions in the order `order` [nactions], which the plan's lanes allow. NULL: the plan's
 * own order; then the times of Free and AllGather are checked, too. */
void oracle_run(const ls_plan *, const int *order, oracle_result *r_p);

#endif
