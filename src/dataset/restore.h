/* restore.h - restores files that were deleted from a run directory: the tokenizer from a
 * checkpoint's copy; the tokens from the text, if they are the ones that the run was trained on. */
#ifndef LS_DATASET_RESTORE_H
#define LS_DATASET_RESTORE_H

#include <stdbool.h>

#include "config/config.h"

/* Copies a small file that `run` lacks from the checkpoint (NULL: there is none), if that has it,
 * and logs it. */
ls_status ls_restore_copy(const char *run, const char *checkpoint, const char *name, bool *done_p,
                          ls_error *);

/* Writes a small file of the run, of which the text is known, if it is missing or differs; logs that
 * it differs. */
ls_status ls_restore_text(const char *run, const char *name, const ls_buf *text, ls_error *);

/* Writes tokenizer.json, tokens.bin and corpus.json if `run` lacks them, and logs it. Existing
 * files stay as they are. checkpoint: a good one of the run; NULL: there is none, and nothing has
 * been trained. Without a record (corpus.json) of what a checkpoint was trained on, the text must
 * give the run's tokenizer again.
 * Errors: LS_EINVAL: the text has changed. LS_EIO: it can't be read. Both messages say what to do.
 */
ls_status ls_restore_corpus(const char *run, const char *checkpoint, const ls_config *, ls_error *);

#endif
