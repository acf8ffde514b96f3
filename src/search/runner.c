/* runner.c - see runner.h. */
#include "search/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bar.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/name.h"
#include "base/thread.h"
#include "net/launch/child.h"
#include "storage/checkpoint.h"
#include "train/layout.h"

static const char PROGRAM[] = "/proc/self/exe";
/* How the last message of a training begins whose loss is no number any more. */
static const char DIVERGED[] = "the loss is ";
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { NSIGNALS = 3, NO_PROGRAM = 127, UNFINISHED = 75, LOOK_MS = 100, MOST_WORDS = 20 };
static const int64_t GRACE_NS = (int64_t)10 * 1000 * 1000 * 1000, SHOW_NS = 1000000000;

typedef struct process {
    pid_t pid;
    ls_trial *trial; /* NULL: it evaluates one */
} process;

struct ls_runner {
    process *list; /* [n] */
    size_t n;
    int all, idle, jobs; /* workers, those that are idle, and trials at once; all 0: not known */
    int cores;           /* of each worker, where trials share the cores; 0: each trial has all */
    sigset_t before, waited; /* signals that were blocked before; those that the runner waits for */
    void (*show)(void *arg);
    void *show_arg;
    int64_t shown_ns;
};

ls_runner *ls_runner_open(const ls_sharing *s, const ls_config *c) {
    ls_runner *r = LS_NEW(ls_runner);
    int cores = ls_cores();
    r->all = s->workers || s->jobs == 1 ? (int)s->workers : ls_config_workers_on(c, cores);
    r->idle = r->all;
    r->jobs = s->jobs == 0 || (r->all && s->jobs > r->all) ? r->all : (int)s->jobs;
    if (r->jobs != 1) r->cores = ls_config_threads(c, r->all, cores);
    sigemptyset(&r->waited);
    sigaddset(&r->waited, SIGCHLD);
    for (int i = 0; i < NSIGNALS; i++)
        if (!ls_process_ignores(signals[i])) sigaddset(&r->waited, signals[i]);
    sigprocmask(SIG_BLOCK, &r->waited, &r->before);
    return r;
}

/* ---- processes ---- */

/* In the child. */
static _Noreturn void become(char *const *argv, int output, int cores) {
    char most[16];
    setpgid(0, 0);
    snprintf(most, sizeof most, "%d", cores);
    if (cores > 0) setenv("LOCKSTEP_CORES", most, 1);
    ls_process_restore();
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input >= 0) dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    execv(PROGRAM, argv);
    _exit(NO_PROGRAM);
}

/* Starts `lockstep` with these words (the first is any text). Its output is appended to the
 * file. */
static ls_status start(ls_runner *r, const char *const *words, const char *output, ls_trial *t,
                       ls_error *e) {
    int cores = t ? t->share * r->cores : 0;
    ls_child child;
    int fd = -1;
    LS_TRY(ls_file_open_append(output, &fd, e));
    pid_t pid = ls_child_start(&child, &r->before);
    if (pid == 0) become((char *const *)(uintptr_t)words, fd, cores);
    int why = errno;
    close(fd);
    if (pid < 0) return ls_fail(e, LS_EIO, "a training can't be started: %s", ls_thread_why(why));
    setpgid(pid, pid); /* here, too: it may be signalled before it has done so itself */
    r->list = ls_grow(r->list, r->n, sizeof *r->list);
    r->list[r->n++] = (process){pid, t};
    return LS_OK;
}

/* Removes a process that has ended from the list. Processes that remain in its group are killed
 * before its process id is released. */
static bool find_ended(ls_runner *r, process *ended_p, int *code_p) {
    for (size_t i = 0; i < r->n; i++) {
        siginfo_t info = {0};
        int how = 0;
        waitid(P_PID, (id_t)r->list[i].pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if (info.si_pid == 0) continue;
        kill(-r->list[i].pid, SIGKILL);
        while (waitpid(r->list[i].pid, &how, 0) < 0 && errno == EINTR) continue;
        *ended_p = r->list[i];
        *code_p = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
        r->list[i] = r->list[--r->n];
        return true;
    }
    return false;
}

/* Waits for a signal for a moment; returns its number, 0: none came. */
static int wait_signal(const ls_runner *r) {
    const struct timespec moment = {.tv_nsec = LOOK_MS * 1000000L};
    int number = sigtimedwait(&r->waited, NULL, &moment);
    return number > 0 ? number : 0;
}

void ls_runner_show(ls_runner *r, void (*show)(void *arg), void *arg) {
    r->show = show;
    r->show_arg = arg;
}

static void show_now(ls_runner *r) {
    int64_t now = ls_clock_ns();
    if (!r->show || now - r->shown_ns < SHOW_NS) return;
    r->shown_ns = now;
    r->show(r->show_arg);
}

/* Waits until one of the processes ends: its exit code, or 128 + its signal. */
static ls_status wait_process(ls_runner *r, process *ended_p, int *code_p, ls_error *e) {
    while (!find_ended(r, ended_p, code_p)) {
        int number = wait_signal(r);
        if (number && number != SIGCHLD)
            return ls_fail(e, LS_EABORT, "interrupted; the same command continues");
        show_now(r);
    }
    return LS_OK;
}

void ls_runner_close(ls_runner *r) {
    process ended;
    int code = 0;
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) kill(r->list[i].pid, SIGTERM);
    for (int64_t end = ls_clock_ns() + GRACE_NS; r->n > 0;) {
        while (find_ended(r, &ended, &code)) continue;
        if (r->n > 0) wait_signal(r);
        if (ls_clock_ns() < end) continue;
        for (size_t i = 0; i < r->n; i++) kill(-r->list[i].pid, SIGKILL);
    }
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    free(r->list);
    free(r);
}

