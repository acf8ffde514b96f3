/* launch.c - see launch.h. */
#include "net/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/commons.h"
#include "net/cores.h"
#include "net/key.h"

/* After a failure the others have this long to end by themselves, then to heed SIGTERM. */
static const int64_t GRACE_NS = 500 * 1000 * 1000;

typedef struct launch {
    const ls_launch_options *o;
    ls_commons commons;
    int listen_fd; /* of worker 0, for groups over TCP */
    char address[32], key[65];
    sigset_t waited, before;
    struct sigaction child_before;
    pid_t *pids; /* [nworkers], 0 once reaped */
    int alive, interrupts, code;
    int64_t end_at; /* when those left are told to end, then killed; 0: never */
    bool told;
    bool killed;    /* the worker that failed first */
    ls_error error; /* of it */
} launch;

static void set_number(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static _Noreturn void worker(const launch *l, int rank, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigprocmask(SIG_SETMASK, &l->before, NULL);
    if (l->o->bind) ls_cores_bind(rank, l->o->nworkers);
    set_number("LOCKSTEP_RANK", rank);
    set_number("LOCKSTEP_SIZE", l->o->nworkers);
    set_number("LOCKSTEP_LOCAL_RANK", rank);
    set_number("LOCKSTEP_LOCAL_SIZE", l->o->nworkers);
    set_number("LOCKSTEP_SHM", l->commons.fd);
    setenv("LOCKSTEP_ADDR", l->address, 1);
    setenv("LOCKSTEP_KEY", l->key, 1);
    unsetenv("LOCKSTEP_KEY_FILE");
    if (rank == 0) {
        set_number("LOCKSTEP_LISTEN_FD", l->listen_fd);
    } else {
        close(l->listen_fd);
        unsetenv("LOCKSTEP_LISTEN_FD"); /* of a launcher around this one */
    }
    if (!l->o->argv) {
        int code = l->o->main(l->o->arg);
        fflush(NULL);
        _exit(code);
    }
    fcntl(l->commons.fd, F_SETFD, 0);
    fcntl(l->listen_fd, F_SETFD, 0);
    execvp(l->o->argv[0], l->o->argv);
    int why = errno;
    if (rank == 0) fprintf(stderr, "lockstep: %s: %s\n", l->o->argv[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

static void signal_all(const launch *l, int number) {
    for (int i = 0; i < l->o->nworkers; i++)
        if (l->pids[i]) kill(l->pids[i], number);
}

static void note_end(launch *l, int rank, int how) {
    l->pids[rank] = 0;
    l->alive--;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return;
    if (!l->end_at) l->end_at = ls_clock_ns() + GRACE_NS;
    if (l->code) return;
    l->killed = WIFSIGNALED(how);
    if (l->killed) {
        char where[256] = "";
        if (l->o->where) l->o->where(rank, l->o->arg, where, sizeof where);
        l->code = 128 + WTERMSIG(how);
        ls_fail(&l->error, LS_EPEER, "worker %d was killed by signal %d (%s)%s", rank,
                WTERMSIG(how), strsignal(WTERMSIG(how)), where);
    } else {
        l->code = WEXITSTATUS(how);
        ls_fail(&l->error, LS_EPEER, "worker %d ended with exit code %d", rank, l->code);
    }
}

static void reap(launch *l) {
    int how = 0;
    for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;)
        for (int i = 0; i < l->o->nworkers; i++)
            if (l->pids[i] == pid) note_end(l, i, how);
}

static void wait_signal(launch *l) {
    struct timespec tenth = {.tv_nsec = 100000000};
    int number = sigtimedwait(&l->waited, NULL, &tenth);
    if (number != SIGINT && number != SIGTERM && number != SIGHUP) return;
    signal_all(l, l->interrupts++ ? SIGKILL : number);
}

static void end_rest(launch *l) {
    if (!l->end_at || ls_clock_ns() < l->end_at) return;
    signal_all(l, l->told ? SIGKILL : SIGTERM);
    l->told = true;
    l->end_at = ls_clock_ns() + GRACE_NS;
}

static ls_status start(launch *l, ls_error *e) {
    pid_t parent = getpid();
    fflush(NULL);
    for (int i = 0; i < l->o->nworkers; i++) {
        pid_t pid = fork();
        if (pid == 0) worker(l, i, parent);
        if (pid < 0) {
            ls_fail(e, LS_ENOMEM, "worker %d can't be started: %s", i, strerror(errno));
            signal_all(l, SIGKILL);
            return LS_ENOMEM;
        }
        l->pids[i] = pid;
        l->alive++;
    }
    return LS_OK;
}

/* A group over TCP meets at a port of this host that nobody else has, with a key that nobody else
 * knows. */
static ls_status make_meeting_place(launch *l, ls_error *e) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    l->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->listen_fd < 0 || bind(l->listen_fd, (struct sockaddr *)&a, n) != 0 ||
        listen(l->listen_fd, 1024) != 0 ||
        getsockname(l->listen_fd, (struct sockaddr *)&a, &n) != 0) {
        int why = errno;
        if (l->listen_fd >= 0) close(l->listen_fd);
        return ls_fail(e, LS_EIO, "can't listen on 127.0.0.1: %s", strerror(why));
    }
    snprintf(l->address, sizeof l->address, "127.0.0.1:%d", ntohs(a.sin_port));
    ls_key_make(l->key);
    return LS_OK;
}

/* Workers that only say that they lost another know less than who saw it die. */
static void find_cause(const launch *l, ls_error *e) {
    const ls_board *b = l->o->board;
    *e = l->error;
    if (l->interrupts > 1) {
        ls_fail(e, LS_EABORT, "interrupted twice: all workers were ended at once");
    } else if (b && !ls_board_failed(b, e) && !l->killed) {
        ls_board_lost(b, e);
    }
}

ls_status ls_launch_run(const ls_launch_options *o, int *code_p, ls_error *e) {
    launch l = {.o = o};
    LS_TRY(ls_commons_create(o->nworkers, o->arena_nbytes, false, &l.commons, e));
    ls_status placed = make_meeting_place(&l, e);
    if (placed != LS_OK) {
        ls_commons_close(&l.commons);
        return placed;
    }
    l.pids = LS_NEW_ARRAY(pid_t, (size_t)o->nworkers);
    sigemptyset(&l.waited);
    sigaddset(&l.waited, SIGCHLD);
    sigaddset(&l.waited, SIGINT);
    sigaddset(&l.waited, SIGTERM);
    sigaddset(&l.waited, SIGHUP);
    sigprocmask(SIG_BLOCK, &l.waited, &l.before);
    /* Where SIGCHLD is ignored, as a parent may have left it, the kernel reaps for us: untold. */
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &l.child_before);
    ls_status s = start(&l, e);
    close(l.listen_fd);
    while (l.alive) {
        wait_signal(&l);
        reap(&l);
        end_rest(&l);
    }
    sigaction(SIGCHLD, &l.child_before, NULL);
    sigprocmask(SIG_SETMASK, &l.before, NULL);
    ls_commons_close(&l.commons);
    free(l.pids);
    if (s != LS_OK) return s;
    *code_p = l.code;
    if (l.code && e) find_cause(&l, e);
    return LS_OK;
}
