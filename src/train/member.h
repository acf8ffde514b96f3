/* member.h - what each worker has of a run: its group, its buffers, its executor. */
#ifndef LS_TRAIN_MEMBER_H
#define LS_TRAIN_MEMBER_H

#include "infer/infer.h"
#include "report/tracer.h"
#include "train/host.h"

/* One worker's. */
typedef struct ls_member {
    const ls_host *host;     /* } */
    const ls_run *run;       /* } host->run, &host->layout */
    const ls_layout *layout; /* } */
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

/* The corpus must stay. */
ls_member ls_member_of(const ls_host *, ls_group *, ls_board_slot *, const ls_corpus *);
/* Collective. group and corpus are set. When it returns, buffers are there. */
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

/* What a tracer has to know of it; until it leaves its group. */
ls_traced_workers ls_member_traced(const ls_member *);

/* Worker 0 alone does something that may take long; the others wait for it without a limit. */
ls_status ls_member_wait(ls_member *, ls_status own, ls_error *);

#endif
