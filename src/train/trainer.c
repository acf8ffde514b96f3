/* trainer.c - see lockstep/train.h: one member of a run whose loop belongs to a program. */
#include "lockstep/train.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/floats.h"
#include "base/graves.h"
#include "base/locale.h"
#include "base/log.h"
#include "base/process.h"
#include "base/transcript.h"
#include "cluster/workers.h"
#include "coll/virtual.h"
#include "config/differences.h"
#include "config/relations.h"
#include "networks/network.h"
#include "networks/own_source.h"
#include "networks/program_model.h"
#include "optim/learning_rate.h"
#include "report/metrics.h"
#include "storage/checkpoint.h"
#include "storage/epochs.h"
#include "storage/lock.h"
#include "storage/unsaved.h"
#include "train/evaluate.h"
#include "train/feed.h"
#include "train/fit.h"
#include "train/inputs.h"
#include "train/member_state.h"
#include "train/run_log.h"
#include "train/utilization.h"

static const double LOCK_WAIT_S = 2; /* for an earlier start of the program that is ending */

struct ls_trainer {
    ls_run run;
    char *dir; /* run.dir, from the root: the program may call chdir() */
    ls_host host;
    ls_member m;
    ls_board_slot *slot;
    ls_group *own_group; /* NULL: the group is the program's */
    ls_feed *feed;
    bool closed, failed; /* failed: it can only be closed */
    int64_t steps;
    ls_checkpoint_known known;
    /* Set only in worker 0 of a trainer with a run directory: */
    ls_lock lock;
    ls_metrics *metrics;
    bool logs;        /* what this process prints is in the run's log */
    int64_t ready_ns; /* when the last collective call was done */
};

/* ---- the config ---- */

static ls_status refuse_read(void *own, uint64_t i, ls_sample *s, ls_error *e) {
    (void)own, (void)i, (void)s, (void)e;
    return LS_EINVAL;
}

/* Workers that are threads open their trainers at the same time: the first one registers the
 * program, as one with data of its own. */
static ls_status use_program(const ls_program *p, ls_error *e) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const ls_program *used;
    static ls_program copy;
    static const ls_own_source given = {.count = 1, .read = refuse_read};
    if (!p) return ls_fail(e, LS_EINVAL, "the trainer's options name no program");
    pthread_mutex_lock(&lock);
    ls_status s = LS_OK;
    if (used != p) {
        copy = *p;
        copy.source = &given;
        copy.open = NULL;
        s = ls_program_use(&copy, e);
        used = s == LS_OK ? p : NULL;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

static ls_status read_config(const ls_trainer_options *o, ls_config *c, ls_error *e) {
    LS_TRY(use_program(o->program, e));
    if (o->config)
        LS_TRY(ls_config_read(o->config, c, e));
    else
        ls_config_defaults(c);
    ls_config_sets sets = {.list = o->sets, .from = "sets"};
    while (o->sets && o->sets[sets.n]) sets.n++;
    LS_TRY(ls_config_set_all(c, &sets, e));
    LS_TRY(ls_config_check(c, o->config ? o->config : o->program->name, e));
    if (c->sync.mode != LS_SYNC_ALL_REDUCE)
        return ls_fail(e, LS_EINVAL,
                       "sync.mode: a trainer is one worker of synchronous steps; leave it out");
    if (c->train.noise_scale)
        return ls_fail(e, LS_EINVAL,
                       "train.noise_scale is measured by `lockstep train`, not in a program with a "
                       "loop of its own; leave it out");
    if (c->parallel.mesh == LS_MESH_AUTO)
        return ls_fail(e, LS_EINVAL,
                       "parallel.mesh auto is decided by `lockstep train`, not in a program with a "
                       "loop of its own; set the keys of a mesh, e.g. parallel.mesh.pipe");
    if (c->parallel.executor != LS_EXECUTOR_SEQUENTIAL) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "parallel.executor sequential plays all workers in one process; a trainer is one "
        "worker: leave it out");
}

/* ---- opening ---- */

/* The workers: those of the program's group, or those that were started together. */
static ls_status count_workers(const ls_trainer_options *o, ls_run *r, ls_error *e) {
    r->in_group = o->group != NULL;
    r->nworkers = o->group ? ls_group_size(o->group) : 1;
    if (!o->group) LS_TRY(ls_workers_started(&r->started, &r->nworkers, e));
    if (!r->started && !o->group) r->nworkers = 1;
    if (r->nworkers <= ls_config_most_workers(&r->config)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%d workers for train.virtual_workers %lld; start fewer",
                   r->nworkers, (long long)r->config.train.virtual_workers);
}

