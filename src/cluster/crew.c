/* crew.c - see crew.h. */
#include "cluster/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/rest.h"
#include "net/launch/stack.h"

/* If a worker only reports that it lost another one, this long for a worker that knows why. */
static const int64_t LOOK_NS = 50 * 1000 * 1000, GRACE_NS = 500 * 1000 * 1000;
enum {
    STARVED = 10, /* times the heartbeat: a starved process is not considered hung before that */
    BUSY = 3,     /* times the heartbeat: a recalled worker ends an action in that time */
    STACK = 12,   /* functions that are logged */
    MOST_REPAIRERS = 20
};

enum { RUNS = -1 }; /* beside the values of ls_view_end: the view has not ended */

static ls_board_slot *slot(const ls_crew *c, int i) { return &c->o->board->slots[c->o->first + i]; }

/* ---- events ---- */

static void where(const ls_crew *c, int i, char *text, size_t nbytes) {
    text[0] = 0;
    if (c->o->where) c->o->where(c->o->first + i, c->o->arg, text, nbytes);
}

/* Has a worker reported why it failed? If it waited too long for another one, the fault is not its
 * own. */
static int check_board(ls_crew *c) {
    ls_error e = {0};
    if (!ls_board_failed(c->o->board, &e)) return RUNS;
    snprintf(c->cause, sizeof c->cause, "%s", e.msg);
    if (e.code == LS_ETIMEOUT) return LS_VIEW_LOST;
    c->error = e;
    return LS_VIEW_FAILED;
}

static int on_good_end(const ls_crew *c) {
    if (ls_launch_alive(c->l)) return RUNS;
    return atomic_load(&slot(c, 0)->renews) ? LS_VIEW_RENEWED : LS_VIEW_DONE;
}

static int on_end(ls_crew *c, int i, int how) {
    char at[256];
    ls_error lost = {0};
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return on_good_end(c);
    int end = check_board(c);
    if (end != RUNS) return end;
    where(c, i, at, sizeof at);
    if (WIFSIGNALED(how)) {
        int n = WTERMSIG(how);
        c->killed = true;
        snprintf(c->cause, sizeof c->cause, "worker %d was killed by signal %d (%s)%s",
                 c->o->first + i, n, strsignal(n), at);
        bool outside = n == SIGKILL || n == SIGTERM || n == SIGINT || n == SIGHUP;
        return outside ? LS_VIEW_LOST : LS_VIEW_CRASHED;
    }
    if (!c->blamed_ns) c->blamed_ns = ls_clock_ns();
    if (ls_board_lost(c->o->board, &lost))
        snprintf(c->cause, sizeof c->cause, "%s", lost.msg);
    else
        snprintf(c->cause, sizeof c->cause, "worker %d ended with exit code %d%s", c->o->first + i,
                 WEXITSTATUS(how), at);
    return RUNS;
}

/* A worker blames another one. If the view spans hosts, the lost worker may be on another host. */
static int on_blame(ls_crew *c) {
    int end = check_board(c);
    bool waits = ls_clock_ns() - c->blamed_ns < (c->o->size ? GRACE_NS / 5 : GRACE_NS);
    if (end != RUNS || waits) return end;
    return c->o->size ? LS_VIEW_LOST : LS_VIEW_CRASHED;
}

static int look_at(ls_crew *c, int i, int64_t now) {
    pid_t pid = ls_launch_pid(c->l, i);
    int64_t beat = atomic_load(&slot(c, i)->beat_ns);
    if (beat < c->patient_from_ns) beat = c->patient_from_ns;
    double silent_s = (double)(now - beat) / 1e9;
    if (!pid || silent_s < c->heartbeat_s) return RUNS;
    char at[256];
    bool stopped = ls_process_is_stopped(pid);
    if (!stopped && silent_s < c->heartbeat_s * STARVED) return RUNS;
    where(c, i, at, sizeof at);
    snprintf(c->cause, sizeof c->cause, "worker %d (process %d) %s for %.1f s%s", c->o->first + i,
             (int)pid, stopped ? "is stopped and has shown no life" : "has shown no life", silent_s,
             at);
    ls_stack_text(pid, STACK, c->stack, sizeof c->stack);
    c->hangs = i;
    c->killed = true;
    return LS_VIEW_LOST;
}

