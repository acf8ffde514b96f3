/* decimal.c - see decimal.h. */
#include "grammar/decimal.h"

#include <stdlib.h>
#include <string.h>

/* Puts the digits of a mantissa, of which `whole` stand before the point: fewer than none if it
 * begins with zeros behind the point. */
static void put_digits(ls_decimal *d, const char *digits, size_t n, long whole) {
    for (size_t i = 0; i < n; i++) {
        long place = LS_WHOLE_DIGITS - whole + (long)i;
        if (digits[i] == '0') continue;
        if (place < 0)
            d->large = true;
        else if (place >= (long)sizeof d->digits)
            d->cut = true;
        else
            d->digits[place] = digits[i];
    }
    if (d->large) memset(d->digits, '9', LS_WHOLE_DIGITS);
}

bool ls_decimal_read(const ls_json *value, ls_decimal *d) {
    ls_buf text = {0}, digits = {0};
    double x = 0;
    long whole = 0;
    if (!ls_json_number(value, &x)) return false;
    ls_json_write_exact(value, &text);
    *d = (ls_decimal){.negative = x < 0};
    memset(d->digits, '0', sizeof d->digits);
    const char *at = text.data;
    for (bool point = false; *at && *at != 'e' && *at != 'E'; at++) {
        point = point || *at == '.';
        if (*at < '0' || *at > '9') continue;
        ls_buf_append(&digits, at, 1);
        whole += !point;
    }
    if (*at) whole += strtol(at + 1, NULL, 10); /* a double's exponent: it is small */
    put_digits(d, digits.data, digits.len, whole);
    ls_buf_free(&text);
    ls_buf_free(&digits);
    return true;
}

int ls_decimal_compare(const ls_decimal *a, const ls_decimal *b) {
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    int order = memcmp(a->digits, b->digits, sizeof a->digits);
    if (order == 0) order = (int)a->large - (int)b->large;
    if (order == 0) order = (int)a->cut - (int)b->cut;
    order = (order > 0) - (order < 0);
    return a->negative ? -order : order;
}

void ls_decimal_cut(ls_decimal *d, int places) {
    for (size_t i = LS_WHOLE_DIGITS + (size_t)places; i < sizeof d->digits; i++) {
        d->cut = d->cut || d->digits[i] != '0';
        d->digits[i] = '0';
    }
}
