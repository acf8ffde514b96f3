/* stages.c - a mesh: which worker runs which layers, and which workers have which buckets.
 *
 * Stages are cut where one value is all that later layers read of earlier ones, or one of each slice or
 * chunk (ls_model_cut()): it is the message to the next stage, and its gradient the message back. Among
 * all such cuts those are chosen whose largest stage has the least work, by dynamic programming.
 *
 * Buckets, too, are cut where stages meet, and where parameters of other chunks begin. Stages seldom
 * meet at the end of a block, so the block in which they do is a bucket of its own.
 */
#include <math.h>
#include <stdlib.h>

#include "base/plural.h"
#include "model/split.h"
#include "plan/plan.h"
#include "plan/stages.h"

int ls_plan_pipe(const ls_plan *p) { return p->c.pipe > 1 ? p->c.pipe : 1; }
int ls_plan_tensor(const ls_plan *p) { return p->c.tensor > 1 ? p->c.tensor : 1; }
int ls_plan_beside(const ls_plan *p) { return ls_plan_tensor(p) * ls_plan_context(p); }
int ls_plan_ranks(const ls_plan *p) { return ls_plan_pipe(p) * ls_plan_beside(p); }
int ls_plan_owners(const ls_plan *p) { return ls_plan_pipe(p) * ls_plan_tensor(p); }
int ls_plan_data(const ls_plan *p) { return p->c.nworkers / ls_plan_ranks(p); }
int ls_plan_rank(const ls_plan *p, int worker) {
    int beside = ls_plan_beside(p);
    return worker / (ls_plan_data(p) * beside) * beside + worker % beside;
}
int ls_plan_place(const ls_plan *p, int worker) {
    return worker / ls_plan_beside(p) % ls_plan_data(p);
}
int ls_plan_worker(const ls_plan *p, int rank, int place) {
    int beside = ls_plan_beside(p);
    return (rank / beside * ls_plan_data(p) + place) * beside + rank % beside;
}

/* The workers of an owner: number place * context + c is the one with part c of the chunks. */
static int owner_of_rank(const ls_plan *p, int rank) {
    int tensor = ls_plan_tensor(p);
    return rank / ls_plan_beside(p) * tensor + rank % tensor;
}
static int context_of(const ls_plan *p, int rank) {
    return rank % ls_plan_beside(p) / ls_plan_tensor(p);
}
int ls_plan_owner(const ls_plan *p, int worker) {
    return owner_of_rank(p, ls_plan_rank(p, worker));
}
int ls_plan_number(const ls_plan *p, int worker) {
    return ls_plan_place(p, worker) * ls_plan_context(p) + context_of(p, ls_plan_rank(p, worker));
}
int ls_plan_member(const ls_plan *p, int owner, int number) {
    int context = ls_plan_context(p), tensor = ls_plan_tensor(p);
    int rank = owner / tensor * ls_plan_beside(p) + number % context * tensor + owner % tensor;
    return ls_plan_worker(p, rank, number / context);
}

int ls_plan_owner_of(const ls_plan *p, int bucket) {
    return owner_of_rank(p, p->buckets[bucket].rank);
}

bool ls_plan_is_apart(const ls_plan *p, int bucket) {
    return ls_plan_context(p) > 1 && p->buckets[bucket].chunk >= 0;
}

bool ls_plan_divides(const ls_plan *p) {
    if (ls_plan_owners(p) > 1) return true;
    for (int k = 0; ls_plan_context(p) > 1 && k < p->nbuckets; k++)
        if (ls_plan_is_apart(p, k)) return true;
    return false;
}

int ls_plan_stages_each(const ls_plan *p) { return p->c.chunks > 1 ? p->c.chunks : 1; }

static int nstages(const ls_plan *p) { return ls_plan_pipe(p) * ls_plan_stages_each(p); }

/* The part of consecutive slices, or chunks, of which n workers have a part each. */
static int part_of_all(int i, int n, int all) { return n > 1 ? (int)((int64_t)i * n / all) : 0; }

static int tensor_of(const ls_plan *p, int layer) {
    const ls_model *m = p->c.model;
    return part_of_all(m->layers[layer].slice, ls_plan_tensor(p), m->nslices);
}

