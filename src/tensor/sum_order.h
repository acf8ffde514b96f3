/* sum_order.h - the name of the order in which products in bf16 (gemm.h) sum.
 *
 * blocks32: k is cut into blocks of 32. In a block the products at even places are one chain of
 * multiply-adds E from 0, those at odd places one chain O; then c = c + (E + O). Versions that
 * recorded no name had one chain over all of k.
 *
 * Plans, checkpoints and the records of a run have the name, since the order decides bits. Another
 * order needs another name.
 */
#ifndef LS_TENSOR_SUM_ORDER_H
#define LS_TENSOR_SUM_ORDER_H

#include <stddef.h>

#include "tensor/dtype.h"

#define LS_SUM_ORDER "blocks32"

/* The order of a run whose train.compute is this type; NULL: no product is in bf16. */
static inline const char *ls_sum_order(ls_dtype compute) {
    return compute == LS_BF16 ? LS_SUM_ORDER : NULL;
}

#endif
