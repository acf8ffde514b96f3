/* fused16.c - see fused16.h. */
#include "tensor/fused16.h"

#include <stdbool.h>
#include <string.h>

enum { POINT = 25, LEAST = -133, NONE = INT32_MIN };

/* m 2^(e - POINT); m is below 2^27. */
typedef struct term {
    int64_t m;
    int e; /* NONE: the term is 0 */
} term;

/* Which of a sum's terms are not finite. */
typedef struct special {
    bool nan, plus, minus;
} special;

static uint32_t bits_of(float x) {
    uint32_t u = 0;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float x = 0;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Of a float's upper bits: exponent, and mantissa with its leading 1, if it has one. */
static int exponent(uint32_t u) {
    int e = (int)(u >> 23 & 255);
    return e ? e - 127 : -126;
}
static int64_t mantissa(uint32_t u) {
    return (int64_t)((u & 0x7fffff) | ((u & 0x7f800000) ? 0x800000 : 0));
}
static bool is_finite(uint32_t u) { return (u & 0x7f800000) != 0x7f800000; }
static bool is_nan(uint32_t u) { return (u & 0x7fffffff) > 0x7f800000; }
static bool is_zero(uint32_t u) { return (u & 0x7fffffff) == 0; }

/* An infinite term, or a NaN: 0 times an infinity is one. */
static void note(special *s, uint32_t sign, bool nan) {
    s->nan |= nan;
    s->plus |= !nan && !sign;
    s->minus |= !nan && sign;
}

static term of_product(uint16_t a, uint16_t b, special *s) {
    uint32_t x = (uint32_t)a << 16, y = (uint32_t)b << 16, sign = (x ^ y) >> 31;
    if (!is_finite(x) || !is_finite(y)) {
        note(s, sign, is_nan(x) || is_nan(y) || is_zero(x) || is_zero(y));
        return (term){0, NONE};
    }
    if (is_zero(x) || is_zero(y)) return (term){0, NONE};
    int64_t m = (mantissa(x) >> 16) * (mantissa(y) >> 16); /* 14 bits after the point */
    m *= 1 << (POINT - 14);
    return (term){sign ? -m : m, exponent(x) + exponent(y)};
}

static term of_c(float c, special *s) {
    uint32_t u = bits_of(c);
    if (!is_finite(u)) note(s, u >> 31, is_nan(u));
    if (!is_finite(u) || is_zero(u)) return (term){0, NONE};
    int64_t m = mantissa(u) * (1 << (POINT - 23));
    return (term){u >> 31 ? -m : m, exponent(u)};
}

/* |m| / 2^shift, towards zero, with the sign of m. */
static int64_t cut(int64_t m, int shift) {
    int64_t whole = shift > 62 ? 0 : (m < 0 ? -m : m) >> shift;
    return m < 0 ? -whole : whole;
}

/* sum 2^(e - POINT), towards zero. */
static float to_float(int64_t sum, int e) {
    uint32_t sign = sum < 0 ? 0x80000000 : 0;
    uint64_t m = (uint64_t)(sum < 0 ? -sum : sum);
    if (m == 0) return 0.0f;
    int top = 63 - __builtin_clzll(m),
        least = e - POINT; /* the exponents of its highest bit, and of 1 */
    int from =
        top + least < -126 ? -149 : top + least - 23; /* the exponent of the result's lowest bit */
    if (top + least > 127) return float_of(sign | 0x7f800000);
    m = from > least ? m >> (from - least) : m << (least - from);
    return float_of(
        sign |
        (uint32_t)((m & 0x800000) ? ((uint64_t)(top + least + 127) << 23) + (m & 0x7fffff) : m));
}

float ls_fused16_link(float c, int n, const uint16_t *a, const uint16_t *b) {
    special s = {0};
    term terms[LS_FUSED16 + 1] = {of_c(c, &s)};
    int most = terms[0].e > LEAST ? terms[0].e : LEAST;
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        terms[1 + i] = of_product(a[i], b[i], &s);
        if (terms[1 + i].e > most) most = terms[1 + i].e;
    }
    if (s.nan || (s.plus && s.minus)) return float_of(0x7fffffff);
    if (s.plus || s.minus) return float_of(s.plus ? 0x7f800000 : 0xff800000);
    for (int i = 0; i <= n; i++)
        if (terms[i].e != NONE) sum += cut(terms[i].m, most - terms[i].e);
    return to_float(sum, most);
}

float ls_fused16_dot(float c, int64_t K, const uint16_t *a, int64_t a_step, const uint16_t *b,
                     int64_t b_step) {
    uint16_t x[LS_FUSED16], y[LS_FUSED16];
    for (int64_t k = 0; k < K; k += LS_FUSED16) {
        int n = K - k < LS_FUSED16 ? (int)(K - k) : LS_FUSED16;
        for (int i = 0; i < n; i++) {
            x[i] = a[(k + i) * a_step];
            y[i] = b[(k + i) * b_step];
        }
        c = ls_fused16_link(c, n, x, y);
    }
    return c;
}
