/* update.c - see update.h. */
#include "exec/update.h"

#include "exec/store.h"
#include "optim/outer.h"
#include "plan/memory.h"

static const char *sum_of(const ls_update *u, int bucket) {
    return (const char *)u->grads +
           (size_t)ls_plan_sum_slot(u->plan, bucket, u->worker) * ls_plan_slot_nbytes(u->plan);
}

static void train(const ls_update *u, const ls_compute *c, int bucket) {
    const ls_plan *p = u->plan;
    ls_bucket own = ls_plan_owned(p, bucket, u->worker);
    ls_optim_update o = {.optim = &p->c.optim,
                         .model = p->c.model,
                         .base = ls_plan_base(p, bucket),
                         .step = u->step,
                         .grads_type = p->c.reduce,
                         .params_type = p->c.compute,
                         .grads = sum_of(u, bucket),
                         .params = u->params,
                         .flat = u->flat,
                         .journal = u->journal,
                         .room = u->room,
                         .steps = ls_store_mark(u->steps)};
    int island = p->buckets[bucket].island;
    if (island) {
        o.step.grad_scale = u->islands[island - 1].grad_scale;
        o.step.samples = u->islands[island - 1].samples;
        o.step.lr *= u->islands[island - 1].lr_scale;
    }
    ls_optim_apply(&o, c, own.first, own.end);
}

/* In Adopt, a replica's bucket is mixed with the common parameters, which lie in their own bucket's
 * sum. In Mean and Mix, the bucket's sum replaces it. */
static void synchronize(const ls_update *u, const ls_compute *c, int bucket) {
    const ls_plan *p = u->plan;
    ls_bucket own = ls_plan_owned(p, bucket, u->worker);
    bool adopts = p->c.task == LS_TASK_ADOPT, optimizes = p->c.task == LS_TASK_OUTER;
    const float *sum = (const float *)(const void *)sum_of(u, bucket);
    static const ls_optim_group average = {.rule = LS_RULE_SGD, .lr_scale = 1};
    const ls_optim_group *outer = p->c.averages ? &average : &p->c.optim.outer;
    ls_outer_change o = {.outer = optimizes ? outer : NULL,
                         .step = u->step,
                         .mixing = adopts && !p->c.averages ? p->c.mixing : 0,
                         .given = adopts ? sum - ls_plan_base(p, bucket) : sum,
                         .params_type = p->c.compute,
                         .params = u->params,
                         .flat = u->flat,
                         .journal = u->journal,
                         .steps = ls_store_mark(u->steps)};
    ls_plan_part(p, bucket, &o.part_first, &o.part_end);
    ls_outer_apply(&o, c, own.first, own.end);
}

/* Does the change concern the bucket? */
static bool concerns(const ls_update *u, int bucket) {
    const ls_plan *p = u->plan;
    if (p->c.task != LS_TASK_TRAIN) return ls_plan_changes_bucket(p, bucket);
    return !u->skipped && (p->c.islands == 0 || p->buckets[bucket].island > 0);
}

/* Have the islands of the worker had it? One that is ahead is so as a whole. */
static bool is_ahead(const ls_update *u, int bucket, ls_bucket own) {
    if (!u->journal || !u->plan->buckets[bucket].island || own.first == own.end) return false;
    return atomic_load(&u->journal->steps[own.first / LS_BLOCK]) > ls_store_mark(u->steps);
}

void ls_update_bucket(const ls_update *u, const ls_compute *c, int bucket) {
    ls_bucket own = ls_plan_owned(u->plan, bucket, u->worker);
    if (u->apart && !u->plan->buckets[bucket].island) return;
    if (is_ahead(u, bucket, own)) return;
    if (concerns(u, bucket) && u->plan->c.task == LS_TASK_TRAIN)
        train(u, c, bucket);
    else if (concerns(u, bucket))
        synchronize(u, c, bucket);
    else if (u->journal)
        ls_journal_set(u->journal, own.first, own.end, ls_store_mark(u->steps));
}
