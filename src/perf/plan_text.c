/* plan_text.c - see plan_text.h. */
#include "perf/plan_text.h"

#include "base/plural.h"
#include "base/wrap.h"
#include "model/print_model.h"
#include "optim/learning_rate.h"
#include "perf/far.h"
#include "share/mesh.h"
#include "tensor/sum_order.h"
#include "train/layout.h"
#include "train/replica_sync.h"
#include "train/run.h"

/* ---- phases ---- */

/* Steps of phase i in the run; 0: the run ends before it. */
static int64_t steps_of(const ls_config *c, int i) {
    int64_t end = c->train.steps, first = c->train.phases[i].step;
    if (i + 1 < c->train.nphases && c->train.phases[i + 1].step < end)
        end = c->train.phases[i + 1].step;
    return end > first ? end - first : 0;
}

/* The rate at the phase's first step. */
static double rate_of(const ls_config *c, int i) {
    const ls_schedule s = ls_schedule_of(c, 0);
    return ls_schedule_rate(&s, c->train.phases[i].step);
}

static double seconds_of(const ls_config *c, const double *step_s) {
    double sum = 0;
    for (int i = 0; i < c->train.nphases; i++) sum += step_s[i] * (double)steps_of(c, i);
    return sum;
}

void ls_phases_print(const ls_config *c, const double *step_s, ls_buf *out) {
    if (!c->train.nphases) return;
    ls_buf_printf(out,
                  "\n  train.batch: one plan, for the largest batch, serves all\n"
                  "  from step    batch     steps      samples   first lr%s\n",
                  step_s ? "   predicted step s" : "");
    for (int i = 0; i < c->train.nphases; i++) {
        const ls_config_phase *p = &c->train.phases[i];
        int64_t steps = steps_of(c, i);
        ls_buf_printf(out, "  %9lld %8lld %9lld %12lld", (long long)p->step, (long long)p->batch,
                      (long long)steps, (long long)(steps * p->batch));
        if (steps == 0)
            ls_buf_printf(out, "   after the last step");
        else
            ls_buf_printf(out, " %10.4g", rate_of(c, i));
        if (steps && step_s) ls_buf_printf(out, " %18.6f", step_s[i]);
        ls_buf_printf(out, "\n");
    }
    if (step_s)
        ls_buf_printf(out, "  predicted for all %lld steps: %.1f s\n", (long long)c->train.steps,
                      seconds_of(c, step_s));
}

ls_json *ls_phases_json(const ls_config *c, const double *step_s) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < c->train.nphases; i++) {
        const ls_config_phase *p = &c->train.phases[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "step", p->step);
        ls_json_set_integer(o, "batch", p->batch);
        ls_json_set_integer(o, "steps", steps_of(c, i));
        ls_json_set_integer(o, "samples", steps_of(c, i) * p->batch);
        ls_json_set_number(o, "first_lr", steps_of(c, i) ? rate_of(c, i) : 0);
        if (step_s) ls_json_set_number(o, "step_s", step_s[i]);
        ls_json_push(list, o);
    }
    return list;
}

/* ---- for people ---- */

/* Prints the copy of the state for checkpoints (storage/snapshot.h), which belongs to no worker. */
static void print_copy(const ls_config *c, const ls_plan *p, ls_buf *out) {
    if (!ls_run_can_survive(c)) return;
    ls_buf_printf(out, "  %-22s %12.3f  ", "copy for checkpoints",
                  (double)p->share.nbytes.copy / 1e6);
    ls_buf_wrap(out, "of a host, beside its workers; several hosts hold a part each", 39, 39);
}

/* near: workers of a host. */
static void print_rows(const ls_plan *p, int near, ls_buf *out) {
    ls_rows_moved x = ls_share_rows_moved(&p->share, near);
    ls_buf line = {0};
    if (x.read + x.updated + x.written == 0) return;
    ls_buf_printf(
        &line,
        "rows of tables in a step, from other hosts to a worker, if all ids of the batch "
        "differ: %.0f bytes that its samples read, %.0f that it updates, %.0f written back",
        x.read, x.updated, x.written);
    ls_buf_printf(out, "\n  ");
    ls_buf_wrap(out, line.data, 2, 2);
    ls_buf_free(&line);
}

