/* round.h - a round of gossip (LS_TASK_MIX) between two changes that all workers decide, in runs
 * whose workers survive each other. The round is decided by the workers of the islands that mix,
 * directly or through other islands.
 *
 * When a worker has written the mixes of its islands beside the state, it notes in the store that
 * it is ready, and with which islands. Then the workers of these islands, and no others, wait for
 * each other in a dissemination barrier: in each turn, a worker sends a byte to the worker that is
 * 1, 2, 4 ... places further, and receives one from the worker that is as far before. A worker that
 * leaves the barrier knows that all of them are ready, decides the round, and continues. If a
 * worker is lost before it leaves the barrier, its mixes are in the store: if another worker has
 * decided the round, the repair finishes it (store_repair.c); if none has, the parameters of all
 * these islands are still those before the round, and the round is made again.
 *
 * In a view in which islands are ahead (apart.h), islands that have had the round take no part in
 * it. Islands that mix with each other have had the round either all or not at all, since they
 * decide it together.
 *
 * Source: Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", Int. J. Parallel
 * Programming 17 (1988) 1-17.
 */
#ifndef LS_STATE_ROUND_H
#define LS_STATE_ROUND_H

#include "state/world.h"

/* The islands that decide a round together with those of the worker, which has `changes`: bit i - 1
 * is island i. 0: the worker's islands have had the round. */
uint64_t ls_round_islands(const ls_world *, const ls_share *, int worker, int64_t changes);

/* To be called in a new view before its first round. LS_EPEER: some islands have had a round that
 * the other islands of it can't have any more. All workers get the same answer. */
ls_status ls_round_check(const ls_world *, const ls_share *, int64_t changes, ls_error *);

/* Collective among the workers of these islands: returns when all are ready for the change of the
 * note. tokens: sent and received; they must outlive the group. */
ls_status ls_round_meet(const ls_world *, const ls_share *, int worker, const ls_store_note *,
                        unsigned char tokens[2], ls_error *);

#endif
