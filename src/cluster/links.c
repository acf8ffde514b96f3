/* links.c - see links.h. */
#include "cluster/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/address.h"
#include "net/tcp/guest.h"

enum {
    HELLO = LS_GREET_HOST,
    MESSAGE = 22,
    THEIRS = LS_GREET_HOST_SETTINGS,
    OURS = 24,
    REFUSES = 25
};
enum { PROTOCOL = 4, PATIENCE = 16 };
/* LATER_NS: the pause after a host has answered that is not the leader we look for. */
static const int64_t RETRY_NS = 250 * 1000 * 1000, LATER_NS = (int64_t)2 * 1000000000,
                     DIAL_NS = (int64_t)3 * 1000000000;

typedef struct hello {
    uint32_t protocol, nbytes; /* nbytes of a message; other versions differ in either */
    uint64_t host;
} hello;
_Static_assert(sizeof(hello) == LS_GREET_HOST_NBYTES, "as others know it");

typedef struct wire {
    ls_conn *c;
    bool lost;      /* the loss is not reported yet */
    bool matches;   /* a host that has connected: it takes part in the same run */
    ls_frame frame; /* what is being read, if in_frame */
    bool in_frame;
    ls_host_message message;
    char *own, *theirs;      /* texts, while the two hosts compare them */
    char name[LS_PEER_NAME]; /* the host's address; stays until another host has this number */
} wire;

struct ls_links {
    uint64_t host;
    bool keyed, calls, up_reported;
    ls_key key;
    int listen_fd;
    ls_address leader;
    int failures; /* to reach it: each next attempt takes the next of its addresses */
    ls_guests guests;
    wire up, peers[LS_HOSTS_MAX]; /* from 1 */
    int next;                     /* the peer to look at next */
    const ls_admission *admission;
    /* While this host connects to the leader. */
    int64_t dialed_ns, pause_ns;
    bool hello_sent;
    char trouble[256];
};

/* ---- opening and closing ---- */

/* Frames of known kinds; a worker of another sync.mode gets an answer that says what is wrong. */
static bool knows(const ls_frame *f) {
    return (f->kind == HELLO && f->nbytes == sizeof(hello)) ||
           (f->kind == LS_GREET_WORKER && f->nbytes == LS_GREET_WORKER_NBYTES);
}

static void open_guests(ls_links *l) {
    ls_guests_options o = {.listen_fd = l->listen_fd,
                           .key = l->keyed ? &l->key : NULL,
                           .knows = knows,
                           .why_rejected = "it is not a supervisor of this version",
                           .patience = PATIENCE,
                           .most = LS_HOSTS_MAX};
    ls_guests_open(&l->guests, &o);
}

ls_status ls_links_open(const char *listen, uint64_t host, const ls_admission *admission,
                        ls_links **l_p, ls_error *e) {
    ls_links *l = LS_NEW(ls_links);
    *l = (ls_links){.host = host, .listen_fd = -1, .next = 1, .admission = admission};
    ls_status s = ls_key_require(false, &l->key, &l->keyed, e);
    if (s == LS_OK) s = ls_admission_check_size(admission, e);
    ls_address at;
    if (s == LS_OK && listen) s = ls_address_parse(listen, &at, e);
    if (s == LS_OK && listen) s = ls_address_listen(&at, &l->listen_fd, e);
    if (s == LS_OK && listen) {
        ls_fork_closes(l->listen_fd);
        open_guests(l);
    }
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
    ls_fork_close(l->listen_fd);
    ls_key_wipe(&l->key);
    free(l);
}

/* ---- one link ---- */

static wire *link_of(ls_links *l, int peer) {
    return peer == LS_TO_LEADER ? &l->up : &l->peers[peer];
}

static void forget_texts(wire *k) {
    free(k->own);
    free(k->theirs);
    k->own = k->theirs = NULL;
}

static void close_link(wire *k) {
    ls_conn_free(k->c);
    forget_texts(k);
    k->c = NULL;
    k->lost = k->in_frame = k->matches = false;
}

void ls_links_drop(ls_links *l, int peer) {
    wire *k = link_of(l, peer);
    close_link(k);
    if (peer == LS_TO_LEADER) l->up_reported = l->hello_sent = false;
}

static void lose(wire *k) {
    close_link(k);
    k->lost = true;
}

