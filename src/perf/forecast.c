/* forecast.c - see forecast.h. */
#include "perf/forecast.h"

#include <stdio.h>

#include "config/phases.h"
#include "train/layout.h"
#include "train/replica_sync.h"
#include "train/run.h"
#include "train/steps_apart.h"

int ls_forecast_threads(const ls_config *c, int workers, const ls_machine *m) {
    int n = ls_config_threads(c, workers, m->cores);
    return c->parallel.threads == LS_AUTO && m->threads && m->threads < n ? m->threads : n;
}

ls_site ls_forecast_site(const ls_config *c, const ls_plan *p, const ls_forecast_world *w) {
    int n = p->share.nworkers;
    bool survives = ls_run_can_survive(c);
    int host = w->host_workers && w->host_workers < n ? w->host_workers : n;
    int cores = w->machine->cores;
    ls_config own = *c;
    if (w->machine->threads) own.parallel.threads = ls_forecast_threads(c, host, w->machine);
    bool overlap = ls_layout_has_overlap(&own, p, survives, host, cores);
    return (ls_site){.machine = w->machine,
                     .host_workers = host,
                     .shared = ls_layout_shares_memory(c, n, host),
                     .one = ls_layout_memory_config(c, n, host).one,
                     .threads = ls_layout_threads(&own, p, survives, host, cores),
                     .overlap = overlap,
                     .latency_s = w->latency_s,
                     .byte_s = w->byte_s,
                     .algorithm = w->algorithm};
}

/* The time of a step of one worker alone that has the work and the threads of one of the plan's
 * workers. */
static ls_status alone_s(const ls_config *c, const ls_site *each, int nworkers,
                         const ls_forecast_world *w, double *s_p, ls_error *e) {
    ls_config one = *c;
    one.parallel.threads = each->threads;
    ls_layout_config_whole(&one);
    ls_layout l;
    ls_sim sim;
    int64_t samples = c->train.batch / c->train.virtual_workers;
    one.train.virtual_workers = (c->train.virtual_workers + nworkers - 1) / nworkers;
    one.parallel.shard_group = 0;
    one.parallel.context_virtual = one.parallel.expert_virtual = 1; /* the same work */
    one.sync.mode = LS_SYNC_ALL_REDUCE;
    one.train.batch = samples * one.train.virtual_workers;
    LS_TRY(ls_layout_make(&one, 1, NULL, &l, e));
    ls_site site = ls_forecast_site(&one, &l.plan, w);
    ls_status s = ls_sim_run(&l.plan, &site, false, &sim, e);
    if (s == LS_OK) {
        *s_p = sim.step_s;
        if (ls_config_ranks(c) > 1) /* a worker has a part of the model */
            *s_p *=
                (double)c->train.virtual_workers / (double)(nworkers * one.train.virtual_workers);
        ls_sim_free(&sim);
    }
    ls_layout_free(&l);
    return s;
}

static const char *algorithm_of(const ls_plan *p, const ls_site *site) {
    ls_pricer pricer;
    const ls_action *largest = NULL;
    if (p->share.nworkers == 1 || ls_pricer_open(p, site, &pricer, NULL) != LS_OK) return "none";
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        bool sums = a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_REDUCE;
        if (sums && (!largest || a->comm.nbytes > largest->comm.nbytes)) largest = a;
    }
    return largest ? ls_price_algorithm(&pricer, largest) : "none";
}

/* Workers divide the pairs. */
static ls_status find_reference_s(const ls_config *c, const ls_plan *p, const ls_site *site,
                                  double *s_p, ls_error *e) {
    ls_pricer pricer;
    *s_p = 0;
    if (!ls_config_has_pairs(c)) return LS_OK;
    LS_TRY(ls_pricer_open(p, site, &pricer, e));
    *s_p = ls_price_losses(&pricer) / p->share.nworkers;
    return LS_OK;
}

typedef struct sync_sum {
    const ls_site *site;
    double seconds;
} sync_sum;

static ls_status add_sync_s(const ls_plan *sync, double times, void *arg, ls_error *e) {
    sync_sum *sum = arg;
    ls_sim sim;
    LS_TRY(ls_sim_run(sync, sum->site, false, &sim, e));
    sum->seconds += sim.step_s * times;
    ls_sim_free(&sim);
    return LS_OK;
}

static ls_status find_sync_s(const ls_config *c, const ls_plan *p, const ls_site *site,
                             ls_forecast *f, ls_error *e) {
    sync_sum sum = {.site = site};
    if (p->share.islands) LS_TRY(ls_sync_each(c, p, add_sync_s, &sum, e));
    f->sync_s = sum.seconds;
    f->step_s += f->sync_s;
    return LS_OK;
}

