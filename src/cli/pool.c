/* pool.c - see pool.h. */
#include "cli/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "net/launch/process.h"

static const char PROGRAM[] = "/proc/self/exe";
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { NSIGNALS = 3, NO_PROGRAM = 127, LOOK_MS = 100 };
static const int64_t GRACE_NS = (int64_t)10 * 1000 * 1000 * 1000;

typedef struct process {
    pid_t pid;
    int tag;
} process;

struct cli_pool {
    process *list; /* [n] */
    size_t n;
    sigset_t before, waited; /* signals that were blocked before; those that the pool waits for */
};

cli_pool *cli_pool_open(void) {
    cli_pool *p = LS_NEW(cli_pool);
    sigemptyset(&p->waited);
    sigaddset(&p->waited, SIGCHLD);
    for (int i = 0; i < NSIGNALS; i++)
        if (!ls_process_ignores(signals[i])) sigaddset(&p->waited, signals[i]);
    sigprocmask(SIG_BLOCK, &p->waited, &p->before);
    return p;
}

/* In the child. */
static _Noreturn void become(char *const *argv, int output) {
    setpgid(0, 0);
    ls_process_restore();
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input >= 0) dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    execv(PROGRAM, argv);
    _exit(NO_PROGRAM);
}

ls_status cli_pool_start(cli_pool *p, char *const *argv, const char *output, int tag, ls_error *e) {
    ls_child child;
    int fd = -1;
    LS_TRY(ls_file_open_append(output, &fd, e));
    pid_t pid = ls_child_start(&child, &p->before);
    if (pid == 0) become(argv, fd);
    int why = errno;
    close(fd);
    if (pid < 0) return ls_fail(e, LS_EIO, "a training can't be started: %s", strerror(why));
    setpgid(pid, pid); /* here, too: it may be signalled before it has done so itself */
    p->list = ls_grow(p->list, p->n, sizeof *p->list);
    p->list[p->n++] = (process){pid, tag};
    return LS_OK;
}

/* Removes a process that has ended from the list. Processes that remain in its group are killed
 * before its process id is released. */
static bool find_ended(cli_pool *p, process *ended_p, int *code_p) {
    for (size_t i = 0; i < p->n; i++) {
        siginfo_t info = {0};
        int how = 0;
        waitid(P_PID, (id_t)p->list[i].pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if (info.si_pid == 0) continue;
        kill(-p->list[i].pid, SIGKILL);
        while (waitpid(p->list[i].pid, &how, 0) < 0 && errno == EINTR) continue;
        *ended_p = p->list[i];
        *code_p = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
        p->list[i] = p->list[--p->n];
        return true;
    }
    return false;
}

/* Waits for a signal for a moment; returns its number, 0: none came. */
static int wait_signal(const cli_pool *p) {
    const struct timespec moment = {.tv_nsec = LOOK_MS * 1000000L};
    int number = sigtimedwait(&p->waited, NULL, &moment);
    return number > 0 ? number : 0;
}

ls_status cli_pool_wait(cli_pool *p, int *tag_p, int *code_p, ls_error *e) {
    process ended;
    while (!find_ended(p, &ended, code_p)) {
        int number = wait_signal(p);
        if (number && number != SIGCHLD)
            return ls_fail(e, LS_EABORT, "interrupted by signal %d", number);
    }
    *tag_p = ended.tag;
    return LS_OK;
}

void cli_pool_close(cli_pool *p) {
    process ended;
    int code = 0;
    if (!p) return;
    for (size_t i = 0; i < p->n; i++) kill(p->list[i].pid, SIGTERM);
    for (int64_t end = ls_clock_ns() + GRACE_NS; p->n > 0;) {
        while (find_ended(p, &ended, &code)) continue;
        if (p->n > 0) wait_signal(p);
        if (ls_clock_ns() < end) continue;
        for (size_t i = 0; i < p->n; i++) kill(-p->list[i].pid, SIGKILL);
    }
    sigprocmask(SIG_SETMASK, &p->before, NULL);
    free(p->list);
    free(p);
}
