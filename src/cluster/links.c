/* links.c - see links.h. */
#include "cluster/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/address.h"
#include "net/tcp/guest.h"

enum { HELLO = 21, MESSAGE = 22, MUST_MATCH = 23, PROTOCOL = 2, PATIENCE = 16 };
/* LATER_NS: the pause after a host has answered that is not the leader we look for. */
static const int64_t RETRY_NS = 250 * 1000 * 1000, LATER_NS = (int64_t)2 * 1000000000,
                     DIAL_NS = (int64_t)3 * 1000000000;

typedef struct hello {
    uint32_t protocol, nbytes; /* nbytes of a message; other versions differ in either */
    uint64_t host;
} hello;

typedef struct wire {
    ls_conn *c;
    bool lost;       /* the loss is not reported yet */
    bool in_message; /* `message` is being read */
    ls_host_message message;
} wire;

struct ls_links {
    uint64_t host;
    bool keyed, calls, up_reported;
    ls_key key;
    int listen_fd;
    ls_address leader;
    ls_guests guests;
    wire up, peers[LS_HOSTS_MAX]; /* from 1 */
    int next;                     /* the peer to look at next */
    const char *must_match;
    /* While this host connects to the leader. */
    int64_t dialed_ns, pause_ns;
    bool hello_sent, has_header;
    char theirs[LS_MUST_MATCH_NBYTES + 1], trouble[256];
};

/* ---- opening and closing ---- */

static bool knows(const ls_frame *f) { return f->kind == HELLO && f->nbytes == sizeof(hello); }

static void open_guests(ls_links *l) {
    ls_guests_options o = {.listen_fd = l->listen_fd,
                           .key = l->keyed ? &l->key : NULL,
                           .knows = knows,
                           .why_rejected = "it is not a supervisor of this version",
                           .patience = PATIENCE,
                           .most = LS_HOSTS_MAX};
    ls_guests_open(&l->guests, &o);
}

ls_status ls_links_open(const char *listen, uint64_t host, const char *must_match, ls_links **l_p,
                        ls_error *e) {
    ls_links *l = LS_NEW(ls_links);
    *l = (ls_links){.host = host, .listen_fd = -1, .next = 1, .must_match = must_match};
    ls_status s = ls_key_require(false, &l->key, &l->keyed, e);
    if (s == LS_OK && strlen(must_match) > LS_MUST_MATCH_NBYTES)
        s = ls_fail(e, LS_EINVAL,
                    "the config has %zu characters that must match on all hosts; at most %d "
                    "can be compared",
                    strlen(must_match), LS_MUST_MATCH_NBYTES);
    ls_address at;
    if (s == LS_OK && listen) s = ls_address_parse(listen, &at, e);
    if (s == LS_OK && listen) s = ls_address_listen(&at, &l->listen_fd, e);
    if (s == LS_OK && listen) open_guests(l);
    if (s == LS_OK)
        *l_p = l;
    else
        ls_links_close(l);
    return s;
}

void ls_links_close(ls_links *l) {
    if (!l) return;
    ls_links_drop(l, LS_TO_LEADER);
    for (int i = 1; i < LS_HOSTS_MAX; i++) ls_links_drop(l, i);
    if (l->guests.all) ls_guests_close(&l->guests);
    if (l->listen_fd >= 0) close(l->listen_fd);
    ls_key_wipe(&l->key);
    free(l);
}

/* ---- one link ---- */

static wire *link_of(ls_links *l, int peer) {
    return peer == LS_TO_LEADER ? &l->up : &l->peers[peer];
}

void ls_links_drop(ls_links *l, int peer) {
    wire *k = link_of(l, peer);
    ls_conn_free(k->c);
    *k = (wire){0};
    if (peer == LS_TO_LEADER) l->up_reported = l->hello_sent = l->has_header = false;
}

static void lose(wire *k) {
    ls_conn_free(k->c);
    *k = (wire){.lost = true};
}

static bool is_waiting(ls_io io) { return io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE; }

static void flush(wire *k) {
    void *token = NULL;
    ls_io io = ls_conn_flush(k->c, &token, NULL);
    if (io != LS_IO_DONE && !is_waiting(io)) lose(k);
}

void ls_links_send(ls_links *l, int peer, const ls_host_message *s) {
    wire *k = link_of(l, peer);
    ls_frame f = {.kind = MESSAGE, .nbytes = sizeof *s};
    if (!k->c) return;
    ls_io io = ls_conn_put(k->c, &f, s, sizeof *s, NULL, NULL);
    if (io == LS_IO_DONE || is_waiting(io))
        flush(k);
    else
        lose(k);
}

/* Reads a message; false: none is complete, or the link is lost. ls_views_receive() checks whether
 * it makes sense. */