/* The share of steps that islands decide alone, where a step takes step_s: none if islands are
 * divided among hosts. */
static double apart_share(const ls_config *c, const ls_plan *p, const ls_site *site,
                          double step_s) {
    enum { SEEN = 1000 };
    int each = p->share.islands && p->share.nworkers > p->share.islands
                   ? p->share.nworkers / p->share.islands
                   : 1;
    bool skips = p->share.compute == LS_F16 || p->share.reduce == LS_F16;
    bool divided = site->host_workers > 0 && site->host_workers % each != 0;
    double most = c->survival.stop_s / 2 / step_s;
    int64_t at = c->sync.warmup, end = at + SEEN, apart = 0;
    if (end > c->train.steps) end = c->train.steps;
    if (!p->share.islands || skips || divided || at >= end) return 0;
    while (at < end) {
        int n = ls_apart_possible(c, at);
        if ((double)n > most) n = (int)most;
        at += n + 1;
        apart += n;
    }
    return (double)apart / (double)(at - c->sync.warmup);
}

static double mean_of(double common, double apart, double share) {
    return common + share * (apart - common);
}

/* The mean over all steps, some of which are decided by islands alone. */
static ls_status simulate(const ls_config *c, const ls_plan *p, const ls_site *site, ls_sim *s_p,
                          ls_error *e) {
    ls_site alone = *site;
    ls_sim apart;
    LS_TRY(ls_sim_run(p, site, false, s_p, e));
    double share = apart_share(c, p, site, s_p->step_s);
    if (share == 0) return LS_OK;
    alone.apart = true;
    LS_TRY(ls_sim_run(p, &alone, false, &apart, e));
    s_p->step_s = mean_of(s_p->step_s, apart.step_s, share);
    s_p->exposed_s = mean_of(s_p->exposed_s, apart.exposed_s, share);
    s_p->most_s = mean_of(s_p->most_s, apart.most_s, share);
    s_p->least_s = mean_of(s_p->least_s, apart.least_s, share);
    s_p->comm_s = mean_of(s_p->comm_s, apart.comm_s, share);
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        s_p->kinds_s[k] = mean_of(s_p->kinds_s[k], apart.kinds_s[k], share);
    ls_sim_free(&apart);
    return LS_OK;
}

ls_status ls_forecast_plan(const ls_config *c, const ls_plan *p, const ls_forecast_world *w,
                           ls_forecast *f_p, ls_error *e) {
    int n = p->share.nworkers;
    ls_site site = ls_forecast_site(c, p, w);
    ls_forecast f = {.nworkers = n, .zero = c->parallel.zero, .recompute = c->parallel.recompute};
    ls_memory memory;
    ls_sim sim;
    double alone = 0;
    LS_TRY(simulate(c, p, &site, &sim, e));
    f.step_s = sim.step_s;
    f.exposed_s = sim.exposed_s;
    f.least_wait = 1 - sim.most_s / sim.step_s;
    f.most_wait = 1 - sim.least_s / sim.step_s;
    f.comm_s = sim.comm_s;
    for (int k = 0; k < LS_NACTION_KINDS; k++) f.kinds_s[k] = sim.kinds_s[k];
    ls_sim_free(&sim);
    LS_TRY(find_sync_s(c, p, &site, &f, e));
    LS_TRY(alone_s(c, &site, n, w, &alone, e));
    LS_TRY(find_reference_s(c, p, &site, &f.reference_s, e));
    f.nhosts = n / site.host_workers;
    f.efficiency = alone / f.step_s;
    f.unit = ls_config_unit(c);
    f.units_per_s = (double)c->train.batch * ls_config_units(c) / f.step_s;
    f.algorithm = algorithm_of(p, &site);
    ls_memory_config how = ls_layout_memory_config(c, n, site.host_workers);
    how.threads = site.threads; /* on that machine, not on this one */
    ls_plan_memory(p, &how, &memory);
    f.memory_nbytes = memory.peak;
    double limit = c->parallel.memory_limit_mb * 1e6;
    double room = w->machine->device.memory_nbytes;
    f.device_nbytes = memory.device;
    f.fits_host = limit == 0 || (double)memory.peak <= limit;
    f.fits_device = room == 0 || (double)memory.device <= room;
    f.fits = f.fits_host && f.fits_device;
    *f_p = f;
    return LS_OK;
}

/* The seconds of a step with this batch. */
static ls_status phase_s(const ls_config *c, int64_t batch, int n, const ls_forecast_world *w,
                         double *s_p, ls_error *e) {
    ls_config one = *c;
    ls_layout l;
    ls_forecast f;
    int64_t samples = batch / c->train.virtual_workers;
    ls_config_set_batch(&one, batch);
    if (one.train.micro_batch > samples) one.train.micro_batch = samples;
    LS_TRY(ls_layout_make(&one, n, NULL, &l, e));
    ls_status s = ls_forecast_plan(&one, &l.plan, w, &f, e);
    if (s == LS_OK) *s_p = f.step_s;
    ls_layout_free(&l);
    return s;
}

