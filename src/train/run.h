/* run.h - what all workers of a run have in common: config, model, plan. It is made before they
 * start, and they change nothing in it. What each worker has of its own is in member.h. */
#ifndef LS_TRAIN_RUN_H
#define LS_TRAIN_RUN_H

#include "cluster/balance.h"
#include "cluster/workers.h"
#include "exec/exec.h"
#include "optim/scaler.h"
#include "train/layout.h"
#include "train/notes.h"

typedef struct ls_run {
    ls_config config;
    ls_buf config_text; /* as YAML */
    const char *dir;    /* the run's folder; NULL: leaves nothing on disk */
    int nworkers;
    bool started;              /* by a launcher: this process is one of the workers */
    const char *listen, *join; /* between hosts (survive.h); NULL */
    int hosts;
    bool resumes;     /* the run's folder may be there already */
    ls_buf alike;     /* what all of them must have alike */
    int64_t began_ns; /* when the program began */
    ls_layout layout;
    ls_store *store; /* where the workers' state outlives them; NULL: it does not */
    ls_survival survival;
    int *shares;        /* [nworkers + 1] of virtual workers (plan.first); NULL: even ones */
    int *better_shares; /* for the next view; NULL: as they are */
    int *proposal;      /* [V + 1], for better ones */
    ls_balance balance;
    int64_t balanced_view;      /* the view that `balance` is about */
    ls_folder *folder;          /* opened for all workers by who starts them; NULL: by worker 0 */
    struct ls_control *control; /* } of who starts the workers, once there is a folder */
    ls_snapshot snapshot;       /* } */
} ls_run;

/* How many workers: those that a launcher has started; else `asked`, or where that is 0 one a core,
 * at most one a virtual worker. */
ls_status ls_run_workers(const ls_config *, int asked, int *n_p, bool *started_p, ls_error *);
/* The same without a launcher, whatever the environment says. */
ls_status ls_run_workers_here(const ls_config *, int asked, int *n_p, ls_error *);

/* config and nworkers are set; makes model and plan. */
ls_status ls_run_build(ls_run *, ls_error *);
/* Are workers processes with their state in memory, which can outlive them (unless a launcher
 * starts them)? */
bool ls_run_can_survive(const ls_config *);
/* After ls_run_build(): where workers are processes that this one will start, what they make is
 * kept if they die. */
ls_status ls_run_keep(ls_run *, ls_error *);
void ls_run_drop(ls_run *);
void ls_run_free(ls_run *);

/* One process plays all workers. */
bool ls_run_is_sequential(const ls_run *);

/* "processes", "threads", ... */
const char *ls_run_workers_name(const ls_run *);

/* Runs `main` on each worker, and stays until all have ended. Under the sequential executor there
 * is one, which plays them all. arg begins with the ls_run. */
ls_status ls_run_launch(ls_run *, ls_worker_main *main, void *arg, ls_error *);

/* The samples of all virtual workers. */
ls_loader_config ls_run_loader(const ls_run *, const ls_corpus *);

/* NULL: the run has no store. */
ls_run_notes *ls_run_notes_of(const ls_run *);

/* What its directory, and what its checkpoints beside training, have to know of it now. */
ls_folder_run ls_run_folder(const ls_run *);
ls_snapshot_run ls_run_snapshot(const ls_run *);

/* What a step is given, by the config and the scale. */
ls_step_in ls_run_step(const ls_run *, int64_t step, const ls_scaler *);
ls_scaler_config ls_run_scaler(const ls_run *);
/* Is the loss scaled? Where parameters or gradients are f16. */
bool ls_run_has_scale(const ls_run *);

#endif
