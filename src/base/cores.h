/* cores.h - the cores that this process may use, as hwloc reports them. */
#ifndef LS_BASE_CORES_H
#define LS_BASE_CORES_H

/* The number of cores in the process's affinity mask; two hyperthreads count as one core. Fewer if
 * a control group allows less processor time. At least 1. */
int ls_cores(void);

/* The number of cores that `workers` processes of this host have together, this one included. A
 * launcher such as mpirun may bind each process to cores of its own, and then each sees only
 * those. */
int ls_cores_among(int workers);

/* Binds this process, and the processes that it starts, to part i of n of its cores. Does nothing
 * if there are fewer than n cores, or if processor time is limited: then other processes may use
 * the same cores. */
void ls_cores_bind(int i, int n);

#endif
