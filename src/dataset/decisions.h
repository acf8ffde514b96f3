/* decisions.h - what the data of a run decide of its config: fields and classes of its model, the
 * size of its images, means and deviations, steps. A run that has begun keeps what was decided, and
 * one that begins with the weights of another (train.from) takes what was decided for that one.
 */
#ifndef LS_DATASET_DECISIONS_H
#define LS_DATASET_DECISIONS_H

#include "config/config.h"

/* Sets what the config leaves open of its model (networks/network.h): as the run's config.yaml has
 * it (run: its directory; NULL: a new one), else as the files that the config names decide.
 * LS_EINVAL, LS_EIO: the files can't decide. */
ls_status ls_decisions_take(ls_config *, const char *run, ls_error *);

/* Does the number of rows decide the steps of a new run? */
bool ls_decisions_have_steps(const ls_config *);

#endif
