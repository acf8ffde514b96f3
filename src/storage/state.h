/* state.h - a step's state as flat buffers, and as named tensors with a hash. */
#ifndef LS_STORAGE_STATE_H
#define LS_STORAGE_STATE_H

#include "base/hash.h"
#include "model/safetensors.h"
#include "optim/scaler.h"
#include "plan/plan.h"

/* The flat buffers of a run: each [model->nfloats]. params: the f32 masters if parameters are held
 * in 16 bits. */
typedef struct ls_train_state {
    const ls_model *model;
    int64_t step; /* steps complete */
    float *params, *m, *v;
    const ls_bucket *owned; /* [nowned] loading fills only these parts; NULL: all */
    int nowned;
    bool all_params;  /* load all parameters, whatever is owned */
    ls_scaler scaler; /* scale 0: none is in use */
} ls_train_state;

/* The weights [nparams], by GPT-2's names; the moments [2 nparams], NAME.exp_avg and
 * NAME.exp_avg_sq. Their data belongs to the state: free() only the array. */
ls_tensor *ls_state_weights(const ls_train_state *);
ls_tensor *ls_state_moments(const ls_train_state *);

/* The hash of the logical state (`lockstep ckpt hash`), whatever the layout in files: over the
 * tensors [n] sorted by name: name, dims, data. The hash of the moments begins with the step, and
 * the loss scale if one is in use. */
ls_hash ls_state_hash_weights(const ls_tensor *, size_t n);
ls_hash ls_state_hash_moments(const ls_tensor *, size_t n, int64_t step, const ls_scaler *);

#endif
