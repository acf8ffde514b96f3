/* verify.c - are the buckets and shards of the table such as a plan needs them? Counted in another
 * way than they are cut (bucket.c). */
#include "share/mesh.h"

/* Does a whole or undivided parameter (ls_param) begin before `at` and end after it? first: where
 * it would. */
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
static ls_status check_whole(const ls_share *sh, ls_error *e) {
    for (int i = 0; i < sh->model->nparams; i++) {
        const ls_param *q = &sh->model->params[i];
        int owners = 0;
        for (int k = 0; q->cut.whole && !q->frozen && k < sh->nbuckets; k++)
            for (int n = 0; sh->buckets[k].first <= q->offset && n < sh->nshards; n++) {
                ls_range s =
                    ls_share_shard(sh, k, ls_share_member(sh, ls_share_holder_of(sh, k), n));
                owners += s.first <= q->offset && q->offset + q->count <= s.end;
            }
        if (q->cut.whole && !q->frozen && owners != 1)
            return ls_fail(e, LS_EINVAL,
                           "plan: the parameter '%s', which its optimizer needs whole, is divided",
                           q->name);
    }
    return LS_OK;
}

/* Buckets are cut from the end of the flat gradient: each has as many blocks, or chunks, as its
 * bytes allow, but at least one, and the last has the rest. A bucket is larger if a whole parameter
 * begins it. */
static ls_status check_buckets(const ls_share *sh, ls_error *e) {
    size_t unit = ls_share_bucket_unit(sh->config), end = 0, base = 0;
    size_t units = sh->config->bucket_nbytes / (unit * sizeof(float)), segments = 0;
    size_t most = (units ? units : 1) * unit;
    for (int k = 0; k < sh->nbuckets; k++) {
        if (end == base) {
            base = segments++ * sh->model->nfloats;
            end = base + sh->model->nfloats;
        }
        size_t first = end - base > most ? end - most : base, begin = sh->buckets[k].first;
        while (sh->compress.on && first > base && (sh->model->nfloats - (first - base)) % unit) {
            first -= LS_BLOCK; /* to a cut between chunks */
        }
        for (int i = sh->nends - 1; i >= 0; i--) /* the highest one below the end */
            if (sh->ends[i] > first && sh->ends[i] < end) first = sh->ends[i];
        bool fits = begin == first || is_whole_at(sh->model, first - base, begin - base);
        if (sh->buckets[k].end != end || !fits || sh->buckets[k].island != (int)segments - 1)
            return ls_fail(e, LS_EINVAL, "plan: bucket %d is cut in the wrong place", k);
        end = begin;
    }
    if (end > base || segments != 1 + (size_t)sh->islands)
        return ls_fail(e, LS_EINVAL, "plan: buckets leave out a part of the gradient");
    return LS_OK;
}

ls_status ls_share_verify(const ls_share *sh, ls_error *e) {
    LS_TRY(check_buckets(sh, e));
    return check_whole(sh, e);
}
