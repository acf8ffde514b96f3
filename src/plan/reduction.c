/* reduction.c - the pass that sums gradients over virtual workers, bucket by bucket.
 *
 * The last Backward of a virtual worker that writes a bucket (bucket.c) is followed by its Squares,
 * if the noise scale is measured, its Encode, if gradients are compressed, and by the folds of the
 * tree (Add). The bucket's ReduceScatter (or AllReduce) follows the folds of the last virtual
 * worker on the last worker, so it may run while Backward continues with other buckets. So do
 * Exchanges of codes and sums of first factors. If rounds are reduced, a reduction follows each
 * round instead.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "share/mesh.h"

/* Each worker computes the second factors of its virtual workers once it has the sum of the first
 * ones. Here no Backward waits for that. */
static void add_second_factors(ls_plan *to) {
    for (int k = 0; k < to->share.nbuckets; k++) {
        for (int w = 0; w < to->share.nworkers; w++)
            for (int i = 0; i < to->share.workers[w].nvws; i++) {
                ls_action a = {.kind = LS_ENCODE,
                               .worker = w,
                               .vw = ls_share_vw(&to->share, w, i),
                               .bucket = k,
                               .round = 1,
                               .phase = LS_PHASE_CODES};
                ls_share_fold(&to->share, w, i, &a.slot);
                ls_plan_append(to, &a);
            }
        ls_plan_append_comm(to, LS_SUM_FACTORS, LS_AXIS_ALL, k, 1);
    }
    for (int k = 0; k < to->share.nbuckets; k++)
        for (int w = 0; w < to->share.nworkers; w++)
            ls_plan_append(to, &(ls_action){.kind = LS_DECODE,
                                            .worker = w,
                                            .bucket = k,
                                            .last = k == to->share.nbuckets - 1,
                                            .phase = LS_PHASE_CODES});
}

void ls_plan_add_exchange(ls_plan *to, int bucket) {
    bool factors = to->share.has_factors;
    ls_plan_append_comm(to, factors ? LS_SUM_FACTORS : LS_EXCHANGE, LS_AXIS_ALL, bucket, 0);
    if (factors) return;
    for (int w = 0; w < to->share.nworkers; w++)
        ls_plan_append(
            to, &(ls_action){
                    .kind = LS_DECODE, .worker = w, .bucket = bucket, .phase = LS_PHASE_CODES});
}

/* The sum goes to the owner of each shard, or to all workers if nothing is sharded. Then replicas
 * add up the sums of their sharding groups. If rounds are reduced, the owner folds the result into
 * the sums of earlier rounds. */
static void add_reduction(ls_plan *to, int bucket, int round) {
    bool island = to->share.buckets[bucket].island > 0;
    if (!to->share.shards_moments) {
        ls_plan_append_comm(to, LS_ALL_REDUCE, island ? LS_AXIS_ISLAND : LS_AXIS_ALL, bucket,
                            round);
        return;
    }
    ls_plan_append_comm(to, LS_REDUCE_SCATTER, island ? LS_AXIS_ISLAND : LS_AXIS_SHARDS, bucket,
                        round);
    if (to->share.nreplicas > 1)
        ls_plan_append_comm(to, LS_ALL_REDUCE, LS_AXIS_REPLICAS, bucket, round);
    int slot = 0, folds = ls_share_fold_round(&to->share, round, &slot);
    for (int w = 0; w < to->share.nworkers; w++)
        for (int i = 1; i <= folds; i++)
            ls_plan_append(to, &(ls_action){.kind = LS_ADD,
                                            .worker = w,
                                            .vw = ls_share_vw(&to->share, w, round),
                                            .bucket = bucket,
                                            .slot = slot - i,
                                            .from = slot - i + 1,
                                            .summed = true});
}

/* What is known while reductions are added. */
typedef struct state {
    ls_plan *to;
    int *missing; /* [nbuckets][rounds] workers that have not finished the bucket */
    int *encodes; /* [V] buckets that a virtual worker has finished */
    int *chunks;  /* [nworkers][nbuckets] its chunks that are not finished */
} state;

/* Appends the folds of a chunk's stack after a virtual worker. */
static void add_folds(ls_plan *to, const ls_action *done, int bucket, int folds, int level) {
    int chunk = ls_share_layer_chunk(&to->share, done->layer);
    for (int i = 1; i <= folds; i++)
        ls_plan_append(
            to,
            &(ls_action){.kind = LS_ADD,
                         .worker = done->worker,
                         .vw = done->vw,
                         .bucket = bucket,
                         .chunk = chunk,
                         .slot = ls_share_slot_of(&to->share, done->worker, chunk, level - i),
                         .from = ls_share_slot_of(&to->share, done->worker, chunk, level - i + 1),
                         .phase = ls_plan_values_phase(to)});
}

