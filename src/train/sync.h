/* sync.h - replicas of the model that train apart (sync.mode local and diloco): when and how they
 * are brought together.
 *
 * After a training step, Outer may change the common parameters, or a fragment of them, and Adopt
 * give them to the replicas (plan/sync.c). Each is a change of the state of its own, with a number:
 *     3 s + 1   the training step s is done, and Outer follows
 *     3 s + 2   Adopt follows
 *     3 s + 3   the step is complete
 *
 * so that whoever continues an interrupted run knows what is left of the step.
 */
#ifndef LS_TRAIN_SYNC_H
#define LS_TRAIN_SYNC_H

#include "config/config.h"
#include "exec/exec.h"

/* What follows the training step that makes `steps` complete. A fragment is a number from 0 to
 * sync.fragments - 1, or LS_SYNC_ALL. */
enum { LS_SYNC_NOTHING = -2, LS_SYNC_ALL = -1 };
typedef struct ls_sync_due {
    int outer, adopt;
    bool averages;   /* a step of the warm-up */
    int64_t updates; /* of the outer optimizer before, on this fragment */
} ls_sync_due;
ls_sync_due ls_sync_due_after(const ls_config *, int64_t steps);

/* The floats of a fragment: whole parameters in the order of the model. */
void ls_sync_fragment(const ls_config *, const ls_model *, int fragment, size_t *first_p,
                      size_t *end_p);

/* Does the note end a step? Then its number of changes becomes that of complete steps. */
bool ls_sync_whole(const ls_plan *, ls_store_note *);

/* The plan of Outer or Adopt for a fragment, beside the training plan. */
ls_status ls_sync_plan(const ls_config *, const ls_plan *, ls_plan_task task, int fragment,
                       ls_plan *plan_p, ls_error *);

/* Bytes that a worker reads from others in a step, on average after the warm-up: from its own
 * replica's workers, and from others; and what it would read if the model were one. */
typedef struct ls_sync_traffic {
    double within, between, synchronous;
} ls_sync_traffic;
ls_status ls_sync_traffic_of(const ls_config *, const ls_plan *, ls_sync_traffic *t_p, ls_error *);

/* The number of changes with the training step `step`. */
int64_t ls_sync_changes(const ls_config *, const ls_plan *, int64_t step);

struct ls_member;
/* Collective: runs what is due after a training step, of which the state has had `changes`. */
ls_status ls_sync_after(struct ls_member *, const ls_step_in *in, const ls_step_out *out,
                        int64_t changes, ls_error *);

/* LS_EINVAL: workers that share no memory have only shards of the f32 weights of which Deltas are. */
ls_status ls_sync_check(const ls_plan *, const ls_world *, ls_error *);

/* A member's executors for that. */
typedef struct ls_sync ls_sync;
void ls_sync_free(ls_sync *); /* NULL is fine */

#endif
