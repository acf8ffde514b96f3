/* select.h - elements by magnitude: keys whose order is that of magnitudes, and among equal ones
 * the reverse of indexes, so that no two keys of a vector are equal. The lowest bit is the sign. */
#ifndef LS_COMPRESS_SELECT_H
#define LS_COMPRESS_SELECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The bits of |x|: their order is that of magnitudes. */
static inline uint32_t ls_select_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u & 0x7fffffffu;
}
static inline uint64_t ls_select_key(float x, uint32_t index) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint64_t)(u & 0x7fffffffu) << 33 | (uint64_t)(uint32_t)~index << 1 | u >> 31;
}
static inline uint32_t ls_select_index(uint64_t key) { return ~(uint32_t)(key >> 1); }
static inline float ls_select_magnitude(uint64_t key) {
    uint32_t u = (uint32_t)(key >> 33);
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
/* The element itself. */
static inline float ls_select_value(uint64_t key) {
    return key & 1 ? -ls_select_magnitude(key) : ls_select_magnitude(key);
}

/* The key that `rank` of the n keys exceed, rank < n; keys are reordered, so that those before the
 * place `rank` are not less. */
uint64_t ls_select(uint64_t *keys, size_t n, size_t rank);

#endif
