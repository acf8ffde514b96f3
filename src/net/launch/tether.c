/* tether.c - see tether.h. */
#include "net/launch/tether.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static const char NAME[] = "LOCKSTEP_TETHER"; /* the launcher's PID:DESCRIPTOR:INODE */

ls_status ls_tether_open(ls_tether *t_p, ls_error *e) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return ls_fail(e, LS_EIO, "a pipe can't be made: %s", strerror(errno));
    *t_p = (ls_tether){{ends[0], ends[1]}};
    return LS_OK;
}

void ls_tether_show(const ls_tether *t) {
    struct stat st;
    if (t->ends[0] < 0 || fstat(t->ends[0], &st) != 0) return;
    char *text = ls_format("%d:%d:%llu", (int)getppid(), t->ends[0], (unsigned long long)st.st_ino);
    setenv(NAME, text, 1);
    free(text);
}

void ls_tether_close(ls_tether *t) {
    for (int i = 0; i < 2; i++)
        if (t->ends[i] >= 0) close(t->ends[i]);
    *t = (ls_tether){{-1, -1}};
}

/* The launcher's end of the pipe, opened anew, as the owner of its signals is this process; -1: the
 * launcher is gone, and another process may have its number, or it can't be seen. */
static int open_end(const char *text) {
    int pid = 0, number = 0;
    unsigned long long inode = 0;
    char path[64];
    struct stat st;
    if (sscanf(text, "%d:%d:%llu", &pid, &number, &inode) != 3) return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    if (stat(path, &st) != 0 || !S_ISFIFO(st.st_mode) || st.st_ino != inode) return -1;
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

void ls_tether_tie(void) {
    static atomic_bool tied;
    const char *text = getenv(NAME);
    if (!text || atomic_exchange(&tied, true)) return;
    int fd = open_end(text); /* it stays open */
    if (fd < 0) return;
    fcntl(fd, F_SETOWN, getpid());
    fcntl(fd, F_SETSIG, SIGKILL);
    fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC);
    struct pollfd p = {.fd = fd};
    if (poll(&p, 1, 0) == 1 && (p.revents & POLLHUP)) kill(getpid(), SIGKILL);
}
