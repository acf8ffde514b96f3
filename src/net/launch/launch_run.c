/* launch_run.c - ls_launch_run() of launch.h: all workers end with the first that fails, and start
 * again where that is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/launch/launch.h"
#include "net/launch/stop.h"

/* GRACE_NS: after a failure the other workers have this long to end by themselves, then again to
 * react to SIGTERM. LOOK_NS: how often that is checked. */
enum { STOPPED = 75, NOT_EXECUTABLE = 126, NOT_FOUND = 127 }; /* exit codes */
static const int64_t GRACE_NS = 500 * 1000 * 1000, LOOK_NS = 100 * 1000 * 1000;

typedef struct run {
    const ls_launch_options *o;
    ls_launch *l;
    int code;
    int64_t first_ns; /* of ls_stop_again() */
    int64_t end_at;   /* when the rest get SIGTERM, then SIGKILL; 0: never */
    bool asked;       /* SIGTERM was sent */
    bool stopped;     /* this process was asked to stop */
    bool ends;        /* and asked again */
    bool killed;      /* the worker that failed first was killed */
    ls_error error;   /* its error */
} run;

static void note_end(run *r, int rank, int how) {
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return;
    if (!r->end_at) r->end_at = ls_clock_ns() + GRACE_NS;
    if (r->code) return;
    r->killed = WIFSIGNALED(how);
    if (r->killed) {
        char where[256] = "";
        if (r->o->where) r->o->where(rank, r->o->arg, where, sizeof where);
        r->code = 128 + WTERMSIG(how);
        ls_fail(&r->error, LS_EPEER, "worker %d was killed by signal %d (%s)%s", rank,
                WTERMSIG(how), strsignal(WTERMSIG(how)), where);
    } else {
        r->code = WEXITSTATUS(how);
        ls_fail(&r->error, LS_EPEER, "worker %d ended with exit code %d", rank, r->code);
    }
}

static void end_rest(run *r) {
    if (!r->end_at || ls_clock_ns() < r->end_at) return;
    ls_launch_signal_all(r->l, r->asked ? SIGKILL : SIGTERM);
    r->asked = true;
    r->end_at = ls_clock_ns() + GRACE_NS;
}

static void on_signal(run *r, int number) {
    r->stopped = true;
    r->ends = ls_stop_again(number, &r->first_ns) || r->ends;
    ls_launch_signal_all(r->l, r->ends ? SIGKILL : number);
}

/* A worker that only reports the loss of another knows less than this process, which saw it die. */
static void find_cause(const run *r, ls_error *e) {
    const ls_board *b = r->o->board;
    *e = r->error;
    if (r->ends) {
        ls_fail(e, LS_EABORT, "interrupted twice: all workers were ended at once");
    } else if (b && !ls_board_failed(b, e) && !r->killed) {
        ls_board_lost(b, e);
    }
}

/* Starts the workers, and waits until all have ended. */
static ls_status run_workers(run *r, const ls_launch_signals *signals, ls_error *e) {
    ls_status s = ls_launch_start(r->o, signals, &r->l, e);
    while (s == LS_OK && ls_launch_alive(r->l)) {
        ls_launch_event ev = ls_launch_wait(r->l, signals, LOOK_NS);
        if (ev.what == LS_LAUNCH_ENDED) {
            ls_launch_note_end(r->l, &ev);
            note_end(r, ev.rank, ev.how);
        }
        if (ev.what == LS_LAUNCH_SIGNAL) on_signal(r, ev.number);
        end_rest(r);
    }
    ls_launch_close(r->l);
    return s;
}

static void set_count(int nstarts) {
    char text[16];
    snprintf(text, sizeof text, "%d", nstarts);
    setenv("LOCKSTEP_RESTART_COUNT", text, 1);
}

static bool may_restart(const run *r, int nstarts) {
    return r->code && nstarts <= r->o->restarts && !r->stopped && r->code != STOPPED &&
           r->code != NOT_EXECUTABLE && r->code != NOT_FOUND;
}

ls_status ls_launch_run(const ls_launch_options *o, int *code_p, ls_error *e) {
    run r;
    ls_launch_signals signals;
    ls_status s = LS_OK;
    int n = 0;
    ls_launch_hold(&signals);
    do {
        if (n) ls_log("%s; all workers start again (%d of %d times)", r.error.msg, n, o->restarts);
        r = (run){.o = o};
        if (o->argv) set_count(n);
        n++;
        s = run_workers(&r, &signals, e);
    } while (s == LS_OK && may_restart(&r, n));
    ls_launch_release(&signals);
    if (s != LS_OK) return s;
    *code_p = r.code;
    if (r.code && e) find_cause(&r, e);
    return LS_OK;
}
