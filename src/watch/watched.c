/* watched.c - see watched.h. */
#include "watch/watched.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/history.h"

enum { MOST_MARKS = 20000, MOST_POINTS = 2000000 };

const double ls_durations[LS_NDURATIONS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                            0.5,   1,      2.5,   5,    10,    25,   60,  300};

static const char *const x_names[LS_NX] = {"step", "units", "hours"};

void ls_watched_open(ls_watched *w, const char *run) {
    *w = (ls_watched){.path = ls_strdup(run), .view = NAN};
    char *path = ls_metrics_path(run);
    ls_follower_open(&w->file, path);
    free(path);
    for (int i = 0; i < LS_NX; i++) {
        w->series[i] = LS_NEW(ls_watched_series);
        snprintf(w->series[i]->name, LS_WATCHED_NAME, "%s", x_names[i]);
        w->series[i]->values.rises = true;
    }
    w->nseries = LS_NX;
}

static void drop_marks(ls_watched *w, uint64_t at) {
    while (w->nmarks && w->marks[w->nmarks - 1].at >= at) ls_json_free(w->marks[--w->nmarks].line);
}

void ls_watched_close(ls_watched *w) {
    drop_marks(w, 0);
    for (int i = 0; i < w->nseries; i++) {
        ls_pyramid_free(&w->series[i]->values);
        free(w->series[i]);
    }
    for (int i = 0; i < w->nforms; i++) {
        ls_line_form_free(&w->forms[i]->form);
        free(w->forms[i]);
    }
    free(w->marks);
    free(w->points);
    free(w->places);
    free(w->placed);
    free(w->path);
    ls_follower_close(&w->file);
    *w = (ls_watched){0};
}

/* ---- steps ---- */

static bool is(const ls_step_field *f, const char *name) {
    size_t n = strlen(name);
    return f->n == n && memcmp(f->name, name, n) == 0;
}

/* Numbers that say where a step stands, or which samples it had: no curves. */
static bool is_no_curve(const ls_step_field *f) {
    static const char *const names[] = {"step", "epoch", "first", "samples", "view", "worker"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is(f, names[i])) return true;
    return f->n >= LS_WATCHED_NAME;
}

static int find_series(const ls_watched *w, const ls_step_field *f) {
    for (int i = LS_NX; i < w->nseries; i++)
        if (is(f, w->series[i]->name)) return i;
    return -1;
}

static int add_series(ls_watched *w, const ls_step_field *f) {
    if (w->nseries == LS_WATCHED_SERIES) return -1;
    ls_watched_series *s = LS_NEW(ls_watched_series);
    memcpy(s->name, f->name, f->n);
    s->last = NAN;
    ls_pyramid_pad(&s->values, w->nrows);
    w->series[w->nseries] = s;
    return w->nseries++;
}

static int series_of(ls_watched *w, const ls_step_field *f) {
    int found = is_no_curve(f) ? -1 : find_series(w, f);
    return found < 0 && !is_no_curve(f) ? add_series(w, f) : found;
}

/* Of a name that occurs twice, the first number counts. */
static void find_series_of(ls_watched *w, const ls_step_line *line, ls_step_meaning *m) {
    m->nseries = 0;
    for (int i = 0; i < line->n; i++) {
        int series = series_of(w, &line->fields[i]);
        bool known = series < 0 || memchr(m->series, series, (size_t)m->nseries);
        if (known) continue;
        m->numbers[m->nseries] = (signed char)i;
        m->series[m->nseries++] = (signed char)series;
    }
}

static const char *const role_names[LS_NROLES] = {[LS_ROLE_STEP] = "step",
                                                  [LS_ROLE_SECONDS] = "seconds",
                                                  [LS_ROLE_TOKENS_RATE] = "tokens_per_s",
                                                  [LS_ROLE_SAMPLES] = "samples",
                                                  [LS_ROLE_VIEW] = "view",
                                                  [LS_ROLE_WORKERS] = "workers",
                                                  [LS_ROLE_WAIT] = "data_wait_s"};

static void find_roles(const ls_step_line *line, ls_step_meaning *m) {
    for (int role = 0; role < LS_NROLES; role++) {
        m->roles[role] = -1;
        for (int i = line->n; i-- > 0;)
            if (is(&line->fields[i], role_names[role])) m->roles[role] = (signed char)i;
    }
}

