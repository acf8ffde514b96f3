/* buffer.c - the numbered buffers of a plan: their sizes and names, and the uses of each action. */
#include <stdio.h>

#include "model/split.h"
#include "plan/plan.h"
#include "share/mesh.h"
#include "tensor/dtype.h"

/* ---- numbers: a fixed few; three for each layer and micro-batch in flight; seven a bucket; and the
 * sums of each bucket ---- */

static int first_of(const ls_plan *p, ls_buffer_kind kind) {
    const ls_share *sh = &p->share;
    int calls = sh->model->nlayers * p->in_flight, buckets = sh->nbuckets;
    switch (kind) {
    case LS_BUF_ACT: return LS_BUF_ACT;
    case LS_BUF_SAVED: return LS_BUF_ACT + calls;
    case LS_BUF_DACT: return LS_BUF_ACT + 2 * calls;
    case LS_BUF_PARAM: return LS_BUF_ACT + 3 * calls;
    case LS_BUF_SHARD: return LS_BUF_ACT + 3 * calls + buckets;
    case LS_BUF_MOMENT: return LS_BUF_ACT + 3 * calls + 2 * buckets;
    case LS_BUF_ERROR: return LS_BUF_ACT + 3 * calls + 3 * buckets;
    case LS_BUF_CODE: return LS_BUF_ACT + 3 * calls + 4 * buckets;
    case LS_BUF_CODES: return LS_BUF_ACT + 3 * calls + 5 * buckets;
    case LS_BUF_SUM: return LS_BUF_ACT + 3 * calls + 6 * buckets;
    case LS_BUF_GRAD: return LS_BUF_ACT + 3 * calls + (6 + sh->nsums) * buckets;
    case LS_BUF_INBOX: return LS_BUF_ACT + 3 * calls + (6 + sh->nsums + sh->nslots) * buckets;
    default: return (int)kind;
    }
}

/* Slots of a kind of buffer. */
static int slots_of(const ls_plan *p, ls_buffer_kind kind) {
    const ls_share *sh = &p->share;
    if (ls_buffer_in_arena(kind)) return p->in_flight;
    return kind == LS_BUF_GRAD    ? sh->nslots
           : kind == LS_BUF_SUM   ? sh->nsums
           : kind == LS_BUF_INBOX ? sh->ninbox
                                  : 1;
}

int ls_plan_nbuffers(const ls_plan *p) {
    const ls_share *sh = &p->share;
    return first_of(p, LS_BUF_INBOX) + sh->nbuckets * sh->ninbox;
}

int ls_plan_buffer(const ls_plan *p, ls_buffer_kind kind, int index, int slot) {
    return first_of(p, kind) + index * slots_of(p, kind) + slot;
}

ls_buffer ls_plan_buffer_of(const ls_plan *p, int id) {
    int calls = p->share.model->nlayers * p->in_flight, call = id - LS_BUF_ACT;
    if (call < 0) return (ls_buffer){.kind = (ls_buffer_kind)id};
    if (call < 3 * calls) { /* output, saved, output gradient: most of all buffers */
        int at = call % calls;
        ls_buffer_kind kind = (ls_buffer_kind)(LS_BUF_ACT + call / calls);
        return (ls_buffer){kind, at / p->in_flight, at % p->in_flight};
    }
    int kind = LS_BUF_INBOX;
    while (id < first_of(p, (ls_buffer_kind)kind)) kind--;
    int at = id - first_of(p, (ls_buffer_kind)kind), slots = slots_of(p, (ls_buffer_kind)kind);
    return (ls_buffer){(ls_buffer_kind)kind, at / slots, at % slots};
}

/* A layer whose backward is whole collects the gradients of its output in one buffer. */
int ls_plan_layer_buffer(const ls_plan *p, ls_buffer_kind kind, const ls_action *a, int layer) {
    const ls_share *sh = &p->share;
    bool one = kind == LS_BUF_DACT && sh->model->layers[layer].traits.backward_whole;
    int slot = one ? 0 : ls_share_sequence(sh, a->worker, a->vw, a->micro) % p->in_flight;
    return ls_plan_buffer(p, kind, layer, slot);
}

bool ls_buffer_in_arena(ls_buffer_kind kind) {
    return kind == LS_BUF_ACT || kind == LS_BUF_SAVED || kind == LS_BUF_DACT;
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
    if (b->kind == LS_BUF_DACT && l->traits.backward_whole) n = ls_share_samples(sh, -1);
    if (b->kind == LS_BUF_SAVED) return ls_mixed_saved_nbytes(l, n, sh->compute);
    return (size_t)n * l->y_floats * ls_dtype_size(sh->compute);
}

