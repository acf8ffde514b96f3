/* decimal.h - decimal numbers, by their digits. */
#ifndef LS_GRAMMAR_DECIMAL_H
#define LS_GRAMMAR_DECIMAL_H

#include "base/json.h"

enum { LS_WHOLE_DIGITS = 18, LS_FRACTION_DIGITS = 17 };

typedef struct ls_decimal {
    bool negative; /* 0 is not */
    bool cut;      /* further digits that are not 0 were left out */
    bool large;    /* it has more whole digits; these are all 9 */
    char digits[LS_WHOLE_DIGITS + LS_FRACTION_DIGITS]; /* '0' to '9' */
} ls_decimal;

/* False: the value is no number. */
bool ls_decimal_read(const ls_json *, ls_decimal *);
/* -1, 0 or 1 */
int ls_decimal_compare(const ls_decimal *, const ls_decimal *);
/* Leaves out the digits behind so many places. */
void ls_decimal_cut(ls_decimal *, int places);

#endif
