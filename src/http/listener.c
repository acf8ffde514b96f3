/* listener.c - see listener.h. */
#include "http/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/listen.h"

static ls_status fail_port(const char *address, int port, int why, ls_error *e) {
    if (why == EADDRINUSE)
        return ls_fail(e, LS_EIO,
                       "port %d of %s is in use by another program; port 0 takes a free one", port,
                       address);
    return ls_fail(e, LS_EIO, "can't listen at port %d of %s: %s", port, address, strerror(why));
}

static int port_of(int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
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
    int fd = ls_listen_first(found), wrong = errno;
    freeaddrinfo(found);
    if (fd < 0) return fail_port(address, port, wrong, e);
    *l_p = (ls_listener){fd, port_of(fd)};
    return LS_OK;
}
