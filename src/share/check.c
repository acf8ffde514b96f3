/* check.c - what a plan's config can't be; and the names and numbers that follow from it. */
#include <math.h>
#include <stdio.h>

#include "base/plural.h"
#include "compress/codec.h"
#include "share/codes.h"
#include "share/config.h"
#include "tensor/dtype.h"
#include "tensor/update_device.h"

const char *ls_share_context_name(const ls_model *m) {
    return m->together > 1 ? "expert" : "context";
}

const char *ls_share_context_title(const ls_model *m) {
    bool both = m->together > 1 && m->nchunks > m->together;
    return both ? "expert and context" : ls_share_context_name(m);
}

const char *ls_share_chunk_name(const ls_model *m) { return m->together > 1 ? "parts" : "chunks"; }

/* Workers that have one model together. */
static int cells_of(const ls_share_config *c) {
    return ls_share_degree(c->pipe) * ls_share_degree(c->tensor) * ls_share_degree(c->context);
}

int ls_share_config_micros(const ls_share_config *c) {
    int64_t samples = c->batch / c->V;
    return (int)((samples + c->micro_batch - 1) / c->micro_batch);
}

static ls_status check_types(const ls_share_config *c, ls_error *e) {
    const ls_dtype types[] = {c->compute, c->reduce};
    for (int i = 0; i < 2; i++)
        if (types[i] != LS_F32 && !ls_dtype_is_half(types[i]))
            return ls_fail(e, LS_EINVAL, "can't train in %s; use f32, bf16 or f16",
                           ls_dtype_name(types[i]));
    return LS_OK;
}

/* A loss is computed by its Backward. */
static ls_status check_model(const ls_model *m, ls_error *e) {
    if (m->nfloats == 0)
        return ls_fail(e, LS_EINVAL,
                       m->nparams ? "all parameters are frozen; none is trained"
                                  : "the model has no parameters to train");
    for (int i = 0; i < m->nlayers; i++)
        if (m->layers[i].traits.loss && m->layers[i].link.is_constant)
            return ls_fail(e, LS_EINVAL,
                           "the loss '%s' depends on no parameter that is trained; leave it out%s",
                           m->layers[i].name, m->frozen_count ? ", or freeze less" : "");
    return LS_OK;
}

static ls_status check_ranges(const ls_share_config *c, ls_error *e) {
    if (!c->first) return LS_OK;
    bool fits = c->first[0] == 0 && c->first[c->nworkers] == c->V;
    for (int w = 0; w < c->nworkers; w++) fits = fits && c->first[w] < c->first[w + 1];
    bool one_group = c->shards == 0 || c->shards == c->nworkers;
    if (fits && one_group && !c->early) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "uneven ranges of virtual workers: each worker needs at least one, all workers "
                   "must be one sharding group, and parallel.accumulate must be late");
}

/* A sharding group first sums over its own workers. Their virtual workers must be a whole subtree,
 * or the order of summation would depend on the groups. */
static ls_status check_groups(const ls_share_config *c, ls_error *e) {
    ls_node nodes[LS_TREE_MAX_COVER];
    if (c->shards == 0) return LS_OK;
    if (c->zero == 0)
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d: with parallel.zero 0 nothing is sharded; use zero "
                       "1, 2 or 3",
                       c->shards);
    if (c->shards == c->nworkers) return LS_OK;
    if (c->shards < 0 || c->nworkers % c->shards)
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d does not divide %d worker%s; use a divisor, or 0: "
                       "shard among all",
                       c->shards, c->nworkers, ls_plural(c->nworkers));
    if (c->model->nchunks > 1)
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d does not go with %s, whose gradients all workers "
                       "sum; use 0: shard among all",
                       c->shards, ls_share_chunk_name(c->model));
    int groups = c->nworkers / c->shards;
    for (int g = 0; c->tree && g < groups; g++) {
        int a = 0, b = 0;
        ls_tree_range(c->V, NULL, g, groups, &a, &b);
        if (c->V % groups == 0 && ls_tree_cover(c->V, a, b, nodes) == 1) continue;
        return ls_fail(e, LS_EINVAL,
                       "parallel.shard_group %d makes %d groups of %d workers, and their virtual "
                       "workers (%d in all) are no whole subtrees of the order of summation; use "
                       "powers of two for both, or parallel.reduce=fastest",
                       c->shards, groups, c->shards, c->V);
    }
    return LS_OK;
}

