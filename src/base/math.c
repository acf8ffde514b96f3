/* math.c - see math.h. */
#include "base/math.h"

#include <string.h>

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
