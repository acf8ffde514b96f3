/* mllog.c - see mllog.h. */
#include "report/mllog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/plural.h"
#include "data/batches.h"
#include "model/types.h"
#include "optim/learning_rate.h"

static const char TOKEN[] = ":::MLLOG ";
enum { TOKEN_BYTES = sizeof TOKEN - 1 };

const char *const ls_mllog_words[] = {
    [LS_MLLOG_BENCHMARK] = "benchmark", [LS_MLLOG_DIVISION] = "division", [LS_MLLOG_ORG] = "org",
    [LS_MLLOG_PLATFORM] = "platform",   [LS_MLLOG_STATUS] = "status",     [LS_MLLOG_WORDS] = NULL};

struct ls_mllog {
    const ls_mllog_request *request;
    ls_mllog_run run;
    ls_batches batches;
    char optimizer[32]; /* as keys have it */
    int file;           /* a descriptor; -1: nothing more is written */
    bool stopped;       /* run_stop is written */
    int64_t block;      /* steps before the open block */
    int64_t ms;         /* when the program, or the latest evaluation, began */
    ls_buf lines;       /* to be written at once */
    ls_error lost;      /* why lines could not be written; code LS_OK: all were */
};

/* ---- lines ---- */

typedef enum event { POINT, START, STOP } event;

static int64_t now_ms(void) { return (int64_t)(ls_clock_wall_s() * 1e3); }

/* The wall clock at an earlier reading of ls_clock_ns(). */
static int64_t ms_at(int64_t ns) { return now_ms() - (ls_clock_ns() - ns) / 1000000; }

static ls_json *number(double x) { return ls_json_new_number(x); }
static ls_json *integer(int64_t x) { return ls_json_new_integer(x); }
static ls_json *text(const char *x) { return ls_json_new_path(x); }

