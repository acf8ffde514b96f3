/* run.h - what a run is made of, before its workers start, and what each worker has of it.
 *
 * The supervisor builds an ls_run: config, corpus, model, plan, shared memory. Workers inherit it
 * (as processes, a copy of everything but the shared memory; as threads, the thing itself) and
 * change nothing in it but what lies in the region.
 */
#ifndef LS_TRAIN_RUN_H
#define LS_TRAIN_RUN_H

#include "model/infer.h"
#include "net/spawn.h"
#include "plan/exec.h"
#include "train/corpus.h"

typedef struct ls_run {
    ls_config config;
    ls_buf config_text; /* as YAML */
    const char *dir;    /* the run's folder; NULL: leaves nothing on disk */
    int64_t first_step; /* steps complete before; if any, their state is in the world */
    int nworkers;
    int64_t began_ns; /* when the program began */
    ls_corpus corpus;
    ls_model model;
    ls_plan plan;
    ls_region region;
    ls_local_shared local_shared;
    ls_world world;
    double *val_losses; /* [nval] in the region */
    double *report;     /* [LS_REPORT_SIZE] in the region: what worker 0 tells the supervisor */
} ls_run;

enum { LS_REPORT_STEP, LS_REPORT_VAL_LOSS, LS_REPORT_VAL_BITS, LS_REPORT_SIZE };

/* How many workers: `asked`, or where that is 0 one a core, at most one a virtual worker. */
int ls_run_workers(const ls_config *, int asked);

/* The model and the plan of a config. Both are the caller's; the plan refers to the model. */
ls_status ls_run_plan(const ls_config *, int nworkers, ls_model *m_p, ls_plan *p_p, ls_error *);

/* config, corpus and nworkers are set; makes model, plan and shared memory. */
ls_status ls_run_build(ls_run *, ls_error *);
void ls_run_free(ls_run *);

/* Starts `main` on each worker, with the run as its argument, and stays until all have ended. Under
 * the sequential executor there is one, which plays them all. */
ls_status ls_run_launch(ls_run *, ls_worker_main *main, ls_error *);

/* A worker's own part: its group and executors. */
typedef struct ls_member {
    ls_run *run;
    int worker;
    ls_local local;
    ls_exec **execs; /* one; under the sequential executor, all */
    int nexecs;
    ls_infer infer;      /* in the executor's arena, between steps */
    size_t infer_nbytes; /* or, where that is too small, in memory of its own */
} ls_member;

/* Collective: when it returns, parameters are there. */
ls_status ls_member_join(ls_member *, ls_run *, int worker, ls_error *);
void ls_member_leave(ls_member *);
ls_status ls_member_step(ls_member *, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* What a step is given, by the config. */
ls_step_in ls_run_step(const ls_run *, int64_t step);

#endif
