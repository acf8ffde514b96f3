/* pretrained.h - a new run can begin with a published model (model.from): its architecture,
 * tokenizer and weights (weights/weights.h).
 */
#ifndef LS_STORAGE_PRETRAINED_H
#define LS_STORAGE_PRETRAINED_H

#include "config/config.h"
#include "storage/state.h"
#include "weights/weights.h"

/* Sets the keys of a new run as its model.from has them, and makes the path absolute. A resumed run
 * (`run` already has a config) has them. Does nothing if model.from is empty. LS_EIO, LS_EINVAL: no
 * model that can be trained is there. */
ls_status ls_pretrained_resolve(ls_config *, const char *run, ls_error *);

/* Reads the trained weights, without those of adapters, into flat.of[0] of the state, of which
 * `owned` and `all_params` count. LS_EIO, LS_EINVAL: the files have changed. */
ls_status ls_pretrained_load(const char *path, const ls_train_state *, ls_error *);
/* The frozen weights as the files have them, mapped: in the files' types, but in f32 where a layer
 * does not read these. */
typedef struct ls_pretrained {
    ls_weights files;
    ls_frozen_value *values; /* [nparams] */
    void **copies; /* [nparams] of those whose rows or elements the files have in another order, or
                    * that are widened; else NULL */
    int nparams;
} ls_pretrained;

/* LS_EIO, LS_EINVAL: the files are not those of the model. */
ls_status ls_pretrained_open(const char *path, const ls_model *, ls_pretrained *p_p, ls_error *);
/* For layers that compute in this type: in a 16-bit one only the values that the files have in it,
 * in the model's order; the others' data are NULL. In f32 all, as above. */
ls_status ls_pretrained_open_for(const char *path, const ls_model *, ls_dtype, ls_pretrained *p_p,
                                 ls_error *);
/* Value i, of a frozen parameter whose data are NULL; close_param() makes it NULL again. */
ls_status ls_pretrained_open_param(ls_pretrained *, const ls_model *, int i, ls_error *);
void ls_pretrained_close_param(ls_pretrained *, int i);
void ls_pretrained_close(ls_pretrained *);
/* The bytes of the values that are not NULL. */
size_t ls_pretrained_nbytes(const ls_pretrained *, const ls_model *);

/* Reads the frozen weights into a buffer [frozen_floats] (model/frozen.h). */
ls_status ls_pretrained_load_frozen(const char *path, const ls_model *, float *buffer, ls_error *);

#endif
