/* run_status.c - see run_status.h. */
#include "report/run_status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/process.h"
#include "config/config.h"
#include "data/batches.h"
#include "report/history.h"
#include "storage/best.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"

/* RATED: steps whose mean time is shown. An evaluation or a start further from the end than
 * MOST_SEARCHED bytes is not known. */
enum { RATED = 20, MOST_SEARCHED = 4 << 20 };

static const char *const names[] = {
    [LS_RUN_RUNNING] = "running",   [LS_RUN_STOPPED] = "stopped", [LS_RUN_COMPLETE] = "complete",
    [LS_RUN_DIVERGED] = "diverged", [LS_RUN_FAILED] = "failed",   [LS_RUN_UNKNOWN] = "unknown"};

const char *ls_run_state_name(ls_run_state s) { return names[s]; }

/* A checkpoint has copies of a run's files, beside its manifest. */
bool ls_run_status_is_run(const char *dir) {
    static const char *const own[] = {"lock", "metrics.jsonl", "checkpoints", "data.json",
                                      "corpus.json"};
    if (!ls_file_exists_in(dir, "config.yaml") || ls_file_exists_in(dir, "manifest.json"))
        return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (ls_file_exists_in(dir, own[i])) return true;
    return false;
}

/* ---- the end of metrics.jsonl ---- */

typedef struct tail {
    ls_run_status *s;
    int nsteps, ntimed;    /* the latter: of these the last ones that have a time */
    double seconds, units; /* of those */
    double used_s, used;   /* of those that have a share of the peak; times it */
    bool diverged, ended, damaged;
} tail;

static bool number(const ls_json *line, const char *key, double *x_p) {
    return ls_json_number(ls_json_get(line, key), x_p);
}

static void add_step(tail *t, const ls_json *line, int64_t step) {
    ls_run_status *s = t->s;
    double seconds = 0, rate = 0;
    const char *unit = ls_json_get(line, "tokens_per_s") ? "tokens" : "samples";
    char key[32];
    if (t->nsteps == 0) {
        s->step = step;
        number(line, "loss", &s->loss);
        ls_json_integer(ls_json_get(line, "workers"), &s->workers);
        snprintf(s->unit, sizeof s->unit, "%s", unit);
    }
    t->nsteps++;
    snprintf(key, sizeof key, "%.15s_per_s", s->unit);
    if (t->nsteps > RATED || !number(line, "seconds", &seconds) || seconds <= 0 ||
        !number(line, key, &rate))
        return;
    t->ntimed++;
    t->seconds += seconds;
    t->units += rate * seconds;
    double mfu = 0;
    if (!number(line, "mfu", &mfu)) return;
    t->used_s += seconds;
    t->used += mfu * seconds;
}

static void add_object(tail *t, const ls_json *line) {
    ls_run_status *s = t->s;
    int64_t step = 0;
    if (!ls_json_integer(ls_json_get(line, "step"), &step)) return;
    if (ls_json_get(line, "loss")) add_step(t, line, step);
    if (!s->val_step && number(line, "val_loss", &s->val_loss)) s->val_step = step;
    bool last = !t->nsteps && !s->start;
    if (last && ls_json_get(line, "diverged")) t->diverged = true;
    if (last && ls_json_get(line, "ended")) t->ended = true;
    if (s->start || !ls_json_get(line, "started")) return;
    s->start = ls_json_share(line);
    if (s->workers < 0) ls_json_integer(ls_json_get(line, "workers"), &s->workers);
}

/* The last line may be half written, or that of a killed run. */
static void add_line(tail *t, const ls_line *line) {
    ls_json *j = NULL;
    if (!line->whole) return;
    if (line->too_long || ls_json_parse(line->text, line->nbytes, "a line", &j, NULL) != LS_OK)
        t->damaged = true;
    else
        add_object(t, j);
    ls_json_free(j);
}

/* How far back the end is read. brief: no further than the steps whose time is shown. */
typedef struct reach {
    uint64_t most;
    bool brief;
} reach;

static void read_tail(const char *path, reach far, tail *t) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = true;
    if (ls_lines_open(path, true, &l, NULL) != LS_OK) return;
    uint64_t size = ls_lines_size(l);
    ls_lines_stop_at(l, size > far.most ? size - far.most : 0);
    while (ls_lines_next(l, &line, &there, NULL) == LS_OK && there) {
        add_line(t, &line);
        if (t->nsteps >= RATED && (far.brief || (t->s->val_step && t->s->start))) break;
    }
    ls_lines_close(l);
}

