/* islands.c - replicas of the model that are trained side by side: which workers, virtual workers
 * and floats are theirs. */
#include "plan/plan.h"

int ls_plan_segments(const ls_plan *p) { return 1 + p->c.islands; }
size_t ls_plan_segment_floats(const ls_plan *p) { return p->c.model->nfloats; }

size_t ls_plan_floats(const ls_plan *p) {
    return (size_t)ls_plan_segments(p) * ls_plan_segment_floats(p);
}

size_t ls_plan_base(const ls_plan *p, int bucket) {
    return (size_t)p->buckets[bucket].island * ls_plan_segment_floats(p);
}

int ls_plan_island_vws(const ls_plan *p) { return p->c.islands ? p->c.V / p->c.islands : p->c.V; }

int ls_plan_island_of(const ls_plan *p, int vw) {
    return p->c.islands ? 1 + vw / ls_plan_island_vws(p) : 0;
}

int ls_plan_bucket_in(const ls_plan *p, int bucket, int island) {
    return bucket + island * ls_plan_segment_buckets(p);
}

int ls_plan_segment_buckets(const ls_plan *p) { return p->nbuckets / ls_plan_segments(p); }

int ls_plan_common_bucket(const ls_plan *p, int bucket) {
    return bucket % ls_plan_segment_buckets(p);
}

static int share(int count, int i, int n) { return (int)((int64_t)count * i / n); }

void ls_plan_islands_of(const ls_plan *p, int worker, int *first_p, int *end_p) {
    int n = p->c.nworkers, islands = p->c.islands;
    *first_p = *end_p = 0;
    if (n <= islands) {
        *first_p = 1 + share(islands, worker, n);
        *end_p = 1 + share(islands, worker + 1, n);
        return;
    }
    for (int i = 0; i < islands; i++)
        if (worker >= share(n, i, islands) && worker < share(n, i + 1, islands)) {
            *first_p = 1 + i;
            *end_p = 2 + i;
        }
}

static void workers_of_island(const ls_plan *p, int island, int *from_p, int *to_p) {
    int n = p->c.nworkers, islands = p->c.islands, i = island - 1;
    if (n > islands) {
        *from_p = share(n, i, islands);
        *to_p = share(n, i + 1, islands);
        return;
    }
    int w = 0;
    while (share(islands, w + 1, n) <= i) w++;
    *from_p = w;
    *to_p = w + 1;
}

ls_worker_set ls_plan_workers_of(const ls_plan *p, int bucket) {
    const ls_bucket *b = &p->buckets[bucket];
    ls_worker_set of = {.step = 1};
    if (b->island) {
        workers_of_island(p, b->island, &of.from, &of.to);
        return of;
    }
    bool all = b->chunk < 0; /* chunks */
    int n = ls_plan_data(p) * (all ? ls_plan_context(p) : 1);
    of.step = all ? ls_plan_tensor(p) : ls_plan_beside(p);
    of.from = ls_plan_worker(p, b->rank, 0);
    of.to = of.from + (n - 1) * of.step + 1;
    return of;
}

bool ls_plan_has(const ls_plan *p, int bucket, int worker) {
    return ls_worker_set_has(ls_plan_workers_of(p, bucket), worker);
}

void ls_plan_set_ranges(ls_plan *p) {
    int n = p->c.nworkers, vws = ls_plan_island_vws(p);
    p->ranges = LS_NEW_ARRAY(int, (size_t)n + 1);
    for (int w = 0; w < n; w++) {
        int first = 0, end = 0, from = 0, to = 0;
        ls_plan_islands_of(p, w, &first, &end);
        workers_of_island(p, first, &from, &to);
        p->ranges[w] = (first - 1) * vws + share(vws, w - from, to - from);
    }
    p->ranges[n] = p->c.V;
    p->c.first = p->ranges;
}

bool ls_plan_part(const ls_plan *p, int bucket, size_t *first_p, size_t *end_p) {
    const ls_bucket *b = &p->buckets[bucket];
    bool common = b->island == 0;
    if (p->c.task == LS_TASK_TRAIN || common != ls_task_is_common(p->c.task)) return false;
    size_t base = ls_plan_base(p, bucket);
    size_t first = base + p->c.part_first, end = base + p->c.part_end;
    *first_p = first > b->first ? first : b->first;
    *end_p = end < b->end ? end : b->end;
    return *first_p < *end_p;
}

bool ls_plan_changes_bucket(const ls_plan *p, int bucket) {
    size_t first = 0, end = 0;
    return ls_plan_part(p, bucket, &first, &end);
}
