/* dropout.c - zeros at random, the same for any layout. Srivastava et al., "Dropout", JMLR 15
 * (2014).
 *
 * The numbers of 16 places of the counter make a block of 64 elements: element i of a sample has
 * word i / 16 mod 4 of place i / 64 * 16 + i mod 16. It is zero where the word is below p * 2^32.
 */
#include "base/random.h"
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

enum { BLOCK = LS_DROPOUT_BLOCK };

static void block_words(const ls_dropout_place *d, int64_t block, uint32_t words[BLOCK]) {
    uint32_t w[4][16];
    ls_random_words16((ls_random_place){.seed = d->seed,
                                        .stream = LS_STREAM_DROPOUT,
                                        .substream = (uint64_t)d->step << 32 | d->sample,
                                        .index = (uint64_t)d->layer << 40 | (uint64_t)block * 16},
                      w);
    memcpy(words, w, sizeof w);
}

void LS_K(dropout)(const ls_dropout_place *d, int64_t first, int64_t n, const float *x, float *y) {
    const uint32_t limit = ls_dropout_limit(d);
    const float scale = ls_dropout_scale(d);
    for (int64_t i = 0; i < n;) {
        uint32_t words[BLOCK];
        int64_t at = (first + i) % BLOCK;
        int64_t end = n - i < BLOCK - at ? n - i : BLOCK - at;
        block_words(d, (first + i) / BLOCK, words);
        EACH for (int64_t j = 0; j < end; j++) y[i + j] =
            words[at + j] < limit ? 0.0f : x[i + j] * scale;
        i += end;
    }
}