static bool read_message(wire *k, ls_host_message *s_p) {
    ls_frame f;
    ls_io io = LS_IO_DONE;
    if (!k->in_message) {
        io = ls_conn_next(k->c, &f, NULL);
        if (io == LS_IO_DONE && (f.kind != MESSAGE || f.nbytes != sizeof k->message))
            io = LS_IO_FAILED;
        if (io == LS_IO_DONE) ls_conn_take(k->c, &k->message, sizeof k->message);
        k->in_message = io == LS_IO_DONE;
    }
    if (io == LS_IO_DONE) io = ls_conn_payload(k->c, NULL);
    if (is_waiting(io)) return false;
    k->in_message = false;
    if (io != LS_IO_DONE) {
        lose(k);
        return false;
    }
    *s_p = k->message;
    s_p->text[sizeof s_p->text - 1] = s_p->view.address[sizeof s_p->view.address - 1] = 0;
    return true;
}

static bool look_at(wire *k, int peer, ls_link_event *ev) {
    ev->peer = peer;
    if (k->c && ls_conn_busy(k->c)) flush(k);
    if (k->c && read_message(k, &ev->message)) {
        ev->what = LS_LINK_MESSAGE;
        return true;
    }
    if (!k->lost) return false;
    k->lost = false;
    ev->what = LS_LINK_LOST;
    return true;
}

/* ---- callers ---- */

static bool is_welcome(const ls_guest *g) {
    hello h;
    memcpy(&h, g->payload, sizeof h);
    return h.protocol == PROTOCOL && h.nbytes == sizeof(ls_host_message);
}

static void welcome(const ls_links *l, wire *k, ls_conn *c) {
    size_t n = strlen(l->must_match);
    ls_frame f = {.kind = MUST_MATCH, .nbytes = n};
    *k = (wire){.c = c};
    ls_conn_put(c, &f, l->must_match, n, NULL, NULL); /* if this fails, so does flush() */
    flush(k);
}

static void let_in(ls_links *l, int i) {
    int peer = 1;
    while (peer < LS_HOSTS_MAX && (l->peers[peer].c || l->peers[peer].lost)) peer++;
    if (peer == LS_HOSTS_MAX)
        ls_guests_drop(&l->guests, i, "there are too many hosts");
    else if (!is_welcome(&l->guests.all[i]))
        ls_guests_drop(&l->guests, i, "it is another version of lockstep");
    else
        welcome(l, &l->peers[peer], ls_guests_release(&l->guests, i));
}

static void open_door(ls_links *l) {
    if (l->listen_fd < 0) return;
    ls_guests_wait(&l->guests, -1, 0);
    for (int i = l->guests.n - 1; i >= 0; i--)
        if (ls_guests_read(&l->guests, i) == LS_GUEST_READY) let_in(l, i);
}

/* ---- calling ---- */

ls_status ls_links_call(ls_links *l, const char *text, ls_error *e) {
    ls_links_drop(l, LS_TO_LEADER);
    l->calls = text != NULL;
    l->dialed_ns = 0;
    l->pause_ns = RETRY_NS;
    l->trouble[0] = 0;
    if (!text) return LS_OK;
    LS_TRY(ls_address_parse(text, &l->leader, e));
    if (*l->leader.host) return LS_OK;
    return ls_fail(e, LS_EINVAL, "'%.200s' is not an address; HOST is missing before :PORT", text);
}

const char *ls_links_trouble(const ls_links *l) { return l->trouble; }

static void give_up(ls_links *l, int64_t pause_ns, const char *why) {
    ls_links_drop(l, LS_TO_LEADER);
    l->pause_ns = pause_ns;
    snprintf(l->trouble, sizeof l->trouble, "%.255s", why);
}

static void dial(ls_links *l) {
    struct addrinfo *list = NULL;
    const ls_address *a = &l->leader;
    l->dialed_ns = ls_clock_ns();
    const char *why = ls_address_look_up(a->host, a->port, 0, &list);
    if (why) {
        char text[sizeof l->trouble];
        snprintf(text, sizeof text, "'%.200s:%d': %s", a->host, a->port, why);
        give_up(l, RETRY_NS, text);
        return;
    }
    int fd = ls_socket_connect(list->ai_addr, list->ai_addrlen);
    if (fd < 0)
        give_up(l, RETRY_NS, strerror(errno));
    else if (ls_conn_new(fd, false, l->keyed ? &l->key : NULL, &l->up.c, NULL) != LS_OK)
        l->up.c = NULL;
    freeaddrinfo(list);
}