static ls_status open_group(ls_trainer *t, ls_group **g_p, ls_error *e) {
    ls_group_options o = {.arena_nbytes = ls_share_group_nbytes(&t->host.layout.plan.share),
                          .timeout_s = t->run.config.parallel.timeout_s};
    LS_TRY(ls_group_open(&o, &t->own_group, e));
    *g_p = t->own_group;
    return LS_OK;
}

static ls_status open_feed(const ls_trainer_options *o, ls_trainer *t, ls_error *e) {
    ls_feed_config f = {.config = &t->run.config,
                        .plan = &t->host.layout.plan,
                        .worker = ls_group_rank(t->m.group),
                        .count = o->count,
                        .hash = o->hash};
    LS_TRY(ls_schedule_check(&t->run.config, o->count, e));
    LS_TRY(ls_feed_open(&f, &t->feed, e));
    t->m.data = ls_feed_data(t->feed);
    return LS_OK;
}

/* ---- the checkpoint from which a run continues ---- */

/* Is it one of this run? */
static ls_status check_checkpoint(const ls_trainer *t, const char *path, ls_error *e) {
    ls_config *was = LS_NEW(ls_config);
    char *config = ls_format("%s/config.yaml", path), *unused = NULL;
    ls_data_record record;
    bool there = false;
    ls_status s = ls_config_read(config, was, e);
    if (s == LS_OK) s = ls_config_compatible(was, &t->run.config, &unused, e);
    if (s == LS_OK) s = ls_data_record_read(path, &record, &there, e);
    if (s == LS_OK && there)
        s = ls_samples_check(t->m.data->samples, &t->run.config, &record, path, e);
    if (s == LS_OK) s = ls_checkpoint_check_order(path, &t->run.config, e);
    free(unused);
    free(config);
    free(was);
    return s;
}

/* On worker 0. *step_p: 0 if the run begins. */
static ls_status find_checkpoint(const ls_trainer *t, int resume, int64_t *step_p, ls_error *e) {
    char *path = NULL;
    int64_t step = 0;
    if (!t->run.dir || !ls_file_exists(t->run.dir)) return LS_OK;
    if (resume) ls_frozen_file_repair(t->run.dir, &t->host.layout.model, &t->run.config);
    LS_TRY(ls_checkpoint_newest_good(t->run.dir, &path, &step, e));
    ls_status s = LS_OK;
    if (path && !resume)
        s = ls_fail(e, LS_EINVAL,
                    "%s: has checkpoints; set the trainer's `resume`, or name another directory",
                    t->run.dir);
    else if (path)
        s = check_checkpoint(t, path, e);
    if (s == LS_OK) *step_p = step;
    free(path);
    return s;
}

/* On worker 0: the run directory gets the file of frozen parameters. */
static ls_status save_frozen(const ls_trainer *t, int64_t step, ls_error *e) {
    const ls_model *m = &t->host.layout.model;
    if (!t->run.dir || !m->frozen_count) return LS_OK;
    LS_TRY(ls_file_make_dirs(t->run.dir, e));
    if (step == 0) return ls_frozen_file_make(t->run.dir, m, &t->run.config, e);
    char *path = ls_checkpoint_path(t->run.dir, step);
    ls_status s = ls_frozen_file_restore(t->run.dir, path, m, &t->run.config, e);
    free(path);
    return s;
}

/* On worker 0: takes the run directory, which may be new, one of an earlier start, or, with nothing
 * else in it, made by the user. */
static ls_status take_folder(ls_trainer *t, ls_error *e) {
    const char *dir = t->run.dir;
    char *config = ls_format("%s/config.yaml", dir);
    bool foreign = ls_file_exists(config) && !ls_unsaved_is_run(dir);
    ls_status s = LS_OK;
    if (foreign)
        s = ls_fail(e, LS_EINVAL,
                    "%s: is there already, and %s is no run directory; name another one for the "
                    "trainer's run",
                    config, dir);
    if (s == LS_OK) s = ls_file_make_dirs(dir, e);
    if (s == LS_OK) s = ls_lock_take(dir, LOCK_WAIT_S, &t->lock, e);
    free(config);
    return s;
}

