/* meter.c - see meter.h. */
#include "serve/meter.h"

#include <stdio.h>

#include "base/clock.h"

/* Ends of the buckets, in seconds. */
static const double ends[LS_METER_BUCKETS] = {0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                              0.5,   1,     2,    5,    10,   60,  600};

static void add(ls_histogram *h, double x) {
    int i = 0;
    while (i < LS_METER_BUCKETS && x > ends[i]) i++;
    h->counts[i]++;
    h->n++;
    h->sum += x;
}

void ls_meter_reply(ls_meter *m, const ls_reply *r) {
    int64_t written = r->n - r->nprompt;
    m->ended[r->end == LS_END_LENGTH ? 0 : r->end == LS_END_ASKED ? 2 : 1]++;
    add(&m->whole, (double)(ls_clock_ns() - r->begun_ns) / 1e9);
    if (r->first_ns) add(&m->first, (double)(r->first_ns - r->begun_ns) / 1e9);
    if (written > 1)
        add(&m->each, (double)(r->last_ns - r->first_ns) / 1e9 / (double)(written - 1));
}

void ls_meter_refused(ls_meter *m, int status) {
    if (status >= 100 && status < 600) m->refused[status / 100]++;
}

/* ---- writing ---- */

typedef struct writer {
    ls_buf *out;
    const char *model;
} writer;

static void put_name(const writer *w, const char *name) {
    ls_buf_printf(w->out, "%s{model=\"", name);
    for (const char *c = w->model; *c; c++) {
        if (*c == '"' || *c == '\\') ls_buf_printf(w->out, "\\");
        ls_buf_printf(w->out, *c == '\n' ? "\\n" : "%c", *c);
    }
    ls_buf_printf(w->out, "\"");
}

static void put_help(const writer *w, const char *name, const char *type, const char *help) {
    ls_buf_printf(w->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put(const writer *w, const char *name, const char *type, const char *help, int64_t x) {
    put_help(w, name, type, help);
    put_name(w, name);
    ls_buf_printf(w->out, "} %lld\n", (long long)x);
}

static void put_histogram(const writer *w, const char *name, const char *help,
                          const ls_histogram *h) {
    char part[96];
    int64_t n = 0;
    put_help(w, name, "histogram", help);
    snprintf(part, sizeof part, "%s_bucket", name);
    for (int i = 0; i < LS_METER_BUCKETS; i++) {
        n += h->counts[i];
        put_name(w, part);
        ls_buf_printf(w->out, ",le=\"%g\"} %lld\n", ends[i], (long long)n);
    }
    put_name(w, part);
    ls_buf_printf(w->out, ",le=\"+Inf\"} %lld\n", (long long)h->n);
    snprintf(part, sizeof part, "%s_sum", name);
    put_name(w, part);
    ls_buf_printf(w->out, "} %.17g\n", h->sum);
    snprintf(part, sizeof part, "%s_count", name);
    put_name(w, part);
    ls_buf_printf(w->out, "} %lld\n", (long long)h->n);
}

static void put_ended(const writer *w, const ls_meter *m) {
    static const char name[] = "lockstep_serve_replies_total", *const why[] = {"length", "stop",
                                                                               "abort"};
    put_help(w, name, "counter", "Replies that have ended, by why.");
    for (int i = 0; i < 3; i++) {
        put_name(w, name);
        ls_buf_printf(w->out, ",finish_reason=\"%s\"} %lld\n", why[i], (long long)m->ended[i]);
    }
}

void ls_meter_write(const ls_meter *m, const ls_reply_workers_counts *all, const char *model,
                    ls_buf *out) {
    writer w = {out, model};
    const ls_engine_counts *c = &all->engine;
    put(&w, "lockstep_serve_workers", "gauge", "Workers that write replies.", all->alive);
    put(&w, "lockstep_serve_lost_workers_total", "counter", "Workers that have died.", all->lost);
    put(&w, "lockstep_serve_replies_running", "gauge", "Replies that are being written.",
        c->running);
    put(&w, "lockstep_serve_replies_waiting", "gauge", "Replies that wait.", c->waiting);
    put(&w, "lockstep_serve_cache_pages", "gauge", "Pages of keys and values.", c->pages);
    put(&w, "lockstep_serve_cache_pages_used", "gauge", "Pages that replies use.", c->pages_used);
    put(&w, "lockstep_serve_prompt_tokens_total", "counter", "Tokens of prompts computed.",
        c->prompt_tokens);
    put(&w, "lockstep_serve_cached_tokens_total", "counter", "Tokens of prompts found in pages.",
        c->found_tokens);
    put(&w, "lockstep_serve_generated_tokens_total", "counter", "Tokens written.",
        c->written_tokens);
    put(&w, "lockstep_serve_guessed_tokens_total", "counter", "Tokens guessed by look-up.",
        c->guessed_tokens);
    put(&w, "lockstep_serve_right_tokens_total", "counter", "Guessed tokens that were right.",
        c->right_tokens);
    put(&w, "lockstep_serve_steps_total", "counter", "Calls of the model.", c->steps);
    put(&w, "lockstep_serve_preemptions_total", "counter", "Replies whose pages were taken away.",
        c->preempted);
    put_ended(&w, m);
    put(&w, "lockstep_serve_refused_total", "counter", "Requests that were refused.",
        m->refused[4] + m->refused[5]);
    put_histogram(&w, "lockstep_serve_time_to_first_token_seconds",
                  "From a request to its first token.", &m->first);
    put_histogram(&w, "lockstep_serve_time_per_token_seconds", "Of a token after the first.",
                  &m->each);
    put_histogram(&w, "lockstep_serve_reply_seconds", "From a request to its end.", &m->whole);
}
