/* team.c - all workers of a view: their states, their messages, their links.
 *
 * An exchange is a message from each worker to each other, or to worker 0. It is complete for a
 * worker when all messages from and to that worker are. One event, at the time when the next
 * message can be delivered, drives the fake transport.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "world.h"

/* ---- teams ---- */

static void pump(world *w, host *h, const event *e);
static void watch(world *w, host *h, const event *e);
static void pump_soon(world *w, team *t);

static void open_team(world *w, team *t, const ls_view *v) {
    ls_fake_faults f = {.seed = mix(w->seed, w->order, 2), .delay_ns = MS};
    memset(t, 0, sizeof *t);
    t->id = v->id;
    t->size = v->size;
    t->steps = v->steps;
    t->net = ls_fake_new(v->size, &f);
    t->workers = LS_NEW_ARRAY(worker, (size_t)v->size);
    t->pump_at = -1;
    t->generation = (int)w->order;
    event *e = post(w, w->plan.patience / 4, watch);
    e->a = (int)(t - w->teams);
    e->b = t->generation;
    w->tally->views++;
}

team *team_find(world *w, const ls_view *v) {
    team *unused = NULL;
    for (int i = 0; i < MOST_VIEWS; i++) {
        team *t = &w->teams[i];
        if (t->crews && view_compare(t->id, v->id) == 0) {
            if (t->size != v->size || t->steps != v->steps)
                violate(w, "view %lld.%lld has two sizes or beginnings", (long long)v->id.term,
                        (long long)v->id.number);
            return t;
        }
        if (!t->crews && !unused) unused = t;
    }
    if (!unused) abort();
    open_team(w, unused, v);
    return unused;
}

void team_leave(team *t, host *h) {
    for (int r = 0; r < t->size; r++)
        if (t->hosts[r] == h) worker_kill(t, r);
    if (--t->crews) return;
    ls_fake_free(t->net);
    free(t->workers);
    t->workers = NULL;
}

void worker_fail(team *t, int rank, ls_view_end how, const char *why) {
    host *h = t->hosts[rank];
    trace(h->w, "host %d: worker %d of view %lld.%lld fails: %s", h->slot, rank,
          (long long)t->id.term, (long long)t->id.number, why);
    worker_kill(t, rank);
    crew_fail(h, how, why);
}

void worker_blame(team *t, int rank, int blames, const char *why) {
    host *h = t->hosts[rank];
    trace(h->w, "host %d: worker %d of view %lld.%lld fails: %s (blames %d)", h->slot, rank,
          (long long)t->id.term, (long long)t->id.number, why, blames - 1);
    worker_kill(t, rank);
    crew_blame(h, blames);
}

/* Whom a worker blames that has waited too long, or lost a connection: one that it can't reach. */
static int blamed_by(const world *w, const team *t, int rank) {
    const host *h = t->hosts[rank];
    int blames = LS_BLAMES_ENDED;
    for (int p = 0; p < t->size; p++)
        if (p != rank && t->hosts[p] && w->worker_cut[h->slot][t->hosts[p]->slot]) blames = 1 + p;
    return blames;
}

/* ---- events of a worker ---- */

void worker_later(team *t, int rank, int64_t after, void (*run)(world *, host *, const event *)) {
    host *h = t->hosts[rank];
    event *e = post_host(h, after, run);
    e->supervisor = false;
    e->a = rank;
    e->b = (int)(t - h->w->teams);
    e->number = t->generation;
}

team *worker_team(world *w, const event *e) {
    team *t = &w->teams[e->b];
    if (!t->crews || t->generation != e->number) return NULL;
    const worker *x = &t->workers[e->a];
    if (x->phase == PHASE_NONE || x->phase == PHASE_ENDED) return NULL;
    if (x->stopped_until <= w->now) return t;
    worker_later(t, e->a, x->stopped_until - w->now, e->run);
    return NULL;
}

/* ---- exchanges ---- */

static void expect(team *t, int rank, ls_message *m, int peer, uint64_t tag, size_t nwords,
                   void *data) {
    *m = (ls_message){.peer = peer, .tag = tag, .data = data, .nbytes = nwords * sizeof(uint64_t)};
    m->owner = &t->workers[rank];
    t->workers[rank].pending++;
}

void worker_exchange(team *t, int rank, phase ph, size_t nwords, bool gather) {
    world *w = t->hosts[rank]->w;
    worker *x = &t->workers[rank];
    ls_net *net = ls_fake_net(t->net, rank);
    uint64_t tag = ls_net_tag(1, (uint32_t)x->calls++, (uint32_t)ph);
    ls_error e = {0};
    x->phase = ph;
    x->pending = 0;
    x->moved_ns = w->now;
    for (int p = 0; p < t->size; p++) {
        if (p == rank || (gather && rank != 0)) continue;
        expect(t, rank, &x->in[p], p, tag, nwords, x->in_words[p]);
        if (net->ops->recv(net, &x->in[p], &e) != LS_OK) abort();
    }
    for (int p = 0; p < t->size; p++) {
        if (p == rank || (gather && p != 0)) continue;
        expect(t, rank, &x->out[p], p, tag, nwords, x->out_words[p]);
        if (net->ops->send(net, &x->out[p], &e) != LS_OK) {
            worker_blame(t, rank, blamed_by(w, t, rank), e.msg);
            return;
        }
    }
    if (x->pending == 0) worker_later(t, rank, 0, worker_completed);
    pump_soon(w, t);
}