size_t ls_plan_work_nbytes(const ls_plan *p) {
    const ls_share *sh = &p->share;
    size_t most = 0;
    for (int i = 0; i < sh->model->nlayers; i++) {
        const ls_layer *l = &sh->model->layers[i];
        int64_t n = l->traits.backward_whole ? ls_share_samples(sh, -1)
                                             : ls_model_samples(sh->model, sh->micro_batch);
        size_t nbytes = ls_mixed_work_nbytes(l, n, sh->compute, sh->reduce, sh->wide);
        if (nbytes > most) most = nbytes;
        if (!ls_share_splits(sh, i)) continue;
        nbytes = ls_split_work_nbytes(l, n, sh->compute, sh->reduce, sh->wide);
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
    static const char *const names[] = {
        "samples", "losses",          "norms",  "scalars",  "work",    "output",
        "saved",   "output gradient", "params", "shard",    "moments", "errors",
        "codes",   "codes of all",    "sum",    "gradient", "inbox"};
    ls_buffer b = ls_plan_buffer_of(p, id);
    if (ls_buffer_in_arena(b.kind) && p->in_flight > 1)
        snprintf(text, nbytes, "%s %s %d", sh->model->layers[b.index].name, names[b.kind], b.slot);
    else if (ls_buffer_in_arena(b.kind))
        snprintf(text, nbytes, "%s %s", sh->model->layers[b.index].name, names[b.kind]);
    else if (b.kind == LS_BUF_GRAD)
        snprintf(text, nbytes, "bucket %d sum %d", b.index, b.slot);
    else if (b.kind == LS_BUF_SUM && sh->nsums > 1)
        snprintf(text, nbytes, "bucket %d sum over workers %d", b.index, b.slot);
    else if (b.kind >= LS_BUF_PARAM)
        snprintf(text, nbytes, "bucket %d %s", b.index, names[b.kind]);
    else
        snprintf(text, nbytes, "%s", names[b.kind]);
}

/* ---- uses ---- */

typedef struct use_list {
    const ls_plan *p;
    ls_use_fn *fn;
    void *arg;
} use_list;

static void use(const use_list *u, ls_buffer_kind kind, int index, int slot, ls_use how) {
    u->fn(ls_plan_buffer(u->p, kind, index, slot), how, u->arg);
}

static void use_call(const use_list *u, ls_buffer_kind kind, const ls_action *a, int layer,
                     ls_use how) {
    u->fn(ls_plan_layer_buffer(u->p, kind, a, layer), how, u->arg);
}

static void use_layer(const use_list *u, const ls_action *a) {
    const ls_model *m = u->p->share.model;
    int l = a->layer;
    bool forward = a->kind != LS_BACKWARD, has_y = !m->layers[l].traits.loss;
    bool inputs = !forward && a->back != LS_BACK_PARAMS;
    bool params = !forward && a->back != LS_BACK_INPUTS;
    use(u, LS_BUF_SAMPLES, 0, 0, LS_USE_READ);
    use(u, LS_BUF_WORK, 0, 0, LS_USE_WRITE);
    const ls_layer *layer = &m->layers[l];
    for (int k = 0; k < layer->ninputs; k++)
        if (forward || !layer->unread[k]) use_call(u, LS_BUF_ACT, a, layer->inputs[k], LS_USE_READ);
    if (m->layers[l].memory.saved)
        use_call(u, LS_BUF_SAVED, a, l, forward ? LS_USE_WRITE : LS_USE_READ);
    if (!has_y) use(u, LS_BUF_LOSSES, 0, 0, LS_USE_WRITE);
    if (forward && has_y) use_call(u, LS_BUF_ACT, a, l, LS_USE_WRITE);
    if (!forward && has_y) use_call(u, LS_BUF_DACT, a, l, LS_USE_READ);
    for (int k = 0; inputs && k < layer->ninputs; k++) {
        if (m->layers[layer->inputs[k]].link.is_constant) continue;
        /* a layer whose backward is whole collects the parts of its micro-batches */
        bool part = m->layers[layer->inputs[k]].traits.backward_whole && a->micro > 0;
        use_call(u, LS_BUF_DACT, a, layer->inputs[k],
                 part || layer->link.adds[k] ? LS_USE_UPDATE : LS_USE_WRITE);
    }
    const int *touched = NULL;
    for (int i = 0, n = ls_share_touched(&u->p->share, l, &touched); i < n; i++) {
        int b =
            ls_share_bucket_in(&u->p->share, touched[i], ls_share_island_of(&u->p->share, a->vw));
        if (forward || !m->layers[l].traits.backward_alone) use(u, LS_BUF_PARAM, b, 0, LS_USE_READ);
        bool opens = a->start && ls_share_opens(&u->p->share, touched[i], l);
        if (params) use(u, LS_BUF_GRAD, b, a->slot, opens ? LS_USE_WRITE : LS_USE_UPDATE);
    }
}

/* The receiver of a gradient's part has it in its inbox; of all else both have the same buffer. */
static void use_message(const use_list *u, const ls_action *a, int worker) {
    ls_buffer b = ls_plan_buffer_of(u->p, a->buffer);
    int scores = worker == a->worker ? ls_plan_scores(u->p, a) : -1;
    if (scores >= 0) u->fn(scores, LS_USE_READ, u->arg);
    if (worker != a->worker)
        u->fn(a->buffer, LS_USE_WRITE, u->arg);
    else if (u->p->share.task == LS_TASK_MIX)
        use(u, LS_BUF_PARAM,
            ls_share_bucket_in(&u->p->share, ls_share_common_bucket(&u->p->share, a->bucket),
                               a->island),
            0, LS_USE_READ);
    else if (b.kind == LS_BUF_INBOX)
        use(u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_READ);
    else
        u->fn(a->buffer, ls_plan_chosen(u->p, a) ? LS_USE_UPDATE : LS_USE_READ, u->arg);
}

/* The gradient of a bucket is summed into the first sum; the other sums are only read. */
static void use_sum(const use_list *u, const ls_action *a, int worker) {
    int first = ls_share_first_slot(&u->p->share, a->bucket, worker);
    for (int s = ls_share_sums(&u->p->share, a->bucket, worker) - 1; s >= 0; s--)
        use(u, LS_BUF_GRAD, a->bucket, first + s, LS_USE_READ);
    use(u, LS_BUF_SUM, a->bucket, a->slot, LS_USE_WRITE);
}

/* Does the worker have a sum of this bucket, when it comes to its Update? */
static bool has_sum(const ls_plan *p, int bucket, int worker) {
    const ls_share *sh = &p->share;
    if (sh->islands == 0) return ls_share_has(sh, bucket, worker);
    if (sh->task == LS_TASK_TRAIN)
        return sh->buckets[bucket].island && ls_share_has(sh, bucket, worker);
    if (sh->task == LS_TASK_MIX && !ls_share_has(sh, bucket, worker)) return false;
    return sh->task != LS_TASK_ADOPT && ls_share_changes_bucket(sh, bucket);
}

/* Does its Update mix the common parameters into a replica? */
static bool adopts(const ls_plan *p, int bucket, int worker) {
    const ls_share *sh = &p->share;
    return sh->task == LS_TASK_ADOPT && ls_share_has(sh, bucket, worker) &&
           ls_share_changes_bucket(sh, bucket);
}

/* A change is not certain before all that it needs is there: then it can be finished for a worker
 * that is lost. */
static void use_decision(const use_list *u, int worker) {
    const ls_plan *p = u->p;
    const ls_share *sh = &p->share;
    int nbuckets = sh->segment_buckets;
    for (int k = 0; sh->task == LS_TASK_MIX && k < sh->nbuckets; k++)
        if (has_sum(p, k, worker)) use(u, LS_BUF_SUM, k, 0, LS_USE_READ);
    for (int k = 0; sh->task != LS_TASK_MIX && k < nbuckets; k++) {
        int changed = sh->task == LS_TASK_ADOPT ? ls_share_bucket_in(sh, k, 1) : k;
        if (ls_share_changes_bucket(sh, changed)) use(u, LS_BUF_SUM, k, 0, LS_USE_READ);
    }
    use(u, LS_BUF_SCALARS, 0, 0, LS_USE_WRITE);
}

void ls_action_uses(const ls_plan *p, const ls_action *a, int worker, ls_use_fn *fn, void *arg) {
    const ls_share *sh = &p->share;
    use_list u = {p, fn, arg};
    switch (a->kind) {
    case LS_LOAD:
        use(&u, LS_BUF_SAMPLES, 0, 0, LS_USE_WRITE);
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_WRITE);
        break;
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD: use_layer(&u, a); break;
    case LS_SQUARES: /* as if it changed the gradient: the sum that takes its place comes later */
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_UPDATE);
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_UPDATE);
        break;
    case LS_ENCODE:
        if (a->round > 0) { /* from the errors, which have the gradient, and the sum */
            use(&u, LS_BUF_CODES, a->bucket, 0, LS_USE_READ);
            use(&u, LS_BUF_ERROR, a->bucket, 0, LS_USE_READ);
            use(&u, LS_BUF_CODE, a->bucket, 0, LS_USE_UPDATE);
            break;
        }
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, sh->has_factors ? LS_USE_READ : LS_USE_UPDATE);
        if (sh->has_errors) use(&u, LS_BUF_ERROR, a->bucket, 0, LS_USE_UPDATE);
        if (sh->sends_codes)
            use(&u, LS_BUF_CODE, a->bucket, 0,
                ls_share_vw_index(sh, worker, a->vw) ? LS_USE_UPDATE : LS_USE_WRITE);
        break;
    case LS_EXCHANGE:
        use(&u, LS_BUF_CODE, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_CODES, a->bucket, 0, a->round ? LS_USE_UPDATE : LS_USE_WRITE);
        break;
    case LS_DECODE: /* the sum takes the place of the worker's part of its gradient */
        use(&u, LS_BUF_CODES, a->bucket, 0, LS_USE_READ);
        if (sh->has_factors) use(&u, LS_BUF_ERROR, a->bucket, 0, LS_USE_UPDATE);
        use(&u, LS_BUF_GRAD, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_ADD: {
        ls_buffer_kind what = a->summed ? LS_BUF_SUM : LS_BUF_GRAD;
        use(&u, what, a->bucket, a->slot, LS_USE_UPDATE);
        use(&u, what, a->bucket, a->from, LS_USE_READ);
        break;
    }
    case LS_DELTA:
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_PARAM, ls_share_bucket_in(sh, a->bucket, ls_share_island_of(sh, a->vw)), 0,
            LS_USE_READ);
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_WRITE);
        break;
    case LS_COPY:
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_MIX:
        use(&u, LS_BUF_PARAM,
            ls_share_bucket_in(sh, ls_share_common_bucket(sh, a->bucket), a->island), 0,
            LS_USE_READ);
        fn(a->buffer, LS_USE_READ, arg);
        use(&u, LS_BUF_SUM, a->bucket, 0, a->start ? LS_USE_WRITE : LS_USE_UPDATE);
        break;
    case LS_REDUCE_SCATTER: use_sum(&u, a, worker); break;
    case LS_ALL_REDUCE:
        if (a->axis == LS_AXIS_REPLICAS) {
            use(&u, LS_BUF_SUM, a->bucket, a->slot, LS_USE_UPDATE);
            break;
        }
        if (a->bucket != LS_SCALARS) {
            use_sum(&u, a, worker);
            break;
        }
        if (sh->task != LS_TASK_TRAIN) {
            use_decision(&u, worker);
            break;
        }
        use(&u, LS_BUF_NORMS, 0, 0, a->axis == LS_AXIS_ISLAND ? LS_USE_UPDATE : LS_USE_READ);
        if (a->axis == LS_AXIS_ISLAND) break;
        use(&u, LS_BUF_LOSSES, 0, 0, LS_USE_READ);
        use(&u, LS_BUF_SCALARS, 0, 0, LS_USE_WRITE);
        break;
    case LS_NORM:
        for (int b = 0; b < sh->nbuckets; b++)
            if (has_sum(p, b, worker)) use(&u, LS_BUF_SUM, b, 0, LS_USE_READ);
        use(&u, LS_BUF_NORMS, 0, 0, LS_USE_WRITE);
        break;
    case LS_UPDATE:
        use(&u, LS_BUF_SCALARS, 0, 0, LS_USE_READ);
        if (has_sum(p, a->bucket, worker)) use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_READ);
        if (adopts(p, a->bucket, worker))
            use(&u, LS_BUF_SUM, ls_share_common_bucket(sh, a->bucket), 0, LS_USE_READ);
        use(&u, LS_BUF_MOMENT, a->bucket, 0, LS_USE_UPDATE);
        use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_UPDATE);
        if (!sh->shards_moments) use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_UPDATE);
        break;
    case LS_ALL_GATHER:
        if (sh->task == LS_TASK_ADOPT && sh->buckets[a->bucket].island == 0) {
            use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_READ);
            use(&u, LS_BUF_SUM, a->bucket, 0, LS_USE_WRITE);
            break;
        }
        use(&u, LS_BUF_SHARD, a->bucket, 0, LS_USE_READ);
        use(&u, LS_BUF_PARAM, a->bucket, 0, LS_USE_WRITE);
        break;
    case LS_SEND: use_message(&u, a, worker); break;
    case LS_TAKE: /* the bucket's own layers may have written the rest already, or not yet */
        fn(a->buffer, LS_USE_READ, arg);
        use(&u, LS_BUF_GRAD, a->bucket, a->slot, LS_USE_WRITE);
        break;
    case LS_FREE: fn(a->buffer, LS_USE_WRITE, arg); break;
    case LS_NACTION_KINDS: break;
    }
}
