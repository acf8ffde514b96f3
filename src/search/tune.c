/* tune.c - see tune.h. */
#include "search/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "config/write_config.h"
#include "search/panels.h"
#include "search/space_try.h"
#include "search/trial_curves.h"
#include "search/trial_journal.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"

/* A trial of the search, as it is trained to a rung. */
typedef struct job {
    ls_trial trial;
    int number, rung;
    int nbegun; /* parts whose run directories are there */
} job;

struct ls_tune {
    const ls_tune_request *asked;
    ls_space space;
    ls_search *search;
    ls_search_view view;
    ls_search_journal journal;
    ls_trial_curves *curves;
    ls_runner *runner;
    ls_lock lock;
    job *jobs;                /* [trials] */
    int64_t began_ns, before; /* when training began, and the steps that there were then */
};

const ls_search_view *ls_tune_view(const ls_tune *w) { return &w->view; }

/* ---- configs and run directories ---- */

/* A trial ends where the search wants it to. */
static ls_status config_of(const ls_tune *w, int trial, int part, ls_config *c_p, ls_error *e) {
    const ls_space_point *p = &ls_search_part_of(w->search, trial, part)->point;
    LS_TRY(ls_space_config(&w->space, w->asked->config, p, c_p, e));
    c_p->train.patience = 0;
    return LS_OK;
}

/* A part that another trial's checkpoint begins has it before that trial goes on, and may remove
 * it: all parts are begun before anything is trained. */
static ls_status begin_part(const ls_tune *w, int trial, int part, ls_error *e) {
    const ls_search_part *p = ls_search_part_of(w->search, trial, part);
    ls_config c;
    const ls_trial t = {.dir = ls_search_part_dir(&w->view, trial, part), .config = &c};
    ls_status s = config_of(w, trial, part, &c, e);
    if (s == LS_OK) s = ls_trial_open(&t, e);
    if (s == LS_OK && p->source >= 0) {
        char *source = ls_search_part_dir(&w->view, p->source, p->source_part);
        char *checkpoint = ls_checkpoint_path(source, ls_search_rung_steps(w->search, p->first));
        s = ls_trial_begin_with(&t, checkpoint, e);
        free(checkpoint);
        free(source);
    }
    free(t.dir);
    return s;
}

static void log_copy(const ls_tune *w, int trial, int part) {
    const ls_search_part *p = ls_search_part_of(w->search, trial, part);
    char *values = ls_space_point_text(&w->space, &p->point);
    if (p->source >= 0)
        ls_log_result("trial %d continues from trial %d after step %lld: %s", trial + 1,
                      p->source + 1, (long long)ls_search_rung_steps(w->search, p->first), values);
    free(values);
}

/* logs: copies are logged; those of an earlier command have been. */
static ls_status begin_parts(ls_tune *w, bool logs, ls_error *e) {
    for (int t = 0; t < ls_search_ntrials(w->search); t++)
        for (; w->jobs[t].nbegun < ls_search_nparts(w->search, t); w->jobs[t].nbegun++) {
            LS_TRY(begin_part(w, t, w->jobs[t].nbegun, e));
            if (logs) log_copy(w, t, w->jobs[t].nbegun);
        }
    return LS_OK;
}

/* ---- results ---- */

static void log_row(const ls_tune *w, const ls_search_result *r) {
    int part = ls_search_nparts(w->search, r->trial) - 1;
    char *values =
        ls_space_point_text(&w->space, &ls_search_part_of(w->search, r->trial, part)->point);
    if (isfinite(r->metric))
        ls_log_result("%6d %9lld %12.6g  %s", r->trial + 1, (long long)r->step, r->metric, values);
    else
        ls_log_result("%6d %9lld %12s  %s", r->trial + 1, (long long)r->step, "diverged", values);
    free(values);
}

static ls_status write_table(const ls_tune *w, ls_error *e) {
    ls_buf text = {0};
    char *path = ls_format("%s/tune.txt", w->view.dir);
    ls_search_print_table(&w->view, &text);
    ls_status s = ls_file_replace(path, text.data, text.len, e);
    free(path);
    ls_buf_free(&text);
    return s;
}

