/* watcher.c - see watcher.h. */
#include "watch/watcher.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "config/choices.h"
#include "config/differences.h"
#include "report/run_list.h"

/* Seconds: LIST between searches for new runs; STATUS between looks at the state of a run that goes on, and
 * QUIET of one that does not. QUICK: a run with a line since then goes on. */
static const double LIST = 5, STATUS = 1, QUIET = 10, QUICK = 60;
enum { ALL = 1 << 30, MOST_A_LOOK = 8 << 20, MOST_THREADS = 16 };

/* ---- changes ---- */

static void note(ls_watcher *w, int run, const ls_watched *before) {
    uint64_t r = ++w->revision;
    w->changes[r % LS_WATCHER_CHANGES] = (ls_watcher_change){.revision = r,
                                                             .run = run,
                                                             .rows = before->nrows,
                                                             .at = before->file.place.at,
                                                             .generation = before->generation};
}

/* ---- the list ---- */

static size_t common_length(const ls_watcher *w) {
    const char *first = w->runs[0]->lines.path;
    size_t n = strlen(first);
    for (int i = 1; i < w->nruns; i++) {
        const char *path = w->runs[i]->lines.path;
        size_t k = 0;
        while (k < n && path[k] == first[k]) k++;
        n = k;
    }
    while (n && first[n - 1] != '/') n--;
    return n;
}

static void name_runs(ls_watcher *w) {
    size_t n = w->nruns ? common_length(w) : 0;
    for (int i = 0; i < w->nruns; i++) {
        ls_watcher_run *r = w->runs[i];
        free(r->name);
        r->name = ls_strdup(r->lines.path[n] ? r->lines.path + n : r->lines.path);
    }
}

static bool has_run(const ls_watcher *w, const char *path) {
    for (int i = 0; i < w->nruns; i++)
        if (strcmp(w->runs[i]->lines.path, path) == 0) return true;
    return false;
}

static void add_run(ls_watcher *w, const char *path) {
    ls_watcher_run *r = LS_NEW(ls_watcher_run);
    ls_watched_open(&r->lines, path);
    w->runs = ls_grow(w->runs, (size_t)w->nruns, sizeof *w->runs);
    w->runs[w->nruns++] = r;
}

/* Adds runs that are new; returns their number. */
static int add_new(ls_watcher *w, const ls_run_list *l) {
    int before = w->nruns;
    for (size_t i = 0; i < l->n && w->nruns < LS_WATCHER_RUNS; i++)
        if (!has_run(w, l->runs[i])) add_run(w, l->runs[i]);
    return w->nruns - before;
}

static ls_status list_runs(const ls_watcher *w, bool may_come, ls_run_list *l, ls_error *e) {
    for (int i = 0; i < w->ndirs; i++) {
        if (may_come && !ls_file_exists(w->dirs[i])) continue;
        ls_status s = ls_run_list_add(w->dirs[i], l, e);
        if (s != LS_OK && !may_come) return s;
    }
    return LS_OK;
}

/* ---- the first reading ---- */

typedef struct first_reading {
    ls_watcher *w;
    int from, next; /* runs from `from` on; the next that nobody reads, atomically */
    double now_s;
} first_reading;

static void *read_runs(void *arg) {
    first_reading *f = arg;
    for (;;) {
        int i = __atomic_fetch_add(&f->next, 1, __ATOMIC_RELAXED);
        if (i >= f->w->nruns) return NULL;
        while (ls_watched_read(&f->w->runs[i]->lines, f->now_s, ALL)) continue;
    }
}