/* The last line of a process' output: free() it. */
static char *last_line(const char *output) {
    ls_lines *lines = NULL;
    ls_line line;
    bool there = false;
    char *text = NULL;
    if (ls_lines_open(output, true, &lines, NULL) != LS_OK) return ls_strdup("");
    while (!text && ls_lines_next(lines, &line, &there, NULL) == LS_OK && there)
        if (line.nbytes > 0 && !line.too_long)
            text = ls_format("%.*s", (int)line.nbytes, line.text);
    ls_lines_close(lines);
    return text ? text : ls_strdup("");
}

/* Appends to a process' output how it ended: where the disk takes no more, the last line is not the
 * one that says why. */
static ls_status note_end(const char *output, int code, ls_error *e) {
    char line[32];
    int n = snprintf(line, sizeof line, "exit code %d\n", code), fd = -1;
    LS_TRY(ls_file_open_append(output, &fd, e));
    ssize_t written = write(fd, line, (size_t)n);
    int why = written < 0 ? errno : ENOSPC;
    close(fd);
    if (written == n) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", output, strerror(why));
}

/* Why a process failed with this code: its last line, or why it could write none. free() it. */
static char *why_failed(const char *output, int code) {
    ls_error lost;
    char *last = last_line(output);
    if (note_end(output, code, &lost) == LS_OK) return last;
    free(last);
    return ls_strdup(lost.msg);
}

/* ---- workers ---- */

static bool can_have(const ls_config *c, int n) {
    ls_layout l;
    if (n > ls_config_most_workers(c)) return false;
    if (c->parallel.mesh == LS_MESH_AUTO) return true;
    if (ls_layout_make(c, n, NULL, &l, NULL) != LS_OK) return false;
    ls_layout_free(&l);
    return true;
}

/* The most workers of up to `share` that a config can have; else the least that it needs, of up to
 * `most`. Where no number is known to be possible, `share`: the training says why. */
static int workers_of(const ls_config *c, int share, int most) {
    for (int n = share; n > 0; n--)
        if (can_have(c, n)) return n;
    for (int n = share + 1; n <= most; n++)
        if (can_have(c, n)) return n;
    return share;
}

ls_status ls_sharing_check(const ls_sharing *s, const ls_config *c, ls_error *e) {
    if (s->jobs == 1 || c->parallel.reduce != LS_REDUCE_FASTEST) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--jobs: not with parallel.reduce fastest: trainings side by side have other "
                   "numbers of workers, on which their bits depend; leave out --jobs, or use tree");
}

/* ---- trials ---- */

static ls_status start_training(ls_runner *r, ls_trial *t, ls_error *e) {
    char *config = ls_format("%s.yaml", t->dir), *output = ls_format("%s.log", t->dir);
    char *step = ls_format("%lld", (long long)t->until), *workers = ls_format("%d", t->workers);
    const char *words[MOST_WORDS] = {ls_name(), "train",    config,    "-o",
                                     t->dir,    "--resume", "--until", step};
    int n = 8;
    for (int i = 0; i < t->nmore; i++) words[n++] = t->more[i];
    if (t->workers) words[n++] = "-n", words[n++] = workers;
    ls_status s = ls_trial_wait_for_earlier(t, e);
    if (s == LS_OK) s = start(r, words, output, t, e);
    free(config);
    free(output);
    free(step);
    free(workers);
    return s;
}

/* Trainings one at a time have the workers that were asked for. */
static ls_status note_fewer(const ls_runner *r, const ls_trial *t, int n, ls_error *e) {
    if (t->config->parallel.reduce == LS_REDUCE_FASTEST)
        return ls_fail(e, LS_EINVAL,
                       "%s: can have %d workers, not %d, and with parallel.reduce fastest its bits "
                       "depend on their number; use -n %d",
                       t->dir, n, r->all, n);
    ls_log("%s: can have %d workers, not %d", t->dir, n, r->all);
    return LS_OK;
}

ls_status ls_runner_begin(ls_runner *r, ls_trial *t, int nready, ls_error *e) {
    int places = r->jobs - (int)r->n, n = 0;
    if (places == 0 || (r->all && r->idle == 0)) return LS_OK;
    if (places > nready) places = nready;
    int share = r->idle / places;
    if (r->all) n = workers_of(t->config, share > 0 ? share : 1, r->all);
    if (n > r->idle) return LS_OK; /* it waits for others to end */
    if (r->jobs == 1 && n < r->all) LS_TRY(note_fewer(r, t, n, e));
    t->workers = n;
    t->share = n > share || !r->cores ? n : share;
    t->diverged = false;
    LS_TRY(start_training(r, t, e));
    t->runs = true;
    r->idle -= t->share;
    return LS_OK;
}

