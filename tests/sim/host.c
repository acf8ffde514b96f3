/* host.c - a simulated supervisor: its ls_views, its crew of workers, its clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "world.h"

static const char *const ends[] = {"done",    "renewed",   "ordered", "lost",
                                   "crashed", "stateless", "failed"};

int crew_place(const host *h, int rank) { return rank - h->crew.view.first; }

/* ---- how a crew ends ---- */

static void crew_gone(world *w, host *h, const event *e) {
    crew *c = &h->crew;
    if (e->a != c->generation || c->state != CREW_RUNS) return;
    team_leave(c->team, h);
    c->team = NULL;
    c->state = CREW_NONE;
    c->generation++;
    c->ends = false;
    if (h->leaves) h->nworkers = 0;
    ls_host_state k = {.steps = h->store.steps};
    store_note(&h->store, &k.decided.note);
    k.whole = c->whole;
    trace(w, "host %d: view %lld.%lld has ended: %s, %lld steps, noted %lld", h->slot,
          (long long)c->view.id.term, (long long)c->view.id.number, ends[c->how],
          (long long)k.steps, (long long)k.decided.note.steps);
    const ls_views_ending x = {.how = c->how, .blames = c->blames, .why = ends[c->how]};
    ls_views_ended(h->views, &x, &k, h->nworkers);
}

static void end_soon(host *h, ls_view_end how, int64_t most_ns) {
    crew *c = &h->crew;
    if (c->state != CREW_RUNS || c->ends) return;
    c->ends = true;
    c->how = how;
    post_host(h, draw_to(h->w, most_ns), crew_gone)->a = c->generation;
}

void crew_fail(host *h, ls_view_end how, const char *why) {
    (void)why;
    end_soon(h, how, 5 * MS);
}

void crew_blame(host *h, int blames) {
    if (h->crew.state == CREW_RUNS && !h->crew.ends) h->crew.blames = blames;
    end_soon(h, LS_VIEW_LOST, 5 * MS);
}

void crew_worker_ended(host *h) {
    const crew *c = &h->crew;
    bool renews = true;
    for (int i = 0; i < c->view.n; i++) {
        const worker *x = &c->team->workers[c->view.first + i];
        if (x->phase != PHASE_ENDED) return;
        renews &= x->renews && x->steps < h->w->plan.steps;
    }
    end_soon(h, renews ? LS_VIEW_RENEWED : LS_VIEW_DONE, 2 * MS);
}

/* ---- orders ---- */

static void on_send(void *arg, int peer, const ls_host_message *s) { link_send(arg, peer, s); }
static void on_drop(void *arg, int peer) { link_drop(arg, peer); }
static void on_meet(void *arg, ls_view *v) {
    const host *h = arg;
    snprintf(v->address, sizeof v->address, "host-%d", h->slot);
}

static int on_fit(const void *arg, int n) {
    (void)arg;
    return n;
}

static void on_begin(void *arg, const ls_view *v) {
    host *h = arg;
    world *w = h->w;
    crew *c = &h->crew;
    trace(w, "host %d: begins view %lld.%lld after step %lld, workers %d to %d of %d, on %d hosts",
          h->slot, (long long)v->id.term, (long long)v->id.number, (long long)v->steps, v->first,
          v->first + v->n - 1, v->size, v->nhosts);
    check_begin(h, v);
    if (w->violated[0]) return;
    int generation = c->generation + 1;
    h->before = c->view.id;
    *c = (crew){.state = CREW_RUNS, .generation = generation, .view = *v, .unfinished = true};
    c->team = team_find(w, v);
    c->team->crews++;
    h->nworkers = v->n;
    memset(h->store.notes, 0, sizeof h->store.notes);
    if (v->steps < 0) h->store.steps = -1;
    if (v->last.steps > 0) h->store.last = v->last;
    for (int i = 0; i < v->n; i++) {
        c->team->hosts[v->first + i] = h;
        worker_start(c->team, v->first + i);
    }
    teams_hold(w);
    if (w->crashes_left > 0 && chance(w, 0.02)) {
        w->crashes_left--;
        crew_fail(h, LS_VIEW_CRASHED, "a worker does not start");
    }
}

static void on_ask(void *arg, ls_asked what) {
    host *h = arg;
    trace(h->w, "host %d: asks its workers to end", h->slot);
    check_ask(h);
    if (h->crew.state != CREW_RUNS) return;
    for (int i = 0; i < h->crew.view.n; i++)
        h->crew.team->workers[h->crew.view.first + i].asked = (int)what;
}

static void on_end(void *arg, const char *why) {
    host *h = arg;
    trace(h->w, "host %d: ends its workers: %s", h->slot, why);
    check_end(h);
    end_soon(h, LS_VIEW_ORDERED, 10 * MS);
}