/* The number of a layer's worker among those beside each other. */
static int beside_of(const ls_plan *p, int layer) {
    const ls_model *m = p->c.model;
    int context = part_of_all(m->layers[layer].chunk, ls_plan_context(p), m->nchunks);
    return tensor_of(p, layer) + ls_plan_tensor(p) * context;
}

void ls_plan_slices(const ls_plan *p, int rank, int *first_p, int *end_p) {
    int tensor = ls_plan_tensor(p), n = p->c.model->nslices > 1 ? p->c.model->nslices : 1;
    ls_tree_chunks(n, tensor, rank % tensor, first_p, end_p);
}

int ls_plan_rank_of(const ls_plan *p, int layer) {
    int rank = 0, chunk = 0;
    const ls_pipe_schedule s = {.kind = p->c.schedule, .workers = ls_plan_pipe(p)};
    if (p->stage_of) ls_pipe_place(&s, p->stage_of[layer], &rank, &chunk);
    return rank * ls_plan_beside(p) + beside_of(p, layer);
}

int ls_plan_runner(const ls_plan *p, int worker, int layer) {
    return ls_plan_worker(p, ls_plan_rank_of(p, layer), ls_plan_place(p, worker));
}

int ls_plan_sequence(const ls_plan *p, int worker, int vw, int micro) {
    return ls_plan_vw_index(p, worker, vw) * ls_plan_micros(p) + (micro > 0 ? micro : 0);
}