static void print_async(const ls_config *c, const ls_plan *p, ls_buf *out) {
    if (c->sync.mode != LS_SYNC_ASYNC) return;
    ls_buf line = {0};
    ls_buf_printf(&line,
                  "sync.mode async: each worker runs this plan up to Norm, for a batch of its own. "
                  "Before it pulls %.3f MB of parameters, and afterwards it pushes %.3f MB of "
                  "gradients to the servers, which run Update (docs/guide/async.md).",
                  (double)p->share.nbytes.params / 1e6, (double)p->share.nbytes.slot / 1e6);
    if (c->sync.copies > 1)
        ls_buf_printf(&line,
                      " sync.copies 2: another host has the parameters and states once more, %.3f "
                      "MB, and gets each gradient.",
                      (double)(1 + ls_optim_nstates(&p->share.optim)) *
                          (double)p->share.model->nfloats * 4 / 1e6);
    ls_buf_printf(out, "\n");
    ls_buf_wrap(out, line.data, 0, 0);
    ls_buf_free(&line);
}

static void print_ssp(const ls_config *c, const ls_plan *p, int workers, ls_buf *out) {
    if (c->sync.mode != LS_SYNC_SSP) return;
    ls_buf line = {0};
    int64_t cells = (c->sync.staleness + 1) * c->train.virtual_workers;
    ls_buf_printf(
        &line,
        "sync.mode ssp: this is the plan of the main process, in which %d worker%s compute "
        "the gradients, from parameters that are up to %lld step%s old: %.3f MB for each. "
        "They lie in %lld places of %.3f MB; each worker has %.3f MB of parameters, and "
        "memory for one virtual worker's layers (docs/guide/async.md).",
        workers, ls_plural(workers), (long long)c->sync.staleness, ls_plural(c->sync.staleness),
        (double)p->share.nbytes.params / 1e6, (long long)cells, (double)p->share.nbytes.slot / 1e6,
        (double)p->share.nbytes.params / 1e6);
    ls_buf_printf(out, "\n");
    ls_buf_wrap(out, line.data, 0, 0);
    ls_buf_free(&line);
}

/* Prints which replicas mix with each other in the rounds until the graph repeats. */
static void print_gossip(const ls_config *c, double mean_nbytes, ls_buf *out) {
    ls_gossip g = ls_sync_gossip(c);
    int rounds = ls_sync_rounds(c);
    ls_mixing mix = {.replicas = g.replicas};
    for (int i = 0; i < g.replicas; i++) mix.mass[i] = 1;
    ls_buf_printf(out, "  each mean of the replicas      %12.6f\n\n", mean_nbytes / 1e6);
    for (int r = 0; r < rounds; r++) {
        ls_mixing_make(&g, r, mix.mass, &mix);
        ls_buf_printf(out, "  round %d: replica = mean of", r + 1);
        for (int i = 0; i < g.replicas; i++) {
            int list[LS_MIXING_MOST], n = ls_mixing_terms(&mix, i, list);
            ls_buf_printf(out, "%s %d =", i ? "," : "", i);
            for (int k = 0; k < n; k++) ls_buf_printf(out, "%s%d", k ? "+" : " ", list[k]);
        }
        ls_buf_printf(out, "\n");
    }
    if (!ls_gossip_period(&g))
        ls_buf_printf(out, "  and so on: each round is drawn from train.seed\n");
}

/* What replicas that train apart send, beside what one model would. */
static void print_sync(const ls_config *c, const ls_plan *p, ls_buf *out) {
    ls_sync_traffic t;
    int64_t every = ls_config_sync_every(c);
    if (ls_sync_traffic_of(c, p, &t, NULL) != LS_OK) return;
    ls_buf_printf(out,
                  "\n  %d replicas, synchronized every %lld step%s\n"
                  "  MB that a worker reads from others in a step, on average\n"
                  "  from its own replica's workers %12.6f\n"
                  "  between replicas               %12.6f\n"
                  "  of one model (all_reduce)      %12.6f\n",
                  p->share.islands, (long long)every, ls_plural(every), t.within / 1e6,
                  t.between / 1e6, t.synchronous / 1e6);
    if (c->sync.mode == LS_SYNC_GOSSIP) print_gossip(c, t.mean, out);
}

