/* cores.h - the cores that this process may use, as hwloc sees them. */
#ifndef LS_BASE_CORES_H
#define LS_BASE_CORES_H

/* How many: those in the process's affinity mask, of which two hyperthreads are one; fewer where a
 * control group gives less processor time. At least 1. */
int ls_cores(void);

/* How many `workers` processes of this host have together, this one among them: where each is bound
 * to its own (as mpirun does), a process sees only those. */
int ls_cores_among(int workers);

/* Binds this process, and what it starts, to part i of n of its cores. Nothing happens where there
 * are fewer than n, or processor time is limited: other processes may be on the same cores. */
void ls_cores_bind(int i, int n);

#endif
