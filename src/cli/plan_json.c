/* plan_json.c - see plan_json.h. */
#include "cli/plan_json.h"

#include <stdio.h>

#include "base/print.h"
#include "cli/plan_phases.h"
#include "model/print.h"
#include "train/layout.h"
#include "train/run.h"
#include "train/sync.h"

/* Bytes by purpose, for the worker that needs most. */
static ls_json *memory_json(const ls_config *c, const ls_plan *p) {
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
    ls_memory_config how = ls_layout_memory_config(c, p->c.nworkers, p->c.nworkers);
    ls_plan_memory(p, &how, &m);
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "worker", m.worker);
    for (int i = 0; i < LS_NPURPOSES; i++) ls_json_set_integer(o, keys[i], (int64_t)m.nbytes[i]);
    ls_json_set_integer(o, "peak", (int64_t)m.peak);
    ls_json_set_integer(o, "file", (int64_t)m.file);
    bool copied = ls_run_can_survive(c);
    if (c->sync.mode == LS_SYNC_SSP)
        ls_json_set_integer(o, "gradients_ahead", (int64_t)ls_run_ahead_nbytes(c, p));
    ls_json_set_integer(o, "checkpoint_copy", copied ? (int64_t)ls_plan_copy_nbytes(p) : 0);
    return o;
}

static ls_json *layers_json(const ls_plan *p) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < p->c.model->nlayers; i++) {
        const ls_layer *l = &p->c.model->layers[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_text(o, "name", l->name);
        ls_json_set_text(o, "kind", l->ops->kind);
        ls_json_set_integer(o, "output", (int64_t)l->y_floats);
        ls_json_set_integer(o, "parameters", (int64_t)ls_layer_count(l));
        ls_json_set_integer(o, "frozen_parameters", (int64_t)ls_layer_frozen_count(l));
        ls_json_set_number(o, "forward_flops", l->cost.flops);
        ls_json_set_integer(o, "saved_bytes", (int64_t)ls_layer_saved_nbytes(l, p->c.compute));
        ls_json_push(list, o);
    }
    return list;
}

/* Bytes that a worker reads from others in a step, on average. */
static ls_json *sync_json(const ls_config *c, const ls_plan *p) {
    ls_json *o = ls_json_new_object();
    ls_sync_traffic t = {0};
    if (ls_sync_traffic_of(c, p, &t, NULL) != LS_OK) return o;
    ls_json_set_integer(o, "replicas", p->c.islands);
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
    int chunks = ls_plan_stages_each(p), pipe = ls_plan_pipe(p);
    ls_json_set_integer(o, "data", ls_plan_data(p));
    ls_json_set_integer(o, "pipe", pipe);
    ls_json_set_integer(o, "tensor", ls_plan_tensor(p));
    ls_json_set_integer(o, "context", c->parallel.mesh_context);
    ls_json_set_integer(o, "expert", c->parallel.mesh_expert);
    ls_json_set_text(o, "schedule", ls_pipe_name(p->c.schedule));
    ls_json_set_integer(o, "chunks", chunks);
    ls_json_set_integer(o, "micro_batches", ls_plan_nvws(p, 0) * ls_plan_micros(p));
    ls_json_set_integer(o, "in_flight", p->in_flight);
    ls_json_set_number(o, "bubble", ls_plan_bubble(p));
    for (int stage = 0; stage < pipe * chunks; stage++) {
        ls_json *s = ls_json_new_object();
        int first = 0, end = 0;
        ls_plan_stage_layers(p, stage, &first, &end);
        int worker = ls_plan_runner(p, 0, first);
        ls_json_set_integer(s, "first_worker", worker);
        ls_json_set_text(s, "first_layer", p->c.model->layers[first].name);
        ls_json_set_text(s, "last_layer", p->c.model->layers[end - 1].name);
        ls_json_set_integer(s, "parameters", (int64_t)ls_plan_stage_params(p, stage, worker));
        ls_json_push(list, s);
    }
    ls_json_set(o, "stages", list);
    return o;
}

ls_json *cli_plan_json(const ls_config *c, const ls_plan *p) {
    ls_json *o = ls_json_new_object();
    ls_json_set_integer(o, "parameters", (int64_t)p->c.model->count);
    ls_json_set_integer(o, "frozen_parameters", (int64_t)p->c.model->frozen_count);
    ls_json_set_integer(o, "workers", p->c.nworkers);
    ls_json_set_integer(o, "virtual_workers", p->c.V);
    ls_json_set_integer(o, "buckets", p->nbuckets);
    ls_json_set_integer(o, "actions", p->nactions);
    ls_json_set(o, "layers", layers_json(p));
    ls_json_set(o, "memory", memory_json(c, p));
    if (p->c.islands) ls_json_set(o, "sync", sync_json(c, p));
    if (ls_plan_ranks(p) > 1) ls_json_set(o, "mesh", mesh_json(c, p));
    if (c->train.nphases) ls_json_set(o, "phases", cli_phases_json(c, NULL));
    return o;
}

ls_json *cli_forecast_json(const ls_forecast *f) {
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
    ls_json_set(o, "fits", ls_json_new_bool(f->fits));
    ls_json_set_text(o, "algorithm", f->algorithm);
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        if (f->kinds_s[k] > 0)
            ls_json_set_number(kinds, ls_action_kind_name((ls_action_kind)k), f->kinds_s[k]);
    ls_json_set(o, "kinds_s", kinds);
    return o;
}

void cli_fits_json(const ls_fit *fits, int n, int workers) {
    for (int i = 0; i < n; i++) {
        const ls_fit *f = &fits[i];
        ls_json *o = ls_json_new_object();
        ls_json_set_integer(o, "workers", workers);
        ls_json_set_integer(o, "zero", f->zero);
        ls_json_set_integer(o, "recompute", f->recompute);
        ls_json_set_integer(o, "recompute_layers", f->recompute_layers);
        ls_json_set_integer(o, "micro_batch", f->micro_batch);
        ls_json_set_number(o, "bucket_mb", f->bucket_mb);
        ls_json_set_text(o, "accumulate", f->accumulate ? "early" : "late");
        ls_json_set_text(o, "optimizer_state", f->state ? "file" : "memory");
        ls_json_set_integer(o, "memory_bytes", (int64_t)f->nbytes);
        ls_json_set_number(o, "computing", f->compute);
        ls_json_set_number(o, "sent", f->sent);
        ls_print_json(o);
        ls_json_free(o);
    }
}
