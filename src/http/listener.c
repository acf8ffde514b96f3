/* listener.c - see listener.h. */
#include "http/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static ls_status fail_port(const char *address, int port, int why, ls_error *e) {
    if (why == EADDRINUSE)
        return ls_fail(e, LS_EIO,
                       "port %d of %s is in use by another program: --port 0 takes a free one",
                       port, address);
    return ls_fail(e, LS_EIO, "can't listen at port %d of %s: %s", port, address, strerror(why));
}

static int port_of(int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

/* This host lacks the address: another one of the same name may be its own. */
static bool is_foreign(int why) { return why == EADDRNOTAVAIL || why == EAFNOSUPPORT; }

/* -1, with errno: it can't listen. */
static int listen_at(const struct addrinfo *a) {
    /* The system may take fewer. A client that finds no place tries again after a second. */
    enum { BACKLOG = 4096 };
    int one = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return -1;
}

ls_status ls_listener_open(const char *address, int port, ls_listener *l_p, ls_error *e) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int why = getaddrinfo(address, service, &hints, &found);
    if (why)
        return ls_fail(e, LS_EINVAL, "'%.100s' is no address of this host: %s", address,
                       gai_strerror(why));
    int fd = -1, wrong = 0;
    for (const struct addrinfo *a = found; a && fd < 0 && (!wrong || is_foreign(wrong));
         a = a->ai_next) {
        fd = listen_at(a);
        if (fd < 0) wrong = errno;
    }
    freeaddrinfo(found);
    if (fd < 0) return fail_port(address, port, wrong, e);
    *l_p = (ls_listener){fd, port_of(fd)};
    return LS_OK;
}
