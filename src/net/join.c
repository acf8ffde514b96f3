/* join.c - see join.h.
 *
 * Worker 0 serves all who connect at once, in one loop: each has a state (handshake, hello,
 * waiting) and a time limit for the first two. A hello names rank, size and port; the answer is the
 * roster, or an error as text, the same for all.
 */
#include "net/join.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/conn.h"

enum { HELLO = 1, ROSTER = 2, REFUSAL = 3, PROTOCOL = 1, MAX_GUESTS = 4096 };
enum { LATE = 1 }; /* number of a refusal: others did not come in time */
static const int64_t HELLO_NS = (int64_t)10 * 1000000000;  /* for handshake and hello */
static const int64_t VERDICT_NS = (int64_t)2 * 1000000000; /* for worker 0 to say who is late */

/* On the wire, little-endian hosts only: all that we build for are. */
typedef struct hello {
    uint32_t protocol, rank, size, port;
    uint64_t host;
    uint64_t pid;
} hello;

typedef struct entry {
    unsigned char address[16]; /* IPv6, or IPv4 mapped into it */
    uint64_t host;
    uint32_t port, pid;
} entry;

/* One that has connected to worker 0. */
typedef struct guest {
    ls_conn *c;
    struct sockaddr_storage from;
    int64_t end;
    bool has_header, known; /* known: its hello was good, it waits for the roster */
    hello said;
    int rank;
} guest;

typedef struct hall {
    const ls_join *j;
    ls_roster *roster;
    guest *guests;
    int nguests, come;
    int64_t end;
} hall;

/* ---- sockets ---- */

static ls_status look_up(const char *host, int port, struct addrinfo **list_p, ls_error *e) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int why = getaddrinfo(host, service, &hints, list_p);
    if (why == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "worker 0's address '%.200s': %s", host, gai_strerror(why));
}

/* Any port, on all addresses of this host. */
static ls_status listen_anywhere(int family, int port, int *fd_p, ls_error *e) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int one = 1, fd = socket(family, SOCK_STREAM, 0);
    const struct sockaddr *a =
        family == AF_INET ? (const struct sockaddr *)&in : (const struct sockaddr *)&in6;
    socklen_t n = family == AF_INET ? sizeof in : sizeof in6;
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, a, n) != 0 || listen(fd, 1024) != 0) {
        int why = errno;
        if (fd >= 0) close(fd);
        return ls_fail(e, LS_EIO, "can't listen on port %d: %s", port, strerror(why));
    }
    ls_socket_flags(fd);
    *fd_p = fd;
    return LS_OK;
}

static int port_of(int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return 0;
    return ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
                                        : ((struct sockaddr_in6 *)&a)->sin6_port);
}

static void set_port(struct sockaddr_storage *a, int port) {
    if (a->ss_family == AF_INET)
        ((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)a)->sin6_port = htons((uint16_t)port);
}

uint64_t ls_host_number(void) {
    char id[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        if (!fgets(id, sizeof id, f)) id[0] = 0;
        fclose(f);
    }
    if (!id[0]) gethostname(id, sizeof id - 1);
    return ls_hash_bytes(id, strlen(id)).lo | 1;
}

static entry pack(const ls_member *m) {
    entry x = {.host = m->host, .pid = (uint32_t)m->pid};
    if (m->address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&m->address;
        memset(x.address + 10, 0xff, 2);
        memcpy(x.address + 12, &in->sin_addr, 4);
        x.port = ntohs(in->sin_port);
    } else {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&m->address;
        memcpy(x.address, &in6->sin6_addr, 16);
        x.port = ntohs(in6->sin6_port);
    }
    return x;
}

static void unpack(const entry *x, ls_member *m_p) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    *m_p = (ls_member){.host = x->host, .pid = (int)x->pid};
    if (memcmp(x->address, mapped, 12) == 0) {
        struct sockaddr_in *in = (struct sockaddr_in *)&m_p->address;
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)x->port);
        memcpy(&in->sin_addr, x->address + 12, 4);
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&m_p->address;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)x->port);
        memcpy(&in6->sin6_addr, x->address, 16);
    }
}

