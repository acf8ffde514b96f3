/* expert_groups.h - the experts of a mixture in a model of chunks (chunked.h).
 *
 * The experts are divided into groups, which belong to the chunks in turn: so workers that divide the
 * chunks divide the experts. Router, biases and shared experts have a layer for each chunk. A group's
 * layer reads the rows of all chunks and their router's logits, makes the same choice as the other
 * groups, and computes its own experts' rows. Each chunk adds up what the groups computed of its rows,
 * in the tree of the groups.
 *
 * Group i has experts [E i / n, E (i + 1) / n). Its parameters are slices of the tensors that a model
 * of one group has (model/tensor_part.h).
 */
#ifndef LS_NETWORKS_EXPERT_GROUPS_H
#define LS_NETWORKS_EXPERT_GROUPS_H

#include "layers/moe.h"
#include "networks/chunked.h"

/* The groups of a config's experts: as many as chunks, but at most one for each expert; 1: the model
 * is not cut, or has none. */
int ls_expert_groups_count(const ls_config *);

/* Mixtures of experts of x [n], the rows of each chunk: out [n]. chunks: of the config; those of
 * ls_chunked are 1 in a model that has the same groups, and samples that are not cut. */
void ls_expert_groups_mix(const ls_chunked *, int chunks, const ls_moe_options *, ls_value **x,
                          ls_value **out);

#endif
