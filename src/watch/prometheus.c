/* prometheus.c - see prometheus.h. */
#include "watch/prometheus.h"

#include <math.h>
#include <string.h>

/* ---- labels ---- */

static void put_label(ls_buf *out, const char *text) {
    for (const char *s = text; *s; s++) {
        if (*s == '\n')
            ls_buf_printf(out, "\\n");
        else if (*s == '\\' || *s == '"')
            ls_buf_printf(out, "\\%c", *s);
        else
            ls_buf_append(out, s, 1);
    }
}

/* Appends NAME{run="..." and what may follow. */
static void put_name(ls_buf *out, const char *name, const ls_watcher_run *r) {
    ls_json *text = ls_json_new_path(r->name); /* bytes that are not UTF-8 are escaped there */
    ls_buf_printf(out, "%s{run=\"", name);
    put_label(out, ls_json_text(text));
    ls_buf_printf(out, "\"");
    ls_json_free(text);
}

static void put_value(ls_buf *out, double value) {
    if (isinf(value))
        ls_buf_printf(out, "} %sInf\n", value < 0 ? "-" : "+");
    else
        ls_buf_printf(out, "} %.17g\n", value);
}

/* ---- one figure a run ---- */

static double step_of(const ls_watcher_run *r) { return r->lines.x[LS_X_STEP]; }
static double steps_of(const ls_watcher_run *r) {
    return r->status.steps < 0 ? NAN : (double)r->status.steps;
}
static double loss_of(const ls_watcher_run *r) { return ls_watched_last(&r->lines, "loss"); }
static double val_loss_of(const ls_watcher_run *r) { return r->status.val_loss; }
static double rate_of(const ls_watcher_run *r) { return ls_watched_last(&r->lines, "lr"); }
static double norm_of(const ls_watcher_run *r) { return ls_watched_last(&r->lines, "grad_norm"); }
static double tokens_of(const ls_watcher_run *r) {
    return r->lines.counts_tokens ? r->lines.x[LS_X_UNITS] : NAN;
}
static double samples_of(const ls_watcher_run *r) {
    return r->lines.counts_tokens ? NAN : r->lines.x[LS_X_UNITS];
}
static double waited_of(const ls_watcher_run *r) { return r->lines.totals.waited_s; }
static double workers_of(const ls_watcher_run *r) {
    return r->status.workers < 0 ? NAN : (double)r->status.workers;
}
static double memory_of(const ls_watcher_run *r) {
    return r->status.nbytes < 0 ? NAN : (double)r->status.nbytes;
}
static double mfu_of(const ls_watcher_run *r) { return r->status.mfu; }
static double views_of(const ls_watcher_run *r) { return (double)r->lines.totals.views; }
static double checkpoint_of(const ls_watcher_run *r) {
    return r->status.checkpoint < 0 ? NAN : (double)r->status.checkpoint;
}
static double left_of(const ls_watcher_run *r) { return r->status.left_s; }
static double written_of(const ls_watcher_run *r) {
    return r->lines.nrows ? r->read_s - r->status.age_s : NAN;
}

static const struct {
    const char *name, *type, *help;
    double (*value)(const ls_watcher_run *);
} figures[] = {
    {"lockstep_step", "gauge", "Steps that are complete.", step_of},
    {"lockstep_steps", "gauge", "Steps that the config asks for.", steps_of},
    {"lockstep_loss", "gauge", "Loss of the last step.", loss_of},
    {"lockstep_val_loss", "gauge", "Loss of the last evaluation.", val_loss_of},
    {"lockstep_learning_rate", "gauge", "Learning rate of the last step.", rate_of},
    {"lockstep_grad_norm", "gauge", "Norm of the gradient of the last step, before clipping.",
     norm_of},
    {"lockstep_tokens_total", "counter", "Tokens that were trained on.", tokens_of},
    {"lockstep_samples_total", "counter", "Samples that were trained on, where they are no tokens.",
     samples_of},
    {"lockstep_data_wait_seconds_total", "counter", "Time that worker 0 waited for samples.",
     waited_of},
    {"lockstep_workers", "gauge", "Workers of the last step.", workers_of},
    {"lockstep_resident_memory_bytes", "gauge",
     "Resident memory of the run's processes on this host, while they run.", memory_of},
    {"lockstep_flops_utilization_ratio", "gauge",
     "Share of the processor's peak in the last 20 steps.", mfu_of},
    {"lockstep_view_changes_total", "counter", "Changes of the set of workers.", views_of},
    {"lockstep_checkpoint_step", "gauge", "Step of the newest checkpoint.", checkpoint_of},
    {"lockstep_left_seconds", "gauge", "Time until the last step, while the run goes on.", left_of},
    {"lockstep_last_line_timestamp_seconds", "gauge",
     "When the run wrote its last line, since 1970.", written_of},
};