/* ---- worker 0 ---- */

static void drop(hall *h, int i, const char *why) {
    guest *g = &h->guests[i];
    char address[80];
    ls_address_text(&g->from, address, sizeof address);
    if (why) ls_log("a connection from %s is dropped: %s", address, why);
    ls_conn_free(g->c);
    *g = h->guests[--h->nguests];
}

/* False: the system has no descriptors left; those who wait are let in when guests have gone. */
static bool admit(hall *h, int listen_fd) {
    for (;;) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        int fd = accept(listen_fd, (struct sockaddr *)&from, &n);
        if (fd < 0 && errno == ECONNABORTED) continue;
        if (fd < 0) return errno == EAGAIN || errno == EINTR;
        ls_socket_flags(fd);
        ls_conn *c = NULL;
        if (h->nguests == MAX_GUESTS) {
            close(fd);
            continue;
        }
        if (ls_conn_new(fd, true, h->j->key, &c, NULL) != LS_OK) continue;
        h->guests[h->nguests++] = (guest){.c = c, .from = from, .end = ls_clock_ns() + HELLO_NS};
    }
}

static const char *judge(const hall *h, const guest *g) {
    static char why[120];
    const hello *s = &g->said;
    if (s->protocol != PROTOCOL) return "it speaks another version of the protocol";
    if ((int)s->size != h->j->size) {
        snprintf(why, sizeof why, "it belongs to a group of %u workers, this one has %d", s->size,
                 h->j->size);
        return why;
    }
    if (s->rank < 1 || s->rank >= s->size || s->port < 1 || s->port > 65535)
        return "its rank or port is out of range";
    for (int i = 0; i < h->nguests; i++)
        if (h->guests[i].known && h->guests[i].rank == (int)s->rank) {
            snprintf(why, sizeof why, "worker %u has come already", s->rank);
            return why;
        }
    return NULL;
}

static void refuse(guest *g, const char *why) {
    ls_frame f = {.kind = REFUSAL, .nbytes = strlen(why)};
    void *token = NULL;
    if (ls_conn_put(g->c, &f, why, strlen(why), NULL, NULL) == LS_IO_DONE)
        ls_conn_flush(g->c, &token, NULL);
}

/* Its hello was read: it is known, or refused. */
static bool welcome(hall *h, guest *g) {
    const char *why = judge(h, g);
    if (why) {
        char line[160];
        snprintf(line, sizeof line, "worker 0 refuses: %s", why);
        refuse(g, line);
        ls_log("%s", why);
        return false;
    }
    g->known = true;
    g->rank = (int)g->said.rank;
    ls_member *m = &h->roster->members[g->rank];
    *m = (ls_member){.address = g->from, .host = g->said.host, .pid = (int)g->said.pid};
    set_port(&m->address, (int)g->said.port);
    h->come++;
    return true;
}

/* One look at a guest; false: it is dropped. */
static bool attend(hall *h, int i) {
    guest *g = &h->guests[i];
    ls_error e = {0};
    ls_io io = ls_conn_handshake(g->c, &e);
    if (io == LS_IO_DONE && g->known) { /* it has nothing more to say */
        ls_frame f;
        io = ls_conn_next(g->c, &f, &e);
        if (io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE) return true;
        h->come--;
        drop(h, i, io == LS_IO_DONE ? "it speaks out of turn" : "it is gone");
        return false;
    }
    if (io == LS_IO_DONE && !g->has_header) {
        ls_frame f;
        io = ls_conn_next(g->c, &f, &e);
        if (io == LS_IO_DONE && (f.kind != HELLO || f.nbytes != sizeof g->said)) {
            drop(h, i, "it says no hello");
            return false;
        }
        if (io == LS_IO_DONE) {
            g->has_header = true;
            ls_conn_take(g->c, &g->said, sizeof g->said);
        }
    }
    if (io == LS_IO_DONE) io = ls_conn_payload(g->c, &e);
    if (io == LS_IO_DONE && !welcome(h, g)) {
        drop(h, i, NULL);
        return false;
    }
    if (io == LS_IO_CLOSED || io == LS_IO_FAILED) {
        drop(h, i, e.msg);
        return false;
    }
    if (!g->known && ls_clock_ns() > g->end) {
        drop(h, i, "it said no hello in time");
        return false;
    }
    return true;
}