/* If this process itself was stopped, the workers may have been stopped, too. */
static int check_all(ls_crew *c) {
    int64_t now = ls_clock_ns();
    if (now - c->looked_ns < LOOK_NS / 2) return RUNS;
    if (now - c->looked_ns > 10 * LOOK_NS) c->patient_from_ns = now;
    c->looked_ns = now;
    int end = RUNS;
    for (int i = 0; end == RUNS && i < c->o->nworkers; i++) end = look_at(c, i, now);
    return end;
}

/* ---- survivors ---- */

/* Logs what the other workers were doing when the view ended, for a few of them. */
static void log_others(const ls_crew *c) {
    char at[256];
    for (int i = 0, logged = 0; i < c->o->nworkers && logged < 4; i++) {
        if (!ls_launch_pid(c->l, i)) continue;
        where(c, i, at, sizeof at);
        ls_log("  worker %d was%s", c->o->first + i, at);
        logged++;
    }
}

static void close_view(ls_crew *c) {
    ls_launch_close(c->l);
    c->l = NULL;
    c->rests = false;
    c->recalled_ns = 0;
}

static void recall(ls_crew *c, int end) {
    c->recalled_for = end;
    c->recalled_ns = ls_clock_ns();
    if (c->hangs >= 0) ls_launch_signal(c->l, c->hangs, SIGKILL);
    for (int i = 0; i < c->o->nworkers; i++)
        if (ls_launch_pid(c->l, i)) ls_rest_recall(slot(c, i));
    ls_launch_call_off(c->l);
}

/* A worker that shows no life, or stays in one action for long, is replaced like the lost one. */
static bool is_late(const ls_crew *c, int i, int64_t now) {
    int64_t beat = atomic_load(&slot(c, i)->beat_ns);
    double since_s = (double)(now - c->recalled_ns) / 1e9;
    return since_s > c->heartbeat_s * BUSY ||
           (since_s > c->heartbeat_s && (double)(now - beat) / 1e9 > c->heartbeat_s);
}

static bool all_rest(const ls_crew *c) {
    int64_t now = ls_clock_ns();
    bool all = true;
    for (int i = 0; i < c->o->nworkers; i++) {
        if (!ls_launch_pid(c->l, i) || atomic_load(&slot(c, i)->rests)) continue;
        all = false;
        if (is_late(c, i, now)) ls_launch_signal(c->l, i, SIGKILL);
    }
    return all;
}

static int check_recalled(ls_crew *c, const ls_launch_event *ev) {
    bool failed = ev->what == LS_LAUNCH_ENDED && WIFEXITED(ev->how) && WEXITSTATUS(ev->how) != 0;
    if (failed && check_board(c) == LS_VIEW_FAILED) return LS_VIEW_FAILED;
    if (!all_rest(c)) return RUNS;
    c->recalled_ns = 0;
    c->rests = ls_launch_alive(c->l) > 0;
    return c->recalled_for;
}

bool ls_crew_runs(const ls_crew *c) { return c->l && !c->rests; }
bool ls_crew_rests(const ls_crew *c) { return c->rests; }

/* Logs why the view ends badly. */
static void log_end(const ls_crew *c) {
    ls_log("view %lld: %s", (long long)c->view, c->cause);
    if (c->stack[0]) ls_log("  it is in %s", c->stack);
    log_others(c);
}

static int check_running(ls_crew *c, const ls_launch_event *ev) {
    int end = RUNS;
    if (ev->what == LS_LAUNCH_ENDED) end = on_end(c, ev->rank, ev->how);
    if (end == RUNS && ev->what == LS_LAUNCH_QUIET) end = check_all(c);
    if (end == RUNS && c->blamed_ns) end = on_blame(c);
    if (end != LS_VIEW_LOST && end != LS_VIEW_CRASHED) return end;
    log_end(c);
    if (!c->stays) return end;
    recall(c, end);
    return check_recalled(c, ev);
}

int ls_crew_blames(const ls_crew *c, char *why) {
    ls_error e = {0};
    int worker = 0;
    for (int i = 0; i < c->o->nworkers && !worker; i++)
        worker = atomic_load(&slot(c, i)->unreached);
    bool knows = ls_board_lost(c->o->board, &e) || ls_board_failed(c->o->board, &e);
    if (c->killed || (!worker && !knows)) return LS_BLAMES_NONE;
    snprintf(why, sizeof c->cause, "%s", knows ? e.msg : c->cause);
    return worker ? worker : LS_BLAMES_ENDED;
}

