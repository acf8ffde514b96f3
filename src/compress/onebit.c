/* onebit.c - the sign of each element (0 and -0 count as positive), and for each block a scale: the
 * mean of the magnitudes, or the root of the mean of the squares.
 *
 * Message: the scales, then one bit an element.
 */
#include <math.h>

#include "compress/blocks.h"

enum { GROUP = sizeof(uint32_t) };

static size_t nbytes(const ls_compression *how, size_t n, int round) {
    ls_blocks b = ls_blocks_of(how, n);
    (void)round;
    return ls_blocks_nbytes(&b, GROUP);
}

/* Where a sum in f32 leaves its range, it is made in double. */
static float root_mean_square(const ls_kernels *k, int64_t n, const float *x) {
    float sum = k->sum_squares(n, x);
    if (isfinite(sum) && sum > 0x1p-100f) return sqrtf(sum / (float)n);
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
    return (float)sqrt(squares / (double)n);
}

static float mean_magnitude(const ls_kernels *k, int64_t n, const float *x) {
    float sum = k->compress.abs_sum(n, x);
    if (isfinite(sum)) return sum / (float)n;
    double all = 0;
    for (int64_t i = 0; i < n; i++) all += fabs((double)x[i]);
    return (float)(all / (double)n);
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    ls_blocks b = ls_blocks_of(j->how, j->n);
    float *scales = message;
    uint32_t *bits = (uint32_t *)(scales + b.nblocks);
    bool root = j->how->sign_scale == LS_SCALE_ROOT;
    (void)round;
    for (size_t i = 0; i < b.nblocks; i++) {
        const float *p = x + i * b.block;
        int64_t n = ls_blocks_length(&b, i);
        scales[i] = (root ? root_mean_square : mean_magnitude)(j->k, n, p);
        j->k->compress.pack_signs(n, p, bits + i * b.block / LS_PACK);
    }
}

static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    ls_blocks b = ls_blocks_of(j->how, j->n);
    const float *scales = message;
    const uint32_t *bits = (const uint32_t *)(scales + b.nblocks);
    for (size_t at = first, end = first + count, run = 0; at < end; at += run) {
        run = ls_blocks_run(&b, at, end - at);
        j->k->compress.unpack_signs((int64_t)run, bits + at / LS_PACK, scales[at / b.block],
                                    out + (at - first));
    }
}

const ls_codec ls_codec_onebit = {.name = "onebit",
                                  .blocks = true,
                                  .nshared = ls_codec_none,
                                  .nwork = ls_codec_none,
                                  .nbytes = nbytes,
                                  .unit = ls_blocks_unit,
                                  .prepare = ls_codec_prepare_nothing,
                                  .encode = encode,
                                  .absorb = ls_codec_absorb_nothing,
                                  .decode = decode};
