/* update.c - the pass that computes new parameters from the reduced gradient.
 *
 * Each worker sums the squares of its shards. Decide gives all workers the norm, and with it the
 * clip factor. With islands each has a norm of its own, so only its workers need the sums of its
 * blocks; all workers get the squares of the islands' norms. The owner of a shard updates it; if
 * moments are not sharded, every worker updates all. Then all workers get the bucket's new
 * parameters, or if these are sharded, when they need them (gather.c).
 */
#include "plan/plan.h"
#include "share/mesh.h"

static void send_to(ls_plan *p, int bucket, int from, int to) {
    const ls_share *sh = &p->share;
    const ls_bucket *b = &sh->buckets[bucket];
    ls_plan_append(p, &(ls_action){.kind = LS_SEND,
                                   .worker = from,
                                   .peer = to,
                                   .micro = -1,
                                   .bucket = bucket,
                                   .buffer = ls_plan_buffer(p, LS_BUF_PARAM, bucket, 0),
                                   .comm.nbytes = (int64_t)((b->end - b->first) *
                                                            ls_dtype_size(sh->compute))});
}

/* Owners whose workers read the parameters, too, get them from the one that updates them: the first
 * of these workers, which passes them on. Where a holder has one copy, these messages are empty. */
static void send_params(ls_plan *p, int bucket) {
    const ls_share *sh = &p->share;
    int own = sh->buckets[bucket].workers.from, holders = sh->nholders;
    int members = sh->nworkers / holders;
    for (int holder = 0; sh->buckets[bucket].shared && holder < holders; holder++) {
        int first = -1;
        for (int i = 0; i < members; i++) {
            int to = ls_share_member(sh, holder, i);
            bool reads = ls_share_touches(sh, bucket, sh->workers[to].cell);
            if (ls_share_has(sh, bucket, to) || !reads) continue;
            send_to(p, bucket, first < 0 ? own : first, to);
            if (first < 0) first = to;
        }
    }
}

void ls_plan_add_update(ls_plan *p) {
    const ls_share *sh = &p->share;
    int n = sh->nworkers;
    for (int w = 0; w < n; w++) ls_plan_append(p, &(ls_action){.kind = LS_NORM, .worker = w});
    for (int island = 1; island <= sh->islands; island++) ls_plan_append_norm(p, island);
    ls_plan_append_decide(p);
    for (int k = 0; k < sh->nbuckets; k++) {
        for (int w = 0; w < n; w++)
            ls_plan_append(p, &(ls_action){.kind = LS_UPDATE, .worker = w, .bucket = k});
        bool island = sh->buckets[k].island > 0, common = sh->islands && !island;
        if (sh->shards_moments && !sh->buckets[k].is_gathered && !common)
            ls_plan_append_comm(p, LS_ALL_GATHER, island ? LS_AXIS_ISLAND : LS_AXIS_SHARDS, k, 0);
        send_params(p, k);
    }
}
