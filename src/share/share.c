/* share.c - see share.h: fills the table.
 *
 * First come numbers that follow from the config, then what each worker has of the mesh and of the
 * virtual workers, then buckets (bucket.c) and who writes them (mesh.c), then what follows from
 * these.
 */
#include "share/share.h"

#include <stdlib.h>

#include "optim/apply.h"
#include "share/islands.h"
#include "share/mesh.h"
#include "tensor/dtype.h"

static void set_mesh(ls_share *sh, const ls_share_config *c) {
    sh->pipe = ls_share_degree(c->pipe);
    sh->tensor = ls_share_degree(c->tensor);
    sh->context = ls_share_degree(c->context);
    sh->beside = sh->tensor * sh->context;
    sh->ncells = sh->pipe * sh->beside;
    sh->nholders = sh->pipe * sh->tensor;
    sh->data = c->nworkers / sh->ncells;
    sh->stages_each = ls_share_degree(c->chunks);
    sh->nchunks = ls_share_degree(c->model->nchunks);
    sh->most_chunks = (sh->nchunks + sh->context - 1) / sh->context;
    sh->divides = sh->nholders > 1; /* or by chunks: see ls_share_assign_buckets() */
}

static void set_islands(ls_share *sh, const ls_share_config *c) {
    sh->islands = c->islands;
    sh->island_vws = c->islands ? c->V / c->islands : c->V;
    sh->nsegments = 1 + c->islands;
    sh->segment_floats = c->model->nfloats;
    sh->floats = (size_t)sh->nsegments * sh->segment_floats;
    sh->changes = c->islands ? 3 : 1;
}

static void set_rounds(ls_share *sh, const ls_share_config *c) {
    sh->by_rounds = c->early;
    sh->vw_step = c->early ? c->nworkers : 1;
    sh->nrounds = c->early ? c->V / c->nworkers : 1;
    sh->round_vws = c->early ? c->nworkers : c->V;
    sh->nsums = 1;
    for (int i = 0, slot = 0; c->early && i < sh->nrounds; i++) {
        ls_share_fold_round(sh, i, &slot);
        if (slot + 1 > sh->nsums) sh->nsums = slot + 1;
    }
}

/* A sum lost with its worker must be that of one worker's virtual workers in a row. Codes, which
 * the others need, are lost with their worker. */
static void set_restarts(ls_share *sh, const ls_share_config *c) {
    sh->restarts = c->tree && !sh->islands && !sh->by_rounds && !sh->sends_codes &&
                   sh->ncells == 1 && sh->nchunks == 1;
}

static void set_sharding(ls_share *sh, const ls_share_config *c) {
    int members = c->nworkers / sh->nholders;
    sh->shards_moments = c->zero >= 1;
    sh->shards_grads = c->zero >= 2;
    sh->shards_params = c->zero >= 3;
    sh->nshards = c->shards ? c->shards : members;
    sh->nreplicas = members / sh->nshards;
    sh->on_device = c->on_device;
    sh->state_on_device = c->state_on_device;
    sh->sums_on_device = c->state_on_device && (c->sums_on_device || c->nworkers == 1);
    sh->receives = c->receives && c->nworkers > 1;
    sh->has_masters = c->compute != LS_F32;
    sh->nflats = ls_optim_nflats(&sh->optim) - !sh->has_masters;
}

static void set_codes(ls_share *sh) {
    const ls_share_compress *z = &sh->compress;
    sh->has_errors = z->on && z->how.feedback != LS_FEEDBACK_NONE;
    sh->has_factors = z->on && z->how.kind == LS_COMPRESS_POWERSGD;
    sh->sends_codes =
        sh->has_factors || (z->on && z->codes && z->how.feedback != LS_FEEDBACK_EF21 &&
                            sh->nworkers > 1 && !sh->by_rounds);
    sh->sends_values = !sh->sends_codes || z->warmup > 0;
    sh->encodings = sh->has_factors ? 2 : 1;
}

static void set_scalars(ls_share *sh) {
    const ls_model *m = sh->model;
    size_t each = (size_t)(m->nlosses + m->nnotes) + ls_weighing_is_on(&m->weighing);
    size_t noise = sh->noise ? (size_t)sh->V * LS_NOISE_SUMS : 0;
    sh->nscalars =
        sh->floats / LS_BLOCK + (size_t)sh->islands + each * (size_t)sh->batch + noise + 1;
}

