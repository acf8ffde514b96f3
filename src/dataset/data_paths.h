/* data_paths.h - the files that a config names, by paths that may be relative to the directory in
 * which the run began: it may be resumed or evaluated in another one. */
#ifndef LS_DATASET_DATA_PATHS_H
#define LS_DATASET_DATA_PATHS_H

#include "config/config.h"

/* In which directory are all files that the config names? *dir_p: NULL: the working directory; else
 * `began`, where the run began ("": that is not known). LS_EIO: in neither; the message names the
 * key and its first file that is not there, and says what to do. */
ls_status ls_data_paths_find(const ls_config *, const char *began, const char **dir_p, ls_error *);
/* Checks that the files of a new run exist: those of data.path, data.labels, data.val_path and
 * data.val_labels. LS_EIO: one does not; the message names its key. Whoever opens a pattern, an
 * address or data.mix reports what these lack. */
ls_status ls_data_paths_check(const ls_config *, ls_error *);

#endif
