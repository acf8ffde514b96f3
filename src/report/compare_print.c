/* compare_print.c - writes a comparison, for people and for programs: see compare.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/plural.h"
#include "report/compare.h"
#include "report/evaluation.h"
#include "report/ledger.h"

static char letter_of(const ls_comparison *c, const ls_compare_run *r) {
    return (char)('a' + (r - c->runs));
}

/* The order of versions that did not record it. */
static const char OLDER[] = "that of an older version";

/* ---- tables ---- */

/* "3.4567 at 250". */
static void put_evaluation(double loss, int64_t step, ls_buf *out) {
    char text[64] = "-", number[LS_LOSS_TEXT];
    if (step)
        snprintf(text, sizeof text, "%s at %lld", ls_loss_text(loss, number), (long long)step);
    ls_buf_printf(out, " %16s", text);
}

static void put_runs(const ls_comparison *c, ls_buf *out) {
    ls_buf_printf(out, "   %8s %10s %16s %16s %9s %7s  run\n", "steps", "last loss",
                  "best val_loss", "last val_loss", "seconds", "workers");
    for (int i = 0; i < c->n; i++) {
        const ls_compare_run *r = &c->runs[i];
        char workers[48], loss[LS_LOSS_TEXT];
        snprintf(workers, sizeof workers, r->workers[0] == r->workers[1] ? "%lld" : "%lld-%lld",
                 (long long)r->workers[0], (long long)r->workers[1]);
        const ls_compare_step *last = r->nsteps ? &r->steps[r->nsteps - 1] : NULL;
        ls_buf_printf(out, "%c  %8lld %10s", letter_of(c, r), last ? (long long)last->step : 0LL,
                      ls_loss_text(last ? last->loss : NAN, loss));
        put_evaluation(r->val_loss, r->val_step, out);
        put_evaluation(r->last_val_loss, r->last_val_step, out);
        ls_buf_printf(out, " %9.1f %7s  ", r->seconds, workers);
        ls_buf_escape(out, LS_ESCAPE_LINE, r->path, strlen(r->path));
        ls_buf_printf(out, "\n");
    }
}

static void put_value(const ls_json *value, ls_buf *out) {
    enum { WIDTH = 18 };
    char text[512];
    const char *s = ls_json_text(value);
    ls_escape(LS_ESCAPE_LINE, s, strlen(s) < 100 ? strlen(s) : 100, text, sizeof text);
    bool fits = strlen(text) <= WIDTH;
    ls_buf_printf(out, " %*.*s%s", fits ? WIDTH : WIDTH - 3, fits ? WIDTH : WIDTH - 3, text,
                  fits ? "" : "...");
}

static void put_differences(const ls_comparison *c, ls_buf *out) {
    size_t n = ls_json_count(c->differences);
    if (n == 0) {
        ls_buf_printf(out, "the configs are equal\n");
        return;
    }
    ls_buf_printf(out, "%-30s", "keys that differ");
    for (int i = 0; i < c->n; i++) ls_buf_printf(out, " %18c", 'a' + i);
    ls_buf_printf(out, "\n");
    for (size_t k = 0; k < n; k++) {
        const ls_json *one = ls_json_at(c->differences, k);
        ls_buf_printf(out, "%-30s", ls_json_text(ls_json_get(one, "key")));
        for (int i = 0; i < c->n; i++)
            put_value(ls_json_at(ls_json_get(one, "values"), (size_t)i), out);
        bool bits = ls_json_is_true(ls_json_get(one, "bits"));
        ls_buf_printf(out, "%s\n", bits ? "" : "   (same bits)");
    }
}

static void put_changes(const ls_comparison *c, ls_buf *out) {
    for (int i = 0; i < c->n; i++) {
        const ls_compare_run *r = &c->runs[i];
        for (size_t k = 0; k < ls_json_count(r->changed); k++) {
            ls_buf_printf(out, "%c: ", letter_of(c, r));
            ls_ledger_put_changed(ls_json_at(r->changed, k), out);
            ls_buf_printf(out, "\n");
        }
    }
}