/* The virtual workers of a round must be a whole subtree. */
static ls_status check_rounds(const ls_share_config *c, ls_error *e) {
    ls_node nodes[LS_TREE_MAX_COVER];
    if (!c->early) return LS_OK;
    if (c->zero < 2)
        return ls_fail(e, LS_EINVAL,
                       "parallel.accumulate early: with parallel.zero %d gradients are not "
                       "sharded, so it would save nothing; use zero 2 or 3",
                       c->zero);
    bool whole = c->V % c->nworkers == 0;
    for (int a = 0; whole && c->tree && a < c->V; a += c->nworkers)
        whole = ls_tree_cover(c->V, a, a + c->nworkers, nodes) == 1;
    if (whole) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.accumulate early: %d workers take %d virtual workers in rounds that "
                   "are no whole subtrees of the order of summation; use powers of two for both, "
                   "or accumulate late",
                   c->nworkers, c->V);
}

/* Factors are of the sum over all virtual workers. */
static ls_status check_factors(const ls_share_config *c, ls_error *e) {
    if (c->compress.how.feedback != LS_FEEDBACK_ERROR)
        return ls_fail(e, LS_EINVAL,
                       "compress.kind powersgd: what two factors lose is always added to the next "
                       "gradient; set compress.feedback to error");
    if (c->early)
        return ls_fail(e, LS_EINVAL,
                       "compress.kind powersgd: parallel.accumulate early sums the virtual workers "
                       "in rounds, and factors are of all of them; use late");
    for (int i = 0; i < c->model->nparams; i++)
        if (ls_share_is_matrix(&c->model->params[i]) && !c->model->params[i].cut.undivided)
            return ls_fail(e, LS_EINVAL, "plan: the matrix '%s' may be divided among buckets",
                           c->model->params[i].name);
    return LS_OK;
}

/* Each virtual worker's gradient must be there by itself, in f32, which codecs encode. */
static ls_status check_compress(const ls_share_config *c, ls_error *e) {
    ls_compression complete;
    if (!c->compress.on) return LS_OK;
    if (!c->tree)
        return ls_fail(
            e, LS_EINVAL,
            "compress.kind %s: with parallel.reduce fastest gradients of virtual workers "
            "are not apart; use parallel.reduce tree",
            ls_compression_name(c->compress.how.kind));
    if (c->reduce != LS_F32)
        return ls_fail(e, LS_EINVAL,
                       "compress.kind %s: gradients are encoded in f32; set train.reduce_dtype to "
                       "f32",
                       ls_compression_name(c->compress.how.kind));
    LS_TRY(ls_compression_complete(&c->compress.how, ls_share_chunk(c), &complete, e));
    if (c->compress.momentum > 0 && ls_weighing_is_on(&c->model->weighing))
        return ls_fail(
            e, LS_EINVAL,
            "optim.optimizer onebit_adam and onebit_lamb: the samples have weights, and a "
            "sum of momenta can't be divided by those of one batch; use another one");
    return c->compress.how.kind == LS_COMPRESS_POWERSGD ? check_factors(c, e) : LS_OK;
}

/* Sums over rows in bf16 are in blocks, which begin anew at each unit of samples: a micro-batch has
 * whole units. */
static ls_status check_units(const ls_share_config *c, ls_error *e) {
    int64_t unit = ls_model_unit_samples(c->model, c->compute), samples = c->batch / c->V;
    if (c->micro_batch % unit == 0 || c->micro_batch == samples) return LS_OK;
    char multiple[48] = "";
    if (unit < samples)
        snprintf(multiple, sizeof multiple, "a multiple of %lld, or ", (long long)unit);
    return ls_fail(e, LS_EINVAL,
                   "train.micro_batch %lld: in bf16 gradients are summed in blocks of %d rows, and "
                   "%lld samples make whole ones; set train.micro_batch to %s%lld (all samples of "
                   "a virtual worker), or train.compute to f32",
                   (long long)c->micro_batch, LS_SUM_BLOCK, (long long)unit, multiple,
                   (long long)samples);
}

