/* adopt.h - blocks of the state that a host lacks come from the others. */
#ifndef LS_EXEC_ADOPT_H
#define LS_EXEC_ADOPT_H

#include "exec/world.h"

/* Collective, at a view's beginning. missing [nfloats / LS_BLOCK]: not 0 for a block that this
 * worker owns and its host has not; it comes from the first worker whose host has it. LS_EPEER: no
 * host has it; then all stores know (LS_STORE_LOST). */
ls_status ls_adopt(ls_world *, const ls_plan *, const unsigned char *missing, ls_error *);

#endif
