/* peak.h - how many floating-point operations a second the vector units of cores can do: measured,
 * by multiply-adds that depend on nothing (fma_peak of kernels.h). Products are compared with it.
 */
#ifndef LS_TENSOR_PEAK_H
#define LS_TENSOR_PEAK_H

#include "tensor/kernels.h"

/* Operations a second of the calling thread, by its processor time, which excludes other users of
 * its core. bf16: multiply-adds as in products in bf16. */
double ls_peak_of_thread(const ls_kernels *, bool bf16, int64_t rounds);

/* Operations a second of `cores` threads together, the best of a few tries: takes an eighth of a
 * second. */
double ls_peak_together(const ls_kernels *, bool bf16, int cores);

/* Estimates ls_peak_together() to a few percent in 1 ms, by the threads' processor time. 0: the
 * system allows no threads. */
double ls_peak_estimate(const ls_kernels *, bool bf16, int cores);

#endif