static void pump_soon(world *w, team *t) {
    int64_t next = ls_fake_next(t->net);
    if (next < w->now) next = w->now;
    if (t->pump_at >= 0 && t->pump_at <= next) return;
    t->pump_at = next;
    event *e = post(w, next - w->now, pump);
    e->a = (int)(t - w->teams);
    e->b = t->generation;
}

static bool waits(const world *w, const worker *x) {
    return x->phase != PHASE_NONE && x->phase != PHASE_ENDED && x->stopped_until <= w->now;
}

/* Is the phase complete? */
static bool poll(team *t, int rank) {
    worker *x = &t->workers[rank];
    ls_net *net = ls_fake_net(t->net, rank);
    ls_message *done = NULL;
    ls_error e = {0};
    if (net->ops->poll(net, 0, &done, &e) != LS_OK) {
        worker_blame(t, rank, blamed_by(t->hosts[rank]->w, t, rank), e.msg);
        return false;
    }
    if (!done) return false;
    x->moved_ns = t->hosts[rank]->w->now;
    for (; done; done = done->next) x->pending--;
    return x->pending == 0;
}

static void pump(world *w, host *h, const event *e) {
    team *t = &w->teams[e->a];
    (void)h;
    if (!t->crews || t->generation != e->b || e->at != t->pump_at) return;
    t->pump_at = -1;
    ls_fake_advance(t->net, w->now);
    for (int r = 0; r < t->size; r++)
        if (waits(w, &t->workers[r]) && poll(t, r)) worker_later(t, r, 0, worker_completed);
    if (ls_fake_next(t->net) >= 0) pump_soon(w, t);
}

/* A worker that waits too long for another one fails. */
static void watch(world *w, host *h, const event *e) {
    team *t = &w->teams[e->a];
    (void)h;
    if (!t->crews || t->generation != e->b) return;
    for (int r = 0; r < t->size; r++) {
        const worker *x = &t->workers[r];
        if (waits(w, x) && x->pending > 0 && w->now - x->moved_ns > w->plan.patience)
            worker_blame(t, r, blamed_by(w, t, r), "it waited too long for another worker");
    }
    event *next = post(w, w->plan.patience / 4, watch);
    next->a = e->a;
    next->b = e->b;
}

/* ---- links of workers ---- */

static void each_pair(world *w, void (*fn)(world *, team *, int, int)) {
    for (int i = 0; i < MOST_VIEWS; i++) {
        team *t = &w->teams[i];
        for (int a = 0; t->crews && a < t->size; a++)
            for (int b = 0; b < a; b++)
                if (t->hosts[a] && t->hosts[b]) fn(w, t, a, b);
        if (t->crews) pump_soon(w, t);
    }
}

static void hold(world *w, team *t, int a, int b) {
    int x = t->hosts[a]->slot, y = t->hosts[b]->slot;
    ls_fake_hold(t->net, a, b, w->worker_cut[x][y] || w->worker_cut[y][x]);
}

void teams_hold(world *w) { each_pair(w, hold); }

void teams_cut(world *w, int x, int y) {
    for (int i = 0; i < MOST_VIEWS; i++) {
        team *t = &w->teams[i];
        for (int a = 0; t->crews && a < t->size; a++)
            for (int b = 0; b < t->size; b++)
                if (t->hosts[a] && t->hosts[b] && t->hosts[a]->slot == x && t->hosts[b]->slot == y)
                    ls_fake_cut(t->net, a, b);
        if (t->crews) pump_soon(w, t);
    }
}

/* ---- orders of the supervisor ---- */

void worker_start(team *t, int rank) {
    world *w = t->hosts[rank]->w;
    t->workers[rank].phase = PHASE_STARTS;
    t->workers[rank].moved_ns = w->now;
    worker_later(t, rank, draw_in(w, MS, chance(w, 0.05) ? 60 * MS : 8 * MS), worker_started);
}

static void resumed(world *w, host *h, const event *e) {
    (void)h;
    team *t = worker_team(w, e);
    if (t) pump_soon(w, t);
}

void worker_stop(team *t, int rank, int64_t ns) {
    world *w = t->hosts[rank]->w;
    t->workers[rank].stopped_until = w->now + ns;
    t->workers[rank].moved_ns = w->now + ns;
    worker_later(t, rank, ns, resumed);
}

void worker_kill(team *t, int rank) {
    worker *x = &t->workers[rank];
    if (x->phase == PHASE_NONE) return;
    if (x->phase != PHASE_ENDED) {
        ls_fake_kill(t->net, rank);
        event *e = post(t->hosts[rank]->w, draw_to(t->hosts[rank]->w, 2 * MS), pump);
        e->a = (int)(t - t->hosts[rank]->w->teams);
        e->b = t->generation;
        if (t->pump_at < 0 || e->at < t->pump_at) t->pump_at = e->at;
    }
    x->phase = PHASE_NONE;
}
