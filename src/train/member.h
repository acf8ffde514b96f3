/* member.h - what belongs to one worker: its group, its buffers, its executor. */
#ifndef LS_TRAIN_MEMBER_H
#define LS_TRAIN_MEMBER_H

#include "base/cores.h"
#include "exec/solo.h"
#include "infer/infer.h"
#include "optim/learning_rate.h"
#include "report/tracer.h"
#include "storage/state.h"
#include "train/frozen_values.h"
#include "train/host.h"
#include "train/worker_device.h"

/* A part of each step that only some runs have; chosen when a member begins. */
struct ls_member;
typedef struct ls_step_part {
    /* Called before the executor runs. */
    ls_status (*before)(struct ls_member *, ls_step_in *, ls_error *);
    /* Called after the executor has made the step, unless it gave the step up. */
    ls_status (*after)(struct ls_member *, const ls_step_in *, const ls_step_out *, ls_error *);
} ls_step_part;
enum { LS_STEP_PARTS = 4 };

/* The threads of a machine's workers. A launcher may have bound some to more cores than others. */
typedef struct ls_member_near {
    int fewest, most; /* of one worker, with that for communication if it has a core */
    int computing;    /* of all workers */
    int all;          /* and those for communication that have a core */
    bool talks;       /* each worker has one of these */
} ls_member_near;

typedef struct ls_member {
    const ls_host *host;     /* } */
    const ls_run *run;       /* } host->run, &host->layout */
    const ls_layout *layout; /* } */
    ls_group *group;
    ls_board_slot *slot;
    int worker, nworkers;    /* of the group */
    ls_cores_seat seat;      /* which cores this worker has */
    ls_member_near near;     /* what the workers of its machine have */
    ls_worker_device device; /* that runs its layers, if the plan says so */
    bool bound;              /* its threads are bound to them */
    bool failed;             /* it leaves, and others may wait for it */
    const ls_dataset *data;
    int64_t first_step;
    int64_t step_began_ns;
    ls_schedule schedule;
    ls_scaler scaler;                         /* the same on all workers */
    const ls_step_part *parts[LS_STEP_PARTS]; /* [nparts] */
    int nparts;
    ls_world *worlds;  /* } [nexecs] one; for the sequential executor, one a worker of the plan */
    ls_group **groups; /* } NULL but for the sequential executor */
    ls_exec **execs;   /* } */
    struct ls_step_rows *rows; /* of tables; NULL: the model has no windows of them */
    struct ls_sync *sync;      /* NULL: replicas have not been synchronized yet */
    int rest; /* changes of the state that are done in the step at which it begins */
    struct ls_backup *backup;   /* NULL: this worker helps no other */
    struct ls_bounded *bounded; /* sync.mode ssp: computes the gradients; else NULL. The loop's */
    int nexecs;
    ls_frozen_values frozen;
    ls_infer infer;      /* for evaluations; in the executor's arena, between steps */
    size_t infer_nbytes; /* of separate memory, if the arena is too small; else 0 */
} ls_member;

/* The data set must outlive the member. */
ls_member ls_member_of(const ls_host *, ls_group *, ls_board_slot *, const ls_dataset *);
/* Collective: workers that a launcher or a user has started may have read different configs.
 * LS_EINVAL names the first setting that differs from worker 0's. group is set. */
ls_status ls_member_compare_settings(const ls_member *, ls_error *);
/* Collective. group and data are set. Allocates the buffers. */
ls_status ls_member_join(ls_member *, ls_error *);
/* Collective. Takes the state that earlier workers left in memory; else reads the checkpoint at
 * `path` (first_step > 0), or makes initial weights (drawn, or those of train.from). */
ls_status ls_member_begin(ls_member *, int64_t first_step, const char *path, ls_error *);
void ls_member_leave(ls_member *);
/* Leaves the group and retains the rest, for ls_member_join() and ls_member_begin() with another
 * group of the same size. Only in the supervised runtime. */
void ls_member_part(ls_member *);
/* The inputs of a step, by the schedule and the loss scale. */
ls_step_in ls_member_inputs(const ls_member *, int64_t step);
/* Collective. The step may be given up (ls_exec_gave_up()). LS_EINVAL, which names the layer: f16
 * overflows at the lowest loss scale. */
ls_status ls_member_step(ls_member *, const ls_step_in *, ls_step_out *out_p, ls_error *);

/* Collective, where a member begins in the middle of a step (train/replica_sync.h): runs the rest
 * of it. *in: as for the next step; it gets the updates and the loss scale that this step had. */
ls_status ls_member_finish_step(ls_member *, ls_step_in *in, ls_step_out *out_p, ls_error *);

/* Its threads: parallel.threads, or its part of the cores. */
int ls_member_threads(const ls_member *);
/* Has it a thread for communication? */
bool ls_member_has_overlap(const ls_member *);

/* Are its threads bound to cores, on a machine of several NUMA nodes? */
bool ls_member_spans_nodes(const ls_member *);

/* How the gradient of one virtual worker is computed alone, by ls_plan_solo()'s plan of the
 * member's. The member has all parameters, and retains them meanwhile. */
ls_solo_config ls_member_solo(const ls_member *, const ls_plan *solo);

/* The worker of the plan that executor i plays. */
int ls_member_played(const ls_member *, int i);

/* How long this process's workers waited for the samples of the latest step. */
int64_t ls_member_data_wait_ns(const ls_member *);

/* For a tracer; valid until the worker leaves its group. */
ls_traced_workers ls_member_traced(const ls_member *);

/* Collective: fails on all workers if `own` is an error on one. Waits without a time limit, since
 * some workers may work for long before they call it. */
ls_status ls_member_wait(ls_member *, ls_status own, ls_error *);

#endif
