/* store_repair.h - the state is made whole after a view: the store after its workers died. */
#ifndef LS_EXEC_STORE_REPAIR_H
#define LS_EXEC_STORE_REPAIR_H

#include "exec/store.h"

/* Workers first to first + n - 1 of the plan's view, which are those of this host, are dead: what
 * they were changing goes back, then the update of the step that was decided is finished; note
 * NULL: none was. Can be killed and done again. LS_EINVAL: the state can't be made whole (a bug, or
 * memory was damaged).
 */
ls_status ls_store_repair(ls_store *, const ls_plan *, int first, int n, const ls_store_note *note,
                          ls_error *);

/* Before a view of other workers: it begins after so many steps, as other hosts know; blocks that
 * are not there are taken up from these. steps -1: nothing that is there counts any more. */
void ls_store_restart(ls_store *, int64_t steps, const ls_scaler *);

#endif
