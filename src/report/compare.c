/* compare.c - see compare.h: reads and compares. compare_print.c writes. */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/differences.h"
#include "dataset/corpus_record.h"
#include "dataset/data_record.h"
#include "report/ledger.h"

/* ---- a run's lines ---- */

typedef struct reading {
    ls_compare_run *run;
    const char *metric;
} reading;

static double number_of(const ls_json *line, const char *key) {
    double v = NAN;
    return ls_json_number(ls_json_get(line, key), &v) ? v : NAN;
}

static void add_step(ls_compare_run *r, int64_t step, const ls_json *line) {
    int64_t workers = 0;
    double seconds = number_of(line, "seconds");
    r->steps = ls_grow(r->steps, r->nsteps, sizeof *r->steps);
    r->steps[r->nsteps++] = (ls_compare_step){
        .step = step, .loss = number_of(line, "loss"), .grad_norm = number_of(line, "grad_norm")};
    if (isfinite(seconds)) r->seconds += seconds;
    if (!ls_json_integer(ls_json_get(line, "workers"), &workers)) return;
    if (!r->workers[0] || workers < r->workers[0]) r->workers[0] = workers;
    if (workers > r->workers[1]) r->workers[1] = workers;
}

/* A start has the order of the steps that follow. */
static void add_start(ls_compare_run *r, int64_t step, const ls_json *line) {
    const ls_json *sum = ls_json_get(line, "sum");
    size_t n = ls_json_count(r->sums);
    if (r->config.train.compute != LS_COMPUTE_BF16) return;
    ls_json *now = sum ? ls_json_share(sum) : ls_json_new_null();
    if (n > 0 && ls_json_equal(ls_json_get(ls_json_at(r->sums, n - 1), "sum"), now)) {
        ls_json_free(now);
        return;
    }
    ls_json *one = ls_json_new_object();
    ls_json_set_integer(one, "step", step + 1);
    ls_json_set(one, "sum", now);
    ls_json_push(r->sums, one);
}

static void add_line(void *arg, int64_t step, const ls_json *line) {
    const reading *x = arg;
    ls_compare_run *r = x->run;
    double val = number_of(line, "val_loss"), value = number_of(line, x->metric);
    ls_ledger_add_changed(r->changed, step, line);
    if (ls_json_get(line, "started")) add_start(r, step, line);
    if (ls_json_get(line, "lr")) add_step(r, step, line);
    if (isfinite(val) && (!r->val_step || val < r->val_loss)) {
        r->val_loss = val;
        r->val_step = step;
    }
    if (isfinite(val)) r->last_val_loss = val, r->last_val_step = step;
    if (isnan(value)) return;
    r->curve.steps = ls_grow(r->curve.steps, r->curve.n, sizeof *r->curve.steps);
    r->curve.values = ls_grow(r->curve.values, r->curve.n, sizeof *r->curve.values);
    r->curve.steps[r->curve.n] = (double)step;
    r->curve.values[r->curve.n++] = value;
}

static ls_status read_run(const char *path, const char *metric, ls_compare_run *r, ls_error *e) {
    reading x = {r, metric};
    char *config = ls_format("%s/config.yaml", path);
    ls_status s = LS_OK;
    r->path = path;
    r->changed = ls_json_new_array();
    r->sums = ls_json_new_array();
    if (!ls_file_exists(config))
        s = ls_fail(e, LS_EINVAL, "%s: is not a run directory (it has no config.yaml)", path);
    if (s == LS_OK) s = ls_config_read(config, &r->config, e);
    free(config);
    LS_TRY(s);
    return ls_history_scan(path, add_line, &x, e);
}

/* ---- names ---- */

/* The last n parts of a path [length]. */
static const char *end_of(const char *path, size_t length, int n) {
    size_t at = length;
    while (at > 0 && (path[at - 1] != '/' || --n > 0)) at--;
    return path + at;
}

static size_t length_of(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    return n;
}

static bool set_names(ls_comparison *c, int parts) {
    bool distinct = true;
    for (int i = 0; i < c->n; i++) {
        ls_compare_run *r = &c->runs[i];
        size_t n = length_of(r->path);
        const char *end = end_of(r->path, n, parts);
        free(r->name);
        r->name = ls_format("%.*s", (int)(r->path + n - end), end);
        for (int k = 0; k < i; k++) distinct = distinct && strcmp(r->name, c->runs[k].name) != 0;
    }
    return distinct;
}

/* Runs that are named twice keep their whole paths. */
static void name_runs(ls_comparison *c) {
    enum { MOST_PARTS = 16 };
    int parts = 1;
    while (!set_names(c, parts) && parts < MOST_PARTS) parts++;
}

/* ---- two runs ---- */

