/* child.c - see child.h. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/launch/process.h"

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

/* In the child. It gets SIGTERM when the thread that started it ends, even by SIGKILL. */
static _Noreturn void become(char *const *argv, pid_t parent, const int outputs[2], int report) {
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int input = open("/dev/null", O_RDONLY), why = 0;
    bool ready = getppid() == parent && dup2(input, 0) == 0 && dup2(outputs[0], 1) == 1 &&
                 dup2(outputs[1], 2) == 2;
    if (input > 2) close(input);
    ls_process_restore();
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (ready) execvp(argv[0], argv);
    why = errno;
    _exit(write(report, &why, sizeof why) == sizeof why ? 127 : 126);
}

/* Returns 0, or why argv[0] can't be started. A pipe says so: it closes when the program begins. */
static int spawn(child *c, char *const *argv, const int outputs[2]) {
    int report[2], why = 0;
    if (pipe2(report, O_CLOEXEC) != 0) return errno;
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0) become(argv, parent, outputs, report[1]);
    if (c->pid < 0) why = errno;
    close(report[1]);
    while (c->pid > 0 && read(report[0], &why, sizeof why) < 0 && errno == EINTR) continue;
    close(report[0]);
    if (c->pid > 0 && why) waitpid(c->pid, NULL, 0);
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
    int why = spawn(c, argv, (int[]){to_out[1], to_err[1]});
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
