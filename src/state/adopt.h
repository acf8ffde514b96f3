/* adopt.h - a host gets the blocks of the state that it lacks from other hosts. */
#ifndef LS_STATE_ADOPT_H
#define LS_STATE_ADOPT_H

#include "state/world.h"

/* Collective, when a view begins. missing [nfloats / LS_BLOCK]: not 0 for a block that this worker
 * owns and its host does not have. The first worker whose host has the block sends it. LS_EPEER: no
 * host has a block that is missing; all stores record that (LS_STORE_LOST). */
ls_status ls_adopt(ls_world *, const ls_share *, const unsigned char *missing, ls_error *);

#endif
