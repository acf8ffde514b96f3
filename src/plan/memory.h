/* memory.h - the memory of a plan's workers, known before step 1: the size of each buffer that
 * outlives a step, and a table of all that a worker needs, by purpose. */
#ifndef LS_PLAN_MEMORY_H
#define LS_PLAN_MEMORY_H

#include "plan/plan.h"

/* ---- the buffers that outlive a step (exec/world.h) ---- */

/* Are there f32 masters beside parameters of 16 bits? */
bool ls_plan_has_masters(const ls_plan *);
size_t ls_plan_params_nbytes(const ls_plan *);
/* The optimizer's buffers that are f32: masters (if any) and states. */
int ls_plan_nflats(const ls_plan *);
/* A worker's room for updates of whole parameters (optim/whole.h). */
size_t ls_plan_room_nbytes(const ls_plan *);
size_t ls_plan_state_nbytes(const ls_plan *);
/* One sum of the whole gradient, and all sums of a worker. */
size_t ls_plan_slot_nbytes(const ls_plan *);
size_t ls_plan_grads_nbytes(const ls_plan *, int worker);
/* Sums over micro-batches in f32; 0: not needed (ls_plan_wide). */
size_t ls_plan_wide_nbytes(const ls_plan *);
/* What encoding loses of the gradients of all virtual workers, twice: before a step and after it
 * (exec/errors.h). */
size_t ls_plan_errors_nbytes(const ls_plan *);
/* The tables of which parameters are windows, and their states: one copy for all workers. */
size_t ls_plan_tables_nbytes(const ls_plan *);
/* A copy of the state, for a checkpoint: parameters in f32, states, and the errors of all virtual
 * workers. */
size_t ls_plan_copy_nbytes(const ls_plan *);
/* The scalars of LS_SCALARS, of one worker or summed. */
size_t ls_plan_scalars_nbytes(const ls_plan *);

/* Size of each worker's part of a group's arena that holds all of them. */
size_t ls_plan_group_nbytes(const ls_plan *);
/* The sum over all workers, on one host. */
size_t ls_plan_host_nbytes(const ls_plan *);

/* The frozen parameters, in one copy. */
size_t ls_plan_frozen_nbytes(const ls_plan *);

/* ---- the table ---- */

typedef enum ls_purpose {
    LS_MEM_PARAMS,
    LS_MEM_FROZEN,
    LS_MEM_GRADS,
    LS_MEM_WIDE,
    LS_MEM_ERRORS,
    LS_MEM_CODES,
    LS_MEM_OPTIMIZER,
    LS_MEM_ACTIVATIONS,
    LS_MEM_WORK,
    LS_MEM_SCRATCH,
    LS_MEM_WRITING,
    LS_MEM_SAMPLES,
    LS_MEM_SUMS,
    LS_MEM_ROOM,
    LS_MEM_ARRIVALS,
    LS_NPURPOSES
} ls_purpose;

typedef struct ls_memory {
    int worker;                  /* the one that needs most */
    size_t nbytes[LS_NPURPOSES]; /* each at its own peak */
    size_t peak;                 /* of all purposes together, at one time */
    int peak_action;             /* -1: the same throughout the step */
    size_t extra[2];             /* of nbytes, what is transient: parameters, gradients */
    size_t file;                 /* bytes in a file, not counted above */
} ls_memory;

typedef struct ls_memory_config {
    int threads; /* of a worker */
    bool one;    /* a sharding group has one copy of parameters and optimizer in shared memory, of
                     which each worker counts its part */
    int near;    /* workers that share one copy of the frozen parameters, of which each counts its
                     part; 0: 1 */
    size_t frozen_nbytes;  /* of the frozen parameters as they are stored; 0: in the compute type */
    size_t writing_nbytes; /* of keys and values, while the model writes after prompts between
                              steps; they lie where activations do if these take as much; 0: none */
    bool in_file;          /* the optimizer's state is in a file, and is not counted */
    int table_workers; /* workers of a host, which share its part of the tables; 0: all workers */
} ls_memory_config;

void ls_plan_memory(const ls_plan *, const ls_memory_config *, ls_memory *m_p);

/* "parameters", "gradients", ... */
const char *ls_purpose_name(ls_purpose);
/* The purpose that takes most. */
ls_purpose ls_memory_worst(const ls_memory *);
/* Appends the table as text. */
void ls_memory_print(const ls_plan *, const ls_memory_config *, const ls_memory *, ls_buf *out);

#endif