static void on_finish(void *arg, const ls_store_decided *d) {
    const ls_store_note *note = d->note.steps ? &d->note : NULL;
    host *h = arg;
    crew *c = &h->crew;
    trace(h->w, "host %d: finishes step %lld", h->slot, note ? (long long)note->steps : 0);
    check_finish(h, note);
    if (h->w->violated[0]) return;
    c->has_note = note != NULL;
    if (note) c->note = *note;
    repairer_start(h);
}

static void on_log(void *arg, const char *line) {
    const host *h = arg;
    trace(h->w, "host %d logs: %s", h->slot, line);
    h->w->tally->outs += strncmp(line, "this host is left out", 21) == 0;
    h->w->tally->opened += strncmp(line, "two hosts", 9) == 0;
}

/* JOIN says where a host is (link.c); this host itself can be tried anywhere. */
static void on_place(const void *arg, const int by_of[2], const char *said,
                     char address[LS_PLACE]) {
    const host *h = arg;
    snprintf(address, LS_PLACE, "%s", said);
    if (by_of[1] == LS_OWN_PEER) snprintf(address, LS_PLACE, "host-%d", h->slot);
}

static void tried(world *w, host *h, const event *e) {
    const host *x = &w->hosts[e->a];
    bool reached = x->alive && !w->worker_cut[h->slot][x->slot];
    if (!h->over) ls_views_tried(h->views, (int32_t)e->number, reached);
}

static void on_try(void *arg, int32_t number, const char *address) {
    host *h = arg;
    event *e = post_host(h, draw_in(h->w, MS, 30 * MS), tried);
    e->a = atoi(address + strlen("host-"));
    e->number = number;
}

static void leave(world *w, host *h, const event *e) {
    (void)e;
    trace(w, "host %d: has exited", h->slot);
    h->alive = false;
    h->has_left = w->folder.saved != w->plan.steps;
    link_host_died(h, false);
    if (!w->plan.elected && h->slot == 0) w->done = true;
}

static void on_over(void *arg, ls_view_end how, const char *why) {
    host *h = arg;
    trace(h->w, "host %d: over, %s %s", h->slot, ends[how], why);
    if (how != LS_VIEW_DONE) violate(h->w, "host %d gives up: %s", h->slot, why);
    if (h->crew.state == CREW_RUNS) violate(h->w, "host %d ends with a crew", h->slot);
    if (h->w->folder.saved != h->w->plan.steps && h->nworkers)
        violate(h->w, "host %d ends before the run", h->slot);
    h->over = true;
    h->over_how = how;
    post_host(h, draw_to(h->w, 20 * MS), leave);
}

static void on_name(const void *arg, int peer, char *text) {
    (void)arg;
    snprintf(text, LS_PEER_NAME, "%d", peer);
}

static const ls_views_ops ops = {.send = on_send,
                                 .drop = on_drop,
                                 .name = on_name,
                                 .meet = on_meet,
                                 .fit = on_fit,
                                 .begin = on_begin,
                                 .ask = on_ask,
                                 .end = on_end,
                                 .finish = on_finish,
                                 .log = on_log,
                                 .place = on_place,
                                 .try_reach = on_try,
                                 .over = on_over};

/* ---- a supervisor's life ---- */

static void tick(world *w, host *h, const event *e) {
    (void)e;
    member_look(h);
    ls_views_tick(h->views, w->now);
    post_host(h, draw_in(w, 10 * MS, chance(w, 0.05) ? 150 * MS : 50 * MS), tick);
}

void host_start(world *w, int slot) {
    host *h = &w->hosts[slot];
    int life = h->life + 1;
    bool first = life == 1 && slot < w->plan.nhosts;
    if (h->views) ls_views_free(h->views);
    memset(h, 0, sizeof *h);
    h->w = w;
    h->slot = slot;
    h->life = life;
    h->alive = true;
    h->id = (uint64_t)slot + 1 + (w->plan.same_id ? 0 : 100 * (uint64_t)life);
    h->nworkers = (int)draw_in(w, 1, chance(w, w->plan.nhosts > 3 ? 0.6 : 0.1) ? 4 : 2);
    h->holder = -1;
    h->linked_since = -1;
    store_clear(&h->store);
    ls_views_config c = {.host = h->id,
                         .nworkers = h->nworkers,
                         .least = 1,
                         .most = MOST_WORKERS,
                         .hosts = first ? w->plan.nhosts : 1,
                         .silence_ns = w->plan.silence,
                         .gather_ns = w->plan.gather,
                         .retry_ns = w->plan.retry,
                         .ops = &ops,
                         .arg = h};
    h->views = ls_views_new(&c);
    ls_views_tick(h->views, w->now);
    trace(w, "host %d: starts, %d workers", slot, h->nworkers);
    member_start(h);
    post_host(h, draw_to(w, 20 * MS), tick);
}

void host_kill(host *h, bool quietly) {
    trace(h->w, "host %d: is killed", h->slot);
    if (h->crew.state == CREW_RUNS) team_leave(h->crew.team, h);
    h->crew.state = CREW_NONE;
    h->alive = false;
    link_host_died(h, quietly);
}