/* A layer that joins samples needs those of a virtual worker in one call, and a variance of more
 * than one number. Running values are summed with the gradients. */
static ls_status check_joining(const ls_share_config *c, ls_error *e) {
    const ls_layer *l = ls_model_find_joining(c->model);
    int64_t samples = c->batch / c->V;
    if (l && c->micro_batch < samples)
        return ls_fail(
            e, LS_EINVAL,
            "train.micro_batch %lld: layer '%s' normalizes over all samples of a virtual "
            "worker, so they are computed at once; set train.micro_batch to %lld "
            "(train.batch / train.virtual_workers)",
            (long long)c->micro_batch, l->name, (long long)samples);
    if (l && ls_dtype_is_half(c->reduce))
        return ls_fail(
            e, LS_EINVAL,
            "layer '%s' has running values, which are summed with the gradients and need "
            "f32; set train.reduce_dtype to f32",
            l->name);
    for (int i = 0; i < c->model->nlayers; i++) {
        const ls_layer *one = &c->model->layers[i];
        if (!ls_model_joins(c->model, one) || samples * (int64_t)one->y_floats / one->C > 1)
            continue;
        return ls_fail(
            e, LS_EINVAL,
            "layer '%s' normalizes over the samples of a virtual worker, and it has one "
            "(train.batch %lld / train.virtual_workers %d); use fewer virtual workers, or "
            "a larger batch",
            one->name, (long long)c->batch, c->V);
    }
    return LS_OK;
}

/* config/conflicts.c refuses keys that exclude each other. The checks below depend on the model, or
 * on how workers divide it. */

static bool has_running_values(const ls_model *m) {
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].momentum > 0) return true;
    return false;
}

static bool has_windows(const ls_model *m) {
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].window.rows) return true;
    return false;
}

static ls_status check_islands(const ls_share_config *c, ls_error *e) {
    if (c->islands == 0) return LS_OK;
    if (c->islands > LS_PLAN_MAX_ISLANDS || c->V % c->islands)
        return ls_fail(
            e, LS_EINVAL,
            "sync.replicas %d: each replica has as many virtual workers as the others, and "
            "there are %d (train.virtual_workers); use a divisor of that, at most %d",
            c->islands, c->V, LS_PLAN_MAX_ISLANDS);
    const char *what = has_running_values(c->model) ? "running values, as of batch normalization"
                       : has_windows(c->model)      ? "model.sparse; set it to off"
                       : c->first                   ? "uneven ranges of virtual workers"
                                                    : NULL;
    if (!what) return LS_OK;
    return ls_fail(e, LS_EINVAL, "sync.replicas %d does not go with %s", c->islands, what);
}

static ls_status check_schedule(const ls_share_config *c, ls_error *e) {
    int chunks = c->chunks > 1 ? c->chunks : 1;
    if (c->pipe <= 1 && chunks > 1)
        return ls_fail(e, LS_EINVAL,
                       "parallel.chunks %d: there is no pipeline; set parallel.mesh pipe", chunks);
    if (c->pipe > 1 && c->schedule == LS_PIPE_ZB_V && chunks != 2)
        return ls_fail(e, LS_EINVAL,
                       "parallel.schedule zb-v has two stages a worker, and parallel.chunks is %d; "
                       "set parallel.chunks=2",
                       chunks);
    if (c->pipe > 1 && (chunks > 1) != ls_pipe_is_chunked(c->schedule))
        return ls_fail(
            e, LS_EINVAL, "parallel.schedule: with %d stages a worker (parallel.chunks) use %s",
            chunks,
            chunks > 1 ? "interleaved, or zb-v with 2" : "1f1b, gpipe or zb-h1, or more chunks");
    return LS_OK;
}

static ls_status check_tensor(const ls_share_config *c, ls_error *e) {
    int slices = c->model->nslices > 1 ? c->model->nslices : 1;
    if (c->tensor <= slices) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.mesh tensor %d: the model has %d slice%s, "
                   "which these workers divide; use at most %d, or more slices",
                   c->tensor, slices, ls_plural(slices), slices);
}

