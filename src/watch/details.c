/* details.c - see details.h. */
#include "watch/details.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_records.h"
#include "report/answers.h"
#include "report/compare.h"
#include "report/history.h"
#include "report/ledger.h"
#include "report/timeline.h"
#include "storage/checkpoints.h"
#include "watch/difference.h"

/* Files that take longer than a person waits are refused. */
enum { MOST_SAMPLES = 400, MOST_NBYTES = 256 << 20, MOST_TRACE = 64 << 20, MOST_EVENTS = 20000 };
enum { MOST_CHECKPOINTS = 200, MOST_LOST = 500, MOST_FILE = 1 << 20 };

static void put(ls_json *o, ls_buf *out) {
    ls_json_write(o, 0, out);
    ls_json_free(o);
}

static void put_error(const char *why, ls_buf *out) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "error", why);
    put(o, out);
}

static void put_text(const ls_buf *text, ls_buf *out) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "text", ls_json_new_bytes(text->data ? text->data : "", text->len));
    put(o, out);
}

static bool is_too_large(const char *run, ls_buf *out) {
    struct stat st;
    char *path = ls_metrics_path(run);
    bool large = stat(path, &st) == 0 && st.st_size > MOST_NBYTES;
    free(path);
    if (large) put_error("the run is too long to be read here: use the command", out);
    return large;
}

/* ---- samples ---- */

/* The last lines, in the order of the file. */
static bool read_samples(ls_lines *l, ls_json **lines, int *n_p) {
    ls_line line;
    bool there = true;
    *n_p = 0;
    while (ls_lines_next(l, &line, &there, NULL) == LS_OK && there) {
        if (*n_p == MOST_SAMPLES) return true;
        ls_json *j = ls_json_of_line(&line);
        if (j) lines[(*n_p)++] = j;
    }
    return false;
}

void ls_details_samples(const ls_details_query *q, ls_buf *out) {
    char *path = ls_format("%s/%s", q->runs[0], LS_ANSWERS_FILE);
    ls_lines *l = NULL;
    ls_json *lines[MOST_SAMPLES], *o = ls_json_new_object(), *list = ls_json_new_array();
    int n = 0;
    bool cut = false;
    if (ls_lines_open(path, true, &l, NULL) == LS_OK) cut = read_samples(l, lines, &n);
    if (l) ls_lines_close(l);
    while (n > 0) ls_json_push(list, lines[--n]);
    ls_json_set(o, "samples", list);
    ls_json_set_bool(o, "cut", cut);
    free(path);
    put(o, out);
}

/* ---- the ledger ---- */

void ls_details_ledger(const ls_details_query *q, ls_buf *out) {
    const char *run = q->runs[0];
    ls_ledger l;
    ls_error e = {0};
    ls_buf text = {0};
    if (is_too_large(run, out)) return;
    if (ls_ledger_check(run, &l, &e) != LS_OK) {
        put_error(e.msg, out);
        return;
    }
    ls_buf_printf(&text, "%lld steps of %lld to %lld workers, %lld changes of workers\n",
                  (long long)l.steps, (long long)l.least_workers, (long long)l.most_workers,
                  (long long)l.changes);
    ls_buf_printf(
        &text, "%lld complete epochs of %lld samples, each used once; %lld samples of the next\n",
        (long long)l.epochs, (long long)l.nsamples, (long long)l.rest);
    if (l.missing)
        ls_buf_printf(&text, "%lld steps have no lines; the first gap is %lld to %lld\n",
                      (long long)l.missing, (long long)l.gap_from, (long long)l.gap_to);
    for (size_t i = 0; i < ls_json_count(l.changed); i++) {
        ls_ledger_put_changed(ls_json_at(l.changed, i), &text);
        ls_buf_printf(&text, "\n");
    }
    ls_ledger_free(&l);
    put_text(&text, out);
    ls_buf_free(&text);
}

/* ---- several runs ---- */

void ls_details_compare(const ls_details_query *q, ls_buf *out) {
    const char *runs[LS_DETAILS_RUNS];
    int n = q->nruns;
    ls_comparison c;
    ls_error e = {0};
    ls_buf text = {0};
    for (int i = 0; i < n; i++) {
        runs[i] = q->runs[i];
        if (is_too_large(runs[i], out)) return;
    }
    if (ls_compare_runs(runs, n, "loss", &c, &e) != LS_OK) {
        put_error(e.msg, out);
        return;
    }
    ls_compare_print(&c, &text);
    ls_compare_free(&c);
    put_text(&text, out);
    ls_buf_free(&text);
}

