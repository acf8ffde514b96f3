/* link.c - connections between supervisors: messages arrive in order, after some time, as long as
 * both ends and the link live. While a link is cut, messages wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "world.h"

enum { HOST_SIDE, LEADER_SIDE };

static conn *open_conn(world *w, const host *h, int side, int peer) {
    for (int i = 0; i < MOST_CONNS; i++) {
        conn *c = &w->conns[i];
        if (c->used && c->open[side] && c->ends[side] == h && c->lives[side] == h->life &&
            (side == HOST_SIDE || c->peer == peer))
            return c;
    }
    return NULL;
}

static void forget_messages(conn *c) {
    for (int side = 0; side < 2; side++)
        while (c->first[side]) {
            queued *first = c->first[side];
            c->first[side] = first->next;
            free(first);
        }
}

void link_free(world *w) {
    for (int i = 0; i < MOST_CONNS; i++) forget_messages(&w->conns[i]);
}

static void close_side(conn *c, int side) {
    c->open[side] = false;
    if (c->open[0] || c->open[1]) return;
    forget_messages(c);
    c->used = false;
}

/* ---- messages in flight ---- */

static void lose(world *w, conn *c, int side) {
    host *h = c->ends[side];
    int peer = side == HOST_SIDE ? LS_TO_LEADER : c->peer;
    trace(w, "host %d: has lost peer %d", h->slot, peer);
    close_side(c, side);
    if (side == HOST_SIDE) h->linked_since = -1;
    ls_views_lost(h->views, peer);
    if (side == HOST_SIDE) link_connect_soon(h);
}

static void arrive(world *w, host *h, const event *e) {
    conn *c = &w->conns[e->a];
    int side = e->b;
    if (!c->used || c->generation != e->number || !c->open[side] || !c->first[side]) return;
    if (w->cut[c->ends[0]->slot][c->ends[1]->slot]) { /* it is sent again */
        event *again = post_host(h, draw_in(w, 5 * MS, 25 * MS), arrive);
        again->a = e->a;
        again->b = e->b;
        again->number = e->number;
        return;
    }
    queued *first = c->first[side];
    ls_host_message s = first->s;
    c->first[side] = first->next;
    free(first);
    if (s.what)
        ls_views_receive(h->views, side == HOST_SIDE ? LS_TO_LEADER : c->peer, &s);
    else
        lose(w, c, side);
}

static void send(world *w, conn *c, int to, const ls_host_message *s) {
    host *h = c->ends[to];
    queued **end = &c->first[to];
    if (!c->open[to]) return;
    while (*end) end = &(*end)->next;
    *end = LS_NEW(queued);
    if (s) (*end)->s = *s;
    int64_t at = w->now + draw_in(w, MS / 10, chance(w, 0.05) ? 40 * MS : 3 * MS);
    if (at <= c->last[to]) at = c->last[to] + 1;
    c->last[to] = at;
    if (!h->alive || h->life != c->lives[to]) return;
    event *e = post_host(h, at - w->now, arrive);
    e->a = (int)(c - w->conns);
    e->b = to;
    e->number = c->generation;
}

void link_send(host *h, int peer, const ls_host_message *s) {
    int side = peer == LS_TO_LEADER ? HOST_SIDE : LEADER_SIDE;
    conn *c = open_conn(h->w, h, side, peer);
    ls_host_message m = *s;
    if (s->what == LS_HOST_JOIN)
        snprintf(m.view.address, sizeof m.view.address, "host-%d", h->slot);
    if (c) send(h->w, c, !side, &m);
}

void link_drop(host *h, int peer) {
    int side = peer == LS_TO_LEADER ? HOST_SIDE : LEADER_SIDE;
    conn *c = open_conn(h->w, h, side, peer);
    trace(h->w, "host %d: drops peer %d", h->slot, peer);
    if (!c) return;
    for (int i = 0; i < 2;
         i++) /* it was silent for any reason; a host that connects again was lost before */
        if (c->ends[i]->faulty_until < h->w->now) c->ends[i]->faulty_until = h->w->now;
    send(h->w, c, !side, NULL);
    close_side(c, side);
    if (side != HOST_SIDE) return;
    h->linked_since = -1;
    link_connect_soon(h);
}

