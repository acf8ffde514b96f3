/* bench_train.c - see bench_train.h. */
#include "perf/bench_train.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/median.h"
#include "config/phases.h"
#include "perf/export_bench.h"
#include "perf/fake.h"
#include "perf/mesh_search.h"
#include "tensor/peak.h"
#include "train/compute_reference.h"
#include "train/device_room.h"
#include "train/fit.h"
#include "train/layout.h"
#include "train/member.h"

enum { MAX_STEPS = 10000 };

/* The argument of all workers. */
typedef struct bench_job {
    ls_host host; /* first */
    const ls_dataset *data;
    int64_t warmup, steps;
    ls_bench_report *report;
    ls_trace_request trace;
    const char *export_dir;
} bench_job;

/* ---- a worker ---- */

/* The peak of all workers at once, each on its own threads. */
static ls_status measure_peak(const ls_member *m, double *peak_p, ls_error *e) {
    const ls_config *c = &m->run->config;
    const ls_kernels *k = NULL;
    *peak_p = 0;
    if (ls_config_has_device(c)) return LS_OK; /* that of a device is not known */
    LS_TRY(ls_kernels_pick(&k, e));
    *peak_p = ls_peak_together(k, c->train.compute == LS_COMPUTE_BF16, ls_member_threads(m));
    return ls_all_reduce(m->group, peak_p, peak_p, 1, LS_F64, LS_SUM, e);
}

/* Bytes sent by this worker in all groups of its world. */
static uint64_t bytes_sent(const ls_member *m) {
    const ls_world *w = &m->worlds[0];
    uint64_t sent = ls_group_counters(w->group).bytes_sent;
    if (w->shards != w->group) sent += ls_group_counters(w->shards).bytes_sent;
    if (w->replicas) sent += ls_group_counters(w->replicas).bytes_sent;
    return sent;
}

/* The largest memory that this process ever had. */
static double peak_nbytes(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (double)u.ru_maxrss * 1024 : 0;
}

static double planned_nbytes(const ls_member *m) {
    const ls_plan *p = &m->layout->plan;
    ls_memory_config how =
        ls_layout_memory_config(&m->run->config, p->share.nworkers, p->share.nworkers);
    ls_memory memory;
    ls_plan_memory(p, &how, &memory);
    return (double)memory.peak;
}

/* The part of the steps in which this worker does not compute, and that of others. */
static ls_status measure_waits(const ls_member *m, double steps_s, ls_bench_train *out,
                               ls_error *e) {
    double computed = 0;
    for (int x = 0; x < m->nexecs; x++) computed += (double)ls_exec_compute_time(m->execs[x]) / 1e9;
    double wait = 1 - computed / ((double)m->nexecs * steps_s);
    LS_TRY(ls_all_reduce(m->group, &wait, &out->least_wait, 1, LS_F64, LS_MIN, e));
    return ls_all_reduce(m->group, &wait, &out->most_wait, 1, LS_F64, LS_MAX, e);
}

static ls_status measure_steps(ls_member *m, const bench_job *b, double *seconds,
                               ls_bench_train *out, ls_error *e) {
    ls_step_out step;
    uint64_t sent = 0;
    double steps_s = 0;
    for (int64_t i = 0; i < b->warmup + b->steps; i++) {
        if (i == b->warmup) {
            for (int x = 0; x < m->nexecs; x++) ls_exec_reset_times(m->execs[x]);
            sent = bytes_sent(m);
        }
        ls_step_in in = ls_member_inputs(m, i);
        int64_t begin = ls_clock_ns();
        LS_TRY(ls_member_step(m, &in, &step, e));
        out->losses[i] = step.loss;
        out->all_seconds[i] = (double)(ls_clock_ns() - begin) / 1e9;
        if (i < b->warmup) continue;
        seconds[i - b->warmup] = out->all_seconds[i];
        steps_s += out->all_seconds[i];
    }
    LS_TRY(measure_waits(m, steps_s, out, e));
    out->sent_nbytes = (double)(bytes_sent(m) - sent) / (double)b->steps;
    LS_TRY(ls_all_reduce(m->group, &out->sent_nbytes, &out->sent_nbytes, 1, LS_F64, LS_AVG, e));
    out->state_nbytes = (double)ls_world_resident_nbytes(&m->worlds[0], &b->host.layout.plan.share);
    LS_TRY(ls_all_reduce(m->group, &out->state_nbytes, &out->state_nbytes, 1, LS_F64, LS_AVG, e));
    out->planned_nbytes = planned_nbytes(m);
    out->peak_nbytes = peak_nbytes();
    LS_TRY(ls_all_reduce(m->group, &out->peak_nbytes, &out->peak_nbytes, 1, LS_F64, LS_AVG, e));
    for (int x = 0; x < m->nexecs; x++)
        for (int k = 0; k < LS_NACTION_KINDS; k++)
            out->seconds[k] += (double)ls_exec_time(m->execs[x], (ls_action_kind)k) / 1e9 /
                               (double)b->steps / (double)m->nexecs;
    return ls_all_reduce(m->group, out->seconds, out->seconds, LS_NACTION_KINDS, LS_F64, LS_AVG, e);
}

