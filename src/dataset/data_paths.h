/* data_paths.h - the files that a config names, by paths that may be relative to the directory in
 * which the run began: it may be resumed or evaluated in another one. */
#ifndef LS_DATASET_DATA_PATHS_H
#define LS_DATASET_DATA_PATHS_H

#include "config/config.h"

/* In which directory are all files that the config names? *dir_p: NULL: the working directory; else
 * `began`, where the run began ("": that is not known). LS_EIO: in neither; the message names the
 * first file and says what to do. */
ls_status ls_data_paths_find(const ls_config *, const char *began, const char **dir_p, ls_error *);
/* Of a new run: are the files there that data.path, labels, val_path and val_labels name? LS_EIO: one
 * is not; the message names its key. A pattern, an address and data.mix are left to those who open
 * them. */
ls_status ls_data_paths_check(const ls_config *, ls_error *);

#endif
