/* fake.c - see fake.h.
 *
 * A send copies its data into a parcel. For the sender it is done either at once, as in a transport
 * that buffers, or when the parcel is delivered, as in one that doesn't; the seed decides. A parcel
 * is delivered when its receiver has asked for it and its time has come.
 */
#include "net/fake.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

typedef struct parcel {
    int from, to;
    uint64_t tag, print;
    size_t nbytes;
    void *data;
    int64_t at;
    ls_message *sender; /* to be completed on delivery, or NULL */
    struct parcel *next;
} parcel;

typedef struct end {
    ls_net net; /* first */
    ls_fake *world;
    ls_message *wanted; /* posted receives */
    ls_message *done;
    bool dead;
} end;

struct ls_fake {
    int size;
    ls_fake_faults faults;
    uint64_t draws;
    int64_t now;
    end *ends;
    parcel *parcels;
    bool *cut;  /* [size][size] */
    bool *held; /* [size][size] */
};

static uint64_t draw(ls_fake *w) {
    uint32_t words[4];
    ls_random_words(w->faults.seed, LS_STREAM_FAKE, 0, w->draws++, words);
    return (uint64_t)words[1] << 32 | words[0];
}
static double draw_unit(ls_fake *w) { return (double)(draw(w) >> 11) * 0x1p-53; }
static bool chance(ls_fake *w, double fraction) { return fraction > 0 && draw_unit(w) < fraction; }

static bool *cut_of(ls_fake *w, int a, int b) { return &w->cut[a * w->size + b]; }

static void finish(end *x, ls_message *m) {
    m->next = x->done;
    x->done = m;
}

static ls_status lost(const end *x, int peer, ls_error *e) {
    if (x->dead) return ls_fail(e, LS_EABORT, "worker %d is dead", x->net.rank);
    return ls_fail(e, LS_EPEER, "worker %d lost its connection to worker %d", x->net.rank, peer);
}

static ls_status fake_send(ls_net *net, ls_message *m, ls_error *e) {
    end *x = (end *)net;
    ls_fake *w = x->world;
    if (chance(w, w->faults.kill)) x->dead = true;
    if (chance(w, w->faults.cut))
        *cut_of(w, net->rank, m->peer) = *cut_of(w, m->peer, net->rank) = true;
    if (x->dead || w->ends[m->peer].dead || *cut_of(w, net->rank, m->peer))
        return lost(x, m->peer, e);
    net->messages_sent++;
    net->bytes_sent += m->nbytes;
    bool buffered = draw(w) & 1;
    if (!chance(w, w->faults.drop)) {
        parcel *p = LS_NEW(parcel);
        *p = (parcel){.from = net->rank, .to = m->peer, .tag = m->tag, .print = m->print};
        p->nbytes = m->nbytes;
        p->data = ls_alloc(m->nbytes ? m->nbytes : 1);
        if (m->nbytes) memcpy(p->data, m->data, m->nbytes);
        p->at = w->now + (int64_t)(draw_unit(w) * (double)w->faults.delay_ns);
        p->sender = buffered ? NULL : m;
        p->next = w->parcels;
        w->parcels = p;
    }
    if (buffered) finish(x, m);
    return LS_OK;
}

static ls_status fake_recv(ls_net *net, ls_message *m, ls_error *e) {
    end *x = (end *)net;
    (void)e;
    m->next = x->wanted;
    x->wanted = m;
    return LS_OK;
}

/* The link to the receive that p is for, or NULL. */
static ls_message **wanted_for(const ls_fake *w, const parcel *p) {
    if (w->held[p->from * w->size + p->to]) return NULL;
    for (ls_message **m = &w->ends[p->to].wanted; *m; m = &(*m)->next)
        if ((*m)->peer == p->from && (*m)->tag == p->tag) return m;
    return NULL;
}