static ls_status measure(ls_member *m, const bench_job *b, ls_bench_train *out, ls_error *e) {
    const ls_config *c = &b->host.run->config;
    double *seconds = LS_NEW_ARRAY(double, (size_t)b->steps);
    ls_status s = measure_peak(m, &out->peak_flops_per_s, e);
    if (s == LS_OK) s = measure_steps(m, b, seconds, out, e);
    out->step_seconds = ls_median(seconds, (size_t)b->steps);
    out->units_per_s = (double)c->train.batch * ls_config_units(c) / out->step_seconds;
    out->flops_per_s = ls_model_flops(ls_layout_evaluated(&b->host.layout)) *
                       (double)c->train.batch / out->step_seconds;
    free(seconds);
    return s;
}

/* The number of steps that trace_steps() takes: one, then those that are traced. */
static int64_t traced_steps(const bench_job *b) {
    int64_t n = b->trace.steps ? b->trace.steps : LS_TRACE_STEPS;
    return b->trace.path ? 1 + n : 0;
}

/* Traces steps after the measured ones, so that tracing does not slow these down. */
static ls_status trace_steps(ls_member *m, const bench_job *b, ls_error *e) {
    int64_t first = b->warmup + b->steps, end = first + traced_steps(b);
    ls_tracer tracer = {0};
    ls_step_out step;
    if (!b->trace.path) return LS_OK;
    ls_status s = LS_OK;
    ls_traced_workers traced = ls_member_traced(m);
    ls_tracer_open(&tracer, &b->trace, &traced, first, end);
    for (int64_t i = first; s == LS_OK && i < end; i++) {
        ls_step_in in = ls_member_inputs(m, i);
        s = ls_tracer_before(&tracer, i, e);
        if (s == LS_OK) s = ls_member_step(m, &in, &step, e);
        if (s == LS_OK) s = ls_tracer_after(&tracer, i, e);
    }
    ls_tracer_close(&tracer);
    return s;
}

static ls_pool *pool_of(const ls_member *m, int x) { return ls_exec_compute(m->execs[x])->pool; }

/* Counts what threads do in a step after all others, since counting takes time. */
static ls_status count_threads(ls_member *m, const bench_job *b, ls_bench_train *out, ls_error *e) {
    ls_step_in in = ls_member_inputs(m, b->warmup + b->steps + traced_steps(b));
    ls_step_out step;
    double sums[3] = {0}; /* alone, together, of the longest parts if all were as long */
    if (out->threads == 1) return LS_OK;
    for (int x = 0; x < m->nexecs; x++) ls_pool_count(pool_of(m, x));
    LS_TRY(ls_member_step(m, &in, &step, e));
    for (int x = 0; x < m->nexecs; x++) {
        ls_pool_counts c = ls_pool_counted(pool_of(m, x));
        sums[0] += c.alone;
        sums[1] += c.together;
        sums[2] += c.longest * out->threads;
    }
    LS_TRY(ls_all_reduce(m->group, sums, sums, 3, LS_F64, LS_SUM, e));
    out->alone = sums[0] / (sums[0] + sums[1]);
    out->uneven = sums[2] / sums[1] - 1;
    return LS_OK;
}

/* Samples of pairs have their reference, which is computed with the weights before the first
 * step. */
static ls_status export_pairs(ls_member *m, const bench_job *b, ls_dataset *d, ls_error *e) {
    const ls_run *r = b->host.run;
    if (!ls_config_has_pairs(&r->config)) return LS_OK;
    LS_TRY(ls_reference_compute(m, &d->text.chats, e));
    ls_status s = LS_OK;
    if (m->worker == 0) s = ls_export_samples(r, d, b->warmup + b->steps, b->export_dir, e);
    return ls_member_wait(m, s, e);
}

