/* workers.c - see workers.h. */
#include "cluster/workers.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cluster/rest.h"
#include "net/launch/environment.h"
#include "net/launch/launch.h"
#include "net/launch/stop.h"
#include "net/local/beat.h"
#include "net/unreached.h"

/* ---- interrupts ---- */

static volatile sig_atomic_t is_interrupted;
static int64_t first_ns;                  /* of ls_stop_again() */
static atomic_llong interrupted_ns;       /* when the first signal came */
static volatile sig_atomic_t second_ends; /* the second signal ends the process */

static void on_interrupt(int number) {
    static const char text[] = "lockstep: interrupted twice: ended at once; the steps after the "
                               "newest checkpoint are lost, and --resume continues from it\n";
    if (!is_interrupted) atomic_store(&interrupted_ns, ls_clock_ns());
    is_interrupted = 1;
    if (!ls_stop_again(number, &first_ns) || !second_ends) return;
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t ignored = poll(&p, 1, 0) > 0 ? write(STDERR_FILENO, text, sizeof text - 1) : 0;
    (void)ignored;
    _exit(1);
}

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { NSIGNALS = sizeof stop_signals / sizeof *stop_signals };

static void catch_interrupts(bool end_at_second, struct sigaction before[NSIGNALS]) {
    struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    is_interrupted = 0;
    first_ns = 0;
    second_ends = end_at_second;
    for (int i = 0; i < NSIGNALS; i++) {
        sigaction(stop_signals[i], NULL, &before[i]);
        bool nohup = stop_signals[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
        if (!nohup) sigaction(stop_signals[i], &a, NULL);
    }
    ls_stop_repeat();
}

/* After a stop, the process still has to end well: a terminal that is closed may send SIGHUP
 * again. */
static void release_interrupts(const struct sigaction before[NSIGNALS]) {
    for (int i = 0; i < NSIGNALS; i++) {
        if (is_interrupted && stop_signals[i] == SIGHUP)
            signal(SIGHUP, SIG_IGN);
        else
            sigaction(stop_signals[i], &before[i], NULL);
    }
}

bool ls_interrupted(void) { return is_interrupted != 0; }

double ls_interrupted_s(void) {
    return is_interrupted ? (double)(ls_clock_ns() - atomic_load(&interrupted_ns)) / 1e9 : 0;
}

/* ---- one worker ---- */

static ls_group_options options_of(const ls_workers *w) {
    return (ls_group_options){
        .transport = w->transport, .timeout_s = w->timeout_s, .arena_nbytes = w->arena_nbytes};
}

/* ---- messages that all workers would print ---- */

/* If the workers don't meet, the launcher gets the message and the exit of the first one within
 * this time, and then ends the others. */
enum { MEET_S = 5, ALONE_US = 1000 * 1000 };
/* A worker that fails because of another lets that one report first. */
enum { SILENT_US = 300 * 1000 };

static bool tried; /* whether this process has tried to open its group */

/* Collective, the first call of workers that a launcher has started: fails on all if one has
 * `failed`. The first of the workers that hold the same messages (log.h) writes them. */
static ls_status meet(ls_group *g, bool failed, ls_error *e) {
    size_t n = (size_t)ls_group_size(g), me = (size_t)ls_group_rank(g);
    const char *text = ls_log_held();
    uint64_t hash = text ? ls_hash_bytes(text, strlen(text)).lo : 0;
    int64_t own[2] = {(int64_t)hash, failed}, *all = LS_NEW_ARRAY(int64_t, 2 * n);
    ls_status s = ls_all_gather(g, own, all, 2, LS_I64, e);
    bool first = true, failures = false;
    for (size_t i = 0; s == LS_OK && i < n; i++) {
        if (i < me && all[2 * i] == own[0]) first = false;
        if (all[2 * i + 1]) failures = true;
    }
    free(all);
    ls_log_release(first);
    if (s == LS_OK && failures) {
        ls_barrier(g, NULL);                /* all have written their messages */
        *e = (ls_error){.code = LS_EABORT}; /* the workers that failed report why */
        s = LS_EABORT;
    }
    return s;
}

void ls_workers_hold_log(void) {
    ls_environment env;
    if (ls_environment_read(&env, NULL) == LS_OK && env.launcher != LS_LAUNCHER_NONE &&
        env.size > 1)
        ls_log_hold(env.rank > 0);
}

void ls_workers_fail(void) {
    if (!ls_log_held()) return;
    ls_group *g = NULL;
    ls_error e = {0};
    ls_group_options o = {.timeout_s = MEET_S};
    if (!tried && ls_group_open(&o, &g, &e) == LS_OK)
        meet(g, true, &e);
    else
        usleep(ALONE_US);
    ls_log_release(true);
    ls_group_close(g);
}

/* ---- threads ---- */

typedef struct member {
    pthread_t thread;
    ls_group *g;
    ls_board *board;
    ls_worker_main *main;
    void *arg;
} member;

static void run_member(member *m) {
    ls_error e = {0};
    if (m->main(m->g, &m->board->slots[ls_group_rank(m->g)], m->arg, &e) != LS_OK)
        ls_board_fail(m->board, &e);
    ls_group_close(m->g);
}

static void *member_main(void *arg) {
    run_member(arg);
    return NULL;
}

static ls_status run_threads(const ls_workers *w, ls_board *board, ls_worker_main *main_fn,
                             void *arg, ls_error *e) {
    size_t n = (size_t)w->n;
    ls_group **groups = LS_NEW_ARRAY(ls_group *, n);
    member *members = LS_NEW_ARRAY(member, n);
    ls_group_options o = options_of(w);
    o.transport = NULL; /* "thread" is no group's */
    ls_status s = ls_group_open_threads(w->n, &o, groups, e);
    int started = 0;
    for (; s == LS_OK && started < w->n; started++) {
        member *m = &members[started];
        *m = (member){.g = groups[started], .board = board, .main = main_fn, .arg = arg};
        int failed = pthread_create(&m->thread, NULL, member_main, m);
        if (!failed) continue;
        s = ls_fail(e, LS_ENOMEM, "worker %d can't be started: %s", started, ls_thread_why(failed));
        for (int i = started; i < w->n; i++) ls_group_close(groups[i]); /* lost to the others */
        break;
    }
    for (int i = 0; i < started; i++) pthread_join(members[i].thread, NULL);
    free(members);
    free(groups);
    if (s == LS_OK && (ls_board_failed(board, e) || ls_board_lost(board, e))) s = e->code;
    return s;
}

/* ---- processes ---- */

typedef struct family {
    const ls_workers *w;
    ls_board *board;
    ls_worker_main *main;
    void *arg;
} family;

/* Where a launcher has started the workers, a group that has lost one may be closed only when the
 * launcher ends this process (net/mpi/plugin.c): the loss is logged before. */
static void log_loss(const family *f, ls_status s, ls_error *e) {
    if (f->board || s != LS_EPEER || !e->msg[0]) return;
    ls_log("%s", e->msg);
    e->msg[0] = 0; /* the caller logs it no more */
}

static ls_status run_process(const family *f, ls_board_slot *slots, ls_error *e) {
    ls_group *g = NULL;
    ls_group_options o = options_of(f->w);
    tried = true;
    LS_TRY(ls_group_open(&o, &g, e));
    ls_status s = f->board ? LS_OK : meet(g, false, e);
    if (s == LS_OK) s = f->main(g, &slots[f->board ? ls_group_rank(g) : 0], f->arg, e);
    log_loss(f, s, e);
    ls_group_close(g);
    return s;
}

/* Runs view after view, as long as this process lives. */
static ls_status live(const family *f, ls_board_slot *me, ls_error *e) {
    ls_supervisor *survival = f->w->survival;
    for (;;) {
        ls_status s = run_process(f, f->board->slots, e);
        if (!survival->stays || !ls_rest_may(me, s)) return s;
        survival->view.id.number = ls_rest(me, survival->view.id.number);
    }
}

static int process_main(void *arg) {
    const family *f = arg;
    const ls_supervisor *survival = f->w->survival;
    struct sigaction before[NSIGNALS];
    ls_environment env;
    ls_error e = {0};
    ls_beat *beat = NULL;
    catch_interrupts(false, before);
    if (survival) { /* the supervisor gets these signals, and asks this worker to stop */
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
    }
    ls_status s = ls_environment_read(&env, &e);
    if (s == LS_OK && survival && survival->stop)
        atomic_store(&f->board->slots[env.rank].asked, LS_ASKED_STOP);
    if (s == LS_OK && survival) s = ls_beat_start(&f->board->slots[env.rank], &beat, &e);
    if (s == LS_OK && survival)
        s = live(f, &f->board->slots[env.rank], &e);
    else if (s == LS_OK)
        s = run_process(f, f->board->slots, &e);
    ls_beat_stop(beat);
    if (s != LS_OK) atomic_store(&f->board->slots[env.rank].unreached, ls_unreached_noted());
    if (s != LS_OK) ls_board_fail(f->board, &e);
    return s == LS_OK ? 0 : 1;
}

static void where(int rank, void *arg, char *text, size_t nbytes) {
    const family *f = arg;
    if (f->w->where) f->w->where(&f->board->slots[rank], f->arg, text, nbytes);
}

static ls_status run_processes(const ls_workers *w, ls_board *board, ls_worker_main *main_fn,
                               void *arg, ls_error *e) {
    family f = {w, board, main_fn, arg};
    ls_launch_options l = {.nworkers = w->n,
                           .arena_nbytes = w->arena_nbytes,
                           .main = process_main,
                           .arg = &f,
                           .board = board,
                           .where = where};
    int code = 0;
    if (w->survival) return ls_supervisor_run(w->survival, &l, e);
    LS_TRY(ls_launch_run(&l, &code, e));
    return code ? e->code : LS_OK;
}

/* Runs this process as one of the workers that a launcher has started. */
static ls_status run_started(const ls_workers *w, ls_worker_main *main_fn, void *arg, ls_error *e) {
    family f = {.w = w, .main = main_fn, .arg = arg};
    ls_board_slot slot = {.action = -1};
    struct sigaction before[NSIGNALS];
    catch_interrupts(false, before);
    ls_status s = run_process(&f, &slot, e);
    if (s != LS_OK && !e->msg[0]) usleep(SILENT_US);
    release_interrupts(before);
    return s;
}

/* ---- all kinds ---- */

ls_status ls_workers_started(bool *started_p, int *n_p, ls_error *e) {
    ls_environment env;
    LS_TRY(ls_environment_read(&env, e));
    *started_p = env.launcher != LS_LAUNCHER_NONE;
    *n_p = env.size;
    return LS_OK;
}

ls_status ls_workers_run(const ls_workers *w, ls_worker_main *main_fn, void *arg, ls_error *e) {
    bool threads = w->transport && strcmp(w->transport, "thread") == 0, started = false;
    int n = 0;
    ls_board *board = NULL;
    LS_TRY(ls_workers_started(&started, &n, e));
    if (started && !threads) return run_started(w, main_fn, arg, e);
    LS_TRY(ls_board_open(w->survival ? w->survival->most : w->n, &board, e));
    ls_status s;
    if (threads) {
        struct sigaction before[NSIGNALS];
        catch_interrupts(true, before);
        s = run_threads(w, board, main_fn, arg, e);
        release_interrupts(before);
    } else {
        s = run_processes(w, board, main_fn, arg, e);
    }
    ls_board_close(board);
    return s;
}
