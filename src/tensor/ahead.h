/* ahead.h - memory that a product reads next, prefetched a few lines at a time meanwhile. */
#ifndef LS_TENSOR_AHEAD_H
#define LS_TENSOR_AHEAD_H

#include <stdint.h>

enum { LS_AHEAD_LINE = 64 };

/* `count` segments of `nbytes`, `stride` bytes apart. Any addresses are allowed. */
typedef struct ls_ahead {
    const char *p; /* the segment that is prefetched */
    int64_t count; /* of segments that are left; 0: nothing */
    int64_t nbytes;
    int64_t stride;
    int64_t at;    /* bytes of the segment that have been prefetched */
    int64_t share; /* lines to prefetch with each tile */
} ls_ahead;

/* Always inlined: gcc removes calls of a function that does nothing but prefetch. far: only into
 * the second-level cache. */
__attribute__((always_inline)) static inline void ls_ahead_fetch(ls_ahead *x, int64_t lines,
                                                                 int far) {
    for (; lines > 0 && x->count > 0; lines--) {
        if (far)
            __builtin_prefetch(x->p + x->at, 0, 2);
        else
            __builtin_prefetch(x->p + x->at, 0, 3);
        x->at += LS_AHEAD_LINE;
        if (x->at < x->nbytes + LS_AHEAD_LINE) continue;
        x->at = 0;
        x->p += x->stride;
        x->count--;
    }
}

#endif
