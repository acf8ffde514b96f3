/* gather.c - the pass for sharded parameters: it gathers those of a bucket before they are used, so
 * that they can be freed when they are not used again soon.
 *
 * The pass walks the order by rounds. In a round all workers run the same layer, each on a
 * micro-batch of its own. Before a round the pass gathers the buckets that this round and the next
 * `prefetch` rounds read, unless they are in memory already; a bucket that none of these reads is
 * dropped (frees.c puts the Free after its last use). All workers take part in a gather, even if
 * they have no more micro-batches. This pass alone decides where a bucket is gathered, so no worker
 * exceeds the planned memory: a gather does not begin before all that precedes it in the order is
 * complete (project.c).
 */
#include <stdlib.h>

#include "plan/plan.h"

typedef struct walk {
    const ls_plan *from;
    ls_plan *to;
    int *first; /* [nrounds + 1] the first action of each round */
    int nrounds;
    /* [nbuckets] rounds, from this one to `prefetch` after it, that read the bucket */
    int *readers;
    int *read; /* [nread] buckets that a round reads */
    int nread;
    int *wanted; /* [nwanted] buckets to be gathered before this round */
    int nwanted;
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
    if (reads && ls_plan_gathers(w->from, b.index)) w->read[w->nread++] = b.index;
}

/* All workers of a round run the same layer, so they read the same buckets. */
static void find_read(walk *w, int round) {
    const ls_action *a = &w->from->actions[w->first[round]];
    w->nread = 0;
    ls_action_uses(w->from, a, a->worker, on_use, w);
}

/* A round enters the window. A bucket that no other round in the window reads must be gathered. */
static void enter(walk *w, int round) {
    if (round >= w->nrounds) return;
    find_read(w, round);
    for (int i = 0; i < w->nread; i++)
        if (w->readers[w->read[i]]++ == 0) w->wanted[w->nwanted++] = w->read[i];
}

/* A round is over. */
static void leave(walk *w, int round) {
    find_read(w, round);
    for (int i = 0; i < w->nread; i++) w->readers[w->read[i]]--;
}

static int downwards(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

static void add_gathers(walk *w) {
    if (w->nwanted > 1) qsort(w->wanted, (size_t)w->nwanted, sizeof *w->wanted, downwards);
    for (int i = 0; i < w->nwanted; i++)
        ls_plan_append_comm(w->to, LS_ALL_GATHER, LS_AXIS_SHARDS, w->wanted[i], 0);
    w->nwanted = 0;
}

void ls_plan_add_gathers(ls_plan *p) {
    ls_plan to = *p;
    to.actions = NULL;
    to.nactions = to.capacity = 0;
    walk w = {.from = p, .to = &to};
    w.readers = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    w.read = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    w.wanted = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    find_rounds(&w);
    for (int r = 0; r < p->c.prefetch; r++) enter(&w, r);
    for (int r = 0; r < w.nrounds; r++) {
        enter(&w, r + p->c.prefetch);
        if (r > 0) leave(&w, r - 1); /* after enter(): a bucket that is read again now stays */
        add_gathers(&w);
        for (int i = w.first[r]; i < w.first[r + 1]; i++) ls_plan_append(&to, &p->actions[i]);
    }
    free(w.first);
    free(w.readers);
    free(w.read);
    free(w.wanted);
    free(p->actions);
    *p = to;
}
