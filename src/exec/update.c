/* update.c - see update.h. */
#include "exec/update.h"

#include "exec/store.h"
#include "plan/memory.h"

void ls_update_bucket(const ls_update *u, const ls_compute *c, int bucket) {
    const ls_plan *p = u->plan;
    ls_bucket own = ls_plan_owned(p, bucket, u->worker);
    size_t sum = (size_t)ls_plan_sum_slot(p, u->worker) * ls_plan_slot_nbytes(p);
    ls_optim_update o = {.optim = &p->c.optim,
                         .model = p->c.model,
                         .step = u->step,
                         .grads_type = p->c.reduce,
                         .params_type = p->c.compute,
                         .grads = (const char *)u->grads + sum,
                         .params = u->params,
                         .flat = u->flat,
                         .journal = u->journal,
                         .room = u->room,
                         .steps = ls_store_mark(u->steps)};
    if (!u->skipped)
        ls_optim_apply(&o, c, own.first, own.end);
    else if (u->journal)
        ls_journal_set(u->journal, own.first, own.end, o.steps);
}
