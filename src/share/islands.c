/* islands.c - replicas of the model that are trained side by side: which workers, virtual workers
 * and floats are theirs, and what arrives when they are mixed. */
#include "share/islands.h"

static int cut(int count, int i, int n) { return (int)((int64_t)count * i / n); }

ls_worker_set ls_share_workers_of_island(const ls_share *sh, int island) {
    int n = sh->nworkers, islands = sh->islands, i = island - 1, w = 0;
    if (n > islands) return (ls_worker_set){cut(n, i, islands), cut(n, i + 1, islands), 1};
    while (cut(islands, w + 1, n) <= i) w++;
    return (ls_worker_set){w, w + 1, 1};
}

void ls_share_place_islands(ls_share *sh) {
    int n = sh->nworkers, vws = sh->island_vws;
    sh->own_ranges = LS_NEW_ARRAY(int, (size_t)n + 1);
    for (int i = 1; i <= sh->islands; i++) {
        ls_worker_set of = ls_share_workers_of_island(sh, i);
        for (int w = of.from; w < of.to; w++) {
            ls_worker_share *x = &sh->workers[w];
            if (!x->first_island) {
                x->first_island = i;
                sh->own_ranges[w] = (i - 1) * vws + cut(vws, w - of.from, of.to - of.from);
            }
            x->end_island = i + 1;
        }
    }
    sh->own_ranges[n] = sh->V;
    sh->ranges = sh->own_ranges;
}

int ls_share_fold_island(const ls_share *sh, int worker, int i, int *slot_p) {
    int vws = sh->island_vws, vw = ls_share_vw(sh, worker, i);
    int lo = vw / vws * vws, a = sh->workers[worker].first_vw;
    return ls_tree_fold(vws, a > lo ? a - lo : 0, vw - lo, slot_p);
}

bool ls_share_part(const ls_share *sh, int bucket, ls_range *part_p) {
    const ls_bucket *b = &sh->buckets[bucket];
    bool common = b->island == 0;
    if (sh->task == LS_TASK_TRAIN || common != ls_task_is_common(sh->task)) return false;
    size_t base = ls_share_base(sh, bucket);
    size_t first = base + sh->sync.part_first, end = base + sh->sync.part_end;
    part_p->first = first > b->first ? first : b->first;
    part_p->end = end < b->end ? end : b->end;
    return part_p->first < part_p->end;
}

bool ls_share_changes_bucket(const ls_share *sh, int bucket) {
    ls_range part;
    return ls_share_part(sh, bucket, &part);
}

/* ---- mixes of replicas (mixing.h) ---- */

int ls_share_terms_of(const ls_share *sh, int island, int list[LS_MIXING_MOST]) {
    int n = ls_mixing_terms(sh->sync.mix, island - 1, list);
    for (int i = 0; i < n; i++) list[i]++;
    return n;
}

int ls_share_terms(const ls_share *sh) {
    int list[LS_MIXING_MOST], most = 0;
    for (int i = 1; i <= sh->islands; i++) {
        int n = ls_share_terms_of(sh, i, list);
        if (n > most) most = n;
    }
    return most;
}

static size_t most_floats(const ls_share *sh) {
    size_t most = 0;
    for (int k = 0; k < sh->segment_buckets; k++) {
        size_t floats = sh->buckets[k].end - sh->buckets[k].first;
        if (floats > most) most = floats;
    }
    return most;
}

size_t ls_share_received_at(const ls_share *sh, int worker, int bucket) {
    int first = sh->workers[worker].first_island, odd = ls_share_common_bucket(sh, bucket) % 2;
    return (size_t)(2 * (sh->buckets[bucket].island - first) + odd) * most_floats(sh);
}

size_t ls_share_received(const ls_share *sh) {
    int most = 0;
    for (int w = 0; w < sh->nworkers; w++) {
        int n = sh->workers[w].end_island - sh->workers[w].first_island;
        if (n > most) most = n;
    }
    return 2 * (size_t)most * most_floats(sh);
}
