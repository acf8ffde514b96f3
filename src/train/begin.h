/* begin.h - how a worker begins: the run's folder, the corpus, what is known of the steps before. */
#ifndef LS_TRAIN_BEGIN_H
#define LS_TRAIN_BEGIN_H

#include "train/loop.h"

/* Collective. Worker 0 makes or takes up the folder; then all read from it. */
ls_status ls_begin_folder(ls_loop *, ls_error *);
/* Collective: after it, the next step can be made. */
ls_status ls_begin_steps(ls_loop *, ls_error *);

#endif
