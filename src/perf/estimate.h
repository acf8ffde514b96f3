/* estimate.h - this machine, known from two kernels that run for some milliseconds: for a first
 * figure where it was not measured (perf/calibrate.h measures it).
 */
#ifndef LS_PERF_ESTIMATE_H
#define LS_PERF_ESTIMATE_H

#include "perf/machine.h"

/* The typical machine (typical.h) with the cores of this one, its products as fast as one product
 * here, in bf16 or f32, and its passes over memory as fast as one pass. The caller frees *m_p. */
ls_status ls_machine_estimate(bool bf16, ls_machine *m_p, ls_error *);

#endif
