/* train.c - see train.h: what the supervisor does before and after the workers. */
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "data/bigram.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/report.h"
#include "train/worker.h"

static ls_status read_config(const ls_train_options *o, ls_run *r, ls_error *e) {
    LS_TRY(ls_config_read(o->config, &r->config, e));
    for (int i = 0; i < o->nsets; i++) LS_TRY(ls_config_set(&r->config, o->sets[i], e));
    LS_TRY(ls_config_check(&r->config, o->config, e));
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e)); /* workers will, too: a bad LOCKSTEP_CPU is told before them */
    int64_t V = r->config.train.virtual_workers;
    r->nworkers = ls_run_workers(&r->config, o->nworkers);
    if (r->nworkers > V)
        return ls_fail(e, LS_EINVAL,
                       "%s: %d workers for train.virtual_workers %lld; use -n %lld or fewer, or "
                       "raise train.virtual_workers",
                       o->config, r->nworkers, (long long)V, (long long)V);
    return LS_OK;
}

static char *in_run(const ls_run *r, const char *name) { return ls_format("%s/%s", r->dir, name); }

static ls_status write_config(const ls_run *r, ls_error *e) {
    char *path = in_run(r, "config.yaml");
    ls_status s = ls_file_replace(path, r->config_text.data, r->config_text.len, e);
    free(path);
    return s;
}

/* ---- a new run: nothing is written until everything but the disk is known to be right ---- */

static ls_status fill_folder(const ls_run *r, ls_error *e) {
    char *checkpoints = in_run(r, "checkpoints");
    ls_status s = ls_file_make_dirs(checkpoints, e);
    free(checkpoints);
    if (s == LS_OK) s = write_config(r, e);
    if (s == LS_OK) s = ls_corpus_save(&r->corpus, r->dir, e);
    if (s != LS_OK) ls_file_remove_tree(r->dir, NULL);
    return s;
}

static ls_status prepare_new(ls_run *r, ls_error *e) {
    if (ls_file_exists(r->dir))
        return ls_fail(e, LS_EINVAL,
                       "%s: exists already; go on from it with --resume, or choose another folder "
                       "with -o",
                       r->dir);
    LS_TRY(ls_corpus_make(&r->corpus, &r->config, e));
    LS_TRY(ls_run_build(r, e));
    return fill_folder(r, e);
}

/* ---- going on ---- */

static ls_status check_config(const ls_run *r, ls_error *e) {
    char *path = in_run(r, "config.yaml"), *note = NULL;
    ls_config was;
    ls_status s = ls_config_read(path, &was, e);
    if (s == LS_OK) s = ls_config_compatible(&was, &r->config, &note, e);
    if (note) ls_log("%s", note);
    free(note);
    free(path);
    return s;
}

static ls_status load_newest(ls_run *r, ls_error *e) {
    char *path = NULL;
    LS_TRY(ls_checkpoint_newest(r->dir, &path, e));
    ls_train_state state = {
        .model = &r->model, .params = r->world.params, .m = r->world.m, .v = r->world.v};
    ls_status s = ls_checkpoint_load(path, &state, e);
    r->first_step = state.step;
    if (s == LS_OK) ls_log("going on from %s", path);
    free(path);
    return s;
}

static ls_status prepare_resume(ls_run *r, ls_error *e) {
    if (!ls_file_exists(r->dir))
        return ls_fail(e, LS_EINVAL, "%s: does not exist; leave out --resume to begin it", r->dir);
    LS_TRY(check_config(r, e));
    LS_TRY(ls_corpus_open(&r->corpus, r->dir, &r->config, e));
    LS_TRY(ls_run_build(r, e));
    LS_TRY(load_newest(r, e));
    LS_TRY(write_config(r, e)); /* the first change to the folder */
    return ls_metrics_cut(r->dir, r->first_step, e);
}

/* One program a run at a time; the lock goes with the process. */
static ls_status lock_folder(const ls_run *r, int *fd_p, ls_error *e) {
    int fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", r->dir, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return ls_fail(e, LS_EINVAL, "%s: is in use by another lockstep", r->dir);
    }
    *fd_p = fd;
    return LS_OK;
}

/* ---- the whole ---- */

static ls_status summarize(ls_run *r, const char *config, ls_error *e) {
    int64_t steps = (int64_t)r->report[LS_REPORT_STEP];
    if (steps < r->config.train.steps) {
        ls_log("stopped after step %lld of %lld; go on with: lockstep train %s -o %s --resume",
               (long long)steps, (long long)r->config.train.steps, config, r->dir);
        return LS_OK;
    }
    const ls_corpus *c = &r->corpus;
    size_t nval = (size_t)c->nval * (size_t)r->config.model.context + 1;
    double nbytes = 0;
    for (size_t i = 1; i < nval; i++) nbytes += c->nbytes[c->val[i]];
    double bigram = ls_bigram_loss(c->train, (size_t)(c->val - c->train), c->val, nval,
                                   (uint32_t)r->config.model.vocab);
    ls_evaluation level = ls_evaluation_of(bigram * (double)(nval - 1), nbytes, nval - 1, 1);
    LS_TRY(ls_report_curve(r->dir, bigram, e));
    printf("\nvalidation loss %.4f nats/token, %.4f bits/byte; bigram model of the same tokens "
           "%.4f, %.4f\n",
           r->report[LS_REPORT_VAL_LOSS], r->report[LS_REPORT_VAL_BITS], level.loss,
           level.bits_per_byte);
    printf("loss curve: %s/loss.svg; checkpoint: %s/checkpoints/step-%lld\n", r->dir, r->dir,
           (long long)steps);
    return LS_OK;
}

static ls_status run_workers(ls_run *r, ls_error *e) {
    int lock = -1;
    LS_TRY(lock_folder(r, &lock, e));
    const ls_config *c = &r->config;
    ls_log("%s: %zu parameters, %llu training samples of %lld tokens, %d worker%s (%s), %lld "
           "virtual workers",
           r->dir, r->model.count, (unsigned long long)r->corpus.ntrain,
           (long long)c->model.context, r->nworkers, r->nworkers == 1 ? "" : "s",
           c->parallel.executor == LS_EXECUTOR_SEQUENTIAL ? "sequential"
           : c->parallel.transport == LS_TRANSPORT_SHM    ? "processes"
                                                          : "threads",
           (long long)c->train.virtual_workers);
    ls_status s = ls_run_launch(r, ls_train_worker, e);
    if (ls_log_is_terminal()) fputc('\n', stderr);
    close(lock);
    return s;
}

static ls_status train(const ls_train_options *o, ls_run *r, ls_error *e) {
    LS_TRY(read_config(o, r, e));
    ls_config_write(&r->config, &r->config_text);
    LS_TRY(o->resume ? prepare_resume(r, e) : prepare_new(r, e));
    if (r->first_step >= r->config.train.steps) {
        ls_log("%s: is complete: step %lld of %lld; raise train.steps to train on", r->dir,
               (long long)r->first_step, (long long)r->config.train.steps);
        return LS_OK;
    }
    LS_TRY(run_workers(r, e));
    return summarize(r, o->config, e);
}

ls_status ls_train(const ls_train_options *o, ls_error *e) {
    ls_run r = {.dir = o->run, .began_ns = o->began_ns, .region = {.fd = -1}};
    ls_status s = train(o, &r, e);
    ls_run_free(&r);
    return s;
}
