/* chunks.c - samples that are cut into chunks: whose the chunks are, and where their gradients are
 * summed.
 *
 * Most parameters are those of layers of all chunks, which add to the same gradients. So that the bits
 * depend on the chunks alone, each virtual worker has a chain, and a leaf of the tree, for each chunk
 * (ls_tree_parts). A worker has a stack of sums (ls_plan_fold()) for each of its chunks. When all
 * virtual workers are done, and they are all virtual workers there are, it adds up the sums of its
 * chunks, as far as the tree allows.
 *
 * Parameters of one chunk's layers alone have buckets of their own (ls_bucket.chunk). Their leaves
 * are the virtual workers, and only workers that have the chunk sum and update them. Their sums are in
 * the slots of their chunk's stack.
 *
 * The slots of a worker begin with what remains in the end: of each chunk in turn the sums of its
 * cover; or if one sum of each chunk remains, those into which others are added, then the others.
 */
#include "plan/plan.h"

int ls_plan_context(const ls_plan *p) { return p->c.context > 1 ? p->c.context : 1; }

int ls_plan_nchunks(const ls_plan *p) { return p->c.model->nchunks > 1 ? p->c.model->nchunks : 1; }

const char *ls_plan_context_name(const ls_plan *p) {
    return p->c.model->together > 1 ? "expert" : "context";
}

const char *ls_plan_context_title(const ls_plan *p) {
    bool both = p->c.model->together > 1 && p->c.model->nchunks > p->c.model->together;
    return both ? "expert and context" : ls_plan_context_name(p);
}

const char *ls_plan_chunk_name(const ls_plan *p) {
    return p->c.model->together > 1 ? "parts" : "chunks";
}

int ls_plan_layer_chunk(const ls_plan *p, int layer) {
    return ls_plan_nchunks(p) > 1 ? p->c.model->layers[layer].chunk : 0;
}

void ls_plan_chunks_of(const ls_plan *p, int worker, int *first_p, int *end_p) {
    int context = ls_plan_context(p), beside = worker % ls_plan_beside(p);
    ls_tree_chunks(ls_plan_nchunks(p), context, beside / ls_plan_tensor(p), first_p, end_p);
}

int ls_plan_most_chunks(const ls_plan *p) {
    int context = ls_plan_context(p);
    return (ls_plan_nchunks(p) + context - 1) / context;
}

ls_tree_parts ls_plan_parts(const ls_plan *p, int bucket) {
    bool all = p->buckets[bucket].chunk < 0;
    return (ls_tree_parts){.V = ls_plan_round_vws(p) * (all ? ls_plan_nchunks(p) : 1),
                           .first = p->c.first,
                           .chunks = all ? ls_plan_nchunks(p) : 1,
                           .context = all ? ls_plan_context(p) : 1};
}

/* The number of the chunk's sum among those of the worker's chunks, if each has one. */
static int place_of(const ls_plan *p, int worker, int chunk) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int first = 0, end = 0, before = 0;
    ls_plan_chunks_of(p, worker, &first, &end);
    int n = ls_tree_cover(ls_plan_nchunks(p), first, end, nodes);
    for (int i = 0; i < n; i++) {
        if (nodes[i].lo == chunk) return i;
        before += nodes[i].lo < chunk;
    }
    return n + chunk - first - before;
}

/* Of one chunk: the sums that remain, and those at most. */
static void size_stack(const ls_plan *p, int worker, int *remain_p, int *most_p) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int a = ls_plan_vw(p, worker, 0), b = a + ls_plan_nvws(p, worker);
    *remain_p = ls_tree_cover(p->c.V, a, b, nodes);
    *most_p = ls_tree_slots(p->c.V, a, b);
}

/* Does the worker add up sums of its chunks, since it runs all virtual workers? */
static bool joins_chunks(const ls_plan *p, int worker) {
    return ls_plan_nchunks(p) > 1 && ls_plan_nvws(p, worker) == p->c.V;
}

int ls_plan_slot_of(const ls_plan *p, int worker, int chunk, int level) {
    int first = 0, end = 0, remain = 0, most = 0;
    if (ls_plan_nchunks(p) == 1) return level;
    ls_plan_chunks_of(p, worker, &first, &end);
    size_stack(p, worker, &remain, &most);
    if (level >= remain)
        return (end - first) * remain + (chunk - first) * (most - remain) + level - remain;
    if (joins_chunks(p, worker)) return place_of(p, worker, chunk);
    return (chunk - first) * remain + level;
}

int ls_plan_first_slot(const ls_plan *p, int bucket, int worker) {
    int chunk = p->buckets[bucket].chunk, first = 0, end = 0;
    ls_plan_chunks_of(p, worker, &first, &end);
    return chunk < first || chunk >= end ? 0 : ls_plan_slot_of(p, worker, chunk, 0);
}

int ls_plan_bucket_slots(const ls_plan *p, int bucket, int worker) {
    int first = 0, end = 0, slots = ls_plan_slots(p, worker);
    ls_plan_chunks_of(p, worker, &first, &end);
    return p->buckets[bucket].chunk < 0 ? slots : slots / (end - first);
}

int ls_plan_chunk_folds(const ls_plan *p, int bucket, int worker,
                        ls_chunk_fold list[LS_TREE_MAX_CHUNKS]) {
    int first = 0, end = 0, n = 0, stack[LS_TREE_MAX_CHUNKS];
    if (!joins_chunks(p, worker) || p->buckets[bucket].chunk >= 0) return 0;
    ls_plan_chunks_of(p, worker, &first, &end);
    for (int k = first; k < end; k++) {
        int at = 0, folds = ls_tree_fold(ls_plan_nchunks(p), first, k, &at);
        stack[at] = ls_plan_slot_of(p, worker, k, 0);
        for (; folds > 0; folds--, at--) list[n++] = (ls_chunk_fold){stack[at - 1], stack[at]};
    }
    return n;
}

/* Each layer of attention exchanges all of its rows; or each product does. What a stage sends to
 * another one has a buffer for each micro-batch in flight. */
bool ls_plan_arrives_late(const ls_plan *p, const ls_action *a) {
    int beside = ls_plan_beside(p);
    bool many = ls_plan_context(p) > 1 || p->c.model->gathers;
    return a->kind == LS_SEND && many &&
           ls_plan_rank(p, a->worker) / beside == ls_plan_rank(p, a->peer) / beside &&
           ls_buffer_in_arena(ls_plan_buffer_of(p, a->buffer).kind);
}

size_t ls_plan_wide_at(const ls_plan *p, int worker, int layer) {
    int first = 0, end = 0;
    ls_plan_chunks_of(p, worker, &first, &end);
    return (size_t)(ls_plan_layer_chunk(p, layer) - first) * ls_plan_floats(p);
}
