/* exec_state.h - the internals of the executor, for its files: action.c runs an action, result.c
 * has what a step comes to, copies.c what goes to a device, peers.c sums there, exec.c one worker's
 * two lanes, exec_all.c all workers in one thread.
 */
#ifndef LS_EXEC_EXEC_STATE_H
#define LS_EXEC_EXEC_STATE_H

#include <pthread.h>

#include "exec/codes.h"
#include "exec/encode.h"
#include "exec/exec.h"
#include "exec/factors.h"
#include "exec/on_device.h"
#include "exec/peers.h"
#include "exec/squares.h"
#include "model/held.h"
#include "net/local/bell.h"
#include "plan/progress.h"

/* One of the two lanes of a step in flight. The other lane rings the bell when it has advanced. */
typedef struct ls_exec_lane {
    ls_bell bell;
} ls_exec_lane;

/* A communication of one worker that is in flight, or complete before one that precedes it. */
typedef struct ls_exec_call {
    ls_request *request;
    int64_t begin_ns, end_ns;
} ls_exec_call;

/* What a worker has of a step that was interrupted. */
typedef enum ls_exec_has {
    LS_HAS_NOTHING,
    LS_HAS_PART, /* some of its gradients: its executor continues where it was */
    LS_HAS_ALL   /* all its gradients, in the store */
} ls_exec_has;

struct ls_exec {
    ls_exec_config c;
    ls_lanes lanes;
    ls_arena_plan places; /* in its arena */
    ls_arena_plan there;  /* in that of its device */
    ls_compute compute;
    ls_on_device on; /* where the plan runs layers on a device */
    ls_held held;    /* what it has beside their operands */
    int *copies;     /* [buffers of the plan] the event of a copy that is in flight; -1: none */
    bool *late;      /* [buffers of the plan] in memory that others take (ls_plan_arrives_late()) */
    ls_peers peers;  /* how this device reaches those of other workers, to sum there */
    ls_loader *loader;
    void *arena, *work;
    size_t arena_nbytes, work_nbytes;
    ls_encode_room encodes; /* memory NULL: nothing is encoded */
    ls_codes codes;         /* if codes are sent */
    ls_factors factors;     /* if these are factors */
    ls_squares squares;     /* if the noise scale is measured */
    atomic_bool not_finite; /* a gradient that was encoded in this step */

    /* operands of the step in flight */
    const ls_step_in *in;
    int aim; /* the virtual worker that is computed in place of its own (ls_exec_aim); -1: none */
    ls_batch batch;
    const void *samples;
    bool knows_norm;
    atomic_bool gives_up; /* this worker computes no more in this step */
    bool gave_up;         /* some worker gave up: the state does not change */
    ls_optim_step update;
    ls_island_scale islands[LS_PLAN_MAX_ISLANDS];
    ls_step_out out;
    size_t *counts; /* [nbuckets][shards] elements of each shard */
    /* For messages of some rows (packed.h); NULL: there are none: */
    size_t *lengths;     /* [buffers of the plan] bytes of the latest message of a buffer */
    unsigned char *bits; /* of one message */
    ls_progress at;
    ls_exec_call calls[LS_PROGRESS_WINDOW]; /* by step of the lane, modulo the window's size */
    int ncalls;                             /* in flight */
    ls_request *request;     /* the communication in flight, if one thread runs all workers */
    unsigned char tokens[2]; /* sent and received by workers that decide a round (round.h) */

    bool runs_all; /* each action runs in each step: nothing is compressed, and there are no
                    * islands */

    /* for a step that may be interrupted */
    int norm_at;       /* in the compute lane: all gradients are complete here */
    bool restarts;     /* what was computed before an interruption can be used after it */
    bool sums_last;    /* communication begins only when all gradients are complete */
    int64_t at_step;   /* the step in flight; -1: none */
    ls_exec_has has;   /* at its beginning */
    int64_t next_load; /* the step that the loader gives next */

    ls_exec_lane lanes_state[LS_NLANES];
    ls_patience patience;
    pthread_t comm_thread;
    bool has_thread;
    /* steps given to, and completed by, the communication thread; -1: it ends */
    atomic_int given, taken;
    atomic_bool failed; /* in one of the lanes */
    ls_status comm_status;
    ls_error comm_error;

    int64_t times[LS_NLANES][LS_NACTION_KINDS]; /* each lane writes its own */
    ls_trace *trace;                            /* NULL: nothing is traced */
};

