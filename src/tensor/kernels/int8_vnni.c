/* int8_vnni.c - products with activations in int8, for processors with AVX-512 that have VPDPBUSD,
 * which sums four products of bytes in 32 bits: int8_rows.h. int8.c asks for it. */
#include "tensor/int8_block.h"

#ifdef LS_VARIANT_avx512
#define LS_VNNI
#include "tensor/kernels/int8_rows.h"

_Static_assert(LS_B_MIDDLE == 128, "vec.h was included before, without LS_VNNI");

void LS_K(int8_rows_vnni)(const ls_int8_job *j) { int8_rows(j); }
#endif
