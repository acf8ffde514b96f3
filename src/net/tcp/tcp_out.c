/* tcp_out.c - the transport "tcp": connections that this worker has made, and what it sends. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "net/tcp/tcp_inside.h"
#include "net/unreached.h"

enum { TURN = 524288 + 4096 /* bytes that are written before arrived data is read */ };

static uint64_t watch_data(watched what, int rank) { return (uint64_t)what << 32 | (uint32_t)rank; }

/* If a descriptor can't be watched, the next poll reports it. */
void ls_tcp_watch(tcp_net *x, int fd, uint32_t events, watched what, int rank) {
    struct epoll_event ev = {.events = events, .data.u64 = watch_data(what, rank)};
    if (epoll_ctl(x->epoll_fd, EPOLL_CTL_MOD, fd, &ev) == 0) return;
    if (errno == ENOENT && epoll_ctl(x->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0) return;
    x->broken = errno;
}

void ls_tcp_finish(tcp_net *x, ls_message *m) {
    ls_message_queue_add(&x->done, m);
    x->moved = true;
}

/* Data on the other connection can still be read. */
void ls_tcp_conn_lost(tcp_net *x, int rank, bool in, const char *why) {
    peer *p = &x->peers[rank];
    ls_conn *c = in ? p->in : p->out;
    x->moved = true;
    if (in ? p->in_gone : p->out_gone) return;
    if (!p->in_gone && !p->out_gone) {
        snprintf(p->why, sizeof p->why, "%s", why);
        p->unreached = c && ls_unreached_is_network(ls_conn_errno(c));
    }
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
    ls_tcp_watch(x, p->out->fd, events, WATCH_OUT, rank);
}

/* Sends LOST, once, to all peers that this worker sends to. */
static void send_lost(tcp_net *x, int rank) {
    const peer *p = &x->peers[rank];
    ls_frame f = {.kind = LOST, .number = (uint32_t)(p->blames ? p->blamed : rank)};
    if (x->sent_lost) return;
    x->sent_lost = true;
    for (int i = 0; i < x->net.size; i++) {
        if (i == rank || !x->peers[i].out || x->peers[i].out_gone) continue;
        ls_conn_put(x->peers[i].out, &f, NULL, 0, NULL, NULL);
        ls_tcp_push(x, i);
    }
}

ls_status ls_tcp_lost(tcp_net *x, int rank, ls_error *e) {
    const peer *p = &x->peers[rank];
    const ls_roster_entry *m = &x->members[rank], *first = &x->members[p->blamed];
    char address[80], cause[160] = "";
    send_lost(x, rank);
    if (p->unreached && !p->blames) ls_unreached_note(rank);
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

/* On the loopback no packets are lost, and congestion control is of no use. One that paces, such as
 * bbr, which may be the system's default, halves the speed of long messages. */
static void spare_control(int fd, const struct sockaddr_storage *to) {
    static const char plain[] = "reno"; /* every user may have it */
    if (is_loopback(fd, to)) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

ls_status ls_tcp_reach(tcp_net *x, int rank, ls_error *e) {
    peer *p = &x->peers[rank];
    if (p->out_gone) return ls_tcp_lost(x, rank, e);
    if (p->out) return LS_OK;
    int fd = ls_socket_dial(&x->members[rank].address);
    if (fd < 0) {
        bool unreached = ls_unreached_is_network(errno);
        ls_tcp_conn_lost(x, rank, false, strerror(errno));
        p->unreached = unreached;
        return ls_tcp_lost(x, rank, e);
    }
    spare_control(fd, &x->members[rank].address);
    LS_TRY(ls_conn_new(fd, false, x->keyed ? &x->key : NULL, &p->out, e));
    ls_greeting g = {.from = (uint32_t)x->net.rank, .to = (uint32_t)rank};
    memcpy(g.nonce, x->nonce, sizeof g.nonce);
    ls_frame f = {.kind = LS_GREETING, .nbytes = sizeof g};
    ls_conn_put(p->out, &f, &g, sizeof g, NULL, e);
    p->out->wants_write = true; /* becomes writable once it is connected */
    watch_out(x, rank);
    return LS_OK;
}

/* Connects again: a peer that is flooded by strangers may have taken this worker for one. */
static bool redial(tcp_net *x, int rank) {
    peer *p = &x->peers[rank];
    const struct sockaddr_storage *to = &x->members[rank].address;
    if (!ls_conn_redial(p->out, to, x->keyed ? &x->key : NULL)) return false;
    spare_control(p->out->fd, to);
    p->watched = 0;
    watch_out(x, rank);
    return true;
}

/* Writes to a peer, a turn at most: data that arrives meanwhile has to be read while it is still in
 * the caches. */
void ls_tcp_push(tcp_net *x, int rank) {
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
        if (token) ls_tcp_finish(x, token);
        if (io == LS_IO_DONE && !token) break;
    }
    if (io == LS_IO_FAILED || io == LS_IO_CLOSED)
        ls_tcp_conn_lost(x, rank, false, e.msg);
    else
        watch_out(x, rank);
}

ls_status ls_tcp_put(tcp_net *x, int kind, ls_message *m, ls_error *e) {
    bool carries = kind == DATA || kind == BULK;
    LS_TRY(ls_tcp_reach(x, m->peer, e));
    ls_conn *out = x->peers[m->peer].out;
    ls_frame f = {.kind = (uint16_t)kind, .tag = m->tag, .print = m->print, .nbytes = m->nbytes};
    bool idle = !ls_conn_busy(out);
    if (ls_conn_put(out, &f, carries ? m->data : NULL, carries ? m->nbytes : 0, carries ? m : NULL,
                    e) != LS_IO_DONE)
        return LS_ENOMEM;
    if (idle) ls_tcp_push(x, m->peer);
    return LS_OK;
}
