/* combine.c - combines two blocks of elements for a reduction, and converts 16-bit floats.
 *
 * Every function is a plain loop over one element's function, which the compiler vectorizes. An
 * element's function has no branches, and consists of IEEE operations that round once and of
 * integer operations, so every variant gives the same bits by construction. Only the NaN from a sum
 * or product of two NaNs in f32 or f64 may differ, in sign and payload.
 *
 * The operation is a constant in each loop: combine() names it, and all below is inlined.
 *
 * bf16 and f16 are computed in f32 and rounded once more. f32 has 24 binary digits, more than twice
 * theirs plus two, so rounding a sum twice gives the bits of rounding it once. Figueroa, When is
 * double rounding innocuous?, SIGNUM Newsletter 30 (1995) 21-26.
 */
#include <assert.h>

#include "tensor/kernels/half.h"
#include "tensor/kernels/variant.h"

/* ---- one element ---- */

/* Maps floats to integers of the same order; -0 is just below +0. It is its own inverse. */
INLINE int16_t key_16(int16_t i) { return (int16_t)(i ^ ((i >> 15) & INT16_MAX)); }
INLINE int32_t key_f32(int32_t i) { return i ^ ((i >> 31) & INT32_MAX); }
INLINE int64_t key_f64(int64_t i) { return i ^ ((i >> 63) & INT64_MAX); }

INLINE float pick_f32(ls_op op, float a, float b) {
    int32_t i, j, nan = 0x7fc00000;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    int32_t k = (key_f32(i) < key_f32(j)) == (op == LS_MIN) ? i : j;
    k = ((a != a) | (b != b)) ? nan : k;
    return f32_of((uint32_t)k);
}

INLINE double pick_f64(ls_op op, double a, double b) {
    int64_t i, j, nan = 0x7ff8000000000000;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    int64_t k = (key_f64(i) < key_f64(j)) == (op == LS_MIN) ? i : j;
    k = ((a != a) | (b != b)) ? nan : k;
    memcpy(&a, &k, sizeof a);
    return a;
}

/* bf16 and f16 need no conversion here. */
INLINE uint16_t pick_16(ls_op op, int16_t infinity, int16_t nan, uint16_t a, uint16_t b) {
    int16_t i = (int16_t)a, j = (int16_t)b;
    int16_t x = key_16(i), y = key_16(j), min = x < y ? x : y, max = x < y ? y : x;
    int16_t k = key_16(op == LS_MIN ? min : max);
    k = (i & INT16_MAX) > infinity ? nan : k;
    return (uint16_t)((j & INT16_MAX) > infinity ? nan : k);
}

INLINE float one_f32(ls_op op, float a, float b) {
    return op == LS_SUM ? a + b : op == LS_PROD ? a * b : pick_f32(op, a, b);
}

INLINE double one_f64(ls_op op, double a, double b) {
    return op == LS_SUM ? a + b : op == LS_PROD ? a * b : pick_f64(op, a, b);
}

INLINE uint16_t one_bf16(ls_op op, uint16_t a, uint16_t b) {
    if (op == LS_MIN || op == LS_MAX) return pick_16(op, 0x7f80, 0x7fc0, a, b);
    return bf16_of(one_f32(op, f32_of_bf16(a), f32_of_bf16(b)));
}

INLINE uint16_t one_f16(ls_op op, uint16_t a, uint16_t b) {
    if (op == LS_MIN || op == LS_MAX) return pick_16(op, 0x7c00, 0x7e00, a, b);
    return f16_of(one_f32(op, f32_of_f16(a), f32_of_f16(b)));
}

/* Signed and unsigned integers wrap around in the same way. `flip` is the sign bit of signed ones:
 * with it flipped, they compare as unsigned ones. */
INLINE uint8_t one_u8(ls_op op, uint8_t flip, uint8_t a, uint8_t b) {
    if (op == LS_SUM) return (uint8_t)(a + b);
    if (op == LS_PROD) return (uint8_t)(a * b);
    uint8_t x = a ^ flip, y = b ^ flip, min = x < y ? x : y, max = x < y ? y : x;
    return (op == LS_MIN ? min : max) ^ flip;
}

INLINE uint16_t one_u16(ls_op op, uint16_t flip, uint16_t a, uint16_t b) {
    if (op == LS_SUM) return (uint16_t)(a + b);
    if (op == LS_PROD) return (uint16_t)((uint32_t)a * b);
    uint16_t x = a ^ flip, y = b ^ flip, min = x < y ? x : y, max = x < y ? y : x;
    return (op == LS_MIN ? min : max) ^ flip;
}

INLINE uint32_t one_u32(ls_op op, uint32_t flip, uint32_t a, uint32_t b) {
    if (op == LS_SUM) return a + b;
    if (op == LS_PROD) return a * b;
    return ((a ^ flip) < (b ^ flip)) == (op == LS_MIN) ? a : b;
}

INLINE uint64_t one_u64(ls_op op, uint64_t flip, uint64_t a, uint64_t b) {
    if (op == LS_SUM) return a + b;
    if (op == LS_PROD) return a * b;
    return ((a ^ flip) < (b ^ flip)) == (op == LS_MIN) ? a : b;
}

/* ---- blocks ---- */

INLINE void each_f64(ls_op op, size_t n, const double *a, const double *b, double *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_f64(op, a[i], b[i]);
}

INLINE void each_f32(ls_op op, size_t n, const float *a, const float *b, float *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_f32(op, a[i], b[i]);
}

