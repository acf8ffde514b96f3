/* state.h - a step's state as flat buffers, and as named tensors with a hash. */
#ifndef LS_STORAGE_STATE_H
#define LS_STORAGE_STATE_H

#include "base/hash.h"
#include "optim/flat.h"
#include "optim/scaler.h"
#include "plan/plan.h"
#include "weights/safetensors.h"

/* The state of a run. flat.of[0]: the f32 masters if parameters are held in 16 bits. */
typedef struct ls_train_state {
    const ls_model *model;
    int64_t step;          /* steps complete */
    const ls_optim *optim; /* NULL: without the optimizer's states (flat.n is 1) */
    ls_flat flat;
    int replicas; /* whose parameters and states follow the common ones in each buffer of flat */
    const ls_range *owned; /* [nowned] loading fills only these parts; NULL: all */
    int nowned;
    bool all_params; /* load all parameters, whatever is owned; of replicas, those that are held */
    const ls_range *held; /* [nowned] */
    bool begins; /* a new run begins with them: adapters that the file lacks are left as they are */
    bool ema;    /* flat.of[0] is loaded with their average (optim.ema) */
    /* [nerrors][ls_share.error_floats] what encoding has lost of virtual workers' gradients
     * (state/errors.h), by this plan */
    float *errors;
    int nerrors;
    const ls_plan *plan;
    /* tables of which parameters are windows (ls_param.rows): the weights and
     * states (ls_optim_table_at()); NULL: loading leaves them out */
    float *tables;
    /* [ls_table_blocks()] loading fills those that are not 0; NULL: all */
    const unsigned char *table_blocks;
    ls_scaler scaler;              /* scale 0: none is in use */
    const ls_frozen_value *frozen; /* [nparams] for ls_state_write_weights() */
} ls_train_state;

enum { LS_STATE_ERROR_NAME = 24 };

/* The tensors of a file, in the order of the model's parameters: parameter i has those from
 * from[i] to from[i + 1] - 1. Their data belongs to the state. */
typedef struct ls_state_tensors {
    ls_tensor *list; /* [n] */
    size_t n;
    int *from;    /* [nparams + 1] */
    int *vws;     /* [n] 1 + the virtual worker whose errors a tensor has; 0: it has none */
    int *replica; /* [n] whose a tensor is, from 1 on; 0: common */
} ls_state_tensors;

/* The tensor of a parameter, or of its state NAME.suffix; of the trained weights, by the names of
 * the parameters; of the optimizer's states, NAME.exp_avg and so on (optim/optimizer.h), with those
 * of replicas, NAME.replica.3, NAME.exp_avg.replica.3; of virtual worker V's errors, NAME.error.V,
 * after the states; and of a matrix that is sent as factors, NAME.factor.V. */
ls_tensor ls_state_tensor(const ls_param *, const char *suffix, const float *data);
/* The tensor of a frozen parameter, in its own type. */
ls_tensor ls_state_frozen_tensor(const ls_param *, ls_frozen_value);
/* Appends the suffix of a replica's tensor, from 1 on, to a name [LS_TENSOR_NAME]. */
void ls_state_replica_name(char *name, int replica);
ls_state_tensors ls_state_weights(const ls_train_state *);
ls_state_tensors ls_state_optimizer(const ls_train_state *);
/* "error.V", "factor.V" */
void ls_state_error_name(int vw, char text[LS_STATE_ERROR_NAME]);
void ls_state_factor_name(int vw, char text[LS_STATE_ERROR_NAME]);
/* The second factor of a parameter, as a parameter of a virtual worker's errors; false: it has
 * none.
 */
bool ls_state_factor(const ls_plan *, const ls_param *, ls_param *factor_p);
void ls_state_tensors_free(ls_state_tensors *);

/* Copies the elements [first, end) of the flat buffer `to` that the state retains (owned,
 * all_params), and returns how many these are. from NULL: they are counted alone. */
size_t ls_state_put(const ls_train_state *, float *to, size_t first, size_t end, const float *from);

/* Writes the weights, and frozen ones in f32, as a safetensors file. An old file is replaced once
 * the new one is complete. */
ls_status ls_state_write_weights(const ls_train_state *, const char *path, ls_error *);

/* The hash of the logical state (`lockstep ckpt hash`), whatever the layout in files: over the
 * tensors [n] sorted by name: name, dims, data. The hash of the weights includes frozen weights
 * (may be NULL), so it does not depend on what is frozen. The hash of the optimizer's states begins
 * with the step, and the loss scale if one is in use. */
ls_hash ls_state_hash_weights(const ls_tensor *, size_t n, const ls_safetensors *frozen);
ls_hash ls_state_hash_optimizer(const ls_tensor *, size_t n, int64_t step, const ls_scaler *);

#endif
