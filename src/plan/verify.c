/* verify.c - checks the invariants of plan.h on any plan. */
#include <stdlib.h>

#include "plan/verify_buffers.h"
#include "share/mesh.h"
#include "tensor/dtype.h"

typedef struct walk {
    const ls_plan *p;
    ls_plan_stage stage;
    int at; /* action */
    int worker;
    ls_buffer_states buffers;
    int *forwards, *backs; /* [V][nlayers] micro-batches so far */
    int *recomputes;       /* [V][nlayers] micro-batches computed again */
    int *inputs; /* [V][nlayers] micro-batches whose gradient of inputs alone is computed */
    int *squares, *encodes, *adds; /* [V][nbuckets] so far; adds: folds */
    int *joins;                    /* [nworkers][nbuckets] folds of chunks so far */
    int *reduced, *updated;        /* [nbuckets], [nbuckets][nworkers] */
    int *loads, *norms;            /* [nworkers] */
    int *gathered;                 /* [nbuckets] */
    int *exchanged, *decoded;      /* [nbuckets], [nbuckets][nworkers] */
    /* [nworkers][nbuckets][nslots] in a pipeline: 1 + whose gradient a sum has; 0: none */
    int *writers;
    int *latest;   /* [nworkers][nlayers] in a pipeline: 1 + the sequence of Backward */
    int *messages; /* [nworkers][nbuckets] parts of gradients taken, and parameters got */
    /* In a pipeline: the layers that write bucket k are writing[first_writing[k]] and so on up to
     * first_writing[k + 1]. */
    int *first_writing, *writing;
    int decisions;
    ls_status status;
    ls_error *e;
} walk;

ls_status ls_plan_wrong(const ls_plan *p, int action, const char *what, ls_error *e) {
    ls_buf line = {0};
    ls_plan_print_action(p, action, &line);
    if (line.len) line.data[line.len - 1] = 0;
    ls_status s = ls_fail(e, LS_EINVAL, "plan: %s: action%s", what, line.data ? line.data : "");
    ls_buf_free(&line);
    return s;
}

/* Reports the first failure; what: NULL, there is none. */
static void wrong(walk *w, const char *what) {
    if (what && w->status == LS_OK) w->status = ls_plan_wrong(w->p, w->at, what, w->e);
}

/* The number of communications that sum a bucket, in each round. */
static int reductions(const ls_plan *p) {
    const ls_share *sh = &p->share;
    return sh->shards_moments && sh->nreplicas > 1 ? 2 : 1;
}
static int total(const ls_plan *p) {
    const ls_share *sh = &p->share;
    return sh->sends_values ? reductions(p) * sh->nrounds : 0;
}

/* Is the gradient of a bucket sent, in some phase? */
static bool is_sent(const walk *w, int bucket) {
    return w->exchanged[bucket] || (total(w->p) && w->reduced[bucket] == total(w->p));
}

/* With islands, the common parameters have no gradient. */
static bool is_common(const ls_plan *p, int bucket) {
    const ls_share *sh = &p->share;
    return sh->islands && sh->buckets[bucket].island == 0;
}

static bool is_trained(const walk *w, int vw, int bucket) {
    return ls_share_island_of(&w->p->share, vw) == w->p->share.buckets[bucket].island;
}

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    const ls_action *a = &w->p->actions[w->at];
    wrong(w, ls_buffer_states_use(&w->buffers, a, w->worker, buffer, how));
    if (w->status != LS_OK) return;
    ls_buffer b = ls_plan_buffer_of(w->p, buffer);
    bool grad = b.kind == LS_BUF_GRAD || b.kind == LS_BUF_DEVICE_GRAD;
    if (grad && (how & LS_USE_WRITE) && is_sent(w, b.index) && a->kind != LS_FREE)
        wrong(w, "writes a gradient after its reduction");
}

static bool is_own(const walk *w, const ls_action *a) {
    int i = ls_share_vw_index(&w->p->share, a->worker, a->vw);
    if (ls_action_calls_layer(a) && ls_share_runner(&w->p->share, a->worker, a->layer) != a->worker)
        return false;
    return i >= 0 && i < w->p->share.workers[a->worker].nvws &&
           ls_share_vw(&w->p->share, a->worker, i) == a->vw;
}

/* Folds that follow the i-th virtual worker, and the slot of its own sum. */
static int folds_of(const ls_plan *p, int worker, int i, int *slot_p) {
    const ls_share *sh = &p->share;
    int folds =
        sh->by_rounds ? ls_share_fold_round(sh, i, slot_p) : ls_share_fold(sh, worker, i, slot_p);
    return sh->sends_values ? folds : 0;
}

/* An action of sums of gradients, and one of codes, run in their phases alone. */
static void check_phase(walk *w, const ls_action *a) {
    bool codes = a->kind == LS_ENCODE || a->kind == LS_EXCHANGE || a->kind == LS_SUM_FACTORS ||
                 a->kind == LS_DECODE;
    bool values = a->kind == LS_ADD || a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_REDUCE;
    ls_phase want = codes ? LS_PHASE_CODES : values ? ls_plan_values_phase(w->p) : LS_PHASE_ALL;
    if (a->phase != want) wrong(w, "runs in the wrong steps");
}

