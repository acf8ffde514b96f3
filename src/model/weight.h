/* weight.h - what a sample counts in the mean over a batch.
 *
 * The step's loss is sum(weight * loss) / sum(weight) over the samples of the whole batch. Backward
 * leaves out the division: both sums are made with the norms, sample after sample in the order of
 * the batch, and the update divides (exec/action.c). So neither depends on workers.
 */
#ifndef LS_MODEL_WEIGHT_H
#define LS_MODEL_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/group.h"

/* A weight is the number in a field, if there is one; times the part of the sample's targets that
 * are not ignored, if they are counted. */
typedef struct ls_weighing {
    bool has_field;
    ls_dtype type; /* of the field: LS_F32 or LS_I32 */
    size_t field_at;
    /* Labels, of which negative ones and `ignored` have no loss: */
    int64_t ntargets; /* 0: targets are not counted */
    size_t labels_at;
    int32_t ignored;
} ls_weighing;

static inline bool ls_weighing_is_on(const ls_weighing *w) { return w->has_field || w->ntargets; }

/* Does a target with this label have a loss? */
static inline bool ls_label_counts(int32_t label, int32_t ignored) {
    return label >= 0 && label != ignored;
}

/* The sample's weight; 1 without weights. LS_EINVAL: it is negative, infinite or not a number. */
ls_status ls_weigh(const ls_weighing *, const void *sample, double *weight_p, ls_error *);

#endif