/* The numbers of a step, and what they are. */
typedef struct step_values {
    const ls_step_meaning *meaning;
    const double *values; /* of the line's numbers */
} step_values;

static double role_of(const step_values *v, ls_step_role role) {
    int i = v->meaning->roles[role];
    return i < 0 ? NAN : v->values[i];
}

/* Adds what the step did to the x axes. */
static void advance(double x[LS_NX], const step_values *v, bool *counts_tokens_p) {
    double step = role_of(v, LS_ROLE_STEP), seconds = role_of(v, LS_ROLE_SECONDS);
    double rate = role_of(v, LS_ROLE_TOKENS_RATE), samples = role_of(v, LS_ROLE_SAMPLES);
    *counts_tokens_p = !isnan(rate);
    double units = isnan(rate) ? samples : round(rate * seconds);
    if (step > x[LS_X_STEP]) x[LS_X_STEP] = step; /* an axis never goes back */
    if (units > 0) x[LS_X_UNITS] += units;
    if (seconds > 0) x[LS_X_HOURS] += seconds / 3600;
}

static ls_watched_mark *add_mark(ls_watched *w, const char *kind, uint64_t at) {
    if (w->nmarks == MOST_MARKS) return NULL;
    w->marks = ls_grow(w->marks, w->nmarks, sizeof *w->marks);
    ls_watched_mark *m = &w->marks[w->nmarks++];
    *m = (ls_watched_mark){.at = at};
    memcpy(m->x, w->x, sizeof m->x);
    snprintf(m->kind, sizeof m->kind, "%s", kind);
    return m;
}

static void add_totals(ls_watched_totals *t, const step_values *v) {
    double seconds = role_of(v, LS_ROLE_SECONDS), wait = role_of(v, LS_ROLE_WAIT);
    int i = 0;
    while (i < LS_NDURATIONS && seconds > ls_durations[i]) i++;
    if (seconds >= 0) t->durations[i]++;
    if (seconds > 0) t->seconds += seconds;
    if (wait > 0) t->waited_s += wait;
}

static void add_view(ls_watched *w, const step_values *v, uint64_t at) {
    double view = role_of(v, LS_ROLE_VIEW), workers = role_of(v, LS_ROLE_WORKERS);
    bool changed = !isnan(w->view) && !isnan(view) && view != w->view;
    if (!isnan(view)) w->view = view;
    if (changed) w->totals.views++;
    ls_watched_mark *m = changed ? add_mark(w, "view", at) : NULL;
    if (m && workers >= 0 && workers < 1e9) m->workers = (int)workers;
    if (m && view >= 0 && view < 1e9) m->view = (int)view;
}

static void add_place(ls_watched *w, uint64_t at) {
    size_t n = (size_t)(w->nrows / LS_CHUNK_ROWS);
    w->places = ls_grow(w->places, n, sizeof *w->places);
    w->places[n].at = at;
    ls_follower_mark(&w->file, &w->places[n]);
    w->placed = ls_grow(w->placed, n, sizeof *w->placed);
    w->placed[n] = w->totals;
}

static void add_step(ls_watched *w, const step_values *v, uint64_t at) {
    if (w->nrows % LS_CHUNK_ROWS == 0) add_place(w, at);
    add_totals(&w->totals, v);
    add_view(w, v, at);
    advance(w->x, v, &w->counts_tokens);
    for (int i = 0; i < LS_NX; i++) ls_pyramid_add(&w->series[i]->values, w->x[i]);
    const ls_step_meaning *m = v->meaning;
    for (int i = 0; i < m->nseries; i++) {
        ls_watched_series *s = w->series[m->series[i]];
        double value = v->values[m->numbers[i]];
        ls_pyramid_add(&s->values, value);
        if (!isnan(value)) s->last = value;
    }
    w->nrows++;
    bool all = LS_NX + m->nseries == w->nseries;
    for (int i = LS_NX; !all && i < w->nseries; i++)
        ls_pyramid_pad(&w->series[i]->values, w->nrows);
}

static ls_known_form *to_front(ls_watched *w, int i) {
    ls_known_form *f = w->forms[i];
    for (; i > 0; i--) w->forms[i] = w->forms[i - 1];
    return w->forms[0] = f;
}

