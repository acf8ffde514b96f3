/* whole.h - updates of parameters whose rule needs all of a parameter: norms, means of rows and
 * columns, products of matrices.
 *
 * Such a parameter has one owner (ls_param.whole), so its update sends nothing. It has two parts:
 *
 *   1. Computing reads gradient, parameter and states, and writes only its room: factors and values.
 *   2. Applying changes parameter and states, one block of LS_BLOCK after another, each a function of
 *      the block and the room, with the journal as in any update (journal.h).
 *
 * The room says for which parameter and step it is complete. The successor of a worker that was
 * killed computes again if it is not, as nothing has changed yet; else it applies the room's values
 * to the blocks that have not had the step. Sums are over blocks, then over these in order, so the
 * bits don't depend on the number of threads.
 */
#ifndef LS_OPTIM_WHOLE_H
#define LS_OPTIM_WHOLE_H

#include "optim/apply.h"

/* The bytes of a worker's room; 0: no parameter needs it. All zeros mean: it is not complete. With a
 * journal it outlives the worker, as the journal does. */
size_t ls_whole_nbytes(const ls_optim *, const ls_model *, ls_dtype grads_type);

/* Updates one parameter, all of which is the caller's. */
void ls_whole_update(const ls_optim_update *, const ls_compute *, int param);

/* Products [M, K] x [K, N] that the update of a whole parameter computes `times` times; 0: none. */
typedef struct ls_whole_product {
    double times, M, N, K;
} ls_whole_product;
enum { LS_WHOLE_PRODUCTS = 3 };
/* list [LS_WHOLE_PRODUCTS] */
void ls_whole_products(const ls_optim *, const ls_param *, ls_whole_product *list);

#endif
