/* begin.c - see begin.h. */
#include "train/begin.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "async/async.h"
#include "async/bounded.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "coll/virtual.h"
#include "config/differences.h"
#include "config/relations.h"
#include "optim/schedule.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"
#include "train/async_steps.h"
#include "train/layout.h"
#include "train/reference.h"
#include "train/run_log.h"
#include "train/save.h"
#include "train/sync.h"
#include "train/utilization.h"

/* For a worker that has had the directory open since an earlier view. */
static ls_status reuse_folder(ls_loop *l, ls_error *e) {
    l->folder->notes->step = ls_store_trained(l->host->store);
    bool whole = ls_folder_has_data(l->run->dir, &l->run->config, &l->host->layout.model);
    return whole ? LS_OK : ls_save_restore_folder(l, e);
}

/* The process that starts all workers may have opened the directory for them. */
static ls_status take_folder(ls_loop *l, ls_error *e) {
    ls_folder_phase phase = ls_folder_phase_of(&l->host->notes->folder);
    if (l->metrics) return reuse_folder(l, e);
    if (!l->folder) l->folder = l->host->folder;
    ls_folder_run own = ls_host_folder_run(l->host);
    if (!l->folder) LS_TRY(ls_folder_open(&own, phase != LS_FOLDER_UNTOUCHED, &l->folder, e));
    return phase == LS_FOLDER_MADE ? ls_folder_follow(l->folder, e)
                                   : ls_folder_take_up(l->folder, e);
}

/* What earlier views have done. All workers use the values of worker 0, whose host took part in
 * those views; each host notes them for later views. */
typedef struct agreed {
    int64_t steps; /* complete */
    int64_t n;     /* workers of worker 0's host */
    int64_t begun_at, saved, evaluated, data;
    int64_t mark[2]; /* of the run directory (storage/lock.h); 0: none */
} agreed;

/* May workers be on other hosts than worker 0? */
static bool is_apart(const ls_loop *l) {
    return l->host->survival.view.nhosts > 1 || l->run->started;
}

static void to_words(const char *number, int64_t words[2]) {
    ls_hash h = {0};
    if (*number && !ls_hash_parse(number, &h)) h = (ls_hash){0};
    words[0] = (int64_t)h.hi;
    words[1] = (int64_t)h.lo;
}

/* Has this worker the directory of worker 0? */
static ls_status check_directory(const ls_loop *l, const agreed *a, ls_error *e) {
    char text[LS_LOCK_NUMBER];
    int64_t own[2];
    if (!is_apart(l) || !(a->mark[0] | a->mark[1])) return LS_OK;
    LS_TRY(ls_lock_mark_of(l->run->dir, text, e));
    to_words(text, own);
    if (own[0] == a->mark[0] && own[1] == a->mark[1]) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: %s; name the directory of the run with -o, the same on all hosts, on a "
                   "shared file system",
                   l->run->dir,
                   ls_file_exists(l->run->dir) ? "is another directory than that of worker 0"
                                               : "does not exist on this host");
}

static agreed own_agreed(const ls_loop *l) {
    ls_run_notes *notes = l->host->notes;
    agreed a = {.steps = l->folder ? l->folder->notes->step : 0, .n = l->host->survival.view.n};
    if (l->folder && ls_folder_phase_of(&notes->folder) != LS_FOLDER_MADE)
        atomic_store(&notes->folder.step, a.steps);
    a.begun_at = atomic_load(&notes->folder.step);
    a.saved = atomic_load(&notes->saved);
    a.evaluated = atomic_load(&notes->evaluated);
    a.data = atomic_load(&notes->data);
    char mark[LS_LOCK_NUMBER];
    if (l->folder && is_apart(l) && ls_lock_mark(&l->folder->lock, mark)) to_words(mark, a.mark);
    return a;
}

