/* moments.h - means and deviations of numbers of the training part (data.normalize: auto). */
#ifndef LS_DATASET_MOMENTS_H
#define LS_DATASET_MOMENTS_H

#include "config/config.h"
#include "data/split.h"
#include "source/source.h"

/* Replaces data.normalize by what it is of the fields of the model that have numbers
 * (networks/scales.h), whose samples `files` has as the files have them, and logs it. It is left as
 * it is where there are none. The bits do not depend on threads. LS_EINVAL: a number is not
 * finite. */
ls_status ls_moments_measure(ls_config *, const ls_source *files, const ls_split *, ls_error *);

#endif
