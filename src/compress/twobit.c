/* twobit.c - t for elements that are at least the threshold t, -t for those that are at most -t, and
 * 0 for the rest, which waits in the error until it reaches the threshold.
 *
 * Message: two bits an element.
 */
#include "compress/blocks.h"

enum { GROUP = 2 * sizeof(uint32_t) };

static size_t nbytes(const ls_compression *how, size_t n, int round) {
    (void)how, (void)round;
    return (n + LS_PACK - 1) / LS_PACK * GROUP;
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    (void)round;
    j->k->compress.pack_thirds((int64_t)j->n, x, j->how->threshold, message);
}

static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    const uint32_t *words = (const uint32_t *)message + 2 * (first / LS_PACK);
    j->k->compress.unpack_thirds((int64_t)count, words, j->how->threshold, out);
}

const ls_codec ls_codec_twobit = {.name = "twobit",
                                  .blocks = true,
                                  .nshared = ls_codec_none,
                                  .nwork = ls_codec_none,
                                  .nbytes = nbytes,
                                  .unit = ls_blocks_unit,
                                  .prepare = ls_codec_prepare_nothing,
                                  .encode = encode,
                                  .absorb = ls_codec_absorb_nothing,
                                  .decode = decode};
