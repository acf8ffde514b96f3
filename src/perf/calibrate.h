/* calibrate.h - measures this machine, for predictions (perf/machine.h). */
#ifndef LS_PERF_CALIBRATE_H
#define LS_PERF_CALIBRATE_H

#include "perf/machine.h"

/* Each kind of work on one core, then on all at once; collectives through shared memory, with a
 * worker for each core; the link between two processes, over TCP. Under a minute. *m_p is the
 * caller's, to free. */
ls_status ls_calibrate(ls_machine *m_p, ls_error *);

#endif