/* Takes ownership of value (NULL: null) and metadata. */
static void put_line(ls_buf *out, int64_t ms, event kind, const char *key, ls_json *value,
                     ls_json *metadata) {
    static const char *const kinds[] = {"POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"};
    ls_json *line = ls_json_new_object();
    ls_json_set_text(line, "namespace", "");
    ls_json_set_integer(line, "time_ms", ms);
    ls_json_set_text(line, "event_type", kinds[kind]);
    ls_json_set_text(line, "key", key);
    ls_json_set(line, "value", value ? value : ls_json_new_null());
    ls_json_set(line, "metadata", metadata);
    ls_buf_append(out, TOKEN, TOKEN_BYTES);
    ls_json_write(line, 0, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(line);
}

/* Where a line comes from. */
static ls_json *source(int line) {
    ls_json *m = ls_json_new_object();
    ls_json_set_text(m, "file", "report/mllog.c");
    ls_json_set_integer(m, "lineno", line);
    return m;
}

/* The metadata of a line, with the place in the training after `steps` steps. */
static ls_json *place(const ls_mllog *m, int line, int64_t steps) {
    ls_batch at = ls_batches_at(&m->batches, (uint64_t)steps, m->run.ntrain);
    ls_json *j = source(line);
    ls_json_set_integer(j, "step_num", steps);
    ls_json_set_integer(j, "samples_count", (int64_t)(at.epoch * m->run.ntrain + at.first));
    ls_json_set_number(j, "epoch_num", (double)at.epoch + (double)at.first / (double)m->run.ntrain);
    return j;
}

static void put_block_start(ls_mllog *m, int64_t ms, int64_t steps) {
    m->block = steps;
    put_line(&m->lines, ms, START, "block_start", NULL, place(m, __LINE__, steps));
}

/* ---- the header ---- */

/* A line of the header, with the time at which the program began. */
#define PUT(m, key, value) put_line(&(m)->lines, (m)->ms, POINT, key, value, source(__LINE__))

static void put_submission(ls_mllog *m) {
    char host[HOST_NAME_MAX + 1] = "host", key[64];
    gethostname(host, sizeof host - 1);
    char *platform =
        ls_format("%s, %d worker%s", host, m->run.nworkers, ls_plural(m->run.nworkers));
    const char *const usual[LS_MLLOG_WORDS] = {[LS_MLLOG_BENCHMARK] = "custom",
                                               [LS_MLLOG_DIVISION] = "open",
                                               [LS_MLLOG_ORG] = "none",
                                               [LS_MLLOG_PLATFORM] = platform,
                                               [LS_MLLOG_STATUS] = "research"};
    for (int i = 0; i < LS_MLLOG_WORDS; i++) {
        const char *word = m->request->words[i];
        snprintf(key, sizeof key, "submission_%s", ls_mllog_words[i]);
        PUT(m, key, text(word ? word : usual[i]));
    }
    free(platform);
}

static const char *precision_name(ls_dtype t) {
    return t == LS_BF16 ? "bfloat16" : t == LS_F16 ? "fp16" : "fp32";
}

/* What workers send to each other, where it is fewer bits than a number has. */
static const char *sent_precision(const ls_config *c) {
    if (ls_config_sends_momentum(&c->optim)) return "1 bit";
    switch (c->compress.kind) {
    case LS_COMPRESS_WITH_ONEBIT: return "1 bit";
    case LS_COMPRESS_WITH_INT4: return "int4";
    case LS_COMPRESS_WITH_INT8: return "int8";
    default: return precision_name(ls_config_reduce(c));
    }
}

static void put_parallel(ls_mllog *m) {
    const ls_config *c = m->run.config;
    const char *compute = precision_name(ls_config_compute(c));
    int64_t V = c->train.virtual_workers, n = m->run.nworkers / m->run.stages;
    int64_t samples = c->train.batch / V, micro = c->train.micro_batch; /* of a virtual worker */
    int64_t batches = (samples + micro - 1) / micro;
    char *config = ls_format("%s/config.yaml", m->run.dir);
    PUT(m, "lowest_numerical_precision_in_linear", text(compute));
    PUT(m, "lowest_numerical_precision_in_attn", text(compute));
    PUT(m, "lowest_numerical_precision_in_comm", text(sent_precision(c)));
    PUT(m, "tensor_parallelism", integer(1));
    PUT(m, "pipeline_parallelism", integer(m->run.stages));
    PUT(m, "context_parallelism", integer(1));
    PUT(m, "expert_parallelism", integer(1));
    PUT(m, "micro_batch_size", integer(c->train.micro_batch));
    PUT(m, "gradient_accumulation_steps", integer((V + n - 1) / n * batches));
    PUT(m, "config_filename", text(config));
    free(config);
}

static void put_rates(ls_mllog *m) {
    static const char *const curves[] = {[LS_SCHEDULE_COSINE] = "cosine",
                                         [LS_SCHEDULE_LINEAR] = "linear",
                                         [LS_SCHEDULE_CONSTANT] = "constant",
                                         [LS_SCHEDULE_STEP] = "step",
                                         [LS_SCHEDULE_WSD] = "wsd"};
    const ls_config_optim *o = &m->run.config->optim;
    ls_schedule s = ls_schedule_of(m->run.config, m->run.ntrain);
    PUT(m, "opt_base_learning_rate", number(o->lr));
    PUT(m, "opt_learning_rate_warmup_steps", integer(s.warmup));
    PUT(m, "opt_learning_rate_decay_schedule", text(curves[o->schedule]));
    if (o->schedule != LS_SCHEDULE_CONSTANT && o->schedule != LS_SCHEDULE_STEP) {
        PUT(m, "opt_learning_rate_decay_steps", integer(s.steps - s.warmup));
        PUT(m, "opt_end_learning_rate", number(o->min_lr));
    }
    if (o->clip > 0) PUT(m, "opt_gradient_clip_norm", number(o->clip));
}

/* The keys of settings have the optimizer's name: opt_adamw_beta_1, sgd_opt_momentum. */
static void put_setting(ls_mllog *m, const char *setting, double value) {
    const ls_config_optim *o = &m->run.config->optim;
    bool first = o->optimizer == LS_OPTIMIZER_SGD || o->optimizer == LS_OPTIMIZER_LARS;
    char *key = ls_format(first ? "%s_opt_%s" : "opt_%s_%s", m->optimizer, setting);
    PUT(m, key, number(value));
    free(key);
}

static void put_optimizer(ls_mllog *m) {
    const ls_config_optim *o = &m->run.config->optim;
    bool momentum = o->optimizer == LS_OPTIMIZER_SGD || o->optimizer == LS_OPTIMIZER_LARS ||
                    o->optimizer == LS_OPTIMIZER_MUON;
    PUT(m, "opt_name", text(m->optimizer));
    put_rates(m);
    if (momentum) put_setting(m, "momentum", o->momentum);
    if (!momentum) {
        put_setting(m, "beta_1", o->beta1);
        put_setting(m, "beta_2", o->beta2);
        put_setting(m, "epsilon", o->eps);
    }
    put_setting(m, o->optimizer == LS_OPTIMIZER_LAMB ? "weight_decay_rate" : "weight_decay",
                o->weight_decay);
}

/* "sgd with momentum": "sgd"; "schedule-free": "schedule_free". */
static void set_optimizer(ls_mllog *m) {
    snprintf(m->optimizer, sizeof m->optimizer, "%.*s", (int)strcspn(m->run.optimizer, " "),
             m->run.optimizer);
    for (char *c = m->optimizer; *c; c++)
        if (*c == '-') *c = '_';
}

static void put_header(ls_mllog *m) {
    const ls_config *c = m->run.config;
    int64_t wanted = c->train.eval_samples, nval = (int64_t)m->run.nval;
    int64_t ready = ms_at(m->run.ready_ns);
    char goal[LS_GOAL_TEXT];
    m->ms = ms_at(m->run.began_ns);
    set_optimizer(m);
    ls_goal_write(&m->request->goal, goal);
    put_submission(m);
    PUT(m, "cache_clear", ls_json_new_bool(false)); /* of the system's caches: none is cleared */
    put_line(&m->lines, m->ms, START, "init_start", NULL, source(__LINE__));
    PUT(m, "target", text(goal));
    PUT(m, "seed", integer(c->train.seed));
    PUT(m, "global_batch_size", integer(c->train.batch));
    PUT(m, "train_samples", integer((int64_t)m->run.ntrain));
    PUT(m, "eval_samples", integer(wanted && wanted < nval ? wanted : nval));
    PUT(m, "max_steps", integer(c->train.steps));
    if (ls_config_has_tokens(c)) PUT(m, "max_sequence_length", integer(c->model.context));
    put_parallel(m);
    put_optimizer(m);
    put_line(&m->lines, ready, STOP, "init_stop", NULL, source(__LINE__));
    put_line(&m->lines, ready, START, "run_start", NULL, source(__LINE__));
    put_block_start(m, ready, 0);
}

/* ---- the file ---- */

static void write_lines(ls_mllog *m) {
    size_t done = 0;
    ssize_t n = 0;
    while (m->file >= 0 && done < m->lines.len) {
        n = write(m->file, m->lines.data + done, m->lines.len - done);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) done += (size_t)n;
    }
    if (m->file >= 0 && done < m->lines.len) {
        ls_fail(&m->lost, LS_EIO, "%s: can't be written: %s; the log lacks lines", m->request->path,
                strerror(errno));
        ls_log("%s", m->lost.msg);
        close(m->file);
        m->file = -1;
    }
    m->lines.len = 0;
}

