/* watcher.c - see watcher.h. */
#include "watch/watcher.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "config/differences.h"
#include "report/run_list.h"

/* Seconds: LIST between searches for new runs; STATUS between looks at the state of a run that goes
 * on, and QUIET of one that does not. QUICK: a run with a line since then goes on. REST between
 * looks for lines of others. */
static const double LIST = 5, STATUS = 1, QUIET = 10, QUICK = 60, REST = 0.5;
enum { MOST_A_LOOK = 8 << 20 };

/* ---- changes ---- */

/* before: what a page had of the lines; NULL: the run was not read yet. */
static void note(ls_watcher *w, int run, const ls_watched *before) {
    static const ls_watched none;
    uint64_t r = ++w->revision;
    bool read = before;
    if (!read) before = &none;
    w->changes[r % LS_WATCHER_CHANGES] = (ls_watcher_change){.run = run,
                                                             .read = read,
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
    w->runs = ls_grow(w->runs, (size_t)w->nruns, sizeof *w->runs);
    w->runs[w->nruns++] = ls_watcher_run_open(path);
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

/* ---- states ---- */

static void read_status(ls_watcher *w, int i, double now_s) {
    ls_watcher_run *r = w->runs[i];
    if (!ls_watcher_run_know(r, now_s)) return;
    note(w, i, r->stage == LS_RUN_READ ? &r->lines : NULL);
    r->status_revision = w->revision;
}

static void find_new(ls_watcher *w, const ls_run_list *l) {
    int from = w->nruns, n = add_new(w, l);
    if (!n) return;
    name_runs(w);
    for (int i = from; i < w->nruns; i++) {
        note(w, i, NULL);
        w->runs[i]->status_revision = w->revision;
    }
    w->list_revision = w->revision;
    w->nunread += n;
    w->nunknown += n;
    ls_first_reading_add(w->first, w->runs + from, n);
}

/* Takes what has been read in the background. */
static void take_read(ls_watcher *w, double now_s) {
    if (!w->nunread) return;
    int unknown = w->nunknown;
    ls_run_stage *before = LS_NEW_ARRAY(ls_run_stage, (size_t)w->nruns);
    for (int i = 0; i < w->nruns; i++) before[i] = w->runs[i]->stage;
    bool any = ls_first_reading_take(w->first, &w->nunread, &w->nunknown);
    for (int i = 0; any && i < w->nruns; i++) {
        ls_watcher_run *r = w->runs[i];
        if (r->stage == before[i]) continue;
        note(w, i, NULL);
        r->status_revision = w->revision;
        if (r->stage == LS_RUN_READ) read_status(w, i, now_s); /* with what the lines say */
    }
    free(before);
    /* The list has what configs differ in. */
    if (unknown && !w->nunknown) w->list_revision = ++w->revision;
}

/* ---- */

ls_status ls_watcher_open(const char *const *dirs, int ndirs, bool may_come, ls_watcher **w_p,
                          ls_error *e) {
    double now_s = ls_clock_wall_s();
    ls_watcher *w = LS_NEW(ls_watcher);
    w->dirs = dirs;
    w->ndirs = ndirs;
    w->boot = (uint64_t)(now_s * 1000) ^ ((uint64_t)getpid() << 44 >> 12);
    w->first = ls_first_reading_open();
    ls_run_list l = {0};
    ls_status s = list_runs(w, may_come, &l, e);
    if (s == LS_OK && l.n > LS_WATCHER_RUNS)
        s = ls_fail(e, LS_EINVAL, "there are %zu runs, of at most %d: name fewer of them", l.n,
                    LS_WATCHER_RUNS);
    if (s == LS_OK) find_new(w, &l);
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
    ls_first_reading_close(w->first);
    for (int i = 0; i < w->nruns; i++) ls_watcher_run_close(w->runs[i]);
    free(w->runs);
    free(w);
}

void ls_watcher_settle(ls_watcher *w) {
    ls_first_reading_wait(w->first);
    take_read(w, ls_clock_wall_s());
}

/* May it get new lines? */
static bool may_go_on(const ls_watcher_run *r) {
    return r->status.state == LS_RUN_RUNNING || r->status.state == LS_RUN_UNKNOWN;
}

/* Of a run that has ended, a look each REST is enough. */
static bool rests(const ls_watcher_run *r, double now_s) {
    double since = now_s - r->looked_s;
    return since >= 0 && since < REST && !may_go_on(r) && now_s - r->lines_s >= QUICK;
}

/* Reads new lines of a run; not too many at a look, so that others have their turn. */
static bool look_at(ls_watcher *w, int i, double now_s) {
    ls_watcher_run *r = w->runs[i];
    if (r->stage != LS_RUN_READ || rests(r, now_s)) return false;
    const ls_watched before = r->lines;
    r->looked_s = now_s;
    if (!ls_watched_read(&r->lines, now_s, MOST_A_LOOK)) return false;
    r->lines_s = now_s;
    note(w, i, &before);
    return true;
}

static bool is_due(const ls_watcher_run *r, double now_s, bool had_lines) {
    bool has_gone_on = now_s - r->lines_s < QUICK || r->stage == LS_RUN_KNOWN;
    double every = had_lines || (may_go_on(r) && has_gone_on) ? STATUS : QUIET;
    return r->stage != LS_RUN_FOUND && (now_s - r->read_s >= every || now_s < r->read_s);
}

bool ls_watcher_look(ls_watcher *w, double now_s) {
    uint64_t before = w->revision;
    if (now_s - w->listed_s >= LIST || now_s < w->listed_s) {
        ls_run_list l = {0};
        list_runs(w, true, &l, NULL);
        find_new(w, &l);
        ls_run_list_free(&l);
        w->listed_s = now_s;
    }
    take_read(w, now_s);
    for (int i = 0; i < w->nruns; i++) {
        bool had_lines = look_at(w, i, now_s);
        if (is_due(w->runs[i], now_s, had_lines)) read_status(w, i, now_s);
    }
    return w->revision != before;
}

/* ---- JSON ---- */

/* The keys in which the configs differ, of runs whose config can be read. */
static ls_json *differences_of(const ls_watcher *w) {
    const ls_config **list = LS_NEW_ARRAY(const ls_config *, (size_t)w->nruns + 1);
    ls_json *all = ls_json_new_object(), *runs = ls_json_new_array();
    int n = 0;
    for (int i = 0; i < w->nruns; i++) {
        const ls_watcher_run *r = w->runs[i];
        if (r->stage == LS_RUN_FOUND || !r->config) continue;
        list[n++] = r->config;
        ls_json_push(runs, ls_json_new_integer(i));
    }
    ls_json_set(all, "runs", runs);
    ls_json_set(all, "keys", n > 1 ? ls_config_differences(list, n) : ls_json_new_array());
    free(list);
    return all;
}

void ls_watcher_write(const ls_watcher *w, ls_buf *out) {
    ls_buf_printf(out, "{\"boot\":\"%llx\",\"revision\":%llu,\"runs\":[",
                  (unsigned long long)w->boot, (unsigned long long)w->revision);
    for (int i = 0; i < w->nruns; i++) {
        if (i) ls_buf_printf(out, ",");
        ls_watcher_run_write(w->runs[i], i, out);
    }
    ls_buf_printf(out, "],\"differences\":");
    ls_json *differences = differences_of(w);
    ls_json_write(differences, 0, out);
    ls_json_free(differences);
    ls_buf_printf(out, "}");
}
