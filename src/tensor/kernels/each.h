/* each.h - for loops over elements of which the compiler makes vectors. */
#ifndef LS_TENSOR_KERNELS_EACH_H
#define LS_TENSOR_KERNELS_EACH_H

#define INLINE static inline __attribute__((always_inline))

/* Outputs are apart from inputs or are the same elements: no iteration depends on another. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

#endif
