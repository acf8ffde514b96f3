/* mesh.c - see mesh.h: which cell has which layers, and which workers have which buckets.
 *
 * Buckets are cut where stages meet, and where parameters of other chunks begin. Stages seldom
 * meet at the end of a block, so the block in which they do is a bucket of its own.
 */
#include "share/mesh.h"

#include <stdlib.h>

#include "base/round_up.h"
#include "model/split.h"
#include "share/islands.h"
#include "share/stages.h"

static int holder_of_cell(const ls_share *sh, int cell) {
    return cell / sh->beside * sh->tensor + cell % sh->tensor;
}
/* The part of the chunks that a cell has. */
static int context_of(const ls_share *sh, int cell) { return cell % sh->beside / sh->tensor; }

int ls_share_holder_of(const ls_share *sh, int bucket) {
    return holder_of_cell(sh, sh->buckets[bucket].cell);
}

static int nstages(const ls_share *sh) { return sh->pipe * sh->stages_each; }

/* The part of consecutive slices, or chunks, of which n workers have a part each. */
static int part_of_all(int i, int n, int all) { return n > 1 ? (int)((int64_t)i * n / all) : 0; }

static int tensor_of(const ls_share *sh, int layer) {
    const ls_model *m = sh->model;
    return part_of_all(m->layers[layer].slice, sh->tensor, m->nslices);
}

static int find_cell(const ls_share *sh, int layer) {
    const ls_model *m = sh->model;
    const ls_pipe_schedule s = {.kind = sh->config->schedule, .workers = sh->pipe};
    int place = 0, chunk = 0,
        context = part_of_all(m->layers[layer].chunk, sh->context, m->nchunks);
    ls_pipe_place(&s, sh->stage_of[layer], &place, &chunk);
    return place * sh->beside + tensor_of(sh, layer) + sh->tensor * context;
}

int ls_share_cell_of(const ls_share *sh, int layer) { return sh->cell_of ? sh->cell_of[layer] : 0; }

int ls_share_runner(const ls_share *sh, int worker, int layer) {
    return ls_share_worker(sh, ls_share_cell_of(sh, layer), sh->workers[worker].place);
}

int ls_share_sequence(const ls_share *sh, int worker, int vw, int micro) {
    return ls_share_vw_index(sh, worker, vw) * sh->micros + (micro > 0 ? micro : 0);
}