static ls_status agree_on_done(ls_loop *l, agreed *a_p, ls_error *e) {
    ls_run_notes *notes = l->host->notes;
    agreed a = own_agreed(l);
    LS_TRY(ls_broadcast(l->m.group, &a, sizeof a / sizeof(int64_t), LS_I64, 0, e));
    l->steps = a.steps;
    l->shared = ls_snapshot_is_shared(&l->m.layout->plan, (int)a.n);
    atomic_store(&notes->folder.step, a.begun_at);
    atomic_store(&notes->saved, a.saved);
    atomic_store(&notes->evaluated, a.evaluated);
    atomic_store(&notes->data, a.data);
    ls_folder_set_made(&notes->folder);
    l->saved = a.saved - 1;
    l->evaluated = a.evaluated - 1;
    *a_p = a;
    return LS_OK;
}

/* A run has the same samples in all its views, whatever happens to its directory. A run that began
 * before tokens were recorded gets a record. */
static ls_status open_data(ls_loop *l, ls_error *e) {
    const ls_run *r = l->run;
    LS_TRY(ls_dataset_open(&l->data, r->dir, &r->config, &l->host->layout.model, e));
    LS_TRY(ls_schedule_check(&r->config, l->data.ntrain, e));
    ls_hash h = ls_dataset_identity(&l->data);
    ls_run_notes *notes = l->host->notes;
    int64_t mark = (int64_t)((h.hi ^ h.lo) | 1);
    int64_t was = atomic_load(&notes->data); /* 0: not known yet */
    if (was && was != mark) return ls_dataset_fail_changed(&l->data, r->dir, e);
    atomic_store(&notes->data, mark);
    return ls_group_rank(l->m.group) == 0 ? ls_dataset_save(&l->data, r->dir, e) : LS_OK;
}

/* The best evaluation so far, as earlier views noted it; if their state is lost, as the manifests
 * of the checkpoints record it. */
static ls_status agree_on_best(ls_loop *l, ls_error *e) {
    ls_run_notes *notes = l->host->notes;
    int64_t wanted = l->run->config.train.eval_samples, most = (int64_t)l->data.nval;
    ls_best b = {.nsamples = wanted < most ? wanted : most};
    if (l->folder && l->follows)
        ls_best_load(&b, &notes->best);
    else if (l->folder)
        ls_best_find(&b, l->run->dir, l->steps);
    LS_TRY(ls_broadcast(l->m.group, &b, sizeof b, LS_U8, 0, e));
    l->best = b;
    ls_best_save(&b, &notes->best);
    return LS_OK;
}

ls_status ls_begin_folder(ls_loop *l, ls_error *e) {
    bool first = ls_group_rank(l->m.group) == 0;
    LS_TRY(ls_member_wait(&l->m, first ? take_folder(l, e) : LS_OK, e));
    agreed a;
    LS_TRY(agree_on_done(l, &a, e));
    ls_status s = check_directory(l, &a, e);
    if (l->run->started) ls_corpus_free(l->host->made);     /* of a worker that did not write it */
    if (s == LS_OK && !l->data.ntrain) s = open_data(l, e); /* else an earlier view opened it */
    LS_TRY(ls_agree(l->m.group, s, e));
    return agree_on_best(l, e);
}

ls_status ls_begin_is_over(ls_loop *l, bool *over_p, ls_error *e) {
    int32_t lacks = l->steps == l->run->config.train.steps && l->folder &&
                    ls_history_lacks_evaluation(l->run->dir, l->steps);
    LS_TRY(ls_broadcast(l->m.group, &lacks, 1, LS_I32, 0, e));
    *over_p = !lacks;
    return LS_OK;
}

/* The largest line of the memory table; `lockstep plan` prints all of it. */
static void log_memory(const ls_host *h) {
    const ls_plan *p = &h->layout.plan;
    ls_memory_config how =
        ls_layout_memory_config(&h->run->config, p->share.nworkers, p->share.nworkers);
    ls_memory m;
    ls_plan_memory(p, &how, &m);
    ls_purpose most = ls_memory_worst(&m);
    ls_log("memory of a worker: %.1f MB at most, %.1f of it %s", (double)m.peak / 1e6,
           (double)m.nbytes[most] / 1e6, ls_purpose_name(most));
}

