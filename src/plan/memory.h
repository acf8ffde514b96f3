/* memory.h - the memory of a plan's workers, known before step 1: a table of all that a worker
 * needs, by purpose. The sizes of single buffers are in ls_share. */
#ifndef LS_PLAN_MEMORY_H
#define LS_PLAN_MEMORY_H

#include "plan/plan.h"

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
    size_t device;               /* of the worker's device, not counted above; 0: it has none */
} ls_memory;

typedef struct ls_memory_config {
    int threads; /* of a worker */
    bool one;    /* a sharding group has one copy of parameters and optimizer in shared memory, of
                  * which each worker counts its part */
    int near;    /* workers that share one copy of the frozen parameters, of which each counts its
                  * part; 0: 1 */
    size_t frozen_nbytes;  /* of the frozen parameters as they are stored; 0: in the compute type */
    size_t writing_nbytes; /* of keys and values, while the model writes after prompts between
                            * steps; they lie where activations do if these take as much; 0: none */
    bool in_file;          /* the optimizer's state is in a file, and is not counted */
    int table_workers; /* workers of a host, which share its part of the tables; 0: all workers */
} ls_memory_config;

/* The floats that a device sums at a time over workers. */
enum { LS_DEVICE_PIECE = 1 << 20 };

/* What a worker gets of its device's memory, in bytes; all 0: it has no device. */
typedef struct ls_device_memory {
    size_t params, state, grads, arena, work, samples, losses, norms; /* state, norms: or 0 */
    size_t weights;                                                   /* of samples, or 0 */
    size_t held;     /* frozen parameters, constants (ls_model_held_floats()) */
    size_t sums;     /* of LS_DEVICE_PIECE floats each, for sums over workers; or 0 */
    size_t incoming; /* what other workers send of a bucket's sums; or 0 */
    size_t halves;   /* numbers in 16 bits that come from the host or go there: half of the
                      * parameters, gradients and activations, which are in f32; or 0 */
} ls_device_memory;
ls_device_memory ls_plan_device_memory(const ls_plan *, int worker);

void ls_plan_memory(const ls_plan *, const ls_memory_config *, ls_memory *m_p);

/* "parameters", "gradients", ... */
const char *ls_purpose_name(ls_purpose);
/* The purpose that takes most. */
ls_purpose ls_memory_worst(const ls_memory *);
/* Appends the table as text. */
void ls_memory_print(const ls_plan *, const ls_memory_config *, const ls_memory *, ls_buf *out);

#endif
