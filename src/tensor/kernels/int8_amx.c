/* int8_amx.c - products with activations in int8 by Intel's matrix unit (tensor/amx.h): sums of 32
 * elements of up to 64 rows of a panel with 16 rows of weights, where all elements have one scale.
 * Other sums, and panels of few rows, are by VPDPBUSD, which all processors with this unit have.
 */
#include "tensor/int8_block.h"

#ifdef LS_VARIANT_avx512
#define LS_VNNI
#define LS_INT8_AMX
#include "tensor/amx.h"
#include "tensor/kernels/int8_rows.h"

_Static_assert(LS_B_MIDDLE == 128, "vec.h was included before, without LS_VNNI");

enum { LEAST_ROWS = 8 }; /* for which a tile pays */

void LS_K(int8_rows_amx)(const ls_int8_job *j) {
    if (j->R < LEAST_ROWS) {
        LS_K(int8_rows)(j);
        return;
    }
    ls_amx_config c;
    unit_config(j->R, &c);
    ls_amx_begin(c);
    int8_rows(j);
    ls_amx_end();
}
#endif
