/* epochs.h - a run's length in epochs (train.epochs) as train.steps.
 *
 * The steps are known once the samples are: for that, a text or conversations must be encoded and
 * packed. So a new run counts before its workers start, and its config.yaml has both keys; a run
 * that resumes with the same train.epochs takes the steps from there.
 */
#ifndef LS_STORAGE_EPOCHS_H
#define LS_STORAGE_EPOCHS_H

#include "dataset/corpus.h"

/* Sets train.steps by the samples that the run is trained on. Without train.epochs all of these
 * functions set nothing. LS_EINVAL: no number of steps fits the config, or the warm-up is longer,
 * as far as that is known without counting samples. */
ls_status ls_epochs_set(ls_config *, uint64_t nsamples, ls_error *);

/* Sets train.steps of a run: by its config.yaml, by its saved data, or by the files that the config
 * names. run: its directory, which may exist already; NULL: a new one. made: gets the corpus that
 * was made to count; the caller frees it. NULL: it is freed here. */
ls_status ls_epochs_resolve(ls_config *, const char *run, ls_corpus *made, ls_error *);

/* For commands that choose the steps of their trainings: train.steps takes the place of
 * train.epochs. */
ls_status ls_epochs_replace(ls_config *, ls_error *);

#endif
