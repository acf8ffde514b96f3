/* survive.c - see survive.h. */
#include "train/survive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/process.h"
#include "net/stack.h"

/* Views that end before a step is complete, one after the other, until the run is given up: where
 * workers crash, it is their fault; where they are killed or hang, it may be bad luck. */
enum { MEND_LOOK_US = 1000, MOST_CRASHES = 3, MOST_LOSSES = 100, MOST_MENDERS = 20 };

/* Who only lost another waits so long for one that knows why. */
static const int64_t LOOK_NS = 50 * 1000 * 1000, GRACE_NS = 500 * 1000 * 1000;
/* A process that the system does not let run is not one that hangs. */
enum { STARVED = 10 /* times the heartbeat */, STACK = 12 /* functions that are told */ };

/* How a view has ended. */
typedef enum outcome {
    RUNS,
    DONE,
    RENEWED, /* all have ended for others to go on */
    FAILED,  /* with an error */
    LOST,    /* a worker */
    CRASHED,
} outcome;

typedef struct view {
    ls_survival *s;
    ls_launch_options *o;
    ls_launch *l;
    int interrupts;
    int64_t looked_ns, patient_from_ns; /* nobody is found silent since before */
    int64_t blamed_ns;                  /* when the first worker blamed another; 0: none has */
    char cause[512], stack[512];        /* stack: of a worker that hangs */
} view;

/* ---- what has happened ---- */

static void where(const view *v, int rank, char *text, size_t nbytes) {
    text[0] = 0;
    if (v->o->where) v->o->where(rank, v->o->arg, text, nbytes);
}

/* Has a worker said why it failed? That it waited too long for another is no fault of its own. */
static outcome look_at_board(view *v, ls_error *e) {
    if (!ls_board_failed(v->o->board, e)) return RUNS;
    if (e->code != LS_ETIMEOUT) return FAILED;
    snprintf(v->cause, sizeof v->cause, "%s", e->msg);
    return LOST;
}

static outcome on_good_end(const view *v) {
    if (ls_launch_alive(v->l)) return RUNS;
    return atomic_load(&v->o->board->slots[0].renews) ? RENEWED : DONE;
}

static outcome on_end(view *v, int rank, int how, ls_error *e) {
    char at[256];
    ls_error lost = {0};
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return on_good_end(v);
    outcome o = look_at_board(v, e);
    if (o != RUNS) return o;
    where(v, rank, at, sizeof at);
    if (WIFSIGNALED(how)) {
        int n = WTERMSIG(how);
        snprintf(v->cause, sizeof v->cause, "worker %d was killed by signal %d (%s)%s", rank, n,
                 strsignal(n), at);
        return n == SIGKILL || n == SIGTERM || n == SIGINT || n == SIGHUP ? LOST : CRASHED;
    }
    if (!v->blamed_ns) v->blamed_ns = ls_clock_ns();
    if (ls_board_lost(v->o->board, &lost))
        snprintf(v->cause, sizeof v->cause, "%s", lost.msg);
    else
        snprintf(v->cause, sizeof v->cause, "worker %d ended with exit code %d%s", rank,
                 WEXITSTATUS(how), at);
    return RUNS;
}

static outcome look_at(view *v, int rank, int64_t now) {
    pid_t pid = ls_launch_pid(v->l, rank);
    int64_t beat = atomic_load(&v->o->board->slots[rank].beat_ns);
    if (beat < v->patient_from_ns) beat = v->patient_from_ns;
    double silent_s = (double)(now - beat) / 1e9;
    if (!pid || silent_s < v->s->heartbeat_s) return RUNS;
    char at[256];
    bool stopped = ls_process_is_stopped(pid);
    if (!stopped && silent_s < v->s->heartbeat_s * STARVED) return RUNS;
    where(v, rank, at, sizeof at);
    snprintf(v->cause, sizeof v->cause, "worker %d (process %d) %s for %.1f s%s", rank, (int)pid,
             stopped ? "is stopped and has shown no life" : "has shown no life", silent_s, at);
    ls_stack_text(pid, STACK, v->stack, sizeof v->stack);
    return LOST;
}

/* If this process itself was stopped, so may all have been. */
static outcome look_at_all(view *v) {
    int64_t now = ls_clock_ns();
    if (now - v->looked_ns > 10 * LOOK_NS) v->patient_from_ns = now;
    v->looked_ns = now;
    for (int i = 0; i < v->o->nworkers; i++) {
        outcome o = look_at(v, i, now);
        if (o != RUNS) return o;
    }
    return RUNS;
}

/* ---- a view ---- */

static void ask_all(const view *v, ls_asked what) {
    for (int i = 0; i < v->o->nworkers; i++) {
        atomic_int *asked = &v->o->board->slots[i].asked;
        if (atomic_load(asked) < (int)what) atomic_store(asked, what);
    }
}

static outcome on_signal(view *v, ls_error *e) {
    v->s->stop = true;
    ask_all(v, LS_ASKED_STOP);
    if (v->interrupts++ == 0) return RUNS;
    ls_fail(e, LS_EABORT, "interrupted twice: all workers were ended at once");
    return FAILED;
}

static void attend(const view *v) {
    ls_survival *s = v->s;
    s->attend(s->arg);
    bool resizes = s->wanted && s->wanted != v->o->nworkers;
    if (resizes || s->reshape) ask_all(v, LS_ASKED_RENEW);
}

