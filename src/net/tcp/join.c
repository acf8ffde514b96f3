/* join.c - see join.h.
 *
 * Worker 0 serves all peers that connect at once, in one loop (guest.h). A hello names rank, size
 * and port; the answer is the roster, or an error as text, the same for all.
 */
#include "net/tcp/join.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/waiting.h"
#include "net/local/commons.h"
#include "net/tcp/door.h"
#include "net/tcp/guest.h"
#include "net/unreached.h"

enum { HELLO = 1, ROSTER = 2, REFUSAL = 3, PROTOCOL = 2, MAX_GUESTS = 4096 };
enum { DIAL_MS = 2000, OTHER_DIAL_MS = 500 }; /* at the first port of several, and at another */
/* Numbers of refusals: other workers did not join in time; this worker 0 is of another group. */
enum { LATE = 1, ELSEWHERE = 2 };
/* The time that worker 0 has to report which workers are late. */
static const int64_t VERDICT_NS = (int64_t)2 * 1000000000;

/* On the wire. Hosts are little-endian: all machines that we build for are. */
typedef struct hello {
    uint32_t protocol, rank, size;
    uint16_t port, meeting;
    uint64_t host;
    uint64_t pid;
} hello;

typedef struct entry {
    unsigned char address[16]; /* IPv6, or IPv4 mapped into it */
    uint64_t host;
    uint32_t port, pid;
} entry;

/* Worker 0's side, while the group forms. Guests whose hello is complete are workers: they wait for
 * the roster. */
typedef struct meeting {
    const ls_join *j;
    ls_roster *roster;
    ls_guests guests;
    int njoined;
    int64_t end;
} meeting;

uint64_t ls_host_number(void) {
    char id[160] = "";
    /* Set by the launcher: distinguishes hosts that share a kernel. */
    const char *part = getenv("LOCKSTEP_HOST");
    struct stat processes = {0}; /* the namespace in which a process has its number */
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) {
        if (!fgets(id, 64, f)) id[0] = 0;
        fclose(f);
    }
    if (!id[0]) gethostname(id, 63);
    if (stat("/proc/self/ns/pid", &processes) == 0)
        snprintf(id + strlen(id), sizeof id - strlen(id), " %ju", (uintmax_t)processes.st_ino);
    if (part) snprintf(id + strlen(id), sizeof id - strlen(id), " %.40s", part);
    return ls_hash_bytes(id, strlen(id)).lo | 1;
}