/* More threads than cores take turns: steps get slower, not faster. */
static void warn_crowded(const ls_member *m) {
    int threads = (int)m->run->config.parallel.threads, near = ls_group_near(m->group);
    int cores = ls_cores_among(near), fit = cores / near;
    char advice[64];
    if ((long long)near * threads <= cores) return;
    if (fit > 0)
        snprintf(advice, sizeof advice, "parallel.threads=%d", fit);
    else
        snprintf(advice, sizeof advice, "%d worker%s", cores, cores == 1 ? "" : "s");
    ls_log(
        "warning: %d worker%s with %d thread%s each, on %d core%s: they take turns; %s would fit",
        near, near == 1 ? "" : "s", threads, threads == 1 ? "" : "s", cores, cores == 1 ? "" : "s",
        advice);
}

/* Worker 0 logs the beginning of a run. Later views are logged by the process that starts
 * workers. */
static void log_beginning(const ls_loop *l) {
    const ls_run *r = l->run;
    int n = r->nasync ? r->nasync : l->m.nworkers;
    if (l->host->survival.view.id.number > 1) return;
    const ls_model *model = &l->m.layout->model;
    ls_buf samples = {0};
    if (model->frozen_count)
        ls_buf_printf(&samples, "%zu of them trained, ", model->count - model->frozen_count);
    ls_dataset_describe(&l->data, &samples);
    ls_log("%s: %zu parameters, %s, %d worker%s (%s), %lld virtual worker%s", r->dir, model->count,
           samples.data, n, n == 1 ? "" : "s", ls_run_workers_name(r),
           (long long)r->config.train.virtual_workers, ls_plural(r->config.train.virtual_workers));
    ls_buf_free(&samples);
    log_memory(l->host);
    warn_crowded(&l->m);
    ls_log("first step after %.2f s", (double)(ls_clock_ns() - r->began_ns) / 1e9);
}

/* Keys that have other values than in the checkpoint from which the run continues. */
static ls_status write_changes(const ls_loop *l, int64_t steps, ls_error *e) {
    const ls_run *r = l->run;
    char *path = ls_checkpoint_path(r->dir, steps), *config = ls_format("%s/config.yaml", path);
    ls_config *was = LS_NEW(ls_config);
    char *note = NULL;
    ls_status s = LS_OK;
    bool compatible = ls_file_exists(config) && ls_config_read(config, was, NULL) == LS_OK &&
                      ls_config_compatible(was, &r->config, &note, NULL) == LS_OK;
    ls_json *keys = compatible ? ls_config_changes(was, &r->config) : NULL;
    if (keys) s = ls_metrics_changed(l->metrics, steps + 1, keys, e);
    ls_json_free(keys);
    free(note);
    free(was);
    free(config);
    free(path);
    return s;
}

/* Lines of steps that will be repeated are cut off first. Lines of an earlier view stay. */
static ls_status open_new_metrics(ls_loop *l, ls_error *e) {
    const ls_run *r = l->run;
    bool follows = l->host->survival.view.id.number > 1, old = false;
    ls_logged logged = {0};
    LS_TRY(ls_folder_begin_training(l->folder, &old, e));
    ls_run_log_open(r, ls_lock_read(r->dir).pid);
    int64_t steps = follows ? INT64_MAX : l->folder->notes->step;
    if (old) LS_TRY(ls_metrics_cut(r->dir, steps, &logged, e));
    if (old) LS_TRY(ls_answers_cut(r->dir, steps, &l->answered, e));
    LS_TRY(ls_metrics_open(r->dir, &r->config, &l->m.layout->model, logged, &l->metrics, e));
    return old && !follows && steps > 0 ? write_changes(l, steps, e) : LS_OK;
}

