/* record_advice.h - advice in errors of the records that a run directory has of its data. */
#ifndef LS_DATASET_RECORD_ADVICE_H
#define LS_DATASET_RECORD_ADVICE_H

#include "base/error.h"

#define LS_MANIFEST_FILE "manifest.json" /* a directory that has it is a checkpoint */

/* Returns s, with which reading a record in `dir` has ended. If that is LS_EINVAL, the record is
 * damaged: adds what to do, unless the directory is a checkpoint. */
ls_status ls_record_advise(const char *dir, ls_status s, ls_error *);

#endif