/* The first layer of this stage or a later one: stages ascend. */
static int first_of_stage(const ls_plan *p, int stage) {
    int low = 0, high = p->c.model->nlayers;
    while (low < high) {
        int middle = (low + high) / 2;
        if ((p->stage_of ? p->stage_of[middle] : 0) < stage)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void ls_plan_stage_layers(const ls_plan *p, int stage, int *first_p, int *end_p) {
    *first_p = first_of_stage(p, stage);
    *end_p = first_of_stage(p, stage + 1);
}

bool ls_plan_splits(const ls_plan *p, int layer) {
    return ls_plan_pipe(p) > 1 && ls_pipe_splits(p->c.schedule) &&
           ls_split_can(p->c.model, &p->c.model->layers[layer]);
}

ls_back ls_plan_writes_in(const ls_plan *p, int layer) {
    const ls_model *m = p->c.model;
    if (ls_plan_pipe(p) <= 1 || !ls_pipe_splits(p->c.schedule)) return LS_BACK_ALL;
    bool waits = !ls_plan_splits(p, layer) && ls_model_has_dx(m, &m->layers[layer]);
    return waits ? LS_BACK_INPUTS : LS_BACK_PARAMS;
}

/* ---- stages ---- */

/* Does Backward of a layer from this one on, which reads the value, run for all micro-batches at once? */
static bool is_read_whole(const ls_model *m, int layer, int value) {
    for (int l = layer; l < m->nlayers; l++)
        for (int k = 0; m->layers[l].traits.backward_whole && k < m->layers[l].ninputs; k++)
            if (m->layers[l].inputs[k] == value) return true;
    return false;
}

/* May a stage begin with this layer? The gradient of what it reads goes back one micro-batch at a
 * time. */
static bool may_begin(const ls_model *m, int layer) {
    int *values = LS_NEW_ARRAY(int, (size_t)ls_model_parts(m)), n = ls_model_cut(m, layer, values);
    bool may = n > 0 && !m->layers[layer].traits.backward_whole;
    for (int i = 0; may && i < n; i++) {
        const ls_layer *below = &m->layers[values[i]];
        may = !below->link.is_constant && !below->traits.backward_whole && !below->traits.loss &&
              !is_read_whole(m, layer, values[i]);
    }
    free(values);
    return may;
}

static double work_of(const ls_model *m, int layer) {
    const ls_layer *l = &m->layers[layer];
    return l->cost.flops + ls_model_backward_flops(m, l);
}

/* Stages consist of blocks: the layers from one that may begin a stage up to the next. */
typedef struct cutting {
    int n;        /* stages */
    int nblocks;  /* at most the model's layers */
    int *first;   /* [nblocks + 1] the first layer of each, and the end */
    double *work; /* [nblocks] */
    double *most; /* [n + 1][nblocks + 1] the largest stage, of the first i stages up to a block */
    int *begins;  /* [n + 1][nblocks + 1] the first block of the i-th stage */
} cutting;

static void list_blocks(cutting *c, const ls_model *m) {
    for (int l = 0; l < m->nlayers; l++) {
        if (l == 0 || may_begin(m, l)) c->first[c->nblocks++] = l;
        c->work[c->nblocks - 1] += work_of(m, l);
    }
    c->first[c->nblocks] = m->nlayers;
}

/* The i-th stage up to a block: it begins where the largest of the first i stages is smallest. A
 * stage that is larger than the best so far need not grow. */
static void cut_stage(cutting *c, int i, int end) {
    int row = c->nblocks + 1;
    double work = 0, *best = &c->most[i * row + end];
    for (int begin = end - 1; begin >= 0 && work < *best; begin--) {
        work += c->work[begin];
        double before = c->most[(i - 1) * row + begin];
        double most = work > before ? work : before;
        if (most >= *best) continue;
        *best = most;
        c->begins[i * row + end] = begin;
    }
}

static void cut_best(cutting *c) {
    for (int i = 0; i < (c->n + 1) * (c->nblocks + 1); i++) c->most[i] = INFINITY;
    c->most[0] = 0;
    for (int i = 1; i <= c->n; i++)
        for (int end = 1; end <= c->nblocks; end++) cut_stage(c, i, end);
}

int ls_stages_most(const ls_model *m) {
    int n = 1;
    for (int l = 1; l < m->nlayers; l++) n += may_begin(m, l);
    return n;
}

bool ls_stages_cut(const ls_model *m, int n, int *stage_of) {
    size_t most = (size_t)m->nlayers;
    cutting c = {.n = n, .first = LS_NEW_ARRAY(int, most + 1), .work = LS_NEW_ARRAY(double, most)};
    list_blocks(&c, m);
    int row = c.nblocks + 1, end = c.nblocks;
    c.most = LS_NEW_ARRAY(double, (size_t)((n + 1) * row));
    c.begins = LS_NEW_ARRAY(int, (size_t)((n + 1) * row));
    cut_best(&c);
    bool can = isfinite(c.most[n * row + end]);
    for (int i = n; can && i > 0; i--) {
        int begin = c.begins[i * row + end];
        for (int l = c.first[begin]; l < c.first[end]; l++) stage_of[l] = i - 1;
        end = begin;
    }
    free(c.first);
    free(c.work);
    free(c.most);
    free(c.begins);
    return can;
}

static ls_status cut_by_work(ls_plan *p, ls_error *e) {
    int n = nstages(p);
    if (ls_stages_cut(p->c.model, n, p->stage_of)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%d stages (parallel.mesh pipe %d, parallel.chunks %d): this model can be cut "
                   "into %d at most; use fewer",
                   n, ls_plan_pipe(p), n / ls_plan_pipe(p), ls_stages_most(p->c.model));
}

static ls_status cut_as_given(ls_plan *p, ls_error *e) {
    const ls_model *m = p->c.model;
    int begin = 0;
    for (int i = 0; i < nstages(p); i++) {
        int end = i + 1 < nstages(p) ? p->c.stages[i] : m->nlayers;
        if (end <= begin || end > m->nlayers)
            return ls_fail(e, LS_EINVAL,
                           "parallel.stages: stage %d would begin with '%s' (layer %d of %d), and "
                           "the one before begins with '%s' (layer %d); name a later layer",
                           i + 1, end >= 0 && end < m->nlayers ? m->layers[end].name : "", end,
                           m->nlayers, m->layers[begin].name, begin);
        if (end < m->nlayers && !may_begin(m, end))
            return ls_fail(e, LS_EINVAL,
                           "parallel.stages: no stage can begin with layer %d, '%s': more than one "
                           "value, or none that is trained, comes from the layers before it",
                           end, m->layers[end].name);
        for (int l = begin; l < end; l++) p->stage_of[l] = i;
        begin = end;
    }
    return LS_OK;
}

static int by_size_downwards(const void *a, const void *b) {
    const size_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* The lowest layer that has the parameter: the last one in the order of Backward. */
static int owner_of(const ls_model *m, int param) {
    for (int l = 0; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].nparams; k++)
            if (m->layers[l].params[k] == param) return l;
    return 0;
}

/* May one bucket have the parameters of both layers? Those of two slices of a tied embedding, which
 * continue the gradient of another stage's layer, may not. */
static bool may_share(const ls_plan *p, int a, int b) {
    const ls_layer *x = &p->c.model->layers[a], *y = &p->c.model->layers[b];
    bool tied = x->traits.backward_whole || y->traits.backward_whole;
    if (p->stage_of && p->stage_of[a] != p->stage_of[b]) return false;
    return tensor_of(p, a) == tensor_of(p, b) &&
           !(tied && ls_plan_owners(p) > 1 && x->slice != y->slice);
}

void ls_plan_list_ends(ls_plan *p) {
    const ls_model *m = p->c.model;
    int before = -1, chunk = 0;
    p->ends = LS_NEW_ARRAY(size_t, 2 * (size_t)m->nparams);
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        if (q->frozen) continue;
        int owner = owner_of(m, i);
        bool same = before < 0 || (q->cut.chunk == chunk && may_share(p, before, owner));
        before = owner;
        chunk = q->cut.chunk;
        if (same || q->offset / LS_BLOCK == 0) continue;
        p->ends[p->nends++] = q->offset / LS_BLOCK * LS_BLOCK;
        p->ends[p->nends++] = (q->offset + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
    }
    qsort(p->ends, (size_t)p->nends, sizeof *p->ends, by_size_downwards);
}

/* Finds the values that other ranks read. */
static ls_status find_crossings(ls_plan *p, ls_error *e) {
    const ls_model *m = p->c.model;
    p->crossings = LS_NEW_ARRAY(ls_crossing, (size_t)m->nlayers);
    for (int v = 0; v < m->nlayers; v++) p->crossings[v].reader = -1;
    for (int l = 0; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].ninputs; k++) {
            int v = m->layers[l].inputs[k];
            ls_crossing *c = &p->crossings[v];
            bool first = c->reader < 0, is = ls_plan_rank_of(p, v) != ls_plan_rank_of(p, l);
            bool fits = first || ls_plan_rank_of(p, c->reader) == ls_plan_rank_of(p, l);
            if (first) *c = (ls_crossing){l, is};
            bool whole = m->layers[v].traits.backward_whole || m->layers[l].traits.backward_whole;
            if (fits && !(is && whole)) continue;
            return ls_fail(
                e, LS_EINVAL,
                "parallel.mesh: layers of several workers need what layer '%s' computes, "
                "'%s' among them; use fewer workers for a model",
                m->layers[v].name, m->layers[l].name);
        }
    return LS_OK;
}

bool ls_plan_crosses(const ls_plan *p, int layer) { return p->crossings && p->crossings[layer].is; }

ls_status ls_plan_cut_stages(ls_plan *p, ls_error *e) {
    p->stage_of = LS_NEW_ARRAY(int, (size_t)p->c.model->nlayers);
    LS_TRY(p->c.stages ? cut_as_given(p, e) : cut_by_work(p, e));
    return find_crossings(p, e);
}

/* ---- buckets ---- */

static size_t *part_of(const ls_plan *p, int bucket, int rank) {
    return p->parts + 2 * ((size_t)rank * (size_t)p->nbuckets + (size_t)bucket);
}

bool ls_plan_touched_part(const ls_plan *p, int bucket, int rank, size_t *first_p, size_t *end_p) {
    const size_t *part = part_of(p, bucket, rank);
    *first_p = part[0];
    *end_p = part[1];
    return part[0] < part[1];
}

bool ls_plan_touches(const ls_plan *p, int bucket, int rank) {
    size_t first = 0, end = 0;
    return ls_plan_touched_part(p, bucket, rank, &first, &end);
}

/* A row of openers and closers: of the layers of an owner and a chunk. */
static int row_of(const ls_plan *p, int rank, int chunk) {
    return (owner_of_rank(p, rank) * ls_plan_nchunks(p) + chunk) * p->nbuckets;
}
static int row_of_layer(const ls_plan *p, int layer) {
    return row_of(p, ls_plan_rank_of(p, layer), ls_plan_layer_chunk(p, layer));
}

bool ls_plan_opens(const ls_plan *p, int bucket, int layer) {
    if (!p->openers) return p->buckets[bucket].opener == layer;
    return p->openers[row_of_layer(p, layer) + bucket] == layer;
}

bool ls_plan_closes(const ls_plan *p, int bucket, int layer) {
    return p->closers[row_of_layer(p, layer) + bucket] == layer;
}

int ls_plan_closer(const ls_plan *p, int bucket, int chunk) {
    if (!p->closers) return p->buckets[bucket].writer;
    return p->closers[row_of(p, p->buckets[bucket].rank, chunk) + bucket];
}

bool ls_plan_sends_part(const ls_plan *p, int bucket, int rank, int chunk) {
    int first = 0, end = 0, worker = ls_plan_worker(p, rank, 0);
    ls_plan_chunks_of(p, worker, &first, &end);
    return !ls_plan_has(p, bucket, worker) && chunk >= first && chunk < end &&
           p->closers[row_of(p, rank, chunk) + bucket] >= 0;
}

int ls_plan_receiver(const ls_plan *p, int bucket, int rank) {
    int own = p->buckets[bucket].rank;
    if (p->buckets[bucket].chunk >= 0) return own;
    return own + context_of(p, rank) * ls_plan_tensor(p);
}

static ls_status cant_share(const ls_layer *a, const ls_layer *b, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "stages: layers '%s' and '%s' share parameters, or a block of %d of them, in a "
                   "way that no pipeline can divide; use fewer stages",
                   a->name, b->name, LS_BLOCK);
}

