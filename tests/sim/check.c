/* check.c - see check.h. */
#include "check.h"

#include <string.h>

/* For this long after a fault, a host may be considered lost, or be late. */
static const int64_t RECOVERY_NS = (int64_t)2500 * MS;

static bool had_fault_lately(const host *h) {
    return h->faulty_until > 0 && h->w->now < h->faulty_until + RECOVERY_NS;
}

/* Has the leader known the host for long enough, and can it receive from it now? */
static bool is_known(const host *h, int leader) {
    if (h->slot == leader) return true;
    if (h->faulty_until > 0 && h->w->now < h->faulty_until + 200 * MS) return false;
    return h->term == h->w->hosts[leader].term && h->holder == leader && h->linked_since >= 0 &&
           h->w->now > h->linked_since + 200 * MS;
}

/* May the leader rightly not count on this host? */
static bool is_lost(const host *h, int life) {
    bool comes = h->linked_since >= 0 && h->w->now <= h->linked_since + 200 * MS;
    return !h->alive || h->store.steps < 0 || view_compare(h->from, h->w->whole) != 0 || h->over ||
           h->leaves || h->life != life || comes || had_fault_lately(h);
}

void check_whole(team *t) {
    world *w = t->hosts[0]->w;
    if (view_compare(t->id, w->whole) <= 0) return;
    w->whole = t->id;
    for (int i = 0; i < MOST_HOSTS; i++) w->holders[i] = -1;
    for (int r = 0; r < t->size; r++) w->holders[t->hosts[r]->slot] = t->hosts[r]->life;
}

/* A view has no state: have the hosts gone that had it? view: counts the hosts in it; NULL: counts
 * those that the leader knows. */
static bool is_gone(const world *w, int leader, const ls_view_id *view) {
    int here = 0, all = 0, unexplained = 0;
    bool parted = false; /* some of them were in another view meanwhile, without the others */
    const ls_view_id *before = NULL;
    for (int i = 0; i < MOST_HOSTS; i++) {
        const host *h = &w->hosts[i];
        if (w->holders[i] < 0) continue;
        bool lives = h->alive && h->life == w->holders[i] && h->store.steps >= 0 &&
                     view_compare(h->from, w->whole) == 0;
        bool in = view ? view_compare(h->crew.view.id, *view) == 0 : is_known(h, leader);
        all++;
        here += lives && in;
        if (lives && before) parted |= view_compare(*before, h->before) != 0;
        if (lives) before = &h->before;
        unexplained += !(lives && in) && !is_lost(h, w->holders[i]);
    }
    /* Before the run directory exists no step is decided. A hasty leader may lose hosts that it
     * does not wait for. */
    if (all == 0 || w->folder.owner.number == 0 || w->plan.hasty) return true;
    if (w->plan.sharded ? here == all && !parted : here > 0) return false;
    return unexplained == 0 || (leader >= 0 && had_fault_lately(&w->hosts[leader]));
}

void check_stateless(host *h) {
    world *w = h->w;
    ls_view_id id = h->crew.view.id;
    w->tally->fallbacks++;
    w->stateless = id;
    if (!is_gone(w, h->holder, &id))
        violate(w, "view %lld.%lld finds no state, but no host that had it was lost",
                (long long)id.term, (long long)id.number);
}

static void check_fallback(host *h, const ls_view *v) {
    world *w = h->w;
    bool reported = w->stateless.term == v->id.term && w->stateless.number + 1 == v->id.number;
    if (v->steps >= 0 || v->first > 0 || reported || is_gone(w, h->holder, NULL)) return;
    violate(w, "view %lld.%lld begins without state, but no host that had it was lost",
            (long long)v->id.term, (long long)v->id.number);
}

static void check_goes_back(host *h, const ls_view *v) {
    world *w = h->w;
    ls_store_note n = {0};
    bool newest = h->crew.whole && view_compare(h->crew.view.id, w->whole) == 0;
    int64_t has = h->store.steps;
    if (h->crew.unfinished && store_note(&h->store, &n) && n.steps > has) has = n.steps;
    if (v->steps >= 0 && newest && w->holders[h->slot] == h->life && v->steps < has)
        violate(w, "host %d: view %lld.%lld goes back to step %lld, it has %lld", h->slot,
                (long long)v->id.term, (long long)v->id.number, (long long)v->steps,
                (long long)has);
}

static void count_overlaps(const world *w, const ls_view *v) {
    for (int i = 0; i < MOST_VIEWS; i++)
        if (w->teams[i].crews && view_compare(w->teams[i].id, v->id) != 0) w->tally->overlaps++;
}

