/* verify.c - checks the invariants of plan.h on any plan. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "tensor/dtype.h"

typedef struct walk {
    const ls_plan *p;
    ls_plan_stage stage;
    int at; /* action */
    int worker;
    char *state;           /* [nworkers][nbuffers] */
    int *forwards, *backs; /* [V][nlayers] micro-batches so far */
    int *recomputes;       /* [V][nlayers] micro-batches computed again */
    int *inputs; /* [V][nlayers] micro-batches whose gradient of inputs alone is computed */
    int *squares, *encodes, *adds; /* [V][nbuckets] so far; adds: folds */
    int *joins;                    /* [nworkers][nbuckets] folds of chunks so far */
    int *reduced, *updated;        /* [nbuckets], [nbuckets][nworkers] */
    int *loads, *norms;            /* [nworkers] */
    int *gathered;                 /* [nbuckets] */
    int *exchanged, *decoded;      /* [nbuckets], [nbuckets][nworkers] */
    int *
        writers; /* [nworkers][nbuckets][nslots] in a pipeline: 1 + whose gradient a sum has; 0: none */
    int *latest;   /* [nworkers][nlayers] in a pipeline: 1 + the sequence of Backward */
    int *messages; /* [nworkers][nbuckets] parts of gradients taken, and parameters got */
    /* In a pipeline: the layers that write bucket k are writing[first_writing[k]] and so on up to
     * first_writing[k + 1]. */
    int *first_writing, *writing;
    int all_reduces;
    ls_status status;
    ls_error *e;
} walk;

enum { UNWRITTEN, WRITTEN, FREED, PACKED /* as a message of some rows */ };

ls_status ls_plan_wrong(const ls_plan *p, int action, const char *what, ls_error *e) {
    ls_buf line = {0};
    ls_plan_print_action(p, action, &line);
    if (line.len) line.data[line.len - 1] = 0;
    ls_status s = ls_fail(e, LS_EINVAL, "plan: %s: action%s", what, line.data ? line.data : "");
    ls_buf_free(&line);
    return s;
}

/* Reports the first failure. */
static void wrong(walk *w, const char *what) {
    if (w->status == LS_OK) w->status = ls_plan_wrong(w->p, w->at, what, w->e);
}

/* The number of communications that sum a bucket, in each round. */
static int reductions(const ls_plan *p) {
    return ls_plan_shards_moments(p) && ls_plan_replicas(p) > 1 ? 2 : 1;
}
static int total(const ls_plan *p) {
    return ls_plan_sends_values(p) ? reductions(p) * ls_plan_rounds(p) : 0;
}

/* Is the gradient of a bucket sent, in some phase? */
static bool is_sent(const walk *w, int bucket) {
    return w->exchanged[bucket] || (total(w->p) && w->reduced[bucket] == total(w->p));
}

/* With islands, the common parameters have no gradient. */
static bool is_common(const ls_plan *p, int bucket) {
    return p->c.islands && p->buckets[bucket].island == 0;
}

static bool is_trained(const walk *w, int vw, int bucket) {
    return ls_plan_island_of(w->p, vw) == w->p->buckets[bucket].island;
}

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    if (buffer < 0 || buffer >= ls_plan_nbuffers(w->p)) {
        wrong(w, "uses a buffer that does not exist");
        return;
    }
    ls_buffer b = ls_plan_buffer_of(w->p, buffer);
    char *s = &w->state[(size_t)w->worker * (size_t)ls_plan_nbuffers(w->p) + (size_t)buffer];
    bool persistent = b.kind == LS_BUF_SHARD || b.kind == LS_BUF_MOMENT || b.kind == LS_BUF_ERROR ||
                      (b.kind == LS_BUF_PARAM && !ls_plan_transient(w->p, b));
    if ((how & LS_USE_READ) && *s == FREED) wrong(w, "reads a buffer after its Free");
    if ((how & LS_USE_READ) && *s == PACKED) wrong(w, "reads a buffer after its Send");
    if ((how & LS_USE_READ) && *s == UNWRITTEN && !persistent)
        wrong(w, "reads a buffer before it was written");
    if (how == LS_USE_WRITE && (*s == WRITTEN || *s == PACKED) && w->stage == LS_STAGE_WHOLE &&
        ls_plan_transient(w->p, b))
        wrong(w, "begins a buffer that is in use");
    if (b.kind == LS_BUF_GRAD && (how & LS_USE_WRITE) && is_sent(w, b.index) &&
        w->p->actions[w->at].kind != LS_FREE)
        wrong(w, "writes a gradient after its reduction");
    bool packs = how == LS_USE_UPDATE && w->p->actions[w->at].kind == LS_SEND;
    if (how & LS_USE_WRITE) *s = packs ? PACKED : WRITTEN;
}

static bool is_own(const walk *w, const ls_action *a) {
    int i = ls_plan_vw_index(w->p, a->worker, a->vw);
    if (ls_action_calls_layer(a) && ls_plan_runner(w->p, a->worker, a->layer) != a->worker)
        return false;
    return i >= 0 && i < ls_plan_nvws(w->p, a->worker) && ls_plan_vw(w->p, a->worker, i) == a->vw;
}

/* Folds that follow the i-th virtual worker, and the slot of its own sum. */
static int folds_of(const ls_plan *p, int worker, int i, int *slot_p) {
    int folds = ls_plan_reduces_rounds(p) ? ls_plan_fold_round(p, i, slot_p)
                                          : ls_plan_fold(p, worker, i, slot_p);
    return ls_plan_sends_values(p) ? folds : 0;
}

