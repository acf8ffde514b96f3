/* sliced.h - language models whose products are cut into slices (parallel.tensor_virtual), as
 * Megatron cuts them: Shoeybi et al., arXiv 1909.08053.
 *
 * Slice k of n has rows [r k / n, r (k + 1) / n) of a product's weight [r, ..]; the product that
 * follows has these as columns, and what it computes is summed over the slices. Layers and
 * parameters of a slice have names like "q_proj.slice.1"; with one slice names and bits are those
 * of a model that is not cut.
 *
 *     ls_layers_fork(m, x, s->n, of);
 *     for (s->k = 0; s->k < s->n; s->k++) of[s->k] = ... of[s->k] ...
 *     x = ls_layers_join(m, of, s->n);
 */
#ifndef LS_NETWORKS_SLICED_H
#define LS_NETWORKS_SLICED_H

#include "config/config.h"
#include "layers/fork.h"

typedef struct ls_sliced {
    ls_model *m;
    int n, k;      /* slices, and the one whose layers are being added */
    bool sequence; /* they divide the rows between products, too (sequence.h) */
} ls_sliced;

/* What can be cut into as many slices as these at most; 0: the model has none. A head of keys and
 * values may be that of several slices, if all are that of as many. */
typedef struct ls_sliced_sizes {
    int64_t heads, kv_heads, ffn, vocab, experts;
} ls_sliced_sizes;

/* Refuses what the keys can't have together, or a model that can't be cut. */
ls_status ls_sliced_check(const ls_config *, const ls_sliced_sizes *, ls_error *);

/* Layers that are added next are those of slice s->k. */
void ls_sliced_begin(const ls_sliced *);

typedef struct ls_sliced_name {
    char text[64];
} ls_sliced_name;
ls_sliced_name ls_sliced_named(const ls_sliced *, const char *name);

/* The slice's first one of `all`, and how many it has. */
int64_t ls_sliced_first(const ls_sliced *, int64_t all);
int64_t ls_sliced_count(const ls_sliced *, int64_t all);

/* Parameter i of the value's layer has rows (dim 0) or columns (1) of a tensor: the slice's share
 * of `units` units, of `size` each, in each of `groups` groups. */
typedef struct ls_sliced_part {
    int param, dim, groups;
    int64_t units, size;
} ls_sliced_part;
void ls_sliced_set(const ls_sliced *, const ls_value *, ls_sliced_part);

#endif
