/* layout.c - see layout.h. */
#include "train/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/math.h"
#include "base/plural.h"
#include "config/needs.h"
#include "model/types.h"
#include "networks/network.h"
#include "share/codes.h"
#include "share/config.h"
#include "storage/pretrained.h"
#include "train/prompts.h"
#include "train/replica_sync.h"

static bool sends_codes(const ls_config *c) {
    int64_t t = c->parallel.transport;
    if (c->compress.send != LS_COMPRESS_SEND_AUTO)
        return c->compress.send == LS_COMPRESS_SEND_CODES;
    return t == LS_TRANSPORT_TCP || t == LS_TRANSPORT_MPI;
}

/* Signs of the momentum, with a scale for each block: the root of the mean of squares. */
static ls_share_compress compress_of_optimizer(const ls_config *c) {
    return (ls_share_compress){.on = true,
                               .how = {.kind = LS_COMPRESS_ONEBIT,
                                       .feedback = LS_FEEDBACK_ERROR,
                                       .op = LS_SUM,
                                       .block = (size_t)c->compress.block,
                                       .sign_scale = LS_SCALE_ROOT},
                               .codes = sends_codes(c),
                               .warmup = c->optim.freeze_step,
                               .min_count = (size_t)c->compress.min_size,
                               .momentum = c->optim.beta1};
}

static ls_share_compress compress_of(const ls_config *c) {
    static const ls_compression_kind kinds[] = {[LS_COMPRESS_WITH_TOPK] = LS_COMPRESS_TOPK,
                                                [LS_COMPRESS_WITH_ONEBIT] = LS_COMPRESS_ONEBIT,
                                                [LS_COMPRESS_WITH_INT8] = LS_COMPRESS_INT8,
                                                [LS_COMPRESS_WITH_INT4] = LS_COMPRESS_INT4,
                                                [LS_COMPRESS_WITH_POWERSGD] = LS_COMPRESS_POWERSGD};
    if (ls_config_sends_momentum(&c->optim)) return compress_of_optimizer(c);
    if (c->compress.kind == LS_COMPRESS_OFF) return (ls_share_compress){0};
    return (ls_share_compress){.on = true,
                               .how = {.kind = kinds[c->compress.kind],
                                       .feedback = c->compress.feedback,
                                       .op = LS_SUM,
                                       .ratio = c->compress.ratio,
                                       .block = (size_t)c->compress.block,
                                       .rank = (int)c->compress.rank,
                                       .seed = (uint64_t)c->train.seed},
                               .codes = sends_codes(c),
                               .warmup = c->compress.warmup,
                               .min_count = (size_t)c->compress.min_size};
}

/* The nearest numbers to `degree` that divide the workers: the next one below and above; 0:
 * none. */
static void nearest_degrees(int degree, int nworkers, int *below_p, int *above_p) {
    int below = degree - 1, above = degree + 1;
    while (below > 1 && nworkers % below) below--;
    while (above <= nworkers && nworkers % above) above++;
    *below_p = below > 0 ? below : 0;
    *above_p = above <= nworkers ? above : 0;
}

/* Nothing is carried on: what a Delta loses by rounding, a replica takes over with the common
 * parameters. */
static ls_share_compress compress_of_deltas(const ls_config *c) {
    static const ls_compression_kind kinds[] = {[LS_DELTAS_BF16] = LS_COMPRESS_BF16,
                                                [LS_DELTAS_INT8] = LS_COMPRESS_INT8,
                                                [LS_DELTAS_INT4] = LS_COMPRESS_INT4};
    if (c->sync.deltas == LS_DELTAS_F32) return (ls_share_compress){0};
    return (ls_share_compress){
        .on = true,
        .how = {.kind = kinds[c->sync.deltas], .feedback = LS_FEEDBACK_NONE, .op = LS_SUM},
        .codes = sends_codes(c)};
}

