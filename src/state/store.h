/* store.h - the state of a host's workers in memory that outlives them.
 *
 * The process that starts the workers creates the store, and they inherit it: parameters, moments
 * and gradients, a journal of each block, and each worker's note of the latest decided step. A step
 * is decided when some worker knows the norm of the whole gradient: then all gradients are reduced,
 * and whatever happens to the workers, ls_store_repair() can finish the update from the store.
 * Before that, nothing has changed, and the step is repeated.
 *
 * An area is one set of parameters and moments. A sharding group that shares memory has one area
 * for all its workers; otherwise each worker has its own.
 *
 * Islands may be ahead (state/apart.h): between two changes that all workers decide, the workers of
 * an island decide steps alone, and their notes of these steps stand beside those of common
 * changes. So after deaths some blocks may have had more steps than others; ls_store_steps() counts
 * only changes that all islands have had. A round of gossip is decided by the workers of some
 * islands (state/round.h): each of them notes that it is ready, and once one of them has decided
 * the round, or a later change, the round is finished for all of them.
 *
 * Other parts are in store_step.h (the step in flight), store_backup.h (gradients that are computed
 * twice), store_repair.h (after the death of workers), store_blocks.h (copies of the state).
 */
#ifndef LS_STATE_STORE_H
#define LS_STATE_STORE_H

#include "data/order.h"
#include "optim/journal.h"
#include "optim/scaler.h"
#include "share/share.h"

/* The result of a step; the same at all workers. */
typedef struct ls_step_out {
    ls_batch batch;
    double loss;            /* mean over the tokens, in nats */
    double grad_norm;       /* before clipping */
    double notes[LS_NOTES]; /* [nnotes of the model] means of what its loss notes of samples */
    bool skipped;           /* the gradient overflowed */
    ls_noise_step noise;    /* with train.noise_scale */
} ls_step_out;

/* A worker's note of a decided step, or of another decided change of the state. */
typedef struct ls_store_note {
    int64_t steps; /* changes of the state, with this one: without islands, complete steps */
    ls_task task;
    size_t part_first, part_end; /* } as in ls_share_config */
    bool averages;               /* } */
    bool apart; /* decided by the workers of the islands that the worker has, for these alone */
    double lr;  /* } of the training step, or of the one before */
    int64_t updates; /* } */
    ls_optim_step update;
    ls_island_scale islands[LS_PLAN_MAX_ISLANDS];
    ls_step_out out;
    double loss_scale; /* of the training step; changes after it keep it */
    int64_t began_ns;  /* when this step began */
    ls_scaler scaler;  /* after this step */
} ls_store_note;

/* The changes that workers of a host, or of all hosts, have decided beyond the state that all
 * workers have. */
typedef struct ls_store_decided {
    ls_store_note note; /* the newest of all workers; steps 0: none */
    /* Changes that the workers of each island have decided for it alone; 0: none. */
    int64_t islands[LS_PLAN_MAX_ISLANDS];
} ls_store_decided;

typedef struct ls_store ls_store;

typedef struct ls_store_config {
    int most, threads;     /* workers at most, and the threads of each */
    size_t carried_nbytes; /* for the caller, across views: all 0 at first, and never read */
    bool pipes;            /* workers of a later plan may have a part of the layers each */
} ls_store_config;

/* For plans of this model and config. */
ls_status ls_store_make(const ls_share *, const ls_store_config *, ls_store **s_p, ls_error *);
/* The carried bytes, at the beginning of a page. */
void *ls_store_carried(const ls_store *);
void ls_store_free(ls_store *);

/* The store's memory, which workers share (ls_group_attach). */
void *ls_store_memory(ls_store *, size_t *nbytes_p);

/* ---- by workers ---- */

/* In this view the worker's state is in `area`. */
void ls_store_place(ls_store *, int worker, int area);

void *ls_store_params(ls_store *, int area); /* [nfloats] of the plan's compute type */
float *ls_store_state(ls_store *, int area); /* masters (16-bit parameters alone), states */
void *ls_store_grads(ls_store *, int worker);
float *ls_store_errors(ls_store *);          /* of all virtual workers (state/errors.h) */
void *ls_store_room(ls_store *, int worker); /* ls_share.nbytes.room; NULL where that is 0 */
/* For each half and virtual worker, the journal's mark of the steps after which its errors are
 * complete on this host; 0: they are not. */
atomic_uint *ls_store_error_marks(ls_store *);
double *ls_store_sums(ls_store *, int worker); /* parts, then sums */
/* What islands have noted of steps apart, and the marks of these notes (state/apart.h). */
_Atomic double *ls_store_apart_rows(ls_store *);
atomic_llong *ls_store_apart_marks(ls_store *);
/* For this process, in a view that begins at ls_store_steps(): sets the number of changes that each
 * island has had. NULL: none is ahead. */
void ls_store_set_ahead(ls_store *, const ls_share *, const int64_t *changes);
void *ls_store_frozen(ls_store *); /* [frozen_floats] of the plan's compute type, for all workers;
                                    * what is not written takes no memory */
ls_journal ls_store_journal(ls_store *, int worker);

/* The journal's mark of a block after `steps` steps; 0: the block has no state. */
static inline uint32_t ls_store_mark(int64_t steps) { return (uint32_t)steps + 1; }
/* Marks all blocks that the worker owns by the plan: they have their state after `steps` steps. */
void ls_store_mark_filled(ls_store *, const ls_share *, int worker, int64_t steps);
/* The blocks that the worker owns may be wrong: the next view takes the copies of others. */
void ls_store_distrust(ls_store *, int worker);
/* All workers have marked their blocks: the store has the state from now on. The first worker of
 * each host calls it. */
void ls_store_begin(ls_store *, int64_t steps, const ls_scaler *);
/* Records the worker's note: a step is decided, by all workers or (note.apart) its islands'. */
void ls_store_decide(ls_store *, int worker, const ls_store_note *);
/* Records that the worker is ready for a change that the workers of `islands` (bit i - 1 is island
 * i) decide together. NULL, 0: it is ready for none. */
void ls_store_set_ready(ls_store *, int worker, const ls_store_note *, uint64_t islands);

/* Is the state complete? Each view determines it anew. */
typedef enum ls_store_finding {
    LS_STORE_UNKNOWN,
    LS_STORE_WHOLE, /* the workers of this view have all of it */
    LS_STORE_LOST   /* no host has some of it */
} ls_store_finding;
void ls_store_set_finding(ls_store *, ls_store_finding);
ls_store_finding ls_store_get_finding(const ls_store *);

/* ---- between views ---- */

/* The number of changes that the state has had: its steps, or, with islands, ls_share.changes for
 * each step. -1: there is no state yet. */
int64_t ls_store_steps(const ls_store *);
/* The number of complete training steps; -1: there is no state yet. */
int64_t ls_store_trained(const ls_store *);
/* The note of the state's last step; false: none since ls_store_begin(). */
bool ls_store_last_note(const ls_store *, ls_store_note *note_p);
ls_scaler ls_store_scaler(const ls_store *);

/* The newest note of a decided step that the state has not had yet; false: there is none. */
bool ls_store_unfinished_note(const ls_store *, ls_store_note *note_p);

#endif
