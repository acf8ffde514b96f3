/* guest.c - see guest.h. */
#include "net/tcp/guest.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

/* ADMITTED: how many newcomers are admitted before the present guests are served again, so that a
 * flood does not evict a guest that needs a moment to authenticate. */
enum { ADMITTED = 16, CROWDS = 256, SECOND_MS = 1000 };
static const int64_t SECOND_NS = (int64_t)1000000000;
static const int64_t SLOW_NS = (int64_t)10 * 1000000000; /* for the handshake and the first frame */

/* Logs the drops of the last second. */
static void log_drops(ls_guests *gs) {
    int64_t now = ls_clock_ns();
    if (!gs->unlogged || (gs->logged_ns && now - gs->logged_ns < SECOND_NS)) return;
    if (gs->unlogged == 1)
        ls_log("a connection from %s", gs->last);
    else
        ls_log("%d connections were dropped; the last: from %s", gs->unlogged, gs->last);
    gs->logged_ns = now;
    gs->unlogged = 0;
}

void ls_guests_open(ls_guests *gs, const ls_guests_options *o) {
    *gs = (ls_guests){.o = *o};
    gs->all = LS_NEW_ARRAY(ls_guest, (size_t)o->most);
    gs->fds = LS_NEW_ARRAY(struct pollfd, (size_t)o->most + 2);
}

void ls_guests_close(ls_guests *gs) {
    while (gs->n) ls_guests_drop(gs, 0, NULL);
    gs->logged_ns = 0;
    log_drops(gs);
    free(gs->all);
    free(gs->fds);
}

ls_conn *ls_guests_release(ls_guests *gs, int i) {
    ls_conn *c = gs->all[i].c;
    gs->all[i] = gs->all[--gs->n];
    return c;
}

void ls_guests_drop(ls_guests *gs, int i, const char *why) {
    char address[80];
    ls_address_text(&gs->all[i].from, address, sizeof address);
    if (why) {
        snprintf(gs->last, sizeof gs->last, "%s is dropped: %.160s", address, why);
        gs->unlogged++;
        log_drops(gs);
    }
    ls_conn_free(ls_guests_release(gs, i));
}

/* ---- strangers ---- */

static bool is_stranger(const ls_guests *gs, const ls_guest *g) {
    return !g->has_frame && !(gs->o.key && g->c->open);
}

/* The crowd that a guest belongs to: one per address; with IPv6 one per network (64 bits), since a
 * host has a whole network. */
static unsigned crowd_of(const ls_guest *g) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&g->from;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&g->from;
    ls_hash h =
        g->from.ss_family == AF_INET
            ? ls_hash_bytes(&in->sin_addr, sizeof in->sin_addr)
            : ls_hash_bytes(&in6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) ? 16 : 8);
    return (unsigned)(h.lo % CROWDS);
}

static size_t guest_nbytes(const ls_guest *g) { return sizeof *g + ls_conn_nbytes(g->c); }

/* Drops a stranger to make room: the oldest one of the largest crowd. Returns its bytes; 0: there
 * was none. */
