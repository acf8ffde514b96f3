/* number_range.h - the numbers between two bounds, as a regular expression of their texts. */
#ifndef LS_GRAMMAR_NUMBER_RANGE_H
#define LS_GRAMMAR_NUMBER_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

#define LS_LARGEST_NUMBER INT64_C(999999999999999999) /* 18 digits */

/* From `low` to `high`, both at most LS_LARGEST_NUMBER and at least its negative. */
typedef struct ls_number_range {
    int64_t low, high;
    bool above, below; /* not `low` itself, not `high` itself: for numbers with fractions */
} ls_number_range;

/* Appends an expression; false: there is no such number. With fractions: of at most 17 digits, and
 * beside a bound that is excluded of so few that all numbers of the expression differ from it as
 * doubles, too. */
bool ls_number_range_write(const ls_number_range *, bool fractions, ls_buf *regex);

#endif