/* A chunk of the worker has finished a bucket: was it the last of its chunks? Then sums of the
 * chunks are added up. */
static bool join_chunks(const state *s, const ls_action *done, int bucket) {
    ls_plan *to = s->to;
    ls_chunk_fold list[LS_TREE_MAX_CHUNKS];
    if (--s->chunks[done->worker * to->share.nbuckets + bucket] > 0) return false;
    for (int i = 0, n = ls_share_chunk_folds(&to->share, bucket, done->worker, list); i < n; i++)
        ls_plan_append(to, &(ls_action){.kind = LS_ADD,
                                        .worker = done->worker,
                                        .vw = done->vw,
                                        .bucket = bucket,
                                        .chunk = -1,
                                        .slot = list[i].slot,
                                        .from = list[i].from,
                                        .phase = ls_plan_values_phase(to)});
    return true;
}

static void measure(const state *s, const ls_action *done, int bucket, int slot) {
    ls_plan *to = s->to;
    if (to->share.noise)
        ls_plan_append(to, &(ls_action){.kind = LS_SQUARES,
                                        .worker = done->worker,
                                        .vw = done->vw,
                                        .bucket = bucket,
                                        .slot = slot});
    if (!to->share.compress.on) return;
    int encodes = s->encodes[done->vw];
    ls_plan_append(to, &(ls_action){.kind = LS_ENCODE,
                                    .start = encodes == 1,
                                    .last = !to->share.has_factors && encodes == to->share.nbuckets,
                                    .worker = done->worker,
                                    .vw = done->vw,
                                    .bucket = bucket,
                                    .slot = slot,
                                    .phase = LS_PHASE_CODES});
}

/* Appends what follows a Backward: Squares, Encode and folds of each bucket that it finishes, and
 * reductions for which it was the last. */
static void finish_buckets(const state *s, const ls_action *done) {
    ls_plan *to = s->to;
    int index = ls_share_vw_index(&to->share, done->worker, done->vw), slot = 0;
    int folds = ls_share_fold(&to->share, done->worker, index, &slot), rounds = to->share.nrounds;
    bool last = index == to->share.workers[done->worker].nvws - 1;
    int island = ls_share_island_of(&to->share, done->vw);
    if (island) last = last || ls_share_island_of(&to->share, done->vw + 1) != island;
    int round = to->share.by_rounds ? index : 0;
    const int *touched = NULL;
    for (int j = 0, n = ls_share_touched(&to->share, done->layer, &touched); j < n; j++) {
        int k = ls_share_bucket_in(&to->share, touched[j], island);
        if (ls_share_closer(&to->share, k, ls_share_layer_chunk(&to->share, done->layer)) !=
            done->layer)
            continue;
        s->encodes[done->vw]++;
        measure(s, done, k, slot);
        if (to->share.sends_values) add_folds(to, done, k, folds, slot);
        if (!to->share.by_rounds && !last) continue;
        if (to->share.nchunks > 1 && !join_chunks(s, done, k)) continue;
        if (--s->missing[k * rounds + round] > 0) continue;
        if (to->share.sends_values) add_reduction(to, k, round);
        if (to->share.sends_codes) ls_plan_add_exchange(to, k);
    }
}

/* The worker's chunks that write a bucket. */
static int count_chunks(const ls_plan *p, int worker, int bucket) {
    const ls_share *sh = &p->share;
    int first = sh->workers[worker].first_chunk, end = sh->workers[worker].end_chunk, n = 0;
    for (int k = first; k < end; k++) n += ls_share_closer(sh, bucket, k) >= 0;
    return n;
}

void ls_plan_add_reduction(ls_plan *p) {
    ls_plan to = *p;
    to.actions = NULL;
    to.nactions = to.capacity = 0;
    int cells = p->share.nbuckets * p->share.nrounds;
    state s = {&to, LS_NEW_ARRAY(int, (size_t)cells), LS_NEW_ARRAY(int, (size_t)p->share.V), NULL};
    s.chunks = LS_NEW_ARRAY(int, (size_t)(p->share.nworkers * p->share.nbuckets));
    for (int i = 0; i < p->share.nworkers * p->share.nbuckets; i++)
        s.chunks[i] = count_chunks(p, i / p->share.nbuckets, i % p->share.nbuckets);
    for (int i = 0; i < cells; i++)
        s.missing[i] = ls_worker_set_count(p->share.buckets[i / p->share.nrounds].workers);
    for (int i = 0; i < p->nactions; i++) {
        ls_plan_append(&to, &p->actions[i]);
        if (p->actions[i].kind == LS_BACKWARD && p->actions[i].last)
            finish_buckets(&s, &p->actions[i]);
    }
    if (p->share.has_factors) add_second_factors(&to);
    free(s.missing);
    free(s.encodes);
    free(s.chunks);
    free(p->actions);
    *p = to;
}