/* Where all trials are trained to the end, the values of their keys decide: no curves. */
static ls_status write_picture(const ls_tune *w, ls_error *e) {
    char *path = ls_format("%s/tune.svg", w->view.dir);
    bool whole = w->space.rules.method == LS_SPACE_GRID || w->space.rules.method == LS_SPACE_RANDOM;
    ls_status s =
        whole ? ls_keys_write(&w->view, path, e) : ls_trial_curves_write(w->curves, path, e);
    free(path);
    return s;
}

/* Steps of all trials so far, with those of trials that are trained now. */
static int64_t steps_now(const ls_tune *w) {
    int64_t sum = 0;
    for (int t = 0; t < ls_search_ntrials(w->search); t++) {
        int rung = ls_search_reached(w->search, t);
        int64_t steps = rung < 0 ? 0 : ls_search_rung_steps(w->search, rung);
        int64_t now = w->jobs[t].trial.runs ? ls_trial_now(&w->jobs[t].trial) : 0;
        sum += now > steps ? now : steps;
    }
    return sum;
}

static void put_left(const ls_tune *w, ls_buf *out) {
    int64_t now = steps_now(w), all = ls_search_expected_steps(w->search);
    if (now <= w->before || all < now) return;
    double each = (double)(ls_clock_ns() - w->began_ns) / 1e9 / (double)(now - w->before);
    int64_t left = (int64_t)(each * (double)(all - now) + 0.5);
    ls_buf_printf(out, "  left %lld:%02d", (long long)(left / 60), (int)(left % 60));
}

static void show_progress(void *tune) {
    const ls_tune *w = tune;
    ls_buf text = {0};
    if (!ls_log_is_terminal()) return;
    ls_search_print_progress(&w->view, &text);
    put_left(w, &text);
    ls_log_status("%s", text.data);
    ls_buf_free(&text);
}

static ls_status add_result(ls_tune *w, const job *j, double metric, ls_error *e) {
    const ls_search_result r = {j->number, j->trial.until, metric};
    LS_TRY(ls_search_journal_add(&w->journal, &r, e));
    log_row(w, &r);
    LS_TRY(ls_trial_curves_read(w->curves, j->number, j->rung, e));
    ls_search_report(w->search, j->number, j->rung, metric);
    ls_search_decide(w->search);
    LS_TRY(write_table(w, e));
    return write_picture(w, e);
}

/* A line of the journal. One of a step that is no rung is of a trial that was longer. */
static void use_result(void *arg, const ls_search_result *r) {
    ls_tune *w = arg;
    if (r->trial >= ls_search_ntrials(w->search)) return;
    for (int i = 0; i < ls_search_nrungs(w->search); i++)
        if (ls_search_rung_steps(w->search, i) == r->step)
            ls_search_report(w->search, r->trial, i, r->metric);
}

static ls_status read_curves(ls_tune *w, ls_error *e) {
    for (int t = 0; t < ls_search_ntrials(w->search); t++)
        for (int r = 0; r <= ls_search_reached(w->search, t); r++)
            LS_TRY(ls_trial_curves_read(w->curves, t, r, e));
    return LS_OK;
}

/* ---- trainings ---- */

/* The ready trial that has come furthest, and how many there are. */
static job *find_ready(ls_tune *w, int *n_p) {
    int best = -1;
    *n_p = 0;
    for (int t = 0; t < ls_search_ntrials(w->search); t++) {
        if (ls_search_state_of(w->search, t) != LS_SEARCH_READY || w->jobs[t].trial.runs) continue;
        ++*n_p;
        if (best < 0 || ls_search_next_rung(w->search, t) > ls_search_next_rung(w->search, best))
            best = t;
    }
    return best < 0 ? NULL : &w->jobs[best];
}

/* Steps between evaluations, so that there is one at the rung: the config's, or one alone. A run's
 * last step has one in any case. */
static int64_t evaluations_of(const ls_tune *w, int rung) {
    int64_t step = ls_search_rung_steps(w->search, rung);
    int64_t every = w->asked->config->train.eval_every;
    bool last = rung == ls_search_nrungs(w->search) - 1;
    return last || (every > 0 && step % every == 0) ? every : step;
}

/* A training has ended. */
static ls_status finish(ls_tune *w, const job *j, ls_error *e) {
    double metric = NAN;
    if (!j->trial.diverged) LS_TRY(ls_trial_metric(&j->trial, w->space.rules.metric, &metric, e));
    return add_result(w, j, metric, e);
}

/* A trial that was trained to the rung, before the command was killed, only gives its metric.
 * *waits_p: there are no workers for it yet. */