/* Do both have the same tokens, or samples? Runs without records of their data are taken to. */
static bool have_same_data(const char *a, const char *b) {
    ls_corpus_record corpus[2];
    ls_data_record data[2];
    bool has_corpus[2] = {false}, has_data[2] = {false};
    const char *const runs[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (ls_corpus_record_read(runs[i], &corpus[i], &has_corpus[i], NULL) != LS_OK) return false;
        if (ls_data_record_read(runs[i], &data[i], &has_data[i], NULL) != LS_OK) return false;
    }
    if (has_corpus[0] != has_corpus[1] || has_data[0] != has_data[1]) return false;
    if (has_corpus[0] && !ls_hash_same(corpus[0].tokens, corpus[1].tokens)) return false;
    return !has_data[0] || ls_hash_same(data[0].training.hash, data[1].training.hash);
}

static bool differ(double a, double b) { return !(a == b || (isnan(a) && isnan(b))); }

/* Compares the lines of steps that both have. */
static void compare_lines(const ls_compare_run *first, ls_compare_run *r) {
    for (size_t i = 0, k = 0; i < first->nsteps && k < r->nsteps;) {
        const ls_compare_step *a = &first->steps[i], *b = &r->steps[k];
        if (a->step < b->step) i++;
        if (b->step < a->step) k++;
        if (a->step != b->step) continue;
        i++, k++;
        r->nlines++;
        if (!differ(a->loss, b->loss) && !differ(a->grad_norm, b->grad_norm)) continue;
        r->parted = a->step;
        r->losses[0] = a->loss, r->losses[1] = b->loss;
        r->norms[0] = a->grad_norm, r->norms[1] = b->grad_norm;
        return;
    }
}

/* Runs of which it is not known are taken to. */
static bool have_same_sums(const ls_compare_run *a, const ls_compare_run *b) {
    if (!ls_json_count(a->sums) || !ls_json_count(b->sums)) return true;
    return ls_json_equal(a->sums, b->sums);
}

static bool keeps_bits(const ls_config *a, const ls_config *b) {
    const ls_config *both[] = {a, b};
    ls_json *list = ls_config_differences(both, 2);
    bool keeps = true;
    for (size_t i = 0; i < ls_json_count(list); i++)
        if (ls_json_is_true(ls_json_get(ls_json_at(list, i), "bits"))) keeps = false;
    ls_json_free(list);
    return keeps;
}

static ls_status compare_two(const ls_compare_run *first, ls_compare_run *r, ls_error *e) {
    r->same_config = keeps_bits(&first->config, &r->config);
    r->same_changes = ls_json_equal(first->changed, r->changed);
    r->same_sums = have_same_sums(first, r);
    r->same_data = have_same_data(first->path, r->path);
    compare_lines(first, r);
    return ls_checkpoints_compare(first->path, r->path, &r->checkpoints, e);
}

bool ls_compare_parted(const ls_compare_run *r) { return r->parted || r->checkpoints.differ; }

/* The bits of asynchronous runs are those of their logs. */
bool ls_compare_must_match(const ls_compare_run *r) {
    return r->same_config && r->same_changes && r->same_sums && r->same_data &&
           r->config.sync.mode != LS_SYNC_ASYNC;
}

/* ---- all ---- */

static ls_status check_metric(const ls_comparison *c, ls_error *e) {
    for (int i = 0; i < c->n; i++)
        if (c->runs[i].curve.n) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "metric '%.60s': is in no line of the runs' metrics.jsonl; use e.g. loss, "
                   "val_loss or grad_norm",
                   c->metric);
}

ls_status ls_compare_runs(const char *const *runs, int n, const char *metric, ls_comparison *c_p,
                          ls_error *e) {
    ls_comparison c = {.n = n, .metric = metric};
    const ls_config **configs = LS_NEW_ARRAY(const ls_config *, (size_t)n);
    ls_status s = LS_OK;
    c.runs = LS_NEW_ARRAY(ls_compare_run, (size_t)n);
    for (int i = 0; i < n && s == LS_OK; i++) {
        configs[i] = &c.runs[i].config;
        s = read_run(runs[i], metric, &c.runs[i], e);
    }
    if (s == LS_OK) s = check_metric(&c, e);
    if (s == LS_OK) name_runs(&c);
    for (int i = 1; i < n && s == LS_OK; i++) s = compare_two(&c.runs[0], &c.runs[i], e);
    if (s == LS_OK) c.differences = ls_config_differences(configs, n);
    free(configs);
    if (s != LS_OK)
        ls_compare_free(&c);
    else
        *c_p = c;
    return s;
}

void ls_compare_free(ls_comparison *c) {
    for (int i = 0; i < c->n; i++) {
        free(c->runs[i].name);
        free(c->runs[i].steps);
        free(c->runs[i].curve.steps);
        free(c->runs[i].curve.values);
        ls_json_free(c->runs[i].changed);
        ls_json_free(c->runs[i].sums);
    }
    free(c->runs);
    ls_json_free(c->differences);
    *c = (ls_comparison){0};
}
