/* launch.c - see launch.h: workers are started, waited for, signalled, ended. */
#include "net/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/join_key.h"
#include "net/launch/child.h"
#include "net/launch/stop.h"
#include "net/launch/tether.h"
#include "net/local/commons.h"

struct ls_launch {
    const ls_launch_options *o;
    const ls_launch_signals *signals;
    ls_commons commons;
    ls_tether tether; /* of a program's workers */
    int listen_fd;    /* of worker 0, for groups over TCP */
    char address[32], key[65];
    pid_t *pids; /* [nworkers], 0 once reaped */
    int alive;
};

/* ---- signals ---- */

void ls_launch_hold(ls_launch_signals *s) {
    sigemptyset(&s->waited);
    sigaddset(&s->waited, SIGCHLD);
    sigaddset(&s->waited, SIGINT);
    sigaddset(&s->waited, SIGTERM);
    if (!ls_process_ignores(SIGHUP)) sigaddset(&s->waited, SIGHUP);
    sigprocmask(SIG_BLOCK, &s->waited, &s->before);
    ls_stop_repeat(); /* one that came earlier waits, too */
    /* If SIGCHLD is ignored, as our parent may have left it, the kernel reaps children silently. */
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &s->child_before);
}

/* SIGHUP is ignored from here on: a terminal that is closed may send it once more, and must not end
 * this process before it has finished. */