/* An action of sums of gradients, and one of codes, run in their phases alone. */
static void check_phase(walk *w, const ls_action *a) {
    bool codes = a->kind == LS_ENCODE || a->kind == LS_EXCHANGE || a->kind == LS_DECODE;
    bool values = a->kind == LS_ADD || a->kind == LS_REDUCE_SCATTER ||
                  (a->kind == LS_ALL_REDUCE && a->bucket != LS_SCALARS);
    ls_phase want = codes ? LS_PHASE_CODES : values ? ls_plan_values_phase(w->p) : LS_PHASE_ALL;
    if (a->phase != want) wrong(w, "runs in the wrong steps");
}

/* Has the layer of a chunk that is the last to write a bucket taken all micro-batches? */
static bool is_chunk_done(const walk *w, int vw, int bucket, int chunk) {
    const ls_model *m = w->p->c.model;
    int layer = ls_plan_closer(w->p, bucket, chunk);
    if (layer < 0) return true;
    int all = m->layers[layer].traits.backward_whole ? 1 : ls_plan_micros(w->p);
    return w->backs[vw * m->nlayers + layer] == all;
}

/* The same of all chunks of a worker. */
static bool is_done_at(const walk *w, int worker, int vw, int bucket) {
    int first = 0, end = 0;
    ls_plan_chunks_of(w->p, worker, &first, &end);
    for (int k = first; k < end; k++)
        if (!is_chunk_done(w, vw, bucket, k)) return false;
    return true;
}
static bool is_done(const walk *w, int vw, int bucket) { return is_chunk_done(w, vw, bucket, 0); }

/* Is the gradient of a bucket ready to be summed? */
static bool is_encoded(const walk *w, int vw, int bucket) {
    return w->encodes[vw * w->p->nbuckets + bucket] >= ls_plan_compresses(w->p);
}

/* The last Encode, or where both factors of it are needed the last Decode, completes a virtual
 * worker's errors. */
static bool ends_errors(const walk *w, int encodes) {
    return !ls_plan_has_factors(w->p) && encodes == w->p->nbuckets;
}

static int *adds_of(const walk *w, int vw, int bucket, int chunk) {
    const ls_plan *p = w->p;
    return &w->adds[(vw * p->nbuckets + bucket) * ls_plan_nchunks(p) + chunk];
}

static void check_measured(walk *w, int worker) {
    const ls_plan *p = w->p;
    for (int i = 0; p->c.noise && i < ls_plan_nvws(p, worker); i++)
        for (int k = 0; k < p->nbuckets; k++)
            if (ls_plan_has(p, k, worker) &&
                !w->squares[ls_plan_vw(p, worker, i) * p->nbuckets + k])
                wrong(w, "comes before a measurement");
}

/* Each virtual worker's gradient is measured once, when it is complete and before it is changed. */
static void check_squares(walk *w, const ls_action *a) {
    int slot = 0, at = a->vw * w->p->nbuckets + a->bucket;
    bool here = ls_plan_has(w->p, a->bucket, a->worker);
    if (!is_own(w, a) || !here || !w->p->c.noise) {
        wrong(w, "belongs to another worker, or to no plan");
        return;
    }
    ls_plan_fold(w->p, a->worker, ls_plan_vw_index(w->p, a->worker, a->vw), &slot);
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
    ls_plan_fold(w->p, a->worker, ls_plan_vw_index(w->p, a->worker, a->vw), &slot);
    if (a->slot != slot) wrong(w, "encodes the wrong sum");
    if (!is_done(w, a->vw, a->bucket)) wrong(w, "encodes a gradient before it is complete");
    if (w->encodes[a->vw * w->p->nbuckets + a->bucket]++ != a->round ||
        a->round >= ls_plan_encodings(w->p))
        wrong(w, "encodes a gradient twice");
    if (a->round > 0 && w->exchanged[a->bucket] < a->round)
        wrong(w, "encodes before the sum that it needs");
    int all = 0;
    for (int k = 0; k < w->p->nbuckets; k++) all += w->encodes[a->vw * w->p->nbuckets + k];
    if (a->start != (all == 1) || a->last != ends_errors(w, all))
        wrong(w, "begins or ends a virtual worker's codes at the wrong bucket");
    if (a->round == 0 && *adds_of(w, a->vw, a->bucket, 0))
        wrong(w, "encodes a gradient after a fold");
}

static int *writer_of(const walk *w, int worker, int bucket, int slot) {
    const ls_plan *p = w->p;
    return &w->writers[(worker * p->nbuckets + bucket) * p->nslots + slot];
}

/* A fold of sums of chunks, once all virtual workers are done. */
static void check_join(walk *w, const ls_action *a, int i) {
    const ls_plan *p = w->p;
    ls_chunk_fold list[LS_TREE_MAX_CHUNKS];
    int n = ls_plan_chunk_folds(p, a->bucket, a->worker, list), slot = 0, first = 0, end = 0;
    int done = w->joins[a->worker * p->nbuckets + a->bucket]++;
    if (done >= n || a->slot != list[done].slot || a->from != list[done].from || a->summed)
        wrong(w, "is not a fold of the tree");
    ls_plan_chunks_of(p, a->worker, &first, &end);
    for (int k = first; k < end; k++)
        if (ls_plan_closer(p, a->bucket, k) >= 0 &&
            *adds_of(w, a->vw, a->bucket, k) != folds_of(p, a->worker, i, &slot))
            wrong(w, "adds chunks before a fold");
    if (i != ls_plan_nvws(p, a->worker) - 1 || !is_done_at(w, a->worker, a->vw, a->bucket))
        wrong(w, "adds a sum before it is complete");
}

