/* view.c - see view.h. */
#include "search/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/log.h"
#include "base/plural.h"

static const char *const states[] = {[LS_SEARCH_READY] = "training",
                                     [LS_SEARCH_WAITING] = "waiting",
                                     [LS_SEARCH_STOPPED] = "stopped",
                                     [LS_SEARCH_DIVERGED] = "diverged",
                                     [LS_SEARCH_DONE] = "done"};

char *ls_search_part_dir(const ls_search_view *v, int trial, int part) {
    int first = ls_search_part_of(v->search, trial, part)->first;
    if (first < 0) return ls_format("%s/trial-%03d", v->dir, trial + 1);
    return ls_format("%s/trial-%03d-from-%lld", v->dir, trial + 1,
                     (long long)ls_search_rung_steps(v->search, first));
}

static const ls_space_point *point_of(const ls_search *s, int trial) {
    return &ls_search_part_of(s, trial, ls_search_nparts(s, trial) - 1)->point;
}

/* Values are of files: escaped, so that they can't add lines to a table. */
static void put_point(const ls_search_view *v, int trial, ls_buf *out) {
    char *text = ls_space_point_text(v->space, point_of(v->search, trial));
    ls_buf_escape(out, LS_ESCAPE_LINE, text, strlen(text));
    ls_buf_printf(out, "\n");
    free(text);
}

/* "optim.lr from 1e-4 to 1e-1 (log)", "optim.optimizer adamw, lion" */
static void put_range(const ls_space_key *k, const ls_space_range *a, ls_buf *out) {
    enum { MOST = 8 };
    static const char *const scales[] = {[LS_RANGE_CHOICE] = "",
                                         [LS_RANGE_UNIFORM] = "",
                                         [LS_RANGE_LOG_UNIFORM] = " (log)",
                                         [LS_RANGE_INT] = " (whole)"};
    ls_buf_put(out, "%.60s ", k->name);
    if (a->kind != LS_RANGE_CHOICE)
        ls_buf_printf(out, "from %g to %g%s", a->low, a->high, scales[a->kind]);
    else if (a->nchoices > MOST)
        ls_buf_printf(out, "%d values", a->nchoices);
    for (int i = 0; a->nchoices <= MOST && i < a->nchoices; i++)
        ls_buf_put(out, "%s%.40s", i ? ", " : "", a->choices[i]);
}

void ls_search_log_plan(const ls_search_view *v) {
    ls_buf out = {0};
    const ls_space_rules *u = &v->space->rules;
    bool whole = u->method == LS_SPACE_GRID || u->method == LS_SPACE_RANDOM;
    ls_buf_printf(&out, "method %s, %lld trial%s of %s%lld steps", ls_space_methods[u->method],
                  (long long)u->trials, ls_plural((int)u->trials), whole ? "" : "up to ",
                  (long long)u->steps);
    for (int i = 0; i < v->space->nkeys; i++) {
        const ls_space_key *k = &v->space->keys[i];
        ls_buf_printf(&out, "; ");
        if (k->nranges == 1)
            put_range(k, &k->ranges[0], &out);
        else
            ls_buf_put(&out, "%.60s by other keys", k->name);
    }
    ls_log("tune: %s", out.data);
    ls_buf_free(&out);
}

void ls_search_print_trials(const ls_search_view *v, ls_buf *out) {
    ls_buf_printf(out, "trial  values\n");
    for (int t = 0; t < ls_search_ntrials(v->search); t++) {
        ls_buf_printf(out, "%5d  ", t + 1);
        put_point(v, t, out);
    }
}

static void put_trial(const ls_search_view *v, int t, int best, ls_buf *out) {
    int rung = ls_search_reached(v->search, t);
    double metric = rung < 0 ? NAN : ls_search_metric(v->search, t, rung);
    long long step = rung < 0 ? 0 : (long long)ls_search_rung_steps(v->search, rung);
    ls_buf_printf(out, "%c%5d %9lld ", t == best ? '*' : ' ', t + 1, step);
    if (isfinite(metric))
        ls_buf_printf(out, "%12.6g", metric);
    else
        ls_buf_printf(out, "%12s", "-");
    ls_buf_printf(out, "  %-9s ", states[ls_search_state_of(v->search, t)]);
    put_point(v, t, out);
}

