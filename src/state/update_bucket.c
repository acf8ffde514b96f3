/* update_bucket.c - see update_bucket.h. */
#include "state/update_bucket.h"

#include "optim/outer.h"
#include "state/store.h"

static const char *sum_of(const ls_update *u, int bucket) {
    size_t slot = u->there ? u->share->floats * sizeof(float) : u->share->nbytes.slot;
    return (const char *)u->grads + (size_t)ls_share_sum_slot(u->share, bucket, u->worker) * slot;
}

static void train(const ls_update *u, const ls_compute *c, int bucket) {
    const ls_share *sh = u->share;
    ls_range own = ls_share_owned(sh, bucket, u->worker);
    ls_optim_update o = {.optim = &sh->optim,
                         .model = sh->model,
                         .base = ls_share_base(sh, bucket),
                         .step = u->step,
                         .grads_type = u->there ? LS_F32 : sh->reduce,
                         .params_type = sh->compute,
                         .grads = sum_of(u, bucket),
                         .params = u->params,
                         .flat = u->flat,
                         .journal = u->journal,
                         .room = u->room,
                         .steps = ls_store_mark(u->steps)};
    int island = sh->buckets[bucket].island;
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
    const ls_share *sh = u->share;
    ls_range own = ls_share_owned(sh, bucket, u->worker);
    bool adopts = sh->task == LS_TASK_ADOPT, optimizes = sh->task == LS_TASK_OUTER;
    const float *sum = (const float *)(const void *)sum_of(u, bucket);
    static const ls_optim_group average = {.rule = LS_RULE_SGD, .lr_scale = 1};
    const ls_optim_group *outer = sh->sync.averages ? &average : &sh->optim.outer;
    ls_outer_change o = {.outer = optimizes ? outer : NULL,
                         .step = u->step,
                         .mixing = adopts && !sh->sync.averages ? sh->sync.mixing : 0,
                         .given = adopts ? sum - ls_share_base(sh, bucket) : sum,
                         .params_type = sh->compute,
                         .params = u->params,
                         .flat = u->flat,
                         .journal = u->journal,
                         .steps = ls_store_mark(u->steps)};
    ls_range part = {0};
    ls_share_part(sh, bucket, &part);
    o.part_first = part.first;
    o.part_end = part.end;
    ls_outer_apply(&o, c, own.first, own.end);
}

/* Does the change concern the bucket? */
static bool concerns(const ls_update *u, int bucket) {
    const ls_share *sh = u->share;
    if (sh->task != LS_TASK_TRAIN) return ls_share_changes_bucket(sh, bucket);
    return !u->skipped && (sh->islands == 0 || sh->buckets[bucket].island > 0);
}

/* Have the islands of the worker had it? One that is ahead is so as a whole. */
static bool is_ahead(const ls_update *u, int bucket, ls_range own) {
    if (!u->journal || !u->share->buckets[bucket].island || own.first == own.end) return false;
    return atomic_load(&u->journal->steps[own.first / LS_BLOCK]) > ls_store_mark(u->steps);
}

void ls_update_bucket(const ls_update *u, const ls_compute *c, int bucket) {
    ls_range own = ls_share_owned(u->share, bucket, u->worker);
    if (u->apart && !u->share->buckets[bucket].island) return;
    if (is_ahead(u, bucket, own)) return;
    if (concerns(u, bucket) && u->share->task == LS_TASK_TRAIN)
        train(u, c, bucket);
    else if (concerns(u, bucket))
        synchronize(u, c, bucket);
    else if (u->journal)
        ls_journal_set(u->journal, own.first, own.end, ls_store_mark(u->steps));
}