/* The job's data set, but for the reference: workers that are threads share the rest. */
static ls_dataset own_data(const bench_job *b) {
    ls_dataset d = *b->data;
    if (d.text.chats.reference) d.text.chats.reference = LS_NEW_ARRAY(float, 2 * d.text.chats.n);
    return d;
}

static ls_status bench_worker(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    const bench_job *b = arg;
    ls_dataset data = own_data(b);
    ls_member m = ls_member_of(&b->host, g, me, &data);
    ls_bench_train out = {
        .nworkers = b->host.run->nworkers, .steps = b->steps, .warmup = b->warmup};
    out.losses = LS_NEW_ARRAY(double, 2 * (size_t)(b->warmup + b->steps));
    out.all_seconds = out.losses + b->warmup + b->steps;
    ls_status s = ls_tracer_check(&b->trace, g, e);
    if (s == LS_OK) s = ls_member_join(&m, e);
    if (s == LS_OK) out.threads = ls_member_threads(&m);
    if (s == LS_OK) s = ls_member_begin(&m, 0, NULL, e);
    const char *dir = b->export_dir;
    if (s == LS_OK && dir) s = ls_export_weights(&m, dir, "weights.safetensors", e);
    if (s == LS_OK && dir) s = export_pairs(&m, b, &data, e);
    if (s == LS_OK) s = measure(&m, b, &out, e);
    if (s == LS_OK && dir) s = ls_export_weights(&m, dir, "trained.safetensors", e);
    if (s == LS_OK) s = trace_steps(&m, b, e);
    if (s == LS_OK) s = count_threads(&m, b, &out, e);
    if (s == LS_OK && m.worker == 0) b->report(&b->host.run->config, &out);
    ls_member_leave(&m);
    free(data.text.chats.reference);
    free(out.losses);
    return s;
}

/* Random samples; for an export those of the config's files, unless they are a text: that would
 * take a tokenizer, and any tokens take the same steps. */
static ls_status open_data(const bench_job *b, ls_dataset *data, ls_error *e) {
    const ls_config *c = &b->host.run->config;
    const ls_model *m = &b->host.layout.model;
    if (b->export_dir && !ls_config_has_text(c)) return ls_dataset_make(data, c, m, e);
    *data = ls_dataset_of_source(ls_fake_source(m, 2 * (uint64_t)c->train.batch), c);
    return LS_OK;
}

ls_status ls_bench_train_run(const ls_config *c, const ls_bench_request *q, ls_bench_report *report,
                             ls_error *e) {
    if (q->trace.path) LS_TRY(ls_timeline_check_path(q->trace.path, e));
    if (q->steps < 1 || q->steps > MAX_STEPS)
        return ls_fail(e, LS_EINVAL, "%lld steps are not possible; use 1 to %d",
                       (long long)q->steps, MAX_STEPS);
    ls_dataset data = {0};
    if (c->model.sparse)
        return ls_fail(e, LS_EINVAL,
                       "model.sparse: its rows are those of a run's samples, and a benchmark has "
                       "random ones; set model.sparse: off, or time `lockstep train`");
    ls_run run = {.config = *c};
    ls_worker_device_resolve(&run.config);
    ls_config_set_batch(&run.config, c->train.batch);
    bench_job b = {.data = &data, .report = report, .trace = q->trace, .export_dir = q->export_dir};
    b.warmup = q->warmup;
    b.steps = q->steps;
    LS_TRY(ls_run_workers(c, q->nworkers, &run.nworkers, &run.started, e));
    if (!run.started) LS_TRY(ls_device_room_try(&run.config, run.nworkers, &run.devices, e));
    if (c->parallel.mesh == LS_MESH_AUTO)
        LS_TRY(ls_mesh_auto(&run.config, run.nworkers, run.started, e));
    LS_TRY(ls_fit_limit(&run.config, run.nworkers, e));
    ls_status s = ls_host_open(&b.host, &run, e);
    if (s == LS_OK) s = open_data(&b, &data, e);
    if (s == LS_OK && q->export_dir)
        s = ls_export(&b.host, &data, q->warmup + q->steps, q->export_dir, e);
    if (s == LS_OK) s = ls_host_launch(&b.host, bench_worker, &b, e);
    ls_dataset_free(&data);
    ls_host_free(&b.host);
    return s;
}
