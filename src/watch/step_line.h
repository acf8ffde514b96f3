/* step_line.h - the numbers of a line of metrics.jsonl, read fast.
 *
 * 50 runs of 100,000 steps are a gigabyte of lines, which are to be read while someone waits for a
 * page. A line of a step is one object of numbers, so its reader needs no tree of values: it takes
 * a tenth of the time of base/json.h. What is no number (text, lists, objects) is passed over;
 * lines of other kinds, which are few, are for ls_json_parse().
 */
#ifndef LS_WATCH_STEP_LINE_H
#define LS_WATCH_STEP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LS_STEP_FIELDS = 64, LS_SPARE = 32 };

typedef struct ls_step_field {
    const char *name; /* [n] in the line, without quotes; names with escapes are passed over */
    size_t n;
    double value;       /* NaN: null */
    const char *number; /* [nnumber] the value in the line */
    size_t nnumber;
} ls_step_field;

typedef struct ls_step_line {
    ls_step_field fields[LS_STEP_FIELDS]; /* [n]; further numbers are passed over */
    int n;
    bool has_others; /* there are values that are no numbers */
} ls_step_line;

/* Reads a line [n] without its line break. False: it is no JSON object, or is cut off. A number has
 * the bits that strtod() gives it. */
bool ls_step_line_read(const char *text, size_t n, ls_step_line *line_p);

/* Reads the number at *at_p, which it moves behind it. False: there is none before `end`. */
bool ls_step_number_read(const char **at_p, const char *end, double *value_p);

/* The same, faster, for most numbers, behind which LS_SPARE bytes can be read; it may end behind
 * the line. False: the number is for the other reader. */
static inline bool ls_step_number_read_fast(const char **at_p, double *value_p);

/* The field's value; NaN: there is none. */
double ls_step_line_get(const ls_step_line *, const char *name);

/* ---- */

/* Eight bytes of a text, of which the digits are 0 to 9 now. */
static inline uint64_t ls_digits_word(const char *text) {
    uint64_t x;
    memcpy(&x, text, sizeof x);
    return x ^ 0x3030303030303030;
}

/* How many digits the word begins with. */
static inline int ls_digits_count(uint64_t x) {
    uint64_t others = (((x & 0x7f7f7f7f7f7f7f7f) + 0x7676767676767676) | x) & 0x8080808080808080;
    return others ? __builtin_ctzll(others) / 8 : 8;
}

/* The number that its first n digits are, 1 <= n <= 8: they are summed in pairs, then in fours (D.
 * Lemire, Quickly parsing eight digits, 2018). */
static inline uint64_t ls_digits_value(uint64_t x, int n) {
    x <<= 64 - 8 * n;
    x = (x & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    x = (x & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (x & 0x0000ffff0000ffff) * 42949672960001 >> 32;
}

/* Reads the digits behind a point, which extend *digits_p; returns their number. 0: there are none,
 * or more than a number below 2^53 has. */
static inline int ls_digits_behind_point(const char *at, uint64_t *digits_p) {
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    uint64_t x = ls_digits_word(at), digits = *digits_p;
    int k = ls_digits_count(x), more = 0;
    if (k == 0) return 0;
    digits = digits * tens[k] + ls_digits_value(x, k);
    if (k == 8) {
        x = ls_digits_word(at + 8);
        more = ls_digits_count(x);
        if (more == 8 || (more && digits >= 100000000000)) return 0;
        if (more) digits = digits * tens[more] + ls_digits_value(x, more);
        if (digits > (uint64_t)1 << 53) return 0;
    }
    *digits_p = digits;
    return k + more;
}

/* Up to seven digits, and up to fifteen behind the point: the quotient of two exact doubles is
 * rounded once. */
static inline bool ls_step_number_read_fast(const char **at_p, double *value_p) {
    static const double tens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) return false;
    bool negative = **at_p == '-';
    const char *at = *at_p + negative;
    uint64_t x = ls_digits_word(at);
    int n = ls_digits_count(x), k = 0;
    if (n == 0 || n == 8) return false;
    uint64_t digits = n == 1 ? x & 0xff : ls_digits_value(x, n);
    at += n;
    if (*at == '.') {
        k = ls_digits_behind_point(at + 1, &digits);
        if (k == 0) return false;
        at += 1 + k;
    }
    if (*at == 'e' || *at == 'E' || *at == '.') return false;
    double value = (double)(int64_t)digits;
    if (k) value /= tens[k];
    *value_p = negative ? -value : value;
    *at_p = at;
    return true;
}

#endif
