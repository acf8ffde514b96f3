/* gradient_board.h - what the coordinator, the workers and the servers of one host share.
 *
 * Each worker has a slot with one gradient. Its state goes round:
 *
 *     IDLE ---> GIVEN ---> PUSHED ---> APPLIED ---> IDLE
 *
 *     IDLE     the worker waits
 *     GIVEN    the coordinator has given it the batch of `step`: it pulls and computes
 *     PUSHED   its gradient can be applied; each server records `at`, applies it to its shard, and
 *              sets `applied`
 *     APPLIED  by all servers (seen by the coordinator, which logs it)
 *
 * A slot for a worker of another host (gate.h) may be AWAY: no worker has it. When a worker comes,
 * the slot becomes IDLE; when the worker goes, AWAY, or LOST if it had a batch, which the
 * coordinator then gives to another worker.
 *
 * Only the worker makes the transition to PUSHED, and only the coordinator those to GIVEN and to
 * IDLE. So if any process is killed, its successor finds in the slot what is to be done: a new
 * worker computes the batch of a slot in GIVEN again, and the gradient of a worker that dies after
 * PUSHED is applied without it.
 */
#ifndef LS_ASYNC_GRADIENT_BOARD_H
#define LS_ASYNC_GRADIENT_BOARD_H

#include "async/shard.h"
#include "exec/exec.h"

typedef enum ls_async_state {
    LS_ASYNC_IDLE,
    LS_ASYNC_GIVEN,
    LS_ASYNC_PUSHED,
    LS_ASYNC_AWAY,
    LS_ASYNC_LOST
} ls_async_state;

/* What a worker reports about its gradient. */
typedef struct ls_async_result {
    ls_step_out out;
    ls_optim_step update;
    double data_wait_s;
} ls_async_result;

typedef struct ls_async_slot {
    _Alignas(128) atomic_int state; /* an ls_async_state */
    atomic_llong step;              /* whose batch; from 0 */
    atomic_llong turn;              /* servers apply gradients in the order of their turns */
    ls_bell bell;                   /* the worker's */
    ls_async_result result;
    int64_t base[LS_ASYNC_SHARDS]; /* the version of each shard that was pulled */
    int64_t at[LS_ASYNC_SHARDS];   /* and of each to which the gradient was applied */
    atomic_int applied[LS_ASYNC_SHARDS];
    atomic_int copied; /* the copy has it (mirror.h) */
} ls_async_slot;

/* The copy of the shards on another host (sync.copies 2).
 *
 *     NONE ---> WANTED ---> DRAINED ---> PRESENT ---> NONE
 *
 *     NONE     there is none, or it is lost
 *     WANTED   a host has come for it: no more batches are given out
 *     DRAINED  all gradients are applied: the state is sent, and nobody changes it
 *     PRESENT  a step is complete only when the copy has its gradient
 *
 * The gate makes all transitions but the one to DRAINED, which the coordinator makes. */
typedef enum ls_async_copy {
    LS_ASYNC_COPY_NONE,
    LS_ASYNC_COPY_WANTED,
    LS_ASYNC_COPY_DRAINED,
    LS_ASYNC_COPY_PRESENT
} ls_async_copy;

typedef struct ls_async_board {
    int nworkers, nshards;
    int nlocal;      /* workers of this host; the others' slots follow */
    atomic_int over; /* the run is */
    ls_bell bell;    /* the coordinator's */
    atomic_llong turns;
    atomic_int copy;    /* an ls_async_copy */
    atomic_llong whole; /* steps that were complete at the latest stop, with no others */
    ls_bell copy_bell;  /* the gate's, for the copy */
    ls_bell shard_bells[LS_ASYNC_SHARDS]; /* the servers' */
    ls_async_shard shards[LS_ASYNC_SHARDS];
    ls_async_slot slots[]; /* [nworkers] */
} ls_async_board;

/* Shared memory with slots for workers of this host and of others, and in it nshards shards of the
 * model. */
ls_status ls_async_board_open(int nlocal, int nguests, int nshards, const ls_model *,
                              ls_async_board **b_p, ls_error *);
void ls_async_board_close(ls_async_board *);

/* Is the slot PUSHED, and have all servers applied its gradient? */
bool ls_async_is_applied(const ls_async_board *, const ls_async_slot *);
/* Is the gradient applied, and does the copy have it, if there is one? */
bool ls_async_is_complete(const ls_async_board *, const ls_async_slot *);

#endif