static void read_first(ls_watcher *w, int from, double now_s) {
    first_reading f = {w, from, from, now_s};
    pthread_t threads[MOST_THREADS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int n = 0, want = w->nruns - from;
    if (want > cores) want = (int)cores;
    for (; n < want - 1 && n < MOST_THREADS; n++)
        if (pthread_create(&threads[n], NULL, read_runs, &f) != 0) break;
    read_runs(&f);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

/* ---- states ---- */

static bool differ(double a, double b) { return !(a == b || (isnan(a) && isnan(b))); }

static bool has_changed(const ls_run_status *a, const ls_run_status *b) {
    bool notes = (a->note == NULL) != (b->note == NULL) || (a->note && strcmp(a->note, b->note));
    return a->state != b->state || a->pid != b->pid || a->step != b->step || a->steps != b->steps ||
           a->checkpoint != b->checkpoint || a->workers != b->workers || a->nbytes != b->nbytes ||
           differ(a->left_s, b->left_s) || notes;
}

/* The status, with what the lines further from the end say. */
static void read_end(const ls_watched *w, ls_run_status *s_p) {
    const ls_json *start = NULL;
    for (size_t i = w->nmarks; i-- > 0 && !start;)
        if (strcmp(w->marks[i].kind, "started") == 0) start = w->marks[i].line;
    ls_run_status_read_end(w->path, start, s_p);
    for (size_t i = w->npoints; i-- > 0 && !s_p->val_step;)
        if (strcmp(w->names[w->points[i].series], "val_loss") == 0) {
            s_p->val_step = (int64_t)w->points[i].x[LS_X_STEP];
            s_p->val_loss = w->points[i].value;
        }
}

static void read_status(ls_watcher *w, int i, double now_s) {
    ls_watcher_run *r = w->runs[i];
    ls_run_status s;
    read_end(&r->lines, &s);
    bool changed = r->read_s <= 0 || has_changed(&s, &r->status);
    if (r->read_s > 0) ls_run_status_free(&r->status);
    r->status = s;
    r->read_s = now_s;
    if (!changed) return;
    note(w, i, &r->lines);
    r->status_revision = w->revision;
}

static const char *const kinds[] = {ls_model_kind_words(LS_CHOICE_WORD)};

/* What metrics say of the run. */
static void read_config(ls_watcher_run *r) {
    enum { MOST = 1 << 20 };
    char *path = ls_format("%s/config.yaml", r->lines.path);
    ls_buf text = {0};
    ls_config *c = LS_NEW(ls_config);
    if (ls_file_read(path, MOST, &text, NULL) == LS_OK)
        ls_hash_text(ls_hash_bytes(text.data, text.len), r->config);
    r->model = ls_config_read(path, c, NULL) == LS_OK ? kinds[c->model.kind] : "";
    ls_buf_free(&text);
    free(c);
    free(path);
}

static void add_and_read(ls_watcher *w, const ls_run_list *l, double now_s) {
    int from = w->nruns;
    if (!add_new(w, l)) return;
    read_first(w, from, now_s);
    name_runs(w);
    for (int i = from; i < w->nruns; i++) {
        read_config(w->runs[i]);
        read_status(w, i, now_s);
    }
    w->list_revision = w->revision;
}

/* ---- */

ls_status ls_watcher_open(const char *const *dirs, int ndirs, bool may_come, ls_watcher **w_p,
                          ls_error *e) {
    double now_s = ls_clock_wall_s();
    ls_watcher *w = LS_NEW(ls_watcher);
    w->dirs = dirs;
    w->ndirs = ndirs;
    w->boot = (uint64_t)(now_s * 1000) ^ ((uint64_t)getpid() << 44 >> 12);
    ls_run_list l = {0};
    ls_status s = list_runs(w, may_come, &l, e);
    if (s == LS_OK && l.n > LS_WATCHER_RUNS)
        s = ls_fail(e, LS_EINVAL, "there are %zu runs, of at most %d: name fewer of them", l.n,
                    LS_WATCHER_RUNS);
    if (s == LS_OK) add_and_read(w, &l, now_s);
    ls_run_list_free(&l);
    w->listed_s = now_s;
    if (s == LS_OK)
        *w_p = w;
    else
        ls_watcher_close(w);
    return s;
}

void ls_watcher_close(ls_watcher *w) {
    if (!w) return;
    for (int i = 0; i < w->nruns; i++) {
        ls_watched_close(&w->runs[i]->lines);
        if (w->runs[i]->read_s > 0) ls_run_status_free(&w->runs[i]->status);
        free(w->runs[i]->name);
        free(w->runs[i]);
    }
    free(w->runs);
    free(w);
}

/* Reads new lines of a run; not too many at a look, so that others have their turn. */
static bool look_at(ls_watcher *w, int i, double now_s) {
    ls_watcher_run *r = w->runs[i];
    const ls_watched before = r->lines;
    if (!ls_watched_read(&r->lines, now_s, MOST_A_LOOK)) return false;
    r->lines_s = now_s;
    note(w, i, &before);
    return true;
}

static bool is_due(const ls_watcher_run *r, double now_s, bool had_lines) {
    bool goes_on = r->status.state == LS_RUN_RUNNING || r->status.state == LS_RUN_UNKNOWN;
    double every = had_lines || (goes_on && now_s - r->lines_s < QUICK) ? STATUS : QUIET;
    return now_s - r->read_s >= every || now_s < r->read_s;
}

bool ls_watcher_look(ls_watcher *w, double now_s) {
    uint64_t before = w->revision;
    if (now_s - w->listed_s >= LIST || now_s < w->listed_s) {
        ls_run_list l = {0};
        list_runs(w, true, &l, NULL);
        add_and_read(w, &l, now_s);
        ls_run_list_free(&l);
        w->listed_s = now_s;
    }
    for (int i = 0; i < w->nruns; i++) {
        const ls_watcher_run *r = w->runs[i];
        bool had_lines = look_at(w, i, now_s);
        if (is_due(r, now_s, had_lines)) read_status(w, i, now_s);
    }
    return w->revision != before;
}

bool ls_watcher_run_is_silent(const ls_watcher_run *r, double now_s) {
    double step = ls_watched_last(&r->lines, "seconds");
    double age = r->status.age_s + (now_s - r->read_s);
    return r->status.state == LS_RUN_RUNNING && age > 60 + 5 * (isnan(step) ? 0 : step);
}

/* ---- JSON ---- */

static ls_json *name_json(const char *name) { return ls_json_new_bytes(name, strlen(name)); }

static ls_json *series_of(const ls_watched *w) {
    ls_json *list = ls_json_new_array();
    for (int i = LS_NX; i < w->nseries; i++) ls_json_push(list, name_json(w->series[i]->name));
    return list;
}

static ls_json *evaluations_of(const ls_watched *w) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < w->nnames; i++) ls_json_push(list, name_json(w->names[i]));
    return list;
}

