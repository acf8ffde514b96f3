/* sequence.h - the rows of a sample between the products of a model of slices: norms and residual
 * sums.
 *
 * Slice 0 has all rows; or with parallel.sequence slice k of n has part k of them (row_parts.h), as
 * in Korthikanti et al., arXiv 2205.05198, section 4.2.2. The norms' weights belong to slice 0, and
 * the other slices have copies.
 */
#ifndef LS_NETWORKS_SEQUENCE_H
#define LS_NETWORKS_SEQUENCE_H

#include "layers/layers.h"
#include "networks/sliced.h"

/* Refuses slices that can't divide the rows. */
ls_status ls_sequence_check(const ls_config *, ls_error *);

/* All rows, of[0]; or each slice's part, of [n]. */
typedef struct ls_sequence {
    ls_value *of[LS_SLICES_MOST];
} ls_sequence;

typedef struct ls_sequence_norm {
    const char *name;
    float eps;     /* of an RMS norm; 0: it is a layer norm */
    bool plus_one; /* its weight is 1 + the parameter */
} ls_sequence_norm;

ls_sequence ls_sequence_normalize(const ls_sliced *, const ls_sequence *, ls_sequence_norm);
ls_sequence ls_sequence_add(const ls_sliced *, const ls_sequence *, const ls_sequence *);
ls_sequence ls_sequence_times(const ls_sliced *, const ls_sequence *, float factor);

/* of [n]: all rows, for each slice; and the sum of what the slices compute. */
void ls_sequence_fork(const ls_sliced *, const ls_sequence *, ls_value **of);
ls_sequence ls_sequence_join(const ls_sliced *, ls_value **of);

/* All slices of an embedding, of which of[k] is slice k's layer, with a vector for each position,
 * "POSITIONS.weight"; positions NULL: without. */
typedef struct ls_sequence_ids {
    ls_value *ids;
    const char *positions;
    ls_row_range rows; /* of the sample */
    float deviation;   /* of the positions' initial values */
} ls_sequence_ids;
ls_sequence ls_sequence_embed(ls_sliced *, const ls_sequence_ids *, ls_embedding_options,
                              ls_value **of);

/* The model's end. */
typedef struct ls_sequence_end {
    const char *name;
    int64_t vocab;
    ls_value **tied;       /* [n] slices of the embedding; NULL: the end has a weight of its own */
    ls_value *all_targets; /* of a sample, of which the rows are a chunk; NULL: they are all */
} ls_sequence_end;
void ls_sequence_loss(const ls_sliced *, const ls_sequence *, ls_value *targets, ls_sequence_end);

#endif
