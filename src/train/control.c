/* control.c - see control.h. */
#include "train/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"

static const char NAME[] = "control";

struct ls_control {
    int folder, listener, guest; /* guest: who waits for an answer; -1: nobody */
};

/* Paths of folders may be longer than a socket's address: the kernel knows the folder by number. */
static struct sockaddr_un address_in(int folder) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", folder, NAME);
    return a;
}

static int open_folder(const char *run) { return open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

ls_status ls_control_open(const char *run, ls_control **c_p, ls_error *e) {
    ls_control *c = LS_NEW(ls_control);
    *c = (ls_control){.folder = open_folder(run), .listener = -1, .guest = -1};
    struct sockaddr_un a = address_in(c->folder);
    if (c->folder >= 0) {
        unlinkat(c->folder, NAME, 0);
        c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (c->listener < 0 || bind(c->listener, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(c->listener, 16) != 0) {
        int why = errno;
        ls_control_close(c);
        return ls_fail(e, LS_EIO, "%s/%s: can't be made: %s", run, NAME, strerror(why));
    }
    *c_p = c;
    return LS_OK;
}

void ls_control_close(ls_control *c) {
    if (!c) return;
    if (c->listener >= 0) unlinkat(c->folder, NAME, 0);
    if (c->listener >= 0) close(c->listener);
    if (c->guest >= 0) close(c->guest);
    if (c->folder >= 0) close(c->folder);
    free(c);
}

/* A line of a socket that has a time limit; what is longer is cut. */
static bool read_line(int fd, char line[LS_CONTROL_LINE]) {
    size_t n = 0;
    while (n < LS_CONTROL_LINE - 1) {
        ssize_t got = recv(fd, line + n, LS_CONTROL_LINE - 1 - n, 0);
        if (got <= 0) break;
        n += (size_t)got;
        if (memchr(line, '\n', n)) break;
    }
    line[n] = 0;
    char *end = strchr(line, '\n');
    if (end) *end = 0;
    return end != NULL;
}

static void write_line(int fd, const char *text) {
    char line[LS_CONTROL_LINE + 1];
    int n = snprintf(line, sizeof line, "%s\n", text);
    if (n > 0 && send(fd, line, (size_t)n, MSG_NOSIGNAL) < 0) return; /* it has gone */
}

bool ls_control_next(ls_control *c, char line[LS_CONTROL_LINE]) {
    struct timeval soon = {.tv_usec = 100000};
    if (c->guest >= 0) close(c->guest);
    c->guest = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
    if (c->guest < 0) return false;
    setsockopt(c->guest, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    setsockopt(c->guest, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    return read_line(c->guest, line);
}

void ls_control_answer(ls_control *c, const char *text) {
    write_line(c->guest, text);
    close(c->guest);
    c->guest = -1;
}

ls_status ls_control_ask(const char *run, const char *line, char answer[LS_CONTROL_LINE],
                         ls_error *e) {
    struct timeval limit = {.tv_sec = 10};
    int folder = open_folder(run), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = address_in(folder);
    ls_status s = LS_OK;
    if (folder < 0)
        s = ls_fail(e, LS_EIO, "%s: can't be opened: %s", run, strerror(errno));
    else if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        s = ls_fail(e, LS_EIO, "%s: is not running on this host", run);
    if (s == LS_OK) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        write_line(fd, line);
        if (!read_line(fd, answer)) s = ls_fail(e, LS_EIO, "%s: the run gives no answer", run);
    }
    if (fd >= 0) close(fd);
    if (folder >= 0) close(folder);
    return s;
}