static void check_add(walk *w, const ls_action *a) {
    int slot = 0;
    if (!is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    int i = ls_plan_vw_index(w->p, a->worker, a->vw);
    int folds = folds_of(w->p, a->worker, i, &slot);
    if (a->chunk < 0) {
        check_join(w, a, i);
        return;
    }
    if (a->summed != ls_plan_reduces_rounds(w->p)) wrong(w, "adds the wrong kind of sum");
    if (a->summed && w->reduced[a->bucket] < (i + 1) * reductions(w->p))
        wrong(w, "adds a sum over workers before it is reduced");
    if (ls_plan_ranks(w->p) > 1 && a->from < w->p->nslots)
        *writer_of(w, a->worker, a->bucket, a->from) = 0;
    int done = ++*adds_of(w, a->vw, a->bucket, a->chunk);
    bool fits = a->summed
                    ? a->slot == slot - done && a->from == a->slot + 1
                    : a->slot == ls_plan_slot_of(w->p, a->worker, a->chunk, slot - done) &&
                          a->from == ls_plan_slot_of(w->p, a->worker, a->chunk, slot - done + 1);
    if (done > folds || !fits) wrong(w, "is not a fold of the tree");
    if (!is_chunk_done(w, a->vw, a->bucket, a->chunk)) wrong(w, "adds a sum before it is complete");
    if (!is_encoded(w, a->vw, a->bucket)) wrong(w, "adds a sum before it is encoded");
    if (!is_trained(w, a->vw, a->bucket)) wrong(w, "adds a gradient of another replica");
}

/* Checks the sum to which a Backward adds, where chains start, and which micro-batch ends them. */
static void check_chain(walk *w, const ls_action *a, bool whole) {
    const ls_plan *p = w->p;
    int i = ls_plan_vw_index(p, a->worker, a->vw), slot = 0;
    ls_plan_fold(p, a->worker, i, &slot);
    bool alone =
        p->c.tree || ls_plan_reduces_rounds(p); /* each virtual worker has a chain of its own */
    slot = ls_plan_slot_of(p, a->worker, ls_plan_layer_chunk(p, a->layer), slot);
    if (a->slot != slot) wrong(w, "adds to the wrong sum");
    if (a->start != (a->micro <= 0 && (alone || i == 0)))
        wrong(w, "starts a chain at the wrong micro-batch");
    if (a->last != (whole || a->micro == ls_plan_micros(p) - 1))
        wrong(w, "ends a chain at the wrong micro-batch");
}

/* The first part of a Backward that is split adds to no sum. */
static void check_inputs(walk *w, const ls_action *a) {
    int i = a->vw * w->p->c.model->nlayers + a->layer;
    bool loss = w->p->c.model->layers[a->layer].traits.loss;
    if (!ls_plan_splits(w->p, a->layer)) wrong(w, "is a part of what is not split");
    if (a->micro != w->inputs[i]) wrong(w, "is out of order");
    w->inputs[i]++;
    if (!loss && w->forwards[i] < w->inputs[i]) wrong(w, "precedes its Forward");
    if (a->start || a->last) wrong(w, "starts or ends a chain without a gradient of parameters");
}

/* Two stages of a worker write one block of the gradient, and the order of passes mixes their virtual
 * workers; where passes are split, the order prevents that. */
static void mixes(walk *w, const ls_action *a) {
    if (ls_pipe_splits(w->p->c.schedule)) wrong(w, "adds to the sum of another virtual worker");
    if (w->status != LS_OK) return;
    w->status =
        ls_fail(w->e, LS_EINVAL,
                "parallel.chunks %d: two stages of a worker write one block of %d gradients, "
                "that of layer '%s' among them, for several virtual workers at a time; use "
                "fewer chunks, or other parallel.stages",
                ls_plan_stages_each(w->p), LS_BLOCK, w->p->c.model->layers[a->layer].name);
}

/* In a pipeline, no virtual worker adds to a sum that has another's gradient. */
static void check_writers(walk *w, const ls_action *a) {
    const int *touched = NULL;
    int n = ls_plan_touched(w->p, a->layer, &touched);
    for (int j = 0;
         j < n && w->stage >= LS_STAGE_REDUCTION && w->p->c.tree && ls_plan_ranks(w->p) > 1; j++) {
        int *has = writer_of(w, a->worker, touched[j], a->slot);
        if (*has && *has != a->vw + 1) mixes(w, a);
        *has = a->vw + 1;
    }
}

static void list_writing(walk *w) {
    const ls_plan *p = w->p;
    const int *touched = NULL;
    int all = 0;
    w->first_writing = LS_NEW_ARRAY(int, (size_t)p->nbuckets + 1);
    for (int l = 0; l < p->c.model->nlayers; l++)
        for (int j = 0, n = ls_plan_touched(p, l, &touched); j < n; j++, all++)
            w->first_writing[touched[j] + 1]++;
    for (int k = 0; k < p->nbuckets; k++) w->first_writing[k + 1] += w->first_writing[k];
    w->writing = LS_NEW_ARRAY(int, (size_t)all);
    for (int l = p->c.model->nlayers - 1; l >= 0; l--) /* the ends come down to the beginnings */
        for (int j = 0, n = ls_plan_touched(p, l, &touched); j < n; j++)
            w->writing[--w->first_writing[touched[j] + 1]] = l;
    for (int k = 0; k < p->nbuckets; k++) w->first_writing[k] = w->first_writing[k + 1];
    w->first_writing[p->nbuckets] = all;
}

/* In a pipeline, the layer that is the last of its chunk to write a bucket comes after all others of its
 * rank. */
static void check_writer(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_model *m = p->c.model;
    const int *touched = NULL;
    int n = ls_plan_touched(p, a->layer, &touched), chunk = ls_plan_layer_chunk(p, a->layer);
    for (int j = 0; j < n && ls_plan_owners(p) > 1; j++) {
        if (ls_plan_closer(p, touched[j], chunk) != a->layer) continue;
        for (int i = w->first_writing[touched[j]]; i < w->first_writing[touched[j] + 1]; i++) {
            int l = w->writing[i];
            if (ls_plan_layer_chunk(p, l) != chunk || ls_plan_runner(p, a->worker, l) != a->worker)
                continue;
            int all = m->layers[l].traits.backward_whole ? 1 : ls_plan_micros(p);
            if (w->backs[a->vw * m->nlayers + l] != all)
                wrong(w, "completes a gradient before another layer has added to it");
        }
    }
}

static void check_compute(walk *w, const ls_action *a) {
    const ls_model *m = w->p->c.model;
    if (a->layer < 0 || a->layer >= m->nlayers || !is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    int i = a->vw * m->nlayers + a->layer;
    if (a->kind == LS_BACKWARD && a->back == LS_BACK_INPUTS) {
        check_inputs(w, a);
        return;
    }
    bool split = a->kind == LS_BACKWARD && ls_plan_splits(w->p, a->layer);
    if (split != (a->back == LS_BACK_PARAMS)) wrong(w, "computes the wrong gradients");
    if (split && w->inputs[i] <= w->backs[i]) wrong(w, "precedes the gradients of its inputs");
    bool whole = a->kind == LS_BACKWARD && m->layers[a->layer].traits.backward_whole;
    bool loss = m->layers[a->layer].traits.loss;
    int *seen = a->kind == LS_FORWARD ? w->forwards : w->backs;
    if (a->micro != (whole ? -1 : seen[i])) wrong(w, "is out of order");
    seen[i]++;
    if (a->kind == LS_FORWARD && loss) wrong(w, "is a Forward of the loss, which has none");
    bool early = ls_plan_ranks(w->p) > 1 ? w->forwards[i] < seen[i] : w->forwards[i] != seen[i];
    if (a->kind == LS_BACKWARD && !whole && !loss && early) wrong(w, "precedes its Forward");
    int *latest = &w->latest[a->worker * m->nlayers + a->layer];
    int sequence = ls_plan_sequence(w->p, a->worker, a->vw, a->micro) + 1;
    if (a->kind == LS_BACKWARD && sequence <= *latest) wrong(w, "mixes virtual workers' sums");
    if (a->kind == LS_BACKWARD) *latest = sequence;
    if (a->kind == LS_BACKWARD) check_chain(w, a, whole);
    if (a->kind == LS_BACKWARD && w->status == LS_OK) check_writers(w, a);
    if (a->kind == LS_BACKWARD && a->last) check_writer(w, a);
}

/* A Recompute follows its Forward, and precedes its Backward, which a constant layer does not
 * have. */
static void check_recompute(walk *w, const ls_action *a) {
    const ls_model *m = w->p->c.model;
    if (a->layer < 1 || a->layer >= m->nlayers || m->layers[a->layer].traits.loss ||
        !is_own(w, a)) {
        wrong(w, "belongs to another worker");
        return;
    }
    int i = a->vw * m->nlayers + a->layer;
    int backs = m->layers[a->layer].link.is_constant ? a->micro
                : ls_plan_splits(w->p, a->layer)     ? w->inputs[i]
                                                     : w->backs[i];
    bool piped = ls_plan_ranks(w->p) > 1;
    bool early = piped ? a->micro + 1 > w->forwards[i] : a->micro + 1 != w->forwards[i];
    /* where passes are split, the Backward may be in the second part */
    bool done = piped && ls_pipe_splits(w->p->c.schedule) ? backs > a->micro : backs != a->micro;
    if (early || done || a->micro != w->recomputes[i]++) wrong(w, "is out of order");
}

/* Do the workers take part who have the bucket? */
static bool is_of_bucket(const ls_plan *p, const ls_action *a, int bucket) {
    ls_worker_set of = ls_plan_workers_of(p, bucket);
    return a->of.from == of.from && a->of.to == of.to && a->of.step == of.step;
}

/* Only the scalars of the whole step are of all workers. */
static bool fits_island(const ls_plan *p, const ls_action *a) {
    bool scalars = a->bucket == LS_SCALARS;
    if (scalars && a->axis == LS_AXIS_ALL) return true;
    if (a->axis != LS_AXIS_ISLAND || a->island < 1 || a->island > p->c.islands) return false;
    int bucket = scalars ? ls_plan_bucket_in(p, 0, a->island) : a->bucket;
    return p->buckets[bucket].island == a->island && is_of_bucket(p, a, bucket);
}

/* A bucket is of the workers that have it. */
static bool fits_stage(const ls_plan *p, const ls_action *a) {
    if (a->bucket == LS_SCALARS) return a->axis == LS_AXIS_ALL;
    return a->axis == LS_AXIS_STAGE && is_of_bucket(p, a, a->bucket);
}

/* Checks participants and bytes. */
static void check_comm(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    bool sharded = ls_plan_shards_moments(p), fits = a->axis == LS_AXIS_SHARDS;
    if (a->kind == LS_EXCHANGE ||
        (a->kind == LS_ALL_REDUCE && (a->bucket == LS_SCALARS || !sharded)))
        fits = a->axis == LS_AXIS_ALL;
    else if (a->kind == LS_ALL_REDUCE)
        fits = a->axis == LS_AXIS_REPLICAS;
    if (p->c.islands) fits = fits_island(p, a);
    if (ls_plan_divides(p)) fits = fits_stage(p, a);
    if (!fits || (!sharded && a->kind != LS_ALL_REDUCE && a->kind != LS_EXCHANGE))
        wrong(w, "has the wrong participants");
    if (a->nbytes != (int64_t)(ls_plan_read_nbytes(p, a) / (size_t)p->c.nworkers))
        wrong(w, "has the wrong number of bytes");
}

/* All codes are complete; each worker decodes after all have them. */
static void check_exchange(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    if (!ls_plan_sends_codes(p)) wrong(w, "sends codes");
    if (w->exchanged[a->bucket]++ != a->round || a->round >= ls_plan_encodings(p))
        wrong(w, "sends codes twice");
    for (int v = 0; v < p->c.V; v++)
        if (w->encodes[v * p->nbuckets + a->bucket] != a->round + 1)
            wrong(w, "sends codes before an Encode");
}

static void check_decode(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    if (w->exchanged[a->bucket] != ls_plan_encodings(p)) wrong(w, "decodes before codes are sent");
    if (w->decoded[a->bucket * p->c.nworkers + a->worker]++) wrong(w, "decodes twice");
    int all = 0;
    for (int k = 0; k < p->nbuckets; k++) all += w->decoded[k * p->c.nworkers + a->worker];
    if (a->last != (ls_plan_has_factors(p) && all == p->nbuckets))
        wrong(w, "completes a worker's errors at the wrong bucket");
}

static bool is_decoded(const walk *w, int bucket, int worker) {
    return w->decoded[bucket * w->p->c.nworkers + worker] == ls_plan_sends_codes(w->p);
}

/* Are all folds after the i-th virtual worker complete, and those of chunks? */
static bool has_folds(const walk *w, int worker, int i, int bucket) {
    const ls_plan *p = w->p;
    ls_chunk_fold list[LS_TREE_MAX_CHUNKS];
    int first = 0, end = 0, slot = 0, vw = ls_plan_vw(p, worker, i);
    ls_plan_chunks_of(p, worker, &first, &end);
    for (int k = first; k < end; k++)
        if (ls_plan_closer(p, bucket, k) >= 0 &&
            *adds_of(w, vw, bucket, k) != folds_of(p, worker, i, &slot))
            return false;
    return w->joins[worker * p->nbuckets + bucket] == ls_plan_chunk_folds(p, bucket, worker, list);
}

static void check_reduction(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    bool second = a->axis == LS_AXIS_REPLICAS;
    int slot = 0;
    ls_plan_fold_round(p, a->round, &slot);
    if (a->slot != slot) wrong(w, "puts a sum into the wrong slot");
    bool exists = a->round >= 0 && a->round < ls_plan_rounds(p);
    if (!exists || w->reduced[a->bucket]++ != a->round * reductions(p) + second)
        wrong(w, second ? "sums over replicas before their groups" : "reduces a bucket twice");
    if (!exists) return;
    ls_worker_set of = ls_plan_workers_of(p, a->bucket);
    if (is_common(p, a->bucket)) wrong(w, "reduces what has no gradient");
    for (int worker = of.from; worker < of.to && !second; worker += of.step) {
        int first = ls_plan_reduces_rounds(p) ? a->round : 0, n = ls_plan_nvws(p, worker);
        for (int i = first; i < (ls_plan_reduces_rounds(p) ? first + 1 : n); i++) {
            int v = ls_plan_vw(p, worker, i);
            if (!is_trained(w, v, a->bucket)) continue;
            if (!is_done_at(w, worker, v, a->bucket))
                wrong(w, "reduces before a virtual worker is complete");
            if (!is_encoded(w, v, a->bucket)) wrong(w, "reduces before an Encode");
            if (!ls_plan_reduces_rounds(p) && !has_folds(w, worker, i, a->bucket))
                wrong(w, "reduces before a fold");
        }
    }
}

/* Checks that all folds of the rounds are complete. */
static void check_folds(walk *w, int worker) {
    for (int i = 0; i < ls_plan_nvws(w->p, worker); i++)
        for (int k = 0; k < w->p->nbuckets; k++)
            if (ls_plan_has(w->p, k, worker) && is_trained(w, ls_plan_vw(w->p, worker, i), k) &&
                !has_folds(w, worker, i, k))
                wrong(w, "comes before a fold");
}

static void check_free(walk *w, const ls_action *a) {
    if (a->buffer < 0 || a->buffer >= ls_plan_nbuffers(w->p)) {
        wrong(w, "frees a buffer that does not exist");
        return;
    }
    size_t at = (size_t)a->worker * (size_t)ls_plan_nbuffers(w->p) + (size_t)a->buffer;
    bool transient = ls_plan_transient(w->p, ls_plan_buffer_of(w->p, a->buffer));
    bool used = w->state[at] == WRITTEN || w->state[at] == PACKED;
    if (!used || !transient) wrong(w, "frees a buffer that is not in use");
    w->state[at] = FREED;
}

/* Sharded parameters are gathered before their use, others after the Update. */
static void check_gather(walk *w, const ls_action *a) {
    bool before = ls_plan_gathers(w->p, a->bucket);
    ls_worker_set of = ls_plan_workers_of(w->p, a->bucket);
    for (int n = of.from; n < of.to; n += of.step) {
        bool updated = w->updated[a->bucket * w->p->c.nworkers + n];
        if (before && updated) wrong(w, "gathers after an Update");
        if (!before && !updated) wrong(w, "gathers before an Update");
    }
    w->gathered[a->bucket]++;
}

/* A value that another rank reads goes there, its gradient back; what a rank adds to the gradient of
 * another rank's bucket goes there, and new parameters come back. */
static void check_send(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    ls_buffer b = ls_plan_buffer_of(p, a->buffer);
    size_t first = 0, end = 0;
    int rank = ls_plan_rank(p, a->worker);
    int64_t nbytes = -1;
    bool fits = a->peer >= 0 && a->peer < p->c.nworkers && a->peer != a->worker;
    bool inside = fits && ls_plan_owner(p, a->peer) == ls_plan_owner(p, a->worker);
    fits = fits && (inside || ls_plan_place(p, a->peer) == ls_plan_place(p, a->worker));
    if (fits && ls_buffer_in_arena(b.kind)) {
        int layer = b.index,
            reader = ls_plan_crosses(p, layer) ? p->crossings[layer].reader : layer;
        bool on = b.kind == LS_BUF_ACT;
        fits = reader != layer && b.kind != LS_BUF_SAVED &&
               ls_plan_runner(p, a->worker, on ? layer : reader) == a->worker &&
               ls_plan_runner(p, a->worker, on ? reader : layer) == a->peer;
        nbytes = ls_plan_samples(p, a->micro) * (int64_t)p->c.model->layers[layer].y_floats *
                 (int64_t)ls_dtype_size(p->c.compute);
    } else if (fits && b.kind == LS_BUF_INBOX) {
        fits = ls_plan_touched_part(p, a->bucket, rank, &first, &end) && b.index == a->bucket &&
               ls_plan_sends_part(p, a->bucket, rank, a->chunk) &&
               ls_plan_rank(p, a->peer) == ls_plan_receiver(p, a->bucket, rank);
        nbytes = (int64_t)((end - first) * ls_dtype_size(p->c.reduce));
        *writer_of(w, a->worker, a->bucket, a->slot) = 0;
    } else if (fits && b.kind == LS_BUF_PARAM) {
        bool has = ls_plan_has(p, a->bucket, a->worker)
                       ? w->updated[a->bucket * p->c.nworkers + a->worker]
                       : w->messages[a->worker * p->nbuckets + a->bucket] > 0;
        fits = has && b.index == a->bucket && !ls_plan_has(p, a->bucket, a->peer) &&
               ls_plan_touches(p, a->bucket, ls_plan_rank(p, a->peer));
        nbytes = (int64_t)((p->buckets[a->bucket].end - p->buckets[a->bucket].first) *
                           ls_dtype_size(p->c.compute));
        w->messages[a->peer * p->nbuckets + a->bucket]++;
    } else {
        fits = false;
    }
    if (!fits) wrong(w, "sends the wrong thing, or to the wrong worker");
    if (fits && !ls_plan_chooses_well(p, a)) wrong(w, "chooses rows by the wrong scores");
    if (a->nbytes != nbytes) wrong(w, "has the wrong number of bytes");
}

/* A part is taken before the Backward that completes the virtual worker's gradient. */
static void check_take(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    int slot = 0, layer = ls_plan_closer(p, a->bucket, a->chunk);
    ls_plan_fold(p, a->worker, ls_plan_vw_index(p, a->worker, a->vw), &slot);
    slot = ls_plan_slot_of(p, a->worker, a->chunk, slot);
    if (!is_own(w, a) || !ls_plan_has(p, a->bucket, a->worker) || a->slot != slot)
        wrong(w, "belongs to another worker, or sum");
    if (is_chunk_done(w, a->vw, a->bucket, a->chunk))
        wrong(w, "comes after the gradient was complete");
    int whole = p->c.model->layers[layer].traits.backward_whole;
    if (!whole && w->backs[a->vw * p->c.model->nlayers + layer] + 1 != ls_plan_micros(p))
        wrong(w, "comes before the last micro-batch");
    w->messages[a->worker * p->nbuckets + a->bucket]++;
}

static void check_action(walk *w, const ls_action *a) {
    bool comm = a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_REDUCE ||
                a->kind == LS_ALL_GATHER || a->kind == LS_EXCHANGE;
    bool scalars = a->kind == LS_ALL_REDUCE && a->bucket == LS_SCALARS;
    if (comm != (a->worker == LS_ALL_WORKERS)) wrong(w, "has the wrong participants");
    if (!comm && (a->worker < 0 || a->worker >= w->p->c.nworkers))
        wrong(w, "names a worker that does not exist");
    bool value = a->kind == LS_SEND && a->micro >= 0;
    if (!scalars && !value && (a->bucket < 0 || a->bucket >= w->p->nbuckets))
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
    case LS_EXCHANGE: check_exchange(w, a); break;
    case LS_DECODE: check_decode(w, a); break;
    case LS_ADD: check_add(w, a); break;
    case LS_REDUCE_SCATTER: check_reduction(w, a); break;
    case LS_NORM:
        for (int k = 0; k < w->p->nbuckets; k++)
            if (!is_common(w->p, k) &&
                (w->reduced[k] != total(w->p) || !is_decoded(w, k, a->worker)))
                wrong(w, "comes before a reduction");
        check_folds(w, a->worker);
        check_measured(w, a->worker);
        if (w->norms[a->worker]++) wrong(w, "is a second norm");
        break;
    case LS_ALL_REDUCE:
        if (!scalars) {
            check_reduction(w, a);
            break;
        }
        for (int n = 0; n < w->p->c.nworkers; n++)
            if (!w->norms[n]) wrong(w, "comes before a Norm");
        if (a->axis == LS_AXIS_ISLAND && w->all_reduces)
            wrong(w, "comes after the norm of the whole step");
        w->all_reduces += a->axis == LS_AXIS_ALL;
        break;
    case LS_UPDATE:
        if (w->updated[a->bucket * w->p->c.nworkers + a->worker]++) wrong(w, "updates twice");
        if (w->gathered[a->bucket] && !ls_plan_gathers(w->p, a->bucket))
            wrong(w, "updates after its bucket was gathered");
        break;
    case LS_ALL_GATHER: check_gather(w, a); break;
    case LS_SEND: check_send(w, a); break;
    case LS_TAKE: check_take(w, a); break;
    case LS_FREE: check_free(w, a); return; /* its use does not count */
    default: break;
    }
    ls_worker_set of = ls_plan_concerned(w->p, a);
    for (w->worker = of.from; w->worker < of.to; w->worker += of.step)
        ls_action_uses(w->p, a, w->worker, on_use, w);
}

/* Does a whole or undivided parameter (ls_param) begin before `at` and end after it? first: where it would. */
static bool is_whole_at(const ls_model *m, size_t at, size_t first) {
    bool is = false;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        is = is || ((q->cut.whole || q->cut.undivided) && !q->frozen && q->offset == first &&
                    q->offset < at && q->offset + q->count > at);
    }
    return is;
}

