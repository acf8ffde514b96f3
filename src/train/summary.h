/* summary.h - what worker 0 prints when a run ends. */
#ifndef LS_TRAIN_SUMMARY_H
#define LS_TRAIN_SUMMARY_H

#include "train/loop.h"

/* What is read from the metrics before they are closed. */
typedef struct ls_summary {
    ls_noise_scale noise; /* train.noise_scale */
    ls_metrics_use used;
} ls_summary;
ls_summary ls_summary_of(const ls_loop *);

/* Prints the results on standard output. */
ls_status ls_summary_print(ls_loop *, const ls_summary *, ls_error *);
/* Logs that the run was complete already. */
void ls_summary_complete(const ls_loop *);

#endif
