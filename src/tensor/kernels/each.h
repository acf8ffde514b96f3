/* each.h - marks loops over elements that the compiler is to vectorize. */
#ifndef LS_TENSOR_KERNELS_EACH_H
#define LS_TENSOR_KERNELS_EACH_H

#define INLINE static inline __attribute__((always_inline))

/* Outputs either do not overlap inputs or are the same elements: no iteration depends on
 * another. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

#endif
