/* summary.h - what worker 0 prints when a run ends. */
#ifndef LS_TRAIN_SUMMARY_H
#define LS_TRAIN_SUMMARY_H

#include "train/loop.h"

/* Prints the results on standard output. */
ls_status ls_summary_print(ls_loop *, ls_error *);
/* Logs that the run was complete before it began. */
void ls_summary_complete(const ls_loop *);

#endif
