/* model_folder.h - a model's directory that appears whole or not at all: it is written under
 * another name beside its own, and renamed last.
 */
#ifndef LS_WEIGHTS_MODEL_FOLDER_H
#define LS_WEIGHTS_MODEL_FOLDER_H

#include "base/error.h"

typedef struct ls_model_folder {
    char *path; /* that it will have */
    char *at;   /* where it is written */
} ls_model_folder;

/* Makes the directory `at`, and those above it. LS_EINVAL: `path` exists. */
ls_status ls_model_folder_begin(const char *path, ls_model_folder *f_p, ls_error *);
/* Renames it. Either way, ends. On an error, nothing is left. */
ls_status ls_model_folder_end(ls_model_folder *, ls_error *);
void ls_model_folder_discard(ls_model_folder *);

#endif
