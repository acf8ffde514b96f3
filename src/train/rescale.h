/* rescale.h - the number of workers of a run changes while it trains (`lockstep scale`). */
#ifndef LS_TRAIN_RESCALE_H
#define LS_TRAIN_RESCALE_H

#include "train/host.h"

/* A larger number is probably a mistake, and takes long to plan. */
enum { LS_SCALE_MOST = 256 };

/* Answers a request at the run's control socket, if there is one. The leading host calls it. */
void ls_scale_answer(ls_host *);

#endif
