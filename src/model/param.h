/* param.h - a parameter of a model: what the layer that adds it declares (ls_build_param()), and
 * where the model places it.
 */
#ifndef LS_MODEL_PARAM_H
#define LS_MODEL_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_PARAM_DIMS = 4, LS_NAME = 80 };

/* N(0, std^2), or the constant where std is 0. */
typedef struct ls_param_init {
    float std, value;
    float bound;  /* above 0: uniform between -bound and bound instead */
    int norms_of; /* above 0: the norms of the rows of the frozen parameter norms_of - 1
                   * (ls_frozen_norms()) */
} ls_param_init;

/* The part of a tensor that a parameter is, in a model of slices (tensor_part.h): the rows (dim 0)
 * or columns (dim 1) from `first` on of each of `groups` groups of `all`. all 0: the whole
 * tensor. */
typedef struct ls_tensor_part {
    int tensor; /* above 0: the number of the tensor in a model of one slice is tensor - 1 */
    int dim, groups;
    int64_t first, all;
} ls_tensor_part;

/* How workers may divide the parameter. */
typedef struct ls_param_cut {
    bool whole; /* one worker updates all of it: no other parameter is in its blocks (LS_BLOCK) */
    bool undivided;      /* one bucket of a plan has all of it, and all of its blocks */
    bool own_blocks;     /* no other parameter is in its blocks (LS_BLOCK) */
    int slice;           /* that of the layer that has added it */
    int chunk;           /* that of all layers that have it; -1: layers of several chunks do */
    ls_tensor_part part; /* the part of a tensor that it is */
} ls_param_cut;

/* rows above 0: the parameter is a window of a table with this number of rows of dims[1] floats,
 * which is elsewhere. The window has the rows of a step's ids (table/step_rows.h). Layers read the
 * table, and write gradients of the window. */
typedef struct ls_param_window {
    int64_t rows;
    size_t at;         /* of the table, in a buffer of all tables (ls_model.table_floats) */
    int64_t first_row; /* number of its first row among those of all tables */
    size_t ids_at;     /* the ids in a sample: i32 [nids], negative ones stand for none */
    int64_t nids;
} ls_param_window;

typedef struct ls_param {
    /* What a layer declares: */
    int ndims;
    int64_t dims[LS_PARAM_DIMS];
    ls_param_init init;
    bool decay;   /* weight decay applies */
    bool frozen;  /* it is not trained (frozen.h) */
    bool adapter; /* an adapter's (layers/lora.c): published models don't have it */
    /* Above 0: the parameter is a running average of values of batches, and no gradient trains it.
     * Its "gradient" is the batch's value times the call's samples; an update makes it (1 -
     * momentum) p + momentum * the mean over the samples of the step's batch. */
    float momentum;
    /* ... or where it balances, p less momentum if the sum over the batch is positive, and p plus
     * momentum if it is negative. */
    bool balances;

    /* Where the model has placed it: */
    char name[LS_NAME]; /* LAYER.suffix; GPT's as in its published weights */
    size_t
        offset; /* floats, in the flat buffers, or in that of frozen parameters; a multiple of 16 */
    size_t count;        /* product of dims */
    unsigned char group; /* number of its group of settings (optim/optimizer.h) */
    ls_param_cut cut;
    ls_param_window window;
} ls_param;

#endif