/* ---- each worker ---- */

static void place_worker(ls_share *sh, int worker) {
    ls_worker_share *x = &sh->workers[worker];
    int beside = sh->beside, tensor = sh->tensor, part = worker % beside / tensor;
    int slices = ls_share_degree(sh->model->nslices);
    x->cell = worker / (sh->data * beside) * beside + worker % beside;
    x->place = worker / beside % sh->data;
    x->holder = x->cell / beside * tensor + x->cell % tensor;
    x->holder_place = x->place * sh->context + part;
    ls_tree_chunks(sh->nchunks, sh->context, part, &x->first_chunk, &x->end_chunk);
    ls_tree_chunks(slices, tensor, x->cell % tensor, &x->first_slice, &x->end_slice);
}

/* Workers at one place of their cells run the same virtual workers. */
static void give_virtual_workers(ls_share *sh, int worker) {
    ls_worker_share *x = &sh->workers[worker];
    int end = 0;
    ls_tree_range(sh->V, sh->ranges, x->place, sh->data, &x->first_vw, &end);
    x->nvws = end - x->first_vw;
    if (!sh->by_rounds) return;
    x->first_vw = worker;
    x->nvws = sh->nrounds;
}

static void count_slots(ls_share *sh, int worker) {
    ls_worker_share *x = &sh->workers[worker];
    ls_node nodes[LS_TREE_MAX_COVER];
    int a = x->first_vw, b = a + x->nvws, slot = 0, vws = sh->island_vws;
    bool tree = sh->config->tree && !sh->by_rounds;
    x->nslots = (tree ? ls_tree_slots(sh->V, a, b) : 1) * (x->end_chunk - x->first_chunk);
    x->sums = x->chunk_sums = tree ? ls_tree_cover(sh->V, a, b, nodes) : 1;
    x->all_slots = x->nslots;
    if (sh->by_rounds) x->all_slots += sh->nsums;
    if (sh->nchunks > 1) {
        const ls_tree_parts all = {sh->V * sh->nchunks, sh->ranges, sh->nchunks, sh->context};
        int n = sh->nworkers / sh->nholders;
        x->sums = ls_tree_parts_cover(&all, x->holder_place, n, nodes);
    }
    if (!sh->islands) return;
    for (int i = 0; i < x->nvws; i++) { /* training and Outer have the same buffers */
        ls_share_fold_island(sh, worker, i, &slot);
        if (slot + 1 > x->nslots) x->nslots = x->all_slots = slot + 1;
    }
    if (sh->task != LS_TASK_TRAIN) return;
    int lo = a / vws * vws;
    x->sums = x->chunk_sums = x->nvws >= vws ? 1 : ls_tree_cover(vws, a - lo, b - lo, nodes);
}

static void fill_workers(ls_share *sh) {
    sh->workers = LS_NEW_ARRAY(ls_worker_share, (size_t)sh->nworkers);
    for (int w = 0; w < sh->nworkers; w++) place_worker(sh, w);
    if (sh->islands) ls_share_place_islands(sh);
    for (int w = 0; w < sh->nworkers; w++) give_virtual_workers(sh, w);
    for (int w = 0; w < sh->nworkers; w++) {
        count_slots(sh, w);
        if (sh->workers[w].nslots > sh->nslots) sh->nslots = sh->workers[w].nslots;
    }
}

/* ---- each bucket ---- */

static void finish_buckets(ls_share *sh) {
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_bucket *b = &sh->buckets[k];
        size_t nbytes = (b->end - b->first) * ls_dtype_size(sh->compute);
        bool all = b->chunk < 0;
        int chunks = all ? sh->nchunks : 1;
        b->is_gathered = sh->shards_params && nbytes > sh->config->whole_nbytes && !b->shared;
        b->leaves = (ls_tree_parts){.V = sh->config->tree ? sh->round_vws * chunks : 0,
                                    .first = sh->ranges,
                                    .chunks = chunks,
                                    .context = all ? sh->context : 1};
    }
}

/* ---- bytes ---- */