/* Steps that all trials have been trained. */
static int64_t steps_of(const ls_search *s) {
    int64_t sum = 0;
    for (int t = 0; t < ls_search_ntrials(s); t++) {
        int rung = ls_search_reached(s, t);
        if (rung >= 0) sum += ls_search_rung_steps(s, rung);
    }
    return sum;
}

void ls_search_print_table(const ls_search_view *v, ls_buf *out) {
    int n = ls_search_ntrials(v->search), *order = LS_NEW_ARRAY(int, (size_t)n);
    int best = ls_search_best(v->search), nrungs = ls_search_nrungs(v->search);
    ls_buf_put(out, " trial      step %12.12s  state     values\n", v->space->rules.metric);
    ls_search_rank(v->search, order);
    for (int i = 0; i < n; i++) put_trial(v, order[i], best, out);
    free(order);
    if (nrungs > 1) ls_buf_printf(out, "\nrung, steps   trials that came\n");
    for (int r = 0; nrungs > 1 && r < nrungs; r++)
        ls_buf_printf(out, "%11lld %18d\n", (long long)ls_search_rung_steps(v->search, r),
                      ls_search_count(v->search, r));
    ls_buf_printf(out, "\n%lld steps were trained", (long long)steps_of(v->search));
    if (nrungs > 1)
        ls_buf_printf(out, "; %d whole trials have %lld", n,
                      (long long)(n * v->space->rules.steps));
    ls_buf_printf(out, "\n");
}

void ls_search_print_progress(const ls_search_view *v, ls_buf *out) {
    int counts[LS_SEARCH_DONE + 1] = {0}, n = ls_search_ntrials(v->search);
    for (int t = 0; t < n; t++) counts[ls_search_state_of(v->search, t)]++;
    ls_buf_printf(out, "%d trial%s", n, ls_plural(n));
    for (int i = 0; i <= LS_SEARCH_DONE; i++)
        if (counts[i]) ls_buf_printf(out, "  %d %s", counts[i], states[i]);
    int best = ls_search_best(v->search);
    if (best >= 0)
        ls_buf_printf(out, "  best: %.6g (trial %d)",
                      ls_search_metric(v->search, best, ls_search_reached(v->search, best)),
                      best + 1);
}

/* ---- JSON ---- */

static ls_json *json_of_values(const ls_search_view *v, int t) {
    ls_json *o = ls_json_new_object();
    const ls_space_point *p = point_of(v->search, t);
    for (int i = 0; i < v->space->nkeys; i++)
        if (p->values[i]) ls_json_set_text(o, v->space->keys[i].name, p->values[i]);
    return o;
}

static ls_json *json_of_trial(const ls_search_view *v, int t) {
    ls_json *o = ls_json_new_object();
    int rung = ls_search_reached(v->search, t);
    char *run = ls_search_part_dir(v, t, ls_search_nparts(v->search, t) - 1);
    ls_json_set_integer(o, "trial", t + 1);
    ls_json_set_integer(o, "step", rung < 0 ? 0 : ls_search_rung_steps(v->search, rung));
    ls_json_set_number(o, "metric", rung < 0 ? NAN : ls_search_metric(v->search, t, rung));
    ls_json_set_text(o, "state", states[ls_search_state_of(v->search, t)]);
    ls_json_set(o, "values", json_of_values(v, t));
    ls_json_set_path(o, "run", run);
    free(run);
    return o;
}

ls_json *ls_search_json(const ls_search_view *v) {
    ls_json *o = ls_json_new_object(), *trials = ls_json_new_array(), *rungs = ls_json_new_array();
    for (int t = 0; t < ls_search_ntrials(v->search); t++)
        ls_json_push(trials, json_of_trial(v, t));
    for (int r = 0; r < ls_search_nrungs(v->search); r++) {
        ls_json *one = ls_json_new_object();
        ls_json_set_integer(one, "step", ls_search_rung_steps(v->search, r));
        ls_json_set_integer(one, "trials", ls_search_count(v->search, r));
        ls_json_push(rungs, one);
    }
    int best = ls_search_best(v->search);
    char *config = ls_format("%s/best.yaml", v->dir);
    ls_json_set_text(o, "metric", v->space->rules.metric);
    ls_json_set(o, "trials", trials);
    ls_json_set(o, "rungs", rungs);
    ls_json_set_integer(o, "steps", steps_of(v->search));
    ls_json_set(o, "best", best < 0 ? ls_json_new_null() : json_of_trial(v, best));
    ls_json_set_path(o, "config", config);
    free(config);
    return o;
}
