/* run.c - see run.h. */
#include "train/run.h"

#include <stdlib.h>

#include "base/cores.h"
#include "base/plural.h"
#include "cluster/workers.h"
#include "config/differences.h"
#include "config/write_config.h"
#include "model/types.h"
#include "tensor/sum_order.h"
#include "train/layout.h"
#include "train/worker_device.h"

bool ls_run_has_others(const ls_run *r) {
    return r->started || r->in_group || r->listen || r->join || *r->config.survival.membership;
}

bool ls_run_is_sequential(const ls_run *r) {
    return r->config.parallel.executor == LS_EXECUTOR_SEQUENTIAL;
}

static ls_status check_workers(const ls_config *c, int n, ls_error *e) {
    int64_t V = c->train.virtual_workers, most = ls_config_most_workers(c);
    int64_t limit = c->survival.max_workers;
    if (limit && n > limit && limit < most)
        return ls_fail(e, LS_EINVAL,
                       "%d workers for survival.max_workers %lld; use -n %lld or fewer, or a "
                       "higher survival.max_workers",
                       n, (long long)limit, (long long)limit);
    if (n <= most) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%d workers for train.virtual_workers %lld; use -n %lld or fewer, or in a new run more "
        "train.virtual_workers",
        n, (long long)V, (long long)most);
}

ls_status ls_run_workers_here(const ls_config *c, int asked, int *n_p, ls_error *e) {
    int64_t most = ls_config_most_workers(c), cores = ls_config_workers_on(c, ls_cores());
    int64_t limit = c->survival.max_workers;
    int devices = asked ? 0 : ls_worker_device_count(c);
    if (limit && limit < most) most = limit;
    *n_p = asked ? asked : (int)(cores < most ? cores : most);
    if (devices && devices < *n_p) *n_p = devices;
    return check_workers(c, *n_p, e);
}

ls_status ls_run_workers(const ls_config *c, int asked, int *n_p, bool *started_p, ls_error *e) {
    LS_TRY(ls_workers_started(started_p, n_p, e));
    if (*started_p && asked && asked != *n_p)
        return ls_fail(e, LS_EINVAL,
                       "-n %d: the launcher has started %d worker%s, by the variables of the "
                       "environment; leave out -n, or unset them if they are left over",
                       asked, *n_p, ls_plural(*n_p));
    if (*started_p && c->parallel.executor == LS_EXECUTOR_SEQUENTIAL)
        return ls_fail(e, LS_EINVAL,
                       "parallel.executor sequential plays all workers in one process; start it "
                       "without a launcher");
    return *started_p ? check_workers(c, *n_p, e) : ls_run_workers_here(c, asked, n_p, e);
}

static ls_status workers_ahead(const ls_config *c, int asked, int *n_p, ls_error *e) {
    int64_t most = (c->sync.staleness + 1) * c->train.virtual_workers;
    int cores = ls_config_workers_on(c, ls_cores());
    *n_p = asked ? asked : cores < most ? cores : (int)most;
    if (*n_p <= most) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%d workers: with train.virtual_workers %lld and sync.staleness %lld at most "
                   "%lld gradients are computed at a time; use -n %lld or fewer",
                   asked, (long long)c->train.virtual_workers, (long long)c->sync.staleness,
                   (long long)most, (long long)most);
}

ls_status ls_run_workers_crew(const ls_config *c, int asked, int *n_p, ls_error *e) {
    if (c->sync.mode == LS_SYNC_SSP) return workers_ahead(c, asked, n_p, e);
    *n_p = asked ? asked : ls_config_workers_on(c, ls_cores());
    return LS_OK;
}

size_t ls_run_ahead_nbytes(const ls_config *c, const ls_plan *p) {
    if (c->sync.mode != LS_SYNC_SSP) return 0;
    return (size_t)((c->sync.staleness + 1) * c->train.virtual_workers) * p->share.nbytes.slot;
}

ls_status ls_run_workers_async(ls_run *r, int asked, ls_error *e) {
    int n = 0;
    LS_TRY(ls_workers_started(&r->started, &n, e));
    bool ssp = r->config.sync.mode == LS_SYNC_SSP;
    const char *without = r->started                       ? "a launcher"
                          : *r->config.survival.membership ? "survival.membership"
                          : r->hosts                       ? "--hosts"
                                                           : NULL;
    if (without)
        return ls_fail(e, LS_EINVAL,
                       "sync.mode %s: this command starts the workers of its host, and others join "
                       "when they come; start it without %s",
                       ssp ? "ssp" : "async", without);
    if (r->config.sync.copies > 1 && !r->listen && !r->join)
        return ls_fail(e, LS_EINVAL,
                       "sync.copies %lld: the copy is on another host (--listen, --join); the "
                       "shards of one host are in memory that its servers share: leave it out",
                       (long long)r->config.sync.copies);
    r->nworkers = 1;
    return ls_run_workers_crew(&r->config, asked, &r->nasync, e);
}

bool ls_run_can_survive(const ls_config *c) {
    return !ls_config_has_crew(c) && c->parallel.executor != LS_EXECUTOR_SEQUENTIAL &&
           c->parallel.transport != LS_TRANSPORT_THREAD &&
           c->parallel.transport != LS_TRANSPORT_MPI &&
           c->parallel.optimizer_state == LS_STATE_MEMORY;
}

/* Names have a dot, as keys have, so hosts without such a line are refused (net/tcp/admission.c).
 * Which device, and which file, is each host's own, but all have one, or none does. */
void ls_run_must_match(const ls_config *c, ls_buf *out) {
    const char *order = ls_sum_order(ls_config_compute(c));
    const char *algorithm = getenv("LOCKSTEP_ALGORITHM");
    ls_config distributed = *c;
    ls_layout_config_distributed(&distributed);
    ls_config_must_match(&distributed, out);
    ls_buf_printf(out, "parallel.device %s\n", ls_config_has_device(c) ? "a device" : "cores");
    ls_buf_printf(out, "train.sample_file %s\n", *c->train.sample_file ? "a file" : "none");
    ls_buf_printf(out, "environment.LOCKSTEP_ALGORITHM %s\n",
                  algorithm && *algorithm ? algorithm : "auto");
    if (order) ls_buf_printf(out, "train.compute.sum %s\n", order);
}

void ls_run_write_config(ls_run *r, const ls_config *asked) {
    ls_config c = r->config;
    c.parallel.device = asked->parallel.device;
    c.parallel.device_link = asked->parallel.device_link;
    ls_config_write(&c, &r->config_text);
}

void ls_run_free(ls_run *r) {
    ls_buf_free(&r->config_text);
    *r = (ls_run){0};
}

const char *ls_run_workers_name(const ls_run *r) {
    if (r->nasync) return r->config.sync.mode == LS_SYNC_SSP ? "bounded staleness" : "asynchronous";
    if (ls_run_is_sequential(r)) return "sequential";
    if (r->started) return "started by a launcher";
    return r->config.parallel.transport == LS_TRANSPORT_THREAD ? "threads" : "processes";
}

ls_scaler_config ls_run_scaler(const ls_run *r) {
    const ls_config *c = &r->config;
    return (ls_scaler_config){.initial = c->optim.loss_scale,
                              .lowest = c->optim.loss_scale_min,
                              .window = c->optim.loss_scale_window,
                              .hysteresis = c->optim.loss_scale_hysteresis};
}

bool ls_run_has_scale(const ls_run *r) {
    return ls_config_compute(&r->config) == LS_F16 || ls_config_reduce(&r->config) == LS_F16;
}