static outcome watch(view *v, ls_error *e) {
    v->looked_ns = v->patient_from_ns = ls_clock_ns();
    for (;;) {
        ls_launch_event ev = ls_launch_wait(v->l, LOOK_NS);
        outcome o = RUNS;
        if (ev.what == LS_LAUNCH_ENDED) o = on_end(v, ev.rank, ev.how, e);
        if (ev.what == LS_LAUNCH_QUIET) o = look_at_all(v);
        if (o == RUNS && v->blamed_ns) o = look_at_board(v, e);
        if (o == RUNS && v->blamed_ns && ls_clock_ns() - v->blamed_ns > GRACE_NS) o = CRASHED;
        if (o == RUNS && ev.what == LS_LAUNCH_SIGNAL) o = on_signal(v, e);
        if (o != RUNS) return o;
        attend(v);
    }
}

/* What the others were doing when the view ended, a few of them. */
static void tell_others(const view *v) {
    char at[256];
    for (int i = 0, told = 0; i < v->o->nworkers && told < 4; i++) {
        if (!ls_launch_pid(v->l, i)) continue;
        where(v, i, at, sizeof at);
        ls_log("  worker %d was%s", i, at);
        told++;
    }
}

static outcome run_view(view *v, const ls_launch_signals *signals, ls_error *e) {
    ls_board_reset(v->o->board);
    v->s->view++;
    v->cause[0] = v->stack[0] = 0;
    v->blamed_ns = 0;
    if (ls_launch_start(v->o, signals, &v->l, e) != LS_OK) return FAILED;
    outcome o = watch(v, e);
    if (o == LOST || o == CRASHED) {
        ls_log("view %lld: %s", (long long)v->s->view, v->cause);
        if (v->stack[0]) ls_log("  it is in %s", v->stack);
        tell_others(v);
    }
    ls_launch_close(v->l);
    v->l = NULL;
    return o;
}

/* ---- between views ---- */

static ls_status mend(const view *v, const ls_launch_signals *signals, ls_error *e) {
    ls_board_reset(v->o->board);
    for (int i = 0; i < MOST_MENDERS; i++) {
        pid_t parent = getpid(), pid = fork();
        if (pid < 0) return ls_fail(e, LS_ENOMEM, "no process to mend: %s", strerror(errno));
        if (pid == 0) {
            ls_error own = {0};
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(1);
            sigprocmask(SIG_SETMASK, &signals->before, NULL);
            ls_status s = v->s->mend(v->s->arg, &own);
            if (s != LS_OK) ls_board_fail(v->o->board, &own);
            _exit(s == LS_OK ? 0 : 1);
        }
        ls_child mender = {.pid = pid};
        int how = 0;
        while (!ls_child_ended(&mender, v->s->heartbeat_s, &how)) usleep(MEND_LOOK_US);
        if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return LS_OK;
        if (WIFEXITED(how)) break;
    }
    if (ls_board_failed(v->o->board, e) || ls_board_lost(v->o->board, e)) return e->code;
    return ls_fail(e, LS_EINVAL, "what the workers left could not be mended");
}

/* How many workers come next: those that were told to leave are not followed, if enough stay. */
static int next_size(const view *v) {
    const ls_survival *s = v->s;
    int n = v->o->nworkers;
    for (int i = 0; i < v->o->nworkers; i++) n -= atomic_load(&v->o->board->slots[i].leaves) != 0;
    if (s->wanted) n = s->wanted;
    return n < s->least ? s->least : n > s->most ? s->most : n;
}

static ls_status resize(view *v, int n, ls_error *e) {
    bool alike = n == v->o->nworkers && !v->s->reshape;
    v->s->wanted = 0;
    v->s->reshape = false;
    if (alike) return LS_OK;
    LS_TRY(v->s->resize(v->s->arg, n, e));
    v->o->nworkers = n;
    return LS_OK;
}

ls_status ls_survive(ls_survival *s, ls_launch_options *o, ls_error *e) {
    view v = {.s = s, .o = o};
    s->board = o->board;
    ls_launch_signals signals;
    ls_launch_hold(&signals);
    outcome end = RUNS;
    ls_status status = LS_OK;
    int crashes = 0, losses = 0;
    for (int64_t steps = -1; status == LS_OK;) {
        end = run_view(&v, &signals, e);
        if (end == DONE || end == FAILED) break;
        int next = next_size(&v); /* mending clears the board */
        status = mend(&v, &signals, e);
        if (status == LS_OK) status = resize(&v, next, e);
        int64_t now = s->steps(s->arg);
        if (now > steps) crashes = losses = 0;
        steps = now;
        crashes += end == CRASHED;
        losses += end == LOST;
        if (status == LS_OK && (crashes == MOST_CRASHES || losses == MOST_LOSSES))
            status = ls_fail(e, LS_EPEER, "%s; given up, %d views came no step further", v.cause,
                             crashes + losses);
        if (status == LS_OK)
            ls_log("view %lld: going on after step %lld, with %d worker%s", (long long)s->view + 1,
                   (long long)(now < 0 ? 0 : now), o->nworkers, o->nworkers == 1 ? "" : "s");
    }
    ls_launch_release(&signals);
    return end == FAILED ? e->code : status;
}
