/* details.c - see details.h. */
#include "watch/details.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/lines.h"
#include "report/answers.h"
#include "report/compare.h"
#include "report/ledger.h"
#include "report/timeline.h"

/* The server answers nobody else meanwhile, so files that take seconds to read are refused. */
enum { MOST_SAMPLES = 400, MOST_NBYTES = 64 << 20, MOST_EVENTS = 20000 };

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

static bool is_too_large(const char *run, const char *name, ls_buf *out) {
    struct stat st;
    char *path = ls_format("%s/%s", run, name);
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
        ls_json *j = NULL;
        if (*n_p == MOST_SAMPLES) return true;
        if (!line.whole || line.too_long) continue;
        if (ls_json_parse(line.text, line.nbytes, "a line", &j, NULL) == LS_OK) lines[(*n_p)++] = j;
    }
    return false;
}

void ls_details_samples(const char *run, ls_buf *out) {
    char *path = ls_format("%s/%s", run, LS_ANSWERS_FILE);
    ls_lines *l = NULL;
    ls_json *lines[MOST_SAMPLES], *o = ls_json_new_object(), *list = ls_json_new_array();
    int n = 0;
    bool cut = false;
    if (ls_lines_open(path, true, &l, NULL) == LS_OK) cut = read_samples(l, lines, &n);
    if (l) ls_lines_close(l);
    while (n > 0) ls_json_push(list, lines[--n]);
    ls_json_set(o, "samples", list);
    ls_json_set(o, "cut", ls_json_new_bool(cut));
    free(path);
    put(o, out);
}

/* ---- the ledger ---- */

void ls_details_ledger(const char *run, ls_buf *out) {
    ls_ledger l;
    ls_error e = {0};
    ls_buf text = {0};
    if (is_too_large(run, "metrics.jsonl", out)) return;
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

void ls_details_compare(const char *const *runs, int n, ls_buf *out) {
    ls_comparison c;
    ls_error e = {0};
    ls_buf text = {0};
    for (int i = 0; i < n; i++)
        if (is_too_large(runs[i], "metrics.jsonl", out)) return;
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

void ls_details_timeline(const char *run, int step, ls_buf *out) {
    ls_timeline t;
    ls_error e = {0};
    struct stat st;
    char *path = ls_format("%s/%s", run, LS_DETAILS_TRACE);
    if (stat(path, &st) != 0)
        put_error("no traced steps: train --trace RUN/trace.json writes them", out);
    else if (st.st_size > MOST_NBYTES)
        put_error("trace.json is too large to be read here: trace fewer steps", out);
    else if (ls_timeline_read(path, &t, &e) != LS_OK)
        put_error(e.msg, out);
    else {
        put_step(&t, step >= 0 && step < t.nsteps ? step : 0, out);
        ls_timeline_free(&t);
    }
    free(path);
}
