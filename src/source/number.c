/* number.c - see number.h. */
#include "source/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"

enum { LONGEST = 400 };

static size_t count_digits(const char *s, const char *end) {
    const char *p = s;
    while (p < end && *p >= '0' && *p <= '9') p++;
    return (size_t)(p - s);
}

/* A number as a text spells it: digits times 10^power. */
typedef struct decimal {
    uint64_t digits;
    int64_t power;
    bool negative;
    bool whole; /* `digits` has all of them */
} decimal;

enum { MOST_DIGITS = 19, MOST_POWER = 10000 }; /* 10^19 < 2^64 */

/* Eight digits at s as a number below 10^8. False: not all of them are digits. The first one is in
 * the word's lowest byte: pairs become numbers below 100, these numbers below 10^4, and so on. */
static bool read_eight(const char *s, uint64_t *number_p) {
    uint64_t w = 0;
    memcpy(&w, s, sizeof w);
    uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0), zeros = UINT64_C(0x3030303030303030);
    if ((w & high) != zeros || ((w + UINT64_C(0x0606060606060606)) & high) != zeros) return false;
    w -= zeros;
    w = (w * 10 + (w >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    w = (w * 100 + (w >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *number_p = (w * 10000 + (w >> 32)) & UINT64_C(0xffffffff);
    return true;
}

static const char *read_digits(const char *s, const char *end, uint64_t *digits) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t eight = 0;
    for (; end - s >= 8 && read_eight(s, &eight); s += 8) *digits = *digits * 100000000 + eight;
#endif
    for (; s < end && *s >= '0' && *s <= '9'; s++) *digits = *digits * 10 + (uint64_t)(*s - '0');
    return s;
}

/* Digits from the first one on that is not 0; s..end are digits, and maybe a point. */
static size_t count_significant(const char *s, const char *end) {
    size_t n = 0;
    for (; s < end; s++) n += *s != '.' && (n || *s != '0');
    return n;
}

/* "e-3", up to the end. False: it is no exponent. */
static bool read_exponent(const char *s, const char *end, int64_t *power) {
    if (s == end || (*s != 'e' && *s != 'E')) return false;
    s++;
    bool negative = s < end && *s == '-';
    if (s < end && (*s == '+' || *s == '-')) s++;
    if (s == end) return false;
    int64_t e = 0;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9') return false;
        if (e < MOST_POWER) e = e * 10 + (*s - '0');
    }
    *power += negative ? -e : e;
    return true;
}

/* True if s..end is a sign, digits with or without a point, and an exponent. strtod() alone would
 * also take hexadecimal numbers, inf and nan. */
static bool read_decimal(const char *s, const char *end, decimal *d) {
    *d = (decimal){.negative = *s == '-'};
    if (s < end && (*s == '+' || *s == '-')) s++;
    const char *begin = s, *at = read_digits(s, end, &d->digits);
    size_t point = at < end && *at == '.';
    if (point) {
        const char *behind = at + 1;
        at = read_digits(behind, end, &d->digits);
        d->power = behind - at;
    }
    size_t n = (size_t)(at - begin) - point;
    d->whole = n <= MOST_DIGITS || count_significant(begin, at) <= MOST_DIGITS;
    if (n == 0) return false;
    return at == end || read_exponent(at, end, &d->power);
}

/* m 2^power, and a little more if `more`: rounded to the nearest double, ties to even. m is not 0,
 * and the result is far from the ends of a double's range. */
static double round_to_double(uint64_t m, bool more, int power) {
    enum { BELOW = 11 }; /* bits below a double's 53 */
    int shift = __builtin_clzll(m);
    m <<= shift;
    uint64_t top = m >> BELOW, low = m & ((1 << BELOW) - 1), half = 1 << (BELOW - 1);
    top += low > half || (low == half && (more || top & 1));
    uint64_t bits = (uint64_t)(1023 + power + BELOW - shift) << 52;
    double scale = 0;
    memcpy(&scale, &bits, sizeof scale);
    return (double)top * scale;
}

__extension__ typedef unsigned __int128 wide;

/* The nearest double to digits 10^power, whose power of five a uint64_t holds: the exact product,
 * or the first 63 bits of the quotient, and whether there are more. */
static double from_wide(uint64_t digits, int power) {
    static uint64_t const fives[] = {1,
                                     5,
                                     25,
                                     125,
                                     625,
                                     3125,
                                     15625,
                                     78125,
                                     390625,
                                     1953125,
                                     9765625,
                                     48828125,
                                     244140625,
                                     1220703125,
                                     6103515625,
                                     30517578125,
                                     152587890625,
                                     762939453125,
                                     3814697265625,
                                     19073486328125,
                                     95367431640625,
                                     476837158203125,
                                     2384185791015625,
                                     11920928955078125,
                                     59604644775390625,
                                     298023223876953125,
                                     1490116119384765625,
                                     7450580596923828125};
    uint64_t five = fives[power < 0 ? -power : power];
    if (power >= 0) {
        wide product = (wide)digits * five;
        uint64_t high = (uint64_t)(product >> 64);
        if (!high) return round_to_double((uint64_t)product, false, power);
        int shift = __builtin_clzll(high);
        product <<= shift;
        return round_to_double((uint64_t)(product >> 64), (uint64_t)product != 0,
                               power + 64 - shift);
    }
    int a = __builtin_clzll(digits), b = __builtin_clzll(five);
    wide above = (wide)(digits << a) << 63;
    uint64_t below = five << b, quotient = (uint64_t)(above / below);
    return round_to_double(quotient, above - (wide)quotient * below != 0, power + b - a - 63);
}

/* As strtod() finds it. False: it is too long, or far from 1.
 *
 * Source: W. D. Clinger, How to read floating point numbers accurately, PLDI 1990. */
static bool convert(decimal d, double *value_p) {
    enum { EXACT = 22, FIVES = 27 };
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value = (double)d.digits;
    if (!d.whole || d.power < -FIVES || d.power > FIVES) return false;
    int power = (int)d.power;
    bool exact = d.digits < (UINT64_C(1) << 53) && power >= -EXACT && power <= EXACT;
    if (exact)
        value = power < 0 ? value / powers[-power] : value * powers[power];
    else if (d.digits)
        value = from_wide(d.digits, power);
    *value_p = d.negative ? -value : value;
    return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool ls_number_parse(const char *text, size_t n, double *value_p) {
    const char *end = text + n;
    while (text < end && is_blank(*text)) text++;
    while (text < end && is_blank(end[-1])) end--;
    n = (size_t)(end - text);
    decimal d;
    if (n == 0 || n >= LONGEST || !read_decimal(text, end, &d)) return false;
    if (convert(d, value_p)) return true;
    char copy[LONGEST];
    memcpy(copy, text, n);
    copy[n] = 0;
    double value = strtod_l(copy, NULL, ls_locale_c());
    if (!isfinite(value)) return false;
    *value_p = value;
    return true;
}

bool ls_number_parse_whole(const char *text, size_t n, int64_t *value_p) {
    const char *end = text + n;
    while (text < end && is_blank(*text)) text++;
    while (text < end && is_blank(end[-1])) end--;
    const char *digits = text + (text < end && (*text == '-' || *text == '+'));
    char copy[LONGEST];
    n = (size_t)(end - text);
    if (n == 0 || n >= LONGEST || digits == end ||
        count_digits(digits, end) != (size_t)(end - digits))
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    errno = 0;
    long long value = strtoll(copy, NULL, 10);
    if (errno) return false;
    *value_p = value;
    return true;
}

bool ls_number_is_i32(double value) {
    return value >= INT32_MIN && value <= INT32_MAX && value == floor(value);
}

bool ls_number_is_f32(double value) { return fabs(value) < 0x1.ffffffp127; }
