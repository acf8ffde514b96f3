/* best.h - the lowest validation loss so far: its checkpoint is kept, and a run ends where it no
 * longer falls (checkpoint.best, train.patience).
 *
 * Evaluations over train.eval_samples count; the one over the whole validation part, after the last
 * step, is another measure. All workers have the same, since a loss has the same bits on each. From
 * view to view it lies in the store's flags; a run that goes on finds it in the manifests of the
 * checkpoints up to its step, so that it decides as one that was never interrupted.
 */
#ifndef LS_STORAGE_BEST_H
#define LS_STORAGE_BEST_H

#include "config/config.h"
#include "exec/store.h"
#include "storage/checkpoint.h"

typedef struct ls_best {
    int64_t step; /* after which the loss was the lowest; 0: there is none yet */
    double loss;
    int64_t val_step; /* of the latest evaluation; 0: none */
    double val_loss;
    int64_t nsamples; /* of each evaluation: others don't compare */
} ls_best;

/* Is the best checkpoint kept? */
bool ls_best_is_kept(const ls_config *);
/* An evaluation after so many steps, the latest; may be noted again. */
void ls_best_note(ls_best *, int64_t step, double loss);
/* Does the run end after `steps` steps, since the loss has not fallen for train.patience
 * evaluations? */
bool ls_best_ends(const ls_best *, const ls_config *, int64_t steps);
/* Evaluations since that of the best. */
int64_t ls_best_since(const ls_best *, const ls_config *, int64_t steps);

/* For views to come. */
void ls_best_save(const ls_best *, ls_store *);
void ls_best_load(ls_best *, const ls_store *);
/* Of a run that goes on after `step`, from its checkpoints; nsamples is set. */
void ls_best_find(ls_best *, const char *run, int64_t step);

/* What the checkpoint of `step` says of it. */
void ls_best_describe(const ls_best *, const ls_config *, int64_t step, ls_checkpoint_extra *);

#endif
