/* bucket.c - cuts the flat gradient into buckets, and lists the buckets of each layer.
 *
 * Buckets are cut from the end of the flat gradient, in the order in which Backward fills it. Each
 * has as many blocks as fit into bucket_nbytes, but at least one; where gradients are compressed,
 * as many chunks of pieces (codes.c); where the cut would be inside a whole or undivided parameter
 * (ls_param), the bucket begins with this parameter. A bucket also ends where the stages of a
 * pipeline meet, or parameters of another chunk follow (mesh.c). The list of each layer is made
 * once, since passes and readers need it at every action.
 *
 * Shards are even cuts of a bucket. With whole parameters a cut moves to the nearest end of the
 * parameter that it is inside of, and each bucket is divided so that the workers' shards of all
 * buckets so far have the same size, as nearly as possible: a bucket may have one owner.
 */
#include <stdlib.h>

#include "base/round_up.h"
#include "share/mesh.h"

size_t ls_share_bucket_floats(const ls_share_config *c) {
    size_t unit = ls_share_bucket_unit(c);
    size_t size = c->bucket_nbytes / sizeof(float) / unit * unit;
    return size < unit ? unit : size;
}

/* The bucket of an element of the first segment. */
static int bucket_at(const ls_share *sh, size_t at) {
    int low = 0, high = sh->segment_buckets - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sh->buckets[middle].first <= at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The buckets of a layer's parameter. */
static void buckets_of(const ls_share *sh, const ls_layer *l, int param, int *first_p,
                       int *last_p) {
    *first_p = bucket_at(sh, l->link.offsets[param] + l->counts[param] - 1);
    *last_p = bucket_at(sh, l->link.offsets[param]);
}

static int by_number(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Appends the buckets of one layer, each once, to sh->touched. seen [nbuckets]: 1 + the latest
 * layer that has the bucket. */
static void list_layer(ls_share *sh, int layer, int *seen, int *capacity_p) {
    const ls_layer *l = &sh->model->layers[layer];
    int begin = sh->touched_from[layer], n = begin;
    for (int i = 0; i < l->nparams; i++) {
        int first = 0, last = 0;
        if (l->link.frozen[i]) continue;
        buckets_of(sh, l, i, &first, &last);
        for (int k = first; k <= last; k++) {
            if (seen[k] == layer + 1) continue;
            seen[k] = layer + 1;
            if (n == *capacity_p) {
                *capacity_p = *capacity_p ? 2 * *capacity_p : 64;
                sh->touched = ls_realloc(sh->touched, (size_t)*capacity_p * sizeof *sh->touched);
            }
            sh->touched[n++] = k;
        }
    }
    if (n > begin) qsort(sh->touched + begin, (size_t)(n - begin), sizeof *sh->touched, by_number);
    sh->touched_from[layer + 1] = n;
}

static void list_touched(ls_share *sh) {
    int nlayers = sh->model->nlayers, capacity = 0;
    int *seen = LS_NEW_ARRAY(int, (size_t)sh->nbuckets);
    sh->touched_from = LS_NEW_ARRAY(int, (size_t)nlayers + 1);
    for (int layer = 0; layer < nlayers; layer++) list_layer(sh, layer, seen, &capacity);
    free(seen);
}

/* The whole (or undivided) parameter that an element, which does not begin it, is inside of; its
 * end with the rest of its last block. NULL: none. */
static const ls_param *whole_around(const ls_model *m, size_t at, size_t *end_p) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        size_t end = ls_round_up(q->offset + q->count, LS_BLOCK);
        if (!(q->cut.whole || q->cut.undivided) || q->frozen || at <= q->offset || at >= end)
            continue;
        *end_p = end;
        return q;
    }
    return NULL;
}

/* The nearest place to `at` where a shard may end. */
static size_t nearest_cut(const ls_model *m, size_t at) {
    size_t end = 0;
    const ls_param *q = whole_around(m, at, &end);
    if (!q) return at;
    return at - q->offset < end - at ? q->offset : end;
}

static void cut_evenly(const ls_share *sh, int k) {
    const ls_bucket *b = &sh->buckets[k];
    size_t *cuts = sh->cuts + (size_t)k * sh->cuts_row, blocks = (b->end - b->first) / LS_BLOCK;
    for (size_t i = 0; i <= b->nshards; i++)
        cuts[i] = b->first + blocks * i / b->nshards * LS_BLOCK;
}

/* Cuts bucket k, in which each worker gets what it has less than its part of this bucket and all
 * before it. sizes [nshards of the bucket]: of the shards before. */
