/* data_files.h - the small files that record what a run is trained on. The run directory has them,
 * and each checkpoint has copies.
 *
 *     of a text   tokenizer.json, and corpus.json (corpus_record.h), which a run from before that
 *                 file existed lacks; of pairs reference.json (reference.h), too
 *     of samples  data.json (data_record.h); of ratings and clicks ids.json (source/ids.h), too
 *
 * A run that began with a published model also has published.json (published_record.h).
 */
#ifndef LS_DATASET_DATA_FILES_H
#define LS_DATASET_DATA_FILES_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"

#define LS_TOKENIZER_FILE "tokenizer.json"

enum { LS_DATA_FILES = 4, LS_TOKENIZER_NBYTES = 64 << 20 /* at most */ };

typedef struct ls_data_files {
    int n;
    const char *names[LS_DATA_FILES];
    ls_buf texts[LS_DATA_FILES];
} ls_data_files;

/* Takes the text over. */
void ls_data_files_add(ls_data_files *, const char *name, ls_buf text);
/* Adds published.json, if the run has it. */
ls_status ls_data_files_add_published(ls_data_files *, const char *run, ls_error *);
/* Reads those of a run directory. LS_EINVAL: one is damaged, or is not that of the run's record. On
 * failure there is nothing to free. */
ls_status ls_data_files_read(const char *run, ls_data_files *f_p, ls_error *);
void ls_data_files_free(ls_data_files *);

/* Copies a small file that `run` lacks from the checkpoint (NULL: there is none), if that has it,
 * and logs it. */
ls_status ls_data_file_copy(const char *run, const char *checkpoint, const char *name, bool *done_p,
                            ls_error *);

/* Writes a small file of the run, of which the text is known, if it is missing or differs; logs
 * that it differs. */
ls_status ls_data_file_write(const char *run, const char *name, const ls_buf *text, ls_error *);

#endif
