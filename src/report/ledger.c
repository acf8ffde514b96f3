/* ledger.c - see ledger.h. */
#include "report/ledger.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/lines.h"
#include "data/order.h"
#include "dataset/dataset.h"
#include "report/history.h"
#include "storage/checkpoint.h"

typedef struct audit {
    char *path; /* of metrics.jsonl */
    int64_t line;
    const ls_config *config;
    ls_order order;
    ls_ledger l;
    bool *used; /* [nsamples] in the epoch that is being read */
    uint64_t epoch;
    int64_t view;
    ls_error *e;
} audit;

/* A fault of the current line. */
#define FAULT(a, fmt, ...)                                                                         \
    ls_fail((a)->e, LS_EINVAL, "%s:%lld: " fmt, (a)->path, (long long)(a)->line, __VA_ARGS__)

static bool number(const ls_json *line, const char *name, int64_t *value_p) {
    return ls_json_integer(ls_json_get(line, name), value_p);
}

/* The epoch has ended: were all its samples used? */
static ls_status end_epoch(audit *a) {
    for (int64_t i = 0; i < a->l.nsamples; i++)
        if (!a->used[i])
            return FAULT(a, "epoch %llu ends without sample %lld", (unsigned long long)a->epoch,
                         (long long)i);
    for (int64_t i = 0; i < a->l.nsamples; i++) a->used[i] = false;
    a->l.epochs++;
    a->l.rest = 0;
    a->epoch++;
    return LS_OK;
}

static ls_status use(audit *a, int64_t step, const ls_batch *b) {
    if (b->epoch != a->epoch) LS_TRY(end_epoch(a));
    for (uint64_t place = b->first; place < b->first + b->count; place++) {
        uint64_t sample = ls_order_at(&a->order, b->epoch, place);
        if (a->used[sample])
            return FAULT(a, "step %lld uses sample %llu, which epoch %llu used before",
                         (long long)step, (unsigned long long)sample, (unsigned long long)b->epoch);
        a->used[sample] = true;
        a->l.rest++;
    }
    return LS_OK;
}

static void count_workers(audit *a, int64_t view, int64_t workers) {
    ls_ledger *l = &a->l;
    l->changes += l->steps > 0 && view != a->view;
    a->view = view;
    if (!l->least_workers || workers < l->least_workers) l->least_workers = workers;
    if (workers > l->most_workers) l->most_workers = workers;
}

static ls_batch batch_of(const audit *a, int64_t step) {
    const ls_batches batches = ls_batches_of(a->config);
    return ls_batches_at(&batches, (uint64_t)step - 1, (uint64_t)a->l.nsamples);
}

/* ---- lines ---- */

static ls_status check_samples(audit *a, const ls_json *line, int64_t step, const ls_batch *want) {
    int64_t epoch = 0, first = 0, count = 0;
    if (!number(line, "epoch", &epoch) || !number(line, "first", &first) ||
        !number(line, "samples", &count))
        return FAULT(a, "step %lld does not name its samples (epoch, first, samples)",
                     (long long)step);
    if ((uint64_t)epoch == want->epoch && (uint64_t)first == want->first &&
        (uint64_t)count == want->count)
        return LS_OK;
    return FAULT(a,
                 "step %lld has %lld samples from %lld on of epoch %lld; it should have %llu from "
                 "%llu on of epoch %llu",
                 (long long)step, (long long)count, (long long)first, (long long)epoch,
                 (unsigned long long)want->count, (unsigned long long)want->first,
                 (unsigned long long)want->epoch);
}

static ls_status check_workers(audit *a, const ls_json *line, int64_t step) {
    /* a virtual worker is one worker's, or a pipeline's of any length: earlier views may have had
     * another mesh */
    int64_t view = 0, workers = 0;
    int64_t most = a->config->train.virtual_workers * LS_CONFIG_MOST_PIPE;
    if (ls_config_has_crew(a->config)) most = INT_MAX;
    if (!number(line, "view", &view) || !number(line, "workers", &workers))
        return FAULT(a, "step %lld does not name its view and number of workers", (long long)step);
    if (view < 1)
        return FAULT(a, "step %lld has view %lld; views are numbered from 1", (long long)step,
                     (long long)view);
    if (workers < 1 || workers > most)
        return FAULT(a, "step %lld was made by %lld workers; this run can have 1 to %lld",
                     (long long)step, (long long)workers, (long long)most);
    count_workers(a, view, workers);
    return LS_OK;
}

