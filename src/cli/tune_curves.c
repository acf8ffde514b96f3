/* tune_curves.c - see tune_curves.h. */
#include "cli/tune_curves.h"

#include <stdlib.h>

#include "report/history.h"
#include "report/trials_svg.h"

typedef struct curve {
    int trial, part;
    double *steps, *values; /* [n] */
    size_t n;
} curve;

struct cli_tune_curves {
    const ls_search *search;
    const ls_space *space;
    curve *list; /* [n] */
    int n;
};

cli_tune_curves *cli_tune_curves_open(const ls_search *s, const ls_space *space) {
    cli_tune_curves *c = LS_NEW(cli_tune_curves);
    *c = (cli_tune_curves){.search = s, .space = space};
    return c;
}

static void clear(curve *x) {
    free(x->steps);
    free(x->values);
    x->steps = x->values = NULL;
    x->n = 0;
}

void cli_tune_curves_close(cli_tune_curves *c) {
    if (!c) return;
    for (int i = 0; i < c->n; i++) clear(&c->list[i]);
    free(c->list);
    free(c);
}

/* ---- reading ---- */

typedef struct reading {
    curve *to;
    const char *metric;
    int64_t until;
} reading;

static void add_point(curve *x, double step, double value) {
    x->steps = ls_grow(x->steps, x->n, sizeof *x->steps);
    x->values = ls_grow(x->values, x->n, sizeof *x->values);
    x->steps[x->n] = step;
    x->values[x->n++] = value;
}

static void add_line(void *arg, int64_t step, const ls_json *line) {
    const reading *r = arg;
    double value = 0;
    if (step <= r->until && ls_json_number(ls_json_get(line, r->metric), &value))
        add_point(r->to, (double)step, value);
}

static curve *find(cli_tune_curves *c, int trial, int part) {
    for (int i = 0; i < c->n; i++)
        if (c->list[i].trial == trial && c->list[i].part == part) return &c->list[i];
    c->list = ls_grow(c->list, (size_t)c->n, sizeof *c->list);
    c->list[c->n] = (curve){.trial = trial, .part = part};
    return &c->list[c->n++];
}

ls_status cli_tune_curves_read(cli_tune_curves *c, const char *run, int trial, int part,
                               int64_t until, ls_error *e) {
    reading r = {find(c, trial, part), c->space->rules.metric, until};
    const ls_search_part *p = ls_search_part_of(c->search, trial, part);
    clear(r.to);
    if (p->source >= 0) /* where the trial was that it goes on from */
        add_point(r.to, (double)ls_search_rung_steps(c->search, p->first),
                  ls_search_metric(c->search, p->source, p->first));
    return ls_history_scan(run, add_line, &r, e);
}

/* ---- drawing ---- */

static ls_trial_look look_of(const cli_tune_curves *c, const curve *x) {
    ls_search_state state = ls_search_state_of(c->search, x->trial);
    bool last = x->part == ls_search_nparts(c->search, x->trial) - 1;
    if (last && x->trial == ls_search_best(c->search)) return LS_TRIAL_BEST;
    if (!last || state == LS_SEARCH_STOPPED || state == LS_SEARCH_DIVERGED) return LS_TRIAL_GREY;
    return LS_TRIAL_GOING;
}

/* The axes show the better half of the trials: a few bad ones would take up all of them. */
ls_status cli_tune_curves_write(const cli_tune_curves *c, const char *path, ls_error *e) {
    int n = ls_search_ntrials(c->search), *order = LS_NEW_ARRAY(int, (size_t)n);
    bool *good = LS_NEW_ARRAY(bool, (size_t)n);
    ls_trial_curve *curves = LS_NEW_ARRAY(ls_trial_curve, (size_t)c->n);
    ls_search_rank(c->search, order);
    for (int i = 0; i < (n + 1) / 2; i++) good[order[i]] = true;
    for (int i = 0; i < c->n; i++) {
        const curve *x = &c->list[i];
        curves[i] = (ls_trial_curve){
            .series = {x->steps, x->values, x->n}, .look = look_of(c, x), .fits = good[x->trial]};
    }
    char *title = ls_format("%s of %d trials", c->space->rules.metric, n);
    const ls_trials_picture p = {title, curves, c->n};
    ls_status s = ls_trials_svg_write(path, &p, e);
    free(title);
    free(order);
    free(good);
    free(curves);
    return s;
}