/* A training has ended with this code; `why`: if it failed. */
static ls_status fail_ended(const ls_trial *t, int code, const char *why, ls_error *e) {
    if (code == 0 || code == UNFINISHED)
        return ls_fail(e, LS_EINVAL, "%s: was stopped; the same command continues", t->dir);
    if (code > 128)
        return ls_fail(e, LS_EINVAL,
                       "training %s was killed by signal %d; the same command continues", t->dir,
                       code - 128);
    return ls_fail(e, LS_EINVAL, "training %s failed with exit code %d: %.300s (%s.log)", t->dir,
                   code, why, t->dir);
}

ls_status ls_runner_wait(ls_runner *r, ls_trial **t_p, ls_error *e) {
    process ended;
    int code = 0;
    *t_p = NULL;
    if (r->n == 0) return LS_OK;
    LS_TRY(wait_process(r, &ended, &code, e));
    ls_trial *t = *t_p = ended.trial;
    bool good = code == 0 || code == UNFINISHED;
    t->runs = false;
    r->idle += t->share;
    if (good && ls_trial_step(t) >= t->until) return LS_OK;
    char *output = ls_format("%s.log", t->dir);
    char *last = good ? ls_strdup("") : why_failed(output, code);
    t->diverged = !good && strstr(last, DIVERGED);
    ls_status s = t->diverged ? LS_OK : fail_ended(t, code, last, e);
    free(output);
    free(last);
    return s;
}

/* ---- all of a list ---- */

/* Steps of the trials of a list, of which some were trained before. */
typedef struct list_bar {
    ls_trial *const *list;
    int n;
    int64_t before;
    ls_bar bar;
} list_bar;

static int64_t steps_now(const list_bar *b) {
    int64_t sum = 0;
    for (int i = 0; i < b->n; i++) {
        const ls_trial *t = b->list[i];
        int64_t now = t->diverged ? t->until : ls_trial_now(t);
        sum += now < t->until ? now : t->until;
    }
    return sum;
}

static void show_list(void *arg) {
    list_bar *b = arg;
    ls_bar_at(&b->bar, (uint64_t)(steps_now(b) - b->before));
}

static void begin_list(list_bar *b) {
    int64_t all = 0;
    for (int i = 0; i < b->n; i++) all += b->list[i]->until;
    b->before = steps_now(b);
    b->bar = ls_bar_begin("training: steps", (uint64_t)(all - b->before));
}

static ls_status train_list(ls_runner *r, ls_trial *const *list, int n, ls_error *e) {
    ls_trial *ended = NULL;
    int i = 0;
    do {
        for (; i < n; i++) {
            if (ls_trial_is_trained(list[i])) continue;
            LS_TRY(ls_runner_begin(r, list[i], n - i, e));
            if (!list[i]->runs) break;
        }
        LS_TRY(ls_runner_wait(r, &ended, e));
    } while (ended);
    return LS_OK;
}

ls_status ls_runner_train(ls_runner *r, ls_trial *const *list, int n, ls_error *e) {
    list_bar b = {.list = list, .n = n};
    bool shows = ls_log_is_terminal();
    if (shows) begin_list(&b);
    if (shows) ls_runner_show(r, show_list, &b);
    ls_status s = train_list(r, list, n, e);
    ls_runner_show(r, NULL, NULL);
    if (shows) ls_bar_end(&b.bar);
    return s;
}

ls_status ls_runner_evaluate(ls_runner *r, const ls_trial *t, double *loss_p, ls_error *e) {
    char *checkpoint = ls_checkpoint_path(t->dir, t->until), *last = NULL;
    char *output = ls_format("%s.log", t->dir);
    const char *const words[] = {ls_name(), "eval", checkpoint, "--json", NULL};
    process ended;
    int code = 0;
    ls_json *j = NULL;
    ls_status s = LS_OK;
    if (!ls_file_exists(checkpoint))
        s = ls_fail(e, LS_EINVAL,
                    "%s: is gone: another command has trained further; remove %s, and start again",
                    checkpoint, t->dir);
    if (s == LS_OK) s = start(r, words, output, NULL, e);
    if (s == LS_OK) s = wait_process(r, &ended, &code, e);
    if (s == LS_OK) last = code ? why_failed(output, code) : last_line(output);
    if (s == LS_OK && code)
        s = ls_fail(e, LS_EINVAL, "lockstep eval %s failed with exit code %d: %.300s", checkpoint,
                    code, last);
    if (s == LS_OK) s = ls_json_parse(last, strlen(last), "the output of lockstep eval", &j, e);
    if (s == LS_OK && !ls_json_number(ls_json_get(ls_json_get(j, "model"), "loss"), loss_p))
        s = ls_fail(e, LS_EINVAL, "%s: lockstep eval prints no loss", t->dir);
    ls_json_free(j);
    free(last);
    free(output);
    free(checkpoint);
    return s;
}
