/* codes.c - see codes.h. */
#include "exec/codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "share/codes.h"

static size_t part_nbytes(const ls_codes *x, int bucket, int worker) {
    ls_range part = ls_share_code_part(x->share, bucket, worker);
    return part.end - part.first;
}

static void place(ls_codes *x) {
    const ls_share *sh = x->share;
    size_t own = 0, all = 0, n = (size_t)ls_share_ncoded(sh, x->worker);
    for (int k = 0; k < sh->nbuckets; k++) {
        x->own_at[k] = own;
        x->all_at[k] = all;
        own += n * sh->buckets[k].code_nbytes;
        all += (size_t)ls_share_coded_before(sh, sh->V) * part_nbytes(x, k, x->worker);
    }
}

ls_status ls_codes_open(ls_codes *x, const ls_share *sh, int worker, ls_error *e) {
    *x = (ls_codes){.share = sh, .worker = worker};
    x->own_at = LS_NEW_ARRAY(size_t, (size_t)sh->nbuckets);
    x->all_at = LS_NEW_ARRAY(size_t, (size_t)sh->nbuckets);
    x->to_each = LS_NEW_ARRAY(size_t, (size_t)sh->nworkers);
    x->from_each = LS_NEW_ARRAY(size_t, (size_t)sh->nworkers);
    place(x);
    LS_TRY(ls_map(ls_share_own_codes_nbytes(sh, worker), "codes", &x->own, e));
    LS_TRY(ls_map(ls_share_all_codes_nbytes(sh, worker), "codes of all", &x->all, e));
    return ls_map(ls_share_sent_codes_nbytes(sh, worker), "codes to be sent", &x->sent, e);
}

void ls_codes_close(ls_codes *x) {
    if (!x->share) return;
    ls_unmap(x->own, ls_share_own_codes_nbytes(x->share, x->worker));
    ls_unmap(x->all, ls_share_all_codes_nbytes(x->share, x->worker));
    ls_unmap(x->sent, ls_share_sent_codes_nbytes(x->share, x->worker));
    free(x->own_at);
    free(x->all_at);
    free(x->to_each);
    free(x->from_each);
    *x = (ls_codes){0};
}

unsigned char *ls_codes_of(const ls_codes *x, int bucket, int vw) {
    size_t i = (size_t)(ls_share_coded_before(x->share, vw) -
                        ls_share_coded_before(x->share, ls_share_vw(x->share, x->worker, 0)));
    return (unsigned char *)x->own + x->own_at[bucket] + i * x->share->buckets[bucket].code_nbytes;
}

const unsigned char *ls_codes_got(const ls_codes *x, int bucket, int vw, size_t *first_p) {
    ls_range part = ls_share_code_part(x->share, bucket, x->worker);
    *first_p = part.first;
    return (unsigned char *)x->all + x->all_at[bucket] +
           (size_t)ls_share_coded_before(x->share, vw) * (part.end - part.first);
}

/* Packs the parts that each worker decodes. */
static void pack(ls_codes *x, int bucket) {
    const ls_share *sh = x->share;
    unsigned char *to = x->sent;
    int n = ls_share_ncoded(sh, x->worker);
    for (int w = 0; w < sh->nworkers; w++) {
        ls_range part = ls_share_code_part(sh, bucket, w);
        size_t nbytes = part.end - part.first;
        for (int i = 0; i < n; i++, to += nbytes)
            memcpy(to, ls_codes_of(x, bucket, ls_share_coded(sh, x->worker, i)) + part.first,
                   nbytes);
    }
}

/* Workers' ranges of virtual workers follow each other, so what arrives is in their order. */
ls_status ls_codes_exchange_start(ls_codes *x, ls_group *g, int bucket, ls_request **r_p,
                                  ls_error *e) {
    const ls_share *sh = x->share;
    unsigned char *all = (unsigned char *)x->all + x->all_at[bucket];
    size_t own = part_nbytes(x, bucket, x->worker);
    for (int w = 0; w < sh->nworkers; w++) {
        x->to_each[w] = (size_t)ls_share_ncoded(sh, x->worker) * part_nbytes(x, bucket, w);
        x->from_each[w] = (size_t)ls_share_ncoded(sh, w) * own;
    }
    if (!sh->shards_moments) /* all get the same */
        return ls_all_gather_v_start(g, (char *)x->own + x->own_at[bucket], all, x->from_each,
                                     LS_U8, r_p, e);
    pack(x, bucket);
    return ls_all_to_all_v_start(g, x->sent, x->to_each, all, x->from_each, LS_U8, r_p, e);
}
