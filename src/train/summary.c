/* summary.c - see summary.h. */
#include "train/summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/async.h"
#include "async/bounded.h"
#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "config/key.h"
#include "infer/results.h"
#include "state/store_backup.h"
#include "storage/checkpoint.h"

/* The longest wait of a worker of this host for a checkpoint that was written beside training. */
static void log_held(const ls_loop *l) {
    double held = (double)atomic_load(&l->host->notes->snapshot.held_ns) / 1e9;
    double part =
        l->pace.seconds > 0 ? held * (double)l->pace.nsteps / l->pace.seconds : 0; /* of a step */
    if (part < 0.01) return;
    if (part < 1)
        ls_log("checkpoints held workers up for %.1f ms at most: %.0f%% of a step", held * 1e3,
               100 * part);
    else
        ls_log("a checkpoint held workers up for %.1f ms at most: the time of %.3g steps",
               held * 1e3, part);
}

static void log_data_wait(const ls_loop *l) {
    if (l->pace.seconds > 0)
        ls_log("waited for data: %.1f%% of the time", 100 * l->pace.data_wait_s / l->pace.seconds);
}

/* Model FLOPs utilization. */
static void log_used(const ls_loop *l, ls_metrics_use u) {
    if (u.peak <= 0) return;
    ls_log("computed at %.4g GFLOP/s, %.1f%% of the peak of the cores (%.4g in %s)", u.flops / 1e9,
           100 * u.flops / u.peak, u.peak / 1e9,
           l->run->config.train.compute == LS_COMPUTE_BF16 ? "bf16" : "f32");
}

static void log_staleness(const ls_loop *l) {
    if (!l->async.run) return;
    ls_buf text = {0};
    ls_staleness_write(ls_async_staleness_of(l->async.run), &text);
    ls_log("staleness of gradients: %s", text.data);
    ls_buf_free(&text);
}

static void log_shares(const ls_loop *l) {
    if (!l->m.bounded) return;
    ls_buf text = {0};
    ls_bounded_shares(l->m.bounded, &text);
    ls_log("gradients that each worker has computed: %s", text.data);
    ls_buf_free(&text);
}

/* Samples, and of models of tokens these. */
static void print_noise(const ls_config *c, ls_noise_scale s) {
    if (!c->train.noise_scale) return;
    ls_buf text = {0};
    if (isfinite(s.simple)) {
        ls_buf_printf(&text, "%.4g samples", s.simple);
        if (ls_config_has_tokens(c))
            ls_buf_printf(&text, " (%.4g tokens)", s.simple * ls_config_units(c));
    } else {
        ls_buf_printf(&text, "not known: noise hides the gradient; train longer, or with a larger "
                             "batch");
    }
    if (isfinite(s.fit)) ls_buf_printf(&text, "; by a line through all levels %.4g", s.fit);
    if (isfinite(s.misfit)) ls_buf_printf(&text, ", misfit %.1f%%", 100 * s.misfit);
    ls_print("gradient noise scale at the end: %s\n", text.data);
    ls_buf_free(&text);
}

static void print_best(const ls_loop *l) {
    const ls_run *r = l->run;
    long long step = (long long)l->val.best.step,
              n = ls_best_since(&l->val.best, &r->config, l->steps);
    if (!ls_best_is_sought(&r->config) || step == 0) return;
    char *path = ls_checkpoint_path(r->dir, step);
    bool there = ls_file_exists(path);
    if (l->steps < r->config.train.steps)
        ls_print("\nstopped early after step %lld: no lower validation loss in %lld evaluation%s; ",
                 (long long)l->steps, n, ls_plural(n));
    char loss[LS_LOSS_TEXT];
    ls_print("the best is step %lld (loss %s)%s%s%s\n", step, ls_loss_text(l->val.best.loss, loss),
             there ? ": " : ", whose checkpoint could not be written", there ? r->dir : "",
             there ? "/checkpoints/best" : "");
    free(path);
}

/* One line if the validation loss was lower before, by more than a hundredth. The one after the
 * last step is comparable if all are over the whole validation part. */
static void print_risen(const ls_loop *l) {
    const ls_best *b = &l->val.best;
    const ls_run *r = l->run;
    bool whole = (uint64_t)b->nsamples >= l->data.nval;
    double last = whole ? l->val.latest.loss : b->val_loss;
    long long step = whole ? (long long)l->steps : (long long)b->val_step;
    if (ls_best_is_sought(&r->config) || b->step == 0 || b->step >= step) return;
    if (!(last - b->loss > 0.01 * fabs(b->loss))) return;
    char *path = ls_checkpoint_path(r->dir, b->step);
    if (ls_file_exists(path))
        ls_print(
            "the validation loss has risen since step %lld: from %.4f to %.4f after step %lld; "
            "the checkpoint of step %lld is %s\n",
            (long long)b->step, b->loss, last, step, (long long)b->step, path);
    else
        ls_print(
            "the validation loss has risen since step %lld: from %.4f to %.4f after step %lld; "
            "checkpoint.best: on retains the best checkpoint, and train.patience ends such a "
            "run early\n",
            (long long)b->step, b->loss, last, step);
    free(path);
}

