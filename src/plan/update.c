/* update.c - the pass that computes new parameters from the reduced gradient.
 *
 * Each worker sums the squares of its shards. An AllReduce gives all workers the norm, and with it
 * the clip factor. The owner of a shard updates it; if moments are not sharded, every worker
 * updates all. Then all workers get the bucket's new parameters, or if these are sharded, when they
 * need them (gather.c).
 */
#include "plan/plan.h"

void ls_plan_add_update(ls_plan *p) {
    int n = p->c.nworkers;
    int64_t nscalars = (int64_t)ls_plan_nscalars(p);
    for (int w = 0; w < n; w++) ls_plan_append(p, &(ls_action){.kind = LS_NORM, .worker = w});
    ls_plan_append(p, &(ls_action){.kind = LS_ALL_REDUCE,
                                   .bucket = LS_SCALARS,
                                   .worker = LS_ALL_WORKERS,
                                   .nbytes = 2 * nscalars * (int64_t)sizeof(double) * (n - 1) / n});
    for (int k = 0; k < p->nbuckets; k++) {
        for (int w = 0; w < n; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_UPDATE, .worker = w, .bucket = k});
        if (!ls_plan_shards_moments(p) || ls_plan_gathers(p, k)) continue;
        ls_plan_append_comm(p, LS_ALL_GATHER, LS_AXIS_SHARDS, k, 0);
    }
}