void ls_launch_release(const ls_launch_signals *s) {
    signal(SIGHUP, SIG_IGN);
    sigaction(SIGCHLD, &s->child_before, NULL);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

/* ---- starting ---- */

static void set_number(const char *name, int value) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static _Noreturn void worker(const ls_launch *l, int rank) {
    if (l->o->bind) (void)ls_cores_bind(rank, l->o->nworkers);
    set_number("LOCKSTEP_RANK", l->o->first + rank);
    set_number("LOCKSTEP_SIZE", l->o->size ? l->o->size : l->o->nworkers);
    set_number("LOCKSTEP_LOCAL_RANK", rank);
    set_number("LOCKSTEP_LOCAL_SIZE", l->o->nworkers);
    if (l->o->size) {
        setenv("LOCKSTEP_ADDR", l->o->address, 1);
        setenv("LOCKSTEP_HOST", l->o->host, 1);
        if (l->o->listen && *l->o->listen) setenv("LOCKSTEP_LISTEN", l->o->listen, 1);
        setenv("LOCKSTEP_LISTENS", "1", 1); /* worker 0's socket is made before any of them */
        unsetenv("LOCKSTEP_SHM");
    } else {
        unsetenv("LOCKSTEP_LISTEN");
        unsetenv("LOCKSTEP_LISTENS");
        set_number("LOCKSTEP_SHM", l->commons.fd);
        setenv("LOCKSTEP_ADDR", l->address, 1);
        setenv("LOCKSTEP_KEY", l->key, 1);
        unsetenv("LOCKSTEP_KEY_FILE");
    }
    if (l->o->first + rank == 0 && l->listen_fd >= 0) {
        set_number("LOCKSTEP_LISTEN_FD", l->listen_fd);
    } else {
        if (l->listen_fd >= 0) close(l->listen_fd);
        unsetenv("LOCKSTEP_LISTEN_FD"); /* of a launcher around this one */
    }
    if (!l->o->argv) {
        int code = l->o->main(l->o->arg);
        fflush(NULL);
        _exit(code);
    }
    ls_tether_show(&l->tether);
    fcntl(l->commons.fd, F_SETFD, 0);
    fcntl(l->listen_fd, F_SETFD, 0);
    ls_process_restore();
    execvp(l->o->argv[0], l->o->argv);
    int why = errno;
    if (rank == 0) ls_log("%s: %s", l->o->argv[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

/* A group over TCP meets at a free port of this host, with a key that no other process knows. */
static ls_status make_meeting_place(ls_launch *l, ls_error *e) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    l->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->listen_fd < 0 || bind(l->listen_fd, (struct sockaddr *)&a, n) != 0 ||
        listen(l->listen_fd, 1024) != 0 ||
        getsockname(l->listen_fd, (struct sockaddr *)&a, &n) != 0)
        return ls_fail(e, LS_EIO, "can't listen on 127.0.0.1: %s", strerror(errno));
    snprintf(l->address, sizeof l->address, "127.0.0.1:%d", ntohs(a.sin_port));
    ls_key_make(l->key);
    return LS_OK;
}

/* Starts the workers that don't run. */
static ls_status fork_workers(ls_launch *l, ls_error *e) {
    fflush(NULL);
    for (int i = 0; i < l->o->nworkers; i++) {
        if (l->pids[i]) continue;
        ls_child c;
        pid_t pid = ls_child_start(&c, &l->signals->before);
        if (pid == 0) worker(l, i);
        if (pid < 0)
            return ls_fail(e, LS_ENOMEM, "worker %d can't be started: %s", i, ls_thread_why(errno));
        l->pids[i] = pid;
        l->alive++;
    }
    return LS_OK;
}

ls_status ls_launch_start(const ls_launch_options *o, const ls_launch_signals *signals,
                          ls_launch **l_p, ls_error *e) {
    ls_launch *l = LS_NEW(ls_launch);
    *l = (ls_launch){
        .o = o, .signals = signals, .commons = {.fd = -1}, .listen_fd = -1, .tether = {{-1, -1}}};
    l->pids = LS_NEW_ARRAY(pid_t, (size_t)o->nworkers);
    ls_status s = LS_OK;
    if (o->size) {
        if (o->first == 0) l->listen_fd = o->listen_fd;
    } else {
        s = ls_commons_create(o->nworkers, o->arena_nbytes, false, &l->commons, e);
        if (s == LS_OK) s = make_meeting_place(l, e);
    }
    if (s == LS_OK && o->argv) s = ls_tether_open(&l->tether, e);
    if (s == LS_OK) s = fork_workers(l, e);
    if (l->listen_fd >= 0) close(l->listen_fd); /* it is worker 0's */
    l->listen_fd = -1;
    if (s == LS_OK)
        *l_p = l;
    else
        ls_launch_close(l);
    return s;
}

void ls_launch_call_off(const ls_launch *l) { ls_commons_call_off(&l->commons); }

ls_status ls_launch_renew(ls_launch *l, ls_error *e) {
    LS_TRY(ls_commons_renew(&l->commons, e));
    return fork_workers(l, e);
}

void ls_launch_close(ls_launch *l) {
    if (!l) return;
    ls_launch_signal_all(l, SIGKILL);
    for (int i = 0; i < l->o->nworkers; i++)
        while (l->pids[i] && waitpid(l->pids[i], NULL, 0) < 0 && errno == EINTR) {
        }
    ls_tether_close(&l->tether);
    ls_commons_close(&l->commons);
    free(l->pids);
    free(l);
}

/* ---- while they run ---- */

/* Reaps a worker that has ended; false: none has. Other children of this process are left alone. */
static bool reap(ls_launch *l, ls_launch_event *ev) {
    for (int i = 0; i < l->o->nworkers; i++) {
        if (!l->pids[i] || waitpid(l->pids[i], &ev->how, WNOHANG) <= 0) continue;
        ev->pid = l->pids[i];
        l->pids[i] = 0;
        l->alive--;
        ev->what = LS_LAUNCH_ENDED;
        ev->rank = i;
        return true;
    }
    return false;
}

ls_launch_event ls_launch_wait(ls_launch *l, const ls_launch_signals *signals, int64_t timeout_ns) {
    ls_launch_event ev = {.what = LS_LAUNCH_QUIET, .rank = -1};
    struct timespec t = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (l && reap(l, &ev)) return ev;
    ev.number = sigtimedwait(&signals->waited, NULL, &t);
    if (ev.number > 0 && ev.number != SIGCHLD) ev.what = LS_LAUNCH_SIGNAL;
    if (l && ev.number == SIGCHLD) reap(l, &ev);
    return ev;
}

/* Sends the signal of an ended child, though none has ended. */
void ls_launch_nudge(void) { kill(getppid(), SIGCHLD); }

void ls_launch_note_end(const ls_launch *l, const ls_launch_event *ev) {
    if (l->commons.head) ls_commons_note_end(&l->commons, ev->rank, (int)ev->pid, ev->how);
}

int ls_launch_alive(const ls_launch *l) { return l->alive; }
pid_t ls_launch_pid(const ls_launch *l, int rank) { return l->pids[rank]; }

void ls_launch_signal(const ls_launch *l, int rank, int number) {
    if (l->pids[rank]) kill(l->pids[rank], number);
}

void ls_launch_signal_all(const ls_launch *l, int number) {
    for (int i = 0; i < l->o->nworkers; i++) ls_launch_signal(l, i, number);
}