static ls_status missing(const hall *h, ls_error *e) {
    ls_buf who = {0};
    int n = 0;
    for (int r = 1; r < h->j->size; r++) {
        bool known = false;
        for (int i = 0; i < h->nguests; i++)
            known = known || (h->guests[i].known && h->guests[i].rank == r);
        if (!known && n++ < 16) ls_buf_printf(&who, " %d", r);
    }
    ls_fail(e, LS_ETIMEOUT, "%d of %d workers did not come within %.1f s:%s%s", n, h->j->size,
            h->j->timeout_s, who.data, n > 16 ? " ..." : "");
    ls_buf_free(&who);
    return LS_ETIMEOUT;
}

static ls_status wait_all(hall *h, int listen_fd, ls_error *e) {
    struct pollfd *fds = LS_NEW_ARRAY(struct pollfd, MAX_GUESTS + 1);
    ls_status s = LS_OK;
    bool room = true;
    while (h->come < h->j->size - 1 && s == LS_OK) {
        fds[0] = (struct pollfd){.fd = listen_fd, .events = room ? POLLIN : 0};
        for (int i = 0; i < h->nguests; i++)
            fds[i + 1] = (struct pollfd){.fd = h->guests[i].c->fd,
                                         .events = h->guests[i].c->wants_write ? POLLOUT : POLLIN};
        poll(fds, (nfds_t)h->nguests + 1, 100);
        room = admit(h, listen_fd);
        for (int i = 0; i < h->nguests;) i += attend(h, i);
        if (h->end >= 0 && ls_clock_ns() > h->end && h->come < h->j->size - 1) s = missing(h, e);
    }
    free(fds);
    return s;
}

/* To all guests: until it is with the kernel, 5 s at most. */
static void tell_all(hall *h, const ls_frame *f, const void *data) {
    int64_t end = ls_clock_ns() + (int64_t)5 * 1000000000;
    for (int i = 0; i < h->nguests; i++)
        if (h->guests[i].known) ls_conn_put(h->guests[i].c, f, data, f->nbytes, h, NULL);
    for (int i = 0; i < h->nguests; i++)
        while (ls_conn_busy(h->guests[i].c) && ls_clock_ns() < end) {
            void *token = NULL;
            ls_io io = ls_conn_flush(h->guests[i].c, &token, NULL);
            if (io == LS_IO_FAILED || io == LS_IO_CLOSED) break;
            struct pollfd p = {.fd = h->guests[i].c->fd, .events = POLLOUT};
            if (io != LS_IO_DONE) poll(&p, 1, 100);
        }
}

static ls_status host_group(const ls_join *j, ls_roster *r, ls_error *e) {
    hall h = {.j = j, .roster = r, .end = -1};
    if (j->timeout_s >= 0) h.end = ls_clock_ns() + (int64_t)(j->timeout_s * 1e9);
    h.guests = LS_NEW_ARRAY(guest, MAX_GUESTS);
    ls_status s = wait_all(&h, r->listen_fd, e);
    if (s == LS_OK) {
        size_t n = (size_t)j->size * sizeof(entry);
        unsigned char *text = ls_alloc(sizeof r->nonce + n);
        memcpy(text, r->nonce, sizeof r->nonce);
        for (int i = 0; i < j->size; i++) {
            entry x = pack(&r->members[i]);
            memcpy(text + sizeof r->nonce + (size_t)i * sizeof x, &x, sizeof x);
        }
        tell_all(&h, &(ls_frame){.kind = ROSTER, .nbytes = sizeof r->nonce + n}, text);
        free(text);
    } else {
        ls_frame f = {.kind = REFUSAL, .number = LATE, .nbytes = strlen(e->msg)};
        tell_all(&h, &f, e->msg);
    }
    while (h.nguests) drop(&h, 0, NULL);
    free(h.guests);
    return s;
}