static ls_status on_step(audit *a, const ls_json *line, int64_t step) {
    if (step != a->l.steps + 1)
        return FAULT(a, "has step %lld after step %lld", (long long)step, (long long)a->l.steps);
    ls_batch want = batch_of(a, step);
    LS_TRY(check_samples(a, line, step, &want));
    LS_TRY(check_workers(a, line, step));
    LS_TRY(use(a, step, &want));
    a->l.steps = step;
    return LS_OK;
}

/* The samples that the missing steps should have used count as used. */
static ls_status on_gap(audit *a, const ls_json *gap, int64_t step) {
    ls_ledger *l = &a->l;
    int64_t from = 0, to = 0, all = a->config->train.steps;
    if (ls_json_count(gap) != 2 || !ls_json_integer(ls_json_at(gap, 0), &from) ||
        !ls_json_integer(ls_json_at(gap, 1), &to) || to != step || from > to || to > all)
        return FAULT(a, "has a gap that is not [first step, last step], up to %lld",
                     (long long)all);
    if (from != l->steps + 1)
        return FAULT(a, "has a gap from step %lld on after step %lld", (long long)from,
                     (long long)l->steps);
    ls_batch next = batch_of(a, to + 1);
    for (int64_t i = 0; i < l->nsamples; i++) a->used[i] = false;
    for (uint64_t place = 0; place < next.first; place++)
        a->used[ls_order_at(&a->order, next.epoch, place)] = true;
    l->epochs += (int64_t)(next.epoch - a->epoch);
    l->rest = (int64_t)next.first;
    a->epoch = next.epoch;
    if (!l->missing) l->gap_from = from;
    if (!l->missing) l->gap_to = to;
    l->missing += to - from + 1;
    l->steps = to;
    return LS_OK;
}

static ls_status on_evaluation(audit *a, const ls_json *line, int64_t step) {
    double loss = 0;
    if (step <= a->l.steps && ls_json_number(ls_json_get(line, "val_loss"), &loss)) return LS_OK;
    return FAULT(a, "has an evaluation after step %lld, without a loss or before that step",
                 (long long)step);
}

/* A line of keys that changed comes before the line of its step. */
static ls_status on_changed(audit *a, const ls_json *line, int64_t step) {
    if (step != a->l.steps + 1)
        return FAULT(a, "has keys that changed before step %lld, after step %lld", (long long)step,
                     (long long)a->l.steps);
    ls_ledger_add_changed(a->l.changed, step, line);
    return LS_OK;
}

