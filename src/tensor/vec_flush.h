/* vec_flush.h - x86-64's mode in which numbers below 1.2e-38, operands and results, are zeros; see
 * vec.h. A result counts as below it after it was rounded. */
#ifndef LS_TENSOR_VEC_FLUSH_H
#define LS_TENSOR_VEC_FLUSH_H

#include <immintrin.h>
#include <stdbool.h>

#define V_FLUSH
enum { V_FLUSH_REPEATS = 0 };
enum { V_FLUSH_BITS = 0x8040 }; /* flush to zero; denormals are zeros */

typedef unsigned v_flush_state;

static inline v_flush_state v_flush_begin(void) {
    v_flush_state before = _mm_getcsr();
    _mm_setcsr(before | V_FLUSH_BITS);
    return before;
}
static inline bool v_flush_end(v_flush_state before) {
    _mm_setcsr(before);
    return true;
}

#endif
