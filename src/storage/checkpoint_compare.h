/* checkpoint_compare.h - which checkpoints of two runs are equal, and in which tensors the others
 * differ. */
#ifndef LS_STORAGE_CHECKPOINT_COMPARE_H
#define LS_STORAGE_CHECKPOINT_COMPARE_H

#include "storage/checkpoint.h"

typedef struct ls_checkpoints_compared {
    int ncompared;               /* steps of which both runs have a checkpoint */
    int64_t equal;               /* the last of these whose states are equal; 0: none */
    int64_t differ;              /* the first whose states differ; 0: none. Then: */
    size_t ntensors, ndiffer;    /* of its weights and optimizer's states */
    char tensor[LS_TENSOR_NAME]; /* the first that differs, in the order of the files */
    bool in_both;                /* else only one of the runs has it, or its shapes differ */
    size_t element;              /* the first that differs */
    float values[2];
} ls_checkpoints_compared;

/* Errors: a checkpoint of step `differ` is damaged. */
ls_status ls_checkpoints_compare(const char *run, const char *other, ls_checkpoints_compared *c_p,
                                 ls_error *);

#endif
