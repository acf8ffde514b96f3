/* tensor_part.h - parameters that are parts of a tensor, in a model of slices.
 *
 * Slice k of the tensor "X.weight" is the parameter "X.slice.k.weight": some of its rows, or some
 * of its columns (ls_tensor_part). All slices of a tensor together begin with the values that it
 * has in a model of one slice, and published models have the tensor. */
#ifndef LS_MODEL_TENSOR_PART_H
#define LS_MODEL_TENSOR_PART_H

#include "model/model.h"

/* The tensor's name, and its length in this dimension. */
void ls_tensor_part_name(const ls_param *, char name[LS_NAME]);
int64_t ls_tensor_part_dim(const ls_param *, int dim);

/* The first run of experts, not before `from`, that some slices and chunks have of each layer with
 * experts; false: none. */
typedef struct ls_part_range {
    int slice, slice_end, chunk, chunk_end;
} ls_part_range;
bool ls_tensor_part_experts(const ls_model *, ls_part_range, int64_t from, int64_t *first_p,
                            int64_t *end_p);

/* The parameter's elements from i on are those of the tensor from *at_p on: returns how many. */
size_t ls_tensor_part_run(const ls_param *, size_t i, size_t *at_p);

/* Numbers the tensors of a model of slices, once it has all parameters, in the order in which their
 * first slices were added. */
void ls_tensor_part_number(ls_model *);

#endif
