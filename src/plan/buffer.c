/* buffer.c - the numbered buffers of a plan: their sizes and names. */
#include <stdio.h>

#include "model/mixed_device.h"
#include "model/split.h"
#include "plan/plan.h"
#include "share/mesh.h"
#include "tensor/dtype.h"

/* ---- numbers: one kind after the other. A fixed few; of what layers compute one for each layer
 * and micro-batch in flight; of the others one for each bucket and slot ---- */

/* Slots of a kind of buffer. */
static int slots_of(const ls_plan *p, ls_buffer_kind kind) {
    const ls_share *sh = &p->share;
    if (ls_buffer_in_arena(kind)) return p->in_flight;
    return kind == LS_BUF_GRAD || kind == LS_BUF_DEVICE_GRAD ? sh->nslots
           : kind == LS_BUF_SUM || kind == LS_BUF_DEVICE_SUM ? sh->nsums
           : kind == LS_BUF_INBOX                            ? sh->ninbox
                                                             : 1;
}

static int count_of(const ls_plan *p, ls_buffer_kind kind) {
    const ls_share *sh = &p->share;
    if (kind < LS_BUF_ACT) return 1;
    bool there =
        kind >= LS_BUF_DEVICE_SAMPLES || (kind >= LS_BUF_DEVICE_ACT && kind <= LS_BUF_DEVICE_DACT);
    if (there && !sh->on_device) return 0;
    if (kind >= LS_BUF_DEVICE_SAMPLES && kind <= LS_BUF_DEVICE_NORMS) return 1;
    return slots_of(p, kind) * (ls_buffer_in_arena(kind) ? sh->model->nlayers : sh->nbuckets);
}

void ls_plan_count_buffers(ls_plan *p) {
    for (int kind = 0; kind < LS_NBUFFER_KINDS; kind++)
        p->first[kind + 1] = p->first[kind] + count_of(p, (ls_buffer_kind)kind);
}

int ls_plan_nbuffers(const ls_plan *p) { return p->first[LS_NBUFFER_KINDS]; }

int ls_plan_buffer(const ls_plan *p, ls_buffer_kind kind, int index, int slot) {
    return p->first[kind] + index * slots_of(p, kind) + slot;
}

ls_buffer ls_plan_buffer_of(const ls_plan *p, int id) {
    int kind = 0;
    while (kind + 1 < LS_NBUFFER_KINDS && id >= p->first[kind + 1]) kind++;
    int at = id - p->first[kind], slots = slots_of(p, (ls_buffer_kind)kind);
    return (ls_buffer){(ls_buffer_kind)kind, at / slots, at % slots};
}

static const ls_buffer_kind twins[][2] = {
    {LS_BUF_ACT, LS_BUF_DEVICE_ACT},       {LS_BUF_SAVED, LS_BUF_DEVICE_SAVED},
    {LS_BUF_DACT, LS_BUF_DEVICE_DACT},     {LS_BUF_SAMPLES, LS_BUF_DEVICE_SAMPLES},
    {LS_BUF_LOSSES, LS_BUF_DEVICE_LOSSES}, {LS_BUF_NORMS, LS_BUF_DEVICE_NORMS},
    {LS_BUF_PARAM, LS_BUF_DEVICE_PARAM},   {LS_BUF_SHARD, LS_BUF_DEVICE_SHARD},
    {LS_BUF_MOMENT, LS_BUF_DEVICE_MOMENT}, {LS_BUF_SUM, LS_BUF_DEVICE_SUM},
    {LS_BUF_GRAD, LS_BUF_DEVICE_GRAD}};

int ls_plan_twin(const ls_plan *p, int id) {
    if (!p->share.on_device) return id;
    ls_buffer b = ls_plan_buffer_of(p, id);
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
        for (int k = 0; k < 2; k++)
            if (b.kind == twins[i][k]) return ls_plan_buffer(p, twins[i][!k], b.index, b.slot);
    return id;
}

bool ls_plan_outlives(const ls_plan *p, int id) {
    ls_buffer_kind kind = ls_plan_buffer_of(p, id).kind;
    if (kind == LS_BUF_PARAM || kind == LS_BUF_DEVICE_PARAM) {
        bool gathered = p->share.shards_moments && !p->share.sums_on_device; /* by the host */
        return (kind == LS_BUF_DEVICE_PARAM) == (p->share.state_on_device && !gathered);
    }
    if (p->share.state_on_device)
        return kind == LS_BUF_DEVICE_SHARD || kind == LS_BUF_DEVICE_MOMENT;
    return kind == LS_BUF_SHARD || kind == LS_BUF_MOMENT;
}

bool ls_plan_knows(const ls_plan *p, int worker, int bucket) {
    return ls_share_has(&p->share, bucket, worker) ||
           ls_share_touches(&p->share, bucket, p->share.workers[worker].cell);
}

/* A layer whose backward is whole collects the gradients of its output in one buffer. */
int ls_plan_layer_buffer(const ls_plan *p, ls_buffer_kind kind, const ls_action *a, int layer) {
    const ls_share *sh = &p->share;
    bool one = kind == LS_BUF_DACT && sh->model->layers[layer].traits.backward_whole;
    int slot = one ? 0 : ls_share_sequence(sh, a->worker, a->vw, a->micro) % p->in_flight;
    return ls_plan_buffer(p, kind, layer, slot);
}

bool ls_buffer_in_arena(ls_buffer_kind kind) {
    return kind >= LS_BUF_ACT && kind <= LS_BUF_DEVICE_DACT;
}

