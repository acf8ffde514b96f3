/* real.c - see real.h. */
#include "source/real.h"

#include <math.h>

double ls_real_of_f16(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double x = exponent == 0   ? ldexp(mantissa, -24)
               : exponent < 31 ? ldexp(1024 + mantissa, exponent - 25)
               : mantissa == 0 ? (double)INFINITY
                               : (double)NAN;
    return bits & 0x8000 ? -x : x;
}

static uint16_t to_f16(double x) {
    const unsigned sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return (uint16_t)(sign | 0x7e00);
    if (fabs(x) >= 65520) return (uint16_t)(sign | 0x7c00);
    const int e = fabs(x) < 0x1p-14 ? -14 : ilogb(x);
    return (uint16_t)(sign | (((unsigned)(e + 14) << 10) + (unsigned)rint(ldexp(fabs(x), 10 - e))));
}

void ls_real_set(ls_dtype t, double x, void *to) {
    const float f32 = (float)x;
    const uint16_t f16 = t == LS_F16 ? to_f16(x) : 0;
    assert(ls_is_real(t));
    if (t == LS_F64) memcpy(to, &x, sizeof x);
    if (t == LS_F32) memcpy(to, &f32, sizeof f32);
    if (t == LS_F16) memcpy(to, &f16, sizeof f16);
}