static void note_start(ls_trainer *t, int64_t step) {
    ls_run *r = &t->run;
    t->logs = ls_transcript_try();
    if (t->logs)
        ls_run_log_open(r, (int)getpid());
    else
        ls_log("%s: has no log.txt: it is that of another trainer of this process", r->dir);
    r->core_flops = ls_utilization_core(&r->config, ls_group_near(t->m.group));
    ls_metrics_set_view(t->metrics, 1, r->nworkers);
    ls_metrics_set_quiet(t->metrics);
    ls_utilization_set(&t->m, t->metrics, false);
    ls_metrics_started(t->metrics, step, r->command, (int)getpid());
}

/* On worker 0: what `lockstep train` writes beside checkpoints. */
static ls_status open_metrics(ls_trainer *t, int64_t step, ls_error *e) {
    char *config = ls_format("%s/config.yaml", t->run.dir), *lines = ls_metrics_path(t->run.dir);
    ls_logged logged = {0};
    const ls_buf *text = &t->run.config_text;
    ls_status s = ls_file_replace(config, text->data, text->len, e);
    if (s == LS_OK) s = ls_dataset_save(t->m.data, t->run.dir, e);
    if (s == LS_OK && ls_file_exists(lines)) s = ls_metrics_cut(t->run.dir, step, &logged, e);
    if (s == LS_OK)
        s = ls_metrics_open(t->run.dir, &t->run.config, &t->host.layout.model, logged, &t->metrics,
                            e);
    if (s == LS_OK) note_start(t, step);
    free(config);
    free(lines);
    return s;
}

static ls_status begin(ls_trainer *t, int resume, ls_error *e) {
    int64_t step = 0;
    bool first = ls_group_rank(t->m.group) == 0;
    LS_TRY(ls_member_compare_settings(&t->m, e));
    LS_TRY(ls_member_join(&t->m, e));
    bool writes = first && t->run.dir;
    ls_status own = writes ? take_folder(t, e) : LS_OK;
    if (first && own == LS_OK) own = find_checkpoint(t, resume, &step, e);
    if (first && own == LS_OK) own = save_frozen(t, step, e);
    if (writes && own == LS_OK) own = open_metrics(t, step, e);
    LS_TRY(ls_member_wait(&t->m, own, e));
    LS_TRY(ls_broadcast(t->m.group, &step, 1, LS_I64, 0, e));
    char *path = t->run.dir ? ls_checkpoint_path(t->run.dir, step) : NULL;
    ls_feed_begin(t->feed, step);
    ls_status s = ls_member_begin(&t->m, step, path, e);
    free(path);
    t->steps = step;
    t->ready_ns = ls_clock_ns();
    return s;
}

static ls_status open_trainer(const ls_trainer_options *o, ls_trainer *t, ls_error *e) {
    ls_group *group = o->group;
    LS_TRY(read_config(o, &t->run.config, e));
    LS_TRY(ls_epochs_set(&t->run.config, o->count, e));
    ls_network_choose_micro(&t->run.config);
    LS_TRY(count_workers(o, &t->run, e));
    const ls_config asked = t->run.config;
    ls_worker_device_resolve(&t->run.config);
    LS_TRY(ls_fit_limit_hosts(&t->run.config, t->run.nworkers, t->run.nworkers, e));
    LS_TRY(ls_host_open(&t->host, &t->run, e));
    ls_run_write_config(&t->run, &asked);
    t->host.threads = ls_config_threads(&t->run.config, 1, ls_cores()); /* a group may have hosts */
    if (!group) LS_TRY(open_group(t, &group, e));
    t->m = ls_member_of(&t->host, group, t->slot, NULL);
    LS_TRY(open_feed(o, t, e));
    return begin(t, o->resume, e);
}

