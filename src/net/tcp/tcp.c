/* tcp.c - see tcp.h.
 *
 * Frames, from src to dst on the connection that src made, after its greeting (watch.h):
 *
 *     DATA   a short message, data behind it
 *     THERE  a long message has waited for its receiver to ask for a while
 *     READY  src, who waits for a long message from dst, asks dst to send it
 *     BULK   a long message, data behind it
 *     LOST   src can't go on, for it has lost worker `number`
 *     LAST   src leaves; what it had published of group `number` (watch.h) follows
 *
 * A receiver sends READY as soon as a long message is asked for; mostly it is there before the
 * sender is. THERE is for the case that the two disagree about its length: it is compared, so that
 * neither waits for ever. A message that nobody wants any more is read and thrown away.
 *
 * Who loses a peer will end, and be lost to its own neighbours, which know nothing of that peer:
 * LOST is how they can name it.
 *
 * A worker may be done with a call, and leave, while another waits in a call that differs from it:
 * LAST is how that one learns with what it differs.
 */
#include "net/tcp/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tcp/watch.h"

enum { DATA = LS_FIRST_KIND, THERE, READY, BULK, LOST, LAST };
enum { EAGER = 65536, EVENTS = 64, SPIN_NS = 50000, TURN = 524288 + 4096 };
enum { NOTES = 64, EARLY = 16 };            /* of a chunk of their memory */
static const int64_t SILENCE_NS = 20000000; /* a long message waits without a word for so long */
static const int64_t FAREWELL_NS = (int64_t)3 * 1000000000; /* for what is unsent at the close */
static const int64_t SHORT_FAREWELL_NS =
    300000000; /* after a loss: others wait for this one's end */

/* A tag that was asked for, or announced, before this side knew of it. */
typedef struct note {
    uint64_t tag, print, nbytes;
    struct note *next;
} note;

typedef struct peer {
    ls_conn *out, *in;
    ls_message *waiting; /* long sends that have not been asked for */
    ls_message *silent;  /* the same; the peer does not know of them */
    note *asked;         /* READY came before the send */
    note *there;         /* THERE came before the receive */
    uint32_t watched;    /* events of `out` that epoll knows */
    bool in_gone, out_gone;
    int64_t out_gone_at;
    bool blames; /* it has said whom it lost */
    int blamed;
    unsigned char *last; /* [LS_WATCH_NBYTES] its last words, while they arrive */
    char why[512];
} peer;

/* A short message that nobody has asked for yet. */
typedef struct early {
    int from;
    uint64_t tag, print;
    size_t nbytes;
    struct early *next;
    bool whole;
    unsigned char data[];
} early;

typedef struct tcp_net {
    ls_net net; /* first */
    peer *peers;
    ls_roster_entry *members;
    uint64_t nonce[2];
    ls_key key;
    bool keyed;
    ls_patience patience;
    ls_watch *watch;
    int epoll_fd, wake_fd;
    bool no_pwait2;      /* the kernel, or a filter of system calls, does not have epoll_pwait2() */
    int broken;          /* errno of what failed in epoll itself; 0: nothing has */
    int64_t announce_at; /* when peers are told of silent sends; INT64_MAX: there are none */
    ls_message *wanted;  /* posted receives */
    early *early, **early_end;
    ls_slab notes, early_slab; /* memory of these */
    ls_message_queue done;
    bool moved;     /* since poll() began */
    bool told_lost; /* the others know */
    atomic_int abort_asked;
} tcp_net;

/* What a descriptor is, in epoll's data. */
typedef enum watched { WATCH_ARRIVALS, WATCH_WAKE, WATCH_IN, WATCH_OUT } watched;

static uint64_t watch_data(watched what, int who) { return (uint64_t)what << 32 | (uint32_t)who; }

