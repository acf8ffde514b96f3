/* run.h - the description of a run: its config, its directory, its workers.
 *
 * It is made before workers start and does not change afterwards: state that changes belongs to the
 * host (host.h) or to a worker (member.h).
 */
#ifndef LS_TRAIN_RUN_H
#define LS_TRAIN_RUN_H

#include "dataset/dataset.h"
#include "device/trial.h"
#include "exec/exec.h"
#include "optim/scaler.h"
#include "plan/plan.h"

typedef struct ls_run {
    ls_config config;
    ls_buf config_text;      /* as YAML */
    const char *dir;         /* the run directory; NULL: leaves nothing on disk */
    const char *const *sets; /* [nsets] "KEY=VALUE": the keys that were set for this start */
    int nsets;
    const char *command; /* by which it was started; NULL: not known */
    const char *again;   /* the command that continues this run, to be printed; NULL: none */
    int nworkers;        /* at the beginning; of this host, if there are several */
    int nasync;          /* sync.mode async and ssp: processes that compute gradients, for this one,
                          * which is then worker 0 of 1. Else 0 */
    bool started;        /* by a launcher: this process is one of the workers */
    bool in_group;       /* of a program, whose workers may be on any hosts */
    bool resumes;        /* the run directory may be there already */
    bool overwrites;     /* a run there is replaced */
    /* Between hosts (cluster/supervisor.h): where this one listens for others, the first host's
     * address, and how many hosts must be there before the first view begins. NULL, NULL and 0:
     * this host is alone. */
    const char *listen, *join;
    int hosts;
    int64_t until;    /* the run stops after this step, as if it were interrupted; 0: it does not */
    int64_t began_ns; /* when the program began */
    ls_device_trial devices; /* of this host's workers; {0}: not tried */
    double core_flops; /* FLOP/s that a core of this host can do (utilization.h); 0: not known */
} ls_run;

/* The number of workers: as many as a launcher has started; else `asked`, or, if that is 0, one per
 * core, at most one per virtual worker and survival.max_workers. LS_EINVAL: there are more. */
ls_status ls_run_workers(const ls_config *, int asked, int *n_p, bool *started_p, ls_error *);
/* With sync.mode async and ssp: as many workers as asked, or one per core. Sets r->nasync and
 * r->nworkers. LS_EINVAL: a launcher takes part. */
ls_status ls_run_workers_async(ls_run *r, int asked, ls_error *);
/* With sync.mode async and ssp: as many workers as asked, or one per core. LS_EINVAL: with ssp,
 * there are more workers than gradients that can be computed at the same time. */
ls_status ls_run_workers_crew(const ls_config *, int asked, int *n_p, ls_error *);
/* With sync.mode ssp: the memory of gradients that are computed ahead; else 0. */
size_t ls_run_ahead_nbytes(const ls_config *, const ls_plan *);
/* The number of workers without a launcher, whatever the environment says. */
ls_status ls_run_workers_here(const ls_config *, int asked, int *n_p, ls_error *);

/* Are the workers (unless a launcher starts them) processes whose state is in memory that can
 * outlive them? */
bool ls_run_can_survive(const ls_config *);
/* Appends what workers that train together must have in common: settings (config/differences.h),
 * the order of products in bf16, and what else their plans and collectives follow. */
void ls_run_must_match(const ls_config *, ls_buf *out);
/* Writes the config as the run directory has it: the run continues elsewhere with the device that
 * was asked for, which may be `auto`. */
void ls_run_write_config(ls_run *, const ls_config *asked);
void ls_run_free(ls_run *);

/* May there be workers on other hosts? */
bool ls_run_has_others(const ls_run *);

/* Does one process play all workers? */
bool ls_run_is_sequential(const ls_run *);

/* "processes", "threads", ... */
const char *ls_run_workers_name(const ls_run *);

ls_scaler_config ls_run_scaler(const ls_run *);
/* Is the loss scaled? It is if parameters or gradients are f16. */
bool ls_run_has_scale(const ls_run *);

#endif
