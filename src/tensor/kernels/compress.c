/* compress.c - see tensor/compress.h. */
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

INLINE v16 magnitude(v16 x) { return v_max(x, v_sub(v_set1(0.0f), x)); }

/* ---- passes over a vector ---- */

/* x * 0 is 0, or NaN if x is not finite. */
int64_t LS_K(add_error)(int64_t n, float keep, const float *error, const float *x, float *out) {
    const v16 scale = v_set1(keep);
    v16 bad = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 p = v_load_n(x + i, n - i);
        if (error) p = v_fma(v_load_n(error + i, n - i), scale, p);
        bad = v_fma(p, v_set1(0.0f), bad);
        v_store_n(out + i, p, n - i);
    }
    float sum = v_sum(bad);
    if (sum == sum) return -1;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(out[i])) return i;
    return -1;
}

void LS_K(subtract)(int64_t n, const float *a, const float *b, float *out) {
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(out + i, v_sub(v_load_n(a + i, n - i), v_load_n(b + i, n - i)), n - i);
}

float LS_K(abs_max)(int64_t n, const float *x) {
    v16 most = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) most = v_max(magnitude(v_load_n(x + i, n - i)), most);
    return v_max_lane(most);
}

float LS_K(abs_sum)(int64_t n, const float *x) {
    v16 sum = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) sum = v_add(sum, magnitude(v_load_n(x + i, n - i)));
    return v_sum(sum);
}

float LS_K(dot)(int64_t n, const float *x, const float *y) {
    v16 sum = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES)
        sum = v_fma(v_load_n(x + i, n - i), v_load_n(y + i, n - i), sum);
    return v_sum(sum);
}

void LS_K(subtract_scaled)(int64_t n, float a, const float *x, float *y) {
    const v16 minus = v_set1(-a);
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(y + i, v_fma(minus, v_load_n(x + i, n - i), v_load_n(y + i, n - i)), n - i);
}

#ifdef V_PACK
/* Without a branch for each vector. */
int64_t LS_K(above)(int64_t n, const float *x, float threshold, uint32_t first, uint32_t *index,
                    int64_t room) {
    const v16 limit = v_set1(threshold);
    int64_t found = 0;
    for (int64_t i = 0; i < n && found < room; i += LS_LANES) {
        uint32_t bits = v_over(magnitude(v_load_n(x + i, n - i)), limit);
        if (n - i < LS_LANES) bits &= (1u << (n - i)) - 1; /* a threshold may be below 0 */
        found += v_pack_numbers(bits, first + (uint32_t)i, index + found);
    }
    return found < room ? found : room;
}
#else
/* Few elements are above the threshold: four vectors are tested at once. */
int64_t LS_K(above)(int64_t n, const float *x, float threshold, uint32_t first, uint32_t *index,
                    int64_t room) {
    enum { TOGETHER = 4 * LS_LANES };
    const v16 limit = v_set1(threshold);
    int64_t found = 0;
    for (int64_t i = 0; i < n && found < room; i += TOGETHER) {
        uint64_t bits = 0;
        if (n - i >= TOGETHER) {
            v16 a = magnitude(v_load(x + i)), b = magnitude(v_load(x + i + LS_LANES));
            v16 c = magnitude(v_load(x + i + 2 * LS_LANES));
            v16 d = magnitude(v_load(x + i + 3 * LS_LANES));
            if (!v_over(v_max(v_max(a, b), v_max(c, d)), limit)) continue;
            bits = v_over(a, limit) | (uint64_t)v_over(b, limit) << 16 |
                   (uint64_t)v_over(c, limit) << 32 | (uint64_t)v_over(d, limit) << 48;
        } else {
            for (int64_t j = 0; j < n - i; j++)
                bits |= (uint64_t)(fabsf(x[i + j]) > threshold) << j;
        }
        for (; bits && found < room; bits &= bits - 1)
            index[found++] = first + (uint32_t)i + (uint32_t)__builtin_ctzll(bits);
    }
    return found;
}
#endif