/* A descriptor that is not watched would be waited for in vain: the next poll reports it. */
static void watch(tcp_net *x, int fd, uint32_t events, watched what, int who) {
    struct epoll_event ev = {.events = events, .data.u64 = watch_data(what, who)};
    if (epoll_ctl(x->epoll_fd, EPOLL_CTL_MOD, fd, &ev) == 0) return;
    if (errno == ENOENT && epoll_ctl(x->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0) return;
    x->broken = errno;
}

static void finish(tcp_net *x, ls_message *m) {
    ls_message_queue_add(&x->done, m);
    x->moved = true;
}

/* One of the two connections has ended. What came on the other can still be read. */
static void conn_lost(tcp_net *x, int rank, bool in, const char *why) {
    peer *p = &x->peers[rank];
    ls_conn *c = in ? p->in : p->out;
    x->moved = true;
    if (in ? p->in_gone : p->out_gone) return;
    if (!p->in_gone && !p->out_gone) snprintf(p->why, sizeof p->why, "%s", why);
    if (in)
        p->in_gone = true;
    else
        p->out_gone = true;
    if (!in) p->out_gone_at = ls_clock_ns();
    if (c) epoll_ctl(x->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
}

/* ---- connections out ---- */

static void watch_out(tcp_net *x, int rank) {
    peer *p = &x->peers[rank];
    bool write = p->out->open ? ls_conn_busy(p->out) : p->out->wants_write;
    uint32_t events = EPOLLIN | (write ? (uint32_t)EPOLLOUT : 0u);
    if (events == p->watched) return;
    p->watched = events;
    watch(x, p->out->fd, events, WATCH_OUT, rank);
}

static void push(tcp_net *x, int rank);

/* Tells all that hear from this worker why it will be lost to them; once. */
static void tell_lost(tcp_net *x, int rank) {
    const peer *p = &x->peers[rank];
    ls_frame f = {.kind = LOST, .number = (uint32_t)(p->blames ? p->blamed : rank)};
    if (x->told_lost) return;
    x->told_lost = true;
    for (int i = 0; i < x->net.size; i++) {
        if (i == rank || !x->peers[i].out || x->peers[i].out_gone) continue;
        ls_conn_put(x->peers[i].out, &f, NULL, 0, NULL, NULL);
        push(x, i);
    }
}

static ls_status lost(tcp_net *x, int rank, ls_error *e) {
    const peer *p = &x->peers[rank];
    const ls_roster_entry *m = &x->members[rank], *first = &x->members[p->blamed];
    char address[80], cause[160] = "";
    tell_lost(x, rank);
    ls_address_text(&m->address, address, sizeof address);
    if (p->blames)
        snprintf(cause, sizeof cause, "; before, it had lost worker %d (pid %d)", p->blamed,
                 first->pid);
    return ls_fail(e, LS_EPEER, "worker %d lost worker %d (pid %d at %s): %.300s%s", x->net.rank,
                   rank, m->pid, address, p->why, cause);
}

/* Does this connection lead back to its own host? */
static bool is_loopback(int fd, const struct sockaddr_storage *to) {
    struct sockaddr_storage from;
    socklen_t n = sizeof from;
    if (getsockname(fd, (struct sockaddr *)&from, &n) != 0 || from.ss_family != to->ss_family)
        return false;
    if (to->ss_family == AF_INET)
        return ((struct sockaddr_in *)&from)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)to)->sin_addr.s_addr;
    return memcmp(&((struct sockaddr_in6 *)&from)->sin6_addr,
                  &((const struct sockaddr_in6 *)to)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* On the loopback nothing is lost and there is nobody to be spared: a congestion control that
 * paces, as bbr does, which may be the system's choice, halves the speed of long messages. */
static void spare_control(int fd, const struct sockaddr_storage *to) {
    static const char plain[] = "reno"; /* every user may have it */
    if (is_loopback(fd, to)) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

static ls_status reach(tcp_net *x, int rank, ls_error *e) {
    peer *p = &x->peers[rank];
    if (p->out_gone) return lost(x, rank, e);
    if (p->out) return LS_OK;
    int fd = ls_socket_dial(&x->members[rank].address);
    if (fd < 0) {
        conn_lost(x, rank, false, strerror(errno));
        return lost(x, rank, e);
    }
    spare_control(fd, &x->members[rank].address);
    LS_TRY(ls_conn_new(fd, false, x->keyed ? &x->key : NULL, &p->out, e));
    ls_greeting g = {.from = (uint32_t)x->net.rank, .to = (uint32_t)rank};
    memcpy(g.nonce, x->nonce, sizeof g.nonce);
    ls_frame f = {.kind = LS_GREETING, .nbytes = sizeof g};
    ls_conn_put(p->out, &f, &g, sizeof g, NULL, e);
    p->out->wants_write = true; /* it tells when it is connected */
    watch_out(x, rank);
    return LS_OK;
}

/* A peer that strangers flood may have taken this worker for one of them: it tries again. */
static bool redial(tcp_net *x, int rank) {
    peer *p = &x->peers[rank];
    const struct sockaddr_storage *to = &x->members[rank].address;
    if (!ls_conn_redial(p->out, to, x->keyed ? &x->key : NULL)) return false;
    spare_control(p->out->fd, to);
    p->watched = 0;
    watch_out(x, rank);
    return true;
}

/* Writes to a peer, a turn at most: what comes from it is to be read meanwhile, while it is still
 * in the caches. */
static void push(tcp_net *x, int rank) {
    peer *p = &x->peers[rank];
    ls_error e = {0};
    if (!p->out || p->out_gone) return;
    ls_io io = ls_conn_handshake(p->out, &e);
    void *token = NULL;
    size_t room = TURN;
    if (io == LS_IO_FAILED && redial(x, rank)) return;
    _Static_assert((int)TURN >= (int)LS_SECURE_BATCH, "as ls_conn_flush_some() asks");
    while (io == LS_IO_DONE) {
        io = ls_conn_flush_some(p->out, &room, &token, &e);
        if (token) finish(x, token);
        if (io == LS_IO_DONE && !token) break;
    }
    if (io == LS_IO_FAILED || io == LS_IO_CLOSED)
        conn_lost(x, rank, false, e.msg);
    else
        watch_out(x, rank);
}

static ls_status put(tcp_net *x, int rank, int kind, const ls_message *m, const void *data,
                     size_t n, void *token, ls_error *e) {
    LS_TRY(reach(x, rank, e));
    ls_frame f = {.kind = (uint16_t)kind, .tag = m->tag, .print = m->print, .nbytes = m->nbytes};
    bool idle = !ls_conn_busy(x->peers[rank].out);
    if (ls_conn_put(x->peers[rank].out, &f, data, n, token, e) != LS_IO_DONE) return LS_ENOMEM;
    if (idle) push(x, rank);
    return LS_OK;
}

/* ---- notes and early messages ---- */

static bool take_note(tcp_net *x, note **link, uint64_t tag, note *taken_p) {
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

static void received(tcp_net *x, ls_message *m, uint64_t print, size_t nbytes) {
    m->their_print = print;
    m->their_nbytes = nbytes;
    x->net.messages_received++;
    x->net.bytes_received += nbytes;
    finish(x, m);
}

static void give_early(tcp_net *x, early *a, ls_message *m) {
    if (a->nbytes == m->nbytes && a->nbytes) memcpy(m->data, a->data, a->nbytes);
    received(x, m, a->print, a->nbytes);
}

/* ---- what arrives ---- */

/* A long message differs from what was asked for: its sender is rid of it, nobody keeps it. */
static void release(tcp_net *x, int from, const ls_message *m) {
    if (put(x, from, READY, m, NULL, 0, NULL, NULL) != LS_OK)
        conn_lost(x, from, false, "it can't be written to");
}

/* A frame's header: says where its data go. False: it makes no sense. */
static bool on_header(tcp_net *x, int from, ls_conn *c, const ls_frame *f) {
    peer *p = &x->peers[from];
    ls_message *m = NULL;
    c->owner = c->other_owner = NULL;
    ls_conn_take(c, NULL, 0);
    switch (f->kind) {
    case DATA:
        if (f->nbytes > EAGER) return false;
        m = take_message(&x->wanted, from, f->tag);
        if (m && m->nbytes == f->nbytes) {
            ls_conn_take(c, m->data, f->nbytes);
            c->owner = m;
        } else if (m) { /* the caller sees that they differ */
            ls_conn_take(c, NULL, f->nbytes);
            received(x, m, f->print, f->nbytes);
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
        if (!m || m->nbytes != f->nbytes) {
            if (m) received(x, m, f->print, f->nbytes);
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
        else if (m->nbytes != f->nbytes) {
            take_message(&x->wanted, from, f->tag);
            if (m->nbytes <= EAGER) release(x, from, m);
            received(x, m, f->print, f->nbytes);
        }
        return true;
    case READY:
        m = take_message(&p->silent, from, f->tag);
        if (!m) m = take_message(&p->waiting, from, f->tag);
        if (!m)
            keep_note(x, &p->asked, f);
        else if (put(x, from, BULK, m, m->data, m->nbytes, m, NULL) != LS_OK)
            conn_lost(x, from, false, "it can't be written to");
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

/* A frame's data are complete. */
static void on_payload(tcp_net *x, int from, ls_conn *c, const ls_frame *f) {
    ls_message *m = c->owner;
    early *a = c->other_owner;
    if (f->kind == LAST) ls_watch_keep_last(x->watch, (int)f->number, from, x->peers[from].last);
    if (m) received(x, m, f->print, f->nbytes);
    if (!a) return;
    a->whole = true;
    m = take_message(&x->wanted, a->from, a->tag); /* asked for while it arrived */
    if (!m) return;
    give_early(x, a, m);
    early **link = &x->early;
    while (*link != a) link = &(*link)->next;
    *link = a->next;
    if (!a->next) x->early_end = link;
    ls_slab_give(&x->early_slab, a);
}

/* Reads all that a peer has sent. */
static void pull(tcp_net *x, int from) {
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
                conn_lost(x, from, true, "it sent a message that makes no sense");
                return;
            }
        }
        io = ls_conn_payload(c, &e);
        if (io != LS_IO_DONE) break;
        on_payload(x, from, c, &c->frame);
        c->in_frame = false;
        x->moved = true;
    }
    if (io == LS_IO_CLOSED) conn_lost(x, from, true, "it has left, or has died");
    if (io == LS_IO_FAILED) conn_lost(x, from, true, e.msg);
}

/* Peers that have connected to this worker. */
static void take_arrivals(tcp_net *x) {
    int from = 0;
    for (ls_conn *c; (c = ls_watch_take(x->watch, &from));) {
        if (x->peers[from].in) {
            ls_log("a second connection from worker %d is dropped", from);
            ls_conn_free(c);
            continue;
        }
        x->peers[from].in = c;
        watch(x, c->fd, EPOLLIN, WATCH_IN, from);
        pull(x, from);
    }
}

/* ---- the transport ---- */

static ls_status tcp_send(ls_net *net, ls_message *m, ls_error *e) {
    tcp_net *x = (tcp_net *)net;
    peer *p = &x->peers[m->peer];
    note asked;
    if (p->out_gone) return lost(x, m->peer, e);
    net->messages_sent++;
    net->bytes_sent += m->nbytes;
    /* Done when it is with the kernel, not when it is copied: who goes on to compute does not poll,
     * and the peer would wait for what lies here behind a handshake. */
    if (m->nbytes <= EAGER) return put(x, m->peer, DATA, m, m->data, m->nbytes, m, e);
    if (take_note(x, &p->asked, m->tag, &asked))
        return put(x, m->peer, BULK, m, m->data, m->nbytes, m, e);
    m->next = p->silent;
    p->silent = m;
    if (x->announce_at == INT64_MAX) x->announce_at = ls_clock_ns() + SILENCE_NS;
    return reach(x, m->peer, e);
}

/* Mostly the receiver asks soon; a frame to tell it that there is something would be wasted. */
static void announce(tcp_net *x) {
    x->announce_at = INT64_MAX;
    for (int i = 0; i < x->net.size; i++) {
        peer *p = &x->peers[i];
        for (ls_message *m; (m = p->silent);) {
            p->silent = m->next;
            m->next = p->waiting;
            p->waiting = m;
            if (put(x, i, THERE, m, NULL, 0, NULL, NULL) != LS_OK)
                conn_lost(x, i, false, "it can't be written to");
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
        give_early(x, a, m);
        ls_slab_give(&x->early_slab, a);
        return LS_OK;
    }
    if (p->in_gone) return lost(x, m->peer, e);
    if (take_note(x, &p->there, m->tag, &there) && there.nbytes != m->nbytes) {
        release(x, m->peer, m);
        received(x, m, there.print, there.nbytes);
        return LS_OK;
    }
    m->next = x->wanted;
    x->wanted = m;
    /* A short one needs a connection too: it shows when the peer dies. */
    if (p->out_gone) return LS_OK; /* it may have come already */
    return m->nbytes > EAGER ? put(x, m->peer, READY, m, NULL, 0, NULL, e) : reach(x, m->peer, e);
}

/* Nothing is said on a connection that we made: what can be read is its end. */
static void hear_end(tcp_net *x, int rank) {
    ls_error e = {0};
    ls_frame none;
    ls_io io = ls_conn_next(x->peers[rank].out, &none, &e);
    if (io == LS_IO_CLOSED) conn_lost(x, rank, false, "it has left, or has died");
    if (io == LS_IO_FAILED) conn_lost(x, rank, false, e.msg);
    if (io == LS_IO_DONE) conn_lost(x, rank, false, "it speaks out of turn");
}

static void on_event(tcp_net *x, const struct epoll_event *ev) {
    int who = (int)(uint32_t)ev->data.u64;
    uint64_t ignored;
    switch ((watched)(ev->data.u64 >> 32)) {
    case WATCH_ARRIVALS: take_arrivals(x); break;
    case WATCH_WAKE:
        if (read(x->wake_fd, &ignored, sizeof ignored) < 0) break;
        x->moved = true;
        break;
    case WATCH_IN: pull(x, who); break;
    case WATCH_OUT:
        if (!x->peers[who].out_gone && x->peers[who].out->open && ev->events & ~(uint32_t)EPOLLOUT)
            hear_end(x, who);
        push(x, who);
        break;
    }
}

/* epoll_pwait2(), which Linux has since 5.11. Elsewhere it fails with ENOSYS, or with EPERM where a
 * filter of system calls does not know it: then ppoll() of the epoll descriptor, which takes
 * nanoseconds as well, and epoll_wait(). Returns the number of events; -1: see errno. */
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

/* One look, for timeout_ns at most. */
static void look(tcp_net *x, int64_t timeout_ns) {
    struct epoll_event events[EVENTS];
    int n = wait_events(x, events, timeout_ns);
    if (n < 0 && errno != EINTR) x->broken = errno;
    for (int i = 0; i < n; i++) on_event(x, &events[i]);
}

/* Can nothing come from this peer any more? It may have made its connection just before it ended.
 */
static bool is_silent(const peer *p) {
    const int64_t grace_ns = 1000000000;
    return p->in_gone || (p->out_gone && !p->in && ls_clock_ns() > p->out_gone_at + grace_ns);
}

/* A peer that a message waits for; -1: none. */
static int find_lost(const tcp_net *x) {
    for (const ls_message *m = x->wanted; m; m = m->next)
        if (is_silent(&x->peers[m->peer])) return m->peer;
    for (int i = 0; i < x->net.size; i++) {
        const peer *p = &x->peers[i];
        bool half_read = p->in_gone && p->in && p->in->in_frame && p->in->owner;
        /* Greetings and notes are not missed: what the peer had to say may be on its way. */
        bool unsent = p->out_gone && p->out && ls_conn_has_token(p->out);
        bool unasked = (p->in_gone || p->out_gone) && (p->waiting || p->silent);
        if (half_read || unsent || unasked) return i;
    }
    return -1;
}

static ls_status check_lost(tcp_net *x, ls_error *e) {
    int rank = find_lost(x);
    if (rank < 0) return LS_OK;
    if (x->peers[rank].in) pull(x, rank); /* its last words */
    return lost(x, rank, e);
}

/* Until something has moved, or `end`. Looks again and again for a while, where each worker has a
 * core, then sleeps. */
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
    x->moved = x->done.first != NULL || atomic_load(&x->abort_asked);
    if (x->moved || !timeout_ns) {
        look(x, 0);
        if (x->announce_at != INT64_MAX && ls_clock_ns() >= x->announce_at) announce(x);
    } else {
        look_long(x, timeout_ns < 0 ? INT64_MAX : ls_clock_ns() + timeout_ns);
    }
    if (atomic_load(&x->abort_asked))
        return ls_fail(e, LS_EABORT, "worker %d: the group was ended", net->rank);
    if (x->broken)
        return ls_fail(e, LS_EIO, "worker %d can't wait for messages: epoll: %s", net->rank,
                       strerror(x->broken));
    if (!x->done.first) LS_TRY(check_lost(x, e));
    *done_p = ls_message_queue_take_all(&x->done);
    return LS_OK;
}

/* A send that is being written is found by its message, which is the token. */
static void forget_writes(peer *p, const void *owner) {
    for (const ls_message *m; p->out && (m = ls_conn_token_of(p->out, owner));)
        ls_conn_forget(p->out, m);
}

static void tcp_forget(ls_net *net, const void *owner) {
    tcp_net *x = (tcp_net *)net;
    ls_message_drop(&x->wanted, owner);
    ls_message_queue_drop(&x->done, owner);
    for (int i = 0; i < net->size; i++) {
        peer *p = &x->peers[i];
        ls_message_drop(&p->waiting, owner);
        ls_message_drop(&p->silent, owner);
        forget_writes(p, owner);
        ls_message *reading = p->in ? p->in->owner : NULL;
        if (!reading || !p->in->in_frame || reading->owner != owner) continue;
        ls_conn_take(p->in, NULL, p->in->left);
        p->in->owner = NULL;
    }
}

static void tcp_abort(ls_net *net) {
    tcp_net *x = (tcp_net *)net;
    uint64_t one = 1;
    atomic_store(&x->abort_asked, 1);
    if (write(x->wake_fd, &one, sizeof one) < 0) return; /* full: it wakes anyway */
}

/* To all that hear from this worker, and to those that have connected to it, as they may wait for
 * it. */
static void leave_last_words(tcp_net *x) {
    unsigned char data[LS_WATCH_NBYTES];
    _Static_assert((int)LS_WATCH_NBYTES <= (int)LS_CONN_COPIED, "it is copied");
    for (int group = 0; group < LS_WATCH_GROUPS; group++) {
        if (!ls_watch_published(x->watch, group, data)) continue;
        ls_frame f = {.kind = LAST, .number = (uint32_t)group, .nbytes = sizeof data};
        for (int i = 0; i < x->net.size; i++) {
            const peer *p = &x->peers[i];
            bool hears = p->out ? !p->out_gone : p->in && !p->in_gone;
            if (hears && reach(x, i, NULL) == LS_OK)
                ls_conn_put(p->out, &f, data, sizeof data, NULL, NULL);
        }
    }
}

/* What was told as sent, and is not with the kernel: it was copied. */
static void say_farewell(tcp_net *x) {
    int64_t end = ls_clock_ns() + (x->told_lost ? SHORT_FAREWELL_NS : FAREWELL_NS);
    for (int i = 0; i < x->net.size; i++) {
        const peer *p = &x->peers[i];
        for (push(x, i); p->out && !p->out_gone && ls_conn_busy(p->out); push(x, i)) {
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
    if (x->watch && !atomic_load(&x->abort_asked)) {
        take_arrivals(x);
        leave_last_words(x);
        say_farewell(x);
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
    if (x->wake_fd >= 0) close(x->wake_fd);
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
                                   .abort = tcp_abort,
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
    x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (x->epoll_fd < 0 || x->wake_fd < 0) {
        int why = errno;
        close(r->listen_fd);
        tcp_close(&x->net);
        return ls_fail(e, LS_EIO, "no epoll or eventfd: %s", strerror(why));
    }
    ls_status s = ls_watch_start(r, rank, key, &x->watch, e);
    if (s != LS_OK) {
        tcp_close(&x->net);
        return s;
    }
    x->net.watch = x->watch;
    watch(x, ls_watch_fd(x->watch), EPOLLIN, WATCH_ARRIVALS, 0);
    watch(x, x->wake_fd, EPOLLIN, WATCH_WAKE, 0);
    *net_p = &x->net;
    return LS_OK;
}
