/* summary.h - worker 0's last words about a run. */
#ifndef LS_TRAIN_SUMMARY_H
#define LS_TRAIN_SUMMARY_H

#include "train/loop.h"

/* On standard output. */
ls_status ls_summary_print(ls_loop *, ls_error *);
/* There was nothing to do. */
void ls_summary_complete(const ls_loop *);

#endif