/* Each whole parameter is in one bucket, and one worker of a sharding group has all of it. */
static void check_whole(walk *w) {
    const ls_plan *p = w->p;
    for (int i = 0; i < p->c.model->nparams; i++) {
        const ls_param *q = &p->c.model->params[i];
        int owners = 0;
        for (int k = 0; q->cut.whole && !q->frozen && k < p->nbuckets; k++)
            for (int n = 0; p->buckets[k].first <= q->offset && n < ls_plan_shards(p); n++) {
                ls_bucket s = ls_plan_shard(p, k, ls_plan_member(p, ls_plan_owner_of(p, k), n));
                owners += s.first <= q->offset && q->offset + q->count <= s.end;
            }
        if (q->cut.whole && !q->frozen && owners != 1)
            wrong(w, "belongs to a plan that divides a parameter which its optimizer needs whole");
    }
}

/* Buckets are cut from the end of the flat gradient: each has as many blocks, or chunks, as its
 * bytes allow, but at least one, and the last has the rest. A bucket is larger if a whole parameter
 * begins it. */
static void check_buckets(walk *w) {
    const ls_plan *p = w->p;
    size_t unit = ls_plan_bucket_unit(&p->c), end = 0, base = 0;
    size_t units = p->c.bucket_nbytes / (unit * sizeof(float)), segments = 0;
    size_t most = (units ? units : 1) * unit;
    for (int k = 0; k < p->nbuckets; k++) {
        if (end == base) {
            base = segments++ * p->c.model->nfloats;
            end = base + p->c.model->nfloats;
        }
        size_t first = end - base > most ? end - most : base, begin = p->buckets[k].first;
        while (p->c.compress.on && first > base && (p->c.model->nfloats - (first - base)) % unit) {
            first -= LS_BLOCK; /* to a cut between chunks */
        }
        for (int i = p->nends - 1; i >= 0; i--) /* the highest one below the end */
            if (p->ends[i] > first && p->ends[i] < end) first = p->ends[i];
        bool fits = begin == first || is_whole_at(p->c.model, first - base, begin - base);
        if (p->buckets[k].end != end || !fits || p->buckets[k].island != (int)segments - 1)
            wrong(w, "belongs to a plan with wrong buckets");
        end = begin;
    }
    if (end > base || segments != 1 + (size_t)p->c.islands)
        wrong(w, "belongs to a plan whose buckets leave out a part");
}

