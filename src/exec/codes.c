/* codes.c - see codes.h. */
#include "exec/codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static size_t part_nbytes(const ls_codes *x, int bucket, int worker) {
    size_t first = 0, end = 0;
    ls_plan_code_part(x->plan, bucket, worker, &first, &end);
    return end - first;
}

static void place(ls_codes *x) {
    const ls_plan *p = x->plan;
    size_t own = 0, all = 0, n = (size_t)ls_plan_ncoded(p, x->worker);
    for (int k = 0; k < p->nbuckets; k++) {
        x->own_at[k] = own;
        x->all_at[k] = all;
        own += n * ls_plan_code_nbytes(p, k);
        all += (size_t)ls_plan_coded_before(p, p->c.V) * part_nbytes(x, k, x->worker);
    }
}

ls_status ls_codes_open(ls_codes *x, const ls_plan *p, int worker, ls_error *e) {
    *x = (ls_codes){.plan = p, .worker = worker};
    x->own_at = LS_NEW_ARRAY(size_t, (size_t)p->nbuckets);
    x->all_at = LS_NEW_ARRAY(size_t, (size_t)p->nbuckets);
    x->to_each = LS_NEW_ARRAY(size_t, (size_t)p->c.nworkers);
    x->from_each = LS_NEW_ARRAY(size_t, (size_t)p->c.nworkers);
    place(x);
    LS_TRY(ls_map(ls_plan_own_codes_nbytes(p, worker), "codes", &x->own, e));
    LS_TRY(ls_map(ls_plan_all_codes_nbytes(p, worker), "codes of all", &x->all, e));
    return ls_map(ls_plan_sent_codes_nbytes(p, worker), "codes to be sent", &x->sent, e);
}

void ls_codes_close(ls_codes *x) {
    if (!x->plan) return;
    ls_unmap(x->own, ls_plan_own_codes_nbytes(x->plan, x->worker));
    ls_unmap(x->all, ls_plan_all_codes_nbytes(x->plan, x->worker));
    ls_unmap(x->sent, ls_plan_sent_codes_nbytes(x->plan, x->worker));
    free(x->own_at);
    free(x->all_at);
    free(x->to_each);
    free(x->from_each);
    *x = (ls_codes){0};
}

unsigned char *ls_codes_of(const ls_codes *x, int bucket, int vw) {
    size_t i = (size_t)(ls_plan_coded_before(x->plan, vw) -
                        ls_plan_coded_before(x->plan, ls_plan_vw(x->plan, x->worker, 0)));
    return (unsigned char *)x->own + x->own_at[bucket] + i * ls_plan_code_nbytes(x->plan, bucket);
}

const unsigned char *ls_codes_got(const ls_codes *x, int bucket, int vw, size_t *first_p) {
    size_t end = 0;
    ls_plan_code_part(x->plan, bucket, x->worker, first_p, &end);
    return (unsigned char *)x->all + x->all_at[bucket] +
           (size_t)ls_plan_coded_before(x->plan, vw) * (end - *first_p);
}

/* Packs the parts that each worker decodes. */
static void pack(ls_codes *x, int bucket) {
    const ls_plan *p = x->plan;
    unsigned char *to = x->sent;
    int n = ls_plan_ncoded(p, x->worker);
    for (int w = 0; w < p->c.nworkers; w++) {
        size_t first = 0, end = 0;
        ls_plan_code_part(p, bucket, w, &first, &end);
        for (int i = 0; i < n; i++, to += end - first)
            memcpy(to, ls_codes_of(x, bucket, ls_plan_coded(p, x->worker, i)) + first, end - first);
    }
}

/* Workers' ranges of virtual workers follow each other, so what arrives is in their order. */
ls_status ls_codes_exchange_start(ls_codes *x, ls_group *g, int bucket, ls_request **r_p,
                                  ls_error *e) {
    const ls_plan *p = x->plan;
    unsigned char *all = (unsigned char *)x->all + x->all_at[bucket];
    size_t own = part_nbytes(x, bucket, x->worker);
    for (int w = 0; w < p->c.nworkers; w++) {
        x->to_each[w] = (size_t)ls_plan_ncoded(p, x->worker) * part_nbytes(x, bucket, w);
        x->from_each[w] = (size_t)ls_plan_ncoded(p, w) * own;
    }
    if (!ls_plan_shards_moments(p)) /* all get the same */
        return ls_all_gather_v_start(g, (char *)x->own + x->own_at[bucket], all, x->from_each,
                                     LS_U8, r_p, e);
    pack(x, bucket);
    return ls_all_to_all_v_start(g, x->sent, x->to_each, all, x->from_each, LS_U8, r_p, e);
}
