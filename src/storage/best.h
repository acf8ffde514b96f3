/* best.h - the lowest validation loss so far: its checkpoint is retained, and a run ends when the
 * loss no longer falls (checkpoint.best, train.patience).
 *
 * Only evaluations over train.eval_samples count; the one over the whole validation part, after the
 * last step, is a different measure. All workers have the same values, since a loss has the same
 * bits on each. They pass from view to view in shared memory (ls_best_state); a resumed run finds
 * them in the manifests of the checkpoints up to its step, so it decides as an uninterrupted run
 * would.
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
    int64_t nsamples; /* of each evaluation; losses over another number are not comparable */
} ls_best;

/* What a host's workers leave for later views, in memory that outlives them; initially zero.
 *
 * (1) The valid note is notes[latest], and it is complete. A new note is written to the other
 *     place; then `latest` names that place. So a worker that is killed in between leaves the old
 *     note.
 * (2) All workers of a host note the same values, and no worker notes new ones before all have
 *     noted these: an evaluation is collective. A worker that finds its values there writes
 *     nothing. Two workers that write at once write the same values.
 * (3) An evaluation is complete once it is noted. If the workers were killed before that, the next
 *     view evaluates again, to the same bits.
 */
typedef struct ls_best_record {
    atomic_llong step, val_step, nsamples;
    _Atomic double loss, val_loss;
} ls_best_record;
typedef struct ls_best_state {
    atomic_int latest;
    ls_best_record notes[2];
} ls_best_state;

/* Does each evaluation with a new lowest loss write a checkpoint? */
bool ls_best_is_sought(const ls_config *);
/* Does the best of the checkpoints stay when it is no longer one of the newest? */
bool ls_best_is_retained(const ls_config *);
/* Notes the latest evaluation, after `step` steps; the same one may be noted again. */
void ls_best_note(ls_best *, int64_t step, double loss);
/* Does the run end after `steps` steps because the loss has not fallen for train.patience
 * evaluations? */
bool ls_best_ends(const ls_best *, const ls_config *, int64_t steps);
/* The number of evaluations since the best one. */
int64_t ls_best_since(const ls_best *, const ls_config *, int64_t steps);

/* Saves it for later views. */
void ls_best_save(const ls_best *, ls_best_state *);
void ls_best_load(ls_best *, const ls_best_state *);
/* Finds the best in the checkpoints of a run that resumes after `step`; nsamples is set. */
void ls_best_find(ls_best *, const char *run, int64_t step);

/* Is a run whose newest checkpoint is of `step` over: does it have all its steps, or has its loss
 * not fallen for train.patience evaluations? By what its checkpoints say. */
bool ls_best_is_over(const char *run, const ls_config *, int64_t step);

/* Sets what the checkpoint of `step` will record. */
void ls_best_describe(const ls_best *, const ls_config *, int64_t step, ls_checkpoint_extra *);

#endif
