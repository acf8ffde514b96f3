/* neighbours.c - see neighbours.h. */
#include "coll/neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/tcp/door.h"
#include "net/tcp/watch.h"

/* ---- messages, one at a time ---- */

/* The line to another worker, over the endpoint's transport. */
typedef struct line {
    ls_endpoint *p;
    int peer;
    int64_t timeout_ns; /* of each message */
} line;

static ls_status wait_message(const line *l, ls_message *m, ls_error *e) {
    ls_net *net = l->p->net;
    int64_t end = ls_clock_ns() + l->timeout_ns;
    for (;;) {
        ls_message *done = NULL;
        LS_TRY(net->ops->poll(net, 10000000, &done, e));
        if (done == m) break;
        if (l->timeout_ns >= 0 && ls_clock_ns() > end) {
            net->ops->forget(net, m);
            return ls_fail(e, LS_ETIMEOUT,
                           "worker %d waited %.1f s for worker %d while the group was set up",
                           net->rank, (double)l->timeout_ns / 1e9, l->peer);
        }
    }
    return LS_OK;
}

/* The kinds of messages: each is sent once between two workers. */
enum { HOST, HOSTS, PLACE, OPENED, VERDICT, DOOR, DOORS };

static ls_status send_to(line l, uint32_t what, const void *data, size_t n, ls_error *e) {
    ls_message m = {.peer = l.peer, .tag = ls_net_tag(LS_SET_UP, what, 0), .nbytes = n};
    m.data = (void *)(uintptr_t)data;
    m.owner = &m;
    LS_TRY(l.p->net->ops->send(l.p->net, &m, e));
    return wait_message(&l, &m, e);
}

static ls_status receive_from(line l, uint32_t what, void *data, size_t n, ls_error *e) {
    ls_message m = {
        .peer = l.peer, .tag = ls_net_tag(LS_SET_UP, what, 0), .data = data, .nbytes = n};
    m.owner = &m;
    LS_TRY(l.p->net->ops->recv(l.p->net, &m, e));
    LS_TRY(wait_message(&l, &m, e));
    return m.their_nbytes == n ? LS_OK
                               : ls_fail(e, LS_EPEER, "worker %d runs another version", l.peer);
}

/* Values of all workers, which every worker receives by way of worker 0. */
typedef struct collected {
    uint32_t to_first, to_all; /* the kinds of the messages */
    void *all;                 /* [size][nbytes]; this worker's own is filled in before */
    size_t nbytes;
} collected;

static ls_status exchange(ls_endpoint *p, const collected *c, int64_t timeout_ns, ls_error *e) {
    unsigned char *at = c->all;
    size_t n = c->nbytes, nall = (size_t)p->size * n;
    line first = {p, 0, timeout_ns};
    if (p->rank) {
        LS_TRY(send_to(first, c->to_first, at + (size_t)p->rank * n, n, e));
        return receive_from(first, c->to_all, at, nall, e);
    }
    for (int i = 1; i < p->size; i++)
        LS_TRY(receive_from((line){p, i, timeout_ns}, c->to_first, at + (size_t)i * n, n, e));
    for (int i = 1; i < p->size; i++)
        LS_TRY(send_to((line){p, i, timeout_ns}, c->to_all, at, nall, e));
    return LS_OK;
}

/* ---- which worker is on which host ---- */

ls_status ls_neighbours_find(ls_endpoint *p, uint64_t number, int64_t timeout_ns, ls_error *e) {
    uint64_t *all = LS_NEW_ARRAY(uint64_t, (size_t)p->size);
    all[p->rank] = number;
    ls_status s = exchange(p, &(collected){HOST, HOSTS, all, sizeof *all}, timeout_ns, e);
    for (int i = 0; i < p->size && s == LS_OK; i++) {
        p->hosts[i] = i;
        for (int k = i - 1; k >= 0; k--)
            if (all[k] == all[i]) p->hosts[i] = p->hosts[k];
    }
    free(all);
    return s;
}

/* ---- sharing ---- */

/* Where the memory is: a descriptor of a process. fd -1: there is none. The inode tells it from
 * what another process has that has this number in another container. */
typedef struct place {
    int32_t pid, fd;
    uint64_t inode;
} place;

static uint64_t inode_of(int fd) {
    struct stat file = {0};
    return fstat(fd, &file) == 0 ? (uint64_t)file.st_ino : 0;
}

static bool open_place(const place *where, int rank, ls_commons *c) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", where->pid, where->fd);
    int fd = where->fd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    if (inode_of(fd) == where->inode && ls_commons_join(fd, rank, c, NULL) == LS_OK) return true;
    close(fd);
    return false;
}

/* The workers of this host. */
typedef struct host {
    ls_endpoint *p;
    int *here; /* [n] their ranks */
    int n, me;
    int64_t timeout_ns;
} host;

static line line_to(const host *h, int i) { return (line){h->p, h->here[i], h->timeout_ns}; }

/* The first worker of a host makes the memory, asks the others whether they have opened it, and
 * sends them the verdict. *all_p: all have. */