/* Gradients of chunks are summed as those of virtual workers are: for each of them a tree over
 * virtual workers, which is a subtree of the whole if these are a power of two. */
static ls_status check_chunks(const ls_share_config *c, ls_error *e) {
    int n = c->model->nchunks > 1 ? c->model->nchunks : 1;
    int cut = c->model->together > 1 ? c->model->together : n; /* what the key says */
    const char *name = ls_share_context_name(c->model);
    if (c->context > n)
        return ls_fail(e, LS_EINVAL,
                       "parallel.mesh %s %d: the model has %d %s, which these workers divide; set "
                       "parallel.%s_virtual to %d, or a multiple, or use at most %d",
                       name, c->context, n, ls_share_chunk_name(c->model), name, c->context, n);
    if (n == 1) return LS_OK;
    if (c->V & (c->V - 1))
        return ls_fail(e, LS_EINVAL,
                       "parallel.%s_virtual %d: train.virtual_workers is %d, and the sums of "
                       "%s need a power of two; use %d",
                       name, cut, c->V, ls_share_chunk_name(c->model),
                       1 << (31 - __builtin_clz((unsigned)c->V)));
    if (!ls_model_find_joining(c->model)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "parallel.%s_virtual %d does not go with layers that join samples",
                   name, cut);
}

/* What workers that divide a model do not support. */
static ls_status check_mesh(const ls_share_config *c, ls_error *e) {
    int cells = cells_of(c);
    LS_TRY(check_schedule(c, e));
    LS_TRY(check_tensor(c, e));
    LS_TRY(check_chunks(c, e));
    if (cells <= 1) return LS_OK;
    if (c->nworkers % cells)
        return ls_fail(
            e, LS_EINVAL,
            "parallel.mesh: %d workers (pipe, tensor and context) have a model together, and "
            "that does not divide %d worker%s; use a divisor",
            cells, c->nworkers, ls_plural(c->nworkers));
    bool uneven = c->zero > 2 && c->V % (c->nworkers / cells) != 0;
    const char *what = has_windows(c->model) ? "model.sparse; set it to off"
                       : c->first            ? "uneven ranges of virtual workers"
                       : uneven ? "parallel.zero 3 if some workers have more virtual workers than "
                                  "others; use zero 2"
                                : NULL;
    if (!what) return LS_OK;
    bool context = c->context > 1;
    int degree = context ? c->context : c->tensor > 1 ? c->tensor : c->pipe;
    return ls_fail(e, LS_EINVAL, "parallel.mesh %s %d does not go with %s",
                   context         ? ls_share_context_title(c->model)
                   : c->tensor > 1 ? "tensor"
                                   : "pipe",
                   degree, what);
}

/* A plan takes about 100 bytes of memory for each layer call. */
static ls_status check_calls(const ls_share_config *c, ls_error *e) {
    double micro = 2.0 * c->V * c->model->nlayers, calls = micro * ls_share_config_micros(c);
    double least = ceil((double)c->batch / c->V / floor(LS_PLAN_MAX_CALLS / micro));
    if (calls <= LS_PLAN_MAX_CALLS) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "train.micro_batch %lld makes a step of %.3g calls of layers (batch %lld, %d "
                   "layers), at most %d can be planned; use at least %.0f",
                   (long long)c->micro_batch, calls, (long long)c->batch, c->model->nlayers,
                   LS_PLAN_MAX_CALLS, least);
}

/* The advised size is rounded up to a whole kilobyte, so that as many blocks fit into it. */
static ls_status check_buckets(const ls_share_config *c, ls_error *e) {
    size_t size = ls_share_bucket_floats(c), blocks = c->model->nfloats / LS_BLOCK;
    size_t segments = 1 + (size_t)c->islands, most = LS_PLAN_MAX_BUCKETS / segments;
    size_t nbuckets = (c->model->nfloats + size - 1) / size * segments;
    if (nbuckets <= LS_PLAN_MAX_BUCKETS) return LS_OK;
    size_t least = (blocks + most - 1) / most;
    size_t kilobytes = least * LS_BLOCK * sizeof(float) / 1000 + 1;
    return ls_fail(e, LS_EINVAL,
                   "parallel.bucket_mb %g cuts the gradient into %zu buckets, at most %d are "
                   "possible; use at least %.10g",
                   (double)c->bucket_nbytes / 1e6, nbuckets, LS_PLAN_MAX_BUCKETS,
                   (double)kilobytes / 1e3);
}

