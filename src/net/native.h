/* native.h - collectives of the transport itself, for users who need no fixed order of sums.
 *
 * A library (MPI) carries them out. It chooses the order, which may differ from run to run. They
 * don't block: start() posts one, and poll() returns its message when it is done, among the others.
 * All workers of the transport take part, and start the same calls in the same order; nothing
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
    ls_op op;     /* of calls that reduce */
    int root;     /* of calls that have one */
    size_t count; /* of the vector, or of one worker's block */
    const void *in;
    void *out; /* a broadcast's only buffer */
} ls_native_call;

typedef struct ls_native_ops {
    /* Is this call supported? These are not:
     *  - sums of bf16 and f16, which would be rounded at each step;
     *  - minima and maxima of floats, where a NaN may get lost;
     *  - sums of 8 and 16 bits, which MPI's libraries saturate;
     *  - minima and maxima of unsigned integers, which they take for signed;
     *  - more elements than an int counts.
     * All workers get the same answer: buffers and root are not looked at. */
    bool (*can)(const ls_net *, const ls_native_call *);
    /* Starts a call that can() allows. m->owner is the caller's; the rest of m is not looked at.
     * LS_EPEER: the call has failed, and the transport is broken. */
    ls_status (*start)(ls_net *, const ls_native_call *, ls_message *m, ls_error *);
} ls_native_ops;

#endif
