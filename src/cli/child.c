/* child.c - see child.h. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/launch/process.h"

extern char **environ;

static const int64_t GRACE_NS = (int64_t)2 * 1000 * 1000 * 1000;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { NSIGNALS = 3, POLL_MS = 200, POLL_CLOSED_MS = 10 };

static volatile sig_atomic_t interrupt;

static void on_signal(int number) { interrupt = number; }

typedef struct child {
    pid_t pid;
    struct pollfd from[2]; /* its standard output and error; fd -1: closed */
    ls_buf *to[2];
    int64_t end_at;             /* when it gets SIGTERM, then SIGKILL */
    bool terminated, timed_out; /* terminated: SIGTERM was sent */
} child;

static int spawn(child *c, char *const *argv, const int to_out[2], const int to_err[2]) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;
    sigemptyset(&none);
    ls_process_ignored(&ignored);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, to_out[1], 1);
    posix_spawn_file_actions_adddup2(&files, to_err[1], 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    int why = posix_spawnp(&c->pid, argv[0], &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return why;
}

static ls_status start(child *c, char *const *argv, ls_error *e) {
    int to_out[2], to_err[2];
    if (pipe2(to_out, O_CLOEXEC) != 0)
        return ls_fail(e, LS_EIO, "%s can't be started: %s", argv[0], strerror(errno));
    if (pipe2(to_err, O_CLOEXEC) != 0) {
        int why = errno;
        close(to_out[0]);
        close(to_out[1]);
        return ls_fail(e, LS_EIO, "%s can't be started: %s", argv[0], strerror(why));
    }
    int why = spawn(c, argv, to_out, to_err);
    close(to_out[1]);
    close(to_err[1]);
    c->from[0] = (struct pollfd){.fd = to_out[0], .events = POLLIN};
    c->from[1] = (struct pollfd){.fd = to_err[0], .events = POLLIN};
    if (!why) return LS_OK;
    close(to_out[0]);
    close(to_err[0]);
    return ls_fail(e, LS_EIO, "%s can't be started: %s", argv[0], strerror(why));
}

/* Returns whether any output was read. */
static bool read_pipes(child *c) {
    char part[8192];
    bool came = false;
    for (int i = 0; i < 2; i++) {
        if (c->from[i].fd < 0 || !c->from[i].revents) continue;
        ssize_t n = read(c->from[i].fd, part, sizeof part);
        if (n > 0) {
            ls_buf_append(c->to[i], part, (size_t)n);
            came = true;
        } else if (n == 0 || errno != EINTR) {
            close(c->from[i].fd);
            c->from[i].fd = -1;
        }
    }
    return came;
}

static void check_deadline(child *c) {
    int64_t now = ls_clock_ns();
    bool late = now >= c->end_at;
    if (!late && (c->terminated || !interrupt)) return;
    if (late && !c->terminated) c->timed_out = true;
    kill(-c->pid, c->terminated ? SIGKILL : SIGTERM);
    c->terminated = true;
    c->end_at = now + GRACE_NS;
}

/* Waits until the program has ended and its pipes are empty. Processes that remain in its group are
 * killed before its process id is released. */
static int follow(child *c) {
    siginfo_t ended = {0};
    for (bool came = true; came || ended.si_pid == 0;) {
        bool closed = c->from[0].fd < 0 && c->from[1].fd < 0;
        int n = poll(c->from, 2, ended.si_pid ? 0 : closed ? POLL_CLOSED_MS : POLL_MS);
        came = n > 0 && read_pipes(c);
        if (ended.si_pid == 0) waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT);
        check_deadline(c);
    }
    kill(-c->pid, SIGKILL);
    int how = 0;
    while (waitpid(c->pid, &how, 0) < 0 && errno == EINTR) continue;
    for (int i = 0; i < 2; i++)
        if (c->from[i].fd >= 0) close(c->from[i].fd);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

ls_status cli_child_run(char *const *argv, double limit_s, ls_buf *out, ls_buf *err, int *code_p,
                        ls_error *e) {
    child c = {.to = {out, err}, .end_at = ls_clock_ns() + (int64_t)(limit_s * 1e9)};
    struct sigaction before[NSIGNALS], notice = {.sa_handler = on_signal};
    interrupt = 0;
    for (int i = 0; i < NSIGNALS; i++) sigaction(signals[i], &notice, &before[i]);
    ls_status s = start(&c, argv, e);
    int code = s == LS_OK ? follow(&c) : 0;
    for (int i = 0; i < NSIGNALS; i++) sigaction(signals[i], &before[i], NULL);
    if (s != LS_OK) return s;
    if (interrupt) {
        *code_p = 128 + interrupt;
        return ls_fail(e, LS_EABORT, "interrupted by signal %d", (int)interrupt);
    }
    if (c.timed_out)
        return ls_fail(e, LS_ETIMEOUT, "%s was ended: it did not finish within %.0f s", argv[0],
                       limit_s);
    *code_p = code;
    return LS_OK;
}