static void read_metrics(ls_run_status *s, reach far, tail *t) {
    char *path = ls_metrics_path(s->run);
    struct stat st;
    if (stat(path, &st) == 0) {
        double written = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
        s->age_s = fmax(ls_clock_wall_s() - written, 0);
        read_tail(path, far, t);
    }
    if (t->seconds > 0) s->rate = t->units / t->seconds;
    if (t->used_s > 0) s->mfu = t->used / t->used_s;
    free(path);
}

/* ---- the lock ---- */

/* Takes the process from the run's start line, since the lock of another user's run can't be
 * read. */
static void take_start(const ls_run_status *s, ls_lock_named *n) {
    const char *host = ls_json_text(ls_json_get(s->start, "host"));
    double started = 0;
    int64_t pid = 0;
    if (!host || !ls_json_integer(ls_json_get(s->start, "pid"), &pid) || pid <= 0 ||
        pid > INT32_MAX || !number(s->start, "started_s", &started))
        return;
    n->pid = (int)pid;
    n->since_s = started;
    snprintf(n->host, sizeof n->host, "%s", host);
    n->here = ls_lock_is_here(host);
    n->held = n->here && ls_process_was_there(n->pid, started);
}

/* ---- the state ---- */

/* A program's own loop may write no checkpoint. */
static bool is_complete(const ls_run_status *s, const ls_config *c, const tail *t) {
    if (c && t->ended && s->step >= s->steps) return true;
    return c && s->checkpoint >= 0 && ls_best_is_over(s->run, c, s->checkpoint);
}

static ls_run_state state_of(const ls_run_status *s, const ls_lock_named *n, const ls_config *c,
                             const tail *t) {
    if (n->held) return LS_RUN_RUNNING;
    if (is_complete(s, c, t)) return LS_RUN_COMPLETE;
    if (t->diverged) return LS_RUN_DIVERGED;
    if (!c || (n->pid && !n->here)) return LS_RUN_UNKNOWN;
    return s->checkpoint < 0 ? LS_RUN_FAILED : LS_RUN_STOPPED;
}

/* "12 s", "3 min", "5 h", "2 d" */
static void put_age(double s, ls_buf *out) {
    if (s < 120)
        ls_buf_printf(out, "%.0f s", s);
    else if (s < 7200)
        ls_buf_printf(out, "%.0f min", s / 60);
    else if (s < 172800)
        ls_buf_printf(out, "%.0f h", s / 3600);
    else
        ls_buf_printf(out, "%.0f d", s / 86400);
}

static void put_part(ls_buf *b) { ls_buf_printf(b, "%s", b->len ? "; " : ""); }

static void put_ended(const ls_run_status *s, ls_buf *b) {
    put_part(b);
    if (s->checkpoint < 0)
        ls_buf_printf(b, "ended without a checkpoint");
    else if (s->step > s->checkpoint)
        ls_buf_printf(b, "ended after step %lld; the newest checkpoint is of step %lld",
                      (long long)s->step, (long long)s->checkpoint);
    else
        ls_buf_printf(b, "has a checkpoint of step %lld", (long long)s->checkpoint);
}

/* Stopped by a signal, on a full disk, or in a long evaluation. */
static bool is_silent(const ls_run_status *s, const tail *t) {
    int n = t->nsteps < RATED ? t->nsteps : RATED;
    double step = n > 0 ? t->seconds / n : 0;
    return s->state == LS_RUN_RUNNING && s->age_s > 60 + 5 * step;
}

static char *note_of(const ls_run_status *s, const ls_lock_named *n, const tail *t,
                     const char *config) {
    ls_buf b = {0};
    if (config) ls_buf_put(&b, "%s", config);
    bool elsewhere = s->state == LS_RUN_UNKNOWN && n->pid && !n->here;
    if (elsewhere) {
        put_part(&b);
        ls_buf_printf(&b, "is it still running there?");
    }
    if (s->age_s >= 0 && (elsewhere || is_silent(s, t))) {
        if (elsewhere) ls_buf_printf(&b, " ");
        if (!elsewhere) put_part(&b);
        ls_buf_printf(&b, "its last line is ");
        put_age(s->age_s, &b);
        ls_buf_printf(&b, " old");
    }
    if (s->state == LS_RUN_STOPPED || s->state == LS_RUN_FAILED || s->state == LS_RUN_DIVERGED)
        put_ended(s, &b);
    if (n->unreadable && !n->pid) {
        put_part(&b);
        ls_buf_printf(&b, "its lock is another user's");
    }
    if (t->damaged) {
        put_part(&b);
        ls_buf_printf(&b, "metrics.jsonl has damaged lines");
    }
    return b.data;
}

