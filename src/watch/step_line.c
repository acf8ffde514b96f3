/* step_line.c - see step_line.h.
 *
 * A decimal with at most 19 digits whose digits are an integer below 2^53 and whose power of ten is
 * at most 22 is one product or quotient of two exact doubles, so it is rounded once, correctly (W.
 * D. Clinger, How to Read Floating Point Numbers Accurately, PLDI 1990). Numbers in metrics.jsonl
 * have nine digits. Others are left to strtod().
 */
#include "watch/step_line.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_POWER = 22, MOST_DIGITS = 19, MOST_NUMBER = 63 };

typedef struct cursor {
    const char *at, *end;
} cursor;

static void pass_space(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r')) c->at++;
}

static bool take(cursor *c, char want) {
    pass_space(c);
    if (c->at == c->end || *c->at != want) return false;
    c->at++;
    return true;
}

static bool is_digit(const cursor *c) { return c->at < c->end && *c->at >= '0' && *c->at <= '9'; }

/* ---- numbers ---- */

static bool read_slowly(cursor *c, const char *from, double *value_p) {
    char text[MOST_NUMBER + 1], *end = NULL;
    size_t n = (size_t)(c->at - from);
    if (n > MOST_NUMBER) return false;
    memcpy(text, from, n);
    text[n] = 0;
    *value_p = strtod(text, &end);
    return end == text + n;
}

static bool read_exponent(cursor *c, int *exponent_p) {
    bool negative = c->at < c->end && *c->at == '-';
    if (c->at < c->end && (*c->at == '-' || *c->at == '+')) c->at++;
    if (!is_digit(c)) return false;
    int exponent = 0;
    for (; is_digit(c); c->at++)
        if (exponent < 10000) exponent = exponent * 10 + (*c->at - '0');
    *exponent_p += negative ? -exponent : exponent;
    return true;
}

/* Reads digits behind those in *digits; returns their number. More than MOST_DIGITS overflow. */
static int read_digits(cursor *c, uint64_t *digits) {
    static const uint64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    const char *from = c->at;
    while (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && c->end - c->at >= 8) {
        uint64_t x = ls_digits_word(c->at);
        int n = ls_digits_count(x);
        if (n) *digits = *digits * tens[n] + ls_digits_value(x, n);
        c->at += n;
        if (n < 8) return (int)(c->at - from);
    }
    for (; is_digit(c); c->at++) *digits = *digits * 10 + (uint64_t)(*c->at - '0');
    return (int)(c->at - from);
}

static bool read_number(cursor *c, double *value_p) {
    const char *from = c->at;
    uint64_t digits = 0;
    int power = 0;
    bool negative = c->at < c->end && *c->at == '-';
    if (negative) c->at++;
    int ndigits = read_digits(c, &digits);
    if (!ndigits) return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        power = -read_digits(c, &digits);
        if (!power) return false;
        ndigits -= power;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (!read_exponent(c, &power)) return false;
    }
    bool exact = ndigits <= MOST_DIGITS && digits <= (uint64_t)1 << 53 && power >= -MOST_POWER &&
                 power <= MOST_POWER;
    if (!exact) return read_slowly(c, from, value_p);
    double value = (double)digits;
    value = power < 0 ? value / powers[-power] : value * powers[power];
    *value_p = negative ? -value : value;
    return true;
}

bool ls_step_number_read(const char **at_p, const char *end, double *value_p) {
    cursor c = {*at_p, end};
    bool ok = read_number(&c, value_p);
    *at_p = c.at;
    return ok;
}

/* ---- other values ---- */

/* Behind the opening quote; *plain_p: it has no escapes. */
static bool pass_text(cursor *c, bool *plain_p) {
    *plain_p = true;
    for (; c->at < c->end; c->at++) {
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at != '\\') continue;
        *plain_p = false;
        c->at++;
        if (c->at == c->end) return false;
    }
    return false;
}

/* A list or an object, whose inside is not looked at. */
static bool pass_nested(cursor *c) {
    int depth = 0;
    bool plain = false;
    while (c->at < c->end) {
        char x = *c->at++;
        if (x == '"' && !pass_text(c, &plain)) return false;
        if (x == '[' || x == '{') depth++;
        if ((x == ']' || x == '}') && --depth == 0) return true;
    }
    return false;
}

static bool pass_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

static bool pass_other(cursor *c) {
    bool plain = false;
    switch (*c->at) {
    case '"': c->at++; return pass_text(c, &plain);
    case '[':
    case '{': return pass_nested(c);
    case 't': return pass_word(c, "true");
    case 'f': return pass_word(c, "false");
    default: return false;
    }
}

/* ---- the line ---- */

static bool read_field(cursor *c, ls_step_line *line) {
    ls_step_field f = {0};
    bool plain = false;
    if (!take(c, '"')) return false;
    f.name = c->at;
    if (!pass_text(c, &plain)) return false;
    f.n = (size_t)(c->at - 1 - f.name);
    if (!take(c, ':')) return false;
    pass_space(c);
    if (c->at == c->end) return false;
    f.number = c->at;
    bool is_null = *c->at == 'n';
    if (is_null) {
        if (!pass_word(c, "null")) return false;
        f.value = NAN;
    } else if (*c->at == '-' || is_digit(c)) {
        if (!read_number(c, &f.value)) return false;
    } else {
        line->has_others = true;
        return pass_other(c);
    }
    f.nnumber = (size_t)(c->at - f.number);
    if (plain && line->n < LS_STEP_FIELDS) line->fields[line->n++] = f;
    return true;
}

bool ls_step_line_read(const char *text, size_t n, ls_step_line *line_p) {
    cursor c = {text, text + n};
    line_p->n = 0;
    line_p->has_others = false;
    if (!take(&c, '{')) return false;
    if (!take(&c, '}')) {
        do
            if (!read_field(&c, line_p)) return false;
        while (take(&c, ','));
        if (!take(&c, '}')) return false;
    }
    pass_space(&c);
    return c.at == c.end;
}

double ls_step_line_get(const ls_step_line *line, const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < line->n; i++)
        if (line->fields[i].n == n && memcmp(line->fields[i].name, name, n) == 0)
            return line->fields[i].value;
    return NAN;
}
