/* calibrate.h - measures this machine, for predictions (perf/machine.h). */
#ifndef LS_PERF_CALIBRATE_H
#define LS_PERF_CALIBRATE_H

#include "perf/machine.h"

/* Measures each kind of work on one core and on all cores at once, collectives through shared
 * memory with a worker per core, and the TCP link between two processes. Takes less than a minute.
 * The caller frees *m_p with ls_machine_free(). */
ls_status ls_calibrate(ls_machine *m_p, ls_error *);

#endif