/* The mesh must have as many workers as there are. */
static ls_status check_mesh(const ls_config *c, int nworkers, ls_error *e) {
    int data = (int)c->parallel.mesh_data, pipe = (int)c->parallel.mesh_pipe;
    int tensor = (int)c->parallel.mesh_tensor, context = (int)c->parallel.mesh_context;
    int expert = (int)c->parallel.mesh_expert, ranks = pipe * tensor * context * expert;
    char degrees[80];
    int at = snprintf(degrees, sizeof degrees, "pipe %d", pipe);
    if (tensor > 1)
        at += snprintf(degrees + at, sizeof degrees - (size_t)at, " times tensor %d", tensor);
    if (context > 1)
        at += snprintf(degrees + at, sizeof degrees - (size_t)at, " times context %d", context);
    if (expert > 1) snprintf(degrees + at, sizeof degrees - (size_t)at, " times expert %d", expert);
    if (nworkers % ranks) {
        int below = 0, above = 0;
        char other[32] = "";
        nearest_degrees(ranks, nworkers, &below, &above);
        if (above) snprintf(other, sizeof other, " or %d", above);
        return ls_fail(
            e, LS_EINVAL,
            "parallel.mesh: %d worker%s can't be divided into groups of %d (%s) that have "
            "a model together; use a multiple of %d workers, or %s %d%s",
            nworkers, ls_plural(nworkers), ranks, degrees, ranks,
            ranks > pipe ? "degrees whose product is" : "pipe", below, other);
    }
    if (!data || data * ranks == nworkers) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.mesh: data %d times %s makes %d workers, and there %s %d; use -n "
                   "%d, or leave data out",
                   data, degrees, data * ranks, nworkers == 1 ? "is" : "are", nworkers,
                   data * ranks);
}

static int layer_named(const ls_model *m, const char *name, size_t n) {
    for (int l = 0; l < m->nlayers; l++)
        if (strlen(m->layers[l].name) == n && strncmp(m->layers[l].name, name, n) == 0) return l;
    return -1;
}

/* The numbers of the layers that the config names. */
static ls_status find_stages(const ls_config *c, ls_layout *l, ls_error *e) {
    int n = 0, wanted = (int)(c->parallel.mesh_pipe * c->parallel.chunks) - 1;
    if (!*c->parallel.stages || wanted == 0) return LS_OK;
    l->stages = LS_NEW_ARRAY(int, (size_t)wanted);
    for (const char *at = c->parallel.stages; *at;) {
        size_t size = strcspn(at, "\n");
        int layer = layer_named(&l->model, at, size);
        if (layer < 0)
            return ls_fail(e, LS_EINVAL,
                           "parallel.stages: there is no layer '%.*s'; 'lockstep plan' names them",
                           (int)size, at);
        if (n < wanted) l->stages[n] = layer;
        n++;
        at += size + (at[size] != 0);
    }
    if (n == wanted) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.stages names the first layers of %d stages; parallel.mesh pipe %lld "
                   "times parallel.chunks %lld makes %d besides the first",
                   n, (long long)c->parallel.mesh_pipe, (long long)c->parallel.chunks, wanted);
}

/* Parameters have the places of the plan's model. */
static ls_status make_one(const ls_config *c, ls_layout *l, ls_error *e) {
    if (l->model.together <= 1) return LS_OK;
    LS_TRY(ls_network_create(c, &l->one, e));
    for (int i = 0; i < l->one.nparams; i++) l->one.params[i] = l->model.params[i];
    ls_model_place(&l->one);
    return LS_OK;
}

const ls_model *ls_layout_evaluated(const ls_layout *l) {
    return l->one.nlayers ? &l->one : &l->model;
}

bool ls_layout_encodes(const ls_plan *p) {
    const ls_code_piece *x = NULL;
    for (int k = 0; p->share.compress.on && k < p->share.nbuckets; k++)
        for (int i = 0, n = ls_share_pieces(&p->share, k, &x); i < n; i++)
            if (!x[i].plain) return true;
    return false;
}

/* A code that no parameter has is no code. */
static ls_status check_codes(const ls_config *c, const ls_plan *p, ls_error *e) {
    if (!p->share.compress.on || ls_layout_encodes(p)) return LS_OK;
    return ls_config_refuse_written(c, "compress.kind",
                                    "parameters that are large enough for its code "
                                    "(compress.min_size, compress.rank)",
                                    e);
}

