/* frozen.h - parameters that are not trained.
 *
 * A frozen parameter has its number in the model's table, and so the same initial weights as if it
 * were trained. But it has no place in the flat buffers, and therefore no gradient, no optimizer
 * state, no bucket and no traffic. The values are read-only, and those of each parameter have their
 * own type (ls_frozen_value): they lie in a mapped file, or in a buffer with room for all frozen
 * parameters [frozen_floats], each at its offset. Matrices and tables that layers read as they are
 * stored may be in blocks (tensor/stored.h); results have the bits of their values in f32.
 */
#ifndef LS_MODEL_FROZEN_H
#define LS_MODEL_FROZEN_H

#include "model/model.h"

/* Freezes the parameters whose names match the pattern, as in a shell, and returns their number.
 * The model must be linked afterwards, which gives all parameters other offsets. */
int ls_model_freeze(ls_model *, const char *pattern);

/* Values [nparams] that lie in a buffer of elements of this type; those of trained parameters are
 * NULL. */
void ls_frozen_place(const ls_model *, ls_dtype, const void *buffer, ls_frozen_value *values);

/* Do all layers read parameter i as it is stored, in any type? */
bool ls_model_reads_stored(const ls_model *, int i);
/* Does a layer multiply with parameter i? Of tables only the last layer does: others look rows
 * up. */
bool ls_model_multiplies(const ls_model *, int i);

/* Sets the buffer to the initial weights, a function of the seed alone. */
void ls_frozen_init(const ls_model *, uint64_t seed, float *buffer);

/* In elements [first, end) of the flat buffer of trained parameters, sets those that begin as norms
 * of rows of frozen parameters (ls_param.norms_of). */
void ls_frozen_norms(const ls_model *, const ls_compute *, const ls_frozen_value *, size_t first,
                     size_t end, float *params);

/* Rounding to a 16-bit type, in a buffer [frozen_floats] of that type. Of the buffer only the
 * places of what is rounded are touched. */
typedef struct ls_frozen_rounding {
    const ls_model *model;
    const ls_compute *compute;
    ls_dtype type;
    void *buffer;
    uint64_t seed; /* of initial weights */
} ls_frozen_rounding;

/* Rounds frozen parameter i. from.data NULL: its initial weights. */
void ls_frozen_round_param(const ls_frozen_rounding *, int i, ls_frozen_value from);
/* Rounds the values [nparams] that have another type: to round one that has this type changes
 * nothing but the bits of a NaN. */
void ls_frozen_round(const ls_frozen_rounding *, const ls_frozen_value *from);
/* Values [nparams] of the type: those of `from` that have it, where they are, and the others in the
 * buffer. */
void ls_frozen_place_rounded(const ls_model *, ls_dtype, const void *buffer,
                             const ls_frozen_value *from, ls_frozen_value *values);

#endif