/* The first layer of this stage or a later one: stages ascend. */
static int first_of_stage(const ls_share *sh, int stage) {
    int low = 0, high = sh->model->nlayers;
    while (low < high) {
        int middle = (low + high) / 2;
        if ((sh->stage_of ? sh->stage_of[middle] : 0) < stage)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void ls_share_stage_layers(const ls_share *sh, int stage, int *first_p, int *end_p) {
    *first_p = first_of_stage(sh, stage);
    *end_p = first_of_stage(sh, stage + 1);
}

bool ls_share_splits(const ls_share *sh, int layer) {
    return sh->pipe > 1 && ls_pipe_splits(sh->config->schedule) &&
           ls_split_can(sh->model, &sh->model->layers[layer]);
}

ls_back ls_share_writes_in(const ls_share *sh, int layer) {
    const ls_model *m = sh->model;
    if (sh->pipe <= 1 || !ls_pipe_splits(sh->config->schedule)) return LS_BACK_ALL;
    bool waits = !ls_share_splits(sh, layer) && ls_model_has_dx(m, &m->layers[layer]);
    return waits ? LS_BACK_INPUTS : LS_BACK_PARAMS;
}

/* ---- stages ---- */

static ls_status cut_by_work(ls_share *sh, ls_error *e) {
    int n = nstages(sh);
    if (ls_stages_cut(sh->model, n, sh->stage_of)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%d stages (parallel.mesh pipe %d, parallel.chunks %d): this model can be cut "
                   "into %d at most; use fewer",
                   n, sh->pipe, n / sh->pipe, ls_stages_most(sh->model));
}

static ls_status cut_as_given(ls_share *sh, ls_error *e) {
    const ls_model *m = sh->model;
    int begin = 0;
    for (int i = 0; i < nstages(sh); i++) {
        int end = i + 1 < nstages(sh) ? sh->config->stages[i] : m->nlayers;
        if (end <= begin || end > m->nlayers)
            return ls_fail(e, LS_EINVAL,
                           "parallel.stages: stage %d would begin with '%s' (layer %d of %d), and "
                           "the one before begins with '%s' (layer %d); name a later layer",
                           i + 1, end >= 0 && end < m->nlayers ? m->layers[end].name : "", end,
                           m->nlayers, m->layers[begin].name, begin);
        if (end < m->nlayers && !ls_stages_may_begin(m, end))
            return ls_fail(e, LS_EINVAL,
                           "parallel.stages: no stage can begin with layer %d, '%s': more than one "
                           "value, or none that is trained, comes from the layers before it",
                           end, m->layers[end].name);
        for (int l = begin; l < end; l++) sh->stage_of[l] = i;
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
static bool may_share(const ls_share *sh, int a, int b) {
    const ls_layer *x = &sh->model->layers[a], *y = &sh->model->layers[b];
    bool tied = x->traits.backward_whole || y->traits.backward_whole;
    if (sh->stage_of && sh->stage_of[a] != sh->stage_of[b]) return false;
    return tensor_of(sh, a) == tensor_of(sh, b) &&
           !(tied && sh->nholders > 1 && x->slice != y->slice);
}

void ls_share_list_ends(ls_share *sh) {
    const ls_model *m = sh->model;
    int before = -1, chunk = 0;
    sh->ends = LS_NEW_ARRAY(size_t, 2 * (size_t)m->nparams);
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        if (q->frozen) continue;
        int owner = owner_of(m, i);
        bool same = before < 0 || (q->cut.chunk == chunk && may_share(sh, before, owner));
        before = owner;
        chunk = q->cut.chunk;
        if (same || q->offset / LS_BLOCK == 0) continue;
        sh->ends[sh->nends++] = q->offset / LS_BLOCK * LS_BLOCK;
        sh->ends[sh->nends++] = ls_round_up(q->offset, LS_BLOCK);
    }
    qsort(sh->ends, (size_t)sh->nends, sizeof *sh->ends, by_size_downwards);
}

/* Finds the values that other cells read. */
static ls_status find_crossings(ls_share *sh, ls_error *e) {
    const ls_model *m = sh->model;
    sh->crossings = LS_NEW_ARRAY(ls_crossing, (size_t)m->nlayers);
    for (int v = 0; v < m->nlayers; v++) sh->crossings[v].reader = -1;
    for (int l = 0; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].ninputs; k++) {
            int v = m->layers[l].inputs[k];
            ls_crossing *c = &sh->crossings[v];
            bool first = c->reader < 0, is = ls_share_cell_of(sh, v) != ls_share_cell_of(sh, l);
            bool fits = first || ls_share_cell_of(sh, c->reader) == ls_share_cell_of(sh, l);
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

bool ls_share_crosses(const ls_share *sh, int layer) {
    return sh->crossings && sh->crossings[layer].is;
}

ls_status ls_share_cut_stages(ls_share *sh, ls_error *e) {
    size_t n = (size_t)sh->model->nlayers;
    sh->stage_of = LS_NEW_ARRAY(int, n);
    LS_TRY(sh->config->stages ? cut_as_given(sh, e) : cut_by_work(sh, e));
    sh->cell_of = LS_NEW_ARRAY(int, n);
    for (int l = 0; l < (int)n; l++) sh->cell_of[l] = find_cell(sh, l);
    return find_crossings(sh, e);
}

/* ---- buckets ---- */

static ls_range *part_of(const ls_share *sh, int bucket, int cell) {
    return sh->parts + (size_t)cell * (size_t)sh->nbuckets + (size_t)bucket;
}

ls_range ls_share_touched_part(const ls_share *sh, int bucket, int cell) {
    return *part_of(sh, bucket, cell);
}

bool ls_share_touches(const ls_share *sh, int bucket, int cell) {
    const ls_range *part = part_of(sh, bucket, cell);
    return part->first < part->end;
}

/* A row of openers and closers: of the layers of a holder and a chunk. */
static int row_of(const ls_share *sh, int cell, int chunk) {
    return (holder_of_cell(sh, cell) * sh->nchunks + chunk) * sh->nbuckets;
}
static int row_of_layer(const ls_share *sh, int layer) {
    return row_of(sh, ls_share_cell_of(sh, layer), ls_share_layer_chunk(sh, layer));
}

bool ls_share_opens(const ls_share *sh, int bucket, int layer) {
    return sh->openers[row_of_layer(sh, layer) + bucket] == layer;
}

bool ls_share_closes(const ls_share *sh, int bucket, int layer) {
    return sh->closers[row_of_layer(sh, layer) + bucket] == layer;
}

int ls_share_closer(const ls_share *sh, int bucket, int chunk) {
    return sh->closers[row_of(sh, sh->buckets[bucket].cell, chunk) + bucket];
}

bool ls_share_sends_part(const ls_share *sh, int bucket, int cell, int chunk) {
    int worker = ls_share_worker(sh, cell, 0);
    const ls_worker_share *x = &sh->workers[worker];
    return !ls_share_has(sh, bucket, worker) && chunk >= x->first_chunk && chunk < x->end_chunk &&
           sh->closers[row_of(sh, cell, chunk) + bucket] >= 0;
}

int ls_share_receiver(const ls_share *sh, int bucket, int cell) {
    int own = sh->buckets[bucket].cell;
    if (sh->buckets[bucket].chunk >= 0) return own;
    return own + context_of(sh, cell) * sh->tensor;
}

static ls_status cant_share(const ls_layer *a, const ls_layer *b, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "stages: layers '%s' and '%s' share parameters, or a block of %d of them, in a "
                   "way that no pipeline can divide; use fewer stages",
                   a->name, b->name, LS_BLOCK);
}

/* What another cell sends of a bucket's gradient must be complete when it is taken: no layer of the
 * bucket's own cells writes it but the last one of each chunk, which then continues its sums. All
 * chunks of the other cell write the same part. */
static ls_status check_part(const ls_share *sh, int bucket, int cell, ls_error *e) {
    const ls_model *m = sh->model;
    const ls_layer *writer = &m->layers[sh->buckets[bucket].writer];
    ls_range part = ls_share_touched_part(sh, bucket, cell);
    int worker = ls_share_worker(sh, cell, 0);
    const ls_worker_share *w = &sh->workers[worker];
    if (ls_share_has(sh, bucket, worker) || part.first >= part.end) return LS_OK;
    for (int c = w->first_chunk; sh->buckets[bucket].chunk < 0 && c < w->end_chunk; c++)
        if (!ls_share_sends_part(sh, bucket, cell, c)) return cant_share(writer, writer, e);
    for (int l = 0; l < m->nlayers; l++) {
        const ls_layer *x = &m->layers[l];
        if (holder_of_cell(sh, ls_share_cell_of(sh, l)) == holder_of_cell(sh, cell)) continue;
        for (int k = 0; k < x->nparams; k++) {
            size_t at = x->link.offsets[k], after = at + x->counts[k];
            if (x->link.frozen[k] || after <= part.first || at >= part.end) continue;
            bool last = ls_share_closer(sh, bucket, ls_share_layer_chunk(sh, l)) == l;
            if (!last || !x->traits.backward_whole) return cant_share(x, writer, e);
        }
    }
    return LS_OK;
}

/* Layers of all chunks have a parameter that those of several do; and in a pipeline one stage, that
 * of the bucket's last layer, has such a layer of each chunk. */
static ls_status check_chunks(const ls_share *sh, ls_error *e) {
    const ls_model *m = sh->model;
    size_t chunks = (size_t)sh->nchunks;
    bool *has = LS_NEW_ARRAY(bool, (size_t)m->nparams *chunks);
    ls_status s = LS_OK;
    for (int l = 0; l < m->nlayers; l++)
        for (int k = 0; k < m->layers[l].nparams; k++)
            has[(size_t)m->layers[l].params[k] * chunks + (size_t)ls_share_layer_chunk(sh, l)] =
                true;
    for (int i = 0; i < m->nparams; i++)
        for (size_t c = 0;
             !m->params[i].frozen && m->params[i].cut.chunk < 0 && s == LS_OK && c < chunks; c++)
            if (!has[(size_t)i * chunks + c])
                s = ls_fail(e, LS_EINVAL,
                            "layers of some chunks have the parameter '%s', and those of chunk %zu "
                            "do not; it must be of one chunk, or of all",
                            m->params[i].name, c);
    free(has);
    for (int k = 0; k < sh->nbuckets && s == LS_OK; k++)
        for (int c = 0; sh->buckets[k].chunk < 0 && c < (int)chunks && s == LS_OK; c++)
            if (sh->buckets[k].writer < m->nlayers && ls_share_closer(sh, k, c) < 0)
                s = cant_share(&m->layers[sh->buckets[k].writer], &m->layers[sh->buckets[k].writer],
                               e);
    return s;
}

static void extend(ls_range *part, size_t first, size_t end) {
    if (first >= end) return;
    if (part->first >= part->end) *part = (ls_range){first, end};
    if (first < part->first) part->first = first;
    if (end > part->end) part->end = end;
}

/* Does a worker's first Backward of a layer that adds to its gradients precede that of another? It
 * does if the layer is of a later stage; in a stage, if it is of an earlier pass. */
static bool precedes(const ls_share *sh, int a, int b) {
    bool together = !sh->stage_of || sh->stage_of[a] == sh->stage_of[b];
    ls_back x = ls_share_writes_in(sh, a), y = ls_share_writes_in(sh, b);
    return together && x != y ? x == LS_BACK_INPUTS : a > b;
}

/* The layer writes the bucket, or those in other segments for the same parameters. */
static void write(ls_share *sh, int layer, int bucket) {
    const ls_layer *l = &sh->model->layers[layer];
    const ls_bucket *b = &sh->buckets[bucket];
    ls_range *part = part_of(sh, bucket, ls_share_cell_of(sh, layer));
    for (int i = 0; i < sh->nsegments; i++) {
        int at = row_of_layer(sh, layer) + ls_share_bucket_in(sh, bucket, i);
        int *opener = &sh->openers[at], *closer = &sh->closers[at];
        if (*opener < 0 || precedes(sh, layer, *opener)) *opener = layer;
        if (*closer < 0 || precedes(sh, *closer, layer)) *closer = layer;
    }
    for (int k = 0; k < l->nparams; k++) {
        size_t at = l->link.offsets[k], after = at + l->counts[k];
        if (l->link.frozen[k]) continue;
        extend(part, at > b->first ? at : b->first, after < b->end ? after : b->end);
    }
}

/* Finds which layers of each holder and chunk write the buckets first and last, and what of
 * them. */
static void find_writers(ls_share *sh) {
    size_t each = (size_t)sh->nbuckets, n = (size_t)(sh->nholders * sh->nchunks) * each;
    sh->openers = LS_NEW_ARRAY(int, n);
    sh->closers = LS_NEW_ARRAY(int, n);
    sh->parts = LS_NEW_ARRAY(ls_range, (size_t)sh->ncells * each);
    for (size_t i = 0; i < n; i++) sh->openers[i] = sh->closers[i] = -1;
    for (int l = 0; l < sh->model->nlayers; l++) {
        const int *touched = NULL;
        for (int j = 0, count = ls_share_touched(sh, l, &touched); j < count; j++)
            write(sh, l, touched[j]);
    }
}

static ls_worker_set workers_of(const ls_share *sh, const ls_bucket *b) {
    bool all = b->chunk < 0; /* chunks */
    int n = sh->data * (all ? sh->context : 1), step = all ? sh->tensor : sh->beside;
    int from = ls_share_worker(sh, b->cell, 0);
    if (b->island) return ls_share_workers_of_island(sh, b->island);
    return (ls_worker_set){from, from + (n - 1) * step + 1, step};
}

ls_status ls_share_assign_buckets(ls_share *sh, ls_error *e) {
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_bucket *b = &sh->buckets[k];
        b->cell = b->writer < sh->model->nlayers ? ls_share_cell_of(sh, b->writer) : 0;
        if (b->chunk < 0) b->cell -= context_of(sh, b->cell) * sh->tensor;
        b->workers = workers_of(sh, b);
        b->is_apart = sh->context > 1 && b->chunk >= 0;
        sh->divides = sh->divides || b->is_apart;
    }
    find_writers(sh);
    LS_TRY(check_chunks(sh, e));
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_bucket *b = &sh->buckets[k];
        for (int cell = 0; cell < sh->ncells; cell++) {
            bool has = ls_share_has(sh, k, ls_share_worker(sh, cell, 0));
            b->shared = b->shared || (!has && ls_share_touches(sh, k, cell));
            LS_TRY(check_part(sh, k, cell, e));
        }
    }
    return LS_OK;
}