/* What a device has no kernels for, or what would need more copies than copies.c makes. */
static ls_status check_device(const ls_share_config *c, ls_error *e) {
    const ls_model *m = c->model;
    const char *what = NULL;
    if (!c->on_device) return LS_OK;
    if (c->islands || c->task != LS_TASK_TRAIN) what = "replicas (sync.mode)";
    if (c->compress.on) what = "compressed gradients (compress.kind)";
    if (c->noise) what = "the noise scale (train.noise_scale)";
    if (m->table_rows) what = "tables of rows (model.sparse)";
    if (what)
        return ls_fail(e, LS_EINVAL,
                       "parallel.device does not know %s yet; leave that out, or --device", what);
    for (int i = 0; i < m->nlayers; i++)
        if (!m->layers[i].traits.on_device)
            return ls_fail(e, LS_EINVAL,
                           "parallel.device: layer %s (%s) has no kernels for a device; leave "
                           "--device (parallel.device) out: cores have them",
                           m->layers[i].name, m->layers[i].ops->kind);
    return LS_OK;
}

/* Each worker sums its shards once, when all gradients are complete. */
static ls_status check_sums_on_device(const ls_share_config *c, ls_error *e) {
    const char *what = NULL;
    if (!c->sums_on_device) return LS_OK;
    if (!c->state_on_device) what = "parallel.optimizer_state: device";
    if (c->zero == 0) what = "parallel.zero: 1, 2 or 3";
    if (c->early) what = "parallel.accumulate: late";
    if (c->shards) what = "no parallel.shard_group";
    if (cells_of(c) > 1) what = "workers that have the whole model: no parallel.mesh";
    if (!what) return LS_OK;
    return ls_fail(e, LS_EINVAL, "parallel.device_link: %s needs %s",
                   c->receives ? "nccl" : "peers", what);
}

/* What the optimizer on a device does not do. */
static ls_status check_state_on_device(const ls_share_config *c, ls_error *e) {
    const char *what = NULL;
    if (!c->state_on_device) return LS_OK;
    if (!c->on_device)
        return ls_fail(e, LS_EINVAL,
                       "parallel.optimizer_state: device needs parallel.device (--device)");
    for (int g = 0; g < c->optim.ngroups; g++)
        if (!ls_update_device_has(c->optim.groups[g].rule))
            what = ls_optim_rules[c->optim.groups[g].rule].name;
    if (!what) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.optimizer_state: device does not know %s yet; use memory", what);
}

ls_status ls_share_check(const ls_share_config *c, ls_error *e) {
    int cells = cells_of(c);
    if (c->nworkers < 1 || c->nworkers / cells > c->V)
        return ls_fail(e, LS_EINVAL,
                       "%d workers for %d virtual workers; use at most %d workers, or raise "
                       "train.virtual_workers",
                       c->nworkers, c->V, c->V * cells);
    if (c->batch % c->V)
        return ls_fail(e, LS_EINVAL, "train.virtual_workers %d does not divide train.batch %lld",
                       c->V, (long long)c->batch);
    LS_TRY(check_model(c->model, e));
    LS_TRY(check_types(c, e));
    LS_TRY(check_ranges(c, e));
    LS_TRY(check_groups(c, e));
    LS_TRY(check_rounds(c, e));
    LS_TRY(check_compress(c, e));
    LS_TRY(check_islands(c, e));
    LS_TRY(check_mesh(c, e));
    LS_TRY(check_joining(c, e));
    LS_TRY(check_units(c, e));
    LS_TRY(check_device(c, e));
    LS_TRY(check_state_on_device(c, e));
    LS_TRY(check_sums_on_device(c, e));
    LS_TRY(check_calls(c, e));
    return check_buckets(c, e);
}
