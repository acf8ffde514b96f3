/* metrics.c - see metrics.h. */
#include "report/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/process.h"
#include "base/transcript.h"
#include "model/types.h"
#include "report/events.h"
#include "report/noise_line.h"
#include "storage/checkpoint.h"
#include "tensor/sum_order.h"

/* MOST_COMMAND: bytes of a command line that are recorded; a line of the file has fewer than
 * LS_LONGEST_LINE. */
enum { MOST_WAITING = 64 << 20, MOST_COMMAND = 8 << 10 };

static const int64_t MEMORY_EVERY_NS = 1000 * 1000 * 1000, REDRAW_NS = 100 * 1000 * 1000;

struct ls_metrics {
    bool quiet;
    const ls_config *config;
    const ls_model *model;
    char *run, *path; /* the directory, and metrics.jsonl in it */
    int64_t view;     /* number */
    int nworkers;
    int file;          /* a descriptor, or -1 */
    ls_buf waiting;    /* lines that the disk does not accept now */
    bool failing;      /* the latest write failed, and that was logged */
    ls_events *events; /* NULL: a write failed; the next checkpoint tries a new file */
    ls_batches batches;
    /* smoothed, of a step of `batch`; the samples that it took: fewer where an epoch ends */
    double step_seconds, step_samples;
    uint64_t batch;
    int64_t skipped;              /* steps, in all */
    double flops, peak;           /* ls_metrics_set_peak() */
    double used, usable, timed_s; /* in the steps so far: operations, those of the peak, seconds */
    ls_logged logged;
    int64_t shown_ns;  /* when the live line was last written */
    int64_t memory_ns; /* when the memory was last looked at; 0: not yet */
};

static void end_events(ls_metrics *m, const ls_error *why) {
    ls_log("%s; events continue in another file, with the next checkpoint", why->msg);
    ls_events_close(m->events, NULL);
    m->events = NULL;
}

ls_status ls_metrics_open(const char *run, const ls_config *config, const ls_model *model,
                          ls_logged logged, ls_metrics **m_p, ls_error *e) {
    ls_metrics *m = LS_NEW(ls_metrics);
    m->config = config;
    m->model = model;
    m->batches = ls_batches_of(config);
    m->logged = logged;
    m->run = ls_strdup(run);
    m->path = ls_metrics_path(run);
    m->file = -1;
    ls_status s = ls_file_open_append(m->path, &m->file, e);
    ls_error why;
    if (s == LS_OK && ls_events_create(run, &m->events, &why) != LS_OK) end_events(m, &why);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_metrics_close(m, NULL);
    return s;
}

void ls_metrics_set_view(ls_metrics *m, int64_t number, int nworkers) {
    m->view = number;
    m->nworkers = nworkers;
}

void ls_metrics_set_peak(ls_metrics *m, double flops, double peak) {
    m->flops = flops;
    m->peak = peak;
}

ls_metrics_use ls_metrics_used(const ls_metrics *m) {
    if (m->timed_s <= 0) return (ls_metrics_use){0};
    return (ls_metrics_use){m->used / m->timed_s, m->usable / m->timed_s};
}

void ls_metrics_set_quiet(ls_metrics *m) { m->quiet = true; }

/* ---- disks that fail ---- */

/* Lines that can't be written now stay in the buffer; a line may be in the file in part. */
static ls_status write_waiting(ls_metrics *m, ls_error *e) {
    ls_buf *b = &m->waiting;
    size_t done = 0;
    ssize_t n = 0;
    while (done < b->len) {
        n = write(m->file, b->data + done, b->len - done);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) done += (size_t)n;
    }
    if (done == b->len) {
        b->len = 0;
        return LS_OK;
    }
    int why = errno;
    memmove(b->data, b->data + done, b->len - done);
    b->len -= done;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", m->path, strerror(why));
}

/* Takes ownership of the line, which is written together with the next one. */
static void add_line(ls_metrics *m, ls_json *line) {
    ls_json_write(line, 0, &m->waiting);
    ls_buf_append(&m->waiting, "\n", 1);
    ls_json_free(line);
}

