/* wait_policy.h - whether threads that wait for others spin first, or sleep at once.
 *
 * Spinning finds an answer some microseconds sooner, and takes processor time from whatever else
 * runs on the machine. LOCKSTEP_WAIT_POLICY=passive in the environment lets every wait sleep at
 * once, as OMP_WAIT_POLICY does for OpenMP; active, or no value, lets a wait spin where each thread
 * has a core. Results have the same bits either way.
 */
#ifndef LS_BASE_WAIT_POLICY_H
#define LS_BASE_WAIT_POLICY_H

#include <stdbool.h>

#include "base/error.h"

/* LS_EINVAL: LOCKSTEP_WAIT_POLICY has another value. */
ls_status ls_wait_policy_check(ls_error *);

bool ls_wait_is_passive(void);

#endif