/* No transient buffer is in use at the end. */
static void check_freed(walk *w) {
    int nbuffers = ls_plan_nbuffers(w->p);
    for (int i = 0; i < w->p->c.nworkers * nbuffers; i++)
        if ((w->state[i] == WRITTEN || w->state[i] == PACKED) &&
            ls_plan_transient(w->p, ls_plan_buffer_of(w->p, i % nbuffers)))
            wrong(w, "ends a plan that leaves a buffer in use");
}

/* A worker takes a part of each virtual worker from each other rank that has one, or gets the new
 * parameters. */
static int expected_messages(const ls_plan *p, int bucket, int worker) {
    int own = ls_plan_rank(p, worker), parts = 0;
    if (!ls_plan_has(p, bucket, worker)) return ls_plan_touches(p, bucket, own);
    for (int rank = 0; rank < ls_plan_ranks(p); rank++)
        for (int chunk = 0; chunk < ls_plan_nchunks(p); chunk++)
            parts += ls_plan_sends_part(p, bucket, rank, chunk) &&
                     ls_plan_receiver(p, bucket, rank) == own;
    return parts * ls_plan_nvws(p, worker);
}

static void check_end(walk *w) {
    const ls_plan *p = w->p;
    int micros = ls_plan_micros(p), n = p->c.nworkers;
    w->at = p->nactions - 1;
    for (int i = 0; i < p->c.V * p->c.model->nlayers; i++) {
        const ls_layer *l = &p->c.model->layers[i % p->c.model->nlayers];
        if (w->forwards[i] != (l->traits.loss ? 0 : micros) ||
            w->backs[i] != (l->link.is_constant        ? 0
                            : l->traits.backward_whole ? 1
                                                       : micros) ||
            w->inputs[i] != (ls_plan_splits(p, i % p->c.model->nlayers) ? micros : 0))
            wrong(w, "ends a plan that leaves out a micro-batch");
    }
    for (int k = 0; w->stage >= LS_STAGE_REDUCTION && k < p->nbuckets; k++)
        if (w->reduced[k] != (is_common(p, k) ? 0 : total(p)) ||
            w->exchanged[k] != (ls_plan_sends_codes(p) ? ls_plan_encodings(p) : 0))
            wrong(w, "ends a plan that leaves out a bucket");
    for (int k = 0; w->stage >= LS_STAGE_UPDATE && k < p->nbuckets * n; k++)
        if (w->updated[k] != 1) wrong(w, "ends a plan that leaves out an update");
    for (int k = 0; w->stage >= LS_STAGE_UPDATE && k < p->nbuckets; k++)
        if (ls_plan_shards_moments(p) && !ls_plan_gathers(p, k) && !is_common(p, k) &&
            w->gathered[k] != 1)
            wrong(w, "ends a plan that leaves out a gather");
    for (int k = 0; w->stage >= LS_STAGE_UPDATE && ls_plan_divides(p) && k < p->nbuckets; k++)
        for (int i = 0; i < n; i++)
            if (w->messages[i * p->nbuckets + k] != expected_messages(p, k, i))
                wrong(w, "ends a plan that leaves out a part of a gradient, or parameters");
    if (w->stage >= LS_STAGE_UPDATE && w->all_reduces != 1) wrong(w, "ends a plan without a norm");
    if (w->stage == LS_STAGE_WHOLE) check_freed(w);
}