/* The form that the line has, with its numbers; NULL: none of those that are known. */
static const ls_known_form *read_form(ls_watched *w, const char *text, size_t n) {
    for (int i = 0; i < w->nforms; i++)
        if (ls_line_form_read(&w->forms[i]->form, text, n)) return to_front(w, i);
    for (int i = 0; i < w->nforms; i++)
        if (ls_line_form_learn(&w->forms[i]->form, text, n)) return to_front(w, i);
    return NULL;
}

/* The form that was not used for longest gives way. */
static void add_form(ls_watched *w, ls_line_form form, const ls_step_meaning *meaning) {
    if (w->nforms == LS_WATCHED_FORMS) {
        ls_line_form_free(&w->forms[--w->nforms]->form);
        free(w->forms[w->nforms]);
    }
    ls_known_form *f = LS_NEW(ls_known_form);
    *f = (ls_known_form){form, *meaning};
    w->forms[w->nforms++] = f;
}

static void use_new_form(ls_watched *w, const char *text, size_t n, const ls_step_line *line,
                         uint64_t at) {
    double values[LS_STEP_FIELDS];
    ls_step_meaning m;
    ls_line_form form;
    find_roles(line, &m);
    find_series_of(w, line, &m);
    for (int i = 0; i < line->n; i++) values[i] = line->fields[i].value;
    if (ls_line_form_of(text, n, line, &form)) add_form(w, form, &m);
    const step_values v = {&m, values};
    add_step(w, &v, at);
}

/* ---- other lines ---- */

static int name_of(ls_watched *w, const ls_step_field *f) {
    for (int i = 0; i < w->nnames; i++)
        if (is(f, w->names[i])) return i;
    if (w->nnames == LS_WATCHED_SERIES || f->n >= LS_WATCHED_NAME) return -1;
    memcpy(w->names[w->nnames], f->name, f->n);
    return w->nnames++;
}

static void add_evaluation(ls_watched *w, const ls_step_line *line, uint64_t at) {
    for (int i = 0; i < line->n && w->npoints < MOST_POINTS; i++) {
        const ls_step_field *f = &line->fields[i];
        if (f->n < 4 || memcmp(f->name, "val_", 4) != 0 || is(f, "val_samples")) continue;
        int series = name_of(w, f);
        if (series < 0) continue;
        w->points = ls_grow(w->points, w->npoints, sizeof *w->points);
        ls_watched_point *p = &w->points[w->npoints++];
        *p = (ls_watched_point){.at = at, .series = series, .value = f->value};
        memcpy(p->x, w->x, sizeof p->x);
        p->x[LS_X_STEP] = ls_step_line_get(line, "step");
    }
}

static void add_event(ls_watched *w, const char *text, size_t n, uint64_t at) {
    static const char *const kinds[] = {"started", "gap", "changed", "diverged", "ended"};
    ls_json *j = NULL;
    if (ls_json_parse(text, n, "a line", &j, NULL) != LS_OK) return;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!ls_json_get(j, kinds[i])) continue;
        ls_watched_mark *m = add_mark(w, kinds[i], at);
        if (m) m->line = ls_json_share(j);
        if (m) ls_json_number(ls_json_get(j, "step"), &m->x[LS_X_STEP]);
        break;
    }
    ls_json_free(j);
}

static bool has_field(const ls_step_line *line, const char *name) {
    for (int i = 0; i < line->n; i++)
        if (is(&line->fields[i], name)) return true;
    return false;
}

static void use_line(void *arg, const char *text, size_t n, uint64_t at) {
    ls_watched *w = arg;
    ls_step_line line;
    const ls_known_form *known = read_form(w, text, n);
    if (known) {
        const step_values v = {&known->meaning, known->form.values};
        if (!isnan(role_of(&v, LS_ROLE_STEP))) add_step(w, &v, at);
        return;
    }
    if (!ls_step_line_read(text, n, &line) || isnan(ls_step_line_get(&line, "step"))) return;
    if (has_field(&line, "loss")) {
        use_new_form(w, text, n, &line, at);
    } else if (has_field(&line, "val_loss")) {
        add_evaluation(w, &line, at);
    } else if (line.has_others) {
        add_event(w, text, n, at);
    }
}

/* ---- lines that were taken back ---- */

