/* rules.c - see rules.h. */
#include "plan/rules.h"

#include "share/mesh.h"
#include "tensor/dtype.h"

rules rules_of(const ls_plan *p) {
    const ls_share_config *c = p->share.config;
    rules u = {.p = p, .c = c, .m = c->model, .n = c->nworkers};
    u.S = c->shards ? c->shards : u.n;
    u.R = u.n / u.S;
    while (u.M * c->micro_batch < c->batch / c->V) u.M++;
    return u;
}

void rules_range_of(const rules *u, int w, int *first_p, int *end_p) {
    const int *first = u->c->first;
    *first_p = first ? first[w] : w * u->c->V / u->n;
    *end_p = first ? first[w + 1] : (w + 1) * u->c->V / u->n;
}

bool rules_runs(const rules *u, int w, int vw) {
    int first = 0, end = 0;
    rules_range_of(u, w, &first, &end);
    if (u->c->early) return vw >= 0 && vw < u->c->V && vw % u->n == w;
    return first <= vw && vw < end;
}

int rules_middle_of(int lo, int hi) {
    int size = 1;
    while (2 * size < hi - lo) size *= 2;
    return lo + size;
}

int rules_cover_of(int lo, int hi, int a, int b, span *list) {
    if (b <= lo || hi <= a) return 0;
    if (a <= lo && hi <= b) {
        *list = (span){lo, hi};
        return 1;
    }
    int middle = rules_middle_of(lo, hi), n = rules_cover_of(lo, middle, a, b, list);
    return n + rules_cover_of(middle, hi, a, b, list + n);
}

ls_range rules_shard_of(const rules *u, int bucket, int w) {
    const ls_bucket *b = &u->p->share.buckets[bucket];
    size_t blocks = (b->end - b->first) / LS_BLOCK, S = (size_t)u->S, i = (size_t)(w % u->S);
    return (ls_range){.first = b->first + i * blocks / S * LS_BLOCK,
                      .end = b->first + (i + 1) * blocks / S * LS_BLOCK};
}

bool rules_params_sharded(const rules *u, int bucket) {
    const ls_bucket *b = &u->p->share.buckets[bucket];
    size_t nbytes = (b->end - b->first) * ls_dtype_size(u->c->compute);
    return u->c->zero == 3 && nbytes > u->c->whole_nbytes;
}

bool rules_grads_are_freed(const rules *u) {
    return u->c->zero >= 2 && u->M == 1 && (u->c->early || u->c->V == u->n);
}

/* Do the layers from `layer` on read only the output of the one before, and each other's? */
static bool is_cut(const ls_model *m, int layer) {
    int lowest = layer;
    for (int l = m->nlayers - 1; l >= layer; l--)
        for (int k = 0; k < m->layers[l].ninputs; k++)
            if (m->layers[l].inputs[k] < lowest) lowest = m->layers[l].inputs[k];
    return lowest >= layer - 1;
}

bool rules_in_segment(const rules *u, int layer, bool *ends_p) {
    int k = u->c->recompute, n = u->m->nlayers - 2, begin = 0;
    if (u->c->recompute_layers && u->c->recompute_layers < n) n = u->c->recompute_layers;
    *ends_p = false;
    if (k == 0) return false;
    int frozen = 0; /* the last layer of a segment that has parameters and no Backward */
    for (int l = 1; l <= n; l++)
        if (u->m->layers[l].link.is_constant && u->m->layers[l].nparams) frozen = l;
    for (int l = 1 + frozen; l <= n;
         l++) { /* begin: the first layer of the segment of l; 0: none */
        if (!begin && is_cut(u->m, l)) begin = l;
        bool full = begin && (l - begin + 1 >= k || l == n) && is_cut(u->m, l + 1);
        full = full && !u->m->layers[l].link.is_constant;
        if (full && begin <= layer && layer <= l) {
            *ends_p = layer == l;
            return true;
        }
        if (full) begin = l + 1;
    }
    return false;
}

bool rules_has_factors(const rules *u) {
    return u->c->compress.on && u->c->compress.how.kind == LS_COMPRESS_POWERSGD;
}

bool rules_sends_codes(const rules *u) {
    const ls_share_compress *z = &u->c->compress;
    if (rules_has_factors(u)) return true;
    return z->on && z->codes && z->how.feedback != LS_FEEDBACK_EF21 && u->n > 1 && !u->c->early;
}

bool rules_has_param(const ls_layer *l, int param) {
    for (int i = 0; i < l->nparams; i++)
        if (l->params[i] == param) return !l->link.frozen[i];
    return false;
}

bool rules_touches(const rules *u, int layer, int bucket) {
    const ls_layer *l = &u->m->layers[layer];
    const ls_bucket *b = &u->p->share.buckets[bucket];
    for (int i = 0; i < l->nparams; i++)
        if (!l->link.frozen[i] && l->link.offsets[i] < b->end &&
            b->first < l->link.offsets[i] + l->counts[i])
            return true;
    return false;
}