ls_status ls_forecast_phases(const ls_config *c, int nworkers, const ls_forecast_world *w,
                             double *step_s, ls_error *e) {
    for (int i = 0; i < c->train.nphases; i++)
        LS_TRY(phase_s(c, c->train.phases[i].batch, nworkers, w, &step_s[i], e));
    return LS_OK;
}

ls_status ls_forecast_scale(const ls_config *c, int base, int n, bool strong, ls_config *scaled_p,
                            ls_error *e) {
    ls_config s = *c;
    int64_t V = c->train.virtual_workers, samples = c->train.batch / V;
    if (strong) {
        if (V < n) s.train.virtual_workers = n;
        if (c->train.batch % s.train.virtual_workers)
            return ls_fail(
                e, LS_EINVAL,
                "strong scaling: train.batch %lld can't be divided among %d workers; use "
                "numbers of workers that divide it",
                (long long)c->train.batch, n);
        samples = c->train.batch / s.train.virtual_workers;
    } else {
        int64_t each = V / base > 1 ? V / base : 1;
        s.train.virtual_workers = each * n;
        s.train.batch = s.train.virtual_workers * samples;
    }
    if (s.train.micro_batch > samples) s.train.micro_batch = samples;
    ls_config_set_batch(&s, s.train.batch);
    *scaled_p = s;
    return LS_OK;
}

/* Appends a row for the config. */
static ls_status add_row(const ls_config *c, int n, const ls_forecast_world *w,
                         ls_forecast_list *list, ls_error *e) {
    ls_layout l;
    LS_TRY(ls_layout_make(c, n, NULL, &l, e));
    ls_status s = ls_forecast_plan(c, &l.plan, w, &list->rows[list->n], e);
    if (s == LS_OK) list->n++;
    ls_layout_free(&l);
    return s;
}

ls_status ls_forecast_rows(const ls_config *c, int n, const ls_forecast_world *w,
                           ls_forecast_list *list_p, ls_error *e) {
    ls_forecast_list list = {.best = -1};
    int most = ls_config_has_replicas(c) ? 1 : 3; /* parallel.zero */
    for (int64_t zero = ls_layout_least_zero(c); zero <= most; zero++) {
        ls_config with = *c;
        with.parallel.zero = zero;
        LS_TRY(add_row(&with, n, w, &list, e));
        if (list.rows[list.n - 1].fits || c->parallel.recompute != 0) continue;
        with.parallel.recompute = 2;
        LS_TRY(add_row(&with, n, w, &list, e));
    }
    for (int i = 0; i < list.n; i++) {
        const ls_forecast *f = &list.rows[i];
        if (f->fits && (list.best < 0 || f->step_s < list.rows[list.best].step_s)) list.best = i;
    }
    *list_p = list;
    return LS_OK;
}

ls_json *ls_forecast_json(const ls_forecast *f) {
    ls_json *o = ls_json_new_object(), *kinds = ls_json_new_object();
    ls_json_set_integer(o, "workers", f->nworkers);
    ls_json_set_integer(o, "hosts", f->nhosts);
    ls_json_set_integer(o, "zero", f->zero);
    ls_json_set_integer(o, "recompute", f->recompute);
    ls_json_set_number(o, "step_s", f->step_s);
    char rate[32];
    snprintf(rate, sizeof rate, "%s_per_s", f->unit);
    ls_json_set_number(o, rate, f->units_per_s);
    ls_json_set_number(o, "efficiency", f->efficiency);
    ls_json_set_number(o, "exposed_s", f->exposed_s);
    ls_json_set_number(o, "least_wait", f->least_wait);
    ls_json_set_number(o, "most_wait", f->most_wait);
    ls_json_set_number(o, "communication_s", f->comm_s);
    if (f->sync_s > 0) ls_json_set_number(o, "synchronization_s", f->sync_s);
    if (f->reference_s > 0) ls_json_set_number(o, "reference_pair_s", f->reference_s);
    ls_json_set_integer(o, "memory_bytes", (int64_t)f->memory_nbytes);
    if (f->device_nbytes) ls_json_set_integer(o, "device_memory_bytes", (int64_t)f->device_nbytes);
    ls_json_set_bool(o, "fits", f->fits);
    ls_json_set_text(o, "algorithm", f->algorithm);
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        if (f->kinds_s[k] > 0)
            ls_json_set_number(kinds, ls_action_kind_name((ls_action_kind)k), f->kinds_s[k]);
    ls_json_set(o, "kinds_s", kinds);
    return o;
}
