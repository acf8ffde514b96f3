/* update.c - see update.h. */
#include "exec/update.h"

#include "exec/store.h"
#include "plan/memory.h"

void ls_update_bucket(const ls_update *u, const ls_compute *c, int bucket) {
    const ls_plan *p = u->plan;
    ls_bucket own = ls_plan_owned(p, bucket, u->worker);
    size_t sum = (size_t)ls_plan_sum_slot(p, u->worker) * ls_plan_slot_nbytes(p);
    ls_adamw_state a = {.grads_type = p->c.reduce,
                        .params_type = p->c.compute,
                        .grads = (const char *)u->grads + sum,
                        .params = u->params,
                        .master = u->state.master,
                        .m = u->state.m,
                        .v = u->state.v,
                        .journal = u->journal,
                        .steps = ls_store_mark(u->steps)};
    if (!u->skipped)
        ls_adamw_run(c, p->c.model, u->step, own.first, own.end, &a);
    else if (u->journal)
        ls_journal_set(u->journal, own.first, own.end, a.steps);
}