static ls_status start(ls_tune *w, job *j, int nready, bool *waits_p, ls_error *e) {
    ls_trial *t = &j->trial;
    ls_config c;
    j->number = (int)(j - w->jobs);
    j->rung = ls_search_next_rung(w->search, j->number);
    t->until = ls_search_rung_steps(w->search, j->rung);
    int part = ls_search_part_at(w->search, j->number, j->rung);
    free(t->dir);
    t->dir = ls_search_part_dir(&w->view, j->number, part);
    t->diverged = false;
    if (ls_trial_is_trained(t)) return finish(w, j, e);
    LS_TRY(config_of(w, j->number, part, &c, e));
    char *every = ls_format("train.eval_every=%lld", (long long)evaluations_of(w, j->rung));
    const char *const more[] = {"--set", every};
    t->config = &c;
    t->more = more;
    t->nmore = 2;
    ls_status s = ls_runner_begin(w->runner, t, nready, e);
    t->config = NULL;
    t->more = NULL;
    *waits_p = !t->runs;
    free(every);
    return s;
}

/* Starts the trials that are ready, as long as there are workers. */
static ls_status start_ready(ls_tune *w, ls_error *e) {
    int n = 0;
    for (bool waits = false; !waits;) {
        LS_TRY(begin_parts(w, true, e));
        job *j = find_ready(w, &n);
        if (!j) return LS_OK;
        LS_TRY(start(w, j, n, &waits, e));
    }
    return LS_OK;
}

static ls_status train_all(ls_tune *w, ls_error *e) {
    ls_trial *ended = NULL;
    ls_log_result(" trial      step %12.12s  values", w->space.rules.metric);
    w->began_ns = ls_clock_ns();
    w->before = steps_now(w);
    ls_runner_show(w->runner, show_progress, w);
    do {
        LS_TRY(start_ready(w, e));
        show_progress(w);
        ls_status s = ls_runner_wait(w->runner, &ended, e);
        if (s == LS_EABORT)
            return ls_fail(e, LS_EABORT,
                           "interrupted; the same command continues, or `lockstep tune "
                           "--resume %.200s`",
                           w->view.dir);
        LS_TRY(s);
        if (ended) LS_TRY(finish(w, (const job *)(const void *)ended, e));
    } while (ended);
    return LS_OK;
}

/* ---- the end ---- */

static ls_status write_best(const ls_tune *w, int best, ls_error *e) {
    int rung = ls_search_reached(w->search, best), part = ls_search_nparts(w->search, best) - 1;
    char *path = ls_format("%s/best.yaml", w->view.dir);
    ls_buf text = {0};
    ls_config c;
    const ls_space_point *p = &ls_search_part_of(w->search, best, part)->point;
    ls_status s = ls_space_config(&w->space, w->asked->config, p, &c, e);
    if (s == LS_OK) {
        ls_buf_printf(&text, "# Trial %d of a search: %s %.6g after step %lld.\n", best + 1,
                      w->space.rules.metric, ls_search_metric(w->search, best, rung),
                      (long long)ls_search_rung_steps(w->search, rung));
        if (part > 0)
            ls_buf_printf(&text,
                          "# Its values have changed while it was trained; these are the last.\n");
        ls_config_write(&c, &text);
        s = ls_file_replace(path, text.data, text.len, e);
    }
    ls_buf_free(&text);
    free(path);
    return s;
}

/* ---- all of it ---- */

static ls_status check_config(const ls_config *c, ls_error *e) {
    if (c->sync.mode == LS_SYNC_ASYNC)
        return ls_fail(
            e, LS_EINVAL,
            "tune: not with sync.mode async: what a run comes to depends on its workers' "
            "speeds");
    if (c->parallel.reduce == LS_REDUCE_FASTEST)
        return ls_fail(e, LS_EINVAL,
                       "tune: not with parallel.reduce fastest: what a run comes to depends on the "
                       "number of its workers; use tree");
    return LS_OK;
}

/* All configs are possible, before anything is trained. */
static ls_status check_trials(const ls_tune *w, ls_error *e) {
    ls_config c;
    for (int t = 0; t < ls_search_ntrials(w->search); t++) {
        LS_TRY(config_of(w, t, 0, &c, e));
        LS_TRY(check_config(&c, e));
    }
    return LS_OK;
}

