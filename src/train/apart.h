/* apart.h - the steps that replicas make apart (state/apart.h): how many in a row, and their results.
 *
 * After a step that all workers decide, they agree on a number of steps apart: none of these is
 * followed by anything that all take part in, as an exchange, an evaluation or a checkpoint (rounds
 * of gossip may be among neighbours alone), and together they take no longer than half of
 * survival.stop_s, since requests are answered between steps that all decide. Then all get the
 * results of these steps.
 */
#ifndef LS_TRAIN_APART_H
#define LS_TRAIN_APART_H

#include "config/config.h"

struct ls_loop;

/* A worker's steps apart and their results; private to apart.c. */
typedef struct ls_apart_steps ls_apart_steps;
ls_apart_steps *ls_apart_new(void); /* free() it */

/* Steps after `steps` that may be apart, by the config. */
int ls_apart_possible(const ls_config *, int64_t steps);
/* How many steps apart this worker wants to follow; the least that any wants is taken. */
int ls_apart_wanted(const struct ls_loop *);
/* All have agreed on the number. An island is ahead: also a run that is to stop makes the steps. */
bool ls_apart_begin(struct ls_loop *, int agreed);
/* Do steps apart follow? */
bool ls_apart_follow(const ls_apart_steps *);
/* Makes these steps, and the one after them, which all decide. Collective: all get the results of
 * all of them, worker 0 writes them. */
ls_status ls_apart_run(struct ls_loop *, ls_error *);

#endif