/* Of runs in bf16 whose orders differ. */
static void put_sums(const ls_comparison *c, ls_buf *out) {
    bool same = true;
    for (int i = 1; i < c->n; i++) same = same && c->runs[i].same_sums;
    for (int i = 0; i < c->n && !same; i++) {
        const ls_compare_run *r = &c->runs[i];
        for (size_t k = 0; k < ls_json_count(r->sums); k++) {
            const ls_json *one = ls_json_at(r->sums, k);
            const char *sum = ls_json_text(ls_json_get(one, "sum"));
            int64_t step = 0;
            ls_json_integer(ls_json_get(one, "step"), &step);
            ls_buf_printf(out, "%c: from step %lld on sum is ", letter_of(c, r), (long long)step);
            ls_buf_escape(out, LS_ESCAPE_LINE, sum ? sum : OLDER, strlen(sum ? sum : OLDER));
            ls_buf_printf(out, "\n");
        }
    }
}

/* ---- bits ---- */

/* Why a run need not have the bits of the first one. */
static const char *reason_of(const ls_compare_run *r) {
    if (!r->same_config) return "keys differ that affect the bits";
    if (!r->same_changes) return "keys were changed when one of them was resumed";
    if (!r->same_sums) return "their products in bf16 were summed in different orders";
    return r->same_data ? "asynchronous runs have the bits of their logs" : "their data differ";
}

static void put_parting(const ls_compare_run *r, ls_buf *out) {
    const ls_checkpoints_compared *k = &r->checkpoints;
    if (r->parted && r->losses[0] == r->losses[1])
        ls_buf_printf(out, "; the norm of the gradient of step %lld is %.9g in a and %.9g here",
                      (long long)r->parted, r->norms[0], r->norms[1]);
    else if (r->parted)
        ls_buf_printf(out, "; the loss of step %lld is %.9g in a and %.9g here",
                      (long long)r->parted, r->losses[0], r->losses[1]);
    if (k->equal)
        ls_buf_printf(out, "; the checkpoints of step %lld are equal", (long long)k->equal);
    if (!k->differ) return;
    ls_buf_printf(out, "; in the checkpoints of step %lld, %zu of %zu tensors differ",
                  (long long)k->differ, k->ndiffer, k->ntensors);
    if (k->ndiffer && k->in_both)
        ls_buf_printf(out, ", the first is %s: element %zu is %.9g in a and %.9g here", k->tensor,
                      k->element, (double)k->values[0], (double)k->values[1]);
    else if (k->ndiffer)
        ls_buf_printf(out, ", the first is %s, which only one of them has in this shape",
                      k->tensor);
}

static void put_bits(const ls_comparison *c, const ls_compare_run *r, ls_buf *out) {
    const ls_checkpoints_compared *k = &r->checkpoints;
    bool must = ls_compare_must_match(r), parted = ls_compare_parted(r);
    ls_buf_printf(out, "%c: ", letter_of(c, r));
    if (must && parted)
        ls_buf_printf(out, "PARTED from a, though it must have the same bits");
    else if (must)
        ls_buf_printf(out, "the same bits as a, as it must be");
    else
        ls_buf_printf(out, "need not have the bits of a (%s)%s", reason_of(r),
                      parted ? "" : ", and has them");
    if (parted)
        put_parting(r, out);
    else
        ls_buf_printf(out, ": %lld step%s and %d checkpoint%s of both are equal",
                      (long long)r->nlines, ls_plural(r->nlines), k->ncompared,
                      ls_plural(k->ncompared));
    ls_buf_printf(out, "\n");
}

void ls_compare_print(const ls_comparison *c, ls_buf *out) {
    put_runs(c, out);
    ls_buf_printf(out, "\n");
    put_differences(c, out);
    put_changes(c, out);
    put_sums(c, out);
    ls_buf_printf(out, "\n");
    for (int i = 1; i < c->n; i++) put_bits(c, &c->runs[i], out);
}

/* What a metric's numbers are, with their unit. */
static const char *title_of(const ls_comparison *c) {
    static const struct {
        const char *metric, *title;
        bool tokens; /* only of losses of tokens */
    } titles[] = {{"loss", "loss, nats a token", true},
                  {"val_loss", "val_loss, nats a token", true},
                  {"val_bits_per_byte", "val_bits_per_byte, bits a byte", false},
                  {"lr", "lr, the learning rate", false},
                  {"grad_norm", "grad_norm, the norm of the gradient", false},
                  {"epoch", "epoch, passes over the data", false},
                  {"seconds", "seconds, of a step", false},
                  {"data_wait_s", "data_wait_s, seconds of a step", false},
                  {"tokens_per_s", "tokens_per_s, tokens a second", false},
                  {"samples_per_s", "samples_per_s, samples a second", false},
                  {"mfu", "mfu, the share of the processor's peak", false},
                  {"memory_bytes", "memory_bytes, of the run's processes", false}};
    bool tokens = true;
    for (int i = 0; i < c->n; i++)
        tokens = tokens && ls_config_has_token_losses(&c->runs[i].config);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (strcmp(c->metric, titles[i].metric) == 0 && (tokens || !titles[i].tokens))
            return titles[i].title;
    return c->metric;
}