static ls_status open_dir(ls_tune *w, ls_error *e) {
    if (ls_file_exists_in(w->view.dir, "config.yaml"))
        return ls_fail(e, LS_EINVAL, "%s: is a run directory; choose another one with -o",
                       w->view.dir);
    LS_TRY(ls_file_make_dirs(w->view.dir, e));
    LS_TRY(ls_lock_take(w->view.dir, 0, &w->lock, e));
    return ls_search_journal_open(w->view.dir, &w->space, use_result, w, &w->journal, e);
}

/* From its opening on, signals are for the runner: what is written is complete. */
static ls_status train_in(ls_tune *w, ls_error *e) {
    LS_TRY(open_dir(w, e));
    ls_search_decide(w->search);
    w->curves = ls_trial_curves_open(&w->view);
    LS_TRY(read_curves(w, e));
    w->jobs = LS_NEW_ARRAY(job, (size_t)ls_search_ntrials(w->search));
    LS_TRY(begin_parts(w, false, e)); /* refuses another command's trials */
    LS_TRY(ls_search_saved_write(w->view.dir, w->asked->asked, e));
    ls_search_log_plan(&w->view);
    ls_status s = train_all(w, e);
    ls_log_end_status();
    return s;
}

ls_status ls_tune_train(ls_tune *w, ls_error *e) {
    w->runner = ls_runner_open(&w->asked->sharing, w->asked->config);
    ls_status s = train_in(w, e);
    ls_runner_close(w->runner);
    LS_TRY(s);
    int best = ls_search_best(w->search);
    if (best >= 0) return write_best(w, best, e);
    return ls_fail(e, LS_EINVAL,
                   "%s: no trial has a number for %s: the losses of all are no numbers; search "
                   "lower learning rates",
                   w->view.dir, w->space.rules.metric);
}

/* --trials in place of the space's. */
static ls_status set_trials(ls_space *space, int64_t trials, ls_error *e) {
    if (trials && space->rules.method == LS_SPACE_GRID)
        return ls_fail(e, LS_EINVAL,
                       "--trials: method grid trains every combination; leave it out, or use "
                       "method random");
    if (trials == 1 && space->rules.method == LS_SPACE_PBT)
        return ls_fail(e, LS_EINVAL, "--trials: method pbt needs at least 2 trials");
    if (trials) space->rules.trials = trials;
    return LS_OK;
}

/* Words of a command line have no lines: "--try:3: optim.lr: .." becomes "--try: optim.lr: ..". */
static ls_status read_space(const ls_tune_request *o, ls_space *s_p, ls_error *e) {
    ls_error why = {0};
    ls_status s = ls_space_parse(&o->asked->space, o->space, o->config, s_p, &why);
    size_t n = strlen(LS_SPACE_TRY);
    if (s == LS_OK) return LS_OK;
    const char *rest = why.msg;
    if (strcmp(o->space, LS_SPACE_TRY) == 0 && strncmp(rest, LS_SPACE_TRY ":", n + 1) == 0)
        rest += n + 1 + strspn(rest + n + 1, "0123456789");
    return rest == why.msg ? ls_fail(e, s, "%s", rest)
                           : ls_fail(e, s, LS_SPACE_TRY ":%s", *rest == ':' ? rest + 1 : rest);
}

ls_status ls_tune_open(const ls_tune_request *o, ls_tune **t_p, ls_error *e) {
    ls_space space;
    LS_TRY(read_space(o, &space, e));
    ls_tune *w = LS_NEW(ls_tune);
    *w = (ls_tune){.asked = o, .space = space, .lock = LS_LOCK_NONE, .journal = {.fd = -1}};
    ls_status s = set_trials(&w->space, o->asked->trials, e);
    if (s == LS_OK) {
        w->search = ls_search_open(&w->space, o->config);
        w->view = (ls_search_view){&w->space, w->search, o->dir};
        s = check_trials(w, e);
    }
    if (s == LS_OK)
        *t_p = w;
    else
        ls_tune_close(w);
    return s;
}

void ls_tune_close(ls_tune *w) {
    if (!w) return;
    for (int t = 0; w->jobs && t < ls_search_ntrials(w->search); t++) free(w->jobs[t].trial.dir);
    free(w->jobs);
    ls_search_journal_close(&w->journal);
    ls_trial_curves_close(w->curves);
    ls_lock_drop(&w->lock);
    ls_search_close(w->search);
    ls_space_free(&w->space);
    free(w);
}
