/* apart.h - the steps that replicas make apart (state/apart.h): how many in a row, and their results.
 *
 * After a step that all workers decide, they agree on a number of steps apart: none of these is
 * followed by anything that all take part in, as an exchange, an evaluation or a checkpoint (rounds
 * of gossip may be among neighbours alone), and
 * together they take no longer than half of survival.stop_s, since requests are answered between
 * steps that all decide. Then all get the results of these steps.
 */
#ifndef LS_TRAIN_APART_H
#define LS_TRAIN_APART_H

#include "exec/exec.h"
#include "report/metrics.h"
#include "state/apart.h"
#include "train/run.h"

typedef struct ls_apart_steps {
    int left; /* steps apart that follow */
    int n;    /* since the latest step that all decided */
    bool
        must; /* an island is ahead: also a run that is to stop makes them, and the step after them */
    double seconds; /* that the latest step took */
    ls_step_in in[LS_APART_MOST];
    ls_step_out out[LS_APART_MOST];
    ls_step_time time[LS_APART_MOST];
} ls_apart_steps;

struct ls_loop;
struct ls_member;

/* Steps after `steps` that may be apart, by the config. */
int ls_apart_possible(const ls_config *, int64_t steps);
/* How many steps apart this worker wants to follow; the least that any wants is taken. */
int ls_apart_wanted(const struct ls_loop *);
/* All have agreed on the number. */
void ls_apart_begin(struct ls_loop *, int agreed);
/* After a step. Collective if it is the last one apart: all get the results, worker 0 writes them. */
ls_status ls_apart_stepped(struct ls_loop *, const ls_step_in *, const ls_step_out *,
                           const ls_step_time *, ls_error *);

#endif
