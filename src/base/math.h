/* math.h - scalar functions with the same bits on every machine.
 *
 * A C library's log and cos differ between versions and processors; these use only +, -, *, / of
 * IEEE double precision, in a fixed order. They are for set-up, schedules and losses.
 * Accuracy is a few units in the 15th digit.
 */
#ifndef LS_BASE_MATH_H
#define LS_BASE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* x times n, for callers that round it up or down. 0.29 times 100 is below 29 in binary, and 0.07
 * times 100 above 7: a product that is as near to a whole number as rounding gets is that
 * number. */
static inline double ls_math_times(double x, double n) {
    double product = x * n, whole = floor(product + 0.5);
    return fabs(product - whole) <= fabs(product) * 0x1p-51 ? whole : product;
}

/* Natural logarithm of x > 0, normal.
 *
 * x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1), by its series: |s|
 * is at most 0.172, so that s^21 is below 2^-53. It has no branches, so that compilers can
 * vectorize it. */
static inline double ls_math_log(double x) {
    static const double inverse[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                     1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    const uint64_t sqrt2 = 0x6a09e667f3bcdu; /* the bits of its fraction */
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

double ls_math_exp(double x);                 /* e to the x; 0 below -700, e^700 above 700 */
double ls_math_cospi(double x);               /* cos(pi x), 0 <= x <= 1 */
double ls_math_pow_int(double x, uint64_t n); /* x to the n, by squaring */

#endif
