/* spawn_processes.c - workers as processes.
 *
 * The supervisor waits for signals, one at a time, in one thread: SIGCHLD (a worker ended), SIGINT,
 * SIGTERM and SIGHUP (stop). Workers ignore the last three, so that Ctrl-C, which the terminal
 * sends to all, stops the run after the step. If the supervisor dies, the kernel kills the workers
 * (PR_SET_PDEATHSIG), and the memfd goes with the last of them.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/supervise.h"

/* After a failure, others have this long to end by themselves. */
static const int64_t GRACE_NS = 500 * 1000 * 1000;

typedef struct family {
    const ls_launch *l;
    pid_t *pids; /* [nworkers], 0 once reaped */
    int alive;
    int64_t kill_at; /* when those left are killed, or 0 */
} family;

static _Noreturn void child_main(const ls_launch *l, int worker, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    ls_error e = {0};
    ls_status s = l->main(worker, l->arg, &e);
    if (s != LS_OK) ls_region_fail(l->region, worker, &e);
    fflush(stdout);
    _exit(s == LS_OK ? 0 : 1);
}

static void kill_all(const family *f) {
    for (int i = 0; i < f->l->nworkers; i++)
        if (f->pids[i]) kill(f->pids[i], SIGKILL);
}

static void note_death(family *f, int worker, int how) {
    f->alive--;
    f->pids[worker] = 0;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return;
    if (!f->kill_at) f->kill_at = ls_clock_ns() + GRACE_NS;
    char where[256] = "";
    if (f->l->where) f->l->where(worker, f->l->arg, where, sizeof where);
    ls_error e = {0};
    if (WIFSIGNALED(how))
        ls_fail(&e, LS_EPEER,
                "worker %d was killed by signal %d (%s)%s; the run ends. Go on from "
                "the last checkpoint with --resume",
                worker, WTERMSIG(how), strsignal(WTERMSIG(how)), where);
    else
        ls_fail(&e, LS_EPEER, "worker %d ended with exit code %d%s", worker, WEXITSTATUS(how),
                where);
    ls_region_fail(f->l->region, worker, &e); /* kept only if the worker left no error of its own */
}

static void reap(family *f) {
    int how = 0;
    for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;)
        for (int i = 0; i < f->l->nworkers; i++)
            if (f->pids[i] == pid) note_death(f, i, how);
}

static ls_status start(family *f, ls_error *e) {
    pid_t parent = getpid();
    fflush(NULL);
    for (int i = 0; i < f->l->nworkers; i++) {
        pid_t pid = fork();
        if (pid == 0) child_main(f->l, i, parent);
        if (pid < 0)
            return ls_fail(e, LS_ENOMEM, "worker %d can't be started: %s", i, strerror(errno));
        f->pids[i] = pid;
        atomic_store(&f->l->region->header->workers[i].pid, pid);
        f->alive++;
    }
    return LS_OK;
}

static ls_status run(const ls_launch *l, ls_error *e) {
    family f = {.l = l, .pids = LS_NEW_ARRAY(pid_t, (size_t)l->nworkers)};
    ls_supervisor s;
    ls_supervisor_begin(&s, l->region);
    ls_status status = start(&f, e);
    if (status != LS_OK) {
        ls_region_fail(l->region, -1, e);
        kill_all(&f);
    }
    while (f.alive) {
        if (ls_supervisor_wait(&s) == LS_SUPERVISOR_END_NOW) kill_all(&f);
        reap(&f);
        if (f.kill_at && ls_clock_ns() > f.kill_at) kill_all(&f);
    }
    free(f.pids);
    return ls_supervisor_end(&s, e);
}

const ls_spawn ls_spawn_processes = {.name = "shm", .shared = true, .run = run};
