/* factor.c - gradients that are sent as two factors of low rank (compress/powersgd.c).
 *
 * A factor is summed over the virtual workers before the next is computed, so a bucket has two
 * Encodes and two Exchanges. Exchanges of first factors run beside Backward; what follows them comes
 * after the last Backward (reduction.c). Decode needs both sums.
 *
 * A matrix is encoded whole, so one bucket has all of it. The second factor of a step is where the
 * next step begins: it is part of the state, and each virtual worker's errors have it at their end.
 */
#include "compress/codec.h"
#include "plan/plan.h"

bool ls_plan_has_factors(const ls_plan *p) {
    return p->c.compress.on && p->c.compress.how.kind == LS_COMPRESS_POWERSGD;
}

int ls_plan_encodings(const ls_plan *p) { return ls_plan_has_factors(p) ? 2 : 1; }

void ls_plan_factors_of(const ls_plan *p, int bucket, size_t *first_p, size_t *end_p) {
    const ls_plan_piece *x = NULL;
    int n = ls_plan_pieces(p, bucket, &x);
    *first_p = n ? x[0].factor_at : 0;
    *end_p = n ? x[n - 1].factor_at + x[n - 1].nfactor : 0;
}

size_t ls_plan_nfactors(const ls_plan *p) {
    size_t sum = 0;
    for (int i = 0; ls_plan_has_factors(p) && i < p->pieces_from[p->nbuckets]; i++)
        sum += p->pieces[i].nfactor;
    return sum;
}

size_t ls_plan_error_floats(const ls_plan *p) { return p->c.model->nfloats + ls_plan_nfactors(p); }

size_t ls_plan_round_floats(const ls_plan *p, int bucket, int round) {
    size_t first = 0, end = 0;
    if (round == 0) return ls_plan_code_nbytes(p, bucket) / sizeof(float);
    ls_plan_factors_of(p, bucket, &first, &end);
    return end - first;
}

size_t ls_plan_factors_nbytes(const ls_plan *p, int worker) {
    size_t floats = 0, slots = (size_t)ls_plan_slots(p, worker);
    if (!ls_plan_has_factors(p)) return 0;
    for (int k = 0; k < p->nbuckets; k++)
        for (int round = 0; round < ls_plan_encodings(p); round++)
            floats += (slots + 1) * ls_plan_round_floats(p, k, round);
    return floats * sizeof(float);
}

bool ls_plan_is_matrix(const ls_param *x) { return x->ndims >= 2 && !x->frozen && !x->window.rows; }

void ls_plan_place_matrices(ls_model *m) {
    for (int i = 0; i < m->nparams; i++)
        m->params[i].cut.undivided = ls_plan_is_matrix(&m->params[i]);
    ls_model_place(m);
}

const ls_plan_piece *ls_plan_factor_of(const ls_plan *p, const ls_param *x) {
    int n = ls_plan_has_factors(p) ? p->pieces_from[p->nbuckets] : 0;
    for (int i = 0; i < n; i++)
        if (p->pieces[i].nfactor && p->pieces[i].first == x->offset) return &p->pieces[i];
    return NULL;
}