/* ---- the others ---- */

/* A call that wants the socket to be ready is made again, until the end. */
typedef struct visit {
    const ls_join *j;
    ls_conn *c;
    int64_t end;
} visit;

static ls_status wait_io(const visit *v, ls_io io, const char *what, ls_error *e) {
    if (io == LS_IO_FAILED || io == LS_IO_CLOSED) return LS_EPEER;
    int64_t now = ls_clock_ns();
    if (v->end >= 0 && now > v->end)
        return ls_fail(e, LS_ETIMEOUT, "worker %d: %s at %.200s:%d within %.1f s", v->j->rank, what,
                       v->j->host, v->j->port, v->j->timeout_s);
    struct pollfd p = {.fd = v->c->fd, .events = io == LS_IO_AGAIN_WRITE ? POLLOUT : POLLIN};
    poll(&p, 1, 100);
    return LS_OK;
}

static ls_status shake_hands(const visit *v, ls_error *e) {
    for (ls_io io; (io = ls_conn_handshake(v->c, e)) != LS_IO_DONE;)
        LS_TRY(wait_io(v, io, "no handshake with worker 0", e));
    return LS_OK;
}

static ls_status say_hello(const visit *v, const hello *h, ls_error *e) {
    void *token = NULL;
    ls_conn_put(v->c, &(ls_frame){.kind = HELLO, .nbytes = sizeof *h}, h, sizeof *h, NULL, e);
    for (ls_io io; ls_conn_busy(v->c);)
        if ((io = ls_conn_flush(v->c, &token, e)) != LS_IO_DONE)
            LS_TRY(wait_io(v, io, "no hello to worker 0", e));
    return LS_OK;
}

static ls_status hear_roster(const visit *v, ls_roster *r, ls_error *e) {
    ls_frame f;
    for (ls_io io; (io = ls_conn_next(v->c, &f, e)) != LS_IO_DONE;)
        LS_TRY(wait_io(v, io, "no answer from worker 0", e));
    size_t want = sizeof r->nonce + (size_t)v->j->size * sizeof(entry);
    bool refused = f.kind == REFUSAL && f.nbytes < sizeof e->msg;
    if (!refused && (f.kind != ROSTER || f.nbytes != want))
        return ls_fail(e, LS_EPEER, "worker 0 at %.200s:%d answers nonsense", v->j->host,
                       v->j->port);
    unsigned char *text = ls_alloc(f.nbytes + 1);
    ls_conn_take(v->c, text, f.nbytes);
    ls_status s = LS_OK;
    for (ls_io io; s == LS_OK && (io = ls_conn_payload(v->c, e)) != LS_IO_DONE;)
        s = wait_io(v, io, "no answer from worker 0", e);
    if (s == LS_OK && refused)
        s = ls_fail(e, f.number == LATE ? LS_ETIMEOUT : LS_EPEER, "%s", (char *)text);
    for (int i = 0; s == LS_OK && i < v->j->size; i++) {
        entry x;
        memcpy(&x, text + sizeof r->nonce + (size_t)i * sizeof x, sizeof x);
        unpack(&x, &r->members[i]);
    }
    if (s == LS_OK) memcpy(r->nonce, text, sizeof r->nonce);
    free(text);
    return s;
}

