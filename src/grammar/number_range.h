/* number_range.h - the numbers between two bounds, as a regular expression of their texts. */
#ifndef LS_GRAMMAR_NUMBER_RANGE_H
#define LS_GRAMMAR_NUMBER_RANGE_H

#include "base/mem.h"
#include "grammar/decimal.h"

typedef struct ls_number_bound {
    bool given, exclusive;
    ls_decimal at;
} ls_number_bound;

typedef struct ls_number_range {
    ls_number_bound low, high;
    int whole, places; /* digits before and behind the point: at most so many */
} ls_number_range;

/* Appends an expression; false: there is no such number. Beside a bound that is excluded there are
 * so few places that all numbers of the expression differ from it as doubles, too. */
bool ls_number_range_write(const ls_number_range *, ls_buf *regex);

#endif
