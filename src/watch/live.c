/* live.c - see live.h. */
#include "watch/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "watch/window.h"

/* MOST_ROWS: more new steps of a run are not sent one by one. */
enum { MOST_ROWS = 256 };
static const double PING_S = 15;

typedef struct sent {
    int64_t rows;
    uint64_t at, generation, status;
    bool lines; /* it knows that the run's lines are read, and asks for them */
} sent;

struct ls_live {
    const ls_watcher *w;
    sent *runs; /* [nruns] */
    int nruns;
    uint64_t revision, list; /* all changes up to these were sent */
    bool greeted, resumed;
    ls_buf text; /* one event, or a few */
    size_t done; /* bytes of it that the client has */
    double sent_s;
};

static sent sent_of(const ls_watcher_run *r, uint64_t status) {
    if (r->stage != LS_RUN_READ) return (sent){.status = status};
    return (sent){r->lines.nrows, r->lines.file.place.at, r->lines.generation, status, true};
}

/* Runs that a page does not know yet: it asks for them, once it has the list. */
static void know(ls_live *l, uint64_t status) {
    int n = l->w->nruns;
    if (n > l->nruns) l->runs = ls_realloc(l->runs, (size_t)n * sizeof *l->runs);
    for (int i = l->nruns; i < n; i++) l->runs[i] = sent_of(l->w->runs[i], status);
    l->nruns = n;
}

/* Goes back to what the page had at revision `from`. */
static void resume(ls_live *l, uint64_t from) {
    const ls_watcher *w = l->w;
    for (uint64_t r = w->revision; r > from; r--) {
        const ls_watcher_change *c = &w->changes[r % LS_WATCHER_CHANGES];
        if (c->run >= l->nruns) continue;
        uint64_t status = l->runs[c->run].status;
        l->runs[c->run] = (sent){c->rows, c->at, c->generation, status, c->read};
    }
    for (int i = 0; i < l->nruns; i++) l->runs[i].status = from;
    l->revision = l->list = from;
    l->resumed = true;
}

ls_live *ls_live_open(const ls_watcher *w, const char *after) {
    unsigned long long boot = 0, from = 0;
    ls_live *l = LS_NEW(ls_live);
    l->w = w;
    l->list = w->list_revision;
    l->sent_s = ls_clock_wall_s();
    know(l, w->revision);
    if (after && sscanf(after, "%llx.%llu", &boot, &from) == 2 && boot == w->boot &&
        from <= w->revision && w->revision - from < LS_WATCHER_CHANGES)
        resume(l, from);
    return l;
}

static void live_close(void *arg) {
    ls_live *l = arg;
    ls_buf_free(&l->text);
    free(l->runs);
    free(l);
}

/* ---- events ---- */

static void put_rows(const ls_live *l, int i, ls_buf *out) {
    const ls_watched *w = &l->w->runs[i]->lines;
    const sent *s = &l->runs[i];
    if (w->nrows - s->rows > MOST_ROWS) {
        ls_buf_printf(out, "event: stale\ndata: {\"run\":%d,\"rows\":%lld}\n\n", i,
                      (long long)w->nrows);
        return;
    }
    ls_buf_printf(out, "event: rows\ndata: {\"run\":%d,\"generation\":%llu,", i,
                  (unsigned long long)w->generation);
    ls_window_write_rows(w, s->rows, w->nrows, s->at, out);
    ls_buf_printf(out, "}\n\n");
}

/* Appends what the page lacks of a run; false: nothing. */
static bool put_run(ls_live *l, int i, ls_buf *out) {
    const ls_watcher_run *r = l->w->runs[i];
    sent *s = &l->runs[i];
    bool status = r->status_revision > s->status, back = false, lines = false;
    if (s->lines && r->stage == LS_RUN_READ) {
        back = r->lines.generation != s->generation;
        lines = r->lines.file.place.at != s->at || r->lines.nrows != s->rows;
    }
    if (status) {
        ls_buf_printf(out, "event: status\ndata: ");
        ls_watcher_run_write(r, i, out);
        ls_buf_printf(out, "\n\n");
    }
    if (back)
        ls_buf_printf(out, "event: back\ndata: {\"run\":%d,\"generation\":%llu}\n\n", i,
                      (unsigned long long)r->lines.generation);
    else if (lines)
        put_rows(l, i, out);
    *s = sent_of(r, r->status_revision > s->status ? r->status_revision : s->status);
    return status || back || lines;
}

static void put_greeting(ls_live *l, ls_buf *out) {
    ls_buf_printf(out, "retry: 1000\nevent: hello\ndata: {\"boot\":\"%llx\",\"resumed\":%s}\n\n",
                  (unsigned long long)l->w->boot, l->resumed ? "true" : "false");
    l->greeted = true;
}

static void compose(ls_live *l) {
    ls_buf *out = &l->text;
    double now_s = ls_clock_wall_s();
    if (!l->greeted) put_greeting(l, out);
    if (l->w->list_revision > l->list) {
        ls_buf_printf(out, "event: list\ndata: {}\n\n");
        l->list = l->w->list_revision;
        know(l, l->w->revision);
    }
    bool any = false;
    for (int i = 0; i < l->nruns && !any; i++) any = put_run(l, i, out);
    if (!any && l->revision != l->w->revision) {
        ls_buf_printf(out, "id: %llx.%llu\n\n", (unsigned long long)l->w->boot,
                      (unsigned long long)l->w->revision);
        l->revision = l->w->revision;
    }
    if (!out->len && now_s - l->sent_s >= PING_S) ls_buf_printf(out, ": all is well\n\n");
    if (out->len) l->sent_s = now_s;
}

static size_t live_next(void *arg, char *bytes, size_t most) {
    ls_live *l = arg;
    if (l->done == l->text.len) {
        l->done = l->text.len = 0;
        compose(l);
    }
    size_t n = l->text.len - l->done < most ? l->text.len - l->done : most;
    if (n) memcpy(bytes, l->text.data + l->done, n);
    l->done += n;
    return n;
}

const ls_http_source ls_live_source = {.next = live_next, .close = live_close};
