/* links.h - operands of links (tensor/fused16.h), for its tests. */
#ifndef LS_TEST_TENSOR_LINKS_H
#define LS_TEST_TENSOR_LINKS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tensor/fused16.h"

enum { LINK = LS_FUSED16 };

static inline uint32_t bits_of(float x) {
    uint32_t u = 0;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float float_of(uint32_t u) {
    float x = 0;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Kinds of operands: ordinary; of many sizes; near 2^-126; with zeros of both signs; near 2^127. */
typedef enum link_kind { ORDINARY, SIZES, TINY, ZEROS, LARGE, NKINDS } link_kind;

/* A number of a kind, from two random words: one that bf16 has, or c. */
static inline float link_number(uint32_t word, uint32_t more, link_kind kind, bool is_c) {
    static const struct {
        int least, range; /* of exponents */
    } kinds[NKINDS] = {{-6, 13}, {-37, 70}, {-127, 64}, {-20, 40}, {30, 38}};
    int e = kinds[kind].least + (int)(more >> 8) % kinds[kind].range;
    if (kind == ZEROS && more % 3 == 0) return word & 1 ? 0.0f : -0.0f;
    if (is_c && kind == TINY && more % 3 == 0) return 0.0f;
    if (is_c && kind == TINY) e = -127 + (int)(more >> 8) % 4;
    if (is_c && kind == LARGE) e = 127 - (int)(more >> 8) % 30;
    uint32_t fraction = is_c ? word & 0x7fffff : word & 0x7f0000;
    return float_of((word & 0x80000000) | (uint32_t)(e + 127) << 23 | fraction);
}

#endif
