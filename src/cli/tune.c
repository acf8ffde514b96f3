/* tune.c - see tune.h. */
#include "cli/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/file.h"
#include "base/log.h"
#include "base/name.h"
#include "base/print.h"
#include "cli/batch_trial.h"
#include "cli/cli.h"
#include "cli/pool.h"
#include "cli/tune_curves.h"
#include "cli/tune_journal.h"
#include "cli/tune_keys.h"
#include "cli/tune_metric.h"
#include "cli/tune_print.h"
#include "config/writer.h"
#include "perf/space_try.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"

/* A training that runs. */
typedef struct job {
    int trial, rung, workers; /* workers 0: none runs */
} job;

typedef struct work {
    const cli_tune *o;
    ls_space space;
    ls_search *search;
    cli_tune_journal journal;
    cli_tune_curves *curves;
    cli_pool *pool;
    ls_lock lock;
    job *jobs; /* [njobs] the tag of a process is its place */
    int njobs, nrunning;
    int all, idle; /* workers */
    int *nbegun;   /* [trials] parts whose run directories are there */
} work;

static cli_tune_view view_of(const work *w) {
    return (cli_tune_view){&w->space, w->search, w->o->dir};
}

static char *run_of(const work *w, int trial, int part) {
    return cli_tune_part_dir(w->o->dir, w->search, trial, part);
}

/* ---- configs and run directories ---- */

/* A trial ends where the search wants it to. */
static ls_status config_of(const work *w, int trial, int part, ls_config *c_p, ls_error *e) {
    const ls_space_point *p = &ls_search_part_of(w->search, trial, part)->point;
    LS_TRY(ls_space_config(&w->space, w->o->config, p, c_p, e));
    c_p->train.patience = 0;
    return LS_OK;
}

/* A part that another trial's checkpoint begins has it before that trial goes on, and may remove
 * it: all parts are begun before anything is trained. */
static ls_status begin_part(const work *w, int trial, int part, ls_error *e) {
    const ls_search_part *p = ls_search_part_of(w->search, trial, part);
    cli_trial t = {.dir = run_of(w, trial, part)};
    ls_config c;
    ls_status s = config_of(w, trial, part, &c, e);
    if (s == LS_OK) s = cli_trial_open(&t, &c, e);
    if (s == LS_OK && p->source >= 0) {
        char *source = run_of(w, p->source, p->source_part);
        char *checkpoint = ls_checkpoint_path(source, ls_search_rung_steps(w->search, p->first));
        s = cli_trial_begin_with(&t, checkpoint, e);
        free(checkpoint);
        free(source);
    }
    free(t.dir);
    return s;
}

static void log_copy(const work *w, int trial, int part) {
    const ls_search_part *p = ls_search_part_of(w->search, trial, part);
    char *values = ls_space_point_text(&w->space, &p->point);
    if (p->source >= 0)
        ls_log_result("trial %d goes on from trial %d after step %lld: %s", trial + 1,
                      p->source + 1, (long long)ls_search_rung_steps(w->search, p->first), values);
    free(values);
}

/* logs: copies are logged; those of an earlier command have been. */
static ls_status begin_parts(work *w, bool logs, ls_error *e) {
    for (int t = 0; t < ls_search_ntrials(w->search); t++)
        for (; w->nbegun[t] < ls_search_nparts(w->search, t); w->nbegun[t]++) {
            LS_TRY(begin_part(w, t, w->nbegun[t], e));
            if (logs) log_copy(w, t, w->nbegun[t]);
        }
    return LS_OK;
}

/* ---- results ---- */

static void log_row(const work *w, const cli_tune_result *r) {
    int part = ls_search_nparts(w->search, r->trial) - 1;
    char *values =
        ls_space_point_text(&w->space, &ls_search_part_of(w->search, r->trial, part)->point);
    if (isfinite(r->metric))
        ls_log_result("%6d %9lld %12.6g  %s", r->trial + 1, (long long)r->step, r->metric, values);
    else
        ls_log_result("%6d %9lld %12s  %s", r->trial + 1, (long long)r->step, "diverged", values);
    free(values);
}

static ls_status write_table(const work *w, ls_error *e) {
    const cli_tune_view v = view_of(w);
    ls_buf text = {0};
    char *path = ls_format("%s/tune.txt", w->o->dir);
    cli_tune_print_table(&v, &text);
    ls_status s = ls_file_replace(path, text.data, text.len, e);
    free(path);
    ls_buf_free(&text);
    return s;
}

