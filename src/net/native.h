/* native.h - collectives of the transport itself, for users who give up the order of sums.
 *
 * They are a library's own (MPI's): it chooses the order, and it may differ from run to run. They
 * don't block: start() posts one and poll() returns its message when it is done, among the others.
 * All workers of the transport take part, and start the same ones in the same order; nothing
 * checks that. A call that was started can't be cancelled: if forget() finds one that does not end,
 * the transport is broken.
 *
 * Buffers are as in lockstep/group.h, in place too, and belong to the call until it is done.
 */
#ifndef LS_NET_NATIVE_H
#define LS_NET_NATIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "lockstep/group.h"
#include "net/net.h"

typedef enum ls_native_what {
    LS_NATIVE_ALL_REDUCE,
    LS_NATIVE_REDUCE_SCATTER,
    LS_NATIVE_ALL_GATHER,
    LS_NATIVE_BROADCAST,
    LS_NATIVE_REDUCE,
    LS_NATIVE_GATHER,
    LS_NATIVE_SCATTER,
    LS_NATIVE_ALL_TO_ALL,
    LS_NATIVE_SCAN,
    LS_NATIVE_EXSCAN,
    LS_NATIVE_BARRIER
} ls_native_what;

typedef struct ls_native_call {
    ls_native_what what;
    ls_dtype dtype;
    ls_op op;     /* where it reduces */
    int root;     /* where there is one */
    size_t count; /* of the vector, or of one worker's block */
    const void *in;
    void *out; /* a broadcast's only buffer */
} ls_native_call;

typedef struct ls_native_ops {
    /* Can it be done? Not sums of halves, which would be rounded at each step, nor minima and
     * maxima of floats, where a NaN may get lost, nor sums of 8 and 16 bits, nor minima of unsigned
     * integers, which MPI's libraries saturate or take for signed; nor more than an int counts. The
     * same at all workers: buffers and root are not looked at. */
    bool (*can)(const ls_net *, const ls_native_call *);
    /* A call that can be done. m->owner is the caller's; the rest of m is not looked at. LS_EPEER:
     * it failed, and the transport with it. */
    ls_status (*start)(ls_net *, const ls_native_call *, ls_message *m, ls_error *);
} ls_native_ops;

#endif
