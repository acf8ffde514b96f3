/* tcp.c - see tcp.h.
 *
 * Frames, from src to dst on the connection that src made, after its greeting (watch.h):
 *
 *     DATA   a short message, data behind it
 *     THERE  a long message has waited for a while, and its receiver has not asked for it
 *     READY  src waits for a long message from dst, and asks dst to send it
 *     BULK   a long message, data behind it
 *     LOST   src can't go on, for it has lost worker `number`
 *     LAST   src leaves; what it published about group `number` (watch.h) follows
 *
 * A receiver sends READY as soon as a long message is asked for; usually READY arrives before the
 * sender posts the message. THERE serves when the two disagree about the length: the lengths are
 * compared, so that neither waits for ever. A message that is no longer wanted is read and
 * discarded.
 *
 * A worker that loses a peer exits, and is then lost to its own neighbours, which know nothing of
 * that peer: LOST names it to them.
 *
 * A worker may finish a call and leave while another waits in a different call: LAST shows that
 * worker the other call.
 */
#include "net/tcp/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/tcp/tcp_inside.h"

enum { EVENTS = 64, SPIN_NS = 50000 };
/* A long message waits this long before THERE is sent. */
static const int64_t SILENCE_NS = 20000000;
/* A close waits this long for unsent data; after a loss less, since others wait for this worker's
 * end. */
static const int64_t FAREWELL_NS = (int64_t)3 * 1000000000, SHORT_FAREWELL_NS = 300000000;

/* ---- the transport ---- */

static ls_status tcp_send(ls_net *net, ls_message *m, ls_error *e) {
    tcp_net *x = (tcp_net *)net;
    peer *p = &x->peers[m->peer];
    note asked;
    if (p->out_gone) return ls_tcp_lost(x, m->peer, e);
    net->messages_sent++;
    net->bytes_sent += m->nbytes;
    /* Done when the kernel has it, not when it is copied: a worker that computes does not poll,
     * and the peer would wait for what lies here behind a handshake. */
    if (ls_message_reserved(m) <= EAGER) return ls_tcp_put(x, DATA, m, e);
    if (ls_tcp_take_note(x, &p->asked, m->tag, &asked)) return ls_tcp_put(x, BULK, m, e);
    m->next = p->silent;
    p->silent = m;
    if (x->announce_at == INT64_MAX) x->announce_at = ls_clock_ns() + SILENCE_NS;
    return ls_tcp_reach(x, m->peer, e);
}

/* Sends THERE for the messages that have waited. Not earlier: usually the receiver asks soon. */
static void announce(tcp_net *x) {
    x->announce_at = INT64_MAX;
    for (int i = 0; i < x->net.size; i++) {
        peer *p = &x->peers[i];
        for (ls_message *m; (m = p->silent);) {
            p->silent = m->next;
            m->next = p->waiting;
            p->waiting = m;
            if (ls_tcp_put(x, THERE, m, NULL) != LS_OK)
                ls_tcp_conn_lost(x, i, false, "sending to it failed");
        }
    }
}

static early *find_early(tcp_net *x, const ls_message *m) {
    for (early **link = &x->early; *link; link = &(*link)->next) {
        early *a = *link;
        if (a->from != m->peer || a->tag != m->tag || !a->whole) continue;
        *link = a->next;
        if (!a->next) x->early_end = link;
        return a;
    }
    return NULL;
}

static ls_status tcp_recv(ls_net *net, ls_message *m, ls_error *e) {
    tcp_net *x = (tcp_net *)net;
    peer *p = &x->peers[m->peer];
    note there;
    early *a = find_early(x, m);
    if (a) {
        ls_tcp_give_early(x, a, m);
        ls_slab_give(&x->early_slab, a);
        return LS_OK;
    }
    if (p->in_gone) return ls_tcp_lost(x, m->peer, e);
    if (ls_tcp_take_note(x, &p->there, m->tag, &there) && !ls_message_fits(m, there.nbytes)) {
        ls_tcp_release(x, m->peer, m);
        ls_tcp_received(x, m, there.print, there.nbytes);
        return LS_OK;
    }
    m->next = x->wanted;
    x->wanted = m;
    /* A short message needs a connection too: its end shows that the peer died. */
    if (p->out_gone) return LS_OK; /* it may have come already */
    return ls_message_reserved(m) > EAGER ? ls_tcp_put(x, READY, m, e)
                                          : ls_tcp_reach(x, m->peer, e);
}

/* Peers send nothing on a connection that we made: all that can be read is its end. */
static void read_end(tcp_net *x, int rank) {
    ls_error e = {0};
    ls_frame none;
    ls_io io = ls_conn_next(x->peers[rank].out, &none, &e);
    if (io == LS_IO_CLOSED) ls_tcp_conn_lost(x, rank, false, "it has left or died");
    if (io == LS_IO_FAILED) ls_tcp_conn_lost(x, rank, false, e.msg);
    if (io == LS_IO_DONE) ls_tcp_conn_lost(x, rank, false, "it sent data out of turn");
}