void ls_watcher_write_run(const ls_watcher *w, int i, ls_buf *out) {
    const ls_watcher_run *r = w->runs[i];
    ls_json *o = ls_run_status_json(&r->status);
    ls_json_set_integer(o, "id", i);
    ls_json_set(o, "name", ls_json_new_path(r->name));
    ls_json_set_integer(o, "rows", r->lines.nrows);
    ls_json_set_integer(o, "generation", (int64_t)r->lines.generation);
    ls_json_set_number(o, "units", r->lines.x[LS_X_UNITS]);
    ls_json_set_number(o, "hours", r->lines.x[LS_X_HOURS]);
    ls_json_set_number(o, "step_s", ls_watched_last(&r->lines, "seconds"));
    ls_json_set(o, "series", series_of(&r->lines));
    ls_json_set(o, "evaluations", evaluations_of(&r->lines));
    /* The page counts on from here, by its own clock. */
    ls_json_set_number(o, "age_s", r->status.age_s + (ls_clock_wall_s() - r->read_s));
    ls_json_write(o, 0, out);
    ls_json_free(o);
}

/* The keys in which the configs differ, of runs whose config can be read. */
static ls_json *differences_of(const ls_watcher *w) {
    ls_config *configs = LS_NEW_ARRAY(ls_config, (size_t)w->nruns + 1);
    const ls_config **list = LS_NEW_ARRAY(const ls_config *, (size_t)w->nruns + 1);
    int *ids = LS_NEW_ARRAY(int, (size_t)w->nruns + 1), n = 0;
    for (int i = 0; i < w->nruns; i++) {
        char *path = ls_format("%s/config.yaml", w->runs[i]->lines.path);
        if (ls_config_read(path, &configs[n], NULL) == LS_OK) {
            list[n] = &configs[n];
            ids[n++] = i;
        }
        free(path);
    }
    ls_json *all = ls_json_new_object(), *runs = ls_json_new_array();
    for (int i = 0; i < n; i++) ls_json_push(runs, ls_json_new_integer(ids[i]));
    ls_json_set(all, "runs", runs);
    ls_json_set(all, "keys", n > 1 ? ls_config_differences(list, n) : ls_json_new_array());
    free(configs);
    free(list);
    free(ids);
    return all;
}

void ls_watcher_write(const ls_watcher *w, ls_buf *out) {
    ls_buf_printf(out, "{\"boot\":\"%llx\",\"revision\":%llu,\"runs\":[",
                  (unsigned long long)w->boot, (unsigned long long)w->revision);
    for (int i = 0; i < w->nruns; i++) {
        if (i) ls_buf_printf(out, ",");
        ls_watcher_write_run(w, i, out);
    }
    ls_buf_printf(out, "],\"differences\":");
    ls_json *differences = differences_of(w);
    ls_json_write(differences, 0, out);
    ls_json_free(differences);
    ls_buf_printf(out, "}");
}
