/* gather.c - the pass for sharded parameters: it gathers those of a bucket before they are used, so
 * that they can be freed when they are not used again soon.
 *
 * The pass walks the order by rounds. In a round all workers of a cell run the same layer, each on
 * a micro-batch of its own; without a mesh all workers are one cell. Cells that divide chunks
 * gather together: a bucket stays while any of them is about to read it. Before a round the pass
 * gathers the buckets that this round and the next `prefetch` rounds read, unless they are in
 * memory already; a bucket that none of these reads is dropped (frees.c puts the Free after its
 * last use). All workers of the cell take part in a gather, even if they have no more
 * micro-batches. This pass alone decides where a bucket is gathered, so no worker exceeds the
 * planned memory: a gather does not begin before all that precedes it in the order is complete
 * (project.c).
 */
#include <stdlib.h>

#include "plan/plan.h"
#include "share/config.h"

/* The rounds of a cell. */
typedef struct rounds {
    int *first; /* [n] an action of each round */
    int n;
    int begun; /* rounds that some worker has begun */
    /* [nbuckets] rounds, from the latest one to `prefetch` after it, that read the bucket; cells
     * whose workers have the same buckets count together */
    int *readers;
} rounds;

typedef struct walk {
    const ls_plan *from;
    ls_plan *to;
    rounds *cells; /* [ncells] */
    int *at;       /* [nworkers] rounds that the worker has begun */
    int *read;     /* [nread] buckets that a round reads */
    int nread;
    int *wanted; /* [nwanted] buckets to be gathered before this round */
    int nwanted;
} walk;

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    ls_buffer b = ls_plan_buffer_of(w->from, buffer);
    bool reads = b.kind == LS_BUF_PARAM && how == LS_USE_READ;
    if (reads && w->from->share.buckets[b.index].is_gathered) w->read[w->nread++] = b.index;
}

static void find_read(walk *w, const rounds *r, int round) {
    const ls_action *a = &w->from->actions[r->first[round]];
    w->nread = 0;
    ls_action_uses(w->from, a, a->worker, on_use, w);
}

/* A round enters the window. A bucket that no other round in the window reads must be gathered. */
static void enter(walk *w, rounds *r, int round) {
    if (round >= r->n) return;
    find_read(w, r, round);
    for (int i = 0; i < w->nread; i++)
        if (r->readers[w->read[i]]++ == 0) w->wanted[w->nwanted++] = w->read[i];
}

/* A round is over. */
static void leave(walk *w, rounds *r, int round) {
    find_read(w, r, round);
    for (int i = 0; i < w->nread; i++) r->readers[w->read[i]]--;
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

/* The first cell of the holder to which a cell belongs. */
static int first_of_holder(const ls_plan *p, int cell) {
    const ls_share *sh = &p->share;
    return p->share
        .workers[ls_share_member(sh, sh->workers[ls_share_worker(sh, cell, 0)].holder, 0)]
        .cell;
}

/* The rounds of each cell are the calls of its worker that has most: others have the same at their
 * beginning. */
static void find_rounds(walk *w) {
    const ls_plan *p = w->from;
    const ls_share *sh = &p->share;
    int *calls = LS_NEW_ARRAY(int, (size_t)sh->nworkers), cells = sh->ncells;
    int *most = LS_NEW_ARRAY(int, (size_t)cells); /* the worker */
    for (int i = 0; i < p->nactions; i++)
        calls[p->actions[i].worker] += ls_action_calls_layer(&p->actions[i]);
    for (int r = 0; r < cells; r++) {
        most[r] = ls_share_worker(sh, r, 0);
        for (int i = 1; i < sh->data; i++)
            if (calls[ls_share_worker(sh, r, i)] > calls[most[r]])
                most[r] = ls_share_worker(sh, r, i);
        w->cells[r].first = LS_NEW_ARRAY(int, (size_t)calls[most[r]] + 1);
        int first = first_of_holder(p, r);
        w->cells[r].readers =
            first == r ? LS_NEW_ARRAY(int, (size_t)sh->nbuckets) : w->cells[first].readers;
    }
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        int r = sh->workers[a->worker].cell;
        if (ls_action_calls_layer(a) && a->worker == most[r])
            w->cells[r].first[w->cells[r].n++] = i;
    }
    free(calls);
    free(most);
}

/* A worker begins its next round: the first one of its cell that does needs the gathers. */
static void begin_round(walk *w, int worker) {
    rounds *r = &w->cells[w->from->share.workers[worker].cell];
    int round = w->at[worker]++, ahead = w->from->share.config->prefetch;
    if (round < r->begun) return;
    r->begun = round + 1;
    for (int i = round ? ahead : 0; i <= ahead; i++) enter(w, r, round + i);
    if (round > 0)
        leave(w, r, round - 1); /* after enter(): a bucket that is read again now stays */
    add_gathers(w);
}

void ls_plan_add_gathers(ls_plan *p) {
    ls_plan to = *p;
    to.actions = NULL;
    to.nactions = to.capacity = 0;
    walk w = {.from = p, .to = &to};
    w.cells = LS_NEW_ARRAY(rounds, (size_t)p->share.ncells);
    w.at = LS_NEW_ARRAY(int, (size_t)p->share.nworkers);
    w.read = LS_NEW_ARRAY(int, (size_t)p->share.nbuckets);
    w.wanted = LS_NEW_ARRAY(int, (size_t)p->share.nbuckets);
    find_rounds(&w);
    for (int i = 0; i < p->nactions; i++) {
        if (ls_action_calls_layer(&p->actions[i])) begin_round(&w, p->actions[i].worker);
        ls_plan_append(&to, &p->actions[i]);
    }
    for (int r = 0; r < p->share.ncells; r++) {
        free(w.cells[r].first);
        if (first_of_holder(p, r) == r) free(w.cells[r].readers);
    }
    free(w.cells);
    free(w.at);
    free(w.read);
    free(w.wanted);
    free(p->actions);
    *p = to;
}
