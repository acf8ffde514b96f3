/* control.c - see control.h. */
#include "cluster/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static const char DIRECTORY[] = "control", NAME[] = "socket";

/* The socket gets its name when it listens: whoever connects finds the old one or the new one. */
static const char NEW_NAME[] = "socket.%d";

/* How long a program waits for the socket of a run that may just be beginning. */
static const int64_t BEGINNING_NS = (int64_t)3 * 1000000000;

/* How long a guest, a program that connects, may take to send its request. */
static const int64_t PATIENCE_NS = (int64_t)5 * 1000000000;

/* How long it waits for the answer: a supervisor on a busy host may be late, and hold guests before
 * it. */
enum { ANSWER_S = 30 };

/* The part of a line that has arrived. */
typedef struct reader {
    char text[LS_CONTROL_LINE];
    size_t n;
} reader;

struct ls_control {
    int run, folder;     /* the run directory; `control` in it */
    int listener, guest; /* guest: it sends a request, or waits for the answer; -1: none */
    struct stat file;    /* of the socket */
    int64_t came_ns;     /* when the guest connected */
    reader asks;
};

/* The path of a directory may be longer than a socket's address: it is named by its descriptor. */
static struct sockaddr_un address_in(int folder, const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", folder, path);
    return a;
}

static int open_folder(const char *run) { return open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

static int enter(int run) {
    return openat(run, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes what a killed program has left, as root also that of another user. */
static void clear_away(int run) {
    int folder = enter(run);
    if (folder >= 0) unlinkat(folder, NAME, 0);
    if (folder >= 0) close(folder);
    if (unlinkat(run, DIRECTORY, AT_REMOVEDIR) != 0) unlinkat(run, DIRECTORY, 0);
}

static bool is_private(int folder) {
    struct stat there;
    return fstat(folder, &there) == 0 && there.st_uid == geteuid() &&
           (there.st_mode & 07777) == 0700;
}

/* A directory that only this user can enter, whatever the umask; -1 with errno. The socket of
 * another supervisor of this run (hosts of one run may share its directory) stays in use. */
static int make_folder(int run) {
    int folder = enter(run);
    if (folder >= 0 && is_private(folder)) return folder;
    if (folder >= 0) close(folder);
    clear_away(run);
    if (mkdirat(run, DIRECTORY, 0700) != 0) return -1;
    fchmodat(run, DIRECTORY, 0700, 0); /* the umask may have taken away too much */
    return enter(run);
}

/* The file gets the mode of the socket, less the umask's bits: it never has another mode. */
static bool make_socket(ls_control *c) {
    char name[32];
    snprintf(name, sizeof name, NEW_NAME, (int)getpid());
    struct sockaddr_un a = address_in(c->folder, name);
    unlinkat(c->folder, name, 0);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return c->listener >= 0 && fchmod(c->listener, 0600) == 0 &&
           bind(c->listener, (struct sockaddr *)&a, sizeof a) == 0 &&
           fchmodat(c->folder, name, 0600, 0) == 0 && listen(c->listener, 16) == 0 &&
           fstatat(c->folder, name, &c->file, AT_SYMLINK_NOFOLLOW) == 0 &&
           renameat(c->folder, name, c->folder, NAME) == 0;
}

ls_status ls_control_open(const char *run, ls_control **c_p, ls_error *e) {
    ls_control *c = LS_NEW(ls_control);
    *c = (ls_control){.run = open_folder(run), .folder = -1, .listener = -1, .guest = -1};
    if (c->run >= 0) c->folder = make_folder(c->run);
    if (c->folder < 0 || !make_socket(c)) {
        int why = errno;
        ls_control_close(c);
        return ls_fail(e, LS_EIO, "%s/%s: can't be created: %s", run, DIRECTORY, strerror(why));
    }
    *c_p = c;
    return LS_OK;
}

/* False if another program has replaced the socket. */
static bool is_own_socket(const ls_control *c) {
    struct stat there;
    int folder = enter(c->run);
    bool own = folder >= 0 && fstatat(folder, NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
               c->file.st_ino == there.st_ino && c->file.st_dev == there.st_dev;
    if (folder >= 0) close(folder);
    return own;
}

void ls_control_close(ls_control *c) {
    if (!c) return;
    if (is_own_socket(c)) clear_away(c->run);
    if (c->listener >= 0) close(c->listener);
    if (c->guest >= 0) close(c->guest);
    if (c->folder >= 0) close(c->folder);
    if (c->run >= 0) close(c->run);
    free(c);
}

/* Returns true when the line is complete, without its newline; a line that is too long never is.
 * Otherwise *more_p says whether more of it may come. */
static bool read_line(reader *r, int fd, bool *more_p) {
    ssize_t got = 1;
    while (r->n < sizeof r->text - 1 && !memchr(r->text, '\n', r->n)) {
        got = recv(fd, r->text + r->n, sizeof r->text - 1 - r->n, 0);
        if (got < 0 && errno == EINTR) continue; /* with a limit: also after Ctrl-Z and `fg` */
        if (got <= 0) break;
        r->n += (size_t)got;
    }
    *more_p = got < 0 && errno == EAGAIN;
    char *end = memchr(r->text, '\n', r->n);
    if (end) *end = 0;
    return end != NULL;
}

static void write_line(int fd, const char *text) {
    char line[LS_CONTROL_LINE + 1];
    int n = snprintf(line, sizeof line, "%s\n", text);
    if (n > 0 && send(fd, line, (size_t)n, MSG_NOSIGNAL) < 0) return; /* it has disconnected */
}

static void send_away(ls_control *c) {
    close(c->guest);
    c->guest = -1;
}

/* Programs of this user and of root may send requests. */
static bool may_ask(int fd) {
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0) return false;
    return peer.uid == 0 || peer.uid == geteuid();
}

bool ls_control_next(ls_control *c, char line[LS_CONTROL_LINE]) {
    bool more = false;
    if (c->guest < 0) {
        c->guest = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        c->came_ns = ls_clock_ns();
        c->asks.n = 0;
        if (c->guest >= 0 && !may_ask(c->guest)) {
            ls_control_answer(c, "error permission denied: the run belongs to another user");
            return false;
        }
    }
    if (c->guest < 0) return false;
    if (read_line(&c->asks, c->guest, &more)) {
        memcpy(line, c->asks.text, sizeof c->asks.text);
        return true;
    }
    if (!more || ls_clock_ns() - c->came_ns > PATIENCE_NS) send_away(c);
    return false;
}

void ls_control_answer(ls_control *c, const char *text) {
    write_line(c->guest, text);
    send_away(c);
}

static ls_status not_connected(const char *run, int folder, int why, ls_error *e) {
    struct stat there;
    if (why == ENOENT || why == ECONNREFUSED || why == ENOTDIR)
        return ls_fail(e, LS_EIO, "%s: is not running on this host", run);
    if ((why == EACCES || why == EPERM) && fstatat(folder, DIRECTORY, &there, 0) == 0)
        return ls_fail(e, LS_EIO,
                       "%s: permission denied: only user %u, who started it, and root can ask it",
                       run, (unsigned)there.st_uid);
    return ls_fail(e, LS_EIO, "%s: can't be asked: %s", run, strerror(why));
}

/* A run may have had steps before its supervisor first looks for requests, and makes the socket.
 * Returns 0, or why not. */
static int connect_to(int fd, const struct sockaddr_un *a) {
    int64_t begin = ls_clock_ns();
    for (;;) {
        if (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0) return 0;
        int why = errno;
        bool may_come = why == ENOENT || why == ECONNREFUSED;
        if (!may_come || ls_clock_ns() - begin > BEGINNING_NS) return why;
        usleep(20000);
    }
}

ls_status ls_control_ask(const char *run, const char *line, char answer[LS_CONTROL_LINE],
                         ls_error *e) {
    struct timeval limit = {.tv_sec = ANSWER_S};
    reader r = {.n = 0};
    bool more = false;
    int folder = open_folder(run), why = errno;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = address_in(folder, "control/socket");
    ls_status s = LS_OK;
    if (folder < 0)
        s = ls_fail(e, LS_EIO, "%s: can't be opened: %s", run, strerror(why));
    else if (fd < 0 || (why = connect_to(fd, &a)) != 0)
        s = not_connected(run, folder, fd < 0 ? errno : why, e);
    if (s == LS_OK) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        write_line(fd, line);
        if (!read_line(&r, fd, &more)) s = ls_fail(e, LS_EIO, "%s: the run does not answer", run);
        memcpy(answer, r.text, sizeof r.text);
    }
    if (fd >= 0) close(fd);
    if (folder >= 0) close(folder);
    return s;
}