/* Where all trials are trained to the end, the values of their keys decide: no curves. */
static ls_status write_picture(const work *w, ls_error *e) {
    char *path = ls_format("%s/tune.svg", w->o->dir);
    const cli_tune_view v = view_of(w);
    bool whole = w->space.rules.method == LS_SPACE_GRID || w->space.rules.method == LS_SPACE_RANDOM;
    ls_status s =
        whole ? cli_tune_keys_write(&v, path, e) : cli_tune_curves_write(w->curves, path, e);
    free(path);
    return s;
}

static void show_progress(const work *w) {
    const cli_tune_view v = view_of(w);
    ls_buf text = {0};
    if (!ls_log_is_terminal()) return;
    cli_tune_print_progress(&v, &text);
    ls_log_status("%s", text.data);
    ls_buf_free(&text);
}

static ls_status read_curve(work *w, int trial, int rung, ls_error *e) {
    int part = ls_search_part_at(w->search, trial, rung);
    char *run = run_of(w, trial, part);
    ls_status s =
        cli_tune_curves_read(w->curves, run, trial, part, ls_search_rung_steps(w->search, rung), e);
    free(run);
    return s;
}

static ls_status add_result(work *w, int trial, int rung, double metric, ls_error *e) {
    const cli_tune_result r = {trial, ls_search_rung_steps(w->search, rung), metric};
    LS_TRY(cli_tune_journal_add(&w->journal, &r, e));
    log_row(w, &r);
    LS_TRY(read_curve(w, trial, rung, e));
    ls_search_tell(w->search, trial, rung, metric);
    ls_search_decide(w->search);
    LS_TRY(write_table(w, e));
    return write_picture(w, e);
}

/* A line of the journal. One of a step that is no rung is of a trial that was longer. */
static void use_result(void *arg, const cli_tune_result *r) {
    work *w = arg;
    if (r->trial >= ls_search_ntrials(w->search)) return;
    for (int i = 0; i < ls_search_nrungs(w->search); i++)
        if (ls_search_rung_steps(w->search, i) == r->step)
            ls_search_tell(w->search, r->trial, i, r->metric);
}

static ls_status read_curves(work *w, ls_error *e) {
    for (int t = 0; t < ls_search_ntrials(w->search); t++)
        for (int r = 0; r <= ls_search_reached(w->search, t); r++) LS_TRY(read_curve(w, t, r, e));
    return LS_OK;
}

/* ---- trainings ---- */

static bool is_running(const work *w, int trial) {
    for (int i = 0; i < w->njobs; i++)
        if (w->jobs[i].workers && w->jobs[i].trial == trial) return true;
    return false;
}

/* The ready trial that has come furthest, and how many there are. */
static int find_ready(const work *w, int *n_p) {
    int best = -1;
    *n_p = 0;
    for (int t = 0; t < ls_search_ntrials(w->search); t++) {
        if (ls_search_state_of(w->search, t) != LS_SEARCH_READY || is_running(w, t)) continue;
        ++*n_p;
        if (best < 0 || ls_search_next_rung(w->search, t) > ls_search_next_rung(w->search, best))
            best = t;
    }
    return best;
}

/* Steps between evaluations, so that there is one at the rung: the config's, or one alone. A run's
 * last step has one in any case. */
static int64_t evaluations_of(const work *w, int rung) {
    int64_t step = ls_search_rung_steps(w->search, rung), every = w->o->config->train.eval_every;
    bool last = rung == ls_search_nrungs(w->search) - 1;
    return last || (every > 0 && step % every == 0) ? every : step;
}

static ls_status start_process(work *w, int slot, cli_trial *t, ls_error *e) {
    const job *j = &w->jobs[slot];
    char *every = ls_format("train.eval_every=%lld", (long long)evaluations_of(w, j->rung));
    const char *const more[] = {"--set", every};
    t->workers = j->workers;
    t->more = more;
    t->nmore = 2;
    ls_status s = cli_trial_start(t, ls_search_rung_steps(w->search, j->rung), w->pool, slot, e);
    free(every);
    return s;
}

static ls_status finish(work *w, const job *j, int code, ls_error *e);

/* Workers for a trial's next rung: more than its share, where its config needs more. */
static ls_status workers_of(const work *w, int trial, int share, int *n_p, ls_error *e) {
    int rung = ls_search_next_rung(w->search, trial);
    ls_config c;
    LS_TRY(config_of(w, trial, ls_search_part_at(w->search, trial, rung), &c, e));
    *n_p = cli_trial_workers(&c, share, w->all);
    return LS_OK;
}