ls_status ls_trainer_open(const ls_trainer_options *o, ls_trainer **t_p, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    if (!o || !t_p) return ls_fail(e, LS_EINVAL, "ls_trainer_open(): options or t_p is NULL");
    if ((o->config && !*o->config) || (o->run && !*o->run))
        return ls_fail(e, LS_EINVAL, "ls_trainer_open(): %s is ''; NULL stands for none",
                       o->config && !*o->config ? "config" : "run");
    ls_trainer *t = LS_NEW(ls_trainer);
    t->lock = LS_LOCK_NONE;
    t->slot = aligned_alloc(_Alignof(ls_board_slot), sizeof *t->slot);
    if (!t->slot) abort();
    memset(t->slot, 0, sizeof *t->slot);
    char *command = o->run ? ls_process_own_command() : NULL;
    t->run.dir = t->dir = o->run ? ls_file_absolute(o->run) : NULL;
    t->run.command = command;
    t->run.began_ns = ls_clock_ns();
    ls_status s = open_trainer(o, t, e);
    t->run.command = NULL; /* it is recorded */
    free(command);
    t->failed = s != LS_OK;
    if (t->failed)
        ls_trainer_close(t);
    else
        *t_p = t;
    return s;
}

/* On worker 0, of a trainer whose calls have all succeeded. */
static void note_end(ls_trainer *t) {
    ls_error why;
    if (!t->metrics || t->failed) return;
    if (ls_metrics_ended(t->metrics, t->steps, &why) != LS_OK) ls_log("%s", why.msg);
}

void ls_trainer_close(ls_trainer *t) {
    LS_LOCALE_C();
    LS_FLOATS();
    static ls_graves graves = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!t || t->closed) return;
    t->closed = true;
    note_end(t);
    if (t->feed) ls_feed_end(t->feed);
    t->m.failed = t->failed;
    ls_member_leave(&t->m);
    ls_feed_close(t->feed);
    ls_group_close(t->own_group);
    ls_metrics_close(t->metrics, NULL);
    if (t->logs) ls_transcript_end();
    ls_lock_drop(&t->lock);
    ls_host_free(&t->host);
    ls_run_free(&t->run);
    free(t->dir);
    free(t->slot);
    free(ls_graves_bury(&graves, t));
}

/* ---- steps ---- */

static ls_status check_open(const ls_trainer *t, ls_error *e) {
    if (!t || t->closed) return ls_fail(e, LS_EINVAL, "the trainer is closed, or NULL");
    if (!t->failed) return LS_OK;
    return ls_fail(e, LS_EINVAL, "a step of the trainer has failed: it can only be closed");
}

int ls_trainer_rank(const ls_trainer *t) { return t ? t->m.worker : 0; }
int64_t ls_trainer_steps(const ls_trainer *t) { return t ? t->steps : 0; }
int64_t ls_trainer_end(const ls_trainer *t) { return t ? t->run.config.train.steps : 0; }
int64_t ls_trainer_nsamples(const ls_trainer *t) {
    return !t || t->closed ? 0 : ls_feed_nsamples(t->feed);
}
static bool has_sample(const ls_trainer *t, int64_t i) {
    return i >= 0 && i < ls_trainer_nsamples(t);
}
uint64_t ls_trainer_number(const ls_trainer *t, int64_t i) {
    return has_sample(t, i) ? ls_feed_number(t->feed, i) : 0;
}
ls_sample *ls_trainer_sample(ls_trainer *t, int64_t i) {
    return has_sample(t, i) ? ls_feed_sample(t->feed, i) : NULL;
}

/* Between the calls of a trainer its worker waits for the program's samples. */
static ls_status log_step(ls_trainer *t, const ls_step_in *in, const ls_step_out *out,
                          int64_t called_ns, ls_error *e) {
    int64_t waited = called_ns - t->ready_ns, all = ls_clock_ns() - t->ready_ns;
    const ls_step_time time = {.seconds = (double)all / 1e9, .data_wait_s = (double)waited / 1e9};
    t->ready_ns += all;
    return t->metrics ? ls_metrics_step(t->metrics, t->steps, in, out, &time, e) : LS_OK;
}

/* All wait for worker 0's line: a launcher would end it with the first worker that fails. */
static ls_status fail_diverged(ls_trainer *t, const ls_step_out *out, ls_error *e) {
    ls_status s = t->metrics ? ls_metrics_diverged(t->metrics, t->steps, e) : LS_OK;
    LS_TRY(ls_member_wait(&t->m, s, e));
    return ls_step_diverged(t->dir, t->steps, out, NULL, e);
}

static ls_status step(ls_trainer *t, ls_trainer_result *result, ls_error *e) {
    int64_t called = ls_clock_ns();
    ls_step_in in = ls_member_inputs(&t->m, t->steps);
    ls_step_out out = {0};
    LS_TRY(ls_feed_check(t->feed, e));
    ls_feed_hand_over(t->feed);
    LS_TRY(ls_member_step(&t->m, &in, &out, e));
    t->steps++;
    ls_feed_begin(t->feed, t->steps);
    if (result) *result = (ls_trainer_result){t->steps, out.loss, out.grad_norm, in.lr};
    if (!out.skipped && (!isfinite(out.loss) || !isfinite(out.grad_norm)))
        return fail_diverged(t, &out, e);
    return log_step(t, &in, &out, called, e);
}

