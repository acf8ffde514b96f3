/* update.c - the pass that makes new parameters of the reduced gradient.
 *
 * Each worker squares its shards; the norm, and with it the clip factor, is then known to all; the
 * owner of a shard updates it; the new parameters go to all.
 */
#include "plan/plan.h"

void ls_plan_add_update(ls_plan *p) {
    int n = p->c.nworkers;
    int64_t nblocks = (int64_t)(p->c.model->nfloats / LS_BLOCK);
    int64_t floats = (int64_t)p->c.model->nfloats;
    for (int w = 0; w < n; w++) ls_plan_append(p, &(ls_action){.kind = LS_NORM, .worker = w});
    ls_plan_append(p, &(ls_action){.kind = LS_ALL_REDUCE,
                                   .worker = LS_ALL_WORKERS,
                                   .nbytes = nblocks * (int64_t)sizeof(double) * (n - 1) / n});
    for (int k = 0; k < p->nbuckets; k++)
        for (int w = 0; w < n; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_UPDATE, .worker = w, .bucket = k});
    ls_plan_append(p, &(ls_action){.kind = LS_ALL_GATHER,
                                   .worker = LS_ALL_WORKERS,
                                   .nbytes = floats * (int64_t)sizeof(float) * (n - 1) / n});
}