static void print_far(const ls_config *c, const ls_plan *p, ls_buf *out) {
    ls_far f = ls_far_of(c, p);
    if (f.nodes < 2) return;
    ls_buf_printf(out,
                  "\n  this machine has %d NUMA nodes, and the run binds its threads\n"
                  "  MB that a step reads from other nodes, all workers together\n"
                  "  parameters, by layers        %14.6f\n"
                  "  from other workers           %14.6f\n",
                  f.nodes, f.parameters / 1e6, f.moved / 1e6);
}

void ls_plan_print_rest(const ls_config *c, const ls_plan *p, int workers, int near, ls_buf *out) {
    ls_memory memory;
    ls_memory_config how = ls_layout_memory_of(c, p, near && near < workers ? near : workers);
    how.table_workers = near;
    ls_plan_print_mesh(p, out);
    ls_plan_memory(p, &how, &memory);
    ls_memory_print(p, &how, &memory, out);
    print_copy(c, p, out);
    print_rows(p, near, out);
    print_far(c, p, out);
    print_async(c, p, out);
    print_ssp(c, p, workers, out);
    if (p->share.islands) print_sync(c, p, out);
    ls_phases_print(c, NULL, out);
}

/* ---- for programs ---- */

/* Bytes by purpose, for the worker that needs most. */
static ls_json *memory_json(const ls_config *c, const ls_plan *p, int workers) {
    static const char *const keys[LS_NPURPOSES] = {
        [LS_MEM_PARAMS] = "parameters",   [LS_MEM_FROZEN] = "frozen_parameters",
        [LS_MEM_GRADS] = "gradients",     [LS_MEM_WIDE] = "wide_sums",
        [LS_MEM_OPTIMIZER] = "optimizer", [LS_MEM_ACTIVATIONS] = "activations",
        [LS_MEM_WORK] = "work",           [LS_MEM_ERRORS] = "compression_errors",
        [LS_MEM_CODES] = "codes",         [LS_MEM_SCRATCH] = "scratch",
        [LS_MEM_WRITING] = "writing",     [LS_MEM_SAMPLES] = "samples",
        [LS_MEM_SUMS] = "sums",           [LS_MEM_ROOM] = "update",
        [LS_MEM_ARRIVALS] = "arrivals"};
    ls_memory m;
    ls_memory_config how = ls_layout_memory_of(c, p, workers);
    ls_plan_memory(p, &how, &m);
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "worker", m.worker);
    for (int i = 0; i < LS_NPURPOSES; i++) ls_json_set_integer(o, keys[i], (int64_t)m.nbytes[i]);
    ls_json_set_integer(o, "peak", (int64_t)m.peak);
    ls_json_set_integer(o, "file", (int64_t)m.file);
    bool copied = ls_run_can_survive(c);
    if (c->sync.mode == LS_SYNC_SSP)
        ls_json_set_integer(o, "gradients_ahead", (int64_t)ls_run_ahead_nbytes(c, p));
    ls_json_set_integer(o, "checkpoint_copy", copied ? (int64_t)p->share.nbytes.copy : 0);
    return o;
}

static ls_json *layers_json(const ls_plan *p) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < p->share.model->nlayers; i++) {
        const ls_layer *l = &p->share.model->layers[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_text(o, "name", l->name);
        ls_json_set_text(o, "kind", l->ops->kind);
        ls_json_set_integer(o, "output", (int64_t)l->y_floats);
        ls_json_set_integer(o, "parameters", (int64_t)ls_layer_count(l));
        ls_json_set_integer(o, "frozen_parameters", (int64_t)ls_layer_frozen_count(l));
        ls_json_set_number(o, "forward_flops", l->cost.flops);
        ls_json_set_integer(o, "saved_bytes", (int64_t)ls_layer_saved_nbytes(l, p->share.compute));
        ls_json_push(list, o);
    }
    return list;
}

