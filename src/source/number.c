/* number.c - see number.h. */
#include "source/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 400 };

static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", NULL); }

static size_t count_digits(const char *s, const char *end) {
    const char *p = s;
    while (p < end && *p >= '0' && *p <= '9') p++;
    return (size_t)(p - s);
}

/* True if s..end is a sign, digits with or without a point, and an exponent. strtod() alone would
 * also take hexadecimal numbers, inf and nan. */
static bool is_number(const char *s, const char *end) {
    if (s < end && (*s == '+' || *s == '-')) s++;
    size_t whole = count_digits(s, end), fraction = 0;
    s += whole;
    if (s < end && *s == '.') {
        fraction = count_digits(++s, end);
        s += fraction;
    }
    if (whole + fraction == 0) return false;
    if (s == end) return true;
    if (*s != 'e' && *s != 'E') return false;
    s++;
    if (s < end && (*s == '+' || *s == '-')) s++;
    size_t digits = count_digits(s, end);
    return digits > 0 && s + digits == end;
}

/* A decimal without an exponent whose digits and power of ten are doubles without rounding: their
 * quotient is the nearest double, as strtod() finds it. False: it is longer.
 *
 * Source: W. D. Clinger, How to read floating point numbers accurately, PLDI 1990. */
static bool parse_short(const char *s, size_t n, double *value_p) {
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    enum { MOST = 17 }; /* 15 digits, which are less than 2^53, a sign and a point */
    int64_t digits = 0;
    size_t behind = 0; /* digits behind the point */
    bool point = false, negative = *s == '-';
    size_t first = negative || *s == '+';
    if (n > MOST) return false;
    for (size_t i = first; i < n; i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        if (s[i] < '0' || s[i] > '9') return false;
        digits = digits * 10 + (s[i] - '0');
        behind += point;
    }
    if (n - first - point > 15) return false;
    double value = (double)digits / powers[behind];
    *value_p = negative ? -value : value;
    return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool ls_number_parse(const char *text, size_t n, double *value_p) {
    const char *end = text + n;
    while (text < end && is_blank(*text)) text++;
    while (text < end && is_blank(end[-1])) end--;
    n = (size_t)(end - text);
    if (n == 0 || n >= LONGEST || !is_number(text, end)) return false;
    if (parse_short(text, n, value_p)) return true;
    pthread_once(&once, make_locale);
    if (!c_locale) abort(); /* "C" always exists: out of memory at the first number */
    char copy[LONGEST];
    memcpy(copy, text, n);
    copy[n] = 0;
    double value = strtod_l(copy, NULL, c_locale);
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
