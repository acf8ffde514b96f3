/* begin.h - how a worker begins a view: the run directory, the data, the steps already done. */
#ifndef LS_TRAIN_BEGIN_H
#define LS_TRAIN_BEGIN_H

#include "train/loop.h"

/* Collective. Worker 0 creates or opens the run directory; then all workers read from it. */
ls_status ls_begin_folder(ls_loop *, ls_error *);
/* Collective, when all steps are done: is everything else done, too? A run may have been killed
 * before its last evaluation. */
ls_status ls_begin_is_over(ls_loop *, bool *over_p, ls_error *);
/* Collective. Prepares the next step. */
ls_status ls_begin_steps(ls_loop *, ls_error *);

#endif
