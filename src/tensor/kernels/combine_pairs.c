/* combine_pairs.c - minimum and maximum with index, of two blocks of pairs.
 *
 * The lower index wins between equal values. A NaN wins over all numbers; all NaNs are the same
 * value. -0 is below +0, as in LS_MIN. So pairs are totally ordered, and the result does not depend
 * on the order in which they are combined.
 *
 * Pairs of 32 bits are compared as pairs of 64 bits, which hold all their values and indexes.
 */
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

/* True if the first wins. */
INLINE bool wins(ls_op op, ls_i64_i64 a, ls_i64_i64 b) {
    return a.value == b.value ? a.index <= b.index : (a.value < b.value) == (op == LS_MINLOC);
}

/* The pair with its value as an integer of the same order: -0 is just below +0, and a NaN is beyond
 * the minimum, or maximum, of all numbers. */
INLINE ls_i64_i64 ordered(ls_op op, ls_f64_i64 x) {
    int64_t i;
    memcpy(&i, &x.value, sizeof i);
    bool nan = x.value != x.value;
    i = nan ? (op == LS_MINLOC ? INT64_MIN : INT64_MAX) : i ^ ((i >> 63) & INT64_MAX);
    return (ls_i64_i64){i, x.index};
}

INLINE ls_f64_i64 best_float(ls_op op, ls_f64_i64 a, ls_f64_i64 b) {
    static const uint64_t nan = 0x7ff8000000000000u;
    ls_f64_i64 best = wins(op, ordered(op, a), ordered(op, b)) ? a : b;
    if (best.value != best.value) memcpy(&best.value, &nan, sizeof nan);
    return best;
}

INLINE ls_i64_i64 best_integer(ls_op op, ls_i64_i64 a, ls_i64_i64 b) {
    return wins(op, a, b) ? a : b;
}

INLINE void each_f64(ls_op op, size_t n, const ls_f64_i64 *a, const ls_f64_i64 *b,
                     ls_f64_i64 *out) {
    for (size_t i = 0; i < n; i++) out[i] = best_float(op, a[i], b[i]);
}

INLINE void each_f32(ls_op op, size_t n, const ls_f32_i32 *a, const ls_f32_i32 *b,
                     ls_f32_i32 *out) {
    for (size_t i = 0; i < n; i++) {
        ls_f64_i64 x = {(double)a[i].value, a[i].index}, y = {(double)b[i].value, b[i].index};
        ls_f64_i64 best = best_float(op, x, y);
        out[i] = (ls_f32_i32){(float)best.value, (int32_t)best.index};
    }
}

INLINE void each_i64(ls_op op, size_t n, const ls_i64_i64 *a, const ls_i64_i64 *b,
                     ls_i64_i64 *out) {
    for (size_t i = 0; i < n; i++) out[i] = best_integer(op, a[i], b[i]);
}

INLINE void each_i32(ls_op op, size_t n, const ls_i32_i32 *a, const ls_i32_i32 *b,
                     ls_i32_i32 *out) {
    for (size_t i = 0; i < n; i++) {
        ls_i64_i64 x = {a[i].value, a[i].index}, y = {b[i].value, b[i].index};
        ls_i64_i64 best = best_integer(op, x, y);
        out[i] = (ls_i32_i32){(int32_t)best.value, (int32_t)best.index};
    }
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