ls_curves ls_compare_curves(const ls_comparison *c, ls_curve_line *lines) {
    for (int i = 0; i < c->n; i++) {
        const ls_series *s = &c->runs[i].curve;
        lines[i] = (ls_curve_line){.label = c->runs[i].name, .series = {s->steps, s->values, s->n}};
    }
    return (ls_curves){.title = title_of(c), .x_label = "step", .lines = lines, .n = c->n};
}

/* ---- for programs ---- */

static void set_pair(ls_json *o, const char *key, const double values[2]) {
    ls_json *pair = ls_json_new_array();
    for (int i = 0; i < 2; i++) ls_json_push(pair, ls_json_new_number(values[i]));
    ls_json_set(o, key, pair);
}

static ls_json *checkpoints_json(const ls_checkpoints_compared *k) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "compared", k->ncompared);
    ls_json_set(o, "equal", k->equal ? ls_json_new_integer(k->equal) : ls_json_new_null());
    ls_json_set(o, "differ", k->differ ? ls_json_new_integer(k->differ) : ls_json_new_null());
    if (!k->ndiffer) return o;
    ls_json_set_integer(o, "tensors", (int64_t)k->ntensors);
    ls_json_set_integer(o, "tensors_differ", (int64_t)k->ndiffer);
    ls_json_set(o, "tensor", ls_json_new_bytes(k->tensor, strlen(k->tensor)));
    if (!k->in_both) return o;
    ls_json_set_integer(o, "element", (int64_t)k->element);
    set_pair(o, "values", (const double[2]){(double)k->values[0], (double)k->values[1]});
    return o;
}

static ls_json *run_json(const ls_compare_run *r, bool is_first) {
    ls_json *o = ls_json_new_object();
    ls_json_set_path(o, "run", r->path);
    ls_json_set_integer(o, "steps", r->nsteps ? r->steps[r->nsteps - 1].step : 0);
    ls_json_set_number(o, "loss", r->nsteps ? r->steps[r->nsteps - 1].loss : NAN);
    ls_json_set_number(o, "val_loss", r->val_step ? r->val_loss : NAN);
    ls_json_set_integer(o, "val_step", r->val_step);
    ls_json_set_number(o, "last_val_loss", r->last_val_step ? r->last_val_loss : NAN);
    ls_json_set_integer(o, "last_val_step", r->last_val_step);
    ls_json_set_number(o, "seconds", r->seconds);
    ls_json_set_integer(o, "min_workers", r->workers[0]);
    ls_json_set_integer(o, "max_workers", r->workers[1]);
    ls_json_set(o, "changed", ls_json_share(r->changed));
    if (ls_json_count(r->sums)) ls_json_set(o, "sums", ls_json_share(r->sums));
    if (is_first) return o;
    ls_json_set_bool(o, "must_match", ls_compare_must_match(r));
    ls_json_set_bool(o, "same", !ls_compare_parted(r));
    ls_json_set_integer(o, "lines", r->nlines);
    ls_json_set(o, "parted", r->parted ? ls_json_new_integer(r->parted) : ls_json_new_null());
    if (r->parted) set_pair(o, "losses", r->losses);
    if (r->parted) set_pair(o, "grad_norms", r->norms);
    ls_json_set(o, "checkpoints", checkpoints_json(&r->checkpoints));
    return o;
}

ls_json *ls_compare_json(const ls_comparison *c) {
    ls_json *o = ls_json_new_object(), *runs = ls_json_new_array();
    for (int i = 0; i < c->n; i++) ls_json_push(runs, run_json(&c->runs[i], i == 0));
    ls_json_set(o, "runs", runs);
    ls_json_set(o, "config", ls_json_share(c->differences));
    return o;
}
