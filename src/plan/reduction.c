/* reduction.c - the pass that sums gradients over virtual workers, bucket by bucket.
 *
 * Buckets are cut from the end of the flat gradient, in the order in which Backward fills it, at
 * the first block boundary at which a bucket has its bytes. The last Backward of a virtual worker
 * that writes a bucket is followed by the folds of the tree (Add); when the last worker has done
 * that for its last virtual worker, the bucket's ReduceScatter (or AllReduce) stands, so that it
 * may run while Backward goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/tree.h"
#include "plan/plan.h"

void ls_plan_cut_buckets(ls_plan *p) {
    const ls_model *m = p->c.model;
    size_t size = p->c.bucket_nbytes / sizeof(float) / LS_BLOCK * LS_BLOCK;
    if (size < LS_BLOCK) size = LS_BLOCK;
    size_t most = m->nfloats / size + 1;
    p->buckets = LS_NEW_ARRAY(ls_bucket, most);
    for (size_t end = m->nfloats; end > 0;) {
        size_t first = end > size ? end - size : 0;
        ls_bucket *b = &p->buckets[p->nbuckets++];
        *b = (ls_bucket){.first = first, .end = end};
        b->opener = m->nlayers - 1;
        while (!ls_plan_layer_touches(p, b->opener, p->nbuckets - 1)) b->opener--;
        while (!ls_plan_layer_touches(p, b->writer, p->nbuckets - 1)) b->writer++;
        end = first;
    }
}

/* The sum goes to the owner of each shard; where nothing is sharded, to all. Owners of the same
 * shard add up what their groups have. */
static void add_reduction(ls_plan *to, int bucket) {
    if (to->c.zero == 0) {
        ls_plan_append_comm(to, LS_ALL_REDUCE, LS_AXIS_ALL, bucket);
        return;
    }
    ls_plan_append_comm(to, LS_REDUCE_SCATTER, LS_AXIS_SHARDS, bucket);
    if (ls_plan_replicas(to) > 1) ls_plan_append_comm(to, LS_ALL_REDUCE, LS_AXIS_REPLICAS, bucket);
}

/* What follows a Backward: folds of each bucket that it finishes, and reductions that they
 * complete. */
static void finish_buckets(ls_plan *to, const ls_action *done, int *missing) {
    int a = 0, b = 0, slot = 0;
    ls_plan_range(to, done->worker, &a, &b);
    int folds = to->c.tree ? ls_tree_fold(to->c.V, a, done->vw, &slot) : 0;
    for (int k = 0; k < to->nbuckets; k++) {
        if (to->buckets[k].writer != done->layer) continue;
        for (int i = 1; i <= folds; i++)
            ls_plan_append(to, &(ls_action){.kind = LS_ADD,
                                            .worker = done->worker,
                                            .vw = done->vw,
                                            .bucket = k,
                                            .slot = slot - i});
        if (done->vw != b - 1 || --missing[k] > 0) continue;
        add_reduction(to, k);
    }
}

void ls_plan_add_reduction(ls_plan *p) {
    ls_plan to = *p;
    to.actions = NULL;
    to.nactions = to.capacity = 0;
    int *missing = LS_NEW_ARRAY(int, (size_t)p->nbuckets); /* workers that still write a bucket */
    for (int k = 0; k < p->nbuckets; k++) missing[k] = p->c.nworkers;
    for (int i = 0; i < p->nactions; i++) {
        ls_plan_append(&to, &p->actions[i]);
        if (p->actions[i].kind == LS_BACKWARD && p->actions[i].last)
            finish_buckets(&to, &p->actions[i], missing);
    }
    free(missing);
    free(p->actions);
    *p = to;
}
