/* math.c - see math.h. */
#include "base/math.h"

#include <string.h>

/* x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1), by its series: |s|
 * is at most 0.172, so that s^21 is below 2^-53. Without branches, so that compilers can do several
 * at once. */
static inline double log_of(double x) {
    static const double inverse[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                     1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    const uint64_t sqrt2 = 0x6a09e667f3bcdu; /* its bits after the point */
    uint64_t bits, one = 1023;
    memcpy(&bits, &x, sizeof bits);
    uint64_t point = bits & 0x000fffffffffffffu, over = point > sqrt2;
    int k = (int)((bits >> 52) & 0x7ff) - 1023 + (int)over;
    bits = point | (one - over) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, sum = 0.0;
    for (int i = 0; i < 10; i++) sum = (sum + inverse[i]) * s2;
    return (double)k * 0.69314718055994530942 + 2.0 * (s + s * sum);
}

double ls_math_log(double x) { return log_of(x); }

void ls_math_log8(const double x[8], double out[8]) {
    for (int i = 0; i < 8; i++) out[i] = log_of(x[i]);
}

/* cos(pi x) = -cos(pi (1-x)); on [0, 1/4] the series of cos, on [1/4, 1/2] that of sin. */
double ls_math_cospi(double x) {
    const double pi = 3.14159265358979323846;
    if (x > 0.5) return -ls_math_cospi(1.0 - x);
    int sine = x > 0.25;
    double t = pi * (sine ? 0.5 - x : x), t2 = t * t, sum = 0.0;
    /* 1 - t2/(1*2) (1 - t2/(3*4) (...)) for cos; t (1 - t2/(2*3) (1 - ...)) for sin */
    for (int i = 10; i >= 1; i--) {
        int a = sine ? 2 * i * (2 * i + 1) : (2 * i - 1) * 2 * i;
        sum = (1.0 - sum) * (t2 / a);
    }
    return sine ? t * (1.0 - sum) : 1.0 - sum;
}

double ls_math_pow_int(double x, uint64_t n) {
    double result = 1.0;
    for (; n; n >>= 1) {
        if (n & 1) result *= x;
        x *= x;
    }
    return result;
}

/* x = k ln 2 + r, |r| <= ln 2 / 2; the series of e^r to r^14; times 2^k. */
double ls_math_exp(double x) {
    if (x < -700.0) return 0.0;
    if (x > 700.0) x = 700.0;
    double k = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0;
    double r = (x - k * 0.693145751953125) - k * 1.42860682030941723e-6, sum = 1.0;
    for (int i = 14; i >= 1; i--) sum = 1.0 + sum * r / i;
    uint64_t bits = (uint64_t)((int64_t)k + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}
