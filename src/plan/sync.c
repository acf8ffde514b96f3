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
 * All end as a training step does: an AllReduce, after which the change is certain, then Updates.
 */
#include "plan/plan.h"

/* No norm is needed: the AllReduce only shows that all workers are ready. */
static void add_decision(ls_plan *p) {
    ls_plan_append(p, &(ls_action){.kind = LS_ALL_REDUCE,
                                   .bucket = LS_SCALARS,
                                   .worker = LS_ALL_WORKERS,
                                   .nbytes = 2 * (int64_t)sizeof(double) * (p->c.nworkers - 1) /
                                             p->c.nworkers});
}

/* All buckets: those that nothing changes are marked as up to date. */
static void add_updates(ls_plan *p) {
    for (int k = 0; k < p->nbuckets; k++)
        for (int w = 0; w < p->c.nworkers; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_UPDATE, .worker = w, .bucket = k});
}

static void add_deltas(ls_plan *p, int worker, int bucket) {
    for (int i = 0; i < ls_plan_nvws(p, worker); i++) {
        ls_action a = {
            .kind = LS_DELTA, .worker = worker, .vw = ls_plan_vw(p, worker, i), .bucket = bucket};
        int folds = ls_plan_fold(p, worker, i, &a.slot), slot = a.slot;
        ls_plan_append(p, &a);
        if (ls_plan_compresses(p) && ls_plan_is_coded(p, a.vw)) {
            a.kind = LS_ENCODE;
            a.phase = LS_PHASE_CODES;
            ls_plan_append(p, &a);
        }
        a.kind = LS_ADD;
        a.phase = ls_plan_values_phase(p);
        for (int k = 1; k <= folds && ls_plan_sends_values(p); k++) {
            a.slot = slot - k;
            a.from = a.slot + 1;
            ls_plan_append(p, &a);
        }
    }
}

void ls_plan_order_outer(ls_plan *p) {
    bool sharded = ls_plan_shards_moments(p);
    for (int k = 0; k < p->nbuckets; k++) {
        if (!ls_plan_changes_bucket(p, k)) continue;
        for (int w = 0; w < p->c.nworkers; w++) add_deltas(p, w, k);
        if (ls_plan_sends_codes(p))
            ls_plan_add_exchange(p, k);
        else
            ls_plan_append_comm(p, sharded ? LS_REDUCE_SCATTER : LS_ALL_REDUCE,
                                sharded ? LS_AXIS_SHARDS : LS_AXIS_ALL, k, 0);
    }
    add_decision(p);
    add_updates(p);
    for (int k = 0; sharded && k < p->nbuckets; k++)
        if (ls_plan_changes_bucket(p, k))
            ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_SHARDS, k, 0);
}

void ls_plan_order_adopt(ls_plan *p) {
    int nbuckets = ls_plan_segment_buckets(p);
    for (int k = 0; k < nbuckets; k++) {
        if (!ls_plan_changes_bucket(p, ls_plan_bucket_in(p, k, 1))) continue;
        for (int w = 0; w < p->c.nworkers; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_COPY, .worker = w, .bucket = k});
    }
    add_decision(p);
    add_updates(p);
    for (int k = nbuckets; ls_plan_shards_moments(p) && k < p->nbuckets; k++)
        if (ls_plan_changes_bucket(p, k))
            ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_ISLAND, k, 0);
}

/* Two buckets of each island have room to arrive, at a time. */
static int arrival(const ls_plan *p, int bucket) {
    int two = ls_plan_bucket_in(p, ls_plan_common_bucket(p, bucket) % 2, p->buckets[bucket].island);
    return ls_plan_buffer(p, LS_BUF_CODES, two, 0);
}

/* The workers of an island divide what they send to one worker each of another island. */
static void add_send(ls_plan *p, int worker, int bucket, int term, int island) {
    int theirs = ls_plan_bucket_in(p, ls_plan_common_bucket(p, bucket), island);
    ls_bucket part = ls_plan_owned(p, bucket, worker);
    if (ls_plan_has(p, theirs, worker) || part.first == part.end) return;
    ls_worker_set senders = ls_plan_workers_of(p, theirs), own = ls_plan_workers_of(p, bucket);
    ls_plan_append(
        p, &(ls_action){.kind = LS_SEND,
                        .worker = senders.from + (worker - own.from) % ls_worker_set_count(senders),
                        .peer = worker,
                        .micro = -1,
                        .bucket = bucket,
                        .term = term,
                        .island = island,
                        .buffer = arrival(p, bucket),
                        .nbytes = (int64_t)((part.end - part.first) * sizeof(float))});
}

static void add_term(ls_plan *p, int bucket, int term) {
    int list[LS_MIXING_MOST];
    if (term >= ls_plan_terms_of(p, p->buckets[bucket].island, list)) return;
    ls_worker_set of = ls_plan_workers_of(p, bucket);
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
    int nbuckets = ls_plan_segment_buckets(p), terms = ls_plan_terms(p);
    for (int k = 0; k < nbuckets; k++)
        for (int term = 0; term < terms; term++)
            for (int i = 1; i <= p->c.islands; i++) add_term(p, ls_plan_bucket_in(p, k, i), term);
    add_decision(p);
    add_updates(p);
    for (int k = nbuckets; ls_plan_shards_moments(p) && k < p->nbuckets; k++)
        ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_ISLAND, k, 0);
}