/* ---- traced steps ---- */

static void put_event(const ls_timeline *t, const ls_timeline_event *v,
                      const ls_timeline_starts *starts, ls_json *list) {
    char name[128];
    ls_json *one = ls_json_new_array();
    ls_timeline_event_name(t, v, name, sizeof name);
    ls_json_push(one, ls_json_new_integer(v->span.worker));
    ls_json_push(one, ls_json_new_integer(v->span.lane));
    const int64_t times[] = {v->span.begin_ns, ls_timeline_waits_ns(starts, v), v->span.end_ns};
    for (int i = 0; i < 3; i++) ls_json_push(one, ls_json_new_number((double)times[i] / 1e3));
    ls_json_push(one, ls_json_new_bytes(name, strlen(name)));
    ls_json_push(list, one);
}

static void put_step(const ls_timeline *t, int step, ls_buf *out) {
    ls_timeline_starts starts;
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    size_t n = 0;
    const ls_timeline_event **events = ls_timeline_sorted(t, step, &n);
    ls_timeline_starts_open(t, step, &starts);
    for (size_t i = 0; i < n && i < MOST_EVENTS; i++) put_event(t, events[i], &starts, list);
    ls_timeline_starts_close(&starts);
    free(events);
    ls_json_set_text(o, "label", t->label);
    ls_json_set_integer(o, "workers", t->nworkers);
    ls_json_set_integer(o, "first_step", t->first_step);
    ls_json_set_integer(o, "steps", t->nsteps);
    ls_json_set_integer(o, "step", step);
    ls_json_set_number(o, "step_s", (double)ls_timeline_step_ns(t, step) / 1e9);
    ls_json_set(o, "events", list);
    put(o, out);
}

void ls_details_timeline(const ls_details_query *q, ls_buf *out) {
    ls_timeline t;
    ls_error e = {0};
    struct stat st;
    char *path = ls_format("%s/%s", q->runs[0], LS_DETAILS_TRACE);
    if (stat(path, &st) != 0)
        put_error("no traced steps: train --trace RUN/trace.json writes them", out);
    else if (st.st_size > MOST_TRACE)
        put_error("trace.json is too large to be read here: trace fewer steps", out);
    else if (ls_timeline_read(path, &t, &e) != LS_OK)
        put_error(e.msg, out);
    else {
        put_step(&t, q->step >= 0 && q->step < t.nsteps ? q->step : 0, out);
        ls_timeline_free(&t);
    }
    free(path);
}

/* ---- workers ---- */

void ls_details_workers(const ls_details_query *q, ls_buf *out) {
    char *path = ls_format("%s/workers.json", q->runs[0]);
    ls_buf text = {0};
    ls_json *o = NULL;
    double time_s = 0;
    bool read = ls_file_read(path, MOST_FILE, &text, NULL) == LS_OK;
    bool ok = read && ls_json_parse(text.data, text.len, path, &o, NULL) == LS_OK &&
              ls_json_is_object(o) && ls_json_number(ls_json_get(o, "time_s"), &time_s);
    if (ok) ls_json_set_number(o, "age_s", fmax(ls_clock_wall_s() - time_s, 0));
    if (ok)
        ls_json_write(o, 0, out);
    else
        put_error(read ? "workers.json is being written"
                       : "this run does not say what its workers do: it is not running, or its "
                         "workers are threads, or a launcher has started them",
                  out);
    ls_json_free(o);
    ls_buf_free(&text);
    free(path);
}

/* ---- checkpoints ---- */

/* The bytes of the manifest's files. */
static int64_t bytes_of(const ls_json *manifest) {
    const ls_json *files = ls_json_get(manifest, "files");
    int64_t all = 0;
    for (size_t i = 0; i < ls_json_count(files); i++) {
        int64_t n = 0;
        if (ls_json_integer(ls_json_get(ls_json_at(files, i), "bytes"), &n)) all += n;
    }
    return all;
}