/* Waits for the settings that must match, from the leader. */
static ls_io meet(ls_links *l, ls_error *e) {
    ls_conn *c = l->up.c;
    void *token = NULL;
    ls_io io = ls_conn_handshake(c, e);
    if (io == LS_IO_DONE && !l->hello_sent) {
        hello h = {PROTOCOL, sizeof(ls_host_message), l->host};
        ls_frame f = {.kind = HELLO, .nbytes = sizeof h};
        io = ls_conn_put(c, &f, &h, sizeof h, NULL, e);
        l->hello_sent = true;
    }
    if (io == LS_IO_DONE && ls_conn_busy(c)) io = ls_conn_flush(c, &token, e);
    if (io == LS_IO_DONE && !l->has_header) {
        ls_frame f;
        io = ls_conn_next(c, &f, e);
        if (io == LS_IO_DONE && (f.kind != MUST_MATCH || f.nbytes > LS_MUST_MATCH_NBYTES)) {
            ls_fail(e, LS_EPEER, "it is not a supervisor of this version");
            return LS_IO_FAILED;
        }
        if (io == LS_IO_DONE) {
            l->has_header = true;
            l->theirs[f.nbytes] = 0;
            ls_conn_take(c, l->theirs, (size_t)f.nbytes);
        }
    }
    return io == LS_IO_DONE ? ls_conn_payload(c, e) : io;
}

/* Do the settings match? If not, `trouble` names the first one that differs. */
static bool matches(ls_links *l) {
    const char *a = l->must_match, *b = l->theirs;
    while (*a && *b) {
        int na = (int)strcspn(a, "\n"), nb = (int)strcspn(b, "\n");
        if (na != nb || strncmp(a, b, (size_t)na) != 0) break;
        a += na + (a[na] != 0);
        b += nb + (b[nb] != 0);
    }
    if (!*a && !*b) return true;
    char why[sizeof l->trouble];
    int na = (int)strcspn(a, "\n"), nb = (int)strcspn(b, "\n"), name = (int)strcspn(a, " \n");
    bool same_name = strncmp(a, b, (size_t)name + 1) == 0;
    int skip = same_name ? name + 1 : 0;
    snprintf(why, sizeof why, "this host has %.*s, the leading host has %.*s; these must match",
             na < 100 ? na : 100, a, nb - skip < 80 ? nb - skip : 80, b + skip);
    give_up(l, LATER_NS, why);
    return false;
}

static bool call_leader(ls_links *l, ls_link_event *ev) {
    ls_error e = {0};
    ls_io io = meet(l, &e);
    if (is_waiting(io)) {
        if (ls_clock_ns() - l->dialed_ns > DIAL_NS) give_up(l, RETRY_NS, "it does not answer");
        return false;
    }
    if (io != LS_IO_DONE) {
        struct sockaddr_storage a;
        give_up(l, ls_socket_peer(l->up.c->fd, &a) ? LATER_NS : RETRY_NS, e.msg);
        return false;
    }
    bool same = matches(l);
    *ev = (ls_link_event){.what = same ? LS_LINK_UP : LS_LINK_OTHER, .peer = LS_TO_LEADER};
    if (!same) return true;
    l->up_reported = true;
    l->pause_ns = RETRY_NS;
    l->trouble[0] = 0;
    return true;
}

static bool look_up_leader(ls_links *l, ls_link_event *ev) {
    int64_t now = ls_clock_ns();
    if (!l->up.c && !l->up.lost && l->calls && now - l->dialed_ns >= l->pause_ns) dial(l);
    if (l->up.c && !l->up_reported) return call_leader(l, ev);
    if (!look_at(&l->up, LS_TO_LEADER, ev)) return false;
    if (ev->what == LS_LINK_LOST) l->up_reported = l->hello_sent = l->has_header = false;
    return true;
}

/* ---- all ---- */

bool ls_links_next(ls_links *l, ls_link_event *ev) {
    if (l->next == 1) {
        open_door(l);
        if (look_up_leader(l, ev)) return true;
    }
    for (; l->next < LS_HOSTS_MAX; l->next++)
        if (look_at(&l->peers[l->next], l->next, ev)) return true;
    l->next = 1;
    return false;
}

static void add_fd(const ls_conn *c, struct pollfd *fds, int *n, int most) {
    if (!c || *n == most) return;
    bool writes = c->wants_write || (c->open && ls_conn_busy(c));
    fds[(*n)++] = (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | (writes ? POLLOUT : 0))};
}

int ls_links_fds(const ls_links *l, struct pollfd *fds, int most) {
    int n = 0;
    if (l->listen_fd >= 0 && most > 0)
        fds[n++] = (struct pollfd){.fd = l->listen_fd, .events = POLLIN};
    for (int i = 0; i < l->guests.n; i++) add_fd(l->guests.all[i].c, fds, &n, most);
    add_fd(l->up.c, fds, &n, most);
    for (int i = 1; i < LS_HOSTS_MAX; i++) add_fd(l->peers[i].c, fds, &n, most);
    return n;
}

static bool own_address(const ls_links *l, struct sockaddr_storage *a) {
    for (int i = 1; i < LS_HOSTS_MAX; i++)
        if (l->peers[i].c && ls_socket_own(l->peers[i].c->fd, a)) return true;
    return ls_socket_own(l->listen_fd, a);
}

void ls_links_address(const ls_links *l, struct sockaddr_storage *a_p) {
    *a_p = (struct sockaddr_storage){.ss_family = AF_INET};
    own_address(l, a_p);
    ls_address_set_port(a_p, 0);
}
