/* arrival.c - mixes of replicas (mixing.h): their terms, and where what a worker gets arrives. */
#include "plan/plan.h"

int ls_plan_terms_of(const ls_plan *p, int island, int list[LS_MIXING_MOST]) {
    int n = ls_mixing_terms(p->c.mix, island - 1, list);
    for (int i = 0; i < n; i++) list[i]++;
    return n;
}

int ls_plan_terms(const ls_plan *p) {
    int list[LS_MIXING_MOST], most = 0;
    for (int i = 1; i <= p->c.islands; i++) {
        int n = ls_plan_terms_of(p, i, list);
        if (n > most) most = n;
    }
    return most;
}

static size_t most_floats(const ls_plan *p) {
    size_t most = 0;
    for (int k = 0; k < ls_plan_segment_buckets(p); k++) {
        size_t floats = p->buckets[k].end - p->buckets[k].first;
        if (floats > most) most = floats;
    }
    return most;
}

size_t ls_plan_received_at(const ls_plan *p, int worker, int bucket) {
    int first = 0, end = 0, odd = ls_plan_common_bucket(p, bucket) % 2;
    ls_plan_islands_of(p, worker, &first, &end);
    return (size_t)(2 * (p->buckets[bucket].island - first) + odd) * most_floats(p);
}

size_t ls_plan_received(const ls_plan *p) {
    int most = 0;
    for (int w = 0; w < p->c.nworkers; w++) {
        int first = 0, end = 0;
        ls_plan_islands_of(p, w, &first, &end);
        if (end - first > most) most = end - first;
    }
    return 2 * (size_t)most * most_floats(p);
}
