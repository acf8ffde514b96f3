/* random.c - see random.h. */
#include "base/random.h"

#include <math.h>

#include "base/math.h"

static void philox_round(uint32_t c[4], const uint32_t k[2]) {
    uint64_t a = (uint64_t)0xD2511F53u * c[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(b >> 32) ^ c1 ^ k[0];
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c3 ^ k[1];
    c[3] = (uint32_t)a;
}

static void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
    uint32_t k[2] = {k0, k1};
    for (int i = 0; i < 10; i++) {
        philox_round(c, k);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
}

/* The counter is (index, substream); the key is the seed, mixed with the stream. */
void ls_random_words(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index,
                     uint32_t out[4]) {
    uint64_t key = seed ^ ((uint64_t)stream << 56);
    out[0] = (uint32_t)index;
    out[1] = (uint32_t)(index >> 32);
    out[2] = (uint32_t)substream;
    out[3] = (uint32_t)(substream >> 32);
    philox(out, (uint32_t)key, (uint32_t)(key >> 32));
}

static double to_unit(uint32_t hi, uint32_t lo) {
    return (double)((((uint64_t)hi << 32) | lo) >> 11) * 0x1p-53;
}

double ls_random_uniform(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t index) {
    uint32_t w[4];
    ls_random_words(seed, stream, substream, index, w);
    return to_unit(w[0], w[1]);
}

/* The two deviates of pair `pair`. A rejected attempt takes the next 2^48 places. */
static void normal_pair(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t pair,
                        double out[2]) {
    for (uint64_t attempt = 0;; attempt++) {
        uint32_t w[4];
        ls_random_words(seed, stream, substream, pair + (attempt << 48), w);
        double u = 2.0 * to_unit(w[0], w[1]) - 1.0;
        double v = 2.0 * to_unit(w[2], w[3]) - 1.0;
        double s = u * u + v * v;
        if (s >= 1.0 || s == 0.0) continue;
        double f = sqrt(-2.0 * ls_math_log(s) / s);
        out[0] = u * f;
        out[1] = v * f;
        return;
    }
}

void ls_random_normal(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t first, size_t n,
                      float std, float *out) {
    double pair[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        uint64_t at = first + i;
        if (i == 0 || at % 2 == 0) normal_pair(seed, stream, substream, at / 2, pair);
        out[i] = (float)(pair[at % 2] * (double)std);
    }
}
