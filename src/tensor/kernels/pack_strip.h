/* pack_strip.h - packs the lines of an operand of a product side by side. */
#ifndef LS_TENSOR_KERNELS_PACK_STRIP_H
#define LS_TENSOR_KERNELS_PACK_STRIP_H

#include "tensor/kernels/variant.h"

/* Full lines with contiguous values. */
static inline void pack_lines(int64_t depth, const float *p, int64_t line, int64_t width,
                              float *restrict out) {
    int64_t k = 0;
    for (; k + 8 <= depth; k += 8)
        for (int64_t i = 0; i < width; i += 4) {
            const float *q = p + i * line + k;
            const float *const lines[4] = {q, q + line, q + 2 * line, q + 3 * line};
            v_transpose4(lines, out + k * width + i, width);
        }
    for (; k < depth; k++)
        for (int64_t i = 0; i < width; i++)
            memcpy(out + k * width + i, p + i * line + k, sizeof *out);
}

/* Lines are `line` apart, values of a line `step` apart. */
typedef struct lines {
    const float *p;
    int64_t line, step;
} lines;

/* One strip of `width` lines (a multiple of 4) of `depth` values, interleaved: out[k * width + i]
 * is value k of line i. Lines from `n` on become zeros. */
static inline void pack_strip(lines from, int64_t n, int64_t depth, int64_t width,
                              float *restrict out) {
    const float *p = from.p;
    if (n == width && from.line == 1) {
        for (int64_t k = 0; k < depth; k++)
            memcpy(out + k * width, p + k * from.step, (size_t)width * sizeof *out);
        return;
    }
    if (n == width && from.step == 1) {
        pack_lines(depth, p, from.line, width, out);
        return;
    }
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < width; i++)
            out[k * width + i] = i < n ? p[i * from.line + k * from.step] : 0.0f;
}

#endif
