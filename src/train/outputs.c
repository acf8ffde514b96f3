/* outputs.c - see outputs.h. */
#include "train/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "config/differences.h"
#include "storage/checkpoint.h"
#include "storage/lock.h"
#include "train/division.h"
#include "train/layout.h"
#include "train/loop.h"
#include "train/replica_sync.h"
#include "train/run_log.h"
#include "train/utilization.h"

/* ---- the run directory ---- */

/* For a worker that has had the directory open since an earlier view. */
static ls_status reuse_folder(ls_loop *l, ls_error *e) {
    l->out.folder->notes->step = ls_store_trained(l->host->store);
    bool whole = ls_folder_has_data(l->run->dir, &l->run->config, &l->host->layout.model);
    return whole ? LS_OK : ls_save_restore_folder(l, e);
}

/* The process that starts all workers may have opened the directory for them. */
ls_status ls_outputs_take_folder(ls_loop *l, ls_error *e) {
    ls_folder_phase phase = ls_folder_phase_of(&l->host->notes->folder);
    if (l->out.metrics) return reuse_folder(l, e);
    if (!l->out.folder) l->out.folder = l->host->folder;
    ls_folder_run own = ls_host_folder_run(l->host);
    if (!l->out.folder)
        LS_TRY(ls_folder_open(&own, phase != LS_FOLDER_UNTOUCHED, &l->out.folder, e));
    return phase == LS_FOLDER_MADE ? ls_folder_follow(l->out.folder, e)
                                   : ls_folder_take_up(l->out.folder, e);
}

/* ---- the log ---- */

/* What else a device runs, and what that means for the run. */
static const char *beside_layers(const ls_host *h) {
    const ls_share *sh = &h->layout.plan.share;
    if (!sh->state_on_device && ls_run_can_survive(&h->run->config))
        return "the optimizer runs on cores, which is slower, and a worker that is lost is "
               "replaced "
               "(parallel.optimizer_state: memory)";
    if (!sh->state_on_device) return "the optimizer runs on cores (parallel.optimizer_state)";
    if (sh->sums_on_device && sh->nworkers > 1) return "so do the optimizer and sums over workers";
    return "so does the optimizer";
}

/* The largest line of the memory table; `lockstep plan` prints all of it. */
static void log_memory(const ls_member *member) {
    const ls_host *h = member->host;
    const ls_plan *p = &h->layout.plan;
    ls_memory_config how = ls_layout_memory_of(&h->run->config, p, h->run->nasync);
    ls_memory m;
    ls_plan_memory(p, &how, &m);
    ls_purpose most = ls_memory_worst(&m);
    ls_log("memory of a worker: %.1f MB at most, %.1f of it %s", (double)m.peak / 1e6,
           (double)m.nbytes[most] / 1e6, ls_purpose_name(most));
    if (m.device)
        ls_log("layers run on a device of each worker, %s, with %.1f MB of its memory; %s",
               h->run->config.parallel.device, (double)m.device / 1e6, beside_layers(h));
    if (m.device && !ls_infer_runs_on_device(ls_layout_evaluated(&h->layout)))
        ls_log("evaluations run on cores: they need layers that have no kernels for a device");
    if (member->device.sharing > 1)
        ls_log("warning: %d workers of this host share device %s; without its number, each has its "
               "own",
               member->device.sharing, member->device.name);
}

/* How the cores of this machine are used, or a warning that there are too few. Only a new run can
 * have other virtual workers, and only a number of workers that nobody asked for follows them. */
static void log_division(const ls_loop *l) {
    const ls_run *r = l->run;
    int n = 0, near = r->nasync ? r->nasync : l->m.seat.near;
    bool usual = !r->started && !ls_config_has_crew(&r->config) && !ls_run_is_sequential(r) &&
                 !r->listen && !r->join && ls_run_workers_here(&r->config, 0, &n, NULL) == LS_OK &&
                 n == r->nworkers;
    const ls_member_near *x = &l->m.near;
    bool unequal = !r->nasync && x->fewest < x->most;
    ls_division d = {.workers = near,
                     .threads = ls_member_threads(&l->m),
                     .cores = l->m.seat.all,
                     .all = r->nasync || near == l->m.nworkers,
                     .free = usual && l->steps == 0,
                     .talks = !r->nasync && ls_member_has_overlap(&l->m)};
    if (unequal) {
        d.talks = x->talks;
        d.threads = x->fewest - x->talks;
        d.most = x->most;
        d.used = x->all;
    }
    ls_buf text = {0};
    ls_division_write(&r->config, &d, &text);
    if (ls_cores_unbound() > d.cores)
        ls_buf_printf(&text, "; the machine has %d, but %s to these", ls_cores_unbound(),
                      r->started ? "the launcher has bound the workers" : "this process is bound");
    ls_log("%s", text.data);
    ls_buf_free(&text);
}

/* Why micro-batches may be larger than the config says (ls_network_choose_micro()). */
static void log_units(const ls_loop *l) {
    const ls_share *sh = &l->m.layout->plan.share;
    int64_t unit = ls_model_unit_samples(sh->model, sh->compute);
    if (unit > 1)
        ls_log(
            "micro-batches of %lld samples: bf16 sums gradients in blocks of %d rows, which %lld "
            "samples have",
            (long long)sh->micro_batch, LS_SUM_BLOCK, (long long)unit);
}

/* Worker 0 logs the beginning of a run. Later views are logged by the process that starts
 * workers. */