static ls_status make_plan(const ls_config *c, const ls_share_config *how, ls_plan *p_p,
                           ls_error *e) {
    LS_TRY(ls_plan_make(how, p_p, e));
    ls_status s = check_codes(c, p_p, e);
    int n = how->nworkers;
    bool shared =
        ls_layout_shares_memory(c, n, n) || c->parallel.executor == LS_EXECUTOR_SEQUENTIAL;
    if (s == LS_OK) s = ls_sync_check(p_p, shared, e);
    if (s != LS_OK) ls_plan_free(p_p);
    return s;
}

static bool has_mesh(const ls_config *c) {
    return c->parallel.mesh_pipe > 1 || c->parallel.mesh_tensor > 1 ||
           c->parallel.mesh_context > 1 || c->parallel.mesh_expert > 1;
}

bool ls_layout_links_devices(const ls_config *c) {
    if (c->parallel.device_link != LS_DEVICE_LINK_AUTO)
        return c->parallel.device_link != LS_DEVICE_LINK_HOST;
    return c->parallel.optimizer_state == LS_STATE_DEVICE && ls_device_shares(c->parallel.device) &&
           !has_mesh(c) && c->parallel.zero > 0 && c->parallel.accumulate == LS_ACCUMULATE_LATE &&
           c->parallel.shard_group == 0 && c->parallel.executor != LS_EXECUTOR_SEQUENTIAL &&
           c->parallel.transport != LS_TRANSPORT_THREAD;
}

/* The devices must be of a kind that can. */
static ls_status check_link(const ls_config *c, ls_error *e) {
    bool peers = c->parallel.device_link == LS_DEVICE_LINK_PEERS;
    bool nccl = c->parallel.device_link == LS_DEVICE_LINK_NCCL;
    const char *device = c->parallel.device;
    if (!ls_config_has_device(c)) return LS_OK;
    if (nccl && !ls_device_is_kind(device, "cuda"))
        return ls_fail(e, LS_EINVAL,
                       "parallel.device_link: nccl is for devices cuda, and not %s; use host",
                       device);
    if (!peers || ls_device_shares(device)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "parallel.device_link: peers is for devices cuda and c, whose memory other "
                   "processes can read, and not for %s; use host",
                   device);
}

/* What the config asks of a plan; the optimizer comes later. */
static ls_share_config wanted_of(const ls_config *c, int nworkers, const int *first,
                                 const ls_layout *l) {
    return (ls_share_config){.model = &l->model,
                             .nworkers = nworkers,
                             .first = first,
                             .V = (int)c->train.virtual_workers,
                             .batch = c->train.batch,
                             .micro_batch = c->train.micro_batch,
                             .tree = c->parallel.reduce == LS_REDUCE_TREE,
                             .bucket_nbytes = (size_t)ls_math_times(c->parallel.bucket_mb, 1e6),
                             .zero = (int)c->parallel.zero,
                             .recompute = (int)c->parallel.recompute,
                             .recompute_layers = (int)c->parallel.recompute_layers,
                             .whole_nbytes = (size_t)ls_math_times(c->parallel.whole_kb, 1e3),
                             .sync.deltas = compress_of_deltas(c),
                             .early = c->parallel.accumulate == LS_ACCUMULATE_EARLY,
                             .prefetch = (int)c->parallel.prefetch,
                             .shards = (int)c->parallel.shard_group,
                             .compute = ls_config_compute(c),
                             .reduce = ls_config_reduce(c),
                             .pipe = (int)c->parallel.mesh_pipe,
                             .tensor = (int)c->parallel.mesh_tensor,
                             .context = (int)(c->parallel.mesh_context * c->parallel.mesh_expert),
                             .chunks = (int)c->parallel.chunks,
                             .schedule = c->parallel.schedule,
                             .stages = l->stages,
                             .compress = compress_of(c),
                             .on_device = ls_config_has_device(c),
                             .state_on_device = c->parallel.optimizer_state == LS_STATE_DEVICE,
                             .sums_on_device = ls_layout_links_devices(c),
                             .receives = c->parallel.device_link == LS_DEVICE_LINK_NCCL,
                             .noise = c->train.noise_scale != 0};
}