static void set_nbytes(ls_share *sh) {
    const ls_model *m = sh->model;
    ls_share_nbytes *n = &sh->nbytes;
    size_t flat = sh->floats * sizeof(float);
    n->params = sh->floats * ls_dtype_size(sh->compute);
    n->state = (size_t)sh->nflats * flat;
    n->room = ls_whole_nbytes(&sh->optim, m, sh->reduce);
    n->slot = sh->floats * ls_dtype_size(sh->reduce);
    n->wide = sh->wide ? flat * (size_t)sh->most_chunks : 0;
    n->errors = sh->has_errors ? 2 * (size_t)sh->V * sh->error_floats * sizeof(float) : 0;
    n->tables = ls_optim_tables_floats(&sh->optim, m) * sizeof(float);
    n->copy = (size_t)ls_optim_nflats(&sh->optim) * flat + n->errors / 2 + n->tables;
    n->scalars = sh->nscalars * sizeof(double);
    n->frozen = m->frozen_floats * ls_dtype_size(sh->compute);
}

static ls_status fill(ls_share *sh, ls_error *e) {
    const ls_share_config *c = sh->config;
    sh->micros = ls_share_config_micros(c);
    sh->wide = ls_dtype_is_half(c->reduce) && sh->micros > 1;
    set_mesh(sh, c);
    set_islands(sh, c);
    set_rounds(sh, c);
    set_sharding(sh, c);
    set_codes(sh);
    set_restarts(sh, c);
    fill_workers(sh);
    bool several = sh->ncells > 1 || sh->nchunks > 1;
    if (sh->ncells > 1) LS_TRY(ls_share_cut_stages(sh, e));
    if (several) ls_share_list_ends(sh);
    ls_share_cut_buckets(sh);
    LS_TRY(ls_share_assign_buckets(sh, e));
    ls_share_cut_shards(sh);
    finish_buckets(sh);
    if (sh->compress.on) ls_share_cut_pieces(sh);
    sh->error_floats = sh->model->nfloats + sh->nfactors;
    set_scalars(sh);
    set_nbytes(sh);
    return LS_OK;
}

ls_status ls_share_make(const ls_share_config *c, ls_share *sh_p, ls_error *e) {
    LS_TRY(ls_share_check(c, e));
    ls_share sh = {.config = LS_NEW(ls_share_config),
                   .model = c->model,
                   .nworkers = c->nworkers,
                   .V = c->V,
                   .batch = c->batch,
                   .micro_batch = c->micro_batch,
                   .compute = c->compute,
                   .reduce = c->reduce,
                   .optim = c->optim.ngroups ? c->optim : ls_optim_usual(),
                   .compress = c->compress,
                   .noise = c->noise,
                   .task = c->task,
                   .sync = c->sync,
                   .ranges = c->first,
                   .nslots = 1};
    *sh.config = *c;
    sh.config->optim = sh.optim;
    if (c->pipe <= 1) sh.config->schedule = LS_PIPE_1F1B;
    ls_status s = fill(&sh, e);
    if (s == LS_OK)
        *sh_p = sh;
    else
        ls_share_free(&sh);
    return s;
}

void ls_share_free(ls_share *sh) {
    free(sh->config);
    free(sh->workers);
    free(sh->buckets);
    free(sh->cuts);
    free(sh->touched);
    free(sh->touched_from);
    free(sh->pieces);
    free(sh->pieces_from);
    free(sh->own_ranges);
    free(sh->stage_of);
    free(sh->cell_of);
    free(sh->crossings);
    free(sh->openers);
    free(sh->closers);
    free(sh->parts);
    free(sh->ends);
    *sh = (ls_share){0};
}

/* ---- workers ---- */

int ls_share_worker(const ls_share *sh, int cell, int place) {
    int beside = sh->beside;
    return (cell / beside * sh->data + place) * beside + cell % beside;
}

int ls_share_member(const ls_share *sh, int holder, int place) {
    int context = sh->context, tensor = sh->tensor;
    int cell = holder / tensor * sh->beside + place % context * tensor + holder % tensor;
    return ls_share_worker(sh, cell, place / context);
}

int ls_share_first_of_shards(const ls_share *sh, int worker) {
    const ls_worker_share *x = &sh->workers[worker];
    return ls_share_member(sh, x->holder, x->holder_place - x->holder_place % sh->nshards);
}

bool ls_share_runs_vw(const ls_share *sh, int worker, int vw) {
    const ls_worker_share *x = &sh->workers[worker];
    int i = ls_share_vw_index(sh, worker, vw);
    return vw >= x->first_vw && i < x->nvws && ls_share_vw(sh, worker, i) == vw;
}

