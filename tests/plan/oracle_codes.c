/* oracle_codes.c - see oracle_codes.h. */
#include "plan/oracle_codes.h"

#include "plan/oracle_sums.h"

/* Is it the second factor, from the sum of the first ones? */
static bool run_second(oracle *o, const ls_action *a) {
    if (!rules_has_factors(&o->u) || a->round == 0) return false;
    bool *second = &o->seconds[a->vw * o->u.p->share.nbuckets + a->bucket];
    if (o->workers[a->worker].got[a->bucket] != 1)
        oracle_wrong(o, "the sum of first factors is not there");
    if (*second) oracle_wrong(o, "it is done twice");
    *second = true;
    return true;
}

/* The chain must be complete: what is encoded later would be lost. */
void oracle_run_encode(oracle *o, const ls_action *a) {
    if (a->slot < 0 || a->slot >= o->u.p->share.nslots || !rules_runs(&o->u, a->worker, a->vw)) {
        oracle_wrong(o, "there is no such sum");
        return;
    }
    if (run_second(o, a)) return;
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != a->bucket) continue;
        int *sum = oracle_grad_at(o, a->worker, a->slot, i);
        if (rules_has_factors(&o->u) && o->codes[a->vw * o->natoms + i] != TERM_NOTHING)
            oracle_wrong(o, "it is done twice");
        if (*sum != oracle_chain(o, TERM_EMPTY, o->atoms[i].param, a->vw))
            oracle_wrong(o, "the gradient is not that of the virtual worker, or not complete");
        int code = oracle_encoded(o, *sum, a->vw);
        if (!rules_has_factors(&o->u)) *sum = code;
        if (rules_sends_codes(&o->u)) o->codes[a->vw * o->natoms + i] = code;
    }
    oracle_touch(o, &o->workers[a->worker].grads[a->bucket * o->u.p->share.nslots + a->slot]);
}

/* Does worker w decode a range of a bucket's elements? Its shard; without shards, all. */
static bool decodes(const oracle *o, int w, int bucket, size_t first, size_t end) {
    ls_range own = ls_share_range(&o->u.p->share, bucket);
    if (o->u.c->zero > 0) own = rules_shard_of(&o->u, bucket, w);
    return own.first < own.end && first < own.end && end > own.first;
}

/* A piece is sent whole, in whole words, to all who decode some of it. */
static int64_t code_nbytes(const oracle *o, const ls_code_piece *x) {
    ls_compression how = o->u.c->compress.how;
    size_t n = x->end - x->first;
    return (int64_t)(x->plain ? 4 * n : (ls_compression_nbytes(&how, n) + 3) / 4 * 4);
}

/* The first factor has a row for each of the matrix, and the second for each column; what is no
 * matrix is summed with the first. */
static int64_t factor_floats(const oracle *o, const ls_code_piece *x, int round) {
    int64_t n = (int64_t)(x->end - x->first), cols = (int64_t)x->cols,
            rank = o->u.c->compress.how.rank;
    if (x->plain) return round ? 0 : n;
    return rank * (round ? cols : n / cols);
}

/* All workers get the sum of a factor. */
static void run_factors(oracle *o, const ls_action *a) {
    leaves l = oracle_leaves(o, 0, o->u.n, 1);
    int64_t nbytes = 0;
    for (int i = o->u.p->share.pieces_from[a->bucket]; i < o->u.p->share.pieces_from[a->bucket + 1];
         i++)
        nbytes += 4 * factor_floats(o, &o->u.p->share.pieces[i], a->round);
    for (int v = 0; v < o->u.c->V; v++)
        if (a->round && !o->seconds[v * o->u.p->share.nbuckets + a->bucket])
            oracle_wrong(o, "virtual worker %d has no second factor", v);
    for (int w = 0; w < o->u.n; w++)
        if (o->workers[w].got[a->bucket]++ != a->round)
            oracle_wrong(o, "it is not the next factor");
    o->read += nbytes * (o->u.n - 1) * l.n / o->u.n + nbytes * (o->u.n - 1);
}

void oracle_run_exchange(oracle *o, const ls_action *a) {
    int first = 0, end = 0;
    if (a->comm.axis != LS_AXIS_ALL || !rules_sends_codes(&o->u))
        oracle_wrong(o, "it is not for these settings");
    for (int v = 0; v < o->u.c->V; v++)
        for (int i = 0; i < o->natoms; i++)
            if (o->atoms[i].bucket == a->bucket && o->codes[v * o->natoms + i] == TERM_NOTHING)
                oracle_wrong(o, "virtual worker %d has no code", v);
    if (rules_has_factors(&o->u)) {
        run_factors(o, a);
        return;
    }
    for (int w = 0; w < o->u.n; w++) {
        if (o->workers[w].got[a->bucket]++) oracle_wrong(o, "it is done twice");
        rules_range_of(&o->u, w, &first, &end);
        for (int i = o->u.p->share.pieces_from[a->bucket];
             i < o->u.p->share.pieces_from[a->bucket + 1]; i++) {
            const ls_code_piece *x = &o->u.p->share.pieces[i];
            if (decodes(o, w, a->bucket, x->first, x->end))
                o->read += (o->u.c->V - (end - first)) * code_nbytes(o, x);
        }
    }
}

/* The sum of the codes of virtual workers [lo, hi). */
static int code_sum(oracle *o, int i, int lo, int hi) {
    if (hi - lo == 1) return o->codes[lo * o->natoms + i];
    int left = code_sum(o, i, lo, rules_middle_of(lo, hi));
    return term_sum(&o->terms, left, code_sum(o, i, rules_middle_of(lo, hi), hi));
}

void oracle_run_decode(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    if (w->got[a->bucket] != 1 + rules_has_factors(&o->u)) oracle_wrong(o, "codes are not there");
    if (w->decoded[a->bucket]) oracle_wrong(o, "it is done twice");
    w->decoded[a->bucket] = true;
    oracle_touch(o, &w->grads[a->bucket * o->u.p->share.nslots]);
    for (int i = 0; i < o->natoms; i++) {
        const atom *x = &o->atoms[i];
        if (x->bucket != a->bucket) continue;
        w->summed[i] = true;
        if (decodes(o, a->worker, a->bucket, x->first, x->end))
            *oracle_grad_at(o, a->worker, 0, i) = code_sum(o, i, 0, o->u.c->V);
    }
}
