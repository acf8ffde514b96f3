/* sync.c - the plans that bring replicas together (islands.c): no sample is read in them.
 *
 * Outer: each island's Delta is what its replica has moved away from the common parameters. The
 * Deltas are summed in the order of the tree over virtual workers, in which the first virtual
 * worker of an island has its Delta and the others have 0, so that the bits don't depend on the
 * workers. The outer optimizer then changes the common parameters. Deltas may be rounded to few
 * bits; workers that share no memory then send these.
 *
 * Adopt: the common parameters are laid beside the state, where they can't be lost, then mixed into
 * each replica.
 *
 * Gossip (mixing.h) has two of its own. Mix: each replica becomes a mean of some replicas, whose
 * parameters messages bring; the mean is laid beside the state. Mean: as Outer, but the common
 * parameters become the mean of the replicas, and nothing depends on what they were.
 *
 * All end as a training step does: Decide, which needs no norm here but shows that all workers are
 * ready, then Updates.
 */
#include "plan/plan.h"
#include "share/codes.h"

/* All buckets: those that nothing changes are marked as up to date. */
static void add_updates(ls_plan *p) {
    const ls_share *sh = &p->share;
    for (int k = 0; k < sh->nbuckets; k++)
        for (int w = 0; w < sh->nworkers; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_UPDATE, .worker = w, .bucket = k});
}

static void add_deltas(ls_plan *p, int worker, int bucket) {
    const ls_share *sh = &p->share;
    for (int i = 0; i < sh->workers[worker].nvws; i++) {
        ls_action a = {
            .kind = LS_DELTA, .worker = worker, .vw = ls_share_vw(sh, worker, i), .bucket = bucket};
        int folds = ls_share_fold(sh, worker, i, &a.slot), slot = a.slot;
        ls_plan_append(p, &a);
        if (sh->compress.on && ls_share_is_coded(sh, a.vw)) {
            a.kind = LS_ENCODE;
            a.phase = LS_PHASE_CODES;
            ls_plan_append(p, &a);
        }
        a.kind = LS_ADD;
        a.phase = ls_plan_values_phase(p);
        for (int k = 1; k <= folds && sh->sends_values; k++) {
            a.slot = slot - k;
            a.from = a.slot + 1;
            ls_plan_append(p, &a);
        }
    }
}

void ls_plan_order_outer(ls_plan *p) {
    const ls_share *sh = &p->share;
    bool sharded = sh->shards_moments;
    for (int k = 0; k < sh->nbuckets; k++) {
        if (!ls_share_changes_bucket(sh, k)) continue;
        for (int w = 0; w < sh->nworkers; w++) add_deltas(p, w, k);
        if (sh->sends_codes)
            ls_plan_add_exchange(p, k);
        else
            ls_plan_append_comm(p, sharded ? LS_REDUCE_SCATTER : LS_ALL_REDUCE,
                                sharded ? LS_AXIS_SHARDS : LS_AXIS_ALL, k, 0);
    }
    ls_plan_append_decide(p);
    add_updates(p);
    for (int k = 0; sharded && k < sh->nbuckets; k++)
        if (ls_share_changes_bucket(sh, k))
            ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_SHARDS, k, 0);
}

void ls_plan_order_adopt(ls_plan *p) {
    const ls_share *sh = &p->share;
    int nbuckets = sh->segment_buckets;
    for (int k = 0; k < nbuckets; k++) {
        if (!ls_share_changes_bucket(sh, ls_share_bucket_in(sh, k, 1))) continue;
        for (int w = 0; w < sh->nworkers; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_COPY, .worker = w, .bucket = k});
    }
    ls_plan_append_decide(p);
    add_updates(p);
    for (int k = nbuckets; sh->shards_moments && k < sh->nbuckets; k++)
        if (ls_share_changes_bucket(sh, k))
            ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_ISLAND, k, 0);
}

/* Two buckets of each island have room to arrive, at a time. */
static int arrival(const ls_plan *p, int bucket) {
    const ls_share *sh = &p->share;
    int two =
        ls_share_bucket_in(sh, ls_share_common_bucket(sh, bucket) % 2, sh->buckets[bucket].island);
    return ls_plan_buffer(p, LS_BUF_CODES, two, 0);
}

/* The workers of an island divide what they send to one worker each of another island. */
static void add_send(ls_plan *p, int worker, int bucket, int term, int island) {
    const ls_share *sh = &p->share;
    int theirs = ls_share_bucket_in(sh, ls_share_common_bucket(sh, bucket), island);
    ls_range part = ls_share_owned(sh, bucket, worker);
    if (ls_share_has(sh, theirs, worker) || part.first == part.end) return;
    ls_worker_set senders = sh->buckets[theirs].workers, own = sh->buckets[bucket].workers;
    ls_plan_append(
        p, &(ls_action){.kind = LS_SEND,
                        .worker = senders.from + (worker - own.from) % ls_worker_set_count(senders),
                        .peer = worker,
                        .micro = -1,
                        .bucket = bucket,
                        .term = term,
                        .island = island,
                        .buffer = arrival(p, bucket),
                        .comm.nbytes = (int64_t)((part.end - part.first) * sizeof(float))});
}

static void add_term(ls_plan *p, int bucket, int term) {
    const ls_share *sh = &p->share;
    int list[LS_MIXING_MOST];
    if (term >= ls_share_terms_of(sh, sh->buckets[bucket].island, list)) return;
    ls_worker_set of = sh->buckets[bucket].workers;
    for (int w = of.from; w < of.to; w++) add_send(p, w, bucket, term, list[term]);
    for (int w = of.from; w < of.to; w++)
        ls_plan_append(p, &(ls_action){.kind = LS_MIX,
                                       .worker = w,
                                       .bucket = bucket,
                                       .term = term,
                                       .island = list[term],
                                       .buffer = arrival(p, bucket),
                                       .start = term == 0});
}

void ls_plan_order_mix(ls_plan *p) {
    const ls_share *sh = &p->share;
    int nbuckets = sh->segment_buckets, terms = ls_share_terms(sh);
    for (int k = 0; k < nbuckets; k++)
        for (int term = 0; term < terms; term++)
            for (int i = 1; i <= sh->islands; i++) add_term(p, ls_share_bucket_in(sh, k, i), term);
    ls_plan_append_decide(p);
    add_updates(p);
    for (int k = nbuckets; sh->shards_moments && k < sh->nbuckets; k++)
        ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_ISLAND, k, 0);
}
