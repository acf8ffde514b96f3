/* trial.h - one training of a search: a run directory, trained by this program as another process
 * up to some step (runner.h). What is trained already is not trained again, so a command that was
 * killed continues where it was.
 */
#ifndef LS_SEARCH_TRIAL_H
#define LS_SEARCH_TRIAL_H

#include "config/config.h"

typedef struct ls_trial {
    char *dir;               /* the run directory; DIR.yaml and DIR.log beside it: config, output */
    const ls_config *config; /* needed until it has begun */
    int64_t until;           /* the step up to which it is trained, at least */
    const char *const *more; /* [nmore] further options of `lockstep train` */
    int nmore;
    int workers;   /* } set by the runner; workers 0: as many as `lockstep train` takes */
    int share;     /* } how many workers' cores it has: not fewer than its workers' */
    bool runs;     /* } */
    bool diverged; /* } its loss is no number any more */
} ls_trial;

/* Writes DIR.yaml, if it is not there. LS_EINVAL: it is there with other settings. */
ls_status ls_trial_open(const ls_trial *, ls_error *);
/* Before the first training: the run begins with this checkpoint. */
ls_status ls_trial_begin_with(const ls_trial *, const char *checkpoint, ls_error *);
/* Waits while a training of a command that was killed writes its last checkpoint. */
ls_status ls_trial_wait_for_earlier(const ls_trial *, ls_error *);
/* The step of its newest checkpoint; 0: there is none. */
int64_t ls_trial_step(const ls_trial *);
/* The last step of metrics.jsonl, while it is trained; 0: there is none. */
int64_t ls_trial_now(const ls_trial *);
/* Has the trial come to its last step? A training that was killed may have its last checkpoint, and
 * not its last evaluation. */
bool ls_trial_is_trained(const ls_trial *);
/* A metric of the step `until` in metrics.jsonl; NAN: it is not a number there. LS_EINVAL: it is in
 * no line of the step; the message lists those that are. */
ls_status ls_trial_metric(const ls_trial *, const char *metric, double *value_p, ls_error *);

#endif
