/* expert_groups.h - the experts of a mixture, which slices and chunks divide (cut.h).
 *
 * The experts are divided into groups, which belong to the chunks in turn, and each group among the
 * slices: so workers that divide the slices or the chunks divide the experts. Router and biases
 * have a layer for each chunk, in its first slice; shared experts one for each chunk and slice. A
 * slice of a group has a layer, which reads the rows of all chunks and their router's logits, makes
 * the same choice as the others, and computes its own experts' rows. For each chunk, a slice adds
 * up what its part of the groups computed, in the tree of the groups; then the slices are summed.
 *
 * The rows of a chunk that choose none of these experts are not read there, and are 0 in what is
 * computed of them: so workers send the others alone (ls_chosen_rows).
 *
 * Slice k of K of group i of n has experts [E (i K + k) / (n K), E (i K + k + 1) / (n K)). Its
 * parameters are slices of the tensors that a model has whose experts are not divided
 * (model/tensor_part.h).
 */
#ifndef LS_NETWORKS_EXPERT_GROUPS_H
#define LS_NETWORKS_EXPERT_GROUPS_H

#include "layers/moe.h"
#include "networks/cut.h"

typedef struct ls_expert_groups {
    const ls_moe_options *o;
    ls_cut_compute *shared; /* what a slice's shared experts compute, in the model `of` */
    void *of;
    ls_value **sums; /* [chunks.samples] of the routers before, for one loss of all; NULL: none */
} ls_expert_groups;

/* The groups: as many as chunks, but each slice of one has an expert at least; 1: the experts are
 * not divided among chunks. */
int ls_expert_groups_count(const ls_cut *, int64_t experts);

/* x [chunks.n]: what the mixture computes from them. */
void ls_expert_groups_mix(ls_cut *, const ls_expert_groups *, ls_sequence *x);

#endif