/* A trial that was trained to the rung, before the command was killed, only gives its metric. */
static ls_status start(work *w, int trial, int workers, ls_error *e) {
    int slot = 0, rung = ls_search_next_rung(w->search, trial);
    int part = ls_search_part_at(w->search, trial, rung);
    cli_trial t = {.dir = run_of(w, trial, part)};
    ls_status s = LS_OK;
    while (w->jobs[slot].workers) slot++;
    const job j = {trial, rung, workers};
    if (cli_trial_is_trained(&t, ls_search_rung_steps(w->search, rung))) {
        s = finish(w, &j, 0, e);
    } else {
        w->jobs[slot] = j;
        w->nrunning++;
        w->idle -= j.workers;
        s = start_process(w, slot, &t, e);
    }
    free(t.dir);
    return s;
}

/* Divides the idle workers among trials that are ready. One that needs more of them waits. */
static ls_status start_ready(work *w, ls_error *e) {
    for (int n = 0; w->nrunning < w->njobs && w->idle > 0;) {
        LS_TRY(begin_parts(w, true, e));
        int trial = find_ready(w, &n), places = w->njobs - w->nrunning;
        if (trial < 0) return LS_OK;
        if (places > n) places = n;
        int share = w->idle / places, workers = 0;
        LS_TRY(workers_of(w, trial, share > 0 ? share : 1, &workers, e));
        if (workers > w->idle) return LS_OK;
        LS_TRY(start(w, trial, workers, e));
    }
    return LS_OK;
}

/* A training has ended with this exit code. */
static ls_status finish(work *w, const job *j, int code, ls_error *e) {
    char *run = run_of(w, j->trial, ls_search_part_at(w->search, j->trial, j->rung));
    const cli_trial t = {.dir = run};
    bool diverged = false;
    double metric = NAN;
    int64_t step = ls_search_rung_steps(w->search, j->rung);
    ls_status s = cli_trial_check(&t, step, code, &diverged, e);
    if (s == LS_OK && !diverged) s = cli_tune_metric(run, w->space.rules.metric, step, &metric, e);
    if (s == LS_OK) s = add_result(w, j->trial, j->rung, metric, e);
    free(run);
    return s;
}

static ls_status wait_one(work *w, ls_error *e) {
    int slot = 0, code = 0;
    if (cli_pool_wait(w->pool, &slot, &code, e) != LS_OK)
        return ls_fail(e, LS_EABORT,
                       "interrupted; the same command continues, or `lockstep tune "
                       "--resume %.200s`",
                       w->o->dir);
    const job j = w->jobs[slot];
    w->jobs[slot].workers = 0;
    w->nrunning--;
    w->idle += j.workers;
    return finish(w, &j, code, e);
}

static ls_status train_all(work *w, ls_error *e) {
    ls_log_result(" trial      step %12.12s  values", w->space.rules.metric);
    for (;;) {
        LS_TRY(start_ready(w, e));
        show_progress(w);
        if (w->nrunning == 0) return LS_OK;
        LS_TRY(wait_one(w, e));
    }
}

/* ---- the end ---- */

