/* memory.h - the memory of a plan's workers, known before step 1: what each buffer takes that
 * outlives a step, and a table of all that a worker needs, by purpose. */
#ifndef LS_PLAN_MEMORY_H
#define LS_PLAN_MEMORY_H

#include "plan/plan.h"

/* ---- the buffers that outlive a step (exec/world.h) ---- */

/* Are masters kept beside parameters, since these have 16 bits? */
bool ls_plan_has_masters(const ls_plan *);
size_t ls_plan_params_nbytes(const ls_plan *);
/* Masters (where there are some), m and v. */
size_t ls_plan_state_nbytes(const ls_plan *);
/* One sum of the whole gradient; all that a worker keeps. */
size_t ls_plan_slot_nbytes(const ls_plan *);
size_t ls_plan_grads_nbytes(const ls_plan *, int worker);
/* Sums over micro-batches in f32; 0: none are needed (ls_plan_wide). */
size_t ls_plan_wide_nbytes(const ls_plan *);
/* Norms and losses, of one worker or summed. */
size_t ls_plan_scalars_nbytes(const ls_plan *);

/* In a group's arena for each worker, where everything lies there. */
size_t ls_plan_group_nbytes(const ls_plan *);
/* Of all workers together, on one host. */
size_t ls_plan_host_nbytes(const ls_plan *);

/* ---- the table ---- */

typedef enum ls_purpose {
    LS_MEM_PARAMS,
    LS_MEM_GRADS,
    LS_MEM_WIDE,
    LS_MEM_OPTIMIZER,
    LS_MEM_ACTIVATIONS,
    LS_MEM_WORK,
    LS_MEM_SCRATCH,
    LS_MEM_SAMPLES,
    LS_MEM_SUMS,
    LS_NPURPOSES
} ls_purpose;

typedef struct ls_memory {
    int worker;                  /* the one that needs most */
    size_t nbytes[LS_NPURPOSES]; /* each when it is largest */
    size_t peak;                 /* of all together, at one time */
    int peak_action;             /* -1: always the same */
    size_t extra[2]; /* of parameters and gradients at most: what is there for a while */
    size_t file;     /* beside: in a file */
} ls_memory;

typedef struct ls_memory_config {
    int threads;  /* of a worker */
    bool one;     /* parameters and optimizer are one copy for the workers among which they are
                     sharded; a worker counts its part */
    bool in_file; /* the optimizer's state is, and counts nothing */
} ls_memory_config;

void ls_plan_memory(const ls_plan *, const ls_memory_config *, ls_memory *m_p);

/* "parameters", "gradients", ... */
const char *ls_purpose_name(ls_purpose);
/* The largest. */
ls_purpose ls_memory_worst(const ls_memory *);
/* The table, as text. */
void ls_memory_print(const ls_plan *, const ls_memory_config *, const ls_memory *, ls_buf *out);

#endif