/* Bytes that a worker reads from others in a step, on average. */
static ls_json *sync_json(const ls_config *c, const ls_plan *p) {
    ls_json *o = ls_json_new_object();
    ls_sync_traffic t = {0};
    if (ls_sync_traffic_of(c, p, &t, NULL) != LS_OK) return o;
    ls_json_set_integer(o, "replicas", p->share.islands);
    ls_json_set_integer(o, "every", ls_config_sync_every(c));
    ls_json_set_number(o, "bytes_within", t.within);
    ls_json_set_number(o, "bytes_between", t.between);
    ls_json_set_number(o, "bytes_synchronous", t.synchronous);
    if (c->sync.mode == LS_SYNC_GOSSIP) ls_json_set_number(o, "bytes_mean", t.mean);
    return o;
}

/* A mesh: the layers of each stage, its first worker, and what that one has of the parameters. */
static ls_json *mesh_json(const ls_config *c, const ls_plan *p) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    int each = p->share.stages_each, pipe = p->share.pipe;
    ls_json_set_integer(o, "data", p->share.data);
    ls_json_set_integer(o, "pipe", pipe);
    ls_json_set_integer(o, "tensor", p->share.tensor);
    ls_json_set_integer(o, "context", c->parallel.mesh_context);
    ls_json_set_integer(o, "expert", c->parallel.mesh_expert);
    ls_json_set_text(o, "schedule", ls_pipe_name(p->share.config->schedule));
    ls_json_set_integer(o, "chunks", each);
    ls_json_set_integer(o, "micro_batches", p->share.workers[0].nvws * p->share.micros);
    ls_json_set_integer(o, "in_flight", p->in_flight);
    ls_json_set_number(o, "bubble", ls_plan_bubble(p));
    for (int stage = 0; stage < pipe * each; stage++) {
        ls_json *s = ls_json_new_object();
        int first = 0, end = 0;
        ls_share_stage_layers(&p->share, stage, &first, &end);
        int worker = ls_share_runner(&p->share, 0, first);
        ls_json_set_integer(s, "first_worker", worker);
        ls_json_set_text(s, "first_layer", p->share.model->layers[first].name);
        ls_json_set_text(s, "last_layer", p->share.model->layers[end - 1].name);
        ls_json_set_integer(s, "parameters", (int64_t)ls_plan_stage_params(p, stage, worker));
        ls_json_push(list, s);
    }
    ls_json_set(o, "stages", list);
    return o;
}

static void set_far(const ls_config *c, const ls_plan *p, ls_json *plan) {
    ls_far f = ls_far_of(c, p);
    if (f.nodes < 2) return;
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "nodes", f.nodes);
    ls_json_set_number(o, "far_parameter_bytes", f.parameters);
    ls_json_set_number(o, "far_moved_bytes", f.moved);
    ls_json_set(plan, "numa", o);
}

ls_json *ls_plan_json(const ls_config *c, const ls_plan *p, int workers) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "parameters", (int64_t)p->share.model->count);
    ls_json_set_integer(o, "frozen_parameters", (int64_t)p->share.model->frozen_count);
    ls_json_set_integer(o, "workers", p->share.nworkers);
    ls_json_set_integer(o, "virtual_workers", p->share.V);
    ls_json_set_integer(o, "buckets", p->share.nbuckets);
    ls_json_set_integer(o, "actions", p->nactions);
    if (ls_sum_order(p->share.compute)) ls_json_set_text(o, "sum", ls_sum_order(p->share.compute));
    ls_json_set(o, "layers", layers_json(p));
    ls_json_set(o, "memory", memory_json(c, p, workers));
    if (p->share.islands) ls_json_set(o, "sync", sync_json(c, p));
    if (p->share.ncells > 1) ls_json_set(o, "mesh", mesh_json(c, p));
    set_far(c, p, o);
    if (c->train.nphases) ls_json_set(o, "phases", ls_phases_json(c, NULL));
    return o;
}