/* Views that follow have the same start. */
static void note_start(const ls_loop *l) {
    const ls_lock_named holder = ls_lock_read(l->run->dir);
    ls_metrics_started(l->metrics, l->steps, l->run->command, holder.pid);
}

/* Metrics of an earlier view stay open. The line of the latest step may be missing. */
static ls_status open_metrics(ls_loop *l, ls_error *e) {
    const ls_host *h = l->host;
    ls_store_note last;
    bool opens = !l->metrics;
    if (opens) LS_TRY(open_new_metrics(l, e));
    ls_folder_stay(l->folder);
    ls_metrics_set_view(l->metrics, h->runtime->survives ? h->survival.view.id.number : 1,
                        l->run->nasync ? l->run->nasync : h->layout.plan.share.nworkers);
    bool first = opens && h->survival.view.id.number <= 1;
    ls_utilization_set(&l->m, l->metrics, first);
    if (first) note_start(l);
    bool known = h->runtime->survives && ls_store_last_note(h->store, &last) &&
                 ls_sync_whole(&h->layout.plan, &last);
    return known ? ls_metrics_missing(l->metrics, &last, e) : LS_OK;
}

/* A log that breaks off is no reason to end a run that other views have begun. */
static ls_status open_mllog(ls_loop *l, int64_t ready_ns, ls_error *e) {
    const ls_run *r = l->run;
    const ls_plan *p = &l->m.layout->plan;
    bool first = l->host->survival.view.id.number <= 1;
    const ls_mllog_run own = {.dir = r->dir,
                              .continues = r->resumes || !first,
                              .config = &r->config,
                              .model = &l->m.layout->model,
                              .optimizer = ls_optim_rules[p->share.optim.groups[0].rule].name,
                              .nworkers = r->nasync ? r->nasync : l->m.nworkers,
                              .stages = p->share.ncells,
                              .ntrain = l->data.ntrain,
                              .nval = l->data.nval,
                              .began_ns = r->began_ns,
                              .ready_ns = ready_ns};
    ls_error why;
    if (!l->job->mllog || l->mllog) return LS_OK;
    ls_status s = ls_mllog_open(l->job->mllog, &own, l->steps, &l->mllog, &why);
    if (s == LS_OK || first) return s == LS_OK ? s : ls_fail(e, s, "%s", why.msg);
    ls_log("%s; the training continues without a log", why.msg);
    return LS_OK;
}

ls_status ls_begin_steps(ls_loop *l, ls_error *e) {
    const ls_run *r = l->run;
    int64_t ready_ns = ls_clock_ns();
    l->m.data = &l->data;
    LS_TRY(ls_member_join(&l->m, e));
    if (r->nasync) LS_TRY(ls_async_steps_open(l, e));
    char *path = ls_checkpoint_path(r->dir, l->steps);
    ls_status s = ls_member_begin(&l->m, l->steps, path, e);
    free(path);
    LS_TRY(s);
    ls_prompts_close(&l->prompts); /* of an earlier view */
    LS_TRY(ls_prompts_open(&l->prompts, &l->m, e));
    LS_TRY(ls_reference_begin(l, e));
    if (l->m.worker == 0) {
        s = open_mllog(l, ready_ns, e);
        if (s == LS_OK) s = open_metrics(l, e);
        log_beginning(l);
        ls_in_flight_config flight = {l->m.slot, r->config.train.steps, r->config.survival.stop_s,
                                      LS_IN_FLIGHT_S};
        if (s == LS_OK && !l->flight) s = ls_in_flight_open(&flight, &l->flight, e);
    }
    ls_tracer_close(&l->tracer);
    ls_traced_workers traced = ls_member_traced(&l->m);
    ls_tracer_open(&l->tracer, &l->job->trace, &traced, l->steps, r->config.train.steps);
    if (s == LS_OK && l->async) s = ls_async_begin(l->async, e);
    if (s == LS_OK && l->m.bounded) ls_bounded_stepped(l->m.bounded, l->steps);
    return ls_agree(l->m.group, s, e);
}