/* What the lines of a run that continues say. */
typedef struct old_log {
    char config[LS_CONFIG_TEXT], goal[LS_GOAL_TEXT];
    uint64_t end;  /* of the lines that stay */
    int64_t block; /* steps before their last block_start; -1: there is none */
    bool stopped;
} old_log;

static void copy_text(char *to, size_t nbytes, const ls_json *value) {
    const char *s = ls_json_text(value);
    if (s) snprintf(to, nbytes, "%s", s);
}

static void examine(old_log *o, const ls_line *line, int64_t steps) {
    ls_json *j = NULL;
    bool ours = line->whole && !line->too_long && line->nbytes > TOKEN_BYTES &&
                memcmp(line->text, TOKEN, TOKEN_BYTES) == 0;
    if (!ours || ls_json_parse(line->text + TOKEN_BYTES, line->nbytes - TOKEN_BYTES, "a line", &j,
                               NULL) != LS_OK)
        return;
    const char *key = ls_json_text(ls_json_get(j, "key"));
    int64_t at = 0;
    bool placed = ls_json_integer(ls_json_get(ls_json_get(j, "metadata"), "step_num"), &at);
    if (key && strcmp(key, "config_filename") == 0)
        copy_text(o->config, sizeof o->config, ls_json_get(j, "value"));
    if (key && strcmp(key, "target") == 0)
        copy_text(o->goal, sizeof o->goal, ls_json_get(j, "value"));
    bool begins = key && placed && at <= steps && strcmp(key, "block_start") == 0;
    const char *status = ls_json_text(ls_json_get(ls_json_get(j, "metadata"), "status"));
    bool stops = key && placed && at <= steps && strcmp(key, "run_stop") == 0 && status &&
                 strcmp(status, "success") == 0;
    if (begins || stops) o->end = line->at + line->nbytes + 1;
    if (begins) o->block = at;
    o->stopped = o->stopped || stops;
    ls_json_free(j);
}

