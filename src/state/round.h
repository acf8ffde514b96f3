/* round.h - a round of Mix between two changes that all workers decide, where workers survive each
 * other: it is decided by the workers of those islands that mix, directly or by way of others.
 *
 * When a worker has laid the mixes of its islands beside the state, it notes in the store that it is
 * ready, and with whom. Then these workers, and no others, wait for each other, in a dissemination
 * barrier: in each turn, a worker sends a byte to one that is 1, 2, 4 ... places further, and gets
 * one from as far before. A worker that leaves the barrier knows that all of them are ready, decides
 * the round, and goes on. If one is lost before it knows, its mixes lie in the store, and the repair
 * finishes the round, since a worker of the others has decided it (store_repair.c). If none has, the
 * parameters of all of them are still those before the round, and it is made again.
 *
 * In a view in which islands are ahead (apart.h), those that have had the round take no part in it.
 * They are never some of those that mix with each other, since these have it together.
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

/* In a new view, before its first round: LS_EPEER: some islands have had a round whose others can't
 * have it any more. All workers get the same answer. */
ls_status ls_round_check(const ls_world *, const ls_share *, int64_t changes, ls_error *);

/* Collective among the workers of these islands: returns when all are ready for the change of the
 * note. tokens: sent and received; they outlive the group. */
ls_status ls_round_meet(const ls_world *, const ls_share *, int worker, const ls_store_note *,
                        unsigned char tokens[2], ls_error *);

#endif
