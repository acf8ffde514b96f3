/* restore.h - restores files that were deleted from a run directory: the tokenizer from a
 * checkpoint's copy; the tokens from the text, if they are the ones that the run was trained on. */
#ifndef LS_DATASET_RESTORE_H
#define LS_DATASET_RESTORE_H

#include <stdbool.h>

#include "config/config.h"

/* Writes tokenizer.json, tokens.bin and corpus.json if `run` lacks them, and logs it. Existing
 * files stay as they are. checkpoint: a good one of the run; NULL: there is none, and nothing has
 * been trained. Without a record (corpus.json) of what a checkpoint was trained on, the text must
 * give the run's tokenizer again.
 * Errors: LS_EINVAL: the text has changed. LS_EIO: it can't be read. Both messages say what to do.
 */
ls_status ls_restore_corpus(const char *run, const char *checkpoint, const ls_config *, ls_error *);

#endif