/* What another rank sends of a bucket's gradient must be complete when it is taken: no layer of the
 * bucket's own ranks writes it but the last one of each chunk, which then continues its sums. All
 * chunks of the other rank write the same part. */
static ls_status check_part(const ls_plan *p, int bucket, int rank, ls_error *e) {
    const ls_model *m = p->c.model;
    const ls_layer *writer = &m->layers[p->buckets[bucket].writer];
    size_t first = 0, end = 0;
    int chunk = 0, after_chunk = 0, worker = ls_plan_worker(p, rank, 0);
    if (ls_plan_has(p, bucket, worker) || !ls_plan_touched_part(p, bucket, rank, &first, &end))
        return LS_OK;
    ls_plan_chunks_of(p, worker, &chunk, &after_chunk);
    for (; p->buckets[bucket].chunk < 0 && chunk < after_chunk; chunk++)
        if (!ls_plan_sends_part(p, bucket, rank, chunk)) return cant_share(writer, writer, e);
    for (int l = 0; l < m->nlayers; l++) {
        const ls_layer *x = &m->layers[l];
        if (owner_of_rank(p, ls_plan_rank_of(p, l)) == owner_of_rank(p, rank)) continue;
        for (int k = 0; k < x->nparams; k++) {
            size_t at = x->link.offsets[k], after = at + x->counts[k];
            if (x->link.frozen[k] || after <= first || at >= end) continue;
            bool last = ls_plan_closer(p, bucket, ls_plan_layer_chunk(p, l)) == l;
            if (!last || !x->traits.backward_whole) return cant_share(x, writer, e);
        }
    }
    return LS_OK;
}

