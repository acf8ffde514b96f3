/* randomk.c - k elements at places that seed and step decide, the same for all contributions: the
 * vector is cut into k parts of equal length (to one element), and each part gives one element, at a
 * place that is a function of (seed, step, part).
 *
 * Message: k values, which are summed as they are.
 */
#include <string.h>

#include "base/random.h"
#include "compress/codec.h"

static size_t nbytes(const ls_compression *how, size_t n, int round) {
    (void)n, (void)round;
    return how->k * sizeof(float);
}

static size_t unit(const ls_compression *how) {
    (void)how;
    return 1;
}

static size_t nwork(const ls_compression *how, size_t n) {
    (void)n;
    return how->k * sizeof(uint32_t);
}

/* The places go into work memory. */
static void prepare(const ls_codec_job *j) {
    enum { LANES = 16 };
    uint32_t *place = j->work, words[4][LANES];
    size_t n = j->n, k = j->how->k;
    ls_random_place at = {j->how->seed, LS_STREAM_COMPRESS, j->how->step, 0};
    for (size_t i = 0; i < k; i++) {
        if (i % LANES == 0) {
            at.index = i;
            ls_random_words16(at, words);
        }
        uint64_t first = (uint64_t)i * n / k, end = (uint64_t)(i + 1) * n / k;
        place[i] = (uint32_t)(first + ((uint64_t)words[0][i % LANES] * (end - first) >> 32));
    }
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    const uint32_t *place = j->work;
    float *values = message;
    (void)round;
    for (size_t i = 0; i < j->how->k; i++) values[i] = x[place[i]];
}

static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    const uint32_t *place = j->work;
    const float *values = message;
    size_t k = j->how->k;
    memset(out, 0, count * sizeof *out);
    /* The part of element `first`, or the one before it. */
    size_t i = j->n ? (size_t)((uint64_t)first * k / j->n) : 0;
    for (; i < k && place[i] < first + count; i++)
        if (place[i] >= first) out[place[i] - first] = values[i];
}

const ls_codec ls_codec_randomk = {.name = "randomk",
                                   .rounds = 1,
                                   .nshared = ls_codec_none,
                                   .nwork = nwork,
                                   .nbytes = nbytes,
                                   .unit = unit,
                                   .prepare = prepare,
                                   .encode = encode,
                                   .absorb = ls_codec_absorb_nothing,
                                   .decode = decode};