bool rules_reads_params(const rules *u, const ls_action *a) {
    return a->kind != LS_BACKWARD || !u->m->layers[a->layer].traits.backward_alone;
}

/* ---- the functions by which others read a plan ---- */

static bool same_range(ls_range a, ls_range b) { return a.first == b.first && a.end == b.end; }

/* The most sums that wait at once: the subtrees of the virtual workers that are done, and the sum
 * of the one that runs. */
static int most_slots(const rules *u, int w) {
    span list[RULES_MAX_COVER];
    int a = 0, b = 0, most = 1;
    rules_range_of(u, w, &a, &b);
    for (int v = a; v < b && u->c->tree && !u->c->early; v++) {
        int n = 1 + (v > a ? rules_cover_of(0, u->c->V, a, v, list) : 0);
        if (n > most) most = n;
    }
    return most;
}

static const char *check_virtual_workers(const rules *u, int w) {
    span list[RULES_MAX_COVER];
    int n = 0, a = 0, b = 0, sums = 1;
    for (int v = 0; v < u->c->V; v++) {
        if (!rules_runs(u, w, v)) continue;
        if (ls_share_vw_index(&u->p->share, w, v) != n) return "ls_share_vw_index";
        if (ls_share_vw(&u->p->share, w, n++) != v) return "ls_share_vw";
    }
    if (u->p->share.workers[w].nvws != n) return "ls_worker_share.nvws";
    rules_range_of(u, w, &a, &b);
    if (u->c->tree && !u->c->early) sums = rules_cover_of(0, u->c->V, a, b, list);
    if (ls_share_sums(&u->p->share, 0, w) != sums) return "ls_share_sums";
    return u->p->share.workers[w].nslots == most_slots(u, w) ? NULL : "ls_worker_share.nslots";
}

static const char *check_shards(const rules *u, int bucket) {
    size_t counts[RULES_MAX_WORKERS];
    ls_range all = ls_share_range(&u->p->share, bucket);
    ls_share_shard_counts(&u->p->share, bucket, counts);
    for (int w = 0; w < u->n; w++) {
        ls_range own = rules_shard_of(u, bucket, w), none = {own.first, own.first};
        if (!same_range(ls_share_shard(&u->p->share, bucket, w), own)) return "ls_share_shard";
        if (counts[w % u->S] != own.end - own.first) return "ls_share_shard_counts";
        if (!same_range(ls_share_normed(&u->p->share, bucket, w), w < u->S ? own : none))
            return "ls_share_normed";
        if (!same_range(ls_share_owned(&u->p->share, bucket, w), u->c->zero ? own : all))
            return "ls_share_owned";
    }
    return u->p->share.buckets[bucket].is_gathered == rules_params_sharded(u, bucket)
               ? NULL
               : "ls_bucket.is_gathered";
}

static const char *check_layers(const rules *u, int bucket) {
    const ls_bucket *b = &u->p->share.buckets[bucket];
    int last = -1;
    for (int l = u->m->nlayers - 1; l >= 0; l--) {
        const int *list = NULL;
        int n = ls_share_touched(&u->p->share, l, &list), found = 0;
        for (int i = 0; i < n; i++) found += list[i] == bucket;
        if (found != rules_touches(u, l, bucket)) return "ls_share_touched";
        if (!found) continue;
        last = l;
    }
    if (last < 0) return NULL; /* padding */
    return b->writer == last ? NULL : "ls_share_cut_buckets";
}

static const char *check_samples(const rules *u) {
    int64_t all = u->c->batch / u->c->V, sum = 0;
    if (u->p->share.micros != u->M) return "ls_share.micros";
    for (int i = 0; i < u->M; i++) {
        int64_t n = ls_share_samples(&u->p->share, i);
        if (n < 1 || n > u->c->micro_batch) return "ls_share_samples";
        sum += n;
    }
    if (sum != all || ls_share_samples(&u->p->share, -1) != all) return "ls_share_samples";
    return NULL;
}

const char *rules_check_answers(const ls_plan *p) {
    rules u = rules_of(p);
    const char *bad = check_samples(&u);
    if (p->share.nshards != u.S || p->share.nreplicas != u.R) bad = "ls_share.nshards";
    if (p->share.nrounds != (u.c->early ? u.c->V / u.n : 1)) bad = "ls_share.nrounds";
    if (p->share.round_vws != (u.c->early ? u.n : u.c->V)) bad = "ls_share.round_vws";
    if (p->share.wide != (u.c->reduce != LS_F32 && u.M > 1)) bad = "ls_share.wide";
    for (int w = 0; w < u.n && !bad; w++) bad = check_virtual_workers(&u, w);
    for (int k = 0; k < p->share.nbuckets && !bad; k++) {
        bad = check_shards(&u, k);
        if (!bad) bad = check_layers(&u, k);
    }
    return bad;
}
