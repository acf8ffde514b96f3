/* fork.h - one value for several slices of a model (ls_build_slice()), and the sum of what they
 * compute.
 *
 * Both are binary trees over the slices, which n alone decides: the halves [0, n / 2) and
 * [n / 2, n), and so on. The gradient of a forked value is summed in that tree, as is a sum of
 * slices: so the bits are the same however many workers divide the slices. A node of the tree
 * belongs to the first slice of its parent, so all layers that read a value are of one slice or of
 * a part of the tree that begins with it. */
#ifndef LS_LAYERS_FORK_H
#define LS_LAYERS_FORK_H

#include "model/builder.h"

enum { LS_SLICES_MOST = 64 };

/* out [n]: x, for the layers of each slice. The slice is 0 afterwards. */
void ls_layers_fork(ls_model *, ls_value *x, int n, ls_value **out);
/* Forks x for slices [first, first + n) of `all`, of which slice `first` computes x: sets out
 * [first] and so on. */
void ls_layers_fork_among(ls_model *, ls_value *x, int all, int first, int n, ls_value **out);
/* For every step-th slice of `all`, which step divides: sets out [0], out [step] and so on. */
void ls_layers_fork_every(ls_model *, ls_value *x, int all, int step, ls_value **out);
/* out [n]: x, for layers of the same slice and chunk; the gradient is summed in the tree of n. */
void ls_layers_copies(ls_model *, ls_value *x, int n, ls_value **out);
/* x again, by a layer of its own. */
ls_value *ls_layers_copy(ls_model *, ls_value *x);
/* The sum of x [n], of which x[k] is slice k's. The slice is 0 afterwards. */
ls_value *ls_layers_join(ls_model *, ls_value **x, int n);
/* The sum of x [n] in the tree of n, by layers of one slice and chunk. */
ls_value *ls_layers_sum(ls_model *, ls_value **x, int n);

#endif