/* Some workers don't start, and some hosts find no state. */
enum { MOST_IDLE_VIEWS = 6 };

/* Do views begin again and again without a step? */
static void check_idle(world *w) {
    int most = MOST_IDLE_VIEWS;
    for (int a = 0; a < MOST_HOSTS; a++)
        for (int b = 0; b < a; b++) most += 2 * (w->worker_cut[a][b] || w->worker_cut[b][a]);
    if (++w->idle_views > most)
        violate(w, "%d views have begun without a step, %d are enough", w->idle_views, most);
}

void check_begin(host *h, const ls_view *v) {
    world *w = h->w;
    const crew *c = &h->crew;
    if (c->state != CREW_NONE || c->unfinished)
        violate(w, "host %d: a view begins before the previous one is finished", h->slot);
    if (v->id.term != h->term || ls_views_has_ended(h->views))
        violate(w, "host %d: a view of term %lld begins in term %lld", h->slot,
                (long long)v->id.term, (long long)h->term);
    if (view_compare(v->id, c->view.id) <= 0)
        violate(w, "host %d: view %lld.%lld begins after %lld.%lld", h->slot, (long long)v->id.term,
                (long long)v->id.number, (long long)c->view.id.term, (long long)c->view.id.number);
    if (v->n < 1 || v->first < 0 || v->first + v->n > v->size || v->size > MOST_WORKERS)
        violate(w, "host %d: workers %d to %d of %d", h->slot, v->first, v->first + v->n - 1,
                v->size);
    check_goes_back(h, v);
    check_fallback(h, v);
    if (v->first == 0) check_idle(w);
    count_overlaps(w, v);
}

void check_ask(host *h) {
    if (h->crew.state != CREW_RUNS) violate(h->w, "host %d: there are no workers to ask", h->slot);
}

void check_end(host *h) {
    if (h->crew.state != CREW_RUNS) violate(h->w, "host %d: there are no workers to end", h->slot);
}

void check_finish(host *h, const ls_store_note *note) {
    ls_store_note own;
    if (h->crew.state != CREW_NONE) violate(h->w, "host %d: a step is finished twice", h->slot);
    if (store_note(&h->store, &own) && (!note || note->steps < own.steps))
        violate(h->w, "host %d: step %lld is not finished", h->slot, (long long)own.steps);
    ls_view_id id = h->crew.view.id;
    if (note && (note->update.updates != id.term || note->began_ns != id.number))
        violate(h->w, "host %d: a step of view %lld.%lld is finished by a note of view %lld.%lld",
                h->slot, (long long)id.term, (long long)id.number, (long long)note->update.updates,
                (long long)note->began_ns);
}

void check_leads(host *h) {
    world *w = h->w;
    if (w->plan.elected && (w->lease.holder != h->slot || w->lease.term != h->term))
        violate(w, "host %d leads term %lld without the lease", h->slot, (long long)h->term);
    if (h->term <= w->led_term)
        violate(w, "term %lld begins after %lld", (long long)h->term, (long long)w->led_term);
    w->led_term = h->term;
    w->idle_views = 0;
    for (int i = 0; i < MOST_HOSTS; i++) {
        const host *x = &w->hosts[i];
        int64_t until = x->stopped_until > x->own_until ? x->stopped_until : x->own_until;
        if (x != h && x->alive && !x->over && ls_views_leads(x->views) && w->now > until + 200 * MS)
            violate(w, "hosts %d and %d lead", h->slot, i);
    }
}

void check_log(world *w, int64_t steps) {
    const folder *f = &w->folder;
    for (int i = 0; i < f->nlines; i++)
        if (f->lines[i].step != i + 1) {
            violate(w, "the log has step %lld in line %d", (long long)f->lines[i].step, i + 1);
            return;
        }
    if (f->nlines < steps)
        violate(w, "the log lacks step %d, and a view continues after step %lld", f->nlines + 1,
                (long long)steps);
}

void check_final(world *w) {
    if (w->doomed || (w->done && w->folder.saved < w->plan.steps && !w->plan.elected)) {
        check_log(w, 0);
        return;
    }
    check_log(w, w->plan.steps);
    if (w->folder.saved != w->plan.steps || w->folder.nlines != w->plan.steps)
        violate(w, "the run ends with %d lines and checkpoint %lld", w->folder.nlines,
                (long long)w->folder.saved);
}
