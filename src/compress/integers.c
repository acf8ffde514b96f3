/* integers.c - elements as integers of 8 or 4 bits times a scale of their block: the largest
 * magnitude of the block is the largest integer, 127 or 7, and others are rounded to the nearest.
 * The error of an element is at most half a scale: absmax / 254 or absmax / 14.
 *
 * A block whose largest magnitude is below 2^-100 is all zeros: its scale would not be a normal
 * number.
 *
 * Message: the scales, then one byte an element, or half of one.
 */
#include "compress/blocks.h"

static const float least = 0x1p-100f;

static float scale_of(const ls_codec_job *j, int64_t n, const float *x, float most,
                      float *inverse_p) {
    float absmax = j->k->compress.abs_max(n, x);
    bool empty = absmax < least;
    *inverse_p = empty ? 0.0f : most / absmax;
    return empty ? 0.0f : absmax / most;
}

/* ---- 8 bits ---- */

static size_t nbytes8(const ls_compression *how, size_t n, int round) {
    ls_blocks b = ls_blocks_of(how, n);
    (void)round;
    return ls_blocks_nbytes(&b, LS_PACK);
}

static void encode8(const ls_codec_job *j, int round, const float *x, void *message) {
    ls_blocks b = ls_blocks_of(j->how, j->n);
    float *scales = message, inverse = 0;
    int8_t *bytes = (int8_t *)(scales + b.nblocks);
    size_t padding = (LS_PACK - j->n % LS_PACK) % LS_PACK;
    (void)round;
    for (size_t i = 0; i < b.nblocks; i++) {
        const float *p = x + i * b.block;
        int64_t n = ls_blocks_length(&b, i);
        scales[i] = scale_of(j, n, p, 127.0f, &inverse);
        j->k->compress.pack_i8(n, p, inverse, bytes + i * b.block);
    }
    for (size_t i = 0; i < padding; i++) bytes[j->n + i] = 0;
}

static void decode8(const ls_codec_job *j, const void *message, size_t first, size_t count,
                    float *out) {
    ls_blocks b = ls_blocks_of(j->how, j->n);
    const float *scales = message;
    const int8_t *bytes = (const int8_t *)(scales + b.nblocks);
    for (size_t at = first, end = first + count, run = 0; at < end; at += run) {
        run = ls_blocks_run(&b, at, end - at);
        j->k->compress.unpack_i8((int64_t)run, bytes + at, scales[at / b.block],
                                 out + (at - first));
    }
}

const ls_codec ls_codec_int8 = {.name = "int8",
                                .blocks = true,
                                .nshared = ls_codec_none,
                                .nwork = ls_codec_none,
                                .nbytes = nbytes8,
                                .unit = ls_blocks_unit,
                                .prepare = ls_codec_prepare_nothing,
                                .encode = encode8,
                                .absorb = ls_codec_absorb_nothing,
                                .decode = decode8};

/* ---- 4 bits ---- */

static size_t nbytes4(const ls_compression *how, size_t n, int round) {
    ls_blocks b = ls_blocks_of(how, n);
    (void)round;
    return ls_blocks_nbytes(&b, LS_PACK / 2);
}

static void encode4(const ls_codec_job *j, int round, const float *x, void *message) {
    ls_blocks b = ls_blocks_of(j->how, j->n);
    float *scales = message, inverse = 0;
    uint8_t *bytes = (uint8_t *)(scales + b.nblocks);
    (void)round;
    for (size_t i = 0; i < b.nblocks; i++) {
        const float *p = x + i * b.block;
        int64_t n = ls_blocks_length(&b, i);
        scales[i] = scale_of(j, n, p, 7.0f, &inverse);
        j->k->compress.pack_i4(n, p, inverse, bytes + i * b.block / 2);
    }
}

static void decode4(const ls_codec_job *j, const void *message, size_t first, size_t count,
                    float *out) {
    ls_blocks b = ls_blocks_of(j->how, j->n);
    const float *scales = message;
    const uint8_t *bytes = (const uint8_t *)(scales + b.nblocks);
    for (size_t at = first, end = first + count, run = 0; at < end; at += run) {
        run = ls_blocks_run(&b, at, end - at);
        j->k->compress.unpack_i4((int64_t)run, bytes + at / 2, scales[at / b.block],
                                 out + (at - first));
    }
}

const ls_codec ls_codec_int4 = {.name = "int4",
                                .blocks = true,
                                .nshared = ls_codec_none,
                                .nwork = ls_codec_none,
                                .nbytes = nbytes4,
                                .unit = ls_blocks_unit,
                                .prepare = ls_codec_prepare_nothing,
                                .encode = encode4,
                                .absorb = ls_codec_absorb_nothing,
                                .decode = decode4};