/* Where a bucket's sum of a slot begins. */
static inline char *ls_exec_sum_at(const ls_exec *x, int slot, size_t first) {
    const ls_plan *p = x->c.plan;
    return (char *)x->c.world->grads +
           ((size_t)slot * p->share.floats + first) * ls_dtype_size(p->share.reduce);
}
/* The same on the device, in f32. */
static inline char *ls_exec_sum_there(const ls_exec *x, int slot, size_t first) {
    const ls_share *sh = &x->c.plan->share;
    return x->on.grads + ((size_t)slot * sh->floats + first) * sizeof(float);
}
/* Behind all sums are those that other ranks have sent parts of. */
static inline char *ls_exec_inbox_at(const ls_exec *x, int buffer, size_t first) {
    int slot = ls_plan_buffer_of(x->c.plan, buffer).slot;
    return ls_exec_sum_at(x, x->c.plan->share.workers[x->c.worker].all_slots + slot, first);
}
/* A buffer in the arena, or in the device's; NULL: the worker has none. */
static inline char *ls_exec_buffer(const ls_exec *x, int id) {
    size_t here = x->places.offsets[id];
    if (here != SIZE_MAX) return (char *)x->arena + here;
    size_t there = x->there.offsets ? x->there.offsets[id] : SIZE_MAX;
    return there == SIZE_MAX ? NULL : x->on.arena + there;
}
/* The slot of its first sum over all workers. */
static inline int ls_exec_sum_slot(const ls_exec *x, int bucket) {
    return ls_share_sum_slot(&x->c.plan->share, bucket, x->c.worker);
}

/* ---- action.c ---- */

/* Begins a step. */
void ls_exec_begin(ls_exec *, const ls_step_in *);
/* Does an action run in this step? */
bool ls_exec_runs(const ls_exec *, const ls_action *);
/* Changes of the state with this step. */
int64_t ls_exec_changes(const ls_exec *);
/* Runs an action to its end. */
ls_status ls_exec_run_action(ls_exec *, int index, ls_error *);
ls_status ls_exec_load(ls_exec *, ls_error *);

/* Starts a communication, and finishes it when its request is complete. */
ls_status ls_exec_start_comm(ls_exec *, const ls_action *, ls_request **r_p, ls_error *);
ls_status ls_exec_finish_comm(ls_exec *, const ls_action *, ls_error *);

/* Publishes the action that this worker runs, and returns the time. */
int64_t ls_exec_enter(ls_exec *, int index);
/* Adds the time since `begin`; complete: the action is done. */
void ls_exec_leave(ls_exec *, int index, int64_t begin, bool complete);
/* ls_exec_leave() in two parts: adds the time since `begin`; the communication that ran then is
 * done. */
void ls_exec_spend(ls_exec *, int index, int64_t begin);
void ls_exec_leave_comm(ls_exec *, int index, int64_t begin, int64_t end);

/* ---- copies.c ---- */

/* ToDevice and FromDevice. */
ls_status ls_exec_send(ls_exec *, const ls_action *, ls_error *);
ls_status ls_exec_fetch(ls_exec *, const ls_action *, ls_error *);
/* Writes a part of a sum, as the host has received it, to the device's. */
ls_status ls_exec_take_there(ls_exec *, const ls_action *, const void *from, ls_error *);
/* Waits for copies of what the action uses on the host. */
ls_status ls_exec_await_copies(ls_exec *, const ls_action *, ls_error *);
/* Free of a buffer in the device's arena: what is queued from now on may use its place. */
void ls_exec_end_copy(ls_exec *, int buffer);
/* Once the device is open. */
void ls_exec_open_copies(ls_exec *);
/* Where the state is on the device: sends it there, the first time. */
void ls_exec_send_state(ls_exec *);
/* What an update of a bucket changes there, where the worker owns it. */
ls_flat ls_exec_flat_there(const ls_exec *, int bucket);

/* ---- peers.c ---- */

/* Begins a sum or a gather on devices, and queues it when the request is done. */
ls_status ls_exec_start_peers(ls_exec *, ls_group *, ls_request **r_p, ls_error *);
ls_status ls_exec_finish_peers(const ls_exec *, const ls_action *, ls_error *);

/* ---- result.c ---- */

/* How many samples of the batch an island has; island 0: the whole batch. */
uint64_t ls_exec_island_count(const ls_exec *, int island);
/* Sums the squares of the worker's shards. */
ls_status ls_exec_norm(ls_exec *);
/* ReplicaNorm, and Decide: sums over workers, and the result that follows from them. */
ls_status ls_exec_start_norm(ls_exec *, const ls_action *, ls_request **r_p, ls_error *);
void ls_exec_finish_norm(ls_exec *, const ls_action *);
ls_status ls_exec_start_decision(ls_exec *, const ls_action *, ls_request **r_p, ls_error *);
void ls_exec_finish_decision(ls_exec *);

/* ---- message.c ---- */

/* Memory for messages of some rows. */
void ls_exec_open_messages(ls_exec *);
void ls_exec_close_messages(ls_exec *);
ls_status ls_exec_start_message(ls_exec *, const ls_action *, ls_request **r_p, ls_error *);
/* LS_EDISAGREE: what has arrived is no such message. */
ls_status ls_exec_finish_message(ls_exec *, const ls_action *, ls_error *);

/* ---- exec.c ---- */

/* Starts all communications that may begin, and tests those in flight; wait: waits until one of
 * them is complete, unless one was already. */
ls_status ls_exec_move_comm(ls_exec *, bool wait, ls_error *);
/* Runs the next action of the lane that computes. */
ls_status ls_exec_compute_next(ls_exec *, ls_error *);

#endif