static void on_event(tcp_net *x, const struct epoll_event *ev) {
    int rank = (int)(uint32_t)ev->data.u64;
    switch ((watched)(ev->data.u64 >> 32)) {
    case WATCH_ARRIVALS: ls_tcp_take_arrivals(x); break;
    case WATCH_IN: ls_tcp_pull(x, rank); break;
    case WATCH_OUT:
        if (!x->peers[rank].out_gone && x->peers[rank].out->open &&
            ev->events & ~(uint32_t)EPOLLOUT)
            read_end(x, rank);
        ls_tcp_push(x, rank);
        break;
    }
}

/* Waits with epoll_pwait2(), which Linux has since 5.11. An older kernel answers ENOSYS; a filter
 * of system calls that does not know it, EPERM. Then waits with ppoll() of the epoll descriptor,
 * which takes nanoseconds as well, and epoll_wait(). Returns the number of events; -1: errno. */
static int wait_events(tcp_net *x, struct epoll_event *events, int64_t timeout_ns) {
    struct timespec t = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    if (!x->no_pwait2) {
        int n = epoll_pwait2(x->epoll_fd, events, EVENTS, &t, NULL);
        x->no_pwait2 = n < 0 && (errno == ENOSYS || errno == EPERM);
        if (!x->no_pwait2) return n;
    }
    struct pollfd any = {.fd = x->epoll_fd, .events = POLLIN};
    if (timeout_ns && ppoll(&any, 1, &t, NULL) < 0) return -1;
    return epoll_wait(x->epoll_fd, events, EVENTS, 0);
}

/* Handles the pending events; if there are none, waits for one, timeout_ns at most. */
static void look(tcp_net *x, int64_t timeout_ns) {
    struct epoll_event events[EVENTS];
    int n = wait_events(x, events, timeout_ns);
    if (n < 0 && errno != EINTR) x->broken = errno;
    for (int i = 0; i < n; i++) on_event(x, &events[i]);
}

/* Can nothing come from this peer any more? It may have connected just before it ended. */
static bool is_silent(const peer *p) {
    const int64_t grace_ns = 1000000000;
    return p->in_gone || (p->out_gone && !p->in && ls_clock_ns() > p->out_gone_at + grace_ns);
}

/* A lost peer that a message waits for; -1: none. */
static int find_lost(const tcp_net *x) {
    for (const ls_message *m = x->wanted; m; m = m->next)
        if (is_silent(&x->peers[m->peer])) return m->peer;
    for (int i = 0; i < x->net.size; i++) {
        const peer *p = &x->peers[i];
        bool half_read = p->in_gone && p->in && p->in->in_frame && p->in->owner;
        /* Greetings and notes don't count: the peer's last frames may still be on their way. */
        bool unsent = p->out_gone && p->out && ls_conn_has_token(p->out);
        bool unasked = (p->in_gone || p->out_gone) && (p->waiting || p->silent);
        if (half_read || unsent || unasked) return i;
    }
    return -1;
}

static ls_status check_lost(tcp_net *x, ls_error *e) {
    int rank = find_lost(x);
    if (rank < 0) return LS_OK;
    if (x->peers[rank].in) ls_tcp_pull(x, rank); /* its last words */
    return ls_tcp_lost(x, rank, e);
}

/* Waits until something has moved, or `end`. If each worker has a core, it spins for a while before
 * it sleeps. */
static void look_long(tcp_net *x, int64_t end) {
    int64_t now = ls_clock_ns(), spin_end = now + (x->patience.looks > 1 ? SPIN_NS : 0);
    while (!x->moved && !x->broken && now < end) {
        if (now >= x->announce_at) announce(x);
        int64_t until = end < x->announce_at ? end : x->announce_at, left = until - now;
        if (now < spin_end)
            look(x, 0);
        else
            look(x, left < 1000000000 ? left : 1000000000);
        now = ls_clock_ns();
    }
}

static ls_status tcp_poll(ls_net *net, int64_t timeout_ns, ls_message **done_p, ls_error *e) {
    tcp_net *x = (tcp_net *)net;
    x->moved = x->done.first != NULL;
    if (x->moved || !timeout_ns) {
        look(x, 0);
        if (x->announce_at != INT64_MAX && ls_clock_ns() >= x->announce_at) announce(x);
    } else {
        look_long(x, timeout_ns < 0 ? INT64_MAX : ls_clock_ns() + timeout_ns);
    }
    if (x->broken)
        return ls_fail(e, LS_EIO, "worker %d can't wait for messages: epoll: %s", net->rank,
                       strerror(x->broken));
    if (!x->done.first) LS_TRY(check_lost(x, e));
    *done_p = ls_message_queue_take_all(&x->done);
    return LS_OK;
}

