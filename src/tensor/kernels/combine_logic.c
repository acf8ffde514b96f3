/* combine_logic.c - and, or, xor of two blocks of integers or bools: bitwise, or logical, where
 * nonzero is true. */
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

/* ---- bitwise: byte by byte, for integers of any size ---- */

INLINE void each_bits(ls_op op, size_t n, const uint8_t *a, const uint8_t *b, uint8_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = op == LS_BAND  ? a[i] & b[i]
                                                 : op == LS_BOR ? a[i] | b[i]
                                                                : a[i] ^ b[i];
}

/* ---- logical: 0 or 1 ---- */

INLINE uint8_t truth(ls_op op, bool a, bool b) {
    return (uint8_t)(op == LS_LAND ? a & b : op == LS_LOR ? a | b : a ^ b);
}

INLINE void each_u64(ls_op op, size_t n, const uint64_t *a, const uint64_t *b, uint64_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = truth(op, a[i] != 0, b[i] != 0);
}

INLINE void each_u32(ls_op op, size_t n, const uint32_t *a, const uint32_t *b, uint32_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = truth(op, a[i] != 0, b[i] != 0);
}

INLINE void each_u16(ls_op op, size_t n, const uint16_t *a, const uint16_t *b, uint16_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = truth(op, a[i] != 0, b[i] != 0);
}

INLINE void each_u8(ls_op op, size_t n, const uint8_t *a, const uint8_t *b, uint8_t *out) {
    EACH for (size_t i = 0; i < n; i++) out[i] = truth(op, a[i] != 0, b[i] != 0);
}

INLINE void each(size_t size, ls_op op, size_t n, const void *a, const void *b, void *out) {
    switch (size) {
    case 8: each_u64(op, n, a, b, out); break;
    case 4: each_u32(op, n, a, b, out); break;
    case 2: each_u16(op, n, a, b, out); break;
    default: each_u8(op, n, a, b, out); break;
    }
}

void LS_K(combine_logic)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b,
                         void *out) {
    size_t size = ls_dtype_size(dtype);
    switch (op) {
    case LS_BAND: each_bits(LS_BAND, n * size, a, b, out); break;
    case LS_BOR: each_bits(LS_BOR, n * size, a, b, out); break;
    case LS_BXOR: each_bits(LS_BXOR, n * size, a, b, out); break;
    case LS_LAND: each(size, LS_LAND, n, a, b, out); break;
    case LS_LOR: each(size, LS_LOR, n, a, b, out); break;
    case LS_LXOR: each(size, LS_LXOR, n, a, b, out); break;
    default: break;
    }
}
