/* mark.h - what a worker has done of a call that may be broken off, and made again by another
 * group.
 */
#ifndef LS_COLL_ALGO_MARK_H
#define LS_COLL_ALGO_MARK_H

#include <stdatomic.h>

/* *at is `value` while this worker's part is being summed, and value + 1 when it is there; it is
 * then passed over when the call is made again. Of calls by shared memory. at NULL: nobody asks. */
typedef struct ls_call_mark {
    atomic_uint *at;
    unsigned value;
} ls_call_mark;

#endif
