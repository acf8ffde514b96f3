/* tune_keys.c - see tune_keys.h. A key whose value is the same in all trials has no panel, unless there
 * is no other. */
#include "cli/tune_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/keys_svg.h"

/* A panel, and its memory. */
typedef struct panel {
    ls_keys_panel drawn;
    double *x;           /* [trials] */
    const char **labels; /* [drawn.nlabels] borrowed */
} panel;

static const char *value_of(const cli_tune_view *v, int trial, int key) {
    return ls_search_part_of(v->search, trial, 0)->point.values[key];
}

static bool is_number(const char *text, double *x_p) {
    char *end = NULL;
    double x = strtod(text, &end);
    *x_p = x;
    return *text && !*end && isfinite(x);
}

/* The number of a word among the labels, which may be a new one. */
static int label_of(panel *p, const char *word) {
    for (int i = 0; i < p->drawn.nlabels; i++)
        if (strcmp(p->labels[i], word) == 0) return i;
    p->labels[p->drawn.nlabels] = word;
    return p->drawn.nlabels++;
}

static bool are_numbers(const cli_tune_view *v, int key) {
    double x = 0;
    for (int t = 0; t < ls_search_ntrials(v->search); t++) {
        const char *value = value_of(v, t, key);
        if (value && !is_number(value, &x)) return false;
    }
    return true;
}

/* Numbers that differ by a factor of ten, or were drawn so, have a logarithmic axis. */
static bool is_log(const cli_tune_view *v, int key, const double *x) {
    double least = INFINITY, most = -INFINITY;
    const ls_space_key *k = &v->space->keys[key];
    for (int t = 0; t < ls_search_ntrials(v->search); t++)
        if (isfinite(x[t])) least = fmin(least, x[t]), most = fmax(most, x[t]);
    bool drawn = k->nranges && k->ranges[0].kind == LS_RANGE_LOG_UNIFORM;
    return least > 0 && (drawn || most >= 10 * least);
}

/* Were values drawn between two numbers? */
static bool is_drawn(const ls_space_key *k) {
    for (int i = 0; i < k->nranges; i++)
        if (k->ranges[i].kind != LS_RANGE_CHOICE) return true;
    return false;
}

static panel make(const cli_tune_view *v, int key) {
    int n = ls_search_ntrials(v->search);
    panel p = {.drawn = {.key = v->space->keys[key].name}, .x = LS_NEW_ARRAY(double, (size_t)n)};
    bool numbers = are_numbers(v, key);
    if (!numbers) p.labels = LS_NEW_ARRAY(const char *, (size_t)n);
    for (int t = 0; t < n; t++) {
        const char *value = value_of(v, t, key);
        p.x[t] = NAN;
        if (value && numbers) is_number(value, &p.x[t]);
        if (value && !numbers) p.x[t] = label_of(&p, value);
    }
    p.drawn.x = p.x;
    p.drawn.labels = p.labels;
    p.drawn.is_drawn = is_drawn(&v->space->keys[key]);
    p.drawn.is_log = numbers && is_log(v, key, p.x);
    return p;
}

static bool varies(const cli_tune_view *v, const panel *p) {
    double first = NAN;
    for (int t = 0; t < ls_search_ntrials(v->search); t++) {
        if (isnan(p->x[t])) continue;
        if (!isnan(first) && p->x[t] != first) return true;
        first = p->x[t];
    }
    return false;
}

static double *metrics_of(const cli_tune_view *v) {
    int n = ls_search_ntrials(v->search);
    double *values = LS_NEW_ARRAY(double, (size_t)n);
    for (int t = 0; t < n; t++) {
        int rung = ls_search_reached(v->search, t);
        bool diverged = ls_search_state_of(v->search, t) == LS_SEARCH_DIVERGED;
        values[t] = diverged ? INFINITY : rung < 0 ? NAN : ls_search_metric(v->search, t, rung);
    }
    return values;
}

ls_status cli_tune_keys_write(const cli_tune_view *v, const char *path, ls_error *e) {
    panel panels[LS_SPACE_KEYS];
    ls_keys_panel drawn[LS_SPACE_KEYS];
    int n = v->space->nkeys, ndrawn = 0, best = ls_search_best(v->search);
    double *values = metrics_of(v);
    for (int i = 0; i < n; i++) {
        panels[i] = make(v, i);
        if (varies(v, &panels[i])) drawn[ndrawn++] = panels[i].drawn;
    }
    if (ndrawn == 0) drawn[ndrawn++] = panels[0].drawn;
    ls_buf title = {0};
    ls_buf_printf(&title, "%s of %d trials", v->space->rules.metric, ls_search_ntrials(v->search));
    if (best >= 0) ls_buf_printf(&title, "; best: %.6g, trial %d", values[best], best + 1);
    const ls_keys_picture p = {.title = title.data,
                               .metric = v->space->rules.metric,
                               .values = values,
                               .n = ls_search_ntrials(v->search),
                               .best = best,
                               .panels = drawn,
                               .npanels = ndrawn};
    ls_status s = ls_keys_svg_write(path, &p, e);
    for (int i = 0; i < n; i++) free(panels[i].x), free(panels[i].labels);
    ls_buf_free(&title);
    free(values);
    return s;
}