/* Takes ownership of the line. */
static ls_status write_line(ls_metrics *m, ls_json *line, ls_error *e) {
    ls_error why;
    add_line(m, line);
    bool ok = write_waiting(m, &why) == LS_OK;
    if (!ok && m->waiting.len > MOST_WAITING) return ls_fail(e, LS_EIO, "%s", why.msg);
    if (!ok && !m->failing) ls_log("%s; lines are buffered until it can be written", why.msg);
    if (ok && m->failing) ls_log("%s: is written again", m->path);
    m->failing = !ok;
    return LS_OK;
}

static void put_scalar(ls_metrics *m, int64_t steps, const char *tag, double value) {
    ls_error why;
    if (m->events && ls_events_scalar(m->events, steps, tag, (float)value, &why) != LS_OK)
        end_events(m, &why);
}

ls_status ls_metrics_repair(ls_metrics *m, ls_error *e) {
    ls_transcript_renew();
    if (!ls_file_exists(m->path)) {
        int file = -1;
        LS_TRY(ls_file_open_append(m->path, &file, e));
        close(m->file);
        m->file = file;
        m->logged = (ls_logged){0}; /* a gap is marked with the next line */
        ls_events_close(m->events, NULL);
        m->events = NULL;
    }
    return m->events ? LS_OK : ls_events_create(m->run, &m->events, e);
}

ls_status ls_metrics_close(ls_metrics *m, ls_error *e) {
    if (!m) return LS_OK;
    ls_status s = write_waiting(m, e);
    if (m->file >= 0 && close(m->file) != 0 && s == LS_OK)
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", m->path, strerror(errno));
    if (m->events) {
        ls_status closed = ls_events_close(m->events, s == LS_OK ? e : NULL);
        if (s == LS_OK) s = closed;
    }
    ls_buf_free(&m->waiting);
    free(m->run);
    free(m->path);
    free(m);
    return s;
}

/* ---- lines ---- */

