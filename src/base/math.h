/* math.h - scalar functions with the same bits on every machine.
 *
 * A C library's log and cos differ between versions and processors; these use only +, -, *, / of
 * IEEE double precision, in a fixed order. They are for set-up and schedules, not for kernels.
 * Accuracy is a few units in the 15th digit.
 */
#ifndef LS_BASE_MATH_H
#define LS_BASE_MATH_H

#include <stdint.h>

double ls_math_log(double x);                        /* natural logarithm, x > 0 and normal */
void ls_math_log8(const double x[8], double out[8]); /* the same of eight at once, quicker */
double ls_math_exp(double x);                        /* e to the x; 0 below -700, e^700 above 700 */
double ls_math_cospi(double x);                      /* cos(pi x), 0 <= x <= 1 */
double ls_math_pow_int(double x, uint64_t n);        /* x to the n, by squaring */

#endif
