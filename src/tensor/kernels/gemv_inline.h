/* gemv_inline.h - how the loops of gemv.c, gemv_table.c and gemv_lanes.c are compiled. */
#ifndef LS_TENSOR_KERNELS_GEMV_INLINE_H
#define LS_TENSOR_KERNELS_GEMV_INLINE_H

#include "tensor/kernels/variant.h"

/* Inlined for each type if that is a few vector instructions. Portable loops over sixteen lanes,
 * built with sanitizers, would grow to millions of lines. */
#if defined(LS_VARIANT_portable)
#define INLINE static inline
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
#endif

#endif
