/* peak.h - how many floating-point operations a second the vector units of cores can do: measured, by
 * multiply-adds that depend on nothing (fma_peak of kernels.h). Products are compared with it.
 */
#ifndef LS_TENSOR_PEAK_H
#define LS_TENSOR_PEAK_H

#include "tensor/kernels.h"

/* Of the calling thread, by its processor time, which excludes other users of its core. bf16: of
 * multiply-adds as products in bf16 have them. */
double ls_peak_of_thread(const ls_kernels *, bool bf16, int64_t rounds);

/* Of `cores` threads at once, together, the best of a few tries: an eighth of a second. */
double ls_peak_together(const ls_kernels *, bool bf16, int cores);

/* The same by the threads' processor time, to a few percent: 3 ms. 0: the system allows no threads. */
double ls_peak_estimate(const ls_kernels *, bool bf16, int cores);

#endif