static entry pack(const ls_roster_entry *m) {
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

static void unpack(const entry *x, ls_roster_entry *m_p) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    *m_p = (ls_roster_entry){.host = x->host, .pid = (int)x->pid};
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

/* The nonce, and an entry for each worker. */
static size_t roster_nbytes(int size) {
    return 2 * sizeof(uint64_t) + (size_t)size * sizeof(entry);
}

/* ---- worker 0 ---- */

static bool knows(const ls_frame *f) { return f->kind == HELLO && f->nbytes == sizeof(hello); }

static hello hello_of(const ls_guest *g) {
    hello h;
    memcpy(&h, g->payload, sizeof h);
    return h;
}

static bool has_joined(const meeting *h, uint32_t rank, const ls_guest *but) {
    for (int i = 0; i < h->guests.n; i++) {
        const ls_guest *g = &h->guests.all[i];
        if (g != but && g->has_frame && hello_of(g).rank == rank) return true;
    }
    return false;
}

static bool is_elsewhere(const meeting *h, const hello *s) {
    return s->protocol == PROTOCOL && s->meeting != h->j->meeting;
}

static const char *check_hello(const meeting *h, const ls_guest *g) {
    static char why[120];
    const hello s = hello_of(g);
    if (s.protocol != PROTOCOL) {
        snprintf(why, sizeof why,
                 "it uses version %u of the protocol, not %d: another release of Lockstep",
                 s.protocol, PROTOCOL);
        return why;
    }
    if (is_elsewhere(h, &s)) return "it belongs to another group, which meets at another port";
    if ((int)s.size != h->j->size) {
        snprintf(why, sizeof why, "it belongs to a group of %u workers, this one has %d", s.size,
                 h->j->size);
        return why;
    }
    if (s.pid < 1 || s.pid > INT32_MAX) return "it sent an invalid process id";
    if (s.rank < 1 || s.rank >= s.size || s.port < 1) {
        snprintf(why, sizeof why, "it claims to be worker %u of %u that listens on port %u", s.rank,
                 s.size, s.port);
        return why;
    }
    if (!has_joined(h, s.rank, g)) return NULL;
    snprintf(why, sizeof why, "worker %u has already joined", s.rank);
    return why;
}

static void refuse(ls_guest *g, int number, const char *why) {
    ls_frame f = {.kind = REFUSAL, .number = (uint32_t)number, .nbytes = strlen(why)};
    void *token = NULL;
    if (ls_conn_put(g->c, &f, why, strlen(why), NULL, NULL) == LS_IO_DONE)
        ls_conn_flush(g->c, &token, NULL);
}

/* A guest's hello is complete: it joins (true), or it is refused and dropped. */
static bool admit_worker(meeting *h, int i) {
    ls_guest *g = &h->guests.all[i];
    const char *why = check_hello(h, g);
    const hello s = hello_of(g);
    if (why) {
        char line[160];
        snprintf(line, sizeof line, "worker 0 refuses: %s", why);
        refuse(g, is_elsewhere(h, &s) ? ELSEWHERE : 0, line);
        ls_guests_drop(&h->guests, i, why);
        return false;
    }
    ls_roster_entry *m = &h->roster->members[s.rank];
    *m = (ls_roster_entry){.address = g->from, .host = s.host, .pid = (int)s.pid};
    ls_address_set_port(&m->address, (int)s.port);
    h->njoined++;
    return true;
}

/* A worker that has joined has nothing more to send. */
static bool still_waits(meeting *h, int i) {
    ls_frame f;
    ls_io io = ls_conn_next(h->guests.all[i].c, &f, NULL);
    if (io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE) return true;
    h->njoined--;
    ls_guests_drop(&h->guests, i,
                   io == LS_IO_DONE ? "it sent data out of turn" : "it disconnected");
    return false;
}

/* Serves a guest once; false: it was dropped. */
static bool serve_guest(meeting *h, int i) {
    if (h->guests.all[i].has_frame) return still_waits(h, i);
    ls_guest_status status = ls_guests_read(&h->guests, i);
    if (status != LS_GUEST_READY) return status == LS_GUEST_WAITS;
    return admit_worker(h, i);
}

/* " 2 3 5"; the caller frees it. n_p: their number. */
static char *list_missing(const meeting *h, int *n_p) {
    ls_buf ranks = {0};
    int n = 0;
    for (int r = 1; r < h->j->size; r++) {
        bool known = has_joined(h, (uint32_t)r, NULL);
        if (!known && n++ < 16) ls_buf_printf(&ranks, " %d", r);
    }
    if (n > 16) ls_buf_printf(&ranks, " ...");
    *n_p = n;
    return ranks.data;
}

static ls_status fail_missing(const meeting *h, ls_error *e) {
    int n = 0;
    char *ranks = list_missing(h, &n);
    ls_fail(e, LS_ETIMEOUT, "%d of %d workers did not join within %.1f s:%s", n, h->j->size,
            h->j->timeout_s, ranks);
    free(ranks);
    return LS_ETIMEOUT;
}

/* Fails if the worker has ended: the launcher has seen it. */
static ls_status check_ended(const ls_join *j, int rank, ls_error *e) {
    ls_commons_absentee a = {0};
    char text[128];
    if (j->shared_fd > 0) a = ls_commons_absentee_read(j->shared_fd, rank);
    if (!a.pid) return LS_OK;
    return ls_fail(e, LS_EPEER, "worker %d (pid %d) %s", rank, a.pid,
                   ls_commons_absentee_text(&a, text));
}

/* The connection to worker 0 has ended; if the worker has, the launcher sees that soon. */
static ls_status await_worker_0_ended(const ls_join *j, ls_error *e) {
    for (int i = 0; j->shared_fd > 0 && i < 50; i++) {
        LS_TRY(check_ended(j, 0, e));
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return LS_OK;
}

static ls_status check_missing(const meeting *h, ls_error *e) {
    for (int r = 1; r < h->j->size; r++)
        if (!has_joined(h, (uint32_t)r, NULL)) LS_TRY(check_ended(h->j, r, e));
    return LS_OK;
}

static ls_status wait_all(meeting *h, ls_error *e) {
    ls_waiting_report report = ls_waiting_report_begin();
    while (h->njoined < h->j->size - 1) {
        int s = 0, n = 0;
        ls_guests_wait(&h->guests, -1, 100);
        for (int i = 0; i < h->guests.n;) i += serve_guest(h, i);
        if (h->njoined == h->j->size - 1) break;
        LS_TRY(check_missing(h, e));
        if (h->end >= 0 && ls_clock_ns() > h->end) return fail_missing(h, e);
        if (!ls_waiting_report_due(&report, &s)) continue;
        char *ranks = list_missing(h, &n);
        ls_log_at_once("worker 0 has waited %d s for %d of %d workers to join:%s", s, n, h->j->size,
                       ranks);
        free(ranks);
    }
    return LS_OK;
}

/* When the time to join that begins now is over; -1: never. */
static int64_t end_of(const ls_join *j) {
    return j->timeout_s >= 0 ? ls_clock_ns() + ls_clock_ns_of(j->timeout_s) : -1;
}

/* Sends a frame to all workers that have joined: until the kernel has it, 5 s at most. */
static void send_to_all(meeting *h, const ls_frame *f, const void *data) {
    int64_t end = ls_clock_ns() + (int64_t)5 * 1000000000;
    const ls_guests *gs = &h->guests;
    for (int i = 0; i < gs->n; i++)
        if (gs->all[i].has_frame) ls_conn_put(gs->all[i].c, f, data, f->nbytes, h, NULL);
    for (int i = 0; i < gs->n; i++)
        while (ls_conn_busy(gs->all[i].c) && ls_clock_ns() < end) {
            void *token = NULL;
            ls_io io = ls_conn_flush(gs->all[i].c, &token, NULL);
            if (io == LS_IO_FAILED || io == LS_IO_CLOSED) break;
            if (io != LS_IO_DONE) ls_conn_await(gs->all[i].c, LS_IO_AGAIN_WRITE);
        }
}

static ls_status host_group(const ls_join *j, ls_roster *r, ls_error *e) {
    meeting h = {.j = j, .roster = r, .end = end_of(j)};
    ls_guests_options o = {.listen_fd = r->listen_fd,
                           .key = j->key,
                           .knows = knows,
                           .why_rejected = "it sent no valid hello",
                           .most = MAX_GUESTS};
    ls_guests_open(&h.guests, &o);
    ls_status s = wait_all(&h, e);
    if (s == LS_OK) {
        size_t n = roster_nbytes(j->size);
        unsigned char *text = ls_alloc(n);
        memcpy(text, r->nonce, sizeof r->nonce);
        for (int i = 0; i < j->size; i++) {
            entry x = pack(&r->members[i]);
            memcpy(text + sizeof r->nonce + (size_t)i * sizeof x, &x, sizeof x);
        }
        send_to_all(&h, &(ls_frame){.kind = ROSTER, .nbytes = n}, text);
        free(text);
    } else {
        ls_frame f = {.kind = REFUSAL, .nbytes = strlen(e->msg)};
        if (e->code == LS_ETIMEOUT) f.number = LATE;
        send_to_all(&h, &f, e->msg);
    }
    ls_guests_close(&h.guests);
    return s;
}

/* ---- the others ---- */

/* The search of a worker for its worker 0. A port may be that of another program, which does not
 * complete the handshake, or of another group's worker 0, which refuses with ELSEWHERE: then the
 * next port is tried. */
typedef struct search {
    const ls_join *j;
    struct sockaddr_storage from; /* this host's address to connect from */
    int64_t end;                  /* -1: there is no limit */
    int64_t handshake_ns;         /* the limit for a port of several; doubled in each round */
    int port;                     /* that is tried now */
    int refused;                  /* errno of the last port at which nobody answered */
    bool decided;                 /* the group's worker 0 has answered */
} search;

/* A worker 0 that listens already is reached within this time, or there is no way to it: as long as
 * TCP tries (ls_socket_options()). */
static const double REACH_S = 15;
/* How long the handshake at a port of several may take at first. */
static const int64_t HANDSHAKE_NS = (int64_t)3 * 1000000000;

static bool is_over(int64_t end) { return end >= 0 && ls_clock_ns() > end; }

/* Sends the hello, and receives the roster or a refusal. Worker 0's limit began before it read the
 * hello; only worker 0 knows which workers are late. */
static ls_status greet(const search *x, ls_visit *v, ls_error *e) {
    const ls_join *j = x->j;
    int64_t began = ls_clock_ns(), end = x->end;
    bool sent = false;
    for (ls_io io; (io = ls_visit_continue(v, e)) != LS_IO_DONE; ls_conn_await(v->c, io)) {
        if (io == LS_IO_FAILED || io == LS_IO_CLOSED) return LS_EPEER;
        if (v->sent && !sent && end >= 0) end = end_of(j) + VERDICT_NS;
        sent = v->sent;
        bool slow = !sent && j->nports > 1 && ls_clock_ns() > began + x->handshake_ns;
        if (slow || is_over(end))
            return ls_fail(e, LS_ETIMEOUT, "worker %d: no %s worker 0 at %.200s:%d within %.1f s",
                           j->rank, sent ? "answer from" : "handshake with", j->host, x->port,
                           slow ? (double)x->handshake_ns / 1e9 : j->timeout_s);
    }
    return LS_OK;
}

/* Reads worker 0's answer. */
static ls_status read_roster(search *x, const ls_visit *v, ls_roster *r, ls_error *e) {
    const ls_join *j = x->j;
    const unsigned char *text = v->text;
    x->decided = v->answer.kind != REFUSAL || v->answer.number != ELSEWHERE;
    if (v->answer.kind == REFUSAL && v->answer.nbytes < sizeof e->msg)
        return ls_fail(e, v->answer.number == LATE ? LS_ETIMEOUT : LS_EPEER, "%.*s",
                       (int)v->answer.nbytes, (const char *)text);
    if (v->answer.kind != ROSTER || v->answer.nbytes != roster_nbytes(j->size))
        return ls_fail(e, LS_EPEER, "worker 0 at %.200s:%d sent a malformed answer", j->host,
                       x->port);
    memcpy(r->nonce, text, sizeof r->nonce);
    for (int i = 0; i < j->size; i++) {
        entry m;
        memcpy(&m, text + sizeof r->nonce + (size_t)i * sizeof m, sizeof m);
        if (m.port < 1 || m.port > 65535 || m.pid < 1 || m.pid > INT32_MAX)
            return ls_fail(e, LS_EPEER,
                           "worker 0 at %.200s:%d says that worker %d is process %u, at port %u",
                           j->host, x->port, i, m.pid, m.port);
        unpack(&m, &r->members[i]);
    }
    return LS_OK;
}

/* Worker 0 does not know its own address; a worker that has reached it does. Others of its host may
 * have reached it through the loopback. */
static void set_first_host(ls_roster *r, const struct sockaddr_storage *at) {
    for (int i = 0; i < r->size; i++) {
        ls_roster_entry *m = &r->members[i];
        bool beside = m->host == r->members[0].host && ls_address_is_loopback(&m->address) &&
                      !ls_address_is_loopback(at);
        int port = ls_address_port(&m->address);
        if (i > 0 && !beside) continue;
        m->address = *at;
        ls_address_set_port(&m->address, port);
    }
}

/* Joins the group through a connection to its worker 0. */
static ls_status visit(search *x, int fd, ls_roster *r, ls_error *e) {
    const ls_join *j = x->j;
    hello h = {.protocol = PROTOCOL, .rank = (uint32_t)j->rank, .size = (uint32_t)j->size};
    size_t room = roster_nbytes(j->size) > sizeof e->msg ? roster_nbytes(j->size) : sizeof e->msg;
    struct sockaddr_storage first = {0};
    ls_visit v = {.request = {.kind = HELLO, .nbytes = sizeof h}, .data = &h, .room = room};
    v.key = j->key;
    if (ls_socket_peer(fd, &first)) v.to = &first;
    LS_TRY(ls_conn_new(fd, false, j->key, &v.c, e));
    v.text = ls_alloc(room);
    ls_status s = ls_door_other(fd, &r->listen_fd, e);
    h.host = ls_host_number();
    h.pid = (uint64_t)getpid();
    h.meeting = (uint16_t)j->meeting;
    h.port = s == LS_OK ? (uint16_t)ls_socket_port(r->listen_fd) : 0;
    if (s == LS_OK) s = greet(x, &v, e);
    if (s == LS_OK) s = read_roster(x, &v, r, e);
    struct sockaddr_storage first_at;
    if (s == LS_OK && ls_socket_peer(v.c->fd, &first_at)) set_first_host(r, &first_at);
    ls_conn_free(v.c);
    free(v.text);
    if (s != LS_OK && r->listen_fd >= 0) {
        close(r->listen_fd);
        r->listen_fd = -1;
    }
    return s;
}

/* Connects to x->port. *fd_p: -1, nobody listens there. LS_EINVAL: worker 0's address can't be
 * looked up. */
static ls_status dial(search *x, int *fd_p, ls_error *e) {
    struct addrinfo *list = NULL;
    const char *why = ls_address_look_up(x->j->host, x->port, 0, &list);
    *fd_p = -1;
    if (why) return ls_fail(e, LS_EINVAL, "worker 0's address '%.200s': %s", x->j->host, why);
    *fd_p = ls_socket_reach(list, &x->from, x->port == x->j->port ? DIAL_MS : OTHER_DIAL_MS);
    if (*fd_p < 0) x->refused = errno;
    freeaddrinfo(list);
    return LS_OK;
}

static ls_status no_worker_0(const search *x, ls_error *e) {
    const ls_join *j = x->j;
    char last[16] = "", why[96] = "";
    if (x->refused == ETIMEDOUT)
        snprintf(why, sizeof why, ": nothing answers there; a firewall may drop connections");
    else if (x->refused && x->refused != ECONNREFUSED)
        snprintf(why, sizeof why, ": %.80s", strerror(x->refused));
    if (j->nports > 1) snprintf(last, sizeof last, " to %d", j->port + j->nports - 1);
    return ls_fail(e, LS_ETIMEOUT,
                   "worker %d: worker 0 did not listen at %.200s:%d%s within %.1f s%s", j->rank,
                   j->host, j->port, last, j->timeout_s, why);
}

static ls_status not_reached(const search *x, ls_error *e) {
    const ls_join *j = x->j;
    if (ls_unreached_is_network(x->refused)) ls_unreached_note(0);
    return ls_fail(e, LS_EPEER, "worker %d can't reach worker 0 at %.200s:%d: %s%s", j->rank,
                   j->host, j->port, strerror(x->refused),
                   x->refused == ETIMEDOUT ? " (a firewall may drop what is sent to this port)"
                                           : "");
}

/* Tries all ports once. LS_OK: this worker has joined. *met_p: a process listened at a port, this
 * time or before; then *e says why the latest visit failed, else why no port could be tried. */
static ls_status search_once(search *x, ls_roster *r, bool *met_p, ls_error *e) {
    ls_status s = LS_EPEER;
    for (int i = 0; i < x->j->nports && s != LS_OK && !x->decided; i++) {
        int fd = -1;
        ls_error why = {0};
        x->port = x->j->port + i;
        s = dial(x, &fd, &why);
        if (fd >= 0) {
            *met_p = true;
            s = visit(x, fd, r, &why);
        }
        if (fd >= 0 || !*met_p) *e = why;
        if (fd < 0) s = LS_EPEER;
    }
    return s;
}

/* Worker 0 may start later than this one: tries again, at growing intervals. */
static ls_status visit_group(const ls_join *j, ls_roster *r, ls_error *e) {
    search x = {.j = j, .end = end_of(j), .handshake_ns = HANDSHAKE_NS};
    int64_t pause = 5000000, longest = 250000000;
    ls_waiting_report report = ls_waiting_report_begin();
    ls_error why = {0};
    bool met = false;
    int64_t reach_end = ls_clock_ns() + ls_clock_ns_of(REACH_S);
    LS_TRY(ls_door_configured(&x.from, e));
    while (search_once(&x, r, &met, &why) != LS_OK) {
        bool over = is_over(x.end);
        int s = 0;
        LS_TRY(check_ended(j, 0, e));
        if (j->listens && !met && x.refused && is_over(reach_end)) return not_reached(&x, e);
        if (!met && !over && ls_waiting_report_due(&report, &s))
            ls_log_at_once("worker %d has waited %d s for worker 0 to listen at %.200s:%d", j->rank,
                           s, j->host, j->port);
        if (over && why.code == LS_OK) return no_worker_0(&x, e);
        if (over || x.decided || (met && j->nports == 1)) {
            if (why.code == LS_EPEER && !x.decided) LS_TRY(await_worker_0_ended(j, e));
            *e = why;
            return why.code;
        }
        if (met) longest = 1000000000;
        x.handshake_ns *= 2;
        nanosleep(&(struct timespec){.tv_sec = pause / 1000000000, .tv_nsec = pause % 1000000000},
                  NULL);
        pause = pause * 3 / 2 < longest ? pause * 3 / 2 : longest;
    }
    return LS_OK;
}

ls_status ls_join_run(const ls_join *j, ls_roster *r_p, ls_error *e) {
    ls_error own;
    if (!e) e = &own;
    ls_roster r = {.size = j->size, .listen_fd = -1};
    r.members = LS_NEW_ARRAY(ls_roster_entry, (size_t)j->size);
    ls_status s = LS_OK;
    if (j->rank) {
        s = visit_group(j, &r, e);
    } else {
        r.listen_fd = j->inherited_fd;
        if (r.listen_fd >= 0)
            ls_socket_flags(r.listen_fd);
        else
            s = ls_door_first(j->host, j->port, j->nports, &r.listen_fd, e);
        if (getrandom(r.nonce, sizeof r.nonce, 0) != (ssize_t)sizeof r.nonce)
            s = ls_fail(e, LS_EIO, "no random numbers: %s", strerror(errno));
        ls_roster_entry *me = &r.members[0];
        *me = (ls_roster_entry){.host = ls_host_number(), .pid = getpid()};
        me->address.ss_family = AF_INET;
        if (s == LS_OK) ls_address_set_port(&me->address, ls_socket_port(r.listen_fd));
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