static void time_text(double seconds, char *text, size_t nbytes) {
    long s = (long)(seconds + 0.5);
    if (s < 3600)
        snprintf(text, nbytes, "%ld:%02ld", s / 60, s % 60);
    else
        snprintf(text, nbytes, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

/* Appends "  accuracies 0.7500" for each reward that the loss notes. */
static void write_rewards(const ls_metrics *m, const double *notes, ls_buf *out) {
    static const char group[] = "rewards/";
    size_t n = sizeof group - 1;
    for (int k = 0; k < m->model->nnotes; k++)
        if (strncmp(m->model->notes[k], group, n) == 0)
            ls_buf_printf(out, "  %s %.4f", m->model->notes[k] + n, notes[k]);
}

/* Seconds until the last step, by the time that a sample takes. */
static double seconds_left(const ls_metrics *m, int64_t steps) {
    uint64_t all = ls_batches_sum(&m->batches, (uint64_t)m->config->train.steps);
    uint64_t done = ls_batches_sum(&m->batches, (uint64_t)steps);
    return m->step_seconds * (double)(all - done) / (double)m->batch;
}

/* Appends "  noise 512". */
static void write_noise(const ls_metrics *m, ls_buf *out) {
    ls_noise_scale s = ls_metrics_noise(m);
    if (isfinite(s.simple)) ls_buf_printf(out, "  noise %.4g", s.simple);
}

/* For the log of a run whose program prints what it likes. */
static void add_to_log(char *text) {
    char *line = ls_format("%s\n", text);
    ls_transcript_add(line, strlen(line));
    free(line);
    free(text);
}

static void show_line(ls_metrics *m, int64_t steps, const ls_step_out *out, double rate) {
    const ls_config *c = m->config;
    bool last = steps == c->train.steps, due = steps % c->log.every == 0 || last;
    int64_t now = ls_clock_ns();
    bool redraws = !m->quiet && ls_log_is_terminal() && now - m->shown_ns >= REDRAW_NS;
    if (!due && !redraws) return;
    if (redraws) m->shown_ns = now;
    char left[32], skipped[32] = "", loss[LS_LOSS_TEXT];
    time_text(seconds_left(m, steps), left, sizeof left);
    if (m->skipped) snprintf(skipped, sizeof skipped, "  skipped %lld", (long long)m->skipped);
    ls_buf more = {0};
    write_rewards(m, out->notes, &more);
    write_noise(m, &more);
    char *text = ls_format("step %lld/%lld  loss %s%s%s  %.0f %s/s  left %s", (long long)steps,
                           (long long)c->train.steps, ls_loss_text(out->loss, loss),
                           more.len ? more.data : "", skipped, rate, ls_config_unit(c), left);
    ls_buf_free(&more);
    if (m->quiet) {
        add_to_log(text);
        return;
    }
    ls_log_status("%s", text);
    if (due) ls_log_keep("%s", text);
    free(text);
}

/* Marks a gap if lines of the steps before this one are missing: removed, or cut off. */
static ls_status log_gap(ls_metrics *m, int64_t steps, ls_error *e) {
    int64_t from = m->logged.step + 1, to = steps - 1;
    if (from > to) return LS_OK;
    ls_log("%s: has no lines of steps %lld to %lld; training continues, and the gap is marked",
           m->path, (long long)from, (long long)to);
    ls_json *line = ls_json_new_object(), *gap = ls_json_new_array();
    ls_json_push(gap, ls_json_new_integer(from));
    ls_json_push(gap, ls_json_new_integer(to));
    ls_json_set_integer(line, "step", to);
    ls_json_set(line, "gap", gap);
    return write_line(m, line, e);
}

static void put_push(ls_metrics *m, int64_t steps, const ls_step_push *p, ls_json *line) {
    ls_json *list = ls_json_new_array();
    double sum = 0;
    for (int i = 0; i < p->nshards; i++) {
        ls_json_push(list, ls_json_new_integer(p->staleness[i]));
        sum += (double)p->staleness[i];
    }
    ls_json_set_integer(line, "worker", p->worker);
    ls_json_set(line, "staleness", list);
    put_scalar(m, steps, "train/staleness", sum / p->nshards);
}

ls_noise_scale ls_metrics_noise(const ls_metrics *m) {
    return ls_noise_scale_of(&m->logged.noise, (int)m->config->train.virtual_workers);
}

static void put_noise(ls_metrics *m, int64_t steps, const ls_noise_step *step, ls_json *line) {
    int V = (int)m->config->train.virtual_workers;
    bool whole = step->samples * V == (double)m->batch; /* else it ends an epoch */
    if (whole) ls_noise_add(&m->logged.noise, step);
    ls_noise_round(&m->logged.noise);
    ls_noise_scale s = ls_metrics_noise(m);
    ls_json_set_number(line, "noise_scale", s.simple);
    ls_json_set_number(line, "noise_scale_fit", s.fit);
    ls_json_set_number(line, "noise_misfit", s.misfit);
    ls_json_set(line, "noise", ls_noise_write(&m->logged.noise, V));
    if (isfinite(s.simple)) put_scalar(m, steps, "train/noise_scale", s.simple);
    if (isfinite(s.fit)) put_scalar(m, steps, "train/noise_scale_fit", s.fit);
    if (isfinite(s.misfit)) put_scalar(m, steps, "train/noise_misfit", s.misfit);
}

/* Adds the memory in use, once a second at most, since it takes some reads of /proc for each
 * process. */
static void put_memory(ls_metrics *m, ls_json *line) {
    int64_t now = ls_clock_ns();
    if (m->memory_ns && now - m->memory_ns < MEMORY_EVERY_NS) return;
    m->memory_ns = now;
    int64_t nbytes = ls_process_command_nbytes((int)getpid());
    if (nbytes >= 0) ls_json_set_integer(line, "memory_bytes", nbytes);
}

/* Model FLOPs utilization: the operations that the model needs, by those of the peak. */
static void put_utilization(ls_metrics *m, int64_t steps, uint64_t nsamples, double seconds,
                            ls_json *line) {
    if (m->peak <= 0 || !(seconds > 0)) return;
    double used = m->flops * (double)nsamples, usable = m->peak * seconds;
    m->used += used;
    m->usable += usable;
    m->timed_s += seconds;
    ls_json_set_number(line, "mfu", used / usable);
    put_scalar(m, steps, "train/mfu", used / usable);
}

/* A step that is repeated has the same bits, and already has its line. */
static ls_status log_step(ls_metrics *m, int64_t steps, const ls_step_in *in,
                          const ls_step_out *out, const ls_step_time *t, ls_error *e) {
    double rate = (double)out->batch.count * ls_config_units(m->config) / t->seconds;
    char rate_name[32], rate_scalar[48];
    snprintf(rate_name, sizeof rate_name, "%s_per_s", ls_config_unit(m->config));
    snprintf(rate_scalar, sizeof rate_scalar, "train/%s", rate_name);
    if (steps <= m->logged.step) return LS_OK;
    LS_TRY(log_gap(m, steps, e));
    m->logged.step = steps;
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", steps);
    ls_json_set_integer(line, "epoch", (int64_t)out->batch.epoch);
    ls_json_set_integer(line, "first", (int64_t)out->batch.first);
    ls_json_set_integer(line, "samples", (int64_t)out->batch.count);
    ls_json_set_integer(line, "view", m->view);
    ls_json_set_integer(line, "workers", m->nworkers);
    ls_json_set_number(line, "loss", out->loss);
    ls_json_set_number(line, "lr", in->lr);
    if (out->skipped)
        ls_json_set_integer(line, "skipped", 1);
    else
        ls_json_set_number(line, "grad_norm", out->grad_norm);
    if (in->skips) ls_json_set_number(line, "loss_scale", in->loss_scale);
    for (int k = 0; k < m->model->nnotes; k++)
        ls_json_set_number(line, m->model->notes[k], out->notes[k]);
    ls_json_set_number(line, "seconds", t->seconds);
    ls_json_set_number(line, rate_name, rate);
    if (t->data_wait_s >= 0) ls_json_set_number(line, "data_wait_s", t->data_wait_s);
    put_memory(m, line);
    put_utilization(m, steps, out->batch.count, t->seconds, line);
    if (t->push) put_push(m, steps, t->push, line);
    if (m->config->train.noise_scale) put_noise(m, steps, &out->noise, line);
    LS_TRY(write_line(m, line, e));
    put_scalar(m, steps, "train/loss", out->loss);
    put_scalar(m, steps, "train/lr", in->lr);
    if (!out->skipped) put_scalar(m, steps, "train/grad_norm", out->grad_norm);
    if (in->skips) put_scalar(m, steps, "train/loss_scale", in->loss_scale);
    for (int k = 0; k < m->model->nnotes; k++) {
        char tag[LS_MEASURE_NAME + 8];
        snprintf(tag, sizeof tag, "train/%s", m->model->notes[k]);
        put_scalar(m, steps, tag, out->notes[k]);
    }
    put_scalar(m, steps, rate_scalar, rate);
    if (t->data_wait_s >= 0) put_scalar(m, steps, "train/data_wait_s", t->data_wait_s);
    return LS_OK;
}

ls_status ls_metrics_step(ls_metrics *m, int64_t steps, const ls_step_in *in,
                          const ls_step_out *out, const ls_step_time *t, ls_error *e) {
    uint64_t batch = ls_batches_size(&m->batches, (uint64_t)steps - 1);
    double weight = m->step_seconds > 0 ? 0.1 : 1.0;
    double kept = (1 - weight) * (m->batch ? (double)batch / (double)m->batch : 1);
    m->batch = batch;
    m->step_seconds = kept * m->step_seconds + weight * t->seconds;
    m->step_samples = kept * m->step_samples + weight * (double)out->batch.count;
    double rate = m->step_samples * ls_config_units(m->config) / m->step_seconds;
    LS_TRY(log_step(m, steps, in, out, t, e));
    m->skipped = steps - 1 - in->updates + (out->skipped ? 1 : 0);
    show_line(m, steps, out, rate);
    return LS_OK;
}

ls_status ls_metrics_missing(ls_metrics *m, const ls_store_note *n, ls_error *e) {
    bool scaled = ls_config_compute(m->config) == LS_F16 || ls_config_reduce(m->config) == LS_F16;
    ls_step_in in = {.lr = n->lr, .loss_scale = n->loss_scale, .updates = n->updates};
    in.skips = scaled;
    ls_step_time t = {.seconds = (double)(ls_clock_ns() - n->began_ns) / 1e9, .data_wait_s = -1};
    return ls_metrics_step(m, n->steps, &in, &n->out, &t, e);
}

void ls_metrics_started(ls_metrics *m, int64_t step, const char *command, int pid) {
    const char *sum = ls_sum_order(ls_config_compute(m->config));
    double now = ls_clock_wall_s();
    time_t seconds = (time_t)now;
    char host[128] = "", text[32] = "";
    struct tm utc;
    gethostname(host, sizeof host - 1);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", step);
    ls_json_set_text(line, "started", text);
    ls_json_set_integer(line, "started_s", (int64_t)now);
    ls_json_set_path(line, "host", host);
    ls_json_set_integer(line, "pid", pid);
    ls_json_set_integer(line, "workers", m->nworkers);
    if (m->peak > 0) ls_json_set_number(line, "peak_flops_per_s", m->peak);
    if (sum) ls_json_set_text(line, "sum", sum);
    if (command) {
        char *most = ls_format("%.*s", MOST_COMMAND, command);
        ls_json_set_path(line, "command", most);
        free(most);
    }
    add_line(m, line);
}

ls_status ls_step_diverged(const char *run, int64_t step, const ls_step_out *out, const char *other,
                           ls_error *e) {
    int64_t saved = -1;
    double loss = out->loss, norm = out->grad_norm; /* a NaN has a sign, which says nothing */
    if (isnan(loss)) loss = fabs(loss);
    if (isnan(norm)) norm = fabs(norm);
    if (step == 1) /* no update was made before */
        return ls_fail(
            e, LS_EINVAL,
            "step 1: the loss is %g and the gradient's norm %g; the data, or the weights "
            "that the run began with, have numbers that are not finite or too large",
            loss, norm);
    if (run && ls_checkpoint_below(run, step, &saved, NULL) != LS_OK) saved = -1;
    return ls_fail(e, LS_EINVAL,
                   "step %lld: the loss is %g and the gradient's norm %g; lower optim.lr%s%s%s",
                   (long long)step, loss, norm,
                   !other      ? ""
                   : saved < 0 ? ", or "
                               : ", ",
                   other ? other : "", saved < 0 ? "" : ", or continue from an earlier checkpoint");
}

ls_status ls_metrics_diverged(ls_metrics *m, int64_t step, ls_error *e) {
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", step);
    ls_json_set_bool(line, "diverged", true);
    return write_line(m, line, e);
}

ls_status ls_metrics_ended(ls_metrics *m, int64_t step, ls_error *e) {
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", step);
    ls_json_set_bool(line, "ended", true);
    return write_line(m, line, e);
}

ls_status ls_metrics_changed(ls_metrics *m, int64_t step, const ls_json *keys, ls_error *e) {
    if (!ls_json_count(keys)) return LS_OK;
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", step);
    ls_json_set(line, "changed", ls_json_share(keys));
    return write_line(m, line, e);
}

ls_status ls_metrics_evaluation(ls_metrics *m, int64_t steps, const ls_evaluation *v, ls_error *e) {
    int64_t all = m->config->train.steps;
    if (steps <= m->logged.evaluation) return LS_OK;
    m->logged.evaluation = steps;
    bool is_text = v->bits_per_byte > 0;
    ls_buf more = {0};
    char loss[LS_LOSS_TEXT];
    ls_loss_text(v->loss, loss);
    if (is_text) ls_buf_printf(&more, " (%.3f bits/byte)", v->bits_per_byte);
    ls_evaluation_print(v, &more);
    if (m->quiet)
        add_to_log(ls_format("step %lld/%lld  val %s%s", (long long)steps, (long long)all, loss,
                             more.len ? more.data : ""));
    else if (steps < all) /* the summary has that of the last step */
        ls_log_result("step %lld/%lld  val %s%s", (long long)steps, (long long)all, loss,
                      more.len ? more.data : "");
    ls_buf_free(&more);
    ls_json *line = ls_json_new_object();
    ls_json_set_integer(line, "step", steps);
    ls_json_set_number(line, "val_loss", v->loss);
    if (is_text) ls_json_set_number(line, "val_bits_per_byte", v->bits_per_byte);
    ls_json_set_integer(line, "val_samples", (int64_t)v->nsamples);
    for (int i = 0; i < v->nmetrics; i++) {
        char key[LS_MEASURE_NAME + 8];
        snprintf(key, sizeof key, "val_%s", v->metrics[i].name);
        ls_json_set_number(line, key, v->metrics[i].value);
    }
    LS_TRY(write_line(m, line, e));
    put_scalar(m, steps, "val/loss", v->loss);
    if (is_text) put_scalar(m, steps, "val/bits_per_byte", v->bits_per_byte);
    for (int i = 0; i < v->nmetrics; i++) {
        char tag[LS_MEASURE_NAME + 8];
        snprintf(tag, sizeof tag, "val/%s", v->metrics[i].name);
        put_scalar(m, steps, tag, v->metrics[i].value);
    }
    ls_error why;
    if (m->events && ls_events_flush(m->events, &why) != LS_OK) end_events(m, &why);
    return LS_OK;
}