ls_status ls_trainer_step(ls_trainer *t, ls_trainer_result *result, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_open(t, e));
    ls_status s = step(t, result, e);
    t->failed = s != LS_OK;
    return s;
}

/* ---- evaluation ---- */

static ls_trainer_score score_of(const ls_evaluation *v) {
    _Static_assert((int)LS_TRAINER_METRICS == (int)LS_MEASURES &&
                       (int)LS_TRAINER_METRIC_NAME == (int)LS_MEASURE_NAME,
                   "a score has room for all metrics");
    ls_trainer_score x = {.loss = v->loss, .nmetrics = v->nmetrics};
    for (int i = 0; i < v->nmetrics; i++) {
        memcpy(x.metrics[i].name, v->metrics[i].name, sizeof x.metrics[i].name);
        x.metrics[i].value = v->metrics[i].value;
    }
    return x;
}

ls_status ls_trainer_evaluate(ls_trainer *t, const ls_own_source *given, ls_trainer_score *out,
                              ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    ls_source *source = NULL;
    ls_evaluation v;
    LS_TRY(check_open(t, e));
    LS_TRY(ls_own_source_of(given, &t->host.layout.model, &source, e));
    ls_samples samples = {.val = source, .nval = source->count};
    ls_dataset d = {.samples = &samples, .nval = source->count, .sample_nbytes = source->nbytes};
    ls_status s =
        ls_evaluate(&t->m, &(ls_evaluate_request){.data = &d, .steps = t->steps}, &v, NULL, e);
    ls_source_close(source);
    if (s == LS_OK && out) *out = score_of(&v);
    if (s == LS_OK && t->metrics) s = ls_metrics_evaluation(t->metrics, t->steps, &v, e);
    t->ready_ns = ls_clock_ns();
    return s;
}

/* ---- saving ---- */

static ls_status write_weights(const ls_trainer *t, const char *path, ls_error *e) {
    ls_train_state s = ls_member_state(&t->m, t->steps);
    return ls_frozen_write_all(&s, t->m.frozen.file.values, &t->run.config, path, e);
}

static ls_status write_checkpoint(ls_trainer *t, ls_error *e) {
    const ls_model *m = &t->host.layout.model;
    if (!ls_frozen_file_is_saved(t->run.dir, m)) /* it was deleted */
        LS_TRY(ls_frozen_file_save(t->run.dir, m, t->m.frozen.file.values, e));
    return ls_member_write(&t->m, t->steps, &(ls_best){0}, &t->known, e);
}

/* Collects the state on worker 0, which writes it. */
static ls_status save(ls_trainer *t, const char *path, bool whole, ls_error *e) {
    LS_TRY(check_open(t, e));
    ls_status s = ls_inputs_check(NULL, &t->m.frozen.file, e);
    if (s == LS_OK && !whole && t->m.worker == 0 && (!path || !*path))
        s = ls_fail(e, LS_EINVAL, "the path of the weights is empty, or NULL");
    LS_TRY(ls_member_wait(&t->m, s, e));
    LS_TRY(ls_world_collect(&t->m.worlds[0], &t->host.layout.plan.share, e));
    if (whole)
        LS_TRY(ls_world_collect_errors(&t->m.worlds[0], &t->host.layout.plan.share, t->steps, e));
    if (t->m.worker == 0) s = whole ? write_checkpoint(t, e) : write_weights(t, path, e);
    ls_world_drop_collected(&t->m.worlds[0], &t->host.layout.plan.share);
    s = ls_member_wait(&t->m, s, e);
    t->ready_ns = ls_clock_ns();
    return s;
}

ls_status ls_trainer_save(ls_trainer *t, const char *path, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    return save(t, path, false, e);
}

ls_status ls_trainer_checkpoint(ls_trainer *t, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_open(t, e));
    if (!t->run.dir)
        return ls_fail(e, LS_EINVAL, "the trainer has no run directory for checkpoints");
    return t->steps > 0 ? save(t, NULL, true, e) : LS_OK;
}