static ls_status read_old(const char *path, int64_t steps, old_log *o, ls_error *e) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = false;
    *o = (old_log){.block = -1};
    LS_TRY(ls_lines_open(path, false, &l, e));
    ls_status s = LS_OK;
    while ((s = ls_lines_next(l, &line, &there, e)) == LS_OK && there) examine(o, &line, steps);
    ls_lines_close(l);
    return s;
}

/* A run may be named from another directory, so only its own name is compared. */
static bool names_run(const char *config, const char *dir) {
    char *end = ls_format("%s/config.yaml", ls_file_name(dir));
    size_t n = strlen(end), all = strlen(config);
    bool same =
        all >= n && strcmp(config + all - n, end) == 0 && (all == n || config[all - n - 1] == '/');
    free(end);
    return same;
}

/* Continues the log of the same run. */
static ls_status take_up(ls_mllog *m, int64_t steps, ls_error *e) {
    const char *path = m->request->path;
    char goal[LS_GOAL_TEXT];
    old_log o;
    ls_goal_write(&m->request->goal, goal);
    ls_status s = read_old(path, steps, &o, e);
    if (s == LS_OK && (o.block < 0 || !names_run(o.config, m->run.dir)))
        s = ls_fail(e, LS_EINVAL, "%s: is not the log of %s; choose another file for --mllog", path,
                    m->run.dir);
    else if (s == LS_OK && strcmp(o.goal, goal) != 0)
        s = ls_fail(e, LS_EINVAL,
                    "%s: was begun with --target '%s'; continue with the same, or choose another "
                    "file for --mllog",
                    path, o.goal);
    if (s == LS_OK) s = ls_file_cut(path, o.end, e);
    m->block = o.block;
    m->stopped = o.stopped;
    return s;
}

static bool is_known(const ls_goal *g, const ls_config *c, const ls_model *model) {
    const char *name = strncmp(g->metric, "val_", 4) == 0 ? g->metric + 4 : "";
    if (strcmp(name, "loss") == 0) return true;
    if (strcmp(name, "bits_per_byte") == 0) return ls_config_has_text(c);
    for (int i = 0; i < model->nnotes; i++)
        if (strcmp(model->notes[i], name) == 0) return true;
    for (int i = 0; i < model->nmeasures; i++)
        if (model->measures[i].kind != LS_MEASURE_CONFUSION &&
            strcmp(model->measures[i].name, name) == 0)
            return true;
    return false;
}

