/* listeners.h - the addresses at which a process listens, as the kernel reports them. */
#ifndef LS_TEST_LISTENERS_H
#define LS_TEST_LISTENERS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* True if one of the process's descriptors is the socket with this inode number. */
static inline int listeners_has(pid_t pid, unsigned long inode) {
    char path[300], text[64], want[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    DIR *d = opendir(path);
    int has = 0;
    for (struct dirent *x; d && !has && (x = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, x->d_name);
        ssize_t n = readlink(path, text, sizeof text - 1);
        has = n > 0 && (size_t)n == strlen(want) && strncmp(text, want, (size_t)n) == 0;
    }
    if (d) closedir(d);
    return has;
}

/* Writes the addresses of TCP over IPv4 and IPv6, "127.0.0.1:7000 [::]:7001 ", in the kernel's
 * digits for IPv6. Returns their number. */
static inline int listeners_of(pid_t pid, char *text, size_t nbytes) {
    static const char *const tables[] = {"tcp", "tcp6"};
    char path[64], line[512], at[64];
    int n = 0;
    size_t len = 0;
    text[0] = 0;
    for (int t = 0; t < 2; t++) {
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, tables[t]);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            unsigned port = 0, state = 0, a = 0;
            unsigned long inode = 0;
            if (sscanf(line, " %*d: %32[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %lu", at, &port,
                       &state, &inode) != 4 ||
                state != 10 || !listeners_has(pid, inode))
                continue;
            if (t == 0 && sscanf(at, "%x", &a) == 1)
                snprintf(at, sizeof at, "%u.%u.%u.%u", a & 255, a >> 8 & 255, a >> 16 & 255,
                         a >> 24);
            int put = snprintf(text + len, nbytes - len, t ? "[%s]:%u " : "%s:%u ", at, port);
            if (put > 0 && (size_t)put < nbytes - len) len += (size_t)put;
            n++;
        }
        if (f) fclose(f);
    }
    return n;
}

#endif