ls_status ls_layout_make(const ls_config *c, int nworkers, const int *first, ls_layout *l_p,
                         ls_error *e) {
    if (c->compress.kind == LS_COMPRESS_AUTO)
        return ls_fail(e, LS_EINVAL,
                       "compress.kind auto is decided by `lockstep train` and `lockstep plan`; set "
                       "the kind here");
    LS_TRY(check_link(c, e));
    l_p->stages = NULL;
    l_p->one = (ls_model){0};
    LS_TRY(check_mesh(c, nworkers, e));
    LS_TRY(ls_network_create_cut(c, &l_p->model, e));
    ls_status s = find_stages(c, l_p, e);
    ls_share_config plan = wanted_of(c, nworkers, first, l_p);
    ls_gossip gossip = ls_sync_gossip(c);
    if (s == LS_OK && c->sync.mode == LS_SYNC_GOSSIP) s = ls_gossip_check(&gossip, e);
    if (s == LS_OK) s = ls_optim_of(c, &l_p->model, &plan.optim, e);
    plan.islands = plan.optim.replicas;
    plan.sync.mixing = c->sync.mixing;
    plan.sync.gossips = c->sync.mode == LS_SYNC_GOSSIP;
    if (c->compress.kind == LS_COMPRESS_WITH_POWERSGD) ls_share_place_matrices(&l_p->model);
    if (s == LS_OK) s = make_one(c, l_p, e);
    if (s == LS_OK) s = make_plan(c, &plan, &l_p->plan, e);
    if (s == LS_OK) return LS_OK;
    ls_model_free(&l_p->model);
    ls_model_free(&l_p->one);
    free(l_p->stages);
    l_p->stages = NULL;
    return s;
}

void ls_layout_config_whole(ls_config *c) {
    c->parallel.mesh_data = 0;
    c->parallel.mesh_pipe = c->parallel.mesh_tensor = c->parallel.chunks = 1;
    c->parallel.mesh_context = c->parallel.mesh_expert = 1;
    c->parallel.stages = "";
    if (ls_pipe_is_chunked(c->parallel.schedule)) c->parallel.schedule = LS_PIPE_1F1B;
}

void ls_layout_config_distributed(ls_config *c) {
    bool compresses = c->compress.kind != LS_COMPRESS_OFF || ls_config_sends_momentum(&c->optim);
    if (compresses && c->compress.send == LS_COMPRESS_SEND_AUTO)
        c->compress.send = LS_COMPRESS_SEND_CODES;
    if (c->parallel.device_link == LS_DEVICE_LINK_AUTO)
        c->parallel.device_link = LS_DEVICE_LINK_HOST;
}

void ls_layout_free(ls_layout *l) {
    ls_plan_free(&l->plan);
    ls_model_free(&l->model);
    ls_model_free(&l->one);
    free(l->stages);
    *l = (ls_layout){0};
}

/* Makes the largest possible groups of at most `most` workers, each of which has the whole
 * state. */
static bool make_groups(const ls_config *c, int n, int most, ls_layout *l_p) {
    ls_config with = *c;
    for (int group = most < n ? most : n; group >= 1; group--) {
        with.parallel.shard_group = group;
        if (n % group == 0 && ls_layout_make(&with, n, NULL, l_p, NULL) == LS_OK) return true;
    }
    return false;
}

/* Sets the degrees of expert and context whose product is `workers`; false: there are none. */
static bool set_parts(ls_config *c, int64_t workers) {
    int64_t expert = ls_config_expert_of(c, workers);
    if (expert == 0) return false;
    c->parallel.mesh_expert = expert;
    c->parallel.mesh_context = workers / expert;
    return true;
}

/* The largest degrees that are possible, of at most what the config says, tensor before those of
 * experts and contexts together, these before pipe; longer pipelines only where there are more
 * workers than virtual workers. Stages that it names are for its own. */
