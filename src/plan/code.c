/* code.c - the codes that are sent instead of gradients: who needs which, and how many bytes they
 * have. A bucket's code is those of its pieces, one after the other. */
#include "plan/plan.h"

bool ls_plan_sends_codes(const ls_plan *p) {
    const ls_plan_compress *z = &p->c.compress;
    if (ls_plan_has_factors(p)) return true;
    return z->on && z->codes && z->how.feedback != LS_FEEDBACK_EF21 && p->c.nworkers > 1 &&
           !ls_plan_reduces_rounds(p);
}

bool ls_plan_sends_values(const ls_plan *p) {
    return !ls_plan_sends_codes(p) || p->c.compress.warmup > 0;
}

ls_phase ls_plan_values_phase(const ls_plan *p) {
    return ls_plan_sends_codes(p) ? LS_PHASE_VALUES : LS_PHASE_ALL;
}

bool ls_plan_runs(const ls_plan *p, const ls_action *a, int64_t step) {
    bool codes = step >= p->c.compress.warmup;
    return a->phase == LS_PHASE_ALL || codes == (a->phase == LS_PHASE_CODES);
}

/* Those that have codes are `unit` apart. */
static int unit_of(const ls_plan *p) {
    return p->c.task == LS_TASK_TRAIN ? 1 : ls_plan_island_vws(p);
}

bool ls_plan_is_coded(const ls_plan *p, int vw) { return vw % unit_of(p) == 0; }

int ls_plan_coded_before(const ls_plan *p, int vw) { return (vw + unit_of(p) - 1) / unit_of(p); }

static int first_coded(const ls_plan *p, int worker) {
    return ls_plan_coded_before(p, ls_plan_vw(p, worker, 0));
}

int ls_plan_ncoded(const ls_plan *p, int worker) {
    int end = ls_plan_vw(p, worker, 0) + ls_plan_nvws(p, worker);
    return ls_plan_coded_before(p, end) - first_coded(p, worker);
}

int ls_plan_coded(const ls_plan *p, int worker, int i) {
    return (first_coded(p, worker) + i) * unit_of(p);
}

size_t ls_plan_code_nbytes(const ls_plan *p, int bucket) {
    const ls_plan_piece *x = NULL;
    int n = ls_plan_pieces(p, bucket, &x);
    return n ? x[n - 1].code_at + x[n - 1].code_nbytes : 0;
}

void ls_plan_code_part(const ls_plan *p, int bucket, int worker, size_t *first_p, size_t *end_p) {
    const ls_plan_piece *x = NULL;
    int n = ls_plan_pieces(p, bucket, &x), i = 0;
    ls_bucket own = ls_plan_owned(p, bucket, worker);
    *first_p = *end_p = 0;
    if (own.first == own.end) return;
    while (i < n && x[i].end <= own.first) i++;
    if (i < n) *first_p = *end_p = x[i].code_at;
    for (; i < n && x[i].first < own.end; i++) *end_p = x[i].code_at + x[i].code_nbytes;
}

static size_t part_nbytes(const ls_plan *p, int bucket, int worker) {
    size_t first = 0, end = 0;
    ls_plan_code_part(p, bucket, worker, &first, &end);
    return end - first;
}

/* Is each virtual worker's code sent by itself? Factors are summed on their way. */
static bool sends_by_itself(const ls_plan *p) {
    return ls_plan_sends_codes(p) && !ls_plan_has_factors(p);
}

size_t ls_plan_own_codes_nbytes(const ls_plan *p, int worker) {
    size_t sum = 0;
    for (int k = 0; sends_by_itself(p) && k < p->nbuckets; k++)
        sum += (size_t)ls_plan_ncoded(p, worker) * ls_plan_code_nbytes(p, k);
    return sum;
}

size_t ls_plan_all_codes_nbytes(const ls_plan *p, int worker) {
    size_t sum = 0;
    for (int k = 0; sends_by_itself(p) && k < p->nbuckets; k++)
        sum += (size_t)ls_plan_coded_before(p, p->c.V) * part_nbytes(p, k, worker);
    return sum;
}

size_t ls_plan_sent_codes_nbytes(const ls_plan *p, int worker) {
    size_t most = 0;
    bool sends = sends_by_itself(p) && ls_plan_shards_moments(p);
    for (int k = 0; sends && k < p->nbuckets; k++) {
        size_t sum = 0;
        for (int w = 0; w < p->c.nworkers; w++)
            sum += (size_t)ls_plan_ncoded(p, worker) * part_nbytes(p, k, w);
        if (sum > most) most = sum;
    }
    return most;
}
