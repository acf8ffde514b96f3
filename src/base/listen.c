/* listen.c - see listen.h. */
#include "base/listen.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

/* The system may take fewer. A client that finds no place tries again after a second. */
enum { BACKLOG = 4096 };

int ls_listen(const struct sockaddr *a, socklen_t n) {
    int one = 1, fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, a, n) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return -1;
}

/* This host lacks the address: another one of the same name may be its own. */
static bool is_foreign(int why) { return why == EADDRNOTAVAIL || why == EAFNOSUPPORT; }

int ls_listen_first(const struct addrinfo *list) {
    int fd = -1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = ls_listen(a->ai_addr, a->ai_addrlen);
        if (fd < 0 && !is_foreign(errno)) return -1;
    }
    return fd;
}