void ls_links_name(const ls_links *l, int peer, char *text) {
    snprintf(text, LS_PEER_NAME, "%s", l->peers[peer].name);
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

/* Where the frame's payload goes; NULL: the frame makes no sense here. */
static void *room_for(wire *k, const ls_frame *f, uint16_t admission) {
    if (k->matches)
        return f->kind == MESSAGE && f->nbytes == sizeof k->message ? &k->message : NULL;
    bool refuses = f->kind == REFUSES && f->nbytes <= LS_REFUSAL_NBYTES;
    if (!refuses && (f->kind != admission || f->nbytes > LS_ADMISSION_NBYTES)) return NULL;
    k->theirs = LS_NEW_ARRAY(char, (size_t)f->nbytes + 1);
    return k->theirs;
}

/* Reads a frame. `admission`: the kind of the only one that may come before the two hosts match. */
static ls_io read_frame(wire *k, uint16_t admission) {
    ls_io io = LS_IO_DONE;
    if (!k->in_frame) {
        void *room = NULL;
        io = ls_conn_next(k->c, &k->frame, NULL);
        if (io == LS_IO_DONE) room = room_for(k, &k->frame, admission);
        if (io == LS_IO_DONE && !room) io = LS_IO_FAILED;
        if (io == LS_IO_DONE) ls_conn_take(k->c, room, (size_t)k->frame.nbytes);
        k->in_frame = io == LS_IO_DONE;
    }
    if (io == LS_IO_DONE) io = ls_conn_payload(k->c, NULL);
    if (io == LS_IO_DONE) k->in_frame = false;
    return io;
}

/* The answer of a host that has connected. */
static void hear(const ls_links *l, wire *k) {
    ls_error e = {0};
    if (k->frame.kind == REFUSES)
        ls_log("the host at %s does not take part: %s", k->name, k->theirs);
    else if (ls_admission_check(l->admission, k->name, k->theirs, &e) != LS_OK)
        ls_log("the host at %s is sent away: %s", k->name, e.msg);
    else
        k->matches = true;
    free(k->theirs);
    k->theirs = NULL;
    if (!k->matches) lose(k);
}

/* Reads a message; false: none is complete, or the link is lost. ls_views_receive() checks whether
 * it makes sense. */
static bool read_message(const ls_links *l, wire *k, ls_host_message *s_p) {
    bool greets = !k->matches;
    ls_io io = read_frame(k, OURS);
    if (is_waiting(io)) return false;
    if (io != LS_IO_DONE) {
        lose(k);
        return false;
    }
    if (greets) {
        hear(l, k);
        return k->matches && read_message(l, k, s_p);
    }
    *s_p = k->message;
    s_p->text[sizeof s_p->text - 1] = s_p->view.address[sizeof s_p->view.address - 1] = 0;
    return true;
}

static bool look_at(const ls_links *l, wire *k, int peer, ls_link_event *ev) {
    ev->peer = peer;
    if (k->c && ls_conn_busy(k->c)) flush(k);
    if (k->c && read_message(l, k, &ev->message)) {
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

/* If this fails, so does what follows. */
static void put_admission(const ls_links *l, wire *k, uint16_t kind) {
    ls_buf text = {0};
    ls_admission_write(l->admission, &text);
    const ls_frame f = {.kind = kind, .nbytes = text.len};
    forget_texts(k);
    k->own = text.data; /* it is sent from there */
    ls_conn_put(k->c, &f, k->own, text.len, k, NULL);
    flush(k);
}

static void welcome(const ls_links *l, wire *k, ls_conn *c, const struct sockaddr_storage *from) {
    k->c = c;
    ls_address_text(from, k->name, sizeof k->name);
    put_admission(l, k, THEIRS);
}

/* A worker of another sync.mode compares settings in the same way. */
static void report_mode(ls_links *l, int i) {
    wire k = {0};
    ls_address_text(&l->guests.all[i].from, k.name, sizeof k.name);
    k.c = ls_guests_release(&l->guests, i);
    put_admission(l, &k, LS_GREET_WORKER_SETTINGS);
    ls_log("the host at %s is sent away: it has another sync.mode", k.name);
    close_link(&k);
}

static void let_in(ls_links *l, int i) {
    int peer = 1;
    const struct sockaddr_storage from = l->guests.all[i].from;
    while (peer < LS_HOSTS_MAX && (l->peers[peer].c || l->peers[peer].lost)) peer++;
    if (l->guests.all[i].frame.kind != HELLO)
        report_mode(l, i);
    else if (peer == LS_HOSTS_MAX)
        ls_guests_drop(&l->guests, i, "there are too many hosts");
    else if (!is_welcome(&l->guests.all[i]))
        ls_guests_drop(&l->guests, i, "it is another version of lockstep");
    else
        welcome(l, &l->peers[peer], ls_guests_release(&l->guests, i), &from);
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
    l->failures = 0;
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
    l->failures++;
    snprintf(l->trouble, sizeof l->trouble, "%.255s", why);
}

/* A name may have several addresses, and some lead nowhere: tries them in turn. */
static const struct addrinfo *next_of(const struct addrinfo *list, int turn) {
    int n = 0;
    for (const struct addrinfo *a = list; a; a = a->ai_next) n++;
    for (turn %= n; turn > 0; turn--) list = list->ai_next;
    return list;
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
    const struct addrinfo *to = next_of(list, l->failures);
    int fd = ls_socket_connect(to->ai_addr, to->ai_addrlen);
    if (fd < 0)
        give_up(l, RETRY_NS, strerror(errno));
    else if (ls_conn_new(fd, false, l->keyed ? &l->key : NULL, &l->up.c, NULL) != LS_OK)
        l->up.c = NULL;
    freeaddrinfo(list);
}

/* Waits for the text of the leader. */
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
    if (io == LS_IO_DONE) io = read_frame(&l->up, THEIRS);
    if (io == LS_IO_FAILED && !e->msg[0])
        ls_fail(e, LS_EPEER, "it is not a supervisor of this version");
    return io;
}

/* Answers the leader. If this host does not match it, `trouble` says why. */
static bool answer(ls_links *l) {
    wire *k = &l->up;
    ls_buf text = {0};
    ls_error e = {0};
    k->matches = ls_admission_answer(l->admission, k->theirs, &text, &e) == LS_OK;
    if (!k->matches) {
        ls_buf_free(&text);
        ls_buf_printf(&text, "%.*s", LS_REFUSAL_NBYTES - 1, e.msg);
    }
    const ls_frame f = {.kind = k->matches ? OURS : REFUSES, .nbytes = text.len};
    forget_texts(k);
    k->own = text.data;                               /* it is sent from there */
    ls_conn_put(k->c, &f, k->own, text.len, k, NULL); /* if this fails, so does flush() */
    flush(k);
    if (e.code == LS_OK) return true;
    give_up(l, LATER_NS, e.msg);
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
    bool same = answer(l);
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
    if (!look_at(l, &l->up, LS_TO_LEADER, ev)) return false;
    if (ev->what == LS_LINK_LOST) l->up_reported = l->hello_sent = false;
    return true;
}

/* ---- all ---- */

bool ls_links_next(ls_links *l, ls_link_event *ev) {
    if (l->next == 1) {
        open_door(l);
        if (look_up_leader(l, ev)) return true;
    }
    for (; l->next < LS_HOSTS_MAX; l->next++)
        if (look_at(l, &l->peers[l->next], l->next, ev)) return true;
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

bool ls_links_addresses(const ls_links *l, int peer, struct sockaddr_storage *its_p,
                        struct sockaddr_storage *own_p) {
    const ls_conn *c = peer == LS_TO_LEADER ? l->up.c : l->peers[peer].c;
    return c && ls_socket_peer(c->fd, its_p) && ls_socket_own(c->fd, own_p);
}

void ls_links_address(const ls_links *l, struct sockaddr_storage *a_p) {
    bool any = false;
    *a_p = (struct sockaddr_storage){.ss_family = AF_INET};
    ls_socket_own(l->listen_fd, a_p);
    for (int i = 1; i < LS_HOSTS_MAX; i++) {
        struct sockaddr_storage its, own;
        if (!ls_links_addresses(l, i, &its, &own)) continue;
        if (any && !ls_address_is_same(&own, a_p)) { /* the listening socket has all of them */
            ls_socket_own(l->listen_fd, a_p);
            break;
        }
        *a_p = own;
        any = true;
    }
    ls_address_set_port(a_p, 0);
}
