/* combine_pairs.c - minimum and maximum with index, of two blocks of pairs.
 *
 * Of equal values, the one with the lower index wins. A NaN wins over all numbers; all NaNs are
 * the same value. -0 is below +0, as in LS_MIN. So pairs are totally ordered, and the result does not depend
 * on the order in which they are combined.
 */
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

/* Maps floats to integers of the same order: -0 is just below +0. */
INLINE int64_t key_f64(double x) {
    int64_t i;
    memcpy(&i, &x, sizeof i);
    return i ^ ((i >> 63) & INT64_MAX);
}

INLINE int32_t key_f32(float x) {
    int32_t i;
    memcpy(&i, &x, sizeof i);
    return i ^ ((i >> 31) & INT32_MAX);
}

/* True if the first wins. */
INLINE bool first(ls_op op, int64_t a, int64_t b, int64_t at_a, int64_t at_b) {
    return a == b ? at_a <= at_b : (a < b) == (op == LS_MINLOC);
}

/* A NaN is beyond the minimum, or maximum, of all numbers. */
INLINE int64_t place(ls_op op, bool nan, int64_t key) {
    return nan ? (op == LS_MINLOC ? INT64_MIN : INT64_MAX) : key;
}

INLINE void each_f64(ls_op op, size_t n, const ls_f64_i64 *a, const ls_f64_i64 *b,
                     ls_f64_i64 *out) {
    static const uint64_t nan = 0x7ff8000000000000u;
    for (size_t i = 0; i < n; i++) {
        double x = a[i].value, y = b[i].value;
        int64_t p = place(op, x != x, key_f64(x)), q = place(op, y != y, key_f64(y));
        ls_f64_i64 best = first(op, p, q, a[i].index, b[i].index) ? a[i] : b[i];
        if (best.value != best.value) memcpy(&best.value, &nan, sizeof nan);
        out[i] = best;
    }
}

INLINE void each_f32(ls_op op, size_t n, const ls_f32_i32 *a, const ls_f32_i32 *b,
                     ls_f32_i32 *out) {
    static const uint32_t nan = 0x7fc00000u;
    for (size_t i = 0; i < n; i++) {
        float x = a[i].value, y = b[i].value;
        int64_t p = place(op, x != x, key_f32(x)), q = place(op, y != y, key_f32(y));
        ls_f32_i32 best = first(op, p, q, a[i].index, b[i].index) ? a[i] : b[i];
        if (best.value != best.value) memcpy(&best.value, &nan, sizeof nan);
        out[i] = best;
    }
}

INLINE void each_i64(ls_op op, size_t n, const ls_i64_i64 *a, const ls_i64_i64 *b,
                     ls_i64_i64 *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = first(op, a[i].value, b[i].value, a[i].index, b[i].index) ? a[i] : b[i];
}

INLINE void each_i32(ls_op op, size_t n, const ls_i32_i32 *a, const ls_i32_i32 *b,
                     ls_i32_i32 *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = first(op, a[i].value, b[i].value, a[i].index, b[i].index) ? a[i] : b[i];
}

void LS_K(combine_pairs)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b,
                         void *out) {
    switch (dtype) {
    case LS_F64_I64: each_f64(op, n, a, b, out); break;
    case LS_F32_I32: each_f32(op, n, a, b, out); break;
    case LS_I64_I64: each_i64(op, n, a, b, out); break;
    case LS_I32_I32: each_i32(op, n, a, b, out); break;
    default: break;
    }
}
