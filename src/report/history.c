/* history.c - see history.h. */
#include "report/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_records.h"
#include "report/noise_line.h"

/* Evaluations further from the end are not found: one that is repeated may get a second line. */
enum { MOST_SEARCHED = 16 << 20, MOST_PARSED = 32 << 20 };

char *ls_metrics_path(const char *run) { return ls_format("%s/metrics.jsonl", run); }

/* NULL: the line is torn, damaged or foreign, or of a step before `least`. */
static ls_json *parse(const ls_line *line, int64_t least, int64_t *step_p) {
    ls_json *j = ls_json_of_line(line);
    if (ls_json_integer(ls_json_get(j, "step"), step_p) && *step_p >= least) return j;
    ls_json_free(j);
    return NULL;
}

/* ---- cutting ---- */

typedef struct cut {
    int64_t steps;
    uint64_t end; /* the file is cut here */
    bool found;   /* a line that is retained */
    ls_logged logged;
} cut;

static void examine(cut *c, const ls_line *line) {
    int64_t step = 0;
    ls_json *j = parse(line, 1, &step);
    bool stays = j && step <= c->steps;
    if (!c->found && !stays) c->end = line->at;
    c->found = c->found || stays;
    bool is_step = ls_json_get(j, "loss") || ls_json_get(j, "gap");
    if (stays && !c->logged.step && is_step) {
        c->logged.step = step;
        ls_noise_read(ls_json_get(j, "noise"), &c->logged.noise);
    }
    if (stays && !c->logged.evaluation && ls_json_get(j, "val_loss")) c->logged.evaluation = step;
    ls_json_free(j);
}

/* Reads backwards until the last step and the last evaluation are known. */
static ls_status find_end(const char *path, cut *c, uint64_t *size_p, ls_error *e) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = true;
    LS_TRY(ls_lines_open(path, true, &l, e));
    ls_status s = LS_OK;
    *size_p = c->end = ls_lines_size(l);
    while ((s = ls_lines_next(l, &line, &there, e)) == LS_OK && there) {
        bool found = c->found;
        examine(c, &line);
        if (!found && c->found && line.at > MOST_SEARCHED)
            ls_lines_stop_at(l, line.at - MOST_SEARCHED);
        if (c->logged.step && c->logged.evaluation) break;
    }
    ls_lines_close(l);
    return s;
}

ls_status ls_metrics_cut(const char *run, int64_t steps, ls_logged *logged_p, ls_error *e) {
    char *path = ls_metrics_path(run);
    cut c = {.steps = steps};
    uint64_t size = 0;
    ls_status s = ls_file_exists(path) ? find_end(path, &c, &size, e) : LS_OK;
    if (s == LS_OK && c.end < size) s = ls_file_cut(path, c.end, e);
    if (s == LS_OK) *logged_p = c.logged;
    free(path);
    return s;
}

bool ls_history_lacks_evaluation(const char *run, int64_t steps) {
    char *path = ls_metrics_path(run);
    cut c = {.steps = INT64_MAX};
    uint64_t size = 0;
    ls_status s = ls_file_exists(path) ? find_end(path, &c, &size, NULL) : LS_EIO;
    free(path);
    return s == LS_OK && c.logged.step == steps && c.logged.evaluation < steps;
}

/* ---- series ---- */

static void add_point(ls_series *s, int64_t step, double value) {
    s->steps = ls_grow(s->steps, s->n, sizeof *s->steps);
    s->values = ls_grow(s->values, s->n, sizeof *s->values);
    s->steps[s->n] = (double)step;
    s->values[s->n++] = value;
}

/* A picture needs all evaluations, but no more steps than about MOST_PARSED bytes hold. */
static bool is_needed(const ls_line *line, int64_t every) {
    static const char evaluation[] = "\"val_loss\"";
    return line->number % every == 0 ||
           memmem(line->text, line->nbytes, evaluation, sizeof evaluation - 1);
}

static void add_line(ls_run_history *h, const ls_line *line) {
    int64_t step = 0;
    double value = 0;
    ls_json *j = parse(line, 1, &step);
    if (ls_json_number(ls_json_get(j, "loss"), &value)) add_point(&h->train, step, value);
    if (ls_json_get(j, "tokens_per_s")) h->has_tokens = !ls_json_get(j, "rewards/margins");
    if (ls_json_number(ls_json_get(j, "val_loss"), &value)) add_point(&h->val, step, value);
    ls_json_free(j);
}

ls_status ls_history_read(const char *run, ls_run_history *h_p, ls_error *e) {
    char *path = ls_metrics_path(run);
    ls_lines *l = NULL;
    ls_line line;
    bool there = false;
    *h_p = (ls_run_history){0};
    ls_status s = ls_lines_open(path, false, &l, e);
    free(path);
    LS_TRY(s);
    int64_t every = 1 + (int64_t)(ls_lines_size(l) / MOST_PARSED);
    while ((s = ls_lines_next(l, &line, &there, e)) == LS_OK && there)
        if (is_needed(&line, every)) add_line(h_p, &line);
    ls_lines_close(l);
    return s;
}

void ls_history_free(ls_run_history *h) {
    free(h->train.steps);
    free(h->train.values);
    free(h->val.steps);
    free(h->val.values);
    *h = (ls_run_history){0};
}

ls_status ls_history_scan(const char *run, ls_history_use *use, void *arg, ls_error *e) {
    char *path = ls_metrics_path(run);
    ls_lines *l = NULL;
    ls_line line;
    bool there = false;
    ls_status s = ls_lines_open(path, false, &l, e);
    free(path);
    LS_TRY(s);
    while ((s = ls_lines_next(l, &line, &there, e)) == LS_OK && there) {
        int64_t step = 0;
        ls_json *j = parse(&line, 0, &step);
        if (j) use(arg, step, j);
        ls_json_free(j);
    }
    ls_lines_close(l);
    return s;
}