/* ---- connections begin ---- */

static int unused_peer(world *w, const host *leader) {
    int peer = 1;
    while (open_conn(w, leader, LEADER_SIDE, peer)) peer++;
    return peer;
}

static void connected(world *w, host *h, const event *e) {
    (void)e;
    if (h->over || h->holder < 0 || h->holder == h->slot) return;
    host *leader = &w->hosts[h->holder];
    conn *old = open_conn(w, h, HOST_SIDE, 0), *c = NULL;
    if (old && old->term == h->term) return;
    if (!leader->alive || w->cut[h->slot][h->holder] || leader->stopped_until > w->now) {
        link_connect_soon(h);
        return;
    }
    if (old) {
        send(w, old, LEADER_SIDE, NULL);
        close_side(old, HOST_SIDE);
    }
    for (int i = 0; i < MOST_CONNS && !c; i++)
        if (!w->conns[i].used) c = &w->conns[i];
    if (!c) abort();
    int peer = unused_peer(w, leader);
    int generation = c->generation + 1;
    *c = (conn){.used = true, .open = {true, true}, .ends = {h, leader}};
    c->lives[0] = h->life;
    c->lives[1] = leader->life;
    c->peer = peer;
    c->generation = generation;
    c->term = h->term;
    h->linked_since = w->now;
    trace(w, "host %d: is connected to host %d, as peer %d", h->slot, h->holder, peer);
    ls_views_linked(h->views);
}

void link_connect_soon(host *h) { post_host(h, draw_in(h->w, MS, 60 * MS), connected); }

void link_new_leader(host *h) {
    conn *c = open_conn(h->w, h, HOST_SIDE, 0);
    h->linked_since = -1;
    if (c && h->w->plan.closes_at_once) {
        send(h->w, c, LEADER_SIDE, NULL);
        close_side(c, HOST_SIDE);
    }
    if (h->holder >= 0 && h->holder != h->slot) link_connect_soon(h);
}

/* ---- connections end ---- */

static void notice(world *w, host *h, const event *e) {
    conn *c = &w->conns[e->a];
    if (!c->used || c->generation != e->number || !c->open[e->b] || c->ends[e->b] != h) return;
    lose(w, c, e->b);
}

static void notice_soon(world *w, conn *c, int side, int64_t after) {
    host *h = c->ends[side];
    if (!c->open[side] || !h->alive || h->life != c->lives[side]) return;
    event *e = post_host(h, after, notice);
    e->a = (int)(c - w->conns);
    e->b = side;
    e->number = c->generation;
}

/* Hosts that were connected get an error soon; quietly: they have to notice the silence. */
void link_host_died(host *h, bool quietly) {
    world *w = h->w;
    for (int i = 0; i < MOST_CONNS; i++) {
        conn *c = &w->conns[i];
        for (int side = 0; side < 2; side++) {
            if (!c->used || !c->open[side] || c->ends[side] != h || c->lives[side] != h->life)
                continue;
            if (!quietly) send(w, c, !side, NULL);
            close_side(c, side);
        }
    }
}

/* Both ends get an error, each after a time of its own; messages in flight are lost. */
void link_break(world *w, int a, int b) {
    for (int i = 0; i < MOST_CONNS; i++) {
        conn *c = &w->conns[i];
        if (!c->used) continue;
        int x = c->ends[0]->slot, y = c->ends[1]->slot;
        if (!((x == a && y == b) || (x == b && y == a))) continue;
        forget_messages(c);
        for (int side = 0; side < 2; side++) notice_soon(w, c, side, draw_to(w, 50 * MS));
    }
}
