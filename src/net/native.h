/* native.h - collectives that a transport brings along, where the user gives up the order of sums.
 *
 * They are a library's own (MPI's): it chooses the order, and it may differ from run to run. They
 * block, and while they do nothing else moves on the transport: all workers call the same ones in
 * the same order, with no message in flight that another needs to get there. Messages that wait are
 * not lost.
 *
 * Buffers are as in lockstep/group.h, in place too. counts are of one worker's block. LS_EINVAL: it
 * can't be done (nothing was sent); LS_EPEER: it failed, and the transport with it.
 */
#ifndef LS_NET_NATIVE_H
#define LS_NET_NATIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/group.h"
#include "net/net.h"

typedef struct ls_native_ops {
    /* Can elements of this type be reduced so? Not halves, whose sums would be rounded at each
     * step, and no minima and maxima of floats, where a NaN may get lost. Moving takes any type. */
    bool (*supports)(ls_dtype, ls_op);
    ls_status (*all_reduce)(ls_net *, const void *in, void *out, size_t count, ls_dtype, ls_op,
                            ls_error *);
    ls_status (*reduce_scatter_block)(ls_net *, const void *in, void *out, size_t count, ls_dtype,
                                      ls_op, ls_error *);
    ls_status (*all_gather)(ls_net *, const void *in, void *out, size_t count, ls_dtype,
                            ls_error *);
    ls_status (*broadcast)(ls_net *, void *buf, size_t count, ls_dtype, int root, ls_error *);
} ls_native_ops;

#endif
