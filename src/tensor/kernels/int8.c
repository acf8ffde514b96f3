/* int8.c - products with activations in int8, by the instructions that all processors of the variant
 * have: int8_rows.h. */
#include "tensor/kernels/int8_rows.h"

void LS_K(int8_rows)(const ls_int8_job *j) { int8_rows(j); }
