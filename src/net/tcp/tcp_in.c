/* tcp_in.c - the transport "tcp": what arrives from peers. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "net/tcp/tcp_inside.h"

/* ---- notes and early messages ---- */

bool ls_tcp_take_note(tcp_net *x, note **link, uint64_t tag, note *taken_p) {
    for (; *link; link = &(*link)->next)
        if ((*link)->tag == tag) {
            note *n = *link;
            *taken_p = *n;
            *link = n->next;
            ls_slab_give(&x->notes, n);
            return true;
        }
    return false;
}

static void keep_note(tcp_net *x, note **list, const ls_frame *f) {
    note *n = ls_slab_take(&x->notes);
    *n = (note){.tag = f->tag, .print = f->print, .nbytes = f->nbytes, .next = *list};
    *list = n;
}

static ls_message *take_message(ls_message **link, int rank, uint64_t tag) {
    for (; *link; link = &(*link)->next)
        if ((*link)->peer == rank && (*link)->tag == tag) {
            ls_message *m = *link;
            *link = m->next;
            return m;
        }
    return NULL;
}

void ls_tcp_received(tcp_net *x, ls_message *m, uint64_t print, size_t nbytes) {
    m->their_print = print;
    m->their_nbytes = nbytes;
    x->net.messages_received++;
    x->net.bytes_received += nbytes;
    ls_tcp_finish(x, m);
}

void ls_tcp_give_early(tcp_net *x, early *a, ls_message *m) {
    if (a->nbytes && ls_message_fits(m, a->nbytes)) memcpy(m->data, a->data, a->nbytes);
    ls_tcp_received(x, m, a->print, a->nbytes);
}

/* ---- what arrives ---- */

void ls_tcp_release(tcp_net *x, int from, ls_message *m) {
    if (ls_tcp_put(x, READY, m, NULL) != LS_OK)
        ls_tcp_conn_lost(x, from, false, "sending to it failed");
}

/* A frame's header has arrived: decides where its data go. False: the header is invalid. */
static bool on_header(tcp_net *x, int from, ls_conn *c, const ls_frame *f) {
    peer *p = &x->peers[from];
    ls_message *m = NULL;
    c->owner = c->other_owner = NULL;
    ls_conn_take(c, NULL, 0);
    switch (f->kind) {
    case DATA:
        if (f->nbytes > EAGER) return false;
        m = take_message(&x->wanted, from, f->tag);
        if (m && ls_message_fits(m, f->nbytes)) {
            ls_conn_take(c, m->data, f->nbytes);
            c->owner = m;
        } else if (m) { /* the caller sees that the lengths differ */
            ls_conn_take(c, NULL, f->nbytes);
            ls_tcp_received(x, m, f->print, f->nbytes);
        } else {
            early *a = ls_slab_take(&x->early_slab);
            *a = (early){.from = from, .tag = f->tag, .print = f->print, .nbytes = f->nbytes};
            *x->early_end = a;
            x->early_end = &a->next;
            ls_conn_take(c, a->data, f->nbytes);
            c->other_owner = a;
        }
        return true;
    case BULK:
        m = take_message(&x->wanted, from, f->tag);
        if (!m || !ls_message_fits(m, f->nbytes)) {
            if (m) ls_tcp_received(x, m, f->print, f->nbytes);
            ls_conn_take(c, NULL, f->nbytes);
            return true;
        }
        ls_conn_take(c, m->data, f->nbytes);
        c->owner = m;
        return true;
    case THERE:
        for (m = x->wanted; m && (m->peer != from || m->tag != f->tag); m = m->next) {
        }
        if (!m)
            keep_note(x, &p->there, f);
        else if (!ls_message_fits(m, f->nbytes)) {
            take_message(&x->wanted, from, f->tag);
            if (m->nbytes <= EAGER) ls_tcp_release(x, from, m);
            ls_tcp_received(x, m, f->print, f->nbytes);
        }
        return true;
    case READY:
        m = take_message(&p->silent, from, f->tag);
        if (!m) m = take_message(&p->waiting, from, f->tag);
        if (!m)
            keep_note(x, &p->asked, f);
        else if (ls_tcp_put(x, BULK, m, NULL) != LS_OK)
            ls_tcp_conn_lost(x, from, false, "sending to it failed");
        return true;
    case LOST:
        if (f->number >= (uint32_t)x->net.size) return false;
        p->blames = true;
        p->blamed = (int)f->number;
        return true;
    case LAST:
        if (f->number >= LS_WATCH_GROUPS || f->nbytes != LS_WATCH_NBYTES) return false;
        if (!p->last) p->last = ls_alloc(LS_WATCH_NBYTES);
        ls_conn_take(c, p->last, LS_WATCH_NBYTES);
        return true;
    default: return false;
    }
}

/* A frame's data is complete. */
static void on_payload(tcp_net *x, int from, ls_conn *c, const ls_frame *f) {
    ls_message *m = c->owner;
    early *a = c->other_owner;
    if (f->kind == LAST)
        ls_watch_store_last_words(x->watch, (int)f->number, from, x->peers[from].last);
    if (m) ls_tcp_received(x, m, f->print, f->nbytes);
    if (!a) return;
    a->whole = true;
    m = take_message(&x->wanted, a->from, a->tag); /* asked for while it arrived */
    if (!m) return;
    ls_tcp_give_early(x, a, m);
    early **link = &x->early;
    while (*link != a) link = &(*link)->next;
    *link = a->next;
    if (!a->next) x->early_end = link;
    ls_slab_give(&x->early_slab, a);
}

void ls_tcp_pull(tcp_net *x, int from) {
    peer *p = &x->peers[from];
    ls_conn *c = p->in;
    ls_error e = {0};
    ls_io io = LS_IO_DONE;
    while (!p->in_gone) {
        if (!c->in_frame) {
            io = ls_conn_next(c, &c->frame, &e);
            if (io != LS_IO_DONE) break;
            c->in_frame = true;
            if (!on_header(x, from, c, &c->frame)) {
                ls_tcp_conn_lost(x, from, true, "it sent an invalid message");
                return;
            }
        }
        io = ls_conn_payload(c, &e);
        if (io != LS_IO_DONE) break;
        on_payload(x, from, c, &c->frame);
        c->in_frame = false;
        x->moved = true;
    }
    if (io == LS_IO_CLOSED) ls_tcp_conn_lost(x, from, true, "it has left or died");
    if (io == LS_IO_FAILED) ls_tcp_conn_lost(x, from, true, e.msg);
}

void ls_tcp_take_arrivals(tcp_net *x) {
    int from = 0;
    for (ls_conn *c; (c = ls_watch_take(x->watch, &from));) {
        if (x->peers[from].in) {
            ls_log("a second connection from worker %d is dropped", from);
            ls_conn_free(c);
            continue;
        }
        x->peers[from].in = c;
        ls_tcp_watch(x, c->fd, EPOLLIN, WATCH_IN, from);
        ls_tcp_pull(x, from);
    }
}
