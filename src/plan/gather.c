/* gather.c - the pass for sharded parameters: a bucket's are gathered before they are used, and
 * given back when they are not used again soon.
 *
 * The order is walked by rounds: in one, workers run the same layer, each for a micro-batch of its
 * own. Before a round, what it and the next `prefetch` rounds read is gathered, where it isn't
 * there; what none of these reads is given up after it (frees.c puts the Free behind its last use).
 * All workers take part in a gather, also one that has no more micro-batches. Where a bucket is
 * gathered is decided here alone, so no worker runs ahead of the memory: a gather does not begin
 * before what stands before it in the order (project.c).
 */
#include <stdlib.h>

#include "plan/plan.h"

typedef struct walk {
    const ls_plan *from;
    ls_plan *to;
    int *first; /* [nrounds + 1] the first action of each round */
    int nrounds;
    bool *there; /* [nbuckets] */
    bool *needed;
} walk;

static bool same_round(const ls_action *a, const ls_action *b) {
    return a->kind == b->kind && a->layer == b->layer && b->worker > a->worker;
}

static void find_rounds(walk *w) {
    const ls_plan *p = w->from;
    w->first = LS_NEW_ARRAY(int, (size_t)p->nactions + 1);
    for (int i = 0; i < p->nactions; i++)
        if (i == 0 || !same_round(&p->actions[i - 1], &p->actions[i])) w->first[w->nrounds++] = i;
    w->first[w->nrounds] = p->nactions;
}

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    ls_buffer b = ls_plan_buffer_of(w->from, buffer);
    bool reads = b.kind == LS_BUF_PARAM && how == LS_USE_READ;
    if (reads && ls_plan_gathers(w->from, b.index)) w->needed[b.index] = true;
}

/* What rounds [first, end) read. */
static void find_needed(walk *w, int first, int end) {
    const ls_plan *p = w->from;
    if (end > w->nrounds) end = w->nrounds;
    for (int k = 0; k < p->nbuckets; k++) w->needed[k] = false;
    for (int i = w->first[first]; i < w->first[end]; i++)
        ls_action_uses(p, &p->actions[i], p->actions[i].worker, on_use, w);
}

static void add_gather(walk *w, int bucket) {
    ls_plan_append_comm(w->to, LS_ALL_GATHER, LS_AXIS_SHARDS, bucket, 0);
    w->there[bucket] = true;
}

void ls_plan_add_gathers(ls_plan *p) {
    ls_plan to = *p;
    to.actions = NULL;
    to.nactions = to.capacity = 0;
    walk w = {.from = p, .to = &to};
    w.there = LS_NEW_ARRAY(bool, (size_t)p->nbuckets);
    w.needed = LS_NEW_ARRAY(bool, (size_t)p->nbuckets);
    find_rounds(&w);
    for (int r = 0; r < w.nrounds; r++) {
        find_needed(&w, r, r + 1 + p->c.prefetch);
        for (int k = p->nbuckets - 1; k >= 0; k--) {
            if (w.needed[k] && !w.there[k]) add_gather(&w, k);
            w.there[k] = w.needed[k];
        }
        for (int i = w.first[r]; i < w.first[r + 1]; i++) ls_plan_append(&to, &p->actions[i]);
    }
    free(w.first);
    free(w.there);
    free(w.needed);
    free(p->actions);
    *p = to;
}