int64_t ls_share_samples(const ls_share *sh, int micro) {
    int64_t all = sh->batch / sh->V, left = all - micro * sh->micro_batch;
    if (micro < 0)
        left = all;
    else if (left > sh->micro_batch)
        left = sh->micro_batch;
    return ls_model_samples(sh->model, left);
}

/* ---- shards ---- */

/* The number of the worker's shard. */
static int shard_of(const ls_share *sh, const ls_bucket *b, int worker) {
    const ls_worker_share *x = &sh->workers[worker];
    if (sh->islands) return worker - b->workers.from;
    return b->is_apart ? x->place : x->holder_place % sh->nshards;
}

ls_range ls_share_shard(const ls_share *sh, int bucket, int worker) {
    const ls_bucket *b = &sh->buckets[bucket];
    if (!ls_share_has(sh, bucket, worker)) return (ls_range){b->first, b->first};
    const size_t *cut = sh->cuts + (size_t)bucket * sh->cuts_row + shard_of(sh, b, worker);
    return (ls_range){cut[0], cut[1]};
}

size_t ls_share_shards_count(const ls_share *sh, int worker) {
    size_t count = 0;
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range s = ls_share_shard(sh, k, worker);
        count += s.end - s.first;
    }
    return count;
}

void ls_share_shard_counts(const ls_share *sh, int bucket, size_t *counts) {
    const size_t *cut = sh->cuts + (size_t)bucket * sh->cuts_row;
    for (size_t i = 0; i < sh->buckets[bucket].nshards; i++) counts[i] = cut[i + 1] - cut[i];
}

ls_range ls_share_normed(const ls_share *sh, int bucket, int worker) {
    ls_range s = ls_share_shard(sh, bucket, worker);
    bool common = sh->islands && sh->buckets[bucket].island == 0; /* has no gradient */
    if (sh->workers[worker].holder_place >= sh->nshards || common) s.end = s.first;
    return s;
}

ls_range ls_share_owned(const ls_share *sh, int bucket, int worker) {
    const ls_bucket *b = &sh->buckets[bucket];
    if (sh->shards_moments) return ls_share_shard(sh, bucket, worker);
    return (ls_range){b->first, ls_share_has(sh, bucket, worker) ? b->end : b->first};
}

/* ---- memory ---- */

ls_scalars ls_share_scalars(const ls_share *sh, double *scalars) {
    const ls_model *m = sh->model;
    size_t batch = (size_t)sh->batch;
    bool weighs = ls_weighing_is_on(&m->weighing);
    ls_scalars x = {.norms = scalars};
    x.squares = x.norms + sh->floats / LS_BLOCK;
    x.losses = x.squares + sh->islands;
    x.notes = x.losses + (size_t)m->nlosses * batch;
    x.noise = x.notes + ((size_t)m->nnotes + weighs) * batch;
    x.given_up = x.noise + (sh->noise ? (size_t)sh->V * LS_NOISE_SUMS : 0);
    if (weighs) x.weights = x.noise - batch;
    return x;
}

/* Bytes of the group's arena for messages of this group, and of a few more. */
enum { GROUPS_NBYTES = 8 << 20 };

/* In slots for sums over all workers, only the worker's shards are used. */
size_t ls_share_grads_nbytes(const ls_share *sh, int worker) {
    return (size_t)(sh->workers[worker].all_slots + sh->ninbox) * sh->nbytes.slot;
}

size_t ls_share_group_nbytes(const ls_share *sh) {
    const ls_share_nbytes *n = &sh->nbytes;
    size_t grads = 0;
    for (int w = 0; w < sh->nworkers; w++)
        if (ls_share_grads_nbytes(sh, w) > grads) grads = ls_share_grads_nbytes(sh, w);
    return n->params + n->state + n->frozen + grads + 2 * n->scalars + GROUPS_NBYTES;
}

size_t ls_share_host_nbytes(const ls_share *sh) {
    const ls_share_nbytes *n = &sh->nbytes;
    size_t copies = (size_t)(sh->nreplicas * sh->nholders);
    size_t sum = (n->params + n->state) * copies + n->errors;
    for (int w = 0; w < sh->nworkers; w++)
        sum += ls_share_grads_nbytes(sh, w) + n->wide + 2 * n->scalars + n->room;
    return sum;
}
