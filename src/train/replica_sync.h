/* replica_sync.h - replicas of the model that train apart (sync.mode local, diloco and gossip):
 * when and how they are synchronized.
 *
 * After a training step, Outer may change the common parameters, or a fragment of them, and Adopt
 * may copy them to the replicas. With gossip, Mix may mix the replicas, and Mean may write their
 * mean (plan/sync.c). Each of these is a change of the state with its own number. The last change
 * of step s, which may be the training step itself, has the number 3 s + 3 and completes the step;
 * the change before it has 3 s + 2, and one before that 3 s + 1. So a worker that continues an
 * interrupted run knows what is left of the step.
 */
#ifndef LS_TRAIN_REPLICA_SYNC_H
#define LS_TRAIN_REPLICA_SYNC_H

#include "config/config.h"
#include "exec/exec.h"

/* What follows the training step that makes `steps` complete. A fragment is a number from 0 to
 * sync.fragments - 1, or LS_SYNC_ALL. */
enum { LS_SYNC_NOTHING = -2, LS_SYNC_ALL = -1 };
typedef struct ls_sync_due {
    int outer, adopt;
    int64_t round;   /* gossip: of Mix */
    bool mean;       /* gossip: Mean */
    bool averages;   /* a step of the warm-up */
    int64_t updates; /* of the outer optimizer before, on this fragment */
} ls_sync_due;
ls_sync_due ls_sync_due_after(const ls_config *, int64_t steps);

/* Does the note end a step? Then its number of changes becomes that of complete steps. */
bool ls_sync_whole(const ls_plan *, ls_store_note *);

/* ---- gossip ---- */

ls_gossip ls_sync_gossip(const ls_config *);
/* The number of rounds for which forecasts are made: the period of the graph; for a random graph
 * LS_SYNC_SAMPLED. */
enum { LS_SYNC_SAMPLED = 16 };
int ls_sync_rounds(const ls_config *);

/* Calls fn for the plan of each synchronization; times: how often it runs in a step, on average. */
typedef ls_status ls_sync_fn(const ls_plan *, double times, void *arg, ls_error *);
ls_status ls_sync_each(const ls_config *, const ls_plan *, ls_sync_fn *, void *arg, ls_error *);

/* Bytes that a worker reads from others in a step, on average after the warm-up: from its own
 * replica's workers, and from others; and what it would read if the model were one. */
typedef struct ls_sync_traffic {
    double within, between, synchronous;
    double mean; /* gossip: for each mean of the replicas, not in the numbers above */
} ls_sync_traffic;
ls_status ls_sync_traffic_of(const ls_config *, const ls_plan *, ls_sync_traffic *t_p, ls_error *);

struct ls_member;
/* For steps of replicas. */
extern const struct ls_step_part ls_sync_part;
/* Collective: runs what is due after a training step, of which the state has had `changes`. */
ls_status ls_sync_after(struct ls_member *, const ls_step_in *in, const ls_step_out *out,
                        int64_t changes, ls_error *);

/* LS_EINVAL: workers that share no memory have only shards of the f32 weights of which Deltas
 * are. */
ls_status ls_sync_check(const ls_plan *, bool shares_memory, ls_error *);

/* A member's executors for that. */
typedef struct ls_sync ls_sync;
void ls_sync_free(ls_sync *); /* NULL is fine */

#endif
