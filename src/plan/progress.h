/* progress.h - where a worker is in its two lanes (project.c), and which of their steps may begin.
 *
 * Computations run one after the other. Messages (Send) begin as soon as what they need is there,
 * also before others that stand before them in the lane and can't begin yet: a worker that waits
 * for another stage still exchanges slices with its neighbours. Messages from one worker to another
 * begin in the order of the plan on both. Other communications begin when all before them are
 * complete, and no message begins before one that precedes it.
 *
 * The earliest action that is not complete on all its workers may begin on each of them, so workers
 * never wait for each other in a circle.
 *
 * The executor's two threads may use it at once: one advances the lane that computes, one the
 * other.
 */
#ifndef LS_PLAN_PROGRESS_H
#define LS_PLAN_PROGRESS_H

#include <stdatomic.h>

#include "plan/plan.h"

/* Steps of the communication lane, from the first that is not complete on, of which any may
 * begin. */
enum { LS_PROGRESS_WINDOW = 128 };

typedef struct ls_progress {
    const ls_lanes *lanes;
    atomic_int at[LS_NLANES]; /* steps that are complete, and all before them are */
    atomic_uchar
        states[LS_PROGRESS_WINDOW]; /* of communications in the window, by step modulo its size */
    atomic_bool changed;            /* a communication may begin that could not before */
} ls_progress;

/* Begins anew at a step of the lane that computes. */
void ls_progress_begin(ls_progress *, const ls_lanes *, int compute);

bool ls_progress_may_compute(const ls_progress *);
void ls_progress_computed(ls_progress *);

/* A communication that may begin; -1: none may. */
int ls_progress_next(ls_progress *);
void ls_progress_begun(ls_progress *, int step);
/* Has it begun, and is not complete? */
bool ls_progress_is_begun(const ls_progress *, int step);
void ls_progress_complete(ls_progress *, int step);

bool ls_progress_is_over(const ls_progress *);
/* One more than the last step of the communication lane that can have begun. */
int ls_progress_end(const ls_progress *);

#endif
