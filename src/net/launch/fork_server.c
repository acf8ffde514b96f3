/* fork_server.c - see fork_server.h. */
#include "net/launch/fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/launch/child.h"

struct ls_fork_server {
    ls_child child;
    int fd;
};

/* What the process that waits knows. */
typedef struct keeper {
    const char *what;
    int n, fd;
    ls_forked_worker *main;
    void *arg;
    pid_t *pids; /* [n]; 0: it does not run */
} keeper;

/* ---- a descriptor as a message: the worker's number, and with it the descriptor ---- */

enum { ROOM = CMSG_SPACE(sizeof(int)) };

static bool send_descriptor(int to, int number, int fd) {
    union {
        char bytes[ROOM];
        struct cmsghdr align;
    } room = {{0}};
    struct iovec part = {&number, sizeof number};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = ROOM};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)sizeof number;
}

/* False: the other process has ended. */
static bool take_descriptor(int from, int *number_p, int *fd_p) {
    union {
        char bytes[ROOM];
        struct cmsghdr align;
    } room = {{0}};
    struct iovec part = {number_p, sizeof *number_p};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = ROOM};
    if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *number_p) return false;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_type != SCM_RIGHTS) return false;
    memcpy(fd_p, CMSG_DATA(c), sizeof *fd_p);
    return true;
}

/* ---- the process that waits ---- */

static void note_child(int number) { (void)number; /* it ends poll() */ }

static void say_end(const keeper *k, int worker, pid_t pid, int how) {
    if (WIFSIGNALED(how))
        ls_log("%s: worker %d (process %d) was killed: %s", k->what, worker, (int)pid,
               strsignal(WTERMSIG(how)));
    else if (WEXITSTATUS(how))
        ls_log("%s: worker %d (process %d) ended with code %d", k->what, worker, (int)pid,
               WEXITSTATUS(how));
}

static void reap(keeper *k) {
    int how = 0;
    for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;)
        for (int i = 0; i < k->n; i++)
            if (k->pids[i] == pid) {
                say_end(k, i, pid, how);
                k->pids[i] = 0;
            }
}

/* One that has closed its socket may not have ended yet. */
static void start(keeper *k, int number, int fd, const sigset_t *mask) {
    ls_child c;
    int how = 0;
    if (k->pids[number] > 0 && waitpid(k->pids[number], &how, 0) > 0)
        say_end(k, number, k->pids[number], how);
    pid_t pid = ls_child_start(&c, mask);
    if (pid == 0) {
        close(k->fd);
        signal(SIGCHLD, SIG_DFL);
        _exit(k->main(k->arg, number, fd));
    }
    if (pid < 0)
        ls_log("%s: worker %d can't be started: %s", k->what, number, ls_thread_why(errno));
    k->pids[number] = pid > 0 ? pid : 0;
}

static void end_workers(keeper *k) {
    for (int i = 0; i < k->n; i++)
        if (k->pids[i] > 0) kill(k->pids[i], SIGKILL);
    for (int i = 0; i < k->n; i++)
        while (k->pids[i] > 0 && waitpid(k->pids[i], NULL, 0) < 0 && errno == EINTR) {
        }
}

/* SIGCHLD is let in while it waits alone, so that none is missed. */
static void keep(keeper *k) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    sigset_t held, open;
    int number = 0, fd = -1;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) ls_process_ignore(ignored[i]);
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    sigprocmask(SIG_BLOCK, &held, &open);
    sigdelset(&open, SIGCHLD);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = note_child}, NULL);
    for (;;) {
        struct pollfd p = {.fd = k->fd, .events = POLLIN};
        int n = ppoll(&p, 1, NULL, &open);
        reap(k);
        if (n <= 0) continue;
        if (!take_descriptor(k->fd, &number, &fd)) break;
        start(k, number, fd, &open);
        close(fd);
    }
    end_workers(k);
}

/* ---- the process that asks ---- */

ls_status ls_fork_server_open(const char *what, int n, ls_forked_worker *worker, void *arg,
                              ls_fork_server **n_p, ls_error *e) {
    int ends[2];
    ls_fork_server *x = LS_NEW(ls_fork_server);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        free(x);
        return ls_fail(e, LS_EIO, "no socket for workers: %s", strerror(errno));
    }
    pid_t pid = ls_child_start(&x->child, NULL);
    if (pid == 0) {
        keeper k = {.what = what, .n = n, .fd = ends[1], .main = worker, .arg = arg};
        close(ends[0]);
        k.pids = LS_NEW_ARRAY(pid_t, (size_t)n);
        keep(&k);
        _exit(0);
    }
    close(ends[1]);
    x->fd = ends[0];
    *n_p = x;
    if (pid > 0) return LS_OK;
    ls_fork_server_close(x);
    *n_p = NULL;
    return ls_fail(e, LS_ENOMEM, "no process for workers: %s", strerror(errno));
}

ls_status ls_fork_server_start(ls_fork_server *x, int number, int *fd_p, ls_error *e) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return ls_fail(e, LS_EIO, "no socket for worker %d: %s", number, strerror(errno));
    bool sent = send_descriptor(x->fd, number, ends[1]);
    close(ends[1]);
    if (!sent) {
        close(ends[0]);
        return ls_fail(e, LS_EIO,
                       "worker %d can't be started: the process that starts workers is gone",
                       number);
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *fd_p = ends[0];
    return LS_OK;
}

void ls_fork_server_close(ls_fork_server *x) {
    if (!x) return;
    close(x->fd);
    while (x->child.pid > 0 && waitpid(x->child.pid, NULL, 0) < 0 && errno == EINTR) {
    }
    free(x);
}
