/* compress.h - kernels of the codecs that compress sums (src/compress).
 *
 * Packed elements stand in groups of LS_PACK; the last group is filled up with zeros, which are
 * packed like other elements and never unpacked. Messages need the alignment of 4 bytes.
 */
#ifndef LS_TENSOR_COMPRESS_H
#define LS_TENSOR_COMPRESS_H

#include <stdint.h>

enum { LS_PACK = 32 };

typedef struct ls_compress_kernels {
    /* out = error * keep + x, rounded once; error NULL: out = x. Returns the index of the first
     * result that is not finite, or -1. out may be x or error. */
    int64_t (*add_error)(int64_t n, float keep, const float *error, const float *x, float *out);
    /* out = a - b; any of them may be the same. */
    void (*subtract)(int64_t n, const float *a, const float *b, float *out);
    float (*abs_max)(int64_t n, const float *x);
    /* 16 lanes, then a tree. */
    float (*abs_sum)(int64_t n, const float *x);
    float (*dot)(int64_t n, const float *x, const float *y);
    /* y -= a * x, rounded once */
    void (*subtract_scaled)(int64_t n, float a, const float *x, float *y);

    /* Writes the indexes, plus `first`, of the elements whose magnitude is above `threshold`, in
     * ascending order, `room` of them at most, and anything into the 15 words after these. Returns
     * how many it wrote; once `room` is full it returns room. index [room + 15] */
    int64_t (*above)(int64_t n, const float *x, float threshold, uint32_t first, uint32_t *index,
                     int64_t room);

    /* A group is one word: bit i is set unless element i is below 0. Unpacked: scale or -scale. */
    void (*pack_signs)(int64_t n, const float *x, uint32_t *words);
    void (*unpack_signs)(int64_t n, const uint32_t *words, float scale, float *y);
    /* x * inverse, rounded to the nearest integer, ties to even; |x * inverse| < 2^22, and what
     * does not fit is cut. Unpacked: the integer * scale. In 4 bits, byte i of a group has element
     * i in its low half and element 16 + i in its high half, both plus 8. */
    void (*pack_i8)(int64_t n, const float *x, float inverse, int8_t *bytes);
    void (*unpack_i8)(int64_t n, const int8_t *bytes, float scale, float *y);
    void (*pack_i4)(int64_t n, const float *x, float inverse, uint8_t *bytes);
    void (*unpack_i4)(int64_t n, const uint8_t *bytes, float scale, float *y);
} ls_compress_kernels;

#endif
