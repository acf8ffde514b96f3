/* guest.c - see guest.h. */
#include "net/guest.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* ADMITTED: newcomers that are let in between two looks at those who are there, so that a flood
 * doesn't push out who needs a moment to prove what it is. */
enum { ADMITTED = 16 };
static const int64_t SLOW_NS = (int64_t)10 * 1000000000; /* for the handshake and the first frame */

void ls_guests_open(ls_guests *gs, int listen_fd, const ls_key *key,
                    bool (*knows)(const ls_frame *), const char *silent, int patience, int most) {
    *gs = (ls_guests){.listen_fd = listen_fd, .key = key, .knows = knows, .silent = silent};
    gs->patience = patience;
    gs->most = most;
    gs->all = LS_NEW_ARRAY(ls_guest, (size_t)most);
    gs->fds = LS_NEW_ARRAY(struct pollfd, (size_t)most + 2);
}

void ls_guests_close(ls_guests *gs) {
    while (gs->n) ls_guests_drop(gs, 0, NULL);
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
    if (why) ls_log("a connection from %s is dropped: %s", address, why);
    ls_conn_free(ls_guests_release(gs, i));
}

/* Makes room by the one that came first of those who have proved nothing. */
static bool evict(ls_guests *gs) {
    int oldest = -1;
    for (int i = 0; i < gs->n; i++) {
        const ls_guest *g = &gs->all[i];
        bool proved = g->heard || (gs->key && g->c->open);
        if (!proved && (oldest < 0 || g->came < gs->all[oldest].came)) oldest = i;
    }
    if (oldest < 0) return false;
    ls_guests_drop(gs, oldest, "too many connect, and it has not said yet who it is");
    return true;
}

/* Without descriptors accept() fails also where nobody is there. */
static bool someone_knocks(const ls_guests *gs) {
    struct pollfd p = {.fd = gs->listen_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void admit(ls_guests *gs) {
    for (int i = 0; i < ADMITTED; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        ls_conn *c = NULL;
        int fd = accept(gs->listen_fd, (struct sockaddr *)&from, &n);
        if (fd < 0 && errno == ECONNABORTED) continue;
        if (fd < 0) {
            bool waits = errno != EAGAIN && errno != EINTR && someone_knocks(gs);
            gs->no_descriptors = waits && !evict(gs);
            return;
        }
        ls_socket_flags(fd);
        if (gs->n == gs->most && !evict(gs)) {
            close(fd);
            continue;
        }
        if (ls_conn_new(fd, true, gs->key, &c, NULL) != LS_OK) continue;
        gs->all[gs->n++] = (ls_guest){.c = c, .from = from, .came = ls_clock_ns()};
    }
}

void ls_guests_wait(ls_guests *gs, int stop_fd, int timeout_ms) {
    short door = gs->no_descriptors ? 0 : POLLIN;
    gs->fds[0] = (struct pollfd){.fd = gs->listen_fd, .events = door};
    gs->fds[1] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    for (int i = 0; i < gs->n; i++) {
        const ls_conn *c = gs->all[i].c;
        bool write = c->wants_write || (gs->all[i].heard && ls_conn_busy(c));
        gs->fds[i + 2] = (struct pollfd){.fd = c->fd, .events = write ? POLLOUT : POLLIN};
    }
    poll(gs->fds, (nfds_t)gs->n + 2, timeout_ms);
    admit(gs);
}

static ls_io hear(const ls_guests *gs, ls_guest *g, ls_error *e) {
    ls_io io = ls_conn_handshake(g->c, e);
    if (io == LS_IO_DONE && !g->has_header) {
        io = ls_conn_next(g->c, &g->frame, e);
        if (io == LS_IO_DONE && (g->frame.nbytes > sizeof g->said || !gs->knows(&g->frame))) {
            ls_fail(e, LS_EPEER, "%s", gs->silent);
            return LS_IO_FAILED;
        }
        if (io == LS_IO_DONE) {
            g->has_header = true;
            ls_conn_take(g->c, g->said, g->frame.nbytes);
        }
    }
    return io == LS_IO_DONE ? ls_conn_payload(g->c, e) : io;
}

bool ls_guest_is_slow(const ls_guest *g) { return ls_clock_ns() > g->came + SLOW_NS; }

ls_heard ls_guests_hear(ls_guests *gs, int i) {
    ls_error e = {0};
    ls_guest *g = &gs->all[i];
    ls_io io = hear(gs, g, &e);
    if (io == LS_IO_DONE) {
        g->heard = true;
        return LS_GUEST_HEARD;
    }
    bool slow = gs->n > gs->patience && ls_guest_is_slow(g);
    if (io != LS_IO_FAILED && io != LS_IO_CLOSED && !slow) return LS_GUEST_WAITS;
    ls_guests_drop(gs, i, e.code ? e.msg : gs->silent);
    return LS_GUEST_GONE;
}

/* ---- the other side ---- */

ls_io ls_visit_go(ls_visit *v, ls_error *e) {
    ls_io io = ls_conn_handshake(v->c, e);
    void *token = NULL;
    if (io == LS_IO_DONE && !v->said) {
        io = ls_conn_put(v->c, &v->says, v->data, v->says.nbytes, NULL, e);
        v->said = true;
    }
    if (io == LS_IO_DONE) io = ls_conn_flush(v->c, &token, e);
    if (io == LS_IO_DONE && !v->has_answer) {
        io = ls_conn_next(v->c, &v->answer, e);
        if (io == LS_IO_DONE && v->answer.nbytes > v->room) {
            ls_fail(e, LS_EPEER, "it answers nonsense");
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