static ls_status write_best(const work *w, int best, ls_error *e) {
    int rung = ls_search_reached(w->search, best), part = ls_search_nparts(w->search, best) - 1;
    char *path = ls_format("%s/best.yaml", w->o->dir);
    ls_buf text = {0};
    ls_config c;
    const ls_space_point *p = &ls_search_part_of(w->search, best, part)->point;
    ls_status s = ls_space_config(&w->space, w->o->config, p, &c, e);
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

static void print_next(const work *w, int best) {
    char *run = run_of(w, best, ls_search_nparts(w->search, best) - 1);
    ls_buf dir = {0}, words = {0};
    cli_quote(&dir, w->o->dir);
    cli_quote(&words, run);
    int rung = ls_search_reached(w->search, best);
    ls_print("\nbest: trial %d, %s %.6g after step %lld\n", best + 1, w->space.rules.metric,
             ls_search_metric(w->search, best, rung),
             (long long)ls_search_rung_steps(w->search, rung));
    ls_print("picture: %s/tune.svg\n", w->o->dir);
    ls_print("train its config anew:  %s train %s/best.yaml -o RUN\n", ls_name(), dir.data);
    ls_print("train it further:       %s train --resume %s --set train.steps=%lld\n", ls_name(),
             words.data, (long long)(2 * w->space.rules.steps));
    ls_buf_free(&dir);
    ls_buf_free(&words);
    free(run);
}

static ls_status show(const work *w, ls_error *e) {
    const cli_tune_view v = view_of(w);
    int best = ls_search_best(w->search);
    ls_buf text = {0};
    if (best < 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: no trial has a number for %s: the losses of all are no numbers; search "
                       "lower learning rates",
                       w->o->dir, w->space.rules.metric);
    LS_TRY(write_best(w, best, e));
    if (w->o->json) {
        ls_json *j = cli_tune_json(&v);
        ls_print_json(j);
        ls_json_free(j);
        return LS_OK;
    }
    cli_tune_print_table(&v, &text);
    ls_print_text(text.data, text.len);
    ls_buf_free(&text);
    print_next(w, best);
    return LS_OK;
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
static ls_status check_trials(const work *w, ls_error *e) {
    ls_config c;
    for (int t = 0; t < ls_search_ntrials(w->search); t++) {
        LS_TRY(config_of(w, t, 0, &c, e));
        LS_TRY(check_config(&c, e));
    }
    return LS_OK;
}

static ls_status open_dir(work *w, ls_error *e) {
    char *config = ls_format("%s/config.yaml", w->o->dir);
    bool is_run = ls_file_exists(config);
    free(config);
    if (is_run)
        return ls_fail(e, LS_EINVAL, "%s: is a run directory; choose another one with -o",
                       w->o->dir);
    LS_TRY(ls_file_make_dirs(w->o->dir, e));
    LS_TRY(ls_lock_take(w->o->dir, 0, &w->lock, e));
    return cli_tune_journal_open(w->o->dir, &w->space, use_result, w, &w->journal, e);
}

static void share_workers(work *w) {
    int64_t cores = ls_cores() / w->o->config->parallel.threads;
    int64_t workers = w->o->workers ? w->o->workers : cores > 1 ? cores : 1;
    int64_t jobs = w->o->parallel ? w->o->parallel : workers;
    w->all = w->idle = (int)workers;
    w->njobs = (int)(jobs < workers ? jobs : workers);
    w->jobs = LS_NEW_ARRAY(job, (size_t)w->njobs);
    w->nbegun = LS_NEW_ARRAY(int, (size_t)ls_search_ntrials(w->search));
}

static void log_plan(const work *w) {
    const cli_tune_view v = view_of(w);
    ls_buf text = {0};
    cli_tune_print_plan(&v, &text);
    ls_log("tune: %s", text.data);
    ls_buf_free(&text);
}

static ls_status search_all(work *w, ls_error *e) {
    LS_TRY(check_trials(w, e));
    if (w->o->list) {
        const cli_tune_view v = view_of(w);
        ls_buf text = {0};
        log_plan(w);
        cli_tune_print_trials(&v, &text);
        ls_print_text(text.data, text.len);
        ls_buf_free(&text);
        return LS_OK;
    }
    LS_TRY(open_dir(w, e));
    ls_search_decide(w->search);
    w->curves = cli_tune_curves_open(w->search, &w->space);
    LS_TRY(read_curves(w, e));
    share_workers(w);
    LS_TRY(begin_parts(w, false, e)); /* refuses another command's trials */
    LS_TRY(cli_tune_saved_write(w->o->dir, w->o->asked, e));
    log_plan(w);
    w->pool = cli_pool_open();
    ls_status s = train_all(w, e);
    ls_log_end_status();
    cli_pool_close(w->pool);
    LS_TRY(s);
    return show(w, e);
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
static ls_status read_space(const cli_tune *o, ls_space *s_p, ls_error *e) {
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

ls_status cli_tune_run(const cli_tune *o, ls_error *e) {
    work w = {.o = o, .lock = LS_LOCK_NONE, .journal = {.fd = -1}};
    LS_TRY(read_space(o, &w.space, e));
    ls_status s = set_trials(&w.space, o->asked->trials, e);
    w.search = ls_search_open(&w.space, o->config);
    if (s == LS_OK) s = search_all(&w, e);
    cli_tune_journal_close(&w.journal);
    cli_tune_curves_close(w.curves);
    ls_lock_drop(&w.lock);
    ls_search_close(w.search);
    ls_space_free(&w.space);
    free(w.jobs);
    free(w.nbegun);
    return s;
}