static bool make_mesh(const ls_config *c, int n, ls_layout *l_p) {
    ls_config with = *c;
    with.parallel.mesh_data = 0;
    if (ls_layout_make(&with, n, NULL, l_p, NULL) == LS_OK) return true;
    ls_layout_config_whole(&with);
    int64_t most = c->parallel.mesh_expert * c->parallel.mesh_context;
    for (int tensor = (int)c->parallel.mesh_tensor; tensor >= 1; tensor--)
        for (int64_t parts = most; parts >= 1; parts--)
            for (int pipe = (int)c->parallel.mesh_pipe; pipe >= 1; pipe--) {
                with.parallel.mesh_tensor = tensor;
                with.parallel.mesh_pipe = pipe;
                if (tensor * parts * pipe == 1 || !set_parts(&with, parts)) continue;
                if (ls_layout_make(&with, n, NULL, l_p, NULL) == LS_OK) return true;
            }
    with.parallel.mesh_tensor = with.parallel.mesh_expert = with.parallel.mesh_context = 1;
    for (int pipe = 2; pipe <= n && n > c->train.virtual_workers; pipe++) {
        with.parallel.mesh_pipe = pipe;
        if (ls_layout_make(&with, n, NULL, l_p, NULL) == LS_OK) return true;
    }
    return false;
}

ls_status ls_layout_make_nearest(const ls_config *c, int nworkers, int group, const int *first,
                                 ls_layout *l_p, ls_error *e) {
    ls_config with = *c;
    ls_layout_config_whole(&with);
    if (ls_config_ranks(c) > 1 && make_mesh(c, nworkers, l_p)) return LS_OK;
    if (c->parallel.zero > 0 && group > 0 && make_groups(&with, nworkers, group, l_p)) return LS_OK;
    if (c->parallel.zero > 0) with.parallel.shard_group = 0;
    ls_status s = ls_layout_make(&with, nworkers, first, l_p, e);
    if (s == LS_OK || c->parallel.accumulate != LS_ACCUMULATE_EARLY) return s;
    with.parallel.accumulate = LS_ACCUMULATE_LATE;
    return ls_layout_make_nearest(&with, nworkers, group, first, l_p, e);
}

int ls_layout_fit(const ls_config *c, int n) {
    int fits = ls_config_ranks(c) > 1 && n <= ls_config_most_workers(c) ? n : 0;
    for (; fits > c->train.virtual_workers; fits--) {
        ls_layout l = {0};
        int group = (int)c->parallel.shard_group;
        if (ls_layout_make_nearest(c, fits, group, NULL, &l, NULL) != LS_OK) continue;
        ls_layout_free(&l);
        break;
    }
    return fits ? fits : n;
}

bool ls_layout_shares_memory(const ls_config *c, int nworkers, int near) {
    int64_t t = c->parallel.transport;
    return near == nworkers && t != LS_TRANSPORT_TCP && t != LS_TRANSPORT_MPI;
}

bool ls_layout_begins_published(const ls_config *c) { return *c->model.from && !*c->train.from; }

/* Are values that are rounded to 16 bits in the memory of each worker? */
static bool rounds_apart(const ls_config *c) {
    return c->parallel.transport == LS_TRANSPORT_MPI && ls_config_compute(c) != LS_F32;
}

/* Bytes of the frozen parameters of a published model as they are held by `near` workers of a host;
 * 0: in one copy in the compute type, or, if they are rounded apart, in one copy each. */
static size_t stored_nbytes(const ls_config *c, int near) {
    ls_model m;
    ls_pretrained f;
    size_t nbytes = 0;
    ls_dtype type = ls_config_compute(c);
    if (!ls_layout_begins_published(c) || (type != LS_F32 && !rounds_apart(c))) return 0;
    if (ls_network_create(c, &m, NULL) != LS_OK) return 0;
    if (m.frozen_count && ls_pretrained_open_for(c->model.from, &m, type, &f, NULL) == LS_OK) {
        nbytes = ls_pretrained_nbytes(&f, &m);
        if (type != LS_F32)
            nbytes += (m.frozen_floats * ls_dtype_size(type) - nbytes) * (size_t)near;
        ls_pretrained_close(&f);
    }
    ls_model_free(&m);
    return nbytes;
}

