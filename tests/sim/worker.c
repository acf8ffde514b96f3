/* worker.c - the toy workers of a view: the actions of a real step, over the fake transport.
 *
 *     starts -> have -> take -> ready -> compute -> grads -> norm -> update -.-> bye -> ended
 *                                           ^----------------[collect] <-----'
 *
 * Each phase except compute and update is an exchange of messages with all others (collect: with
 * worker 0), and ends when all messages of the worker are delivered. All that a worker does between
 * two of its events happens at one instant; a kill falls between events.
 */
#include <stdlib.h>

#include "check.h"
#include "world.h"

/* ---- a view begins ---- */

static uint64_t have(const world *w, const store *s, int64_t steps) {
    uint64_t bits = 0;
    for (int b = 0; b < w->plan.B; b++)
        if (store_find(w, s, b, steps)) bits |= (uint64_t)1 << b;
    return bits;
}

static void to_all(team *t, int rank, int word, uint64_t value) {
    for (int p = 0; p < t->size; p++) t->workers[rank].out_words[p][word] = value;
}

void worker_started(world *w, host *h, const event *e) {
    team *t = worker_team(w, e);
    if (!t) return;
    int64_t saved = w->folder.saved < 0 ? 0 : w->folder.saved;
    t->workers[e->a].start = t->steps < 0 ? saved : t->steps;
    to_all(t, e->a, 0, (uint64_t)t->workers[e->a].start);
    to_all(t, e->a, 1, t->steps < 0 ? 0 : have(w, &h->store, t->steps));
    worker_exchange(t, e->a, PHASE_HAVE, 2, false);
}

/* The lowest worker whose host has the block, or -1. */
static int giver(const team *t, int rank, int b) {
    const worker *x = &t->workers[rank];
    for (int r = 0; r < t->size; r++) {
        uint64_t bits = r == rank ? x->out_words[r][1] : x->in_words[r][1];
        if (bits >> b & 1) return r;
    }
    return -1;
}

static bool lacks(const world *w, const team *t, int rank, int r, int b) {
    const worker *x = &t->workers[rank];
    uint64_t bits = r == rank ? x->out_words[r][1] : x->in_words[r][1];
    return owns(w, r, t->size, b) && !(bits >> b & 1);
}

/* Takes blocks from the newest checkpoint, or their initial values. */
static void take_saved(host *h, team *t, int rank) {
    world *w = h->w;
    int local = crew_place(h, rank);
    int64_t start = t->workers[rank].start;
    if (start > 0 && start > w->folder.saved)
        violate(w, "no checkpoint of step %lld", (long long)start);
    for (int b = 0; b < w->plan.B; b++)
        if (owns(w, rank, t->size, b))
            store_put(h, store_block(w, &h->store, local, b), b, start, w->values[start][b]);
}

static bool take_own(host *h, team *t, int rank, int b) {
    world *w = h->w;
    block *to = store_block(w, &h->store, crew_place(h, rank), b);
    if (!owns(w, rank, t->size, b) || to->mark == t->steps) return true;
    const block *from = store_find(w, &h->store, b, t->steps);
    if (from) store_put(h, to, b, from->mark, from->value);
    if (from || giver(t, rank, b) >= 0) return true;
    check_stateless(h);
    worker_fail(t, rank, LS_VIEW_STATELESS, "no host has a block");
    return false;
}

/* All know now which host has which block: the first worker that has a block gives it to those that
 * lack it. */
static void give(world *w, host *h, team *t, int rank) {
    worker *x = &t->workers[rank];
    if (rank != 0 && t->steps < 0) x->start = (int64_t)x->in_words[0][0];
    if (t->steps < 0) take_saved(h, t, rank);
    for (int b = 0; t->steps >= 0 && b < w->plan.B; b++)
        if (!take_own(h, t, rank, b)) return;
    uint64_t given[MOST_WORKERS] = {0};
    for (int p = 0; t->steps >= 0 && p < t->size; p++)
        for (int b = 0; b < w->plan.B; b++)
            if (lacks(w, t, rank, p, b) && giver(t, rank, b) == rank) given[p] |= (uint64_t)1 << b;
    for (int p = 0; p < t->size; p++) {
        x->out_words[p][0] = given[p];
        for (int b = 0; b < w->plan.B; b++)
            x->out_words[p][1 + b] =
                given[p] >> b & 1 ? store_find(w, &h->store, b, t->steps)->value : 0;
    }
    worker_exchange(t, rank, PHASE_TAKE, (size_t)w->plan.B + 1, false);
}

