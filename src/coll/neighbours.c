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
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/tcp/door.h"
#include "net/tcp/watch.h"

/* ---- messages, one at a time ---- */

static ls_status wait_message(ls_endpoint *p, ls_message *m, int64_t timeout_ns, ls_error *e) {
    int64_t end = ls_clock_ns() + timeout_ns;
    for (;;) {
        ls_message *done = NULL;
        LS_TRY(p->net->ops->poll(p->net, 10000000, &done, e));
        if (done == m) break;
        if (timeout_ns >= 0 && ls_clock_ns() > end) {
            p->net->ops->forget(p->net, m);
            return ls_fail(e, LS_ETIMEOUT,
                           "worker %d waited %.1f s for worker %d, to set the group up", p->rank,
                           (double)timeout_ns / 1e9, m->peer);
        }
    }
    return LS_OK;
}

static ls_status tell(ls_endpoint *p, int peer, uint32_t what, const void *data, size_t n,
                      int64_t timeout_ns, ls_error *e) {
    ls_message m = {.peer = peer, .tag = ls_net_tag(LS_SET_UP, what, 0), .nbytes = n};
    m.data = (void *)(uintptr_t)data;
    m.owner = &m;
    LS_TRY(p->net->ops->send(p->net, &m, e));
    return wait_message(p, &m, timeout_ns, e);
}

static ls_status hear(ls_endpoint *p, int peer, uint32_t what, void *data, size_t n,
                      int64_t timeout_ns, ls_error *e) {
    ls_message m = {.peer = peer, .tag = ls_net_tag(LS_SET_UP, what, 0), .data = data, .nbytes = n};
    m.owner = &m;
    LS_TRY(p->net->ops->recv(p->net, &m, e));
    LS_TRY(wait_message(p, &m, timeout_ns, e));
    return m.their_nbytes == n ? LS_OK
                               : ls_fail(e, LS_EPEER, "worker %d is of another version", peer);
}

enum { HOST, HOSTS, PLACE, OPENED, VERDICT, DOOR, DOORS };

/* all [size][n]: of each worker, of which this one has filled in its own. */
static ls_status exchange(ls_endpoint *p, uint32_t to_first, uint32_t to_all, void *all, size_t n,
                          int64_t timeout_ns, ls_error *e) {
    unsigned char *at = all;
    if (p->rank) {
        LS_TRY(tell(p, 0, to_first, at + (size_t)p->rank * n, n, timeout_ns, e));
        return hear(p, 0, to_all, all, (size_t)p->size * n, timeout_ns, e);
    }
    for (int i = 1; i < p->size; i++)
        LS_TRY(hear(p, i, to_first, at + (size_t)i * n, n, timeout_ns, e));
    for (int i = 1; i < p->size; i++)
        LS_TRY(tell(p, i, to_all, all, (size_t)p->size * n, timeout_ns, e));
    return LS_OK;
}

/* ---- who is on which host ---- */

ls_status ls_neighbours_find(ls_endpoint *p, uint64_t number, int64_t timeout_ns, ls_error *e) {
    uint64_t *all = LS_NEW_ARRAY(uint64_t, (size_t)p->size);
    all[p->rank] = number;
    ls_status s = exchange(p, HOST, HOSTS, all, sizeof *all, timeout_ns, e);
    for (int i = 0; i < p->size && s == LS_OK; i++) {
        p->hosts[i] = i;
        for (int k = i - 1; k >= 0; k--)
            if (all[k] == all[i]) p->hosts[i] = p->hosts[k];
    }
    free(all);
    return s;
}

/* ---- sharing ---- */

/* Where the memory is: a descriptor of a process. fd -1: there is none. */
typedef struct place {
    int32_t pid, fd;
} place;

static bool open_place(const place *where, int rank, ls_commons *c) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", where->pid, where->fd);
    int fd = where->fd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    if (ls_commons_join(fd, rank, c, NULL) == LS_OK) return true;
    close(fd);
    return false;
}

/* The first of a host: makes it, hears from all whether they have it, and tells all. */
static ls_status make_commons(ls_endpoint *p, const int *here, int n, size_t arena,
                              int64_t timeout_ns, ls_commons *c, bool *all_p, ls_error *e) {
    place where = {.pid = getpid(), .fd = -1};
    bool made = ls_commons_create(n, arena, false, c, NULL) == LS_OK;
    if (made) where.fd = c->fd;
    int32_t all = made;
    for (int i = 1; i < n; i++)
        LS_TRY(tell(p, here[i], PLACE, &where, sizeof where, timeout_ns, e));
    for (int i = 1; i < n; i++) {
        int32_t has = 0;
        LS_TRY(hear(p, here[i], OPENED, &has, sizeof has, timeout_ns, e));
        all = all && has;
    }
    for (int i = 1; i < n; i++) LS_TRY(tell(p, here[i], VERDICT, &all, sizeof all, timeout_ns, e));
    if (made) atomic_store(&ls_commons_worker_of(c, 0)->pid, getpid());
    *all_p = all;
    return LS_OK;
}

static ls_status join_commons(ls_endpoint *p, int first, int rank, int64_t timeout_ns,
                              ls_commons *c, bool *all_p, ls_error *e) {
    place where = {0};
    int32_t all = 0;
    LS_TRY(hear(p, first, PLACE, &where, sizeof where, timeout_ns, e));
    int32_t has = open_place(&where, rank, c);
    LS_TRY(tell(p, first, OPENED, &has, sizeof has, timeout_ns, e));
    LS_TRY(hear(p, first, VERDICT, &all, sizeof all, timeout_ns, e));
    *all_p = all;
    return LS_OK;
}

ls_status ls_neighbours_share(ls_endpoint *p, size_t arena_nbytes, int64_t timeout_ns,
                              ls_error *e) {
    int *here = LS_NEW_ARRAY(int, (size_t)p->size), n = 0, me = 0;
    for (int i = 0; i < p->size; i++) {
        if (p->hosts[i] != p->hosts[p->rank]) continue;
        if (i == p->rank) me = n;
        here[n++] = i;
    }
    ls_commons *c = LS_NEW(ls_commons);
    ls_status s = LS_OK;
    bool all = false;
    c->fd = -1;
    if (n > 1 && me == 0) s = make_commons(p, here, n, arena_nbytes, timeout_ns, c, &all, e);
    if (n > 1 && me > 0) s = join_commons(p, here[0], me, timeout_ns, c, &all, e);
    if (s == LS_OK && all) {
        p->commons = c;
        for (int i = 0; i < n; i++) p->local[here[i]] = i;
    } else {
        ls_commons_close(c);
        free(c);
    }
    free(here);
    return s;
}

/* ---- who answers ---- */

/* Where one listens; of worker 0's, the secrets count for all. */
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
    struct sockaddr_storage told;
    LS_TRY(ls_door_told(&told, e));
    find_address(&d->address);
    if (told.ss_family != AF_UNSPEC && !ls_address_is_any(&told)) d->address = told;
    LS_TRY(ls_socket_listen(&d->address, fd_p, e));
    ls_address_set_port(&d->address, ls_socket_port(*fd_p));
    return LS_OK;
}

ls_status ls_neighbours_watch(ls_endpoint *p, int64_t timeout_ns, ls_error *e) {
    door *all = LS_NEW_ARRAY(door, (size_t)p->size);
    ls_roster r = {.size = p->size, .listen_fd = -1};
    ls_error own;
    ls_status mine = open_door(&all[p->rank], &r.listen_fd, &own); /* others wait for it anyway */
    ls_status s = exchange(p, DOOR, DOORS, all, sizeof *all, timeout_ns, e);
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