INLINE void each_bf16(ls_op op, size_t n, const uint16_t *a, const uint16_t *b, uint16_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_bf16(op, a[i], b[i]);
}

INLINE void each_f16(ls_op op, size_t n, const uint16_t *a, const uint16_t *b, uint16_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_f16(op, a[i], b[i]);
}

INLINE void each_u64(ls_op op, uint64_t flip, size_t n, const uint64_t *a, const uint64_t *b,
                     uint64_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_u64(op, flip, a[i], b[i]);
}

INLINE void each_u32(ls_op op, uint32_t flip, size_t n, const uint32_t *a, const uint32_t *b,
                     uint32_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_u32(op, flip, a[i], b[i]);
}

INLINE void each_u16(ls_op op, uint16_t flip, size_t n, const uint16_t *a, const uint16_t *b,
                     uint16_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_u16(op, flip, a[i], b[i]);
}

INLINE void each_u8(ls_op op, uint8_t flip, size_t n, const uint8_t *a, const uint8_t *b,
                    uint8_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = one_u8(op, flip, a[i], b[i]);
}

INLINE void each(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b, void *out) {
    switch (dtype) {
    case LS_F64: each_f64(op, n, a, b, out); break;
    case LS_F32: each_f32(op, n, a, b, out); break;
    case LS_BF16: each_bf16(op, n, a, b, out); break;
    case LS_F16: each_f16(op, n, a, b, out); break;
    case LS_I64: each_u64(op, (uint64_t)1 << 63, n, a, b, out); break;
    case LS_I32: each_u32(op, (uint32_t)1 << 31, n, a, b, out); break;
    case LS_I8: each_u8(op, 0x80, n, a, b, out); break;
    case LS_U8: each_u8(op, 0, n, a, b, out); break;
    case LS_U16: each_u16(op, 0, n, a, b, out); break;
    case LS_U32: each_u32(op, 0, n, a, b, out); break;
    case LS_U64: each_u64(op, 0, n, a, b, out); break;
    case LS_I16: each_u16(op, 0x8000, n, a, b, out); break;
    case LS_BOOL: /* these have no arithmetic */
    case LS_F64_I64:
    case LS_F32_I32:
    case LS_I64_I64:
    case LS_I32_I32:
    case LS_NDTYPES: break;
    }
}

void LS_K(combine)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b, void *out) {
    assert((unsigned)dtype < LS_NDTYPES && (unsigned)op < LS_NOPS);
    switch (op) {
    case LS_SUM:
    case LS_AVG: each(dtype, LS_SUM, n, a, b, out); break;
    case LS_PROD: each(dtype, LS_PROD, n, a, b, out); break;
    case LS_MIN: each(dtype, LS_MIN, n, a, b, out); break;
    case LS_MAX: each(dtype, LS_MAX, n, a, b, out); break;
    case LS_LAND:
    case LS_LOR:
    case LS_LXOR:
    case LS_BAND:
    case LS_BOR:
    case LS_BXOR: LS_K(combine_logic)(dtype, op, n, a, b, out); break;
    case LS_MINLOC:
    case LS_MAXLOC: LS_K(combine_pairs)(dtype, op, n, a, b, out); break;
    case LS_NOPS: break;
    }
}

void LS_K(combine_both)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b, void *out,
                        void *also) {
    if (dtype != LS_F32 || (op != LS_SUM && op != LS_AVG)) {
        LS_K(combine)(dtype, op, n, a, b, out);
        memcpy(also, out, n * ls_dtype_size(dtype));
        return;
    }
    const float *x = a, *y = b;
    float *z = out, *w = also;
    for (size_t i = 0; i < n; i += LS_LANES) {
        int64_t left = (int64_t)(n - i);
        v16 sum = v_add(v_load_n(x + i, left), v_load_n(y + i, left));
        v_store_n(z + i, sum, left);
        v_store_n(w + i, sum, left);
    }
}

void LS_K(average)(ls_dtype dtype, size_t n, int by, void *x) {
    double *f64 = x;
    float *f32 = x;
    uint16_t *h = x;
    assert((unsigned)dtype <= LS_F16 && by > 0);
    switch (dtype) {
    case LS_F64:
        for (size_t i = 0; i < n; i++) f64[i] = f64[i] / by;
        break;
    case LS_F32:
        for (size_t i = 0; i < n; i++) f32[i] = f32[i] / (float)by;
        break;
    case LS_BF16:
        for (size_t i = 0; i < n; i++) h[i] = bf16_of(f32_of_bf16(h[i]) / (float)by);
        break;
    case LS_F16:
        for (size_t i = 0; i < n; i++) h[i] = f16_of(f32_of_f16(h[i]) / (float)by);
        break;
    default: break;
    }
}

void LS_K(widen)(ls_dtype from, size_t n, const void *x, float *y) {
    const uint16_t *h = x;
    assert(from == LS_BF16 || from == LS_F16);
    if (from == LS_BF16)
        for (size_t i = 0; i < n; i++) y[i] = f32_of_bf16(h[i]);
    else
        for (size_t i = 0; i < n; i++) y[i] = f32_of_f16(h[i]);
}

void LS_K(narrow)(ls_dtype to, size_t n, const float *x, void *y) {
    uint16_t *h = y;
    assert(to == LS_BF16 || to == LS_F16);
    if (to == LS_BF16)
        for (size_t i = 0; i < n; i++) h[i] = bf16_of(x[i]);
    else
        for (size_t i = 0; i < n; i++) h[i] = f16_of(x[i]);
}