/* Layers of all chunks have a parameter that those of several do; and in a pipeline one stage, that of
 * the bucket's last layer, has such a layer of each chunk. */
static ls_status check_chunks(const ls_plan *p, ls_error *e) {
    const ls_model *m = p->c.model;
    size_t chunks = (size_t)ls_plan_nchunks(p);
    bool *has = LS_NEW_ARRAY(bool, (size_t)m->nparams *chunks);
    ls_status s = LS_OK;
    for (int l = 0; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].nparams; k++)
            has[(size_t)m->layers[l].params[k] * chunks + (size_t)ls_plan_layer_chunk(p, l)] = true;
    for (int i = 0; i < m->nparams; i++)
        for (size_t c = 0;
             !m->params[i].frozen && m->params[i].cut.chunk < 0 && s == LS_OK && c < chunks; c++)
            if (!has[(size_t)i * chunks + c])
                s = ls_fail(e, LS_EINVAL,
                            "layers of some chunks have the parameter '%s', and those of chunk %zu "
                            "do not; it must be of one chunk, or of all",
                            m->params[i].name, c);
    free(has);
    for (int k = 0; k < p->nbuckets && s == LS_OK; k++)
        for (int c = 0; p->buckets[k].chunk < 0 && c < (int)chunks && s == LS_OK; c++)
            if (p->buckets[k].writer < m->nlayers && ls_plan_closer(p, k, c) < 0)
                s = cant_share(&m->layers[p->buckets[k].writer], &m->layers[p->buckets[k].writer],
                               e);
    return s;
}

