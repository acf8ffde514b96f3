/* number.h - decimal numbers in text files. */
#ifndef LS_SOURCE_NUMBER_H
#define LS_SOURCE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text [n] as a number: blanks around it, a sign, digits, a point, an exponent; no words such as
 * nan. The locale does not matter. False: it is none, or it is beyond a double. */
bool ls_number_parse(const char *text, size_t n, double *value_p);

/* text [n] as an integer without a point or an exponent. False: it is none, or it is beyond an
 * int64_t. */
bool ls_number_parse_whole(const char *text, size_t n, int64_t *value_p);

/* True if the value has no fraction and is in the range of an i32. */
bool ls_number_is_i32(double value);
/* True if it is finite once it is rounded to f32, as up to half a step above the greatest f32. */
bool ls_number_is_f32(double value);

#endif