/* All gradients of a worker are in use at once if a second micro-batch adds to them, or a second
 * virtual worker before the first is reduced. Then freeing them later in the step would not lower
 * the peak, and cost time. */
static bool grads_are_transient(const ls_plan *p) {
    const ls_share *sh = &p->share;
    return sh->shards_grads && sh->micros == 1 && sh->ncells == 1 && sh->nchunks == 1 &&
           (sh->by_rounds || sh->V == sh->nworkers);
}

bool ls_plan_transient(const ls_plan *p, ls_buffer b) {
    return ls_buffer_in_arena(b.kind) ||
           (b.kind == LS_BUF_PARAM && p->share.buckets[b.index].is_gathered) ||
           (b.kind == LS_BUF_GRAD && grads_are_transient(p));
}

static size_t arena_nbytes(const ls_plan *p, const ls_buffer *b) {
    const ls_share *sh = &p->share;
    const ls_layer *l = &sh->model->layers[b->index];
    int64_t n = ls_model_samples(sh->model, sh->micro_batch);
    bool gradient = b->kind == LS_BUF_DACT || b->kind == LS_BUF_DEVICE_DACT;
    ls_dtype type = b->kind >= LS_BUF_DEVICE_ACT ? LS_F32 : sh->compute;
    if (gradient && l->traits.backward_whole) n = ls_share_samples(sh, -1);
    if (b->kind == LS_BUF_SAVED || b->kind == LS_BUF_DEVICE_SAVED)
        return ls_mixed_saved_nbytes(l, n, type);
    return (size_t)n * l->y_floats * ls_dtype_size(type);
}

size_t ls_plan_work_nbytes(const ls_plan *p, bool there) {
    const ls_share *sh = &p->share;
    ls_dtype compute = there ? LS_F32 : sh->compute, grads = there ? LS_F32 : sh->reduce;
    bool wide = sh->wide && !there;
    size_t most = 0;
    for (int i = 0; i < sh->model->nlayers; i++) {
        const ls_layer *l = &sh->model->layers[i];
        int64_t n = l->traits.backward_whole ? ls_share_samples(sh, -1)
                                             : ls_model_samples(sh->model, sh->micro_batch);
        size_t nbytes = there ? ls_mixed_device_work_nbytes(l, n)
                              : ls_mixed_work_nbytes(l, n, compute, grads, wide);
        if (nbytes > most) most = nbytes;
        if (!ls_share_splits(sh, i)) continue;
        nbytes = ls_split_work_nbytes(l, n, compute, grads, wide);
        if (nbytes > most) most = nbytes;
    }
    return most;
}

size_t ls_plan_buffer_nbytes(const ls_plan *p, int id, int worker) {
    const ls_share *sh = &p->share;
    ls_buffer b = ls_plan_buffer_of(p, id);
    if (ls_buffer_in_arena(b.kind)) return arena_nbytes(p, &b);
    if (!ls_plan_transient(p, b)) return 0;
    ls_range all = ls_share_range(sh, b.index);
    ls_range own = ls_share_shard(sh, b.index, worker);
    size_t floats = all.end - all.first;
    if (b.kind == LS_BUF_PARAM || ls_share_keeps_shard(sh, b.slot)) floats -= own.end - own.first;
    return floats * ls_dtype_size(b.kind == LS_BUF_PARAM ? sh->compute : sh->reduce);
}

void ls_plan_buffer_name(const ls_plan *p, int id, char *text, size_t nbytes) {
    const ls_share *sh = &p->share;
    static const char *const names[] = {"samples",
                                        "losses",
                                        "norms",
                                        "scalars",
                                        "work",
                                        "output",
                                        "saved",
                                        "output gradient",
                                        "output on the device",
                                        "saved on the device",
                                        "output gradient on the device",
                                        "params",
                                        "shard",
                                        "moments",
                                        "errors",
                                        "codes",
                                        "codes of all",
                                        "sum",
                                        "gradient",
                                        "inbox",
                                        "samples on the device",
                                        "losses on the device",
                                        "norms on the device",
                                        "params on the device",
                                        "shard on the device",
                                        "moments on the device",
                                        "sum on the device",
                                        "gradient on the device"};
    ls_buffer b = ls_plan_buffer_of(p, id);
    if (ls_buffer_in_arena(b.kind) && p->in_flight > 1)
        snprintf(text, nbytes, "%s %s %d", sh->model->layers[b.index].name, names[b.kind], b.slot);
    else if (ls_buffer_in_arena(b.kind))
        snprintf(text, nbytes, "%s %s", sh->model->layers[b.index].name, names[b.kind]);
    else if (b.kind == LS_BUF_GRAD)
        snprintf(text, nbytes, "bucket %d sum %d", b.index, b.slot);
    else if (b.kind == LS_BUF_DEVICE_GRAD)
        snprintf(text, nbytes, "bucket %d sum %d on the device", b.index, b.slot);
    else if (b.kind == LS_BUF_SUM && sh->nsums > 1)
        snprintf(text, nbytes, "bucket %d sum over workers %d", b.index, b.slot);
    else if (b.kind >= LS_BUF_PARAM && b.kind != LS_BUF_DEVICE_SAMPLES &&
             b.kind != LS_BUF_DEVICE_LOSSES && b.kind != LS_BUF_DEVICE_NORMS)
        snprintf(text, nbytes, "bucket %d %s", b.index, names[b.kind]);
    else
        snprintf(text, nbytes, "%s", names[b.kind]);
}