/* By the time of the last steps, of which some may have ended an epoch with fewer samples. */
static double left_of(const ls_run_status *s, const ls_config *c, const tail *t) {
    if (s->state != LS_RUN_RUNNING || !c || t->ntimed <= 0 || s->step > s->steps) return NAN;
    const ls_batches b = ls_batches_of(c);
    uint64_t all = ls_batches_sum(&b, (uint64_t)s->steps);
    uint64_t done = ls_batches_sum(&b, (uint64_t)s->step);
    uint64_t before = s->step > t->ntimed ? ls_batches_sum(&b, (uint64_t)(s->step - t->ntimed)) : 0;
    return t->seconds / (double)(done - before) * (double)(all - done);
}

void ls_run_status_unread(const char *run, ls_run_status *s_p) {
    *s_p = (ls_run_status){.run = ls_strdup(run),
                           .state = LS_RUN_UNKNOWN,
                           .steps = -1,
                           .step = 0,
                           .loss = NAN,
                           .val_loss = NAN,
                           .rate = NAN,
                           .mfu = NAN,
                           .left_s = NAN,
                           .workers = -1,
                           .nbytes = -1,
                           .checkpoint = -1,
                           .age_s = -1};
}

/* What is known before metrics.jsonl is read. */
typedef struct known {
    const ls_json *start;
    const ls_config *config; /* NULL: it can't be read */
    const char *why;
} known;

static void read_status(const char *run, const known *k, reach far, ls_run_status *s_p) {
    ls_run_status s;
    ls_run_status_unread(run, &s);
    tail t = {.s = &s};
    if (k->config) s.steps = k->config->train.steps;
    ls_lock_named n = ls_lock_read(run);
    if (ls_checkpoint_below(run, INT64_MAX, &s.checkpoint, NULL) != LS_OK) s.checkpoint = -1;
    read_metrics(&s, far, &t);
    if (!s.start && k->start) s.start = ls_json_share(k->start);
    if (!t.nsteps && s.checkpoint > 0) s.step = s.checkpoint;
    if (n.unreadable) take_start(&s, &n);
    s.pid = n.pid;
    snprintf(s.host, sizeof s.host, "%s", n.host);
    s.state = state_of(&s, &n, k->config, &t);
    if (s.state == LS_RUN_RUNNING) s.nbytes = ls_process_command_nbytes(s.pid);
    s.left_s = left_of(&s, k->config, &t);
    s.note = note_of(&s, &n, &t, k->config ? NULL : k->why);
    *s_p = s;
}

void ls_run_status_read(const char *run, ls_run_status *s_p) {
    ls_config *c = LS_NEW(ls_config);
    char *path = ls_format("%s/config.yaml", run);
    ls_error why = {0};
    bool ok = ls_config_read(path, c, &why) == LS_OK;
    read_status(run, &(known){NULL, ok ? c : NULL, why.msg}, (reach){.most = MOST_SEARCHED}, s_p);
    free(path);
    free(c);
}

void ls_run_status_read_end(const char *run, const ls_json *start, const ls_config *config,
                            const char *why, ls_run_status *s_p) {
    enum { MOST = 32 << 10 };
    read_status(run, &(known){start, config, why}, (reach){MOST, true}, s_p);
}

void ls_run_status_free(ls_run_status *s) {
    free(s->run);
    free(s->note);
    ls_json_free(s->start);
    *s = (ls_run_status){0};
}

/* ---- for programs ---- */

static void set_count(ls_json *o, const char *key, int64_t n) {
    ls_json_set(o, key, n < 0 ? ls_json_new_null() : ls_json_new_integer(n));
}

static void set_text(ls_json *o, const char *key, const char *text) {
    ls_json_set(o, key, text && *text ? ls_json_new_path(text) : ls_json_new_null());
}

ls_json *ls_run_status_json(const ls_run_status *s) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "run", s->run);
    ls_json_set_text(o, "state", names[s->state]);
    set_text(o, "host", s->host);
    set_count(o, "pid", s->pid ? s->pid : -1);
    ls_json_set_integer(o, "step", s->step);
    set_count(o, "steps", s->steps);
    ls_json_set_number(o, "loss", s->loss);
    ls_json_set_number(o, "val_loss", s->val_loss);
    set_count(o, "val_step", s->val_step ? s->val_step : -1);
    ls_json_set_number(o, "rate", s->rate);
    set_text(o, "unit", s->unit);
    ls_json_set_number(o, "mfu", s->mfu);
    ls_json_set_number(o, "left_s", s->left_s);
    set_count(o, "workers", s->workers);
    set_count(o, "memory_bytes", s->nbytes);
    set_count(o, "checkpoint", s->checkpoint);
    ls_json_set_number(o, "age_s", s->age_s < 0 ? NAN : s->age_s);
    set_text(o, "started", ls_json_text(ls_json_get(s->start, "started")));
    set_text(o, "command", ls_json_text(ls_json_get(s->start, "command")));
    set_text(o, "note", s->note);
    return o;
}