bool ls_crew_look(ls_crew *c, const ls_launch_event *ev, ls_view_end *end_p) {
    int end = c->recalled_ns ? check_recalled(c, ev) : check_running(c, ev);
    if (end == RUNS) return false;
    if (!c->rests) close_view(c);
    *end_p = (ls_view_end)end;
    return true;
}

void ls_crew_end(ls_crew *c, const char *why) {
    if (!c->l) return;
    if (why) ls_log("view %lld: %s", (long long)c->view, why);
    if (why) log_others(c);
    close_view(c);
}

/* ---- a view ---- */

/* Resting workers continue, with new ones in the places of the others. */
static ls_status send_on(ls_crew *c, ls_error *e) {
    LS_TRY(ls_launch_renew(c->l, e));
    c->rests = false;
    for (int i = 0; i < c->o->nworkers; i++)
        if (atomic_load(&slot(c, i)->rests)) ls_rest_send_on(slot(c, i), c->view);
    return LS_OK;
}

ls_status ls_crew_start(ls_crew *c, int64_t view, ls_error *e) {
    ls_board_reset(c->o->board);
    for (int i = 0; i < c->o->nworkers; i++)
        if (!c->rests || !ls_launch_pid(c->l, i)) ls_rest_clear(slot(c, i));
    c->view = view;
    c->cause[0] = c->stack[0] = 0;
    c->error = (ls_error){0};
    c->blamed_ns = 0;
    c->killed = false;
    c->hangs = -1;
    c->looked_ns = c->patient_from_ns = ls_clock_ns();
    return c->rests ? send_on(c, e) : ls_launch_start(c->o, c->signals, &c->l, e);
}

void ls_crew_ask(const ls_crew *c, ls_asked what) {
    for (int i = 0; ls_crew_runs(c) && i < c->o->nworkers; i++) {
        atomic_int *asked = &slot(c, i)->asked;
        if (atomic_load(asked) < (int)what) atomic_store(asked, what);
    }
}

void ls_crew_give_up(const ls_crew *c) {
    for (int i = 0; ls_crew_runs(c) && i < c->o->nworkers; i++)
        atomic_store(&slot(c, i)->gives_up, 1);
}

int ls_crew_staying(const ls_crew *c) {
    int n = c->o->nworkers;
    for (int i = 0; i < c->o->nworkers; i++) n -= atomic_load(&slot(c, i)->leaves) != 0;
    return n;
}

/* ---- repair ---- */

static ls_status start_repairer(ls_crew *c, ls_crew_repair *repair, void *arg, ls_error *e) {
    pid_t pid = ls_child_start(&c->repairer, &c->signals->before);
    if (pid < 0) return ls_fail(e, LS_ENOMEM, "no process to finish the step: %s", strerror(errno));
    if (pid == 0) {
        ls_error own = {0};
        ls_status s = repair(arg, &own);
        if (s != LS_OK) ls_board_fail(c->o->board, &own);
        _exit(s == LS_OK ? 0 : 1);
    }
    c->repairers++;
    return LS_OK;
}

bool ls_crew_repaired(ls_crew *c, ls_crew_repair *repair, void *arg, ls_status *status_p,
                      ls_error *e) {
    int how = 0;
    if (!c->repairs) {
        ls_board_reset(c->o->board);
        c->repairs = true;
        c->repairers = 0;
        *status_p = start_repairer(c, repair, arg, e);
        c->repairs = *status_p == LS_OK;
        return *status_p != LS_OK;
    }
    if (!ls_child_ended(&c->repairer, c->heartbeat_s, &how)) return false;
    *status_p = LS_OK;
    if (WIFSIGNALED(how) && c->repairers < MOST_REPAIRERS) {
        *status_p = start_repairer(c, repair, arg, e);
        if (*status_p == LS_OK) return false;
    } else if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        if (ls_board_failed(c->o->board, e) || ls_board_lost(c->o->board, e))
            *status_p = e->code;
        else
            *status_p =
                ls_fail(e, LS_EINVAL, "the step that the workers had begun could not be finished");
    }
    c->repairs = false;
    return true;
}
