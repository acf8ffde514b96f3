/* utilization.h - what the cores of a run could do at most: metrics have the share of it that a step's
 * work takes (model FLOPs utilization, MFU: Chowdhery et al., arXiv 2204.02311, appendix B).
 */
#ifndef LS_TRAIN_UTILIZATION_H
#define LS_TRAIN_UTILIZATION_H

#include "report/metrics.h"
#include "train/member.h"

/* FLOP/s of a core of this host, with `workers` workers of the config on it: measured, in 3 ms, so that
 * the processes to which it is passed on (ls_run.core_flops) need not do it. 0: not known. */
double ls_utilization_core(const ls_config *, int workers);

/* On worker 0, in each view: the lines to come have the share. Workers of other hosts are taken to have
 * cores like those of this host. `logs`: if it is not known, one line says why. */
void ls_utilization_set(const ls_member *, ls_metrics *, bool logs);

#endif
