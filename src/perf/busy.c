/* busy.c - see busy.h. */
#include "perf/busy.h"
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void compute(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    for (volatile unsigned i = 0;;) i = i + 1;
}

ls_status ls_busy_start(int n, ls_busy *b_p, ls_error *e) {
    ls_busy b = {.n = 0};
    pid_t parent = getpid();
    while (b.n < n && b.n < LS_BUSY_MOST) {
        pid_t pid = fork();
        if (pid == 0) compute(parent);
        if (pid < 0) {
            int why = errno;
            ls_busy_end(&b);
            return ls_fail(e, LS_ENOMEM, "can't start a process that loads the machine: %s",
                           ls_thread_why(why));
        }
        b.pids[b.n++] = pid;
    }
    *b_p = b;
    return LS_OK;
}

void ls_busy_end(ls_busy *b) {
    for (int i = 0; i < b->n; i++) kill(b->pids[i], SIGKILL);
    for (int i = 0; i < b->n; i++)
        while (waitpid(b->pids[i], NULL, 0) < 0 && errno == EINTR) {
        }
    b->n = 0;
}