static void tcp_forget(ls_net *net, const void *owner) {
    tcp_net *x = (tcp_net *)net;
    ls_message_drop(&x->wanted, owner);
    ls_message_queue_drop(&x->done, owner);
    for (int i = 0; i < net->size; i++) {
        peer *p = &x->peers[i];
        ls_message_drop(&p->waiting, owner);
        ls_message_drop(&p->silent, owner);
        if (p->out) ls_conn_forget(p->out, owner);
        ls_message *reading = p->in ? p->in->owner : NULL;
        if (!reading || !p->in->in_frame || reading->owner != owner) continue;
        ls_conn_take(p->in, NULL, p->in->left);
        p->in->owner = NULL;
    }
}

/* Sends LAST to all peers that this worker sends to, and to those that have connected to it and may
 * wait for it. */
static void send_last_words(tcp_net *x) {
    unsigned char data[LS_WATCH_NBYTES];
    _Static_assert((int)LS_WATCH_NBYTES <= (int)LS_CONN_COPIED, "it is copied");
    for (int group = 0; group < LS_WATCH_GROUPS; group++) {
        if (!ls_watch_published(x->watch, group, data)) continue;
        ls_frame f = {.kind = LAST, .number = (uint32_t)group, .nbytes = sizeof data};
        for (int i = 0; i < x->net.size; i++) {
            const peer *p = &x->peers[i];
            bool receives = p->out ? !p->out_gone : p->in && !p->in_gone;
            if (receives && ls_tcp_reach(x, i, NULL) == LS_OK)
                ls_conn_put(p->out, &f, data, sizeof data, NULL, NULL);
        }
    }
}

/* Writes frames that were reported as sent but were only copied. */
static void flush_at_close(tcp_net *x) {
    int64_t end = ls_clock_ns() + (x->sent_lost ? SHORT_FAREWELL_NS : FAREWELL_NS);
    for (int i = 0; i < x->net.size; i++) {
        const peer *p = &x->peers[i];
        for (ls_tcp_push(x, i); p->out && !p->out_gone && ls_conn_busy(p->out); ls_tcp_push(x, i)) {
            int64_t left = end - ls_clock_ns();
            if (left <= 0) break;
            bool write = p->out->open || p->out->wants_write;
            struct pollfd fd = {.fd = p->out->fd, .events = write ? POLLOUT : POLLIN};
            if (poll(&fd, 1, (int)(left / 1000000) + 1) < 0 && errno != EINTR) break;
        }
    }
}

static void tcp_close(ls_net *net) {
    tcp_net *x = (tcp_net *)net;
    if (x->watch) {
        ls_tcp_take_arrivals(x);
        send_last_words(x);
        flush_at_close(x);
    }
    for (int i = 0; i < net->size; i++) {
        peer *p = &x->peers[i];
        ls_conn_free(p->out);
        ls_conn_free(p->in);
        free(p->last);
    }
    ls_watch_stop(x->watch);
    ls_slab_close(&x->notes);
    ls_slab_close(&x->early_slab);
    if (x->epoll_fd >= 0) close(x->epoll_fd);
    ls_key_wipe(&x->key);
    free(x->peers);
    free(x->members);
    free(x);
}

static const ls_net_ops tcp_ops = {.name = "tcp",
                                   .send = tcp_send,
                                   .recv = tcp_recv,
                                   .poll = tcp_poll,
                                   .forget = tcp_forget,
                                   .close = tcp_close};

ls_status ls_tcp_open(const ls_roster *r, int rank, const ls_key *key, const ls_patience *patience,
                      ls_net **net_p, ls_error *e) {
    tcp_net *x = LS_NEW(tcp_net);
    x->net = (ls_net){.ops = &tcp_ops, .rank = rank, .size = r->size};
    x->peers = LS_NEW_ARRAY(peer, (size_t)r->size);
    x->members = LS_NEW_ARRAY(ls_roster_entry, (size_t)r->size);
    memcpy(x->members, r->members, (size_t)r->size * sizeof *r->members);
    memcpy(x->nonce, r->nonce, sizeof x->nonce);
    x->patience = *patience;
    x->keyed = key != NULL;
    if (key) x->key = *key;
    x->announce_at = INT64_MAX;
    x->early_end = &x->early;
    ls_slab_open(&x->notes, sizeof(note), NOTES);
    ls_slab_open(&x->early_slab, sizeof(early) + EAGER, EARLY);
    x->done.end = &x->done.first;
    x->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (x->epoll_fd < 0) {
        int why = errno;
        close(r->listen_fd);
        tcp_close(&x->net);
        return ls_fail(e, LS_EIO, "no epoll: %s", strerror(why));
    }
    ls_status s = ls_watch_start(r, rank, key, &x->watch, e);
    if (s != LS_OK) {
        tcp_close(&x->net);
        return s;
    }
    x->net.watch = x->watch;
    ls_tcp_watch(x, ls_watch_fd(x->watch), EPOLLIN, WATCH_ARRIVALS, 0);
    *net_p = &x->net;
    return LS_OK;
}