/* Has the layer of a chunk that is the last to write a bucket taken all micro-batches? */
static bool is_chunk_done(const walk *w, int vw, int bucket, int chunk) {
    const ls_model *m = w->p->share.model;
    int layer = ls_share_closer(&w->p->share, bucket, chunk);
    if (layer < 0) return true;
    int all = m->layers[layer].traits.backward_whole ? 1 : w->p->share.micros;
    return w->backs[vw * m->nlayers + layer] == all;
}

/* Is that so for all chunks of a worker? */
static bool is_done_at(const walk *w, int worker, int vw, int bucket) {
    int first = w->p->share.workers[worker].first_chunk,
        end = w->p->share.workers[worker].end_chunk;
    for (int k = first; k < end; k++)
        if (!is_chunk_done(w, vw, bucket, k)) return false;
    return true;
}
static bool is_done(const walk *w, int vw, int bucket) { return is_chunk_done(w, vw, bucket, 0); }

/* Is the gradient of a bucket ready to be summed? */
static bool is_encoded(const walk *w, int vw, int bucket) {
    return w->encodes[vw * w->p->share.nbuckets + bucket] >= w->p->share.compress.on;
}

/* The last Encode, or where both factors of it are needed the last Decode, completes a virtual
 * worker's errors. */
static bool ends_errors(const walk *w, int encodes) {
    return !w->p->share.has_factors && encodes == w->p->share.nbuckets;
}

static int *adds_of(const walk *w, int vw, int bucket, int chunk) {
    const ls_share *sh = &w->p->share;
    return &w->adds[(vw * sh->nbuckets + bucket) * sh->nchunks + chunk];
}

static void check_measured(walk *w, int worker) {
    const ls_share *sh = &w->p->share;
    for (int i = 0; sh->noise && i < sh->workers[worker].nvws; i++)
        for (int k = 0; k < sh->nbuckets; k++)
            if (ls_share_has(sh, k, worker) &&
                !w->squares[ls_share_vw(sh, worker, i) * sh->nbuckets + k])
                wrong(w, "comes before a measurement");
}

/* Each virtual worker's gradient is measured once, when it is complete and before it is changed. */
static void check_squares(walk *w, const ls_action *a) {
    int slot = 0, at = a->vw * w->p->share.nbuckets + a->bucket;
    bool here = ls_share_has(&w->p->share, a->bucket, a->worker);
    if (!is_own(w, a) || !here || !w->p->share.noise) {
        wrong(w, "belongs to another worker, or to no plan");
        return;
    }
    ls_share_fold(&w->p->share, a->worker, ls_share_vw_index(&w->p->share, a->worker, a->vw),
                  &slot);
    if (a->slot != slot) wrong(w, "measures the wrong sum");
    if (!is_done(w, a->vw, a->bucket)) wrong(w, "measures a gradient before it is complete");
    if (w->squares[at]++) wrong(w, "measures a gradient twice");
    if (w->encodes[at] || *adds_of(w, a->vw, a->bucket, 0))
        wrong(w, "measures a gradient after it was changed");
}

static void check_encode(walk *w, const ls_action *a) {
    int slot = 0;
    if (!is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    ls_share_fold(&w->p->share, a->worker, ls_share_vw_index(&w->p->share, a->worker, a->vw),
                  &slot);
    if (a->slot != slot) wrong(w, "encodes the wrong sum");
    if (!is_done(w, a->vw, a->bucket)) wrong(w, "encodes a gradient before it is complete");
    if (w->encodes[a->vw * w->p->share.nbuckets + a->bucket]++ != a->round ||
        a->round >= w->p->share.encodings)
        wrong(w, "encodes a gradient twice");
    if (a->round > 0 && w->exchanged[a->bucket] < a->round)
        wrong(w, "encodes before the sum that it needs");
    int all = 0;
    for (int k = 0; k < w->p->share.nbuckets; k++)
        all += w->encodes[a->vw * w->p->share.nbuckets + k];
    if (a->start != (all == 1) || a->last != ends_errors(w, all))
        wrong(w, "begins or ends a virtual worker's codes at the wrong bucket");
    if (a->round == 0 && *adds_of(w, a->vw, a->bucket, 0))
        wrong(w, "encodes a gradient after a fold");
}

static int *writer_of(const walk *w, int worker, int bucket, int slot) {
    const ls_share *sh = &w->p->share;
    return &w->writers[(worker * sh->nbuckets + bucket) * sh->nslots + slot];
}

/* A fold of sums of chunks, once all virtual workers are done. */
static void check_join(walk *w, const ls_action *a, int i) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    ls_chunk_fold list[LS_TREE_MAX_CHUNKS];
    int n = ls_share_chunk_folds(sh, a->bucket, a->worker, list), slot = 0;
    const ls_worker_share *x = &sh->workers[a->worker];
    int done = w->joins[a->worker * sh->nbuckets + a->bucket]++;
    if (done >= n || a->slot != list[done].slot || a->from != list[done].from || a->summed)
        wrong(w, "is not a fold of the tree");
    for (int k = x->first_chunk; k < x->end_chunk; k++)
        if (ls_share_closer(sh, a->bucket, k) >= 0 &&
            *adds_of(w, a->vw, a->bucket, k) != folds_of(p, a->worker, i, &slot))
            wrong(w, "adds chunks before a fold");
    if (i != sh->workers[a->worker].nvws - 1 || !is_done_at(w, a->worker, a->vw, a->bucket))
        wrong(w, "adds a sum before it is complete");
}

