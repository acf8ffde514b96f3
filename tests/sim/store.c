/* store.c - the state of a host's toy workers, and the repairer that finishes a step in it.
 *
 * As in state/store.h: replicated, each worker has an area of its own with all blocks; sharded, the
 * host has one area, in which each worker of the view owns blocks. A block is changed at one
 * instant (the journal, which ensures that, is tested elsewhere), and blocks one after the other.
 */
#include <string.h>

#include "check.h"
#include "world.h"

void store_clear(store *s) {
    memset(s, 0, sizeof *s);
    s->steps = -1;
    for (int i = 0; i < MOST_WORKERS; i++)
        for (int b = 0; b < MOST_BLOCKS; b++) s->areas[i][b].mark = -1;
}

block *store_block(const world *w, store *s, int local, int b) {
    return &s->areas[w->plan.sharded ? 0 : local][b];
}

void store_put(host *h, block *x, int b, int64_t mark, uint64_t value) {
    world *w = h->w;
    if (mark < 0 || mark > w->plan.steps || value != w->values[mark][b])
        violate(w, "host %d: block %d has a wrong value after step %lld", h->slot, b,
                (long long)mark);
    *x = (block){mark, value};
}

const block *store_find(const world *w, const store *s, int b, int64_t steps) {
    for (int i = 0; i < (w->plan.sharded ? 1 : MOST_WORKERS); i++)
        if (s->areas[i][b].mark == steps) return &s->areas[i][b];
    return NULL;
}

bool owns(const world *w, int rank, int size, int b) {
    return !w->plan.sharded || b % size == rank;
}

bool store_note(const store *s, ls_store_note *note_p) {
    const ls_store_note *best = NULL;
    for (int i = 0; i < MOST_WORKERS; i++)
        if (s->notes[i].steps > 0 && (!best || s->notes[i].steps > best->steps))
            best = &s->notes[i];
    if (best) *note_p = *best;
    return best != NULL;
}

/* ---- the repairer ---- */

static void repair(world *w, host *h, const event *e);

static void repair_soon(host *h, int at, int64_t after) {
    event *e = post_host(h, after, repair);
    e->supervisor = false;
    e->a = at;
    e->b = h->crew.generation;
}

static ls_host_state state_of(const host *h) {
    ls_host_state k = {.steps = h->store.steps};
    return k;
}

static void repaired(world *w, host *h, const event *e) {
    (void)w;
    crew *c = &h->crew;
    if (e->b != c->generation || c->state != CREW_REPAIRS) return;
    ls_host_state k = state_of(h);
    c->state = CREW_NONE;
    c->generation++;
    c->unfinished = false;
    trace(w, "host %d: finished, %lld steps", h->slot, (long long)k.steps);
    ls_views_finished(h->views, &k);
}

/* Applies the gradient of a decided step, which each worker has for the blocks that it owns. */
static void repair_block(world *w, host *h, int local, int b) {
    const ls_store_note *n = &h->crew.note;
    const ls_view *v = &h->crew.view;
    block *x = store_block(w, &h->store, local, b);
    if (!owns(w, v->first + local, v->size, b) || x->mark == n->steps) return;
    if (x->mark != n->steps - 1 || h->store.grads[local][b].step != n->steps) {
        violate(
            w, "host %d: step %lld of block %d can't be finished: it is at %lld, its gradient %lld",
            h->slot, (long long)n->steps, b, (long long)x->mark,
            (long long)h->store.grads[local][b].step);
        return;
    }
    store_put(h, x, b, n->steps, updated(x->value, h->store.grads[local][b].sum, n->steps));
}

static void repair(world *w, host *h, const event *e) {
    crew *c = &h->crew;
    if (e->b != c->generation || c->state != CREW_REPAIRS) return;
    int n = c->has_note ? c->view.n * w->plan.B : 0;
    if (e->a < n) {
        repair_block(w, h, e->a / w->plan.B, e->a % w->plan.B);
        repair_soon(h, e->a + 1, draw_to(w, MS / 10));
        return;
    }
    if (c->has_note) {
        h->store.steps = c->note.steps;
        h->store.last = c->note;
    }
    post_host(h, draw_to(w, 2 * MS), repaired)->b = c->generation;
}

void repairer_start(host *h) {
    world *w = h->w;
    h->crew.state = CREW_REPAIRS;
    h->crew.generation++;
    repair_soon(h, 0, draw_in(w, MS / 2, chance(w, 0.1) ? 60 * MS : 5 * MS));
}

void crew_repairer_killed(host *h) {
    trace(h->w, "host %d: the repairer is killed", h->slot);
    repairer_start(h);
}