static ls_json *checkpoint_json(const char *run, int64_t step) {
    char *path = ls_format("%s/checkpoints/step-%lld/manifest.json", run, (long long)step);
    ls_buf text = {0};
    ls_json *m = NULL, *o = NULL;
    struct stat st;
    double loss = NAN;
    if (stat(path, &st) == 0 && ls_file_read(path, MOST_FILE, &text, NULL) == LS_OK &&
        ls_json_parse(text.data, text.len, path, &m, NULL) == LS_OK) {
        ls_json_number(ls_json_get(m, "val_loss"), &loss);
        o = ls_json_new_object();
        ls_json_set_integer(o, "step", step);
        ls_json_set_integer(o, "bytes", bytes_of(m));
        ls_json_set_number(o, "val_loss", loss);
        ls_json_set_integer(o, "written_s", (int64_t)st.st_mtim.tv_sec);
    }
    ls_json_free(m);
    ls_buf_free(&text);
    free(path);
    return o;
}

static int64_t best_of(const char *run) {
    char *path = ls_format("%s/checkpoints/best", run), target[NAME_MAX + 1];
    ssize_t n = readlink(path, target, sizeof target - 1);
    free(path);
    target[n > 0 ? n : 0] = 0;
    return ls_checkpoints_step_of(target);
}

static int by_step(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

void ls_details_checkpoints(const ls_details_query *q, ls_buf *out) {
    const char *run = q->runs[0];
    char *path = ls_format("%s/checkpoints", run);
    int64_t *steps = NULL, best = best_of(run);
    size_t n = 0;
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int64_t step = ls_checkpoints_step_of(entry->d_name);
        if (step < 0) continue;
        steps = ls_grow(steps, n, sizeof *steps);
        steps[n++] = step;
    }
    if (d) closedir(d);
    if (n) qsort(steps, n, sizeof *steps, by_step);
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (size_t i = 0; i < n && i < MOST_CHECKPOINTS; i++) {
        ls_json *one = checkpoint_json(run, steps[i]);
        if (one) ls_json_set_bool(one, "best", steps[i] == best);
        if (one) ls_json_push(list, one);
    }
    ls_json_set(o, "checkpoints", list);
    put(o, out);
    free(steps);
    free(path);
}

/* ---- why views ended ---- */

/* A line of the log is a time, "lockstep: view N: " and the reason; or "continuing", of the next
 * view. */
static ls_json *lost_json(const ls_line *line) {
    static const char before[] = " lockstep: view ";
    char text[512];
    int view = 0, at = 0;
    snprintf(text, sizeof text, "%.*s", (int)(line->nbytes < 500 ? line->nbytes : 500), line->text);
    const char *found = strchr(text, ' ');
    if (!found || strncmp(found, before, sizeof before - 1) != 0) return NULL;
    found += sizeof before - 1;
    if (sscanf(found, "%d: %n", &view, &at) != 1 || !at || !strncmp(found + at, "continuing", 10))
        return NULL;
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "view", view);
    ls_json_set(o, "text", ls_json_new_bytes(found + at, strlen(found + at)));
    return o;
}

void ls_details_lost(const ls_details_query *q, ls_buf *out) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    const char *const names[] = {"log.txt", "log.txt.1"};
    for (int i = 0; i < 2; i++) {
        char *path = ls_format("%s/%s", q->runs[0], names[i]);
        ls_lines *l = NULL;
        ls_line line;
        bool there = true;
        if (ls_lines_open(path, true, &l, NULL) == LS_OK) {
            while (ls_json_count(list) < MOST_LOST &&
                   ls_lines_next(l, &line, &there, NULL) == LS_OK && there) {
                ls_json *one = line.too_long ? NULL : lost_json(&line);
                if (one) ls_json_push(list, one);
            }
            ls_lines_close(l);
        }
        free(path);
    }
    ls_json_set(o, "lost", list);
    put(o, out);
}

/* ---- the difference of two runs ---- */

void ls_details_difference(const ls_details_query *q, ls_buf *out) {
    ls_error e = {0};
    if (q->nruns < 2) {
        put_error("name two runs", out);
        return;
    }
    const ls_difference_query d = {q->runs[0], q->runs[1], q->name, q->columns};
    if (is_too_large(d.run, out) || is_too_large(d.base, out)) return;
    if (ls_difference_write(&d, out, &e) != LS_OK) put_error(e.msg, out);
}
