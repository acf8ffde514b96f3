/* trial_curves.c - see trial_curves.h. */
#include "search/trial_curves.h"

#include <stdlib.h>

#include "base/file.h"
#include "report/history.h"
#include "report/plot.h"

typedef struct curve {
    int trial, part;
    double *steps, *values; /* [n] */
    size_t n;
} curve;

struct ls_trial_curves {
    const ls_search_view *view;
    curve *list; /* [n] */
    int n;
};

ls_trial_curves *ls_trial_curves_open(const ls_search_view *v) {
    ls_trial_curves *c = LS_NEW(ls_trial_curves);
    c->view = v;
    return c;
}

static void clear(curve *x) {
    free(x->steps);
    free(x->values);
    x->steps = x->values = NULL;
    x->n = 0;
}

void ls_trial_curves_close(ls_trial_curves *c) {
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

static curve *find(ls_trial_curves *c, int trial, int part) {
    for (int i = 0; i < c->n; i++)
        if (c->list[i].trial == trial && c->list[i].part == part) return &c->list[i];
    c->list = ls_grow(c->list, (size_t)c->n, sizeof *c->list);
    c->list[c->n] = (curve){.trial = trial, .part = part};
    return &c->list[c->n++];
}

ls_status ls_trial_curves_read(ls_trial_curves *c, int trial, int rung, ls_error *e) {
    const ls_search *s = c->view->search;
    int part = ls_search_part_at(s, trial, rung);
    const ls_search_part *p = ls_search_part_of(s, trial, part);
    reading r = {find(c, trial, part), c->view->space->rules.metric, ls_search_rung_steps(s, rung)};
    char *run = ls_search_part_dir(c->view, trial, part);
    clear(r.to);
    if (p->source >= 0) /* where the trial was that it goes on from */
        add_point(r.to, (double)ls_search_rung_steps(s, p->first),
                  ls_search_metric(s, p->source, p->first));
    ls_status status = ls_history_scan(run, add_line, &r, e);
    free(run);
    return status;
}

/* ---- drawing ---- */

/* GREY: it was stopped, or replaced. GOING: still in the search, or trained to its end. */
typedef enum look { GREY, GOING, BEST, NLOOKS } look;
static const char *const styles[] = {[GREY] = "stroke=\"#c3c9d0\" stroke-width=\"1.2\"",
                                     [GOING] = "stroke=\"#7fb0d6\" stroke-width=\"1.4\"",
                                     [BEST] = "stroke=\"#cb6e17\" stroke-width=\"2.4\""};
static const char *const names[] = {
    [GREY] = "stopped or replaced", [GOING] = "trained on", [BEST] = "best"};

static look look_of(const ls_search *s, const curve *x) {
    ls_search_state state = ls_search_state_of(s, x->trial);
    bool last = x->part == ls_search_nparts(s, x->trial) - 1;
    if (last && x->trial == ls_search_best(s)) return BEST;
    if (!last || state == LS_SEARCH_STOPPED || state == LS_SEARCH_DIVERGED) return GREY;
    return GOING;
}

static ls_curve_series series_of(const curve *x) {
    return (ls_curve_series){x->steps, x->values, x->n};
}

/* The axes show the better half of the trials: a few bad ones would take up all of them. Other
 * curves are cut off at the frame. */
static ls_plot plot_of(const ls_trial_curves *c) {
    int n = ls_search_ntrials(c->view->search), *order = LS_NEW_ARRAY(int, (size_t)n);
    ls_plot plot;
    ls_search_rank(c->view->search, order);
    ls_plot_open(&plot);
    for (int i = 0; i < (n + 1) / 2; i++)
        for (int k = 0; k < c->n; k++) {
            const ls_curve_series series = series_of(&c->list[k]);
            if (c->list[k].trial == order[i]) ls_plot_widen(&plot, &series);
        }
    ls_plot_close(&plot, 8, 7);
    free(order);
    return plot;
}

static void draw(const ls_trial_curves *c, ls_buf *out) {
    const ls_plot plot = plot_of(c);
    double x = LS_PLOT_LEFT;
    char *title = ls_format("%s of %d trials", c->view->space->rules.metric,
                            ls_search_ntrials(c->view->search));
    ls_plot_svg_begin(&plot, LS_PLOT_HEIGHT, title, "step", out);
    for (int k = NLOOKS - 1; k >= 0; k--) x = ls_plot_svg_key(out, x, styles[k], names[k]);
    ls_buf_printf(out,
                  "<clipPath id=\"frame\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
                  "height=\"%d\"/></clipPath>\n<g clip-path=\"url(#frame)\">\n",
                  LS_PLOT_LEFT, LS_PLOT_TOP, LS_PLOT_RIGHT - LS_PLOT_LEFT,
                  LS_PLOT_BOTTOM - LS_PLOT_TOP);
    for (int k = 0; k < NLOOKS; k++)
        for (int i = 0; i < c->n; i++) {
            const ls_curve_series series = series_of(&c->list[i]);
            if ((int)look_of(c->view->search, &c->list[i]) == k && series.n > 0)
                ls_plot_svg_series(out, &plot, &series, styles[k]);
        }
    ls_buf_printf(out, "</g>\n</svg>\n");
    free(title);
}

ls_status ls_trial_curves_write(const ls_trial_curves *c, const char *path, ls_error *e) {
    ls_buf svg = {0};
    draw(c, &svg);
    ls_status s = ls_file_replace(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return s;
}