static void take(world *w, host *h, team *t, int rank) {
    worker *x = &t->workers[rank];
    int local = crew_place(h, rank);
    for (int p = 0; p < t->size; p++)
        for (int b = 0; p != rank && b < w->plan.B; b++)
            if (x->in_words[p][0] >> b & 1)
                store_put(h, store_block(w, &h->store, local, b), b, x->start,
                          x->in_words[p][1 + b]);
    x->steps = x->start;
    worker_exchange(t, rank, PHASE_READY, 1, false);
}

/* ---- steps ---- */

static void send_gradients(world *w, host *h, const event *e);

static void save(team *t, int rank) {
    host *h = t->hosts[rank];
    world *w = h->w;
    worker *x = &t->workers[rank];
    x->out_words[0][0] = 0;
    for (int b = 0; b < w->plan.B; b++) {
        if (!owns(w, rank, t->size, b)) continue;
        x->out_words[0][0] |= (uint64_t)1 << b;
        x->out_words[0][1 + b] = store_block(w, &h->store, crew_place(h, rank), b)->value;
    }
    worker_exchange(t, rank, PHASE_COLLECT, (size_t)w->plan.B + 1, true);
}

/* Called after each step, and before the first. */
static void next_step(team *t, int rank) {
    world *w = t->hosts[rank]->w;
    worker *x = &t->workers[rank];
    if (x->steps == w->plan.steps) {
        worker_exchange(t, rank, PHASE_BYE, 1, false);
    } else if (x->renews) {
        x->phase = PHASE_ENDED;
        crew_worker_ended(t->hosts[rank]);
    } else {
        x->phase = PHASE_COMPUTE;
        worker_later(t, rank, draw_in(w, MS / 10, 5 * MS), send_gradients);
    }
}

static void ready(world *w, host *h, team *t, int rank) {
    worker *x = &t->workers[rank];
    h->store.steps = x->start; /* all workers of all hosts have their parts */
    h->crew.whole = true;
    h->from = t->id;
    check_whole(t);
    if (rank == 0 && !folder_take(h, t->id, x->start)) {
        worker_fail(t, rank, LS_VIEW_LOST, "a later view has the run directory");
        return;
    }
    if (x->steps == w->plan.steps)
        save(t, rank);
    else
        next_step(t, rank);
}

static int first_virtual(const world *w, int rank, int size) { return rank * w->plan.V / size; }

static void send_gradients(world *w, host *h, const event *e) {
    team *t = worker_team(w, e);
    (void)h;
    if (!t) return;
    worker *x = &t->workers[e->a];
    int first = first_virtual(w, e->a, t->size), end = first_virtual(w, e->a + 1, t->size);
    for (int p = 0; p < t->size; p++)
        for (int v = first; v < end; v++)
            for (int b = 0; b < w->plan.B; b++)
                if (owns(w, p, t->size, b))
                    x->out_words[p][v * w->plan.B + b] = gradient(x->steps + 1, v, b);
    worker_exchange(t, e->a, PHASE_GRADS, (size_t)(w->plan.V * w->plan.B), false);
}

