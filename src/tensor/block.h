/* block.h - the types in which files hold weights: one element (f32, f16, bf16), or blocks of
 * elements that share scales.
 *
 * Layouts of the blocks, little-endian, d and m being f16 (those of ggml, https://github.com/
 * ggml-org/llama.cpp, ggml/src/ggml-common.h). A value is computed from left to right, each product
 * and each sum rounded to f32:
 *
 *   type  elements  bytes  layout                                  value
 *   Q8_0        32     34  d, 32 x i8 q                            q d
 *   Q4_0        32     18  d, 16 bytes of q                        d (q - 8)
 *   Q4_1        32     20  d, m, 16 bytes of q                     d q + m
 *   Q5_0        32     22  d, 32 fifth bits, 16 bytes of q         d (q - 16)
 *   Q5_1        32     24  d, m, 32 fifth bits, 16 bytes of q      d q + m
 *   Q4_K       256    144  d, m, 12 bytes of s and t, 128 of q     (d s) q - (m t)
 *   Q5_K       256    176  d, m, 12 of s and t, 32 fifth, 128 of q (d s) q - (m t)
 *   Q6_K       256    210  128 low, 64 high, 16 x i8 s, d          (d s) (q - 32)
 *   Q3_K       256    110  32 third bits, 64 of q, 12 of s, d      (d (s - 32)) (q - 4)
 *   Q2_K       256     84  16 bytes of s and t, 64 of q, d, m      (d s) q - (m t)
 *   IQ4_NL      32     18  d, 16 bytes of q                        d e[q]
 *   IQ4_XS     256    136  d, 2 + 4 bytes of s, 128 of q           (d (s - 32)) e[q]
 *
 * In blocks of 32, the low four bits of byte i belong to element i, the high ones to element
 * 16 + i. Blocks of 256 have 8 groups of 32 elements, each with a scale s and a minimum t of 6 bits
 * (Q6_K, Q3_K and Q2_K: 16 groups of 16); kernels/unpack.c has the order of their bits,
 * kernels/variant.h the table e.
 */
#ifndef LS_TENSOR_BLOCK_H
#define LS_TENSOR_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ls_block_type {
    LS_BLOCK_F32,
    LS_BLOCK_F16,
    LS_BLOCK_BF16,
    LS_BLOCK_Q8_0,
    LS_BLOCK_Q4_0,
    LS_BLOCK_Q4_1,
    LS_BLOCK_Q5_0,
    LS_BLOCK_Q5_1,
    LS_BLOCK_Q4_K,
    LS_BLOCK_Q5_K,
    LS_BLOCK_Q6_K,
    LS_BLOCK_Q3_K,
    LS_BLOCK_Q2_K,
    LS_BLOCK_IQ4_NL,
    LS_BLOCK_IQ4_XS,
    LS_NBLOCK_TYPES
} ls_block_type;

enum { LS_BLOCK_MOST = 256 }; /* elements */

/* Weights in one of these types (stored.h). */
typedef struct ls_stored {
    const void *data; /* aligned to an element of f32 or 16 bits; blocks: to 2 bytes */
    ls_block_type type;
    const void *strips; /* the same in the order of products of one row (gemv.h), or NULL */
    bool int8;          /* products quantize their other operand (int8.h) */
} ls_stored;

/* Are strips of this type in groups (kernels/strips.h)? */
static inline bool ls_strips_in_groups(ls_block_type t) {
    return t == LS_BLOCK_Q8_0 || t == LS_BLOCK_Q4_0 || t == LS_BLOCK_Q4_1 || t == LS_BLOCK_BF16 ||
           t == LS_BLOCK_F16;
}

/* y = the values of n blocks at x, which is aligned to 2 bytes. A scale that is NaN gives NaN. */
typedef void ls_unpack_kernel(int64_t n, const uint8_t *x, float *y);

#endif
