/* int8.c - products with activations in int8: by the instructions that all processors of the
 * variant have (int8_rows.h), or by VPDPBUSD (int8_vnni.c). */
#include "tensor/kernels/int8_rows.h"

#ifndef LS_HAS_VNNI
#define LS_HAS_VNNI() __builtin_cpu_supports("avx512vnni")
#endif

void LS_K(int8_rows)(const ls_int8_job *j) {
#ifdef LS_INT8_VNNI
    if (LS_HAS_VNNI()) {
        LS_K(int8_rows_vnni)(j);
        return;
    }
#endif
    int8_rows(j);
}