static size_t evict(ls_guests *gs) {
    int crowds[CROWDS] = {0}, oldest = -1;
    unsigned largest = 0;
    for (int i = 0; i < gs->n; i++) {
        const ls_guest *g = &gs->all[i];
        if (is_stranger(gs, g) && ++crowds[g->crowd] > crowds[largest]) largest = g->crowd;
    }
    for (int i = 0; i < gs->n; i++) {
        const ls_guest *g = &gs->all[i];
        bool candidate = is_stranger(gs, g) && g->crowd == largest;
        if (candidate && (oldest < 0 || g->came < gs->all[oldest].came)) oldest = i;
    }
    if (oldest < 0) return 0;
    size_t freed = guest_nbytes(&gs->all[oldest]);
    struct linger reset = {.l_onoff = 1};
    setsockopt(gs->all[oldest].c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ls_guests_drop(gs, oldest,
                   "too many peers are connecting, and this one is not authenticated yet");
    return freed;
}

static void keep_to_budget(ls_guests *gs) {
    size_t held = 0, freed = 1;
    for (int i = 0; i < gs->n; i++)
        if (is_stranger(gs, &gs->all[i])) held += guest_nbytes(&gs->all[i]);
    for (; held > LS_STRANGERS_NBYTES && freed; held -= freed) freed = evict(gs);
}

/* Without free descriptors accept() fails even if no peer connects. */
static bool connection_waits(const ls_guests *gs) {
    struct pollfd p = {.fd = gs->o.listen_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void admit(ls_guests *gs) {
    for (int i = 0; i < ADMITTED; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        ls_conn *c = NULL;
        int fd = accept(gs->o.listen_fd, (struct sockaddr *)&from, &n);
        if (fd < 0 && errno == ECONNABORTED) continue;
        if (fd < 0) {
            bool waits = errno != EAGAIN && errno != EINTR && connection_waits(gs);
            gs->no_descriptors = waits && !evict(gs);
            return;
        }
        ls_socket_flags(fd);
        if (gs->n == gs->o.most && !evict(gs)) {
            close(fd);
            continue;
        }
        if (ls_conn_new(fd, true, gs->o.key, &c, NULL) != LS_OK) continue;
        ls_guest *g = &gs->all[gs->n++];
        *g = (ls_guest){.c = c, .from = from, .came = ls_clock_ns(), .readable = true};
        g->crowd = crowd_of(g);
    }
}

void ls_guests_wait(ls_guests *gs, int stop_fd, int timeout_ms) {
    short door = gs->no_descriptors ? 0 : POLLIN;
    gs->fds[0] = (struct pollfd){.fd = gs->o.listen_fd, .events = door};
    gs->fds[1] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    for (int i = 0; i < gs->n; i++) {
        const ls_conn *c = gs->all[i].c;
        bool write = c->wants_write || (gs->all[i].has_frame && ls_conn_busy(c));
        gs->fds[i + 2] = (struct pollfd){.fd = c->fd, .events = write ? POLLOUT : POLLIN};
    }
    if (gs->unlogged && (timeout_ms < 0 || timeout_ms > SECOND_MS)) timeout_ms = SECOND_MS;
    int nready = poll(gs->fds, (nfds_t)gs->n + 2, timeout_ms);
    for (int i = 0; i < gs->n; i++) gs->all[i].readable = nready > 0 && gs->fds[i + 2].revents != 0;
    log_drops(gs);
    admit(gs);
    keep_to_budget(gs);
}

static ls_io read_first_frame(const ls_guests *gs, ls_guest *g, ls_error *e) {
    ls_io io = ls_conn_handshake(g->c, e);
    if (io == LS_IO_DONE && !g->has_header) {
        io = ls_conn_next(g->c, &g->frame, e);
        if (io == LS_IO_DONE && (g->frame.nbytes > sizeof g->payload || !gs->o.knows(&g->frame))) {
            ls_fail(e, LS_EPEER, "%s", gs->o.why_rejected);
            return LS_IO_FAILED;
        }
        if (io == LS_IO_DONE) {
            g->has_header = true;
            ls_conn_take(g->c, g->payload, g->frame.nbytes);
        }
    }
    return io == LS_IO_DONE ? ls_conn_payload(g->c, e) : io;
}

bool ls_guest_is_slow(const ls_guest *g) { return ls_clock_ns() > g->came + SLOW_NS; }

ls_guest_status ls_guests_read(ls_guests *gs, int i) {
    ls_error e = {0};
    ls_guest *g = &gs->all[i];
    ls_io io = g->readable ? read_first_frame(gs, g, &e) : LS_IO_AGAIN_READ;
    if (io == LS_IO_DONE) {
        g->has_frame = true;
        return LS_GUEST_READY;
    }
    bool slow = gs->n > gs->o.patience && ls_guest_is_slow(g);
    if (io != LS_IO_FAILED && io != LS_IO_CLOSED && !slow) return LS_GUEST_WAITS;
    ls_guests_drop(gs, i, e.code ? e.msg : gs->o.why_rejected);
    return LS_GUEST_GONE;
}

/* ---- the other side ---- */

ls_io ls_visit_continue(ls_visit *v, ls_error *e) {
    ls_io io = ls_conn_handshake(v->c, e);
    void *token = NULL;
    if (io == LS_IO_FAILED && v->to && ls_conn_redial(v->c, v->to, v->key))
        return LS_IO_AGAIN_WRITE;
    if (io == LS_IO_DONE && !v->sent) {
        io = ls_conn_put(v->c, &v->request, v->data, v->request.nbytes, NULL, e);
        v->sent = true;
    }
    if (io == LS_IO_DONE) io = ls_conn_flush(v->c, &token, e);
    if (io == LS_IO_DONE && !v->has_answer) {
        io = ls_conn_next(v->c, &v->answer, e);
        if (io == LS_IO_DONE && v->answer.nbytes > v->room) {
            ls_fail(e, LS_EPEER, "its answer is malformed");
            return LS_IO_FAILED;
        }
        if (io == LS_IO_DONE) {
            v->has_answer = true;
            ls_conn_take(v->c, v->text, v->answer.nbytes);
        }
    }
    return io == LS_IO_DONE ? ls_conn_payload(v->c, e) : io;
}

void ls_conn_await(const ls_conn *c, ls_io io) {
    struct pollfd p = {.fd = c->fd, .events = io == LS_IO_AGAIN_WRITE ? POLLOUT : POLLIN};
    poll(&p, 1, 100);
}
