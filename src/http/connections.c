/* connections.c - see connections.h. */
#include "http/connections.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/mem.h"

ls_connection *ls_connections_add(ls_connections *x, int fd) {
    ls_connection *c = LS_NEW(ls_connection);
    *c = (ls_connection){.fd = fd, .place = x->n, .since = ++x->now};
    x->list = ls_grow(x->list, x->n, sizeof(ls_connection *));
    x->polls = ls_grow(x->polls, x->n, sizeof *x->polls);
    x->list[x->n++] = c;
    return c;
}

void ls_connections_remove(ls_connections *x, ls_connection *c) {
    x->list[c->place] = x->list[--x->n];
    x->list[c->place]->place = c->place;
    free(c);
}

void ls_connections_waits(ls_connections *x, ls_connection *c) {
    c->asks = c->uploads = c->complete = c->answered = false;
    c->since = ++x->now;
}

static bool has_read_all(int fd) {
    int n = 0;
    return ioctl(fd, FIONREAD, &n) == 0 && n == 0;
}

void ls_connections_end_gone(ls_connections *x) {
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++)
        if (!x->list[i]->complete && !x->list[i]->answered)
            x->polls[n++] = (struct pollfd){.fd = x->list[i]->fd, .events = POLLRDHUP};
    if (n == 0 || poll(x->polls, (nfds_t)n, 0) < 1) return;
    for (size_t i = 0; i < n; i++)
        if (x->polls[i].revents && has_read_all(x->polls[i].fd))
            shutdown(x->polls[i].fd, SHUT_RDWR);
}

/* Is a closed before b? Those that have sent no header are, before those whose body is late. */
static bool goes_before(const ls_connection *a, const ls_connection *b) {
    return a->asks != b->asks ? !a->asks : a->since < b->since;
}

static bool may_end(const ls_connection *c) {
    bool waits = !c->asks || (c->uploads && !c->complete);
    return waits && !c->answered && !c->ended && has_read_all(c->fd);
}

void ls_connections_end_oldest(ls_connections *x, int n) {
    for (int i = 0; i < n; i++) {
        ls_connection *oldest = NULL;
        for (size_t k = 0; k < x->n; k++)
            if (may_end(x->list[k]) && (!oldest || goes_before(x->list[k], oldest)))
                oldest = x->list[k];
        if (!oldest) return;
        oldest->ended = true;
        shutdown(oldest->fd, SHUT_RDWR);
    }
}

void ls_connections_free(ls_connections *x) {
    while (x->n) ls_connections_remove(x, x->list[x->n - 1]);
    free(x->list);
    free(x->polls);
    *x = (ls_connections){0};
}
