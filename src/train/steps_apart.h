/* steps_apart.h - the steps that replicas make apart (state/apart.h): how many are made in a row,
 * and their results.
 *
 * After a step that all workers decide, the workers agree on a number of steps apart. None of these
 * steps is followed by anything that all workers take part in, such as an exchange, an evaluation
 * or a checkpoint (a round of gossip among neighbours may follow). Together they take at most half
 * of survival.stop_s, since requests are answered only between steps that all workers decide. Then
 * all workers get the results of these steps.
 */
#ifndef LS_TRAIN_STEPS_APART_H
#define LS_TRAIN_STEPS_APART_H

#include "config/config.h"

struct ls_loop;

/* A worker's steps apart and their results; private to steps_apart.c. */
typedef struct ls_apart_steps ls_apart_steps;
ls_apart_steps *ls_apart_new(void); /* free() it */

/* The number of steps after step `steps` that may be made apart, by the config. */
int ls_apart_possible(const ls_config *, int64_t steps);
/* The number of steps apart that this worker wants; the least number that any worker wants is
 * taken. */
int ls_apart_wanted(const struct ls_loop *);
/* Begins the agreed number of steps apart. If an island is ahead, a run that is to stop makes these
 * steps, too. */
bool ls_apart_begin(struct ls_loop *, int agreed);
/* Are the next steps to be made apart? */
bool ls_apart_follow(const ls_apart_steps *);
/* Makes the steps apart, and the step after them, which all workers decide. Collective: all workers
 * get the results of all these steps, and worker 0 writes them. */
ls_status ls_apart_run(struct ls_loop *, ls_error *);

#endif
