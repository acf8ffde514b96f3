/* update.h - the update of a bucket, as its owner does it: by the executor, or when the owner has
 * died, by the store. */
#ifndef LS_EXEC_UPDATE_H
#define LS_EXEC_UPDATE_H

#include "optim/adamw.h"
#include "plan/plan.h"

/* A worker's memory, and the step that it has decided. */
typedef struct ls_update {
    const ls_plan *plan;
    int worker;
    const void *grads; /* its slots, of the plan's reduce type */
    void *params;      /* [nfloats] of the plan's compute type */
    ls_journal_state state;
    const ls_journal *journal; /* NULL: there is none */
    const ls_adamw_step *step;
    bool skipped;  /* the gradient overflowed: nothing changes but the journal */
    int64_t steps; /* complete with this one */
} ls_update;

/* Updates what the worker owns of a bucket. With a journal, blocks that have had the step are
 * passed over. */
void ls_update_bucket(const ls_update *, const ls_compute *, int bucket);

#endif