static ls_status make_commons(const host *h, size_t arena_nbytes, ls_commons *c, bool *all_p,
                              ls_error *e) {
    place where = {.pid = getpid(), .fd = -1};
    bool made = ls_commons_create(h->n, arena_nbytes, false, c, NULL) == LS_OK;
    if (made) where = (place){getpid(), c->fd, inode_of(c->fd)};
    int32_t all = made;
    for (int i = 1; i < h->n; i++) LS_TRY(send_to(line_to(h, i), PLACE, &where, sizeof where, e));
    for (int i = 1; i < h->n; i++) {
        int32_t has = 0;
        LS_TRY(receive_from(line_to(h, i), OPENED, &has, sizeof has, e));
        all = all && has;
    }
    for (int i = 1; i < h->n; i++) LS_TRY(send_to(line_to(h, i), VERDICT, &all, sizeof all, e));
    if (made) atomic_store(&ls_commons_worker_of(c, 0)->pid, getpid());
    *all_p = all;
    return LS_OK;
}

static ls_status join_commons(const host *h, ls_commons *c, bool *all_p, ls_error *e) {
    place where = {0};
    int32_t all = 0;
    LS_TRY(receive_from(line_to(h, 0), PLACE, &where, sizeof where, e));
    int32_t has = open_place(&where, h->me, c);
    LS_TRY(send_to(line_to(h, 0), OPENED, &has, sizeof has, e));
    LS_TRY(receive_from(line_to(h, 0), VERDICT, &all, sizeof all, e));
    *all_p = all;
    return LS_OK;
}

ls_status ls_neighbours_share(ls_endpoint *p, size_t arena_nbytes, int64_t timeout_ns,
                              ls_error *e) {
    host h = {.p = p, .here = LS_NEW_ARRAY(int, (size_t)p->size), .timeout_ns = timeout_ns};
    for (int i = 0; i < p->size; i++) {
        if (p->hosts[i] != p->hosts[p->rank]) continue;
        if (i == p->rank) h.me = h.n;
        h.here[h.n++] = i;
    }
    ls_commons *c = LS_NEW(ls_commons);
    ls_status s = LS_OK;
    bool all = false;
    c->fd = -1;
    if (h.n > 1 && h.me == 0) s = make_commons(&h, arena_nbytes, c, &all, e);
    if (h.n > 1 && h.me > 0) s = join_commons(&h, c, &all, e);
    if (s == LS_OK && all) {
        p->commons = c;
        for (int i = 0; i < h.n; i++) p->local[h.here[i]] = i;
    } else {
        ls_commons_close(c);
        free(c);
    }
    free(h.here);
    return s;
}

/* ---- the thread that answers ---- */

/* Where a worker listens. The nonce and the key of worker 0 are used by all. */
typedef struct door {
    struct sockaddr_storage address;
    uint64_t nonce[2];
    ls_key key;
    int32_t pid;
} door;

/* An address of this host by which others may reach it: not the loopback, if there is another. */
static void find_address(struct sockaddr_storage *a_p) {
    struct ifaddrs *all = NULL;
    int best = 0;
    *(struct sockaddr_in *)a_p = (struct sockaddr_in){.sin_family = AF_INET};
    ((struct sockaddr_in *)a_p)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;
        if (!(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK) continue;
        bool routed = family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
        int good = family == AF_INET ? 2 : routed;
        if (good && i->ifa_flags & IFF_RUNNING) good += 2; /* the card has a carrier */
        if (good <= best) continue;
        best = good;
        memcpy(a_p, i->ifa_addr, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof *in6);
    }
    freeifaddrs(all);
}

static ls_status open_door(door *d, int *fd_p, ls_error *e) {
    *d = (door){.pid = getpid()};
    if (getrandom(d->nonce, sizeof d->nonce, 0) != (ssize_t)sizeof d->nonce ||
        getrandom(&d->key, sizeof d->key, 0) != (ssize_t)sizeof d->key)
        return ls_fail(e, LS_EIO, "no random numbers: %s", strerror(errno));
    struct sockaddr_storage configured;
    LS_TRY(ls_door_configured(&configured, e));
    find_address(&d->address);
    if (configured.ss_family != AF_UNSPEC && !ls_address_is_any(&configured))
        d->address = configured;
    LS_TRY(ls_socket_listen(&d->address, fd_p, e));
    ls_address_set_port(&d->address, ls_socket_port(*fd_p));
    return LS_OK;
}

ls_status ls_neighbours_watch(ls_endpoint *p, int64_t timeout_ns, ls_error *e) {
    door *all = LS_NEW_ARRAY(door, (size_t)p->size);
    ls_roster r = {.size = p->size, .listen_fd = -1};
    ls_error own;
    ls_status mine = open_door(&all[p->rank], &r.listen_fd, &own); /* others wait for it anyway */
    ls_status s = exchange(p, &(collected){DOOR, DOORS, all, sizeof *all}, timeout_ns, e);
    if (s == LS_OK && mine != LS_OK) {
        s = mine;
        if (e) *e = own;
    }
    r.members = LS_NEW_ARRAY(ls_roster_entry, (size_t)p->size);
    for (int i = 0; i < p->size; i++)
        r.members[i] = (ls_roster_entry){all[i].address, (uint64_t)p->hosts[i] + 1, all[i].pid};
    memcpy(r.nonce, all[0].nonce, sizeof r.nonce);
    if (s == LS_OK) {
        s = ls_watch_start(&r, p->rank, &all[0].key, &p->watch, e);
        r.listen_fd = -1; /* the thread's now */
    }
    p->net->watch = p->watch;
    ls_roster_free(&r);
    for (int i = 0; i < p->size; i++) ls_key_wipe(&all[i].key);
    free(all);
    return s;
}
