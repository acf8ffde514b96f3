/* bf16.c - the upper half of each element, rounded to nearest, ties to even. A finite element stays
 * finite.
 *
 * Message: 16 bits an element.
 */
#include "base/round_up.h"
#include "compress/blocks.h"

static size_t nbytes(const ls_compression *how, size_t n, int round) {
    (void)how, (void)round;
    return ls_round_up(n, LS_PACK) * sizeof(uint16_t);
}

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    enum { INFINITE = 0x7F80, MOST = 0x7F7F, SIGN = 0x8000 };
    uint16_t *to = message;
    (void)round;
    j->k->narrow(LS_BF16, j->n, x, to);
    for (size_t i = 0; i < j->n; i++) /* what has been rounded up to infinity */
        if ((to[i] & ~SIGN) == INFINITE) to[i] = (uint16_t)((to[i] & SIGN) | MOST);
    for (size_t i = j->n; i < nbytes(j->how, j->n, 0) / sizeof *to; i++) to[i] = 0;
}

static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    j->k->widen(LS_BF16, count, (const uint16_t *)message + first, out);
}

const ls_codec ls_codec_bf16 = {.name = "bf16",
                                .blocks = true,
                                .nshared = ls_codec_none,
                                .nwork = ls_codec_none,
                                .nbytes = nbytes,
                                .unit = ls_blocks_unit,
                                .prepare = ls_codec_prepare_nothing,
                                .encode = encode,
                                .absorb = ls_codec_absorb_nothing,
                                .decode = decode};