static void extend(size_t *part, size_t first, size_t end) {
    if (first >= end) return;
    if (part[0] >= part[1]) {
        part[0] = first;
        part[1] = end;
    }
    if (first < part[0]) part[0] = first;
    if (end > part[1]) part[1] = end;
}

/* Does a worker's first Backward of a layer that adds to its gradients precede that of another? It
 * does if the layer is of a later stage; in a stage, if it is of an earlier pass. */
static bool precedes(const ls_plan *p, int a, int b) {
    bool together = !p->stage_of || p->stage_of[a] == p->stage_of[b];
    ls_back x = ls_plan_writes_in(p, a), y = ls_plan_writes_in(p, b);
    return together && x != y ? x == LS_BACK_INPUTS : a > b;
}

/* Finds which layers of each owner and chunk write the buckets first and last, and what of them. */
static void find_writers(ls_plan *p) {
    const ls_model *m = p->c.model;
    for (int l = 0; l < m->nlayers; l++) {
        const int *touched = NULL;
        for (int j = 0, n = ls_plan_touched(p, l, &touched); j < n; j++) {
            const ls_bucket *b = &p->buckets[touched[j]];
            int cell = row_of_layer(p, l) + touched[j];
            if (p->openers[cell] < 0 || precedes(p, l, p->openers[cell])) p->openers[cell] = l;
            if (p->closers[cell] < 0 || precedes(p, p->closers[cell], l)) p->closers[cell] = l;
            for (int k = 0; k < m->layers[l].nparams; k++) {
                size_t at = m->layers[l].link.offsets[k], after = at + m->layers[l].counts[k];
                if (m->layers[l].link.frozen[k]) continue;
                extend(part_of(p, touched[j], ls_plan_rank_of(p, l)), at > b->first ? at : b->first,
                       after < b->end ? after : b->end);
            }
        }
    }
}

ls_status ls_plan_assign_buckets(ls_plan *p, ls_error *e) {
    size_t each = (size_t)p->nbuckets, ranks = (size_t)ls_plan_ranks(p);
    size_t rows = (size_t)(ls_plan_owners(p) * ls_plan_nchunks(p));
    p->openers = LS_NEW_ARRAY(int, rows *each);
    p->closers = LS_NEW_ARRAY(int, rows *each);
    p->parts = LS_NEW_ARRAY(size_t, 2 * ranks * each);
    for (size_t i = 0; i < rows * each; i++) p->openers[i] = p->closers[i] = -1;
    for (int k = 0; k < p->nbuckets; k++) {
        ls_bucket *b = &p->buckets[k];
        b->rank = b->writer < p->c.model->nlayers ? ls_plan_rank_of(p, b->writer) : 0;
        if (b->chunk < 0) b->rank -= context_of(p, b->rank) * ls_plan_tensor(p);
    }
    find_writers(p);
    LS_TRY(check_chunks(p, e));
    for (int k = 0; k < p->nbuckets; k++) {
        ls_bucket *b = &p->buckets[k];
        for (int rank = 0; rank < ls_plan_ranks(p); rank++) {
            bool has = ls_plan_has(p, k, ls_plan_worker(p, rank, 0));
            b->shared = b->shared || (!has && ls_plan_touches(p, k, rank));
            LS_TRY(check_part(p, k, rank, e));
        }
    }
    return LS_OK;
}