static ls_status on_object(audit *a, const ls_json *line) {
    int64_t step = 0;
    static const char *const said[] = {"started", "diverged", "ended"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (ls_json_get(line, said[i])) return LS_OK;
    if (!number(line, "step", &step) || step < 1 || step > a->config->train.steps)
        return FAULT(a, "has no step from 1 to train.steps, %lld",
                     (long long)a->config->train.steps);
    if (ls_json_get(line, "loss")) return on_step(a, line, step);
    if (ls_json_get(line, "gap")) return on_gap(a, ls_json_get(line, "gap"), step);
    if (ls_json_get(line, "val_loss")) return on_evaluation(a, line, step);
    if (ls_json_get(line, "changed")) return on_changed(a, line, step);
    return FAULT(a, "step %lld: is neither a step, nor an evaluation, nor a gap", (long long)step);
}

static ls_status on_line(audit *a, const ls_line *line) {
    ls_json *j = NULL;
    ls_error why = {0};
    a->line = line->number;
    if (!line->whole) return LS_OK; /* torn, or being written */
    if (line->too_long)
        return FAULT(a, "is damaged: a line of more than %d bytes", LS_LONGEST_LINE);
    if (ls_json_parse(line->text, line->nbytes, "the line", &j, &why) != LS_OK) {
        const char *what =
            strstr(why.msg, "is not valid JSON"); /* without the line number within it */
        return FAULT(a, "is damaged: the line %s", what ? what : "is not valid JSON");
    }
    ls_status s = on_object(a, j);
    ls_json_free(j);
    return s;
}

/* The epoch may end with the last step. */
static ls_status read_lines(audit *a) {
    ls_lines *l = NULL;
    ls_line line;
    bool there = false;
    ls_status s = ls_lines_open(a->path, false, &l, a->e);
    LS_TRY(s);
    a->used = LS_NEW_ARRAY(bool, (size_t)a->l.nsamples);
    while ((s = ls_lines_next(l, &line, &there, a->e)) == LS_OK && there)
        if ((s = on_line(a, &line)) != LS_OK) break;
    if (s == LS_OK && a->l.rest == a->l.nsamples) s = end_epoch(a);
    free(a->used);
    ls_lines_close(l);
    return s;
}

/* ---- the run ---- */

/* All steps up to the newest checkpoint were run, so they need lines. */
static ls_status read_all(audit *a, const char *run) {
    char *newest = NULL;
    int64_t step = 0;
    LS_TRY(ls_checkpoint_newest_good(run, &newest, &step, a->e));
    ls_status s = read_lines(a);
    if (s == LS_OK && a->l.steps < step)
        s = ls_fail(a->e, LS_EINVAL,
                    "%s: ends with step %lld, but %s exists: the lines of steps %lld to %lld are "
                    "missing",
                    a->path, (long long)a->l.steps, newest, (long long)a->l.steps + 1,
                    (long long)step);
    free(newest);
    return s;
}

ls_status ls_ledger_check(const char *run, ls_ledger *l_p, ls_error *e) {
    char *path = ls_format("%s/config.yaml", run);
    ls_config config;
    ls_order order;
    ls_status s = ls_config_read(path, &config, e);
    free(path);
    if (s != LS_OK) return s;
    LS_TRY(ls_dataset_order_of(run, &config, &order, e));
    audit a = {.path = ls_metrics_path(run), .config = &config, .order = order, .e = e};
    a.l.nsamples = (int64_t)order.n;
    a.l.changed = ls_json_new_array();
    s = read_all(&a, run);
    free(a.path);
    if (s != LS_OK) ls_ledger_free(&a.l);
    *l_p = a.l;
    return s;
}

void ls_ledger_free(ls_ledger *l) {
    ls_json_free(l->changed);
    l->changed = NULL;
}

void ls_ledger_add_changed(ls_json *changed, int64_t step, const ls_json *line) {
    const ls_json *keys = ls_json_get(line, "changed"), *values = NULL;
    const char *key = NULL;
    if (!ls_json_is_object(keys)) return;
    for (void *it = NULL; (it = ls_json_next(keys, it, &key, &values));) {
        const char *was = ls_json_text(ls_json_at(values, 0));
        const char *now = ls_json_text(ls_json_at(values, 1));
        ls_json *one = ls_json_new_object();
        ls_json_set_integer(one, "step", step);
        ls_json_set_text(one, "key", key);
        ls_json_set_text(one, "was", was ? was : "");
        ls_json_set_text(one, "now", now ? now : "");
        ls_json_push(changed, one);
    }
}

static void put_text(const ls_json *text, ls_buf *out) {
    const char *s = ls_json_text(text);
    ls_buf_escape(out, LS_ESCAPE_LINE, s, strlen(s));
}

void ls_ledger_put_changed(const ls_json *one, ls_buf *out) {
    int64_t step = 0;
    ls_json_integer(ls_json_get(one, "step"), &step);
    ls_buf_printf(out, "from step %lld on ", (long long)step);
    put_text(ls_json_get(one, "key"), out);
    ls_buf_printf(out, " is ");
    put_text(ls_json_get(one, "now"), out);
    ls_buf_printf(out, ", which was ");
    put_text(ls_json_get(one, "was"), out);
}
