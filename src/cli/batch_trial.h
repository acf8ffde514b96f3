/* batch_trial.h - one training of `lockstep batch` or `lockstep tune`: a run directory, trained by
 * this program as another process up to some step. What is done already is not done again, so a
 * command that was killed continues where it was.
 */
#ifndef LS_CLI_BATCH_TRIAL_H
#define LS_CLI_BATCH_TRIAL_H

#include "cli/pool.h"
#include "config/config.h"

enum { CLI_TRIAL_OPTIONS = 8 };

/* How the last message of a training begins whose loss is no number any more. */
#define CLI_TRIAL_DIVERGED "the loss is "

typedef struct cli_trial {
    char *dir;               /* the run directory; DIR.yaml beside it is its config */
    int64_t workers;         /* 0: as many as `lockstep train` takes */
    const char *const *more; /* [nmore] further options of `lockstep train` */
    int nmore;
} cli_trial;

/* Writes DIR.yaml, if it is not there. LS_EINVAL: it is there with other settings. */
ls_status cli_trial_open(const cli_trial *, const ls_config *, ls_error *);
/* Before the first training: the run begins with this checkpoint. */
ls_status cli_trial_begin_with(const cli_trial *, const char *checkpoint, ls_error *);
/* Workers for a training: the most of up to `share` that its config can have; else the least that it
 * needs, of up to `most`. Where no number is known to be possible, `share`: the training says why. */
int cli_trial_workers(const ls_config *, int share, int most);
/* Has it come to step `until`? A training that was killed may have its last checkpoint, and not its
 * last evaluation. */
bool cli_trial_is_trained(const cli_trial *, int64_t until);
/* Trains up to step `until`, at least. LS_EABORT: interrupted. */
ls_status cli_trial_train(const cli_trial *, int64_t until, ls_error *);
/* The same in a pool, beside others: starts it, as `tag`. Its output is appended to DIR.log. */
ls_status cli_trial_start(const cli_trial *, int64_t until, cli_pool *, int tag, ls_error *);
/* Has one that ended with this exit code come to step `until`? *diverged_p: no, as its loss is no
 * number any more. LS_EINVAL: it failed. */
ls_status cli_trial_check(const cli_trial *, int64_t until, int code, bool *diverged_p, ls_error *);
/* The loss of the checkpoint of step `step` on the whole validation part. LS_EINVAL: it is gone, as
 * another command has trained further. */
ls_status cli_trial_evaluate(const cli_trial *, int64_t step, double *loss_p, ls_error *);

#endif