ls_status ls_plan_verify(const ls_plan *p, ls_plan_stage stage, ls_error *e) {
    walk w = {.p = p, .stage = stage, .e = e};
    size_t n = (size_t)p->c.nworkers, cells = (size_t)(p->c.V * p->c.model->nlayers);
    w.state = LS_NEW_ARRAY(char, n *(size_t)ls_plan_nbuffers(p));
    w.forwards = LS_NEW_ARRAY(int, cells);
    w.backs = LS_NEW_ARRAY(int, cells);
    w.recomputes = LS_NEW_ARRAY(int, cells);
    w.inputs = LS_NEW_ARRAY(int, cells);
    w.latest = LS_NEW_ARRAY(int, n *(size_t)p->c.model->nlayers);
    w.writers = LS_NEW_ARRAY(int, n *(size_t)p->nbuckets *(size_t)p->nslots);
    w.messages = LS_NEW_ARRAY(int, n *(size_t)p->nbuckets);
    w.adds = LS_NEW_ARRAY(int, (size_t)(p->c.V * p->nbuckets * ls_plan_nchunks(p)));
    w.joins = LS_NEW_ARRAY(int, n *(size_t)p->nbuckets);
    w.squares = LS_NEW_ARRAY(int, (size_t)(p->c.V * p->nbuckets));
    w.encodes = LS_NEW_ARRAY(int, (size_t)(p->c.V * p->nbuckets));
    w.loads = LS_NEW_ARRAY(int, n);
    w.norms = LS_NEW_ARRAY(int, n);
    w.reduced = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    w.gathered = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    w.exchanged = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    w.decoded = LS_NEW_ARRAY(int, (size_t)p->nbuckets *n);
    w.updated = LS_NEW_ARRAY(int, (size_t)p->nbuckets *n);
    if (ls_plan_owners(p) > 1) list_writing(&w);
    check_buckets(&w);
    check_whole(&w);
    for (w.at = 0; w.at < p->nactions && w.status == LS_OK; w.at++)
        check_action(&w, &p->actions[w.at]);
    if (w.status == LS_OK) check_end(&w);
    free(w.state);
    free(w.forwards);
    free(w.backs);
    free(w.recomputes);
    free(w.writers);
    free(w.inputs);
    free(w.latest);
    free(w.messages);
    free(w.first_writing);
    free(w.writing);
    free(w.adds);
    free(w.joins);
    free(w.squares);
    free(w.encodes);
    free(w.loads);
    free(w.norms);
    free(w.reduced);
    free(w.updated);
    free(w.exchanged);
    free(w.decoded);
    free(w.gathered);
    return w.status;
}