static void deliver(ls_fake *w, parcel **link, ls_message **want) {
    parcel *p = *link;
    ls_message *m = *want;
    end *to = &w->ends[p->to];
    *link = p->next;
    *want = m->next;
    m->their_print = p->print;
    m->their_nbytes = p->nbytes;
    if (p->nbytes && ls_message_fits(m, p->nbytes)) memcpy(m->data, p->data, p->nbytes);
    to->net.messages_received++;
    to->net.bytes_received += p->nbytes;
    finish(to, m);
    if (p->sender) finish(&w->ends[p->from], p->sender);
    free(p->data);
    free(p);
}

/* Delivers one parcel, any of those that can be delivered; false: there is none. */
static bool deliver_any(ls_fake *w) {
    int ready = 0;
    for (parcel *p = w->parcels; p; p = p->next) ready += p->at <= w->now && wanted_for(w, p);
    if (!ready) return false;
    int pick = (int)(draw(w) % (uint64_t)ready);
    for (parcel **link = &w->parcels; *link; link = &(*link)->next) {
        ls_message **want = (*link)->at <= w->now ? wanted_for(w, *link) : NULL;
        if (want && pick-- == 0) {
            deliver(w, link, want);
            return true;
        }
    }
    return false;
}

static ls_status fake_poll(ls_net *net, int64_t timeout_ns, ls_message **done_p, ls_error *e) {
    end *x = (end *)net;
    ls_fake *w = x->world;
    if (x->dead) return lost(x, net->rank, e);
    for (ls_message *m = x->wanted; m; m = m->next)
        if (w->ends[m->peer].dead || *cut_of(w, net->rank, m->peer)) return lost(x, m->peer, e);
    if (!deliver_any(w) && timeout_ns > 0) w->now += timeout_ns;
    *done_p = x->done;
    x->done = NULL;
    return LS_OK;
}

static void fake_forget(ls_net *net, const void *owner) {
    end *x = (end *)net;
    ls_message_drop(&x->wanted, owner);
    ls_message_drop(&x->done, owner);
    for (parcel *p = x->world->parcels; p; p = p->next)
        if (p->sender && p->sender->owner == owner) p->sender = NULL;
}

static void fake_close(ls_net *net) { (void)net; }

static const ls_net_ops fake_ops = {.name = "fake",
                                    .send = fake_send,
                                    .recv = fake_recv,
                                    .poll = fake_poll,
                                    .forget = fake_forget,
                                    .close = fake_close};

ls_fake *ls_fake_new(int size, const ls_fake_faults *f) {
    ls_fake *w = LS_NEW(ls_fake);
    *w = (ls_fake){.size = size, .faults = *f};
    w->ends = LS_NEW_ARRAY(end, (size_t)size);
    w->cut = LS_NEW_ARRAY(bool, (size_t)size *(size_t)size);
    w->held = LS_NEW_ARRAY(bool, (size_t)size *(size_t)size);
    for (int i = 0; i < size; i++)
        w->ends[i] = (end){.net = {.ops = &fake_ops, .rank = i, .size = size}, .world = w};
    return w;
}

void ls_fake_free(ls_fake *w) {
    while (w->parcels) {
        parcel *p = w->parcels;
        w->parcels = p->next;
        free(p->data);
        free(p);
    }
    free(w->ends);
    free(w->cut);
    free(w->held);
    free(w);
}

ls_net *ls_fake_net(ls_fake *w, int rank) { return &w->ends[rank].net; }

void ls_fake_advance(ls_fake *w, int64_t now) {
    w->now = now;
    while (deliver_any(w)) continue;
}

int64_t ls_fake_next(const ls_fake *w) {
    int64_t next = -1;
    for (const parcel *p = w->parcels; p; p = p->next)
        if ((next < 0 || p->at < next) && wanted_for(w, p)) next = p->at;
    return next;
}

void ls_fake_kill(ls_fake *w, int rank) { w->ends[rank].dead = true; }
void ls_fake_cut(ls_fake *w, int a, int b) { *cut_of(w, a, b) = *cut_of(w, b, a) = true; }
void ls_fake_hold(ls_fake *w, int a, int b, bool held) {
    w->held[a * w->size + b] = w->held[b * w->size + a] = held;
}
