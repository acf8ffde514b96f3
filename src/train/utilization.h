/* utilization.h - the peak of a run's cores, of which metrics report the share that a step's work
 * takes (model FLOPs utilization, MFU: Chowdhery et al., arXiv 2204.02311, appendix B).
 */
#ifndef LS_TRAIN_UTILIZATION_H
#define LS_TRAIN_UTILIZATION_H

#include "report/metrics.h"
#include "train/member.h"

/* FLOP/s of a core of this host, with `workers` workers of the config on it: measured, in 1 ms, so
 * that the processes which inherit it (ls_run.core_flops) need not measure. 0: not known. */
double ls_utilization_core(const ls_config *, int workers);

/* On worker 0, in each view: later lines of metrics have the share. Cores of other hosts are
 * assumed to be like those of this host. `logs`: if it is not known, one line says why. */
void ls_utilization_set(const ls_member *, ls_metrics *, bool logs);

#endif
