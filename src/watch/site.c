/* site.c - see site.h. */
#include "watch/site.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/details.h"
#include "watch/live.h"
#include "watch/page_text.h"
#include "watch/prometheus.h"
#include "watch/window.h"

static const char JSON[] = "application/json";

static void refuse(ls_http_answer *a, int status, const char *why) {
    a->status = status;
    a->text = why;
    a->ntext = strlen(why);
}

/* ---- values of a query ---- */

/* A number of the query; `missing` if it is not there, or is none. */
static double number_of(const ls_http_request *r, const char *name, double missing) {
    const char *text = ls_http_query(r, name);
    char *end = NULL;
    double x = text ? strtod(text, &end) : missing;
    return text && (end == text || *end) ? missing : x;
}

/* False: it names no run, and that is answered. */
static bool read_run(const ls_watcher *w, const ls_http_request *r, ls_http_answer *a,
                     const ls_watcher_run **run_p) {
    double run = number_of(r, "run", -1);
    bool ok = run >= 0 && run < w->nruns && run == floor(run);
    if (ok)
        *run_p = w->runs[(int)run];
    else
        refuse(a, 404, "There is no such run.\n");
    return ok;
}

static int axis_of(const ls_http_request *r) {
    const char *x = ls_http_query(r, "x");
    if (x && strcmp(x, "units") == 0) return LS_X_UNITS;
    return x && strcmp(x, "hours") == 0 ? LS_X_HOURS : LS_X_STEP;
}

/* ---- answers ---- */

static void answer_runs(ls_watcher *w, const ls_http_request *r, ls_http_answer *a) {
    (void)r;
    ls_watcher_write(w, &a->body);
}

static void answer_series(ls_watcher *w, const ls_http_request *r, ls_http_answer *a) {
    const ls_watcher_run *run = NULL;
    if (!read_run(w, r, a, &run)) return;
    if (run->stage != LS_RUN_READ) {
        /* The stream says when it can be asked for. */
        ls_first_reading_want(w->first, run);
        ls_buf_printf(&a->body, "{\"reading\":true}");
        return;
    }
    double columns = number_of(r, "columns", 1000);
    columns = columns >= 1 ? fmin(columns, LS_WINDOW_COLUMNS) : 1;
    const ls_window q = {.x = axis_of(r),
                         .from = number_of(r, "from", NAN),
                         .to = number_of(r, "to", NAN),
                         .columns = (int)columns,
                         .smooth = number_of(r, "smooth", 0),
                         .names = ls_http_query(r, "names")};
    ls_window_write(&run->lines, &q, &a->body);
}

static void answer_events(ls_watcher *w, const ls_http_request *r, ls_http_answer *a) {
    const char *after = ls_http_header(r, "Last-Event-ID");
    a->type = "text/event-stream";
    a->source = &ls_live_source;
    a->stream = ls_live_open(w, after ? after : ls_http_query(r, "after"));
}

/* ---- details ---- */

static void free_query(void *arg) {
    ls_details_query *q = arg;
    for (int i = 0; i < q->nruns; i++) free(q->runs[i]);
    free(q);
}

/* Numbers of runs, with commas between them. */
static void read_runs(const ls_watcher *w, const char *text, ls_details_query *q) {
    for (char *end = NULL; text && q->nruns < LS_DETAILS_RUNS;
         text = *end == ',' ? end + 1 : NULL) {
        long run = strtol(text, &end, 10);
        if (end == text || run < 0 || run >= w->nruns) return;
        q->runs[q->nruns++] = ls_strdup(w->runs[run]->lines.path);
    }
}

static const struct detail {
    const char *path;
    ls_details_write *write;
    int least; /* runs */
} details[] = {
    {"/samples", ls_details_samples, 1},       {"/ledger", ls_details_ledger, 1},
    {"/compare", ls_details_compare, 2},       {"/timeline", ls_details_timeline, 1},
    {"/workers", ls_details_workers, 1},       {"/checkpoints", ls_details_checkpoints, 1},
    {"/difference", ls_details_difference, 2}, {"/lost", ls_details_lost, 1}};

enum { MOST_DETAILS = 32 }; /* that wait for their answers */

typedef struct detail_job {
    ls_details_query *query;
    ls_details_write *write;
} detail_job;

static void make_detail(void *arg, ls_http_answer *a) {
    const detail_job *d = arg;
    a->type = JSON;
    d->write(d->query, &a->body);
}

static void free_detail(void *arg) {
    detail_job *d = arg;
    free_query(d->query);
    free(d);
}

static const ls_http_work detail_work = {make_detail, free_detail};

static void answer_detail(const ls_watch_site *site, const struct detail *d,
                          const ls_http_request *r, ls_http_answer *a) {
    if (ls_http_jobs_count(site->jobs) >= MOST_DETAILS) {
        refuse(a, 503, "Too many questions wait for their answers.\n");
        return;
    }
    ls_details_query *q = LS_NEW(ls_details_query);
    const char *runs = ls_http_query(r, "run"), *name = ls_http_query(r, "name");
    read_runs(site->watcher, runs, q);
    if (q->nruns < d->least) {
        refuse(a, 404, d->least == 1 ? "There is no such run.\n" : "Name two runs at least.\n");
        free_query(q);
        return;
    }
    q->step = (int)fmin(fmax(number_of(r, "step", 0), 0), 1e6);
    q->columns = (int)fmin(fmax(number_of(r, "columns", 1000), 1), LS_WINDOW_COLUMNS);
    snprintf(q->name, sizeof q->name, "%s", name ? name : "loss");
    detail_job *x = LS_NEW(detail_job);
    *x = (detail_job){q, d->write};
    ls_http_jobs_add(site->jobs, &detail_work, x, a);
}

static void answer_metrics(ls_watcher *w, const ls_http_request *r, ls_http_answer *a) {
    (void)r;
    a->type = LS_PROMETHEUS_TYPE;
    ls_prometheus_write(w, &a->body);
}

static const struct {
    const char *path;
    void (*answer)(ls_watcher *, const ls_http_request *, ls_http_answer *);
} routes[] = {{"/runs", answer_runs},
              {"/series", answer_series},
              {"/events", answer_events},
              {"/metrics", answer_metrics}};

void ls_site_answer(void *arg, const ls_http_request *r, ls_http_answer *a) {
    const ls_watch_site *site = arg;
    const char *path = ls_http_path(r);
    for (int i = 0; i < LS_NPAGE_FILES; i++) {
        const ls_page_file *f = &ls_page_files[i];
        if (path[0] != '/' || strcmp(path + 1, f->name) != 0) continue;
        a->type = f->type;
        a->text = f->text;
        a->ntext = (size_t)(f->end - f->text);
        return;
    }
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(path, routes[i].path) != 0) continue;
        a->type = JSON;
        routes[i].answer(site->watcher, r, a);
        if (a->status) a->type = NULL;
        return;
    }
    for (size_t i = 0; i < sizeof details / sizeof *details; i++) {
        if (strcmp(path, details[i].path) != 0) continue;
        answer_detail(site, &details[i], r, a);
        return;
    }
    refuse(a, 404, "There is nothing at this path.\n");
}
