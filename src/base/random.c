/* random.c - see random.h. */
#include "base/random.h"

#include <math.h>
#include <stdbool.h>

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

/* Marsaglia's polar method on two uniform numbers; false: rejected. */
static bool is_inside(const uint32_t w[4], double *u_p, double *v_p, double *s_p) {
    *u_p = 2.0 * to_unit(w[0], w[1]) - 1.0;
    *v_p = 2.0 * to_unit(w[2], w[3]) - 1.0;
    *s_p = *u_p * *u_p + *v_p * *v_p;
    return *s_p < 1.0 && *s_p != 0.0;
}

/* The two deviates of pair `pair`. A rejected attempt takes the next 2^48 places. */
static void normal_pair(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t pair,
                        double out[2]) {
    double u = 0, v = 0, s = 0;
    uint32_t w[4];
    for (uint64_t attempt = 0;; attempt++) {
        ls_random_words(seed, stream, substream, pair + (attempt << 48), w);
        if (is_inside(w, &u, &v, &s)) break;
    }
    double f = sqrt(-2.0 * ls_math_log(s) / s);
    out[0] = u * f;
    out[1] = v * f;
}

/* The same of eight pairs, from `pair` on. */
static void normal_pairs(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t pair,
                         double out[8][2]) {
    double u[8], v[8], s[8], log[8];
    bool inside[8];
    for (int i = 0; i < 8; i++) {
        uint32_t w[4];
        ls_random_words(seed, stream, substream, pair + (uint64_t)i, w);
        inside[i] = is_inside(w, &u[i], &v[i], &s[i]);
    }
    ls_math_log8(s, log);
    for (int i = 0; i < 8; i++) {
        double f = sqrt(-2.0 * log[i] / s[i]);
        out[i][0] = u[i] * f;
        out[i][1] = v[i] * f;
        if (!inside[i]) normal_pair(seed, stream, substream, pair + (uint64_t)i, out[i]);
    }
}

void ls_random_normal(uint64_t seed, ls_stream stream, uint64_t substream, uint64_t first, size_t n,
                      float std, float *out) {
    double pairs[8][2];
    size_t i = 0;
    while (i < n) {
        uint64_t at = first + i;
        size_t from = at % 2, most = n - i + from >= 16 ? 16 : 2;
        if (most == 16)
            normal_pairs(seed, stream, substream, at / 2, pairs);
        else
            normal_pair(seed, stream, substream, at / 2, pairs[0]);
        for (size_t j = from; j < most && i < n; j++, i++)
            out[i] = (float)(pairs[j / 2][j % 2] * (double)std);
    }
}
