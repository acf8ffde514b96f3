/* free_port.h - ports of 127.0.0.1, for servers of tests. */
#ifndef LS_TEST_FREE_PORT_H
#define LS_TEST_FREE_PORT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

/* Whether this test has the port for itself: tests beside it that ask for one get another as long
 * as it lives. A name without a file stands for the port, and vanishes with the test. */
static inline bool port_reserve(int port) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "lockstep-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t nbytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, nbytes) == 0) return true; /* and stays open */
    if (fd >= 0) close(fd);
    return false;
}

/* Returns a port below those that the system hands out by itself, so that nobody takes it while its
 * server is down. */
static inline int free_port(void) {
    static int next;
    if (!next) next = 10000 + (int)(getpid() * 37L % 20000);
    for (int tries = 0; tries < 1000; tries++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
        next = next < 30000 ? next + 1 : 10000;
        a.sin_port = htons((uint16_t)next);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_free = bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
        close(fd);
        if (is_free && port_reserve(next)) return next;
    }
    fail_msg("no port is free");
    return 0;
}

#endif
