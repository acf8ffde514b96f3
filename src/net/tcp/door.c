/* door.c - see door.h. */
#include "net/tcp/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"

static struct sockaddr_storage address_of(const struct addrinfo *a) {
    struct sockaddr_storage x = {0};
    memcpy(&x, a->ai_addr, a->ai_addrlen < sizeof x ? a->ai_addrlen : sizeof x);
    return x;
}

/* "localhost" and numeric addresses mean the same on every host. Another name may be the loopback
 * here only: Debian's /etc/hosts gives a host's own name the address 127.0.1.1. */
static bool means_the_same_everywhere(const char *host) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *list = NULL;
    size_t n = strlen(host), tail = sizeof ".localhost" - 1;
    if (strcasecmp(host, "localhost") == 0 || strcasecmp(host, "ip6-localhost") == 0) return true;
    if (n > tail && strcasecmp(host + n - tail, ".localhost") == 0) return true;
    if (getaddrinfo(host, NULL, &hints, &list) != 0) return false;
    freeaddrinfo(list);
    return true;
}

/* Has this host the address? A card that is down keeps it. */
static bool is_own(struct sockaddr_storage at) {
    int fd = -1;
    ls_address_set_port(&at, 0);
    if (ls_socket_listen(&at, &fd, NULL) != LS_OK) return false;
    close(fd);
    return true;
}

ls_status ls_door_configured(struct sockaddr_storage *a_p, ls_error *e) {
    const char *configured = getenv("LOCKSTEP_LISTEN");
    struct addrinfo *list = NULL;
    *a_p = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (!configured || !*configured) return LS_OK;
    const char *why = ls_address_look_up(configured, 0, AI_PASSIVE, &list);
    if (why) return ls_fail(e, LS_EINVAL, "LOCKSTEP_LISTEN is '%.200s': %s", configured, why);
    const struct addrinfo *own = list;
    while (own && !is_own(address_of(own))) own = own->ai_next;
    *a_p = address_of(own ? own : list);
    freeaddrinfo(list);
    return LS_OK;
}

/* Listens at the first port, from that of `at` on, that is not in use. LS_EIO, with errno: there is
 * none, or this host does not have the address. */
static ls_status listen_at_free(struct sockaddr_storage *at, int nports, int *fd_p, ls_error *e) {
    int first = ls_address_port(at);
    ls_status s = LS_EIO;
    for (int i = 0; i < nports; i++) {
        ls_address_set_port(at, first + i);
        s = ls_socket_listen(at, fd_p, e);
        if (s == LS_OK || errno != EADDRINUSE) return s;
    }
    if (nports > 1) {
        char text[80];
        ls_address_set_port(at, first);
        ls_address_text(at, text, sizeof text);
        ls_fail(e, LS_EIO,
                "can't listen at %s, nor at the %d ports after it: other programs use them", text,
                nports - 1);
        errno = EADDRINUSE;
    }
    return s;
}

/* Listens at the first address of the list that this host has. LS_ETIMEOUT: it has none of them. */
static ls_status listen_at_own(const struct addrinfo *list, bool loopback_too, int nports,
                               int *fd_p, ls_error *e) {
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        struct sockaddr_storage at = address_of(a);
        if (!loopback_too && ls_address_is_loopback(&at)) continue;
        if (listen_at_free(&at, nports, fd_p, e) == LS_OK) return LS_OK;
        if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return LS_EIO;
    }
    return LS_ETIMEOUT;
}

static bool is_same(const struct addrinfo *a, const struct addrinfo *b) {
    return a->ai_addrlen == b->ai_addrlen && memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen) == 0;
}

/* How many of the list's addresses this host has, but for loopbacks. */
static int count_own(const struct addrinfo *list, struct sockaddr_storage *any_p) {
    int n = 0;
    for (const struct addrinfo *a = list, *b = list; a; a = a->ai_next, b = list) {
        struct sockaddr_storage at = address_of(a);
        while (b != a && !is_same(a, b)) b = b->ai_next;
        if (b != a || ls_address_is_loopback(&at) || !is_own(at)) continue;
        if (at.ss_family == AF_INET6 || n == 0) any_p->ss_family = at.ss_family;
        n++;
    }
    return n;
}

/* Listens at all addresses of this host. */
static ls_status listen_at_all(struct sockaddr_storage any, int port, int nports, int *fd_p,
                               ls_error *e) {
    ls_address_set_port(&any, port);
    return listen_at_free(&any, nports, fd_p, e);
}

ls_status ls_door_first(const char *host, int port, int nports, int *fd_p, ls_error *e) {
    struct sockaddr_storage at;
    struct addrinfo *list = NULL;
    LS_TRY(ls_door_configured(&at, e));
    if (at.ss_family != AF_UNSPEC) {
        ls_address_set_port(&at, port);
        return listen_at_free(&at, nports, fd_p, e);
    }
    const char *why = ls_address_look_up(host, port, 0, &list);
    if (why) return ls_fail(e, LS_EINVAL, "worker 0's address '%.200s': %s", host, why);
    at = (struct sockaddr_storage){.ss_family = (sa_family_t)list->ai_family};
    int nown = count_own(list, &at);
    ls_status s = LS_ETIMEOUT;
    if (nown < 2) s = listen_at_own(list, means_the_same_everywhere(host), nports, fd_p, e);
    freeaddrinfo(list);
    if (s != LS_ETIMEOUT) return s;
    LS_TRY(listen_at_all(at, port, nports, fd_p, e));
    ls_log("worker 0 listens at all addresses of this host, port %d: '%.200s' is %s; set "
           "LOCKSTEP_LISTEN=ADDRESS to choose one",
           ls_socket_port(*fd_p), host,
           nown > 1 ? "several of them, and some may lead nowhere"
                    : "not an address of this host that other hosts can reach");
    return LS_OK;
}

ls_status ls_door_other(int reached, int *fd_p, ls_error *e) {
    struct sockaddr_storage at;
    LS_TRY(ls_door_configured(&at, e));
    if (at.ss_family == AF_UNSPEC && !ls_socket_own(reached, &at))
        return ls_fail(e, LS_EPEER, "the connection to worker 0 is lost: %s", strerror(errno));
    ls_address_set_port(&at, 0);
    return ls_socket_listen(&at, fd_p, e);
}
