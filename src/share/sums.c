/* sums.c - in which slots a worker adds up the gradients of its virtual workers, and which sums
 * remain.
 *
 * A worker has a stack of sums (coll/algo/tree.h). An island has a tree of its own; sums of
 * different islands may have the same slot, since they are in different buckets.
 *
 * Where samples are cut into chunks, most parameters are those of layers of all chunks, which add
 * to the same gradients. So that the bits depend on the chunks alone, each virtual worker has a
 * chain, and a leaf of the tree, for each chunk (ls_tree_parts). A worker has a stack of sums
 * (ls_share_fold()) for each of its chunks. When all virtual workers are done, and they are all
 * virtual workers there are, it adds up the sums of its chunks, as far as the tree allows.
 *
 * Parameters of one chunk's layers alone have buckets of their own (ls_bucket.chunk). Their leaves
 * are the virtual workers, and only workers that have the chunk sum and update them. Their sums are
 * in the slots of their chunk's stack.
 *
 * The slots of a worker begin with what remains in the end: of each chunk in turn the sums of its
 * cover; or if one sum of each chunk remains, those into which others are added, then the others.
 */
#include "share/config.h"
#include "share/islands.h"

int ls_share_fold(const ls_share *sh, int worker, int i, int *slot_p) {
    *slot_p = 0;
    if (sh->by_rounds || !sh->config->tree) return 0;
    if (sh->islands && sh->task == LS_TASK_TRAIN)
        return ls_share_fold_island(sh, worker, i, slot_p);
    return ls_tree_fold(sh->V, sh->workers[worker].first_vw, ls_share_vw(sh, worker, i), slot_p);
}

int ls_share_fold_round(const ls_share *sh, int i, int *slot_p) {
    *slot_p = sh->by_rounds && i > 0;
    return sh->by_rounds && sh->config->tree ? ls_tree_fold(sh->nrounds, 0, i, slot_p) : *slot_p;
}

int ls_share_sums(const ls_share *sh, int bucket, int worker) {
    const ls_worker_share *x = &sh->workers[worker];
    return sh->buckets[bucket].chunk < 0 ? x->sums : x->chunk_sums;
}

int ls_share_sum_slot(const ls_share *sh, int bucket, int worker) {
    if (sh->by_rounds) return sh->workers[worker].nslots;
    return ls_share_first_slot(sh, bucket, worker);
}

/* It replaces the shard of the first sum. */
bool ls_share_keeps_shard(const ls_share *sh, int slot) { return slot == 0 && !sh->by_rounds; }

/* ---- chunks ---- */

/* The number of the chunk's sum among those of the worker's chunks, if each has one. */
static int number_of(const ls_share *sh, const ls_worker_share *x, int chunk) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int before = 0, n = ls_tree_cover(sh->nchunks, x->first_chunk, x->end_chunk, nodes);
    for (int i = 0; i < n; i++) {
        if (nodes[i].lo == chunk) return i;
        before += nodes[i].lo < chunk;
    }
    return n + chunk - x->first_chunk - before;
}

/* Does the worker add up sums of its chunks, since it runs all virtual workers? */
static bool joins_chunks(const ls_share *sh, const ls_worker_share *x) {
    return sh->nchunks > 1 && x->nvws == sh->V;
}

int ls_share_slot_of(const ls_share *sh, int worker, int chunk, int level) {
    const ls_worker_share *x = &sh->workers[worker];
    int nchunks = x->end_chunk - x->first_chunk, at = chunk - x->first_chunk;
    int remain = x->chunk_sums, most = x->nslots / nchunks; /* of one chunk */
    if (sh->nchunks == 1) return level;
    if (level >= remain) return nchunks * remain + at * (most - remain) + level - remain;
    if (joins_chunks(sh, x)) return number_of(sh, x, chunk);
    return at * remain + level;
}

int ls_share_first_slot(const ls_share *sh, int bucket, int worker) {
    const ls_worker_share *x = &sh->workers[worker];
    int chunk = sh->buckets[bucket].chunk;
    bool own = chunk >= x->first_chunk && chunk < x->end_chunk;
    return own ? ls_share_slot_of(sh, worker, chunk, 0) : 0;
}

int ls_share_bucket_slots(const ls_share *sh, int bucket, int worker) {
    const ls_worker_share *x = &sh->workers[worker];
    bool all = sh->buckets[bucket].chunk < 0;
    return all ? x->nslots : x->nslots / (x->end_chunk - x->first_chunk);
}

int ls_share_chunk_folds(const ls_share *sh, int bucket, int worker,
                         ls_chunk_fold list[LS_TREE_MAX_CHUNKS]) {
    const ls_worker_share *x = &sh->workers[worker];
    int n = 0, stack[LS_TREE_MAX_CHUNKS];
    if (!joins_chunks(sh, x) || sh->buckets[bucket].chunk >= 0) return 0;
    for (int k = x->first_chunk; k < x->end_chunk; k++) {
        int at = 0, folds = ls_tree_fold(sh->nchunks, x->first_chunk, k, &at);
        stack[at] = ls_share_slot_of(sh, worker, k, 0);
        for (; folds > 0; folds--, at--) list[n++] = (ls_chunk_fold){stack[at - 1], stack[at]};
    }
    return n;
}

size_t ls_share_wide_at(const ls_share *sh, int worker, int layer) {
    int chunk = ls_share_layer_chunk(sh, layer) - sh->workers[worker].first_chunk;
    return (size_t)chunk * sh->floats;
}
