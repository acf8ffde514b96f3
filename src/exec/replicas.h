/* replicas.h - the actions of plans that bring replicas together (plan/sync.c). */
#ifndef LS_EXEC_REPLICAS_H
#define LS_EXEC_REPLICAS_H

#include "exec/exec_state.h"

/* Delta: what a replica has moved away from the common parameters; in Mean, its part of the
 * mean. */
ls_status ls_replicas_delta(ls_exec *, const ls_action *);
/* Copy: the common parameters, as a bucket's sum. */
ls_status ls_replicas_copy(ls_exec *, const ls_action *);
/* Mix: adds a replica, by its weight, to the part of a bucket's mix that the worker updates. */
ls_status ls_replicas_mix(ls_exec *, const ls_action *);
/* Send, in a plan of Mix: the parameters that the message takes, or where it brings them. */
void *ls_replicas_message(const ls_exec *, const ls_action *);

#endif