static void put_head(ls_buf *out, const char *name, const char *type, const char *help) {
    ls_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* ---- several a run ---- */

static void put_info(const ls_watcher *w, ls_buf *out) {
    put_head(out, "lockstep_run_info", "gauge", "A run: its model, and the hash of its config.");
    for (int i = 0; i < w->nruns; i++) {
        const ls_watcher_run *r = w->runs[i];
        if (r->stage == LS_RUN_FOUND) continue;
        put_name(out, "lockstep_run_info", r);
        ls_buf_printf(out, ",model=\"");
        put_label(out, ls_watcher_run_model(r));
        ls_buf_printf(out, "\",config_hash=\"%s\"} 1\n", r->hash);
    }
}

static void put_states(const ls_watcher *w, ls_buf *out) {
    put_head(out, "lockstep_run_state", "gauge", "1 for the state that the run is in, else 0.");
    for (int i = 0; i < w->nruns; i++)
        for (ls_run_state s = LS_RUN_RUNNING;
             w->runs[i]->stage != LS_RUN_FOUND && s <= LS_RUN_UNKNOWN; s++) {
            put_name(out, "lockstep_run_state", w->runs[i]);
            ls_buf_printf(out, ",state=\"%s\"} %d\n", ls_run_state_name(s),
                          w->runs[i]->status.state == s);
        }
}

static void put_durations(const ls_watcher *w, ls_buf *out) {
    static const char name[] = "lockstep_step_duration_seconds";
    put_head(out, name, "histogram", "Time of a step.");
    for (int i = 0; i < w->nruns; i++) {
        if (w->runs[i]->stage != LS_RUN_READ) continue;
        const ls_watched_totals *t = &w->runs[i]->lines.totals;
        uint64_t n = 0;
        for (int k = 0; k <= LS_NDURATIONS; k++) {
            n += t->durations[k];
            put_name(out, "lockstep_step_duration_seconds_bucket", w->runs[i]);
            if (k < LS_NDURATIONS)
                ls_buf_printf(out, ",le=\"%g\"} %llu\n", ls_durations[k], (unsigned long long)n);
            else
                ls_buf_printf(out, ",le=\"+Inf\"} %llu\n", (unsigned long long)n);
        }
        put_name(out, "lockstep_step_duration_seconds_sum", w->runs[i]);
        put_value(out, t->seconds);
        put_name(out, "lockstep_step_duration_seconds_count", w->runs[i]);
        ls_buf_printf(out, "} %llu\n", (unsigned long long)n);
    }
}

void ls_prometheus_write(const ls_watcher *w, ls_buf *out) {
    put_info(w, out);
    put_states(w, out);
    put_durations(w, out);
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
        bool begun = false;
        for (int i = 0; i < w->nruns; i++) {
            const ls_watcher_run *r = w->runs[i];
            double value = r->stage == LS_RUN_READ ? figures[k].value(r) : NAN;
            if (isnan(value)) continue;
            if (!begun) put_head(out, figures[k].name, figures[k].type, figures[k].help);
            begun = true;
            put_name(out, figures[k].name, w->runs[i]);
            put_value(out, value);
        }
    }
}
