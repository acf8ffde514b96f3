/* member.c - which host leads: host 0 for ever, or the holder of a lease.
 *
 * The lease is kept by a store like etcd: a term is the revision at which the key of the leader was
 * created; the lease expires if its holder has not kept it alive for plan.ttl by the store's clock.
 * Hosts ask now and then; requests and answers take time, and may be lost. A holder counts from the
 * time when it sent the last request that was granted, and stops leading some time before the store
 * could consider the lease expired. It does not lead a term again that it gave up.
 */
#include "check.h"
#include "world.h"

static int64_t own_part(const world *w) { return w->plan.ttl * 7 / 10; }

static void lead(host *h, int64_t term, bool self) {
    trace(h->w, "host %d: %s %lld", h->slot, self ? "leads term" : "follows term", (long long)term);
    if (h->w->folder.owner.number) ls_views_begun(h->views);
    if (self) check_leads(h);
    link_new_leader(h);
    ls_views_lead(h->views, term, self);
}

void member_look(host *h) {
    if (!h->w->plan.elected || !ls_views_leads(h->views) || h->w->now < h->own_until) return;
    trace(h->w, "host %d: no longer leads, by its own clock", h->slot);
    h->gave_up = true;
    h->holder = -1;
    link_new_leader(h);
    ls_views_lead(h->views, 0, false);
}

/* A host gets an answer. number: the term; a: its holder; b: when the request was sent, in us. */
static void answered(world *w, host *h, const event *e) {
    int64_t asked_ns = (int64_t)e->b * 1000;
    member_look(h);
    if (h->over || e->number < h->term || e->a < 0) return;
    ls_views_tick(h->views, w->now); /* a leader counts from now */
    bool self = e->a == h->slot && w->lease.holder == h->slot;
    if (e->number == h->term) {
        if (self && !h->gave_up && asked_ns + own_part(w) > h->own_until)
            h->own_until = asked_ns + own_part(w);
        return;
    }
    if (self && asked_ns + own_part(w) <= w->now) return; /* too late to lead */
    h->term = e->number;
    h->holder = e->a;
    h->gave_up = false;
    h->own_until = self ? asked_ns + own_part(w) : 0;
    lead(h, h->term, self);
}

/* The store gets a request; b: when it was sent, in us. */
static void asked(world *w, host *h, const event *e) {
    if (w->store_cut[h->slot]) return;
    bool free = w->lease.holder < 0 || w->now >= w->lease.until;
    bool mine = w->lease.holder == h->slot && w->lease.life == h->life;
    bool own = mine && e->number == h->term;
    if (free && !h->over) {
        w->lease.holder = h->slot;
        w->lease.life = h->life;
        w->lease.term += draw_in(w, 1, 5);
        w->tally->terms++;
        trace(w, "the lease of term %lld is host %d's", (long long)w->lease.term, h->slot);
    }
    if (free || (own && !h->gave_up)) w->lease.until = w->now + w->plan.ttl;
    if (chance(w, 0.05)) return; /* the answer is lost */
    event *x = post_host(h, draw_in(w, MS / 10, chance(w, 0.05) ? 80 * MS : 3 * MS), answered);
    /* A lease that the host held before it was killed is another's. */
    x->a = w->lease.holder == h->slot && w->lease.life != h->life ? -1 : w->lease.holder;
    x->b = e->b;
    x->number = w->lease.term;
}

static void ask(world *w, host *h, const event *e) {
    (void)e;
    member_look(h);
    if (h->over) return;
    post_host(h, draw_in(w, 30 * MS, 80 * MS), ask);
    if (w->store_cut[h->slot] || chance(w, 0.05)) return;
    event *x = post_host(h, draw_in(w, MS / 10, chance(w, 0.05) ? 80 * MS : 3 * MS), asked);
    x->supervisor = false;
    x->b = (int)(w->now / 1000);
    x->number = h->term;
}

void member_start(host *h) {
    if (h->w->plan.elected) {
        post_host(h, draw_to(h->w, 30 * MS), ask);
        return;
    }
    h->term = 1;
    h->holder = 0;
    h->own_until = INT64_MAX;
    lead(h, 1, h->slot == 0);
}
