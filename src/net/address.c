/* address.c - see address.h. */
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/listen.h"

/* ---- addresses ---- */

ls_status ls_address_parse(const char *text, ls_address *a_p, ls_error *e) {
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    long port = digits > 0 && digits < 6 && !colon[1 + digits] ? strtol(colon + 1, NULL, 10) : 0;
    if (n >= sizeof a_p->host || port < 1 || port > 65535)
        return ls_fail(e, LS_EINVAL, "'%.200s' is not an address; expected HOST:PORT", text);
    bool brackets = n >= 2 && text[0] == '[' && text[n - 1] == ']';
    snprintf(a_p->host, sizeof a_p->host, "%.*s", (int)(brackets ? n - 2 : n), text + brackets);
    a_p->port = (int)port;
    return LS_OK;
}

const char *ls_address_look_up(const char *host, int port, int flags, struct addrinfo **list_p) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    bool all = flags & AI_PASSIVE && !*host;
    int why = getaddrinfo(all ? NULL : host, service, &hints, list_p);
    return why ? gai_strerror(why) : NULL;
}

bool ls_address_numeric(const ls_address *a, struct sockaddr_storage *a_p) {
    struct addrinfo *list = NULL;
    if (!*a->host || ls_address_look_up(a->host, a->port, AI_NUMERICHOST, &list)) return false;
    *a_p = (struct sockaddr_storage){0};
    memcpy(a_p, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return true;
}

void ls_address_text(const struct sockaddr_storage *a, char *text, size_t nbytes) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(text, nbytes, "%s:%d", host, ntohs(in->sin_port));
        return;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    snprintf(text, nbytes, "[%s]:%d", host, ntohs(in6->sin6_port));
}

bool ls_address_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family) return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool ls_address_is_loopback(const struct sockaddr_storage *a) {
    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

int ls_address_port(const struct sockaddr_storage *a) {
    return ntohs(a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
                                         : ((const struct sockaddr_in6 *)a)->sin6_port);
}

void ls_address_set_port(struct sockaddr_storage *a, int port) {
    if (a->ss_family == AF_INET)
        ((struct sockaddr_in *)a)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)a)->sin6_port = htons((uint16_t)port);
}

bool ls_address_is_any(const struct sockaddr_storage *a) {
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
    return a->ss_family != AF_INET6 ||
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static socklen_t nbytes_of(const struct sockaddr_storage *a) {
    return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* ---- options ---- */

void ls_socket_flags(int fd) {
    int one = 1;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void ls_socket_options(int fd) {
    int one = 1, idle = 5, every = 2, times = 3, user_ms = 15000;
    ls_socket_flags(fd);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof user_ms);
}

/* Closes fd, which may be -1, and returns -1; errno stays as it was. */
static int fail_socket(int fd) {
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return -1;
}

/* ---- listening ---- */

ls_status ls_address_listen(const ls_address *a, int *fd_p, ls_error *e) {
    struct addrinfo *list = NULL;
    const char *why = ls_address_look_up(a->host, a->port, AI_PASSIVE, &list);
    if (why) return ls_fail(e, LS_EINVAL, "'%.200s:%d': %s", a->host, a->port, why);
    int fd = ls_listen_first(list), wrong = errno;
    freeaddrinfo(list);
    if (fd < 0)
        return ls_fail(e, LS_EIO, "can't listen at %.200s:%d: %s", a->host, a->port,
                       strerror(wrong));
    ls_socket_flags(fd);
    *fd_p = fd;
    return LS_OK;
}

ls_status ls_socket_listen(const struct sockaddr_storage *a, int *fd_p, ls_error *e) {
    int fd = ls_listen((const struct sockaddr *)a, nbytes_of(a)), why = errno;
    if (fd < 0) {
        char text[80];
        ls_address_text(a, text, sizeof text);
        ls_fail(e, LS_EIO, "can't listen at %s: %s", text, strerror(why));
        errno = why;
        return LS_EIO;
    }
    ls_socket_flags(fd);
    *fd_p = fd;
    return LS_OK;
}

/* ---- connecting ---- */

static int connect_from(const struct sockaddr_storage *from, const struct sockaddr *a,
                        socklen_t n) {
    int fd = socket(a->sa_family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    ls_socket_flags(fd);
    if (from && !ls_address_is_any(from) &&
        bind(fd, (const struct sockaddr *)from, nbytes_of(from)) != 0)
        return fail_socket(fd);
    return connect(fd, a, n) == 0 || errno == EINPROGRESS ? fd : fail_socket(fd);
}

int ls_socket_connect(const struct sockaddr *a, socklen_t n) { return connect_from(NULL, a, n); }

int ls_socket_reach(const struct addrinfo *list, const struct sockaddr_storage *from,
                    int limit_ms) {
    int last = 0;
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        int fd = connect_from(from, a->ai_addr, a->ai_addrlen), why = ETIMEDOUT;
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t n = sizeof why;
        if (fd < 0) why = errno;
        if (fd >= 0 && poll(&p, 1, limit_ms) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n);
        if (why == 0) return fd;
        if (fd >= 0) close(fd);
        last = why;
    }
    errno = last;
    return -1;
}

int ls_socket_dial(const struct sockaddr_storage *a) {
    int fd = ls_socket_connect((const struct sockaddr *)a, nbytes_of(a));
    if (fd >= 0) ls_socket_options(fd);
    return fd;
}

/* ---- the addresses of a socket ---- */

bool ls_socket_own(int fd, struct sockaddr_storage *a_p) {
    socklen_t n = sizeof *a_p;
    return getsockname(fd, (struct sockaddr *)a_p, &n) == 0;
}

bool ls_socket_peer(int fd, struct sockaddr_storage *a_p) {
    socklen_t n = sizeof *a_p;
    return getpeername(fd, (struct sockaddr *)a_p, &n) == 0;
}

int ls_socket_port(int fd) {
    struct sockaddr_storage a;
    return ls_socket_own(fd, &a) ? ls_address_port(&a) : 0;
}
