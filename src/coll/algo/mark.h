/* mark.h - how far a worker got in a call that may be broken off, and made again by another
 * group. */
#ifndef LS_COLL_ALGO_MARK_H
#define LS_COLL_ALGO_MARK_H

#include <stdatomic.h>

/* For calls over shared memory. *at is `value` while this worker's part is being summed, and
 * value + 1 when the sum is complete; a call that is made again then skips it. at NULL: no mark. */
typedef struct ls_call_mark {
    atomic_uint *at;
    unsigned value;
} ls_call_mark;

#endif