static void cut_by_size(const ls_share *sh, int k, size_t *sizes) {
    const ls_bucket *b = &sh->buckets[k];
    size_t n = b->nshards;
    size_t *cuts = sh->cuts + (size_t)k * sh->cuts_row, total = 0, lacking = 0, given = 0;
    for (size_t w = 0; w < n; w++) total += sizes[w];
    size_t part = (total + b->end - b->first + n - 1) / n;
    for (size_t w = 0; w < n; w++) lacking += sizes[w] < part ? part - sizes[w] : 0;
    cuts[0] = b->first;
    for (size_t w = 0; w < n; w++) {
        given += sizes[w] < part ? part - sizes[w] : 0;
        size_t blocks = (b->end - b->first) / LS_BLOCK;
        double share = (double)given / (double)lacking * (double)blocks;
        size_t at =
            w + 1 < n ? nearest_cut(sh->model, b->first + (size_t)share * LS_BLOCK) : b->end;
        cuts[w + 1] = at < b->end ? at : b->end;
        sizes[w] += cuts[w + 1] - cuts[w];
    }
}

static size_t nshards_of(const ls_share *sh, const ls_bucket *b) {
    if (sh->islands) return (size_t)ls_worker_set_count(b->workers);
    return (size_t)(b->is_apart ? sh->data : sh->nshards);
}

void ls_share_cut_shards(ls_share *sh) {
    bool whole = false;
    for (int i = 0; i < sh->model->nparams; i++) whole = whole || sh->model->params[i].cut.whole;
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_bucket *b = &sh->buckets[k];
        b->nshards = nshards_of(sh, b);
        if (b->nshards >= sh->cuts_row) sh->cuts_row = b->nshards + 1;
    }
    sh->cuts = LS_NEW_ARRAY(size_t, (size_t)sh->nbuckets * sh->cuts_row);
    size_t *sizes = LS_NEW_ARRAY(size_t, sh->cuts_row), *apart = LS_NEW_ARRAY(size_t, sh->cuts_row);
    for (int k = 0; k < sh->nbuckets; k++)
        if (whole)
            cut_by_size(sh, k, sh->buckets[k].is_apart ? apart : sizes);
        else
            cut_evenly(sh, k);
    free(sizes);
    free(apart);
}

/* Whose parameters a bucket has: there is an end where the chunk changes. */
static int chunk_of(const ls_model *m, size_t first, size_t end) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        if (!q->frozen && q->offset < end && q->offset + q->count > first) return q->cut.chunk;
    }
    return m->nchunks > 1 ? -1 : 0;
}

/* Where gradients are compressed: the last cut between chunks up to `at`, so that buckets after a
 * whole parameter don't divide chunks. */
static size_t at_chunk(const ls_share *sh, size_t at) {
    size_t chunk = ls_share_chunk(sh->config), n = sh->model->nfloats;
    if (!sh->compress.on) return at;
    size_t after = ls_round_up(n - at, chunk);
    return after < n ? n - after : 0;
}

/* With islands, each segment is cut in the same way. Layers have buckets of the first one. */
void ls_share_cut_buckets(ls_share *sh) {
    const ls_model *m = sh->model;
    size_t size = ls_share_bucket_floats(sh->config), segments = (size_t)sh->nsegments;
    size_t most = m->nfloats / size + 1 + (size_t)sh->nends;
    sh->buckets = LS_NEW_ARRAY(ls_bucket, most * segments);
    for (int island = 0; island < (int)segments; island++) {
        size_t base = (size_t)island * m->nfloats;
        for (size_t end = m->nfloats; end > 0;) {
            size_t first = at_chunk(sh, end > size ? end - size : 0), whole_end = 0;
            const ls_param *q = whole_around(m, first, &whole_end);
            if (q) first = q->offset;
            for (int i = sh->nends - 1; i >= 0; i--)
                if (sh->ends[i] > first && sh->ends[i] < end) first = sh->ends[i];
            sh->buckets[sh->nbuckets++] = (ls_bucket){.first = base + first,
                                                      .end = base + end,
                                                      .writer = m->nlayers,
                                                      .island = island,
                                                      .chunk = chunk_of(m, first, end)};
            end = first;
        }
    }
    sh->segment_buckets = sh->nbuckets / sh->nsegments;
    list_touched(sh);
    for (int layer = 0; layer < m->nlayers; layer++)
        for (int i = sh->touched_from[layer]; i < sh->touched_from[layer + 1]; i++)
            for (int island = 0; island < (int)segments; island++) {
                ls_bucket *b = &sh->buckets[ls_share_bucket_in(sh, sh->touched[i], island)];
                if (layer < b->writer) b->writer = layer;
            }
}

int ls_share_touched(const ls_share *sh, int layer, const int **buckets_p) {
    *buckets_p = sh->touched + sh->touched_from[layer];
    return sh->touched_from[layer + 1] - sh->touched_from[layer];
}