/* Connects to one address of worker 0; -1: refused, or not now. */
static int dial(const struct addrinfo *a) {
    int fd = socket(a->ai_family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    ls_socket_flags(fd);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int why = errno;
    socklen_t n = sizeof why;
    if (why == EINPROGRESS && poll(&p, 1, 2000) == 1 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 && why == 0)
        return fd;
    close(fd);
    return -1;
}

/* Worker 0 may start later than this one: tries again, at growing intervals. */
static ls_status reach(const ls_join *j, int64_t end, int *fd_p, ls_error *e) {
    int64_t pause = 5000000;
    for (;;) {
        struct addrinfo *list = NULL;
        ls_status s = look_up(j->host, j->port, &list, e);
        for (struct addrinfo *a = list; a; a = a->ai_next)
            if ((*fd_p = dial(a)) >= 0) {
                freeaddrinfo(list);
                return LS_OK;
            }
        if (list) freeaddrinfo(list);
        if (end >= 0 && ls_clock_ns() > end) {
            if (s != LS_OK) return s;
            return ls_fail(e, LS_ETIMEOUT,
                           "worker %d: no one listens at %.200s:%d, where worker 0 should, "
                           "within %.1f s",
                           j->rank, j->host, j->port, j->timeout_s);
        }
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        pause = pause < 250000000 ? pause * 3 / 2 : pause;
    }
}

static ls_status visit_group(const ls_join *j, ls_roster *r, ls_error *e) {
    visit v = {.j = j, .end = -1};
    if (j->timeout_s >= 0) v.end = ls_clock_ns() + (int64_t)(j->timeout_s * 1e9);
    int fd = -1;
    LS_TRY(reach(j, v.end, &fd, e));
    struct sockaddr_storage mine;
    socklen_t n = sizeof mine;
    getsockname(fd, (struct sockaddr *)&mine, &n);
    LS_TRY(ls_conn_new(fd, false, j->key, &v.c, e));
    ls_status s = listen_anywhere(mine.ss_family, 0, &r->listen_fd, e);
    hello h = {.protocol = PROTOCOL, .rank = (uint32_t)j->rank, .size = (uint32_t)j->size};
    h.host = ls_host_number();
    h.pid = (uint64_t)getpid();
    h.port = s == LS_OK ? (uint32_t)port_of(r->listen_fd) : 0;
    if (s == LS_OK) s = shake_hands(&v, e);
    if (s == LS_OK) s = say_hello(&v, &h, e);
    /* Worker 0's limit began before this one's hello; only worker 0 knows who is late. */
    if (v.end >= 0) v.end = ls_clock_ns() + (int64_t)(j->timeout_s * 1e9) + VERDICT_NS;
    if (s == LS_OK) s = hear_roster(&v, r, e);
    /* Worker 0 does not know its own address; who has reached it does. */
    n = sizeof r->members[0].address;
    if (s == LS_OK) {
        int port = ntohs(((struct sockaddr_in *)&r->members[0].address)->sin_port);
        getpeername(fd, (struct sockaddr *)&r->members[0].address, &n);
        set_port(&r->members[0].address, port);
    }
    ls_conn_free(v.c);
    return s;
}

ls_status ls_join_run(const ls_join *j, ls_roster *r_p, ls_error *e) {
    ls_error own;
    if (!e) e = &own;
    ls_roster r = {.size = j->size, .listen_fd = -1};
    r.members = LS_NEW_ARRAY(ls_member, (size_t)j->size);
    ls_status s = LS_OK;
    if (j->rank) {
        s = visit_group(j, &r, e);
    } else {
        struct addrinfo *list = NULL;
        r.listen_fd = j->inherited_fd;
        if (r.listen_fd >= 0)
            ls_socket_flags(r.listen_fd);
        else
            s = look_up(j->host, j->port, &list, e);
        if (s == LS_OK && list) s = listen_anywhere(list->ai_family, j->port, &r.listen_fd, e);
        if (list) freeaddrinfo(list);
        if (getrandom(r.nonce, sizeof r.nonce, 0) != (ssize_t)sizeof r.nonce)
            s = ls_fail(e, LS_EIO, "no random numbers: %s", strerror(errno));
        ls_member *me = &r.members[0];
        *me = (ls_member){.host = ls_host_number(), .pid = getpid()};
        me->address.ss_family = AF_INET;
        if (s == LS_OK) set_port(&me->address, port_of(r.listen_fd));
        if (s == LS_OK) s = host_group(j, &r, e);
    }
    if (s != LS_OK) {
        ls_roster_free(&r);
        return s;
    }
    *r_p = r;
    return LS_OK;
}

void ls_roster_free(ls_roster *r) {
    if (r->listen_fd >= 0) close(r->listen_fd);
    free(r->members);
    *r = (ls_roster){.listen_fd = -1};
}