/* ---- groups of LS_PACK elements ---- */

/* A group's elements: those at x, or a copy in `t` that zeros fill up. */
INLINE const float *group_of(const float *x, int64_t left, float t[LS_PACK]) {
    if (left >= LS_PACK) return x;
    memset(t, 0, LS_PACK * sizeof *t);
    memcpy(t, x, (size_t)left * sizeof *t);
    return t;
}

/* Copies the part of an unpacked group that exists. */
INLINE void finish_group(float *y, int64_t left, const float *t) {
    if (y != t) memcpy(y, t, (size_t)left * sizeof *y);
}

void LS_K(pack_signs)(int64_t n, const float *x, uint32_t *words) {
    const v16 zero = v_set1(0.0f);
    float t[LS_PACK];
    for (int64_t i = 0; i < n; i += LS_PACK) {
        const float *p = group_of(x + i, n - i, t);
        *words++ = ~(v_over(zero, v_load(p)) | v_over(zero, v_load(p + LS_LANES)) << 16);
    }
}

static const uint32_t bit[LS_PACK] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

void LS_K(unpack_signs)(int64_t n, const uint32_t *words, float scale, float *y) {
    float t[LS_PACK];
    for (int64_t i = 0; i < n; i += LS_PACK) {
        float *out = n - i >= LS_PACK ? y + i : t;
        uint32_t w = *words++;
        EACH for (int j = 0; j < LS_PACK; j++) out[j] = w & bit[j] ? scale : -scale;
        finish_group(y + i, n - i, out);
    }
}

/* Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits. */
INLINE uint32_t rounded(float x, float inverse) {
    float t = x * inverse + 12582912.0f;
    uint32_t u;
    memcpy(&u, &t, sizeof u);
    return u;
}

void LS_K(pack_i8)(int64_t n, const float *x, float inverse, int8_t *bytes) {
    EACH for (int64_t i = 0; i < n; i++) bytes[i] = (int8_t)(rounded(x[i], inverse) & 0xff);
}

void LS_K(unpack_i8)(int64_t n, const int8_t *bytes, float scale, float *y) {
    EACH for (int64_t i = 0; i < n; i++) y[i] = (float)bytes[i] * scale;
}

/* Adding 8 more than in rounded() keeps ties even. */
INLINE uint32_t rounded_i4(float x, float inverse) {
    float t = x * inverse + 12582920.0f;
    uint32_t u;
    memcpy(&u, &t, sizeof u);
    return u & 15;
}

void LS_K(pack_i4)(int64_t n, const float *x, float inverse, uint8_t *bytes) {
    float t[LS_PACK];
    for (int64_t i = 0; i < n; i += LS_PACK, bytes += LS_PACK / 2) {
        const float *p = group_of(x + i, n - i, t);
        uint32_t both[LS_PACK / 2];
        EACH for (int j = 0; j < LS_PACK / 2; j++) both[j] =
            rounded_i4(p[j], inverse) | rounded_i4(p[16 + j], inverse) << 4;
        EACH for (int j = 0; j < LS_PACK / 2; j++) bytes[j] = (uint8_t)both[j];
    }
}

void LS_K(unpack_i4)(int64_t n, const uint8_t *bytes, float scale, float *y) {
    const uint64_t low = 0x0f0f0f0f0f0f0f0fu;
    const v16 by = v_set1(scale), eight = v_set1(8.0f);
    for (int64_t i = 0; i < n; i += LS_PACK, bytes += LS_PACK / 2) {
        uint64_t w[2];
        memcpy(w, bytes, sizeof w);
        v16 a = v_of_u8(w[0] & low, w[1] & low), b = v_of_u8(w[0] >> 4 & low, w[1] >> 4 & low);
        v_store_n(y + i, v_mul(v_sub(a, eight), by), n - i);
        if (n - i > LS_LANES)
            v_store_n(y + i + LS_LANES, v_mul(v_sub(b, eight), by), n - i - LS_LANES);
    }
}