static void reduce(world *w, host *h, team *t, int rank) {
    worker *x = &t->workers[rank];
    int64_t step = x->steps + 1;
    int local = crew_place(h, rank);
    for (int b = 0; b < w->plan.B; b++) {
        uint64_t sum = 0;
        if (!owns(w, rank, t->size, b)) continue;
        for (int p = 0; p < t->size; p++) {
            const uint64_t *from = p == rank ? x->out_words[p] : x->in_words[p];
            int end = first_virtual(w, p + 1, t->size);
            for (int v = first_virtual(w, p, t->size); v < end; v++)
                sum = mix(sum, from[v * w->plan.B + b], 0);
        }
        if (sum != w->sums[step][b]) violate(w, "worker %d reduced block %d wrongly", rank, b);
        h->store.grads[local][b].step = step;
        h->store.grads[local][b].sum = sum;
    }
    to_all(t, rank, 0, (uint64_t)x->asked);
    worker_exchange(t, rank, PHASE_NORM, 1, false);
}

static void update(world *w, host *h, const event *e);

static void decide(world *w, host *h, team *t, int rank) {
    worker *x = &t->workers[rank];
    ls_store_note n = {.steps = x->steps + 1, .scaler = {.good = x->steps + 1}};
    n.update.updates = t->id.term;
    n.began_ns = t->id.number;
    h->store.notes[crew_place(h, rank)] = n;
    x->renews = x->asked > 0;
    for (int p = 0; p < t->size; p++) x->renews |= p != rank && x->in_words[p][0] > 0;
    x->phase = PHASE_UPDATE;
    x->at = 0;
    w->decides++;
    w->idle_views = 0;
    w->tally->decided++;
    trace(w, "host %d: worker %d decides step %lld", h->slot, rank, (long long)n.steps);
    worker_later(t, rank, draw_to(w, MS / 20), update);
}

static void end_step(world *w, team *t, int rank) {
    worker *x = &t->workers[rank];
    x->steps++;
    if (rank == 0 && !folder_append(w, t->id, x->steps)) {
        worker_fail(t, rank, LS_VIEW_LOST, "a later view has the run directory");
        return;
    }
    if (x->steps == w->plan.steps || x->steps % w->plan.save_every == 0)
        save(t, rank);
    else
        next_step(t, rank);
}

static void update(world *w, host *h, const event *e) {
    team *t = worker_team(w, e);
    if (!t) return;
    worker *x = &t->workers[e->a];
    int local = crew_place(h, e->a), b = x->at++;
    if (b == w->plan.B) {
        end_step(w, t, e->a);
        return;
    }
    block *y = store_block(w, &h->store, local, b);
    int64_t step = x->steps + 1;
    if (owns(w, e->a, t->size, b))
        store_put(h, y, b, step, updated(y->value, h->store.grads[local][b].sum, step));
    worker_later(t, e->a, draw_to(w, MS / 20), update);
}

static void write_checkpoint(world *w, host *h, team *t, int rank) {
    const worker *x = &t->workers[rank];
    uint64_t blocks[MOST_BLOCKS] = {0};
    (void)h;
    for (int p = 0; rank == 0 && p < t->size; p++) {
        const uint64_t *from = p == 0 ? x->out_words[0] : x->in_words[p];
        for (int b = 0; b < w->plan.B; b++)
            if (from[0] >> b & 1) blocks[b] = from[1 + b];
    }
    if (rank == 0 && !folder_save(w, t->id, x->steps, blocks))
        worker_fail(t, rank, LS_VIEW_LOST, "a later view has the run directory");
    else
        next_step(t, rank);
}

void worker_completed(world *w, host *h, const event *e) {
    team *t = worker_team(w, e);
    if (!t) return;
    switch (t->workers[e->a].phase) {
    case PHASE_HAVE: give(w, h, t, e->a); break;
    case PHASE_TAKE: take(w, h, t, e->a); break;
    case PHASE_READY: ready(w, h, t, e->a); break;
    case PHASE_GRADS: reduce(w, h, t, e->a); break;
    case PHASE_NORM: decide(w, h, t, e->a); break;
    case PHASE_COLLECT: write_checkpoint(w, h, t, e->a); break;
    case PHASE_BYE:
        t->workers[e->a].phase = PHASE_ENDED;
        crew_worker_ended(h);
        break;
    default: abort();
    }
}
