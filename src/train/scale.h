/* scale.h - the number of workers of a run changes while it trains (`lockstep scale`). */
#ifndef LS_TRAIN_SCALE_H
#define LS_TRAIN_SCALE_H

#include "train/host.h"

/* More workers than this can't be told apart from a mistake, and take time to plan for. */
enum { LS_SCALE_MOST = 256 };

/* Answers a request at the run's control socket, if there is one. By the host that leads. */
void ls_scale_answer(ls_host *);

#endif