static void go_back(ls_watched *w, int64_t rows) {
    static const ls_follow_place beginning;
    const ls_follow_place place = rows ? w->places[rows / LS_CHUNK_ROWS] : beginning;
    for (int i = 0; i < w->nseries; i++) ls_pyramid_cut(&w->series[i]->values, rows);
    for (int i = 0; i < LS_NX; i++)
        w->x[i] = rows ? ls_pyramid_extent(&w->series[i]->values, rows - LS_STRETCH, rows).last : 0;
    while (w->npoints && w->points[w->npoints - 1].at >= place.at) w->npoints--;
    drop_marks(w, place.at);
    w->totals = rows ? w->placed[rows / LS_CHUNK_ROWS] : (ls_watched_totals){0};
    w->nrows = rows;
    w->view = NAN;
    w->generation++;
    ls_follower_move(&w->file, &place);
}

/* To the last place whose bytes are as they were. */
static void find_back(ls_watched *w) {
    int64_t rows = (w->nrows + LS_CHUNK_ROWS - 1) / LS_CHUNK_ROWS * LS_CHUNK_ROWS;
    while (rows > 0) {
        rows -= LS_CHUNK_ROWS;
        if (rows && ls_follower_holds(&w->file, &w->places[rows / LS_CHUNK_ROWS])) break;
    }
    go_back(w, rows);
}

bool ls_watched_read(ls_watched *w, double now_s, uint64_t most) {
    ls_followed how = ls_follower_read(&w->file, now_s, most, use_line, w);
    if (how == LS_FOLLOWED_BACK) find_back(w);
    return how != LS_FOLLOWED_NOTHING;
}

void ls_watched_shrink(ls_watched *w) {
    for (int i = 0; i < w->nseries; i++) ls_pyramid_shrink(&w->series[i]->values);
}

/* ---- looking ---- */

const ls_watched_series *ls_watched_find(const ls_watched *w, const char *name) {
    for (int i = 0; i < w->nseries; i++)
        if (strcmp(w->series[i]->name, name) == 0) return w->series[i];
    return NULL;
}

double ls_watched_last(const ls_watched *w, const char *name) {
    const ls_watched_series *s = ls_watched_find(w, name);
    return s ? s->last : NAN;
}

typedef struct rows_wanted {
    const ls_watched *w;
    const int *series;
    int nseries;
    int64_t row, from, to; /* the next line is this row */
    double x[LS_NX];
    double *values;
} rows_wanted;

static void use_row(void *arg, const char *text, size_t n, uint64_t at) {
    rows_wanted *r = arg;
    ls_step_line line;
    bool tokens = false;
    (void)at;
    if (r->row >= r->to || !ls_step_line_read(text, n, &line)) return;
    if (!has_field(&line, "loss") || isnan(ls_step_line_get(&line, "step"))) return;
    ls_step_meaning m;
    double values[LS_STEP_FIELDS];
    find_roles(&line, &m);
    for (int i = 0; i < line.n; i++) values[i] = line.fields[i].value;
    advance(r->x, &(step_values){&m, values}, &tokens);
    int64_t row = r->row++;
    if (row < r->from) return;
    for (int i = 0; i < r->nseries; i++) {
        int k = r->series[i];
        r->values[i * (r->to - r->from) + row - r->from] =
            k < LS_NX ? r->x[k] : ls_step_line_get(&line, r->w->series[k]->name);
    }
}

int64_t ls_watched_rows(const ls_watched *w, const int *series, int nseries, int64_t from,
                        int64_t to, double *values) {
    if (to > w->nrows) to = w->nrows;
    if (from >= to) return 0;
    int64_t chunk = from / LS_CHUNK_ROWS;
    rows_wanted r = {.w = w,
                     .series = series,
                     .nseries = nseries,
                     .row = chunk * LS_CHUNK_ROWS,
                     .from = from,
                     .to = to,
                     .values = values};
    for (int i = 0; i < LS_NX && r.row; i++)
        r.x[i] = ls_pyramid_extent(&w->series[i]->values, r.row - LS_STRETCH, r.row).last;
    ls_follower f;
    ls_follower_open(&f, w->file.path);
    ls_follower_move(&f, &w->places[chunk]);
    enum { ROUGHLY = 512 }; /* bytes of a line: what more there is, is passed over */
    uint64_t most = (uint64_t)(to - r.row) * ROUGHLY;
    while (r.row < to && ls_follower_read(&f, 0, most, use_row, &r) == LS_FOLLOWED_LINES) continue;
    ls_follower_close(&f);
    return r.row > from ? r.row - from : 0;
}
