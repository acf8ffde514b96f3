/* half.h - conversions between f32 and 16-bit floats, one element, without branches. After F.
 * Giesen, half-to-float and float-to-half, in the public domain. */
#ifndef LS_TENSOR_KERNELS_HALF_H
#define LS_TENSOR_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

#include "tensor/kernels/each.h"

INLINE uint32_t bits_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

INLINE float f32_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

INLINE float f32_of_bf16(uint16_t h) { return f32_of((uint32_t)h << 16); }

/* Rounds to nearest, ties to even; every NaN becomes 0x7fc0. A mask replaces a NaN before it is
 * rounded: `?`, which gcc moves behind the rounding, takes more instructions. */
INLINE uint16_t bf16_of(float x) {
    uint32_t nan = 0u - (x != x);
    uint32_t u = (bits_f32(x) & ~nan) | (0x7fc00000u & nan);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* Raises the exponent by 127 - 15, and again for infinity and NaN. A subnormal gets the exponent
 * 2^-14, which adds a leading one; the subtraction removes it. Both conversions select by masks,
 * since gcc turns two `?` with one condition into branches and does not vectorize them. */
INLINE float f32_of_f16(uint16_t h) {
    const uint32_t top = 0x1fu << 23, step = (127u - 15u) << 23, one = 1u << 23;
    uint32_t u = (h & 0x7fffu) << 13, exponent = u & top;
    uint32_t subnormal = 0u - (exponent == 0), special = 0u - (exponent == top);
    u += step + (special & step) + (subnormal & one);
    float magnitude = f32_of(u) - f32_of(subnormal & (step + one));
    return f32_of(bits_f32(magnitude) | (h & 0x8000u) << 16);
}

/* Rounds to nearest, ties to even; from 65520 on to infinity; every NaN becomes 0x7e00. Below
 * 2^-14, adding 0.5 makes the processor round at 2^-24, the last digit of 0.5 and of subnormals. */
INLINE uint16_t f16_of(float x) {
    const uint32_t half = 126u << 23, step = (127u - 15u) << 23, one = 1u << 23;
    const uint32_t infinity = step + (31u << 23);
    uint32_t u = bits_f32(x) & 0x7fffffffu, sign = bits_f32(x) >> 16 & 0x8000u;
    uint32_t nan = 0u - (x != x), subnormal = 0u - (u < step + one);
    u = u < infinity ? u : infinity;
    uint32_t small = bits_f32(f32_of(u) + 0.5f) - half;
    uint32_t normal = (u - step + 0xfffu + (u >> 13 & 1)) >> 13;
    uint32_t h = (small & subnormal) | (normal & ~subnormal) | sign;
    return (uint16_t)((h & ~nan) | (0x7e00u & nan));
}

#endif
