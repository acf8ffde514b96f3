/* best.h - the lowest validation loss so far: its checkpoint is kept, and a run ends where it no
 * longer falls (checkpoint.best, train.patience).
 *
 * Evaluations over train.eval_samples count; the one over the whole validation part, after the last
 * step, is another measure. All workers have the same, since a loss has the same bits on each. From
 * view to view it lies in shared memory (ls_best_state); a run that goes on finds it in the
 * manifests of the checkpoints up to its step, so that it decides as one that was never interrupted.
 */
#ifndef LS_STORAGE_BEST_H
#define LS_STORAGE_BEST_H

#include <stdatomic.h>

#include "config/config.h"
#include "storage/checkpoint.h"

typedef struct ls_best {
    int64_t step; /* after which the loss was the lowest; 0: there is none yet */
    double loss;
    int64_t val_step; /* of the latest evaluation; 0: none */
    double val_loss;
    int64_t nsamples; /* of each evaluation: others don't compare */
} ls_best;

/* What a host's workers leave for views to come, in memory that outlives them; zero at first.
 *
 * (1) The note that counts is notes[latest], and it is complete. A new one is written to the other
 *     place; then `latest` names that. So a worker that is killed in the middle leaves the old note.
 * (2) All workers of a host note the same values, and none of them notes others before all have
 *     noted these: an evaluation is collective. A worker that finds its values there writes nothing.
 *     Two that write at once write the same.
 * (3) An evaluation counts as done after it is noted. Where the worker that noted it was killed
 *     before that, the next view evaluates again, to the same bits.
 */
typedef struct ls_best_record {
    atomic_llong step, val_step, nsamples;
    _Atomic double loss, val_loss;
} ls_best_record;
typedef struct ls_best_state {
    atomic_int latest;
    ls_best_record notes[2];
} ls_best_state;

/* Is the best checkpoint kept? */
bool ls_best_is_retained(const ls_config *);
/* Notes the latest evaluation, after `step` steps; it may be noted again. */
void ls_best_note(ls_best *, int64_t step, double loss);
/* Does the run end after `steps` steps, since the loss has not fallen for train.patience
 * evaluations? */
bool ls_best_ends(const ls_best *, const ls_config *, int64_t steps);
/* Evaluations since that of the best. */
int64_t ls_best_since(const ls_best *, const ls_config *, int64_t steps);

/* For views to come. */
void ls_best_save(const ls_best *, ls_best_state *);
void ls_best_load(ls_best *, const ls_best_state *);
/* Finds the best in the checkpoints of a run that resumes after `step`; nsamples is set. */
void ls_best_find(ls_best *, const char *run, int64_t step);

/* Sets what the checkpoint of `step` records. */
void ls_best_describe(const ls_best *, const ls_config *, int64_t step, ls_checkpoint_extra *);

#endif
