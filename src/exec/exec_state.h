/* exec_state.h - an executor's inside, for the files that it is made of: action.c does what an
 * action says, exec.c runs one worker's two lanes, exec_all.c all workers in one thread.
 */
#ifndef LS_EXEC_EXEC_STATE_H
#define LS_EXEC_EXEC_STATE_H

#include <pthread.h>

#include "exec/exec.h"
#include "net/local/bell.h"

/* One of the two lanes of a step in flight. The bell is rung when the other lane has gone on. */
typedef struct ls_exec_lane {
    ls_bell bell;
    atomic_int done; /* actions complete */
} ls_exec_lane;

/* What one thread has done of both lanes: actions complete. */
typedef struct ls_exec_progress {
    int at[LS_NLANES];
} ls_exec_progress;

/* What a worker has of a step that was broken off. */
typedef enum ls_exec_has {
    LS_HAS_NOTHING,
    LS_HAS_PART, /* of its gradients: its executor goes on where it was */
    LS_HAS_ALL   /* all its gradients, in the store */
} ls_exec_has;

struct ls_exec {
    ls_exec_config c;
    ls_lanes lanes;
    ls_arena_plan places;
    ls_compute compute;
    ls_loader *loader;
    void *arena, *work;
    size_t arena_nbytes, work_nbytes;

    /* operands of the step in flight */
    const ls_step_in *in;
    int aim; /* the virtual worker that is computed in place of its own (ls_exec_aim); -1: none */
    ls_batch batch;
    const uint32_t *tokens;
    float loss_scale;
    bool knows_norm;
    atomic_bool gives_up; /* this worker computes nothing more in this step */
    bool gave_up;         /* one of all workers: nothing is changed */
    ls_adamw_step update;
    ls_step_out out;
    size_t *counts;      /* [nbuckets][shards] elements of each shard */
    ls_request *request; /* the communication in flight, where one thread runs both lanes */

    /* of a step that may be broken off */
    int norm_at;         /* of the compute lane: when all gradients are there */
    bool restarts;       /* sums that were broken off can be made again */
    bool sums_last;      /* communication begins when all gradients are there */
    ls_exec_progress at; /* where one thread runs both lanes */
    int64_t at_step;     /* of which; -1: none */
    ls_exec_has has;     /* when it begins */
    int64_t next_load;

    ls_exec_lane lanes_state[LS_NLANES];
    ls_patience patience;
    pthread_t comm_thread;
    bool has_thread;
    atomic_int given, taken; /* steps, to and from the communication thread; given -1: end */
    atomic_bool failed;      /* one of the lanes */
    ls_status comm_status;
    ls_error comm_error;

    int64_t times[LS_NLANES][LS_NACTION_KINDS]; /* each lane writes its own */
    ls_trace *trace;                            /* NULL: nobody wants to know */
};

/* ---- action.c ---- */

/* A step begins. */
void ls_exec_begin(ls_exec *, const ls_step_in *);
/* Runs any action to its end. */
ls_status ls_exec_run_action(ls_exec *, int index, ls_error *);
ls_status ls_exec_load(ls_exec *, ls_error *);

/* A communication: started, then, when its request is complete, finished. */
ls_status ls_exec_start_comm(ls_exec *, const ls_action *, ls_request **r_p, ls_error *);
void ls_exec_finish_comm(ls_exec *, const ls_action *);

/* Tells where this worker is, and begins to count the time. */
int64_t ls_exec_enter(ls_exec *, int index);
/* Counts it; `complete`: of the action nothing is left to do. */
void ls_exec_leave(ls_exec *, int index, int64_t begin, bool complete);

/* ---- exec.c ---- */

/* Is the next action of a lane there, and are those of the other lane complete that it needs? */
bool ls_exec_is_ready(const ls_exec *, const ls_exec_progress *, ls_lane);
/* Starts the next communication where it may start, and looks whether it is done; `wait`: until it
 * is. */
ls_status ls_exec_move_comm(ls_exec *, ls_exec_progress *, bool wait, ls_error *);

#endif