ls_memory_config ls_layout_memory_config(const ls_config *c, int nworkers, int near) {
    int64_t stage = nworkers / ls_config_ranks(c);
    int64_t among = c->parallel.shard_group ? c->parallel.shard_group : stage;
    size_t frozen = stored_nbytes(c, near);
    return (ls_memory_config){.threads = ls_config_threads(c, near, ls_cores()),
                              .one = among > 1 && c->parallel.zero > 0 &&
                                     ls_layout_shares_memory(c, nworkers, near),
                              .near = rounds_apart(c) && !frozen ? 1 : near,
                              .frozen_nbytes = frozen,
                              .writing_nbytes = ls_prompts_nbytes(c),
                              .in_file = c->parallel.optimizer_state == LS_STATE_FILE};
}

ls_memory_config ls_layout_memory_of(const ls_config *c, const ls_plan *p, int processes) {
    ls_memory_config how = ls_layout_memory_config(c, p->share.nworkers, p->share.nworkers);
    if (ls_config_has_crew(c)) how.threads = ls_config_threads(c, processes, ls_cores());
    return how;
}

/* All but the first and the last. */
int64_t ls_layout_most_recomputed(const ls_config *c) {
    ls_model m;
    if (ls_network_create_cut(c, &m, NULL) != LS_OK) return 0;
    int64_t n = m.nlayers - 2;
    ls_model_free(&m);
    return n > 0 ? n : 0;
}

static int64_t samples_of(const ls_config *c) { return c->train.batch / c->train.virtual_workers; }

int64_t ls_layout_micro_unit(const ls_config *c) {
    ls_model m;
    if (ls_network_create_cut(c, &m, NULL) != LS_OK) return 1;
    int64_t unit =
        ls_model_find_joining(&m) ? samples_of(c) : ls_model_unit_samples(&m, ls_config_compute(c));
    ls_model_free(&m);
    return unit;
}

bool ls_layout_takes_micro(const ls_config *c, int64_t unit, int64_t micro_batch) {
    return micro_batch % unit == 0 || micro_batch == samples_of(c);
}

int64_t ls_layout_least_zero(const ls_config *c) {
    if (c->parallel.accumulate == LS_ACCUMULATE_EARLY) return 2;
    return c->parallel.shard_group > 0 ? 1 : 0;
}

/* Needs workers of one host to share their gradients, and each to have all parameters while it
 * computes: sharded parameters come and go within a step. */
bool ls_layout_has_backups(const ls_config *c, const ls_plan *p, bool survives) {
    return survives && c->survival.backup_workers > 0 && p->share.config->tree &&
           !p->share.by_rounds && !p->share.shards_params && p->share.nworkers > 1 &&
           p->share.ncells == 1 && !p->share.on_device;
}

static bool may_overlap(const ls_config *c, const ls_plan *p, bool survives) {
    return c->parallel.executor != LS_EXECUTOR_SEQUENTIAL && p->share.ncells == 1 &&
           !ls_layout_has_backups(c, p, survives);
}

int ls_layout_threads(const ls_config *c, const ls_plan *p, bool survives, int near, int cores) {
    enum { SPARE_OF = 8 };
    int n = ls_config_threads(c, near, cores);
    bool spares = c->parallel.threads == LS_AUTO && c->parallel.overlap != LS_OVERLAP_OFF &&
                  p->share.nworkers > 1 && may_overlap(c, p, survives);
    return spares && n >= SPARE_OF && (n + 1) * near > cores ? n - 1 : n;
}

bool ls_layout_has_overlap(const ls_config *c, const ls_plan *p, bool survives, int near,
                           int cores) {
    int threads = ls_layout_threads(c, p, survives, near, cores);
    bool room = p->share.nworkers > 1 && (threads + 1) * near <= cores;
    if (!may_overlap(c, p, survives)) return false;
    return c->parallel.overlap == LS_OVERLAP_ON || (c->parallel.overlap == LS_OVERLAP_AUTO && room);
}