static void check_add(walk *w, const ls_action *a) {
    int slot = 0;
    if (!is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    int i = ls_share_vw_index(&w->p->share, a->worker, a->vw);
    int folds = folds_of(w->p, a->worker, i, &slot);
    if (a->chunk < 0) {
        check_join(w, a, i);
        return;
    }
    if (a->summed != w->p->share.by_rounds) wrong(w, "adds the wrong kind of sum");
    if (a->summed && w->reduced[a->bucket] < (i + 1) * reductions(w->p))
        wrong(w, "adds a sum over workers before it is reduced");
    if (w->p->share.ncells > 1 && a->from < w->p->share.nslots)
        *writer_of(w, a->worker, a->bucket, a->from) = 0;
    int done = ++*adds_of(w, a->vw, a->bucket, a->chunk);
    bool fits =
        a->summed
            ? a->slot == slot - done && a->from == a->slot + 1
            : a->slot == ls_share_slot_of(&w->p->share, a->worker, a->chunk, slot - done) &&
                  a->from == ls_share_slot_of(&w->p->share, a->worker, a->chunk, slot - done + 1);
    if (done > folds || !fits) wrong(w, "is not a fold of the tree");
    if (!is_chunk_done(w, a->vw, a->bucket, a->chunk)) wrong(w, "adds a sum before it is complete");
    if (!is_encoded(w, a->vw, a->bucket)) wrong(w, "adds a sum before it is encoded");
    if (!is_trained(w, a->vw, a->bucket)) wrong(w, "adds a gradient of another replica");
}

/* Checks the sum to which a Backward adds, where chains start, and which micro-batch ends them. */
static void check_chain(walk *w, const ls_action *a, bool whole) {
    const ls_share *sh = &w->p->share;
    int i = ls_share_vw_index(sh, a->worker, a->vw), slot = 0;
    ls_share_fold(sh, a->worker, i, &slot);
    bool alone = sh->config->tree || sh->by_rounds; /* each virtual worker has a chain of its own */
    slot = ls_share_slot_of(sh, a->worker, ls_share_layer_chunk(sh, a->layer), slot);
    if (a->slot != slot) wrong(w, "adds to the wrong sum");
    if (a->start != (a->micro <= 0 && (alone || i == 0)))
        wrong(w, "starts a chain at the wrong micro-batch");
    if (a->last != (whole || a->micro == sh->micros - 1))
        wrong(w, "ends a chain at the wrong micro-batch");
}

/* The first part of a Backward that is split adds to no sum. */
static void check_inputs(walk *w, const ls_action *a) {
    int i = a->vw * w->p->share.model->nlayers + a->layer;
    bool loss = w->p->share.model->layers[a->layer].traits.loss;
    if (!ls_share_splits(&w->p->share, a->layer)) wrong(w, "is a part of what is not split");
    if (a->micro != w->inputs[i]) wrong(w, "is out of order");
    w->inputs[i]++;
    if (!loss && w->forwards[i] < w->inputs[i]) wrong(w, "precedes its Forward");
    if (a->start || a->last) wrong(w, "starts or ends a chain without a gradient of parameters");
}

/* Two stages of a worker write one block of the gradient, and the order of passes mixes their
 * virtual workers; where passes are split, the order prevents that. */
static void mixes(walk *w, const ls_action *a) {
    if (ls_pipe_splits(w->p->share.config->schedule))
        wrong(w, "adds to the sum of another virtual worker");
    if (w->status != LS_OK) return;
    w->status =
        ls_fail(w->e, LS_EINVAL,
                "parallel.chunks %d: two stages of a worker write one block of %d gradients, "
                "that of layer '%s' among them, for several virtual workers at a time; use "
                "fewer chunks, or other parallel.stages",
                w->p->share.stages_each, LS_BLOCK, w->p->share.model->layers[a->layer].name);
}

/* In a pipeline, no virtual worker adds to a sum that has another's gradient. */
static void check_writers(walk *w, const ls_action *a) {
    const int *touched = NULL;
    int n = ls_share_touched(&w->p->share, a->layer, &touched);
    for (int j = 0; j < n && w->stage >= LS_STAGE_REDUCTION && w->p->share.config->tree &&
                    w->p->share.ncells > 1;
         j++) {
        int *has = writer_of(w, a->worker, touched[j], a->slot);
        if (*has && *has != a->vw + 1) mixes(w, a);
        *has = a->vw + 1;
    }
}

static void list_writing(walk *w) {
    const ls_share *sh = &w->p->share;
    const int *touched = NULL;
    int all = 0;
    w->first_writing = LS_NEW_ARRAY(int, (size_t)sh->nbuckets + 1);
    for (int l = 0; l < sh->model->nlayers; l++)
        for (int j = 0, n = ls_share_touched(sh, l, &touched); j < n; j++, all++)
            w->first_writing[touched[j] + 1]++;
    for (int k = 0; k < sh->nbuckets; k++) w->first_writing[k + 1] += w->first_writing[k];
    w->writing = LS_NEW_ARRAY(int, (size_t)all);
    for (int l = sh->model->nlayers - 1; l >= 0; l--) /* the ends come down to the beginnings */
        for (int j = 0, n = ls_share_touched(sh, l, &touched); j < n; j++)
            w->writing[--w->first_writing[touched[j] + 1]] = l;
    for (int k = 0; k < sh->nbuckets; k++) w->first_writing[k] = w->first_writing[k + 1];
    w->first_writing[sh->nbuckets] = all;
}

/* In a pipeline, the layer that is the last of its chunk to write a bucket comes after all others
 * of its cell. */
static void check_writer(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    const ls_model *m = sh->model;
    const int *touched = NULL;
    int n = ls_share_touched(sh, a->layer, &touched), chunk = ls_share_layer_chunk(sh, a->layer);
    for (int j = 0; j < n && sh->nholders > 1; j++) {
        if (ls_share_closer(sh, touched[j], chunk) != a->layer) continue;
        for (int i = w->first_writing[touched[j]]; i < w->first_writing[touched[j] + 1]; i++) {
            int l = w->writing[i];
            if (ls_share_layer_chunk(sh, l) != chunk ||
                ls_share_runner(sh, a->worker, l) != a->worker)
                continue;
            int all = m->layers[l].traits.backward_whole ? 1 : sh->micros;
            if (w->backs[a->vw * m->nlayers + l] != all)
                wrong(w, "completes a gradient before another layer has added to it");
        }
    }
}

static void check_compute(walk *w, const ls_action *a) {
    const ls_model *m = w->p->share.model;
    if (a->layer < 0 || a->layer >= m->nlayers || !is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    int i = a->vw * m->nlayers + a->layer;
    if (a->kind == LS_BACKWARD && a->back == LS_BACK_INPUTS) {
        check_inputs(w, a);
        return;
    }
    bool split = a->kind == LS_BACKWARD && ls_share_splits(&w->p->share, a->layer);
    if (split != (a->back == LS_BACK_PARAMS)) wrong(w, "computes the wrong gradients");
    if (split && w->inputs[i] <= w->backs[i]) wrong(w, "precedes the gradients of its inputs");
    bool whole = a->kind == LS_BACKWARD && m->layers[a->layer].traits.backward_whole;
    bool loss = m->layers[a->layer].traits.loss;
    int *seen = a->kind == LS_FORWARD ? w->forwards : w->backs;
    if (a->micro != (whole ? -1 : seen[i])) wrong(w, "is out of order");
    seen[i]++;
    if (a->kind == LS_FORWARD && loss) wrong(w, "is a Forward of the loss, which has none");
    bool early = w->p->share.ncells > 1 ? w->forwards[i] < seen[i] : w->forwards[i] != seen[i];
    if (a->kind == LS_BACKWARD && !whole && !loss && early) wrong(w, "precedes its Forward");
    int *latest = &w->latest[a->worker * m->nlayers + a->layer];
    int sequence = ls_share_sequence(&w->p->share, a->worker, a->vw, a->micro) + 1;
    if (a->kind == LS_BACKWARD && sequence <= *latest) wrong(w, "mixes virtual workers' sums");
    if (a->kind == LS_BACKWARD) *latest = sequence;
    if (a->kind == LS_BACKWARD) check_chain(w, a, whole);
    if (a->kind == LS_BACKWARD && w->status == LS_OK) check_writers(w, a);
    if (a->kind == LS_BACKWARD && a->last) check_writer(w, a);
}

/* A Recompute follows its Forward, and precedes its Backward, which a constant layer does not
 * have. */
static void check_recompute(walk *w, const ls_action *a) {
    const ls_model *m = w->p->share.model;
    if (a->layer < 1 || a->layer >= m->nlayers || m->layers[a->layer].traits.loss ||
        !is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    int i = a->vw * m->nlayers + a->layer;
    int backs = m->layers[a->layer].link.is_constant      ? a->micro
                : ls_share_splits(&w->p->share, a->layer) ? w->inputs[i]
                                                          : w->backs[i];
    bool piped = w->p->share.ncells > 1;
    bool early = piped ? a->micro + 1 > w->forwards[i] : a->micro + 1 != w->forwards[i];
    /* where passes are split, the Backward may be in the second part */
    bool done = piped && ls_pipe_splits(w->p->share.config->schedule) ? backs > a->micro
                                                                      : backs != a->micro;
    if (early || done || a->micro != w->recomputes[i]++) wrong(w, "is out of order");
}

static bool is_of(const ls_action *a, ls_worker_set of) {
    const ls_worker_set *own = &a->comm.of;
    return own->from == of.from && own->to == of.to && own->step == of.step;
}

/* Along which axis may the communication be? */
static bool fits_axis(const ls_share *sh, const ls_action *a) {
    ls_axis axis = a->comm.axis;
    if (a->kind == LS_DECIDE) return axis == LS_AXIS_ALL;
    if (a->kind == LS_REPLICA_NORM)
        return axis == LS_AXIS_ISLAND && a->island > 0 && a->island <= sh->islands;
    if (sh->divides) return axis == LS_AXIS_STAGE;
    if (sh->islands) return axis == LS_AXIS_ISLAND && a->island == sh->buckets[a->bucket].island;
    if (a->kind == LS_EXCHANGE || a->kind == LS_SUM_FACTORS) return axis == LS_AXIS_ALL;
    if (a->kind != LS_ALL_REDUCE) return axis == LS_AXIS_SHARDS;
    return axis == (sh->shards_moments ? LS_AXIS_REPLICAS : LS_AXIS_ALL);
}

/* Checks participants and bytes. Scalars are summed by all, or by those of an island; a bucket is
 * of the workers that have it. */
static void check_comm(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    bool scatters = a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_GATHER;
    if (!fits_axis(sh, a) || (scatters && !sh->shards_moments)) {
        wrong(w, "has the wrong participants");
        return;
    }
    int bucket = a->kind == LS_REPLICA_NORM ? ls_share_bucket_in(sh, 0, a->island) : a->bucket;
    const ls_worker_set all = {0, sh->nworkers, 1};
    if (!is_of(a, a->kind == LS_DECIDE ? all : sh->buckets[bucket].workers))
        wrong(w, "has the wrong participants");
    if (a->comm.nbytes != (int64_t)(ls_plan_read_nbytes(p, a) / (size_t)sh->nworkers))
        wrong(w, "has the wrong number of bytes");
}

/* All codes are complete; each worker decodes after all have them. */
static void check_exchange(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    if (!sh->sends_codes || sh->has_factors != (a->kind == LS_SUM_FACTORS)) wrong(w, "sends codes");
    if (w->exchanged[a->bucket]++ != a->round || a->round >= sh->encodings)
        wrong(w, "sends codes twice");
    for (int v = 0; v < sh->V; v++)
        if (w->encodes[v * sh->nbuckets + a->bucket] != a->round + 1)
            wrong(w, "sends codes before an Encode");
}

static void check_decode(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    if (w->exchanged[a->bucket] != sh->encodings) wrong(w, "decodes before codes are sent");
    if (w->decoded[a->bucket * sh->nworkers + a->worker]++) wrong(w, "decodes twice");
    int all = 0;
    for (int k = 0; k < sh->nbuckets; k++) all += w->decoded[k * sh->nworkers + a->worker];
    if (a->last != (sh->has_factors && all == sh->nbuckets))
        wrong(w, "completes a worker's errors at the wrong bucket");
}

static bool is_decoded(const walk *w, int bucket, int worker) {
    return w->decoded[bucket * w->p->share.nworkers + worker] == w->p->share.sends_codes;
}

/* Are all folds after the i-th virtual worker complete, and those of chunks? */
static bool has_folds(const walk *w, int worker, int i, int bucket) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    ls_chunk_fold list[LS_TREE_MAX_CHUNKS];
    int first = sh->workers[worker].first_chunk, end = sh->workers[worker].end_chunk;
    int slot = 0, vw = ls_share_vw(sh, worker, i);
    for (int k = first; k < end; k++)
        if (ls_share_closer(sh, bucket, k) >= 0 &&
            *adds_of(w, vw, bucket, k) != folds_of(p, worker, i, &slot))
            return false;
    return w->joins[worker * sh->nbuckets + bucket] ==
           ls_share_chunk_folds(sh, bucket, worker, list);
}

static void check_reduction(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    bool second = a->comm.axis == LS_AXIS_REPLICAS;
    int slot = 0;
    ls_share_fold_round(sh, a->round, &slot);
    if (a->slot != slot) wrong(w, "puts a sum into the wrong slot");
    bool exists = a->round >= 0 && a->round < sh->nrounds;
    if (!exists || w->reduced[a->bucket]++ != a->round * reductions(p) + second)
        wrong(w, second ? "sums over replicas before their groups" : "reduces a bucket twice");
    if (!exists) return;
    ls_worker_set of = sh->buckets[a->bucket].workers;
    if (is_common(p, a->bucket)) wrong(w, "reduces what has no gradient");
    for (int worker = of.from; worker < of.to && !second; worker += of.step) {
        int first = sh->by_rounds ? a->round : 0, n = sh->workers[worker].nvws;
        for (int i = first; i < (sh->by_rounds ? first + 1 : n); i++) {
            int v = ls_share_vw(sh, worker, i);
            if (!is_trained(w, v, a->bucket)) continue;
            if (!is_done_at(w, worker, v, a->bucket))
                wrong(w, "reduces before a virtual worker is complete");
            if (!is_encoded(w, v, a->bucket)) wrong(w, "reduces before an Encode");
            if (!sh->by_rounds && !has_folds(w, worker, i, a->bucket))
                wrong(w, "reduces before a fold");
        }
    }
}

/* Checks that all folds of the rounds are complete. */
static void check_folds(walk *w, int worker) {
    for (int i = 0; i < w->p->share.workers[worker].nvws; i++)
        for (int k = 0; k < w->p->share.nbuckets; k++)
            if (ls_share_has(&w->p->share, k, worker) &&
                is_trained(w, ls_share_vw(&w->p->share, worker, i), k) &&
                !has_folds(w, worker, i, k))
                wrong(w, "comes before a fold");
}

/* Sharded parameters are gathered before their use, others after the Update. */
static void check_gather(walk *w, const ls_action *a) {
    bool before = w->p->share.buckets[a->bucket].is_gathered;
    ls_worker_set of = w->p->share.buckets[a->bucket].workers;
    for (int n = of.from; n < of.to; n += of.step) {
        bool updated = w->updated[a->bucket * w->p->share.nworkers + n];
        if (before && updated) wrong(w, "gathers after an Update");
        if (!before && !updated) wrong(w, "gathers before an Update");
    }
    w->gathered[a->bucket]++;
}

/* A value that another cell reads goes there, its gradient back; what a cell adds to the gradient
 * of another cell's bucket goes there, and new parameters come back. */
static void check_send(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    ls_buffer b = ls_plan_buffer_of(p, a->buffer);
    int cell = sh->workers[a->worker].cell;
    int64_t nbytes = -1;
    bool fits = a->peer >= 0 && a->peer < sh->nworkers && a->peer != a->worker;
    bool inside = fits && sh->workers[a->peer].holder == sh->workers[a->worker].holder;
    fits = fits && (inside || sh->workers[a->peer].place == sh->workers[a->worker].place);
    if (fits && ls_buffer_in_arena(b.kind)) {
        int layer = b.index,
            reader = ls_share_crosses(sh, layer) ? sh->crossings[layer].reader : layer;
        bool on = b.kind == LS_BUF_ACT;
        fits = reader != layer && (on || b.kind == LS_BUF_DACT) &&
               ls_share_runner(sh, a->worker, on ? layer : reader) == a->worker &&
               ls_share_runner(sh, a->worker, on ? reader : layer) == a->peer;
        nbytes = ls_share_samples(sh, a->micro) * (int64_t)sh->model->layers[layer].y_floats *
                 (int64_t)ls_dtype_size(sh->compute);
    } else if (fits && b.kind == LS_BUF_INBOX) {
        fits = ls_share_touches(sh, a->bucket, cell) && b.index == a->bucket &&
               ls_share_sends_part(sh, a->bucket, cell, a->chunk) &&
               sh->workers[a->peer].cell == ls_share_receiver(sh, a->bucket, cell);
        ls_range part = ls_share_touched_part(sh, a->bucket, cell);
        nbytes = (int64_t)((part.end - part.first) * ls_dtype_size(sh->reduce));
        *writer_of(w, a->worker, a->bucket, a->slot) = 0;
    } else if (fits && b.kind == LS_BUF_PARAM) {
        bool has = ls_share_has(sh, a->bucket, a->worker)
                       ? w->updated[a->bucket * sh->nworkers + a->worker]
                       : w->messages[a->worker * sh->nbuckets + a->bucket] > 0;
        fits = has && b.index == a->bucket && !ls_share_has(sh, a->bucket, a->peer) &&
               ls_share_touches(sh, a->bucket, sh->workers[a->peer].cell);
        nbytes = (int64_t)((sh->buckets[a->bucket].end - sh->buckets[a->bucket].first) *
                           ls_dtype_size(sh->compute));
        w->messages[a->peer * sh->nbuckets + a->bucket]++;
    } else {
        fits = false;
    }
    if (!fits) wrong(w, "sends the wrong thing, or to the wrong worker");
    if (fits && !ls_plan_chooses_well(p, a)) wrong(w, "chooses rows by the wrong scores");
    if (a->comm.nbytes != nbytes) wrong(w, "has the wrong number of bytes");
}

/* A part is taken before the Backward that completes the virtual worker's gradient. */
static void check_take(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    int slot = 0, layer = ls_share_closer(sh, a->bucket, a->chunk);
    ls_share_fold(sh, a->worker, ls_share_vw_index(sh, a->worker, a->vw), &slot);
    slot = ls_share_slot_of(sh, a->worker, a->chunk, slot);
    if (!is_own(w, a) || !ls_share_has(sh, a->bucket, a->worker) || a->slot != slot)
        wrong(w, "belongs to another worker, or sum");
    if (is_chunk_done(w, a->vw, a->bucket, a->chunk))
        wrong(w, "comes after the gradient was complete");
    int whole = sh->model->layers[layer].traits.backward_whole;
    if (!whole && w->backs[a->vw * sh->model->nlayers + layer] + 1 != sh->micros)
        wrong(w, "comes before the last micro-batch");
    w->messages[a->worker * sh->nbuckets + a->bucket]++;
}

static void check_scalars(walk *w, const ls_action *a) {
    for (int n = 0; n < w->p->share.nworkers; n++)
        if (!w->norms[n]) wrong(w, "comes before a Norm");
    if (a->kind == LS_REPLICA_NORM && w->decisions) wrong(w, "comes after the decision");
    w->decisions += a->kind == LS_DECIDE;
}

static void check_action(walk *w, const ls_action *a) {
    bool scalars = a->kind == LS_DECIDE || a->kind == LS_REPLICA_NORM;
    bool comm = ls_action_kind_lane(a->kind) == LS_LANE_COMM && a->kind != LS_SEND;
    if (comm != (a->worker == LS_ALL_WORKERS)) wrong(w, "has the wrong participants");
    if (!comm && (a->worker < 0 || a->worker >= w->p->share.nworkers))
        wrong(w, "names a worker that does not exist");
    bool value = a->kind == LS_SEND && a->micro >= 0;
    if (!scalars && !value && (a->bucket < 0 || a->bucket >= w->p->share.nbuckets))
        wrong(w, "names a bucket that does not exist");
    if (w->status == LS_OK && comm) check_comm(w, a);
    check_phase(w, a);
    if (w->status != LS_OK) return;
    switch (a->kind) {
    case LS_FORWARD:
    case LS_BACKWARD: check_compute(w, a); break;
    case LS_RECOMPUTE: check_recompute(w, a); break;
    case LS_LOAD:
        if (w->loads[a->worker]++) wrong(w, "loads twice");
        break;
    case LS_SQUARES: check_squares(w, a); break;
    case LS_ENCODE: check_encode(w, a); break;
    case LS_EXCHANGE:
    case LS_SUM_FACTORS: check_exchange(w, a); break;
    case LS_DECODE: check_decode(w, a); break;
    case LS_ADD: check_add(w, a); break;
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE: check_reduction(w, a); break;
    case LS_NORM:
        for (int k = 0; k < w->p->share.nbuckets; k++)
            if (!is_common(w->p, k) &&
                (w->reduced[k] != total(w->p) || !is_decoded(w, k, a->worker)))
                wrong(w, "comes before a reduction");
        check_folds(w, a->worker);
        check_measured(w, a->worker);
        if (w->norms[a->worker]++) wrong(w, "is a second norm");
        break;
    case LS_REPLICA_NORM:
    case LS_DECIDE: check_scalars(w, a); break;
    case LS_UPDATE:
        if (w->updated[a->bucket * w->p->share.nworkers + a->worker]++) wrong(w, "updates twice");
        if (w->gathered[a->bucket] && !w->p->share.buckets[a->bucket].is_gathered)
            wrong(w, "updates after its bucket was gathered");
        break;
    case LS_ALL_GATHER: check_gather(w, a); break;
    case LS_SEND: check_send(w, a); break;
    case LS_TAKE: check_take(w, a); break;
    case LS_TO_DEVICE:
    case LS_FROM_DEVICE: wrong(w, ls_buffer_states_copy(&w->buffers, a)); break;
    case LS_FREE: wrong(w, ls_buffer_states_free(&w->buffers, a)); return;
    default: break;
    }
    ls_worker_set of = ls_action_concerned(a);
    for (w->worker = of.from; w->worker < of.to; w->worker += of.step)
        ls_action_uses(w->p, a, w->worker, on_use, w);
}

/* A worker takes a part of each virtual worker from each other cell that has one, or gets the new
 * parameters. */
static int expected_messages(const ls_plan *p, int bucket, int worker) {
    const ls_share *sh = &p->share;
    int own = sh->workers[worker].cell, parts = 0;
    if (!ls_share_has(sh, bucket, worker)) return ls_share_touches(sh, bucket, own);
    for (int cell = 0; cell < sh->ncells; cell++)
        for (int chunk = 0; chunk < sh->nchunks; chunk++)
            parts += ls_share_sends_part(sh, bucket, cell, chunk) &&
                     ls_share_receiver(sh, bucket, cell) == own;
    return parts * sh->workers[worker].nvws;
}

static void check_end(walk *w) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    int micros = sh->micros, n = sh->nworkers;
    w->at = p->nactions - 1;
    for (int i = 0; i < sh->V * sh->model->nlayers; i++) {
        const ls_layer *l = &sh->model->layers[i % sh->model->nlayers];
        if (w->forwards[i] != (l->traits.loss ? 0 : micros) ||
            w->backs[i] != (l->link.is_constant        ? 0
                            : l->traits.backward_whole ? 1
                                                       : micros) ||
            w->inputs[i] != (ls_share_splits(sh, i % sh->model->nlayers) ? micros : 0))
            wrong(w, "ends a plan that leaves out a micro-batch");
    }
    for (int k = 0; w->stage >= LS_STAGE_REDUCTION && k < sh->nbuckets; k++)
        if (w->reduced[k] != (is_common(p, k) ? 0 : total(p)) ||
            w->exchanged[k] != (sh->sends_codes ? sh->encodings : 0))
            wrong(w, "ends a plan that leaves out a bucket");
    for (int k = 0; w->stage >= LS_STAGE_UPDATE && k < sh->nbuckets * n; k++)
        if (w->updated[k] != 1) wrong(w, "ends a plan that leaves out an update");
    for (int k = 0; w->stage >= LS_STAGE_UPDATE && k < sh->nbuckets; k++)
        if (sh->shards_moments && !sh->buckets[k].is_gathered && !is_common(p, k) &&
            w->gathered[k] != 1)
            wrong(w, "ends a plan that leaves out a gather");
    for (int k = 0; w->stage >= LS_STAGE_UPDATE && sh->divides && k < sh->nbuckets; k++)
        for (int i = 0; i < n; i++)
            if (w->messages[i * sh->nbuckets + k] != expected_messages(p, k, i))
                wrong(w, "ends a plan that leaves out a part of a gradient, or parameters");
    if (w->stage >= LS_STAGE_UPDATE && w->decisions != 1) wrong(w, "ends a plan without a norm");
    if (w->stage == LS_STAGE_WHOLE) wrong(w, ls_buffer_states_end(&w->buffers));
}

static walk open_walk(const ls_plan *p, ls_plan_stage stage, ls_error *e) {
    const ls_share *sh = &p->share;
    walk w = {.p = p, .stage = stage, .e = e};
    size_t n = (size_t)sh->nworkers, cells = (size_t)(sh->V * sh->model->nlayers);
    ls_buffer_states_open(&w.buffers, p, stage == LS_STAGE_WHOLE);
    w.forwards = LS_NEW_ARRAY(int, cells);
    w.backs = LS_NEW_ARRAY(int, cells);
    w.recomputes = LS_NEW_ARRAY(int, cells);
    w.inputs = LS_NEW_ARRAY(int, cells);
    w.latest = LS_NEW_ARRAY(int, n *(size_t)sh->model->nlayers);
    w.writers = LS_NEW_ARRAY(int, n *(size_t)sh->nbuckets *(size_t)sh->nslots);
    w.messages = LS_NEW_ARRAY(int, n *(size_t)sh->nbuckets);
    w.adds = LS_NEW_ARRAY(int, (size_t)(sh->V * sh->nbuckets * sh->nchunks));
    w.joins = LS_NEW_ARRAY(int, n *(size_t)sh->nbuckets);
    w.squares = LS_NEW_ARRAY(int, (size_t)(sh->V * sh->nbuckets));
    w.encodes = LS_NEW_ARRAY(int, (size_t)(sh->V * sh->nbuckets));
    w.loads = LS_NEW_ARRAY(int, n);
    w.norms = LS_NEW_ARRAY(int, n);
    w.reduced = LS_NEW_ARRAY(int, (size_t)sh->nbuckets);
    w.gathered = LS_NEW_ARRAY(int, (size_t)sh->nbuckets);
    w.exchanged = LS_NEW_ARRAY(int, (size_t)sh->nbuckets);
    w.decoded = LS_NEW_ARRAY(int, (size_t)sh->nbuckets *n);
    w.updated = LS_NEW_ARRAY(int, (size_t)sh->nbuckets *n);
    if (sh->nholders > 1) list_writing(&w);
    return w;
}

static void close_walk(walk *w) {
    ls_buffer_states_close(&w->buffers);
    free(w->forwards);
    free(w->backs);
    free(w->recomputes);
    free(w->writers);
    free(w->inputs);
    free(w->latest);
    free(w->messages);
    free(w->first_writing);
    free(w->writing);
    free(w->adds);
    free(w->joins);
    free(w->squares);
    free(w->encodes);
    free(w->loads);
    free(w->norms);
    free(w->reduced);
    free(w->updated);
    free(w->exchanged);
    free(w->decoded);
    free(w->gathered);
}

ls_status ls_plan_verify(const ls_plan *p, ls_plan_stage stage, ls_error *e) {
    walk w = open_walk(p, stage, e);
    w.status = ls_share_verify(&p->share, e);
    for (w.at = 0; w.at < p->nactions && w.status == LS_OK; w.at++)
        check_action(&w, &p->actions[w.at]);
    if (w.status == LS_OK) check_end(&w);
    close_walk(&w);
    return w.status;
}
