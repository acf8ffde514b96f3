/* typical.h - a machine with round numbers, for choices that must not depend on where they are
 * made: every host decides parallel.mesh: auto by itself, and all must decide the same.
 */
#ifndef LS_PERF_TYPICAL_H
#define LS_PERF_TYPICAL_H

#include "perf/machine.h"

/* A host with a core for each of n workers, of a server processor of about 2023. The caller frees
 * *m_p. */
void ls_machine_typical(int n, ls_machine *m_p);
/* The network card of that host: 25 Gbit/s. */
extern const double ls_typical_latency_s, ls_typical_byte_s;

#endif