static void log_beginning(const ls_loop *l) {
    const ls_run *r = l->run;
    int n = r->nasync ? r->nasync : l->m.nworkers;
    const ls_model *model = &l->m.layout->model;
    ls_buf samples = {0};
    if (model->frozen_count)
        ls_buf_printf(&samples, "%zu of them trained, ", model->count - model->frozen_count);
    ls_dataset_describe(&l->data, &samples);
    ls_log("%s: %zu parameters, %s, %d worker%s (%s), %lld virtual worker%s", r->dir, model->count,
           samples.data, n, n == 1 ? "" : "s", ls_run_workers_name(r),
           (long long)r->config.train.virtual_workers, ls_plural(r->config.train.virtual_workers));
    ls_buf_free(&samples);
    log_memory(&l->m);
    log_division(l);
    log_units(l);
    ls_log("first step after %.2f s", (double)(ls_clock_ns() - r->began_ns) / 1e9);
}

/* ---- metrics ---- */

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
    if (keys) s = ls_metrics_changed(l->out.metrics, steps + 1, keys, e);
    ls_json_free(keys);
    free(note);
    free(was);
    free(config);
    free(path);
    return s;
}

static ls_status cut_answers(ls_loop *l, int64_t steps, ls_error *e) {
    int64_t answered = l->val.answered;
    LS_TRY(ls_answers_cut(l->run->dir, steps, &answered, e));
    ls_validation_cut_answers(l, answered);
    return LS_OK;
}

/* Lines of steps that will be repeated are cut off first. Lines of an earlier view stay. */
static ls_status open_new_metrics(ls_loop *l, ls_error *e) {
    const ls_run *r = l->run;
    bool follows = l->out.follow, old = false;
    ls_logged logged = {0};
    LS_TRY(ls_folder_begin_training(l->out.folder, &old, e));
    ls_run_log_open(r, ls_lock_read(r->dir).pid);
    int64_t steps = follows ? INT64_MAX : l->out.folder->notes->step;
    if (old) LS_TRY(ls_metrics_cut(r->dir, steps, &logged, e));
    if (old) LS_TRY(cut_answers(l, steps, e));
    LS_TRY(ls_metrics_open(r->dir, &r->config, &l->m.layout->model, logged, &l->out.metrics, e));
    return old && !follows && steps > 0 ? write_changes(l, steps, e) : LS_OK;
}

/* Views that follow have the same start. */
static void note_start(const ls_loop *l) {
    const ls_lock_named holder = ls_lock_read(l->run->dir);
    ls_metrics_started(l->out.metrics, l->steps, l->run->command, holder.pid);
}

/* Metrics of an earlier view stay open. The line of the latest step may be missing. */
static ls_status open_metrics(ls_loop *l, ls_error *e) {
    const ls_host *h = l->host;
    ls_store_note last;
    bool opens = !l->out.metrics;
    if (opens) LS_TRY(open_new_metrics(l, e));
    ls_folder_stay(l->out.folder);
    ls_metrics_set_view(l->out.metrics, h->runtime->survives ? h->survival.view.id.number : 1,
                        l->run->nasync ? l->run->nasync : h->layout.plan.share.nworkers);
    bool first = opens && !l->out.follow;
    ls_utilization_set(&l->m, l->out.metrics, first);
    if (first) note_start(l);
    bool known = h->runtime->survives && ls_store_last_note(h->store, &last) &&
                 ls_sync_whole(&h->layout.plan, &last);
    return known ? ls_metrics_missing(l->out.metrics, &last, e) : LS_OK;
}

/* A log that breaks off is no reason to end a run that other views have begun. */
static ls_status open_mllog(ls_loop *l, int64_t ready_ns, ls_error *e) {
    const ls_run *r = l->run;
    const ls_plan *p = &l->m.layout->plan;
    bool first = !l->out.follow;
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
    if (!l->job->mllog || l->out.mllog) return LS_OK;
    ls_status s = ls_mllog_open(l->job->mllog, &own, l->steps, &l->out.mllog, &why);
    if (s == LS_OK || first) return s == LS_OK ? s : ls_fail(e, s, "%s", why.msg);
    ls_log("%s; the training continues without a log", why.msg);
    l->out.lost = why;
    return LS_OK;
}

/* By worker 0. */
static ls_status open_all(ls_loop *l, int64_t ready_ns, ls_error *e) {
    const ls_config *c = &l->run->config;
    const ls_in_flight_config flight = {l->m.slot, c->train.steps, c->survival.stop_s,
                                        LS_IN_FLIGHT_S};
    bool begins = !l->out.follow && !l->out.metrics;
    ls_status s = open_mllog(l, ready_ns, e);
    if (s == LS_OK) s = open_metrics(l, e);
    if (begins) log_beginning(l);
    if (s == LS_OK && !l->out.flight) s = ls_in_flight_open(&flight, &l->out.flight, e);
    return s;
}

ls_status ls_outputs_open(ls_loop *l, int64_t ready_ns, ls_error *e) {
    ls_traced_workers traced = ls_member_traced(&l->m);
    ls_status s = l->m.worker == 0 ? open_all(l, ready_ns, e) : LS_OK;
    ls_tracer_close(&l->out.tracer);
    ls_tracer_open(&l->out.tracer, &l->job->trace, &traced, l->steps, l->run->config.train.steps);
    return s;
}

ls_status ls_outputs_end_view(ls_loop *l, ls_error *e) {
    ls_metrics *metrics = l->out.metrics;
    l->out.metrics = NULL;
    (void)ls_mllog_close(l->out.mllog, &l->out.lost);
    l->out.mllog = NULL;
    return ls_metrics_close(metrics, e);
}

void ls_outputs_close(ls_loop *l) {
    (void)ls_outputs_end_view(l, NULL);
    ls_tracer_close(&l->out.tracer);
    ls_in_flight_close(l->out.flight);
}

void ls_outputs_leave_folder(ls_loop *l, bool fails) {
    if (l->out.folder != l->host->folder) ls_folder_close(l->out.folder, fails);
}
