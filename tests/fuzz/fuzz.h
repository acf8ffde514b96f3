/* fuzz.h - what every fuzz target includes: libFuzzer's entry, and input as a file or a peer. */
#ifndef LS_FUZZ_H
#define LS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* A condition that must hold; libFuzzer saves the input for which it does not. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Returns the path of a file with these bytes; it is the same file for all inputs. */
static inline const char *fuzz_file(const uint8_t *data, size_t nbytes) {
    static char path[64];
    static int fd = -1;
    if (fd < 0) fd = memfd_create("fuzz", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FUZZ_CHECK(ftruncate(fd, 0) == 0);
    FUZZ_CHECK(pwrite(fd, data, nbytes, 0) == (ssize_t)nbytes);
    return path;
}

/* Returns a socket that delivers these bytes; after them, the end of the stream, or nothing (ends:
 * 0). The caller closes *peer_p as well. */
static inline int fuzz_peer(const uint8_t *data, size_t nbytes, int ends, int *peer_p) {
    int fd[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
    FUZZ_CHECK(send(fd[1], data, nbytes, MSG_NOSIGNAL) == (ssize_t)nbytes || !nbytes);
    if (ends) shutdown(fd[1], SHUT_WR);
    *peer_p = fd[1];
    return fd[0];
}

#endif