/* The loss on a text, beside that of a bigram model, and the curve with its level. */
static ls_status print_text_loss(const ls_loop *l, ls_error *e) {
    const ls_corpus *c = &l->data.text;
    size_t nval = (size_t)c->nval * (size_t)l->run->config.model.context + 1;
    double bigram = 0, nbytes = 0;
    LS_TRY(ls_corpus_bigram(c, nval, &bigram, &nbytes, e));
    ls_evaluation level = ls_evaluation_of(bigram * (double)(nval - 1), nbytes, nval - 1, 1);
    LS_TRY(ls_report_curve(l->run->dir, bigram, e));
    ls_print("\nvalidation loss %.4f nats/token, %.4f bits/byte; bigram model of the same tokens "
             "%.4f, %.4f\n",
             l->val.latest.loss, l->val.latest.bits_per_byte, level.loss, level.bits_per_byte);
    return LS_OK;
}

static ls_status print_loss(const ls_loop *l, ls_error *e) {
    if (ls_dataset_is_text(&l->data)) return print_text_loss(l, e);
    LS_TRY(ls_report_curve(l->run->dir, 0, e));
    ls_buf metrics = {0};
    ls_evaluation_print(&l->val.latest, &metrics);
    char loss[LS_LOSS_TEXT];
    ls_print("\nvalidation loss %s%s%s, of %llu sample%s\n", ls_loss_text(l->val.latest.loss, loss),
             ls_config_has_token_losses(&l->run->config) ? " nats/token" : "",
             metrics.len ? metrics.data : "", (unsigned long long)l->val.latest.nsamples,
             ls_plural((int64_t)l->val.latest.nsamples));
    ls_buf_free(&metrics);
    return LS_OK;
}

ls_summary ls_summary_of(const ls_loop *l) {
    const ls_metrics *m = l->out.metrics;
    return m ? (ls_summary){ls_metrics_noise(m), ls_metrics_used(m)} : (ls_summary){0};
}

ls_status ls_summary_print(ls_loop *l, const ls_summary *x, ls_error *e) {
    const ls_run *r = l->run;
    int64_t all = r->config.train.steps;
    ls_log_end_status();
    int64_t nbacked = l->host->runtime->survives ? ls_store_nbackups(l->host->store) : 0;
    if (nbacked)
        ls_log("%lld time%s a backup worker had a virtual worker's gradient first",
               (long long)nbacked, ls_plural(nbacked));
    log_held(l);
    log_data_wait(l);
    log_used(l, x->used);
    log_staleness(l);
    log_shares(l);
    if (l->steps < all) ls_validation_draw(l, true);
    if (l->steps < all && ls_loop_is_complete(l)) {
        print_best(l);
        if (fflush(stdout) != 0 || ferror(stdout)) ls_log("standard output can't be written");
        return LS_OK;
    }
    if (l->steps < all) {
        ls_log("stopped after step %lld of %lld; continue%s with: %s", (long long)l->steps,
               (long long)all, r->started ? ", under the same launcher," : "", r->again);
        return LS_OK;
    }
    LS_TRY(print_loss(l, e));
    ls_print("loss curve: %s/loss.svg; checkpoint: %s/checkpoints/step-%lld\n", r->dir, r->dir,
             (long long)all);
    print_noise(&r->config, x->noise);
    ls_results_write(&l->m.layout->model, &l->data, l->val.records, r->dir);
    print_risen(l);
    print_best(l);
    if (fflush(stdout) != 0 || ferror(stdout)) ls_log("standard output can't be written");
    return LS_OK;
}

/* The keys that were set to other values than the run has had: "; not used: optim.lr". */
static void put_unused(const ls_loop *l, ls_buf *out) {
    const ls_run *r = l->run;
    char *path = ls_checkpoint_path(r->dir, l->steps), *file = ls_format("%s/config.yaml", path);
    ls_config *was = LS_NEW(ls_config);
    bool any = false, read = ls_config_read(file, was, NULL) == LS_OK;
    for (int i = 0; read && i < r->nsets; i++) {
        char *key = ls_format("%.*s", (int)strcspn(r->sets[i], "="), r->sets[i]);
        const ls_config_key *k = ls_config_key_find(key);
        if (k && !ls_config_key_is_equal(was, &r->config, k)) {
            ls_buf_printf(out, "%s%s", any ? ", " : "; not used: ", key);
            any = true;
        }
        free(key);
    }
    free(was);
    free(file);
    free(path);
}

void ls_summary_complete(const ls_loop *l) {
    const ls_config *c = &l->run->config;
    ls_buf unused = {0};
    ls_buf_append(&unused, "", 0);
    put_unused(l, &unused);
    if (l->steps >= c->train.steps)
        ls_log("%s: is complete: step %lld of %lld; raise %s to train on%s", l->run->dir,
               (long long)l->steps, (long long)c->train.steps,
               c->train.epochs > 0 ? "train.epochs" : "train.steps", unused.data);
    else
        ls_log("%s: is complete: stopped early after step %lld, with the best at step %lld; raise "
               "train.patience (%lld) to train on%s",
               l->run->dir, (long long)l->steps, (long long)l->val.best.step,
               (long long)c->train.patience, unused.data);
    ls_buf_free(&unused);
}