/* A new log is there with all of its header, or not at all. */
static ls_status begin_log(ls_mllog *m, int64_t steps, ls_error *e) {
    const char *path = m->request->path;
    if (steps > 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: is missing, and the run has made %lld step%s without it; leave out "
                       "--mllog, or train a new run with it",
                       path, (long long)steps, ls_plural(steps));
    put_header(m);
    LS_TRY(ls_file_make_parent(path, e));
    ls_status s = ls_file_replace(path, m->lines.data, m->lines.len, e);
    m->lines.len = 0;
    return s;
}

static ls_status open_log(ls_mllog *m, int64_t steps, ls_error *e) {
    const ls_mllog_request *q = m->request;
    bool there = ls_file_exists(q->path);
    if (!is_known(&q->goal, m->run.config, m->run.model))
        return ls_fail(
            e, LS_EINVAL,
            "--target: evaluations of this model have no '%s'; use one of their numbers, "
            "such as val_loss (model.metrics adds others)",
            q->goal.metric);
    if (there && !m->run.continues)
        return ls_fail(e, LS_EINVAL,
                       "%s: exists, and a log has one run; remove it, choose another file for "
                       "--mllog, or continue its run with --resume",
                       q->path);
    LS_TRY(there ? take_up(m, steps, e) : begin_log(m, steps, e));
    m->file = open(q->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (m->file < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", q->path, strerror(errno));
    return LS_OK;
}

ls_status ls_mllog_open(const ls_mllog_request *q, const ls_mllog_run *run, int64_t steps,
                        ls_mllog **m_p, ls_error *e) {
    ls_mllog *m = LS_NEW(ls_mllog);
    *m = (ls_mllog){.request = q, .run = *run, .batches = ls_batches_of(run->config), .file = -1};
    ls_status s = open_log(m, steps, e);
    if (s == LS_OK)
        *m_p = m;
    else
        (void)ls_mllog_close(m, NULL);
    return s;
}

ls_status ls_mllog_close(ls_mllog *m, ls_error *e) {
    if (!m) return LS_OK;
    ls_status s = m->lost.code;
    if (s != LS_OK && e) *e = m->lost;
    if (m->file >= 0) close(m->file);
    ls_buf_free(&m->lines);
    free(m);
    return s;
}

/* ---- evaluations ---- */

void ls_mllog_begin(ls_mllog *m) {
    if (m) m->ms = now_ms();
}

static void put_run_stop(ls_mllog *m, int64_t ms, int64_t steps, bool reached) {
    ls_json *how = place(m, __LINE__, steps);
    ls_json_set_text(how, "status", reached ? "success" : "aborted");
    put_line(&m->lines, ms, STOP, "run_stop", NULL, how);
    m->stopped = true;
}

/* Has an earlier view logged the evaluation after these steps? */
static bool is_logged(const ls_mllog *m, int64_t steps) { return m->stopped || steps <= m->block; }

void ls_mllog_evaluation(ls_mllog *m, int64_t steps, const ls_evaluation *v, bool last) {
    double value = 0;
    if (!m || is_logged(m, steps) || !ls_goal_value(&m->request->goal, v, &value)) return;
    int64_t end = now_ms();
    bool reached = ls_goal_is_reached(&m->request->goal, value);
    ls_json *accuracy = place(m, __LINE__, steps);
    ls_json_set_text(accuracy, "metric", m->request->goal.metric);
    put_line(&m->lines, m->ms, STOP, "block_stop", NULL, place(m, __LINE__, steps));
    put_line(&m->lines, m->ms, START, "eval_start", NULL, place(m, __LINE__, steps));
    put_line(&m->lines, end, POINT, "eval_accuracy", number(value), accuracy);
    put_line(&m->lines, end, STOP, "eval_stop", NULL, place(m, __LINE__, steps));
    if (reached || last)
        put_run_stop(m, end, steps, reached);
    else
        put_block_start(m, end, steps);
    write_lines(m);
}

void ls_mllog_end(ls_mllog *m, int64_t steps) {
    if (!m || m->stopped) return;
    put_line(&m->lines, now_ms(), STOP, "block_stop", NULL, place(m, __LINE__, steps));
    put_run_stop(m, now_ms(), steps, false);
    write_lines(m);
}
