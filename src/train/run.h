/* run.h - what a run is made of, and what each worker has of it.
 *
 * ls_run is what all workers have alike: config, model, plan. It is made before they start, and
 * they change nothing in it. ls_member is one worker's own: its group, its buffers, its executor.
 */
#ifndef LS_TRAIN_RUN_H
#define LS_TRAIN_RUN_H

#include "cluster/balance.h"
#include "cluster/workers.h"
#include "exec/exec.h"
#include "infer/infer.h"
#include "optim/scaler.h"
#include "storage/snapshot.h"
#include "train/corpus.h"

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
    ls_model model;
    ls_plan plan;
    ls_store *store; /* where the workers' state outlives them; NULL: it does not */
    ls_survival survival;
    int *shares;        /* [nworkers + 1] of virtual workers (plan.first); NULL: even ones */
    int *better_shares; /* for the next view; NULL: as they are */
    int *proposal;      /* [V + 1], for better ones */
    ls_balance balance;
    int64_t balanced_view;      /* the view that `balance` is about */
    struct ls_folder *folder;   /* opened for all workers by who starts them; NULL: by worker 0 */
    struct ls_control *control; /* } of who starts the workers, once there is a folder */
    ls_snapshot snapshot;       /* } */
} ls_run;

/* How many workers: those that a launcher has started; else `asked`, or where that is 0 one a core,
 * at most one a virtual worker. */
ls_status ls_run_workers(const ls_config *, int asked, int *n_p, bool *started_p, ls_error *);

/* While plans are made, for base/waiting.h: layers, workers. */
#define LS_RUN_PLANNING "planning %lld layers for %d workers"

/* The model and the plan of a config. Both are the caller's; the plan refers to the model. */
ls_status ls_run_plan(const ls_config *, int nworkers, ls_model *m_p, ls_plan *p_p, ls_error *);
/* The same with shares of virtual workers: first [nworkers + 1] outlives the plan. */
ls_status ls_run_plan_shares(const ls_config *, int nworkers, const int *first, ls_model *m_p,
                             ls_plan *p_p, ls_error *);
/* Any number of workers up to one a virtual worker has a plan: where settings that don't touch the
 * bits (parallel.shard_group, accumulate) don't do, the nearest that do. group: the workers of a
 * sharding group at most; 0: all are one. */
ls_status ls_run_plan_any(const ls_config *, int nworkers, int group, const int *first,
                          ls_model *m_p, ls_plan *p_p, ls_error *);

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

/* One worker's. */
typedef struct ls_member {
    const ls_run *run;
    ls_group *group;
    ls_board_slot *slot;
    int worker, nworkers; /* of the group */
    const ls_corpus *corpus;
    int64_t first_step;
    int64_t step_began_ns;
    ls_scaler scaler;  /* the same on all workers */
    ls_world *worlds;  /* } one; under the sequential executor, one for each worker of the plan */
    ls_group **groups; /* } (these: of its own) */
    ls_exec **execs;   /* } */
    struct ls_backup *backup; /* NULL: nobody helps */
    int nexecs;
    ls_infer infer;      /* in the executor's arena, between steps */
    size_t infer_nbytes; /* or, where that is too small, in memory of its own */
} ls_member;

/* Collective. run, group, slot and corpus (which must stay) are set. When it returns, buffers are
 * there. */
ls_status ls_member_join(ls_member *, ls_error *);
/* Collective: the state that the run has kept; without any, initial weights (drawn, or of
 * train.from), or (first_step > 0) the checkpoint's at `path`. */
ls_status ls_member_begin(ls_member *, int64_t first_step, const char *path, ls_error *);
void ls_member_leave(ls_member *);
/* Gives up its groups and keeps the rest, for ls_member_join() and ls_member_begin() with another
 * group of as many workers. Of a run with a store. */
void ls_member_part(ls_member *);
/* It may be given up (ls_exec_gave_up()). Where f16 overflows at the lowest scale: LS_EINVAL, with
 * the layer. */
ls_status ls_member_step(ls_member *, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* Worker 0 alone does something that may take long; the others wait for it without a limit. */
ls_status ls_member_wait(ls_member *, ls_status own, ls_error *);

/* The samples of all virtual workers. */
ls_loader_config ls_run_loader(const ls_run *, const ls_corpus *);

/* What a step is given, by the config and the scale. */
ls_step_in ls_run_step(const ls_run *, int64_t step, const ls_scaler *);
ls_scaler_config ls_run_scaler(const ls_run *);
/* Is the loss scaled? Where parameters or gradients are f16. */
bool ls_run_has_scale(const ls_run *);

#endif
