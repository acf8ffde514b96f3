/* factors.c - see factors.h. Threads take matrices by turns. Each has the same bits in any
 * thread. */
#include "exec/factors.h"

#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "coll/virtual.h"
#include "compress/codec.h"
#include "share/codes.h"
#include "state/errors.h"

/* Floats of a cache line. */
enum { ALIGN = 16 };

static size_t rounded_up(size_t n) { return ls_round_up(n, ALIGN); }

static int npieces(const ls_share *sh) { return sh->pieces_from[sh->nbuckets]; }

/* Floats of the sums of a round, and where those of each bucket begin. */
static size_t place_sums(ls_factors *x, int round) {
    size_t at = 0, slots = (size_t)x->share->workers[x->worker].nslots;
    for (int k = 0; k < x->share->nbuckets; k++) {
        x->at[round][k] = at;
        at += rounded_up(slots * ls_share_round_floats(x->share, k, round));
    }
    return at;
}

/* The size of the first factor of a piece. */
static size_t first_floats(const ls_code_piece *x) {
    return x->nfactor ? rounded_up(x->code_nbytes / sizeof(float)) : 0;
}

static size_t nbytes_of(const ls_share *sh, size_t sums) {
    size_t floats = sums + rounded_up(sh->nfactors);
    for (int i = 0; i < npieces(sh); i++) floats += first_floats(&sh->pieces[i]);
    return floats * sizeof(float);
}

ls_status ls_factors_open(ls_factors *x, const ls_share *sh, int worker, ls_error *e) {
    *x = (ls_factors){.share = sh, .worker = worker};
    for (int round = 0; round < 2; round++)
        x->at[round] = LS_NEW_ARRAY(size_t, (size_t)sh->nbuckets);
    x->first = LS_NEW_ARRAY(float *, (size_t)npieces(sh));
    size_t sums[] = {place_sums(x, 0), place_sums(x, 1)};
    LS_TRY(ls_map(nbytes_of(sh, sums[0] + sums[1]), "factors of gradients", &x->memory, e));
    x->sums[0] = x->memory;
    x->sums[1] = x->sums[0] + sums[0];
    x->second = x->sums[1] + sums[1];
    float *at = x->second + rounded_up(sh->nfactors);
    for (int i = 0; i < npieces(sh); at += first_floats(&sh->pieces[i++])) x->first[i] = at;
    return LS_OK;
}

void ls_factors_close(ls_factors *x) {
    if (!x->share) return;
    size_t sums = place_sums(x, 0) + place_sums(x, 1);
    ls_unmap(x->memory, nbytes_of(x->share, sums));
    free(x->at[0]);
    free(x->at[1]);
    free(x->first);
    *x = (ls_factors){0};
}

static float *slot_of(const ls_factors *x, int bucket, int round, int slot) {
    return x->sums[round] + x->at[round][bucket] +
           (size_t)slot * ls_share_round_floats(x->share, bucket, round);
}

/* ---- one bucket ---- */

typedef void piece_fn(const ls_factors_job *, const ls_compute *, int piece, void *arg);

typedef struct job {
    const ls_factors_job *x;
    const ls_compute *c;
    piece_fn *fn;
    void *arg;
} job;

static void run_pieces(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const int *from = j->x->factors->share->pieces_from + j->x->bucket;
    for (int i = from[0] + thread; i < from[1]; i += nthreads) j->fn(j->x, j->c, i, j->arg);
}

static void each_piece(const ls_factors_job *x, const ls_compute *c, piece_fn *fn, void *arg) {
    job j = {x, c, fn, arg};
    ls_pool_run(c->pool, run_pieces, &j);
}

/* The settings of a piece, which the job refers to. */
typedef struct coding {
    const ls_codec *codec;
    ls_compression how;
    ls_codec_job job;
} coding;

static void begin_coding(const ls_factors_job *x, const ls_compute *c, int piece, coding *z) {
    const ls_share *sh = x->factors->share;
    const ls_code_piece *q = &sh->pieces[piece];
    z->how = ls_share_piece_how(sh, q, x->step);
    z->codec = ls_codec_of(z->how.kind);
    z->job = (ls_codec_job){.k = c->k,
                            .how = &z->how,
                            .n = q->end - q->first,
                            .shared = x->factors->second + q->factor_at,
                            .work = x->factors->first[piece]};
}

/* A virtual worker's errors before the step (after 0), or after it. */
static float *row(const ls_factors_job *x, int vw, int after) {
    return ls_errors_of(x->errors, x->factors->share, x->step + after, vw);
}

static float *second_of_row(const ls_factors_job *x, float *errors, const ls_code_piece *q) {
    return errors + x->factors->share->model->nfloats + q->factor_at;
}

/* Where the second factor of a piece is in a slot of the second round. */
static float *second_in(const ls_factors_job *x, float *slot, const ls_code_piece *q) {
    return slot + (q->factor_at - x->factors->share->buckets[x->bucket].factors.first);
}

static void fold(const ls_factors_job *x, const ls_compute *c, int vw, int round) {
    const ls_factors *f = x->factors;
    size_t n = ls_share_round_floats(f->share, x->bucket, round);
    int slot = 0, i = ls_share_vw_index(f->share, f->worker, vw);
    for (int folds = ls_share_fold(f->share, f->worker, i, &slot); folds > 0; folds--, slot--) {
        float *to = slot_of(f, x->bucket, round, slot - 1);
        c->k->combine(LS_F32, LS_SUM, n, to, to + n, to);
    }
}

/* What a virtual worker adds in a round. */
typedef struct contribution {
    int vw;
    bool opens; /* the worker's first */
    const float *grads;
    float *slot;
} contribution;

static contribution contribution_of(const ls_factors_job *x, int vw, int round) {
    const ls_factors *f = x->factors;
    int slot = 0, i = ls_share_vw_index(f->share, f->worker, vw);
    ls_share_fold(f->share, f->worker, i, &slot);
    return (contribution){.vw = vw, .opens = i == 0, .slot = slot_of(f, x->bucket, round, slot)};
}

static void first_of_piece(const ls_factors_job *x, const ls_compute *c, int piece, void *arg) {
    const contribution *v = arg;
    const ls_code_piece *q = &x->factors->share->pieces[piece];
    float *to = v->slot + q->code_at / sizeof(float), *errors = row(x, v->vw, 0);
    float *matrix = row(x, v->vw, 1) + q->first;
    coding z;
    if (!q->nfactor) {
        memcpy(to, v->grads + q->first, q->code_nbytes);
        return;
    }
    begin_coding(x, c, piece, &z);
    if (v->opens) {
        memcpy(z.job.shared, second_of_row(x, errors, q), q->nfactor * sizeof(float));
        z.codec->prepare(&z.job);
    }
    if (c->k->compress.add_error((int64_t)z.job.n, 1.0f - z.how.decay, errors + q->first,
                                 v->grads + q->first, matrix) >= 0) {
        atomic_store(x->bad, true);
        memset(matrix, 0, z.job.n * sizeof *matrix);
    }
    z.codec->encode(&z.job, 0, matrix, to);
}

void ls_factors_first(const ls_factors_job *x, const ls_compute *c, int vw, const float *grads) {
    contribution v = contribution_of(x, vw, 0);
    v.grads = grads;
    each_piece(x, c, first_of_piece, &v);
    fold(x, c, vw, 0);
}

static void second_of_piece(const ls_factors_job *x, const ls_compute *c, int piece, void *arg) {
    const contribution *v = arg;
    const ls_share *sh = x->factors->share;
    const ls_code_piece *q = &sh->pieces[piece];
    coding z;
    if (!q->nfactor) return;
    begin_coding(x, c, piece, &z);
    const float *sum = slot_of(x->factors, x->bucket, 0, 0) + q->code_at / sizeof(float);
    if (v->opens) z.codec->absorb(&z.job, 0, sum, sh->V);
    z.codec->encode(&z.job, 1, row(x, v->vw, 1) + q->first, second_in(x, v->slot, q));
}

void ls_factors_second(const ls_factors_job *x, const ls_compute *c, int vw) {
    contribution v = contribution_of(x, vw, 1);
    each_piece(x, c, second_of_piece, &v);
    fold(x, c, vw, 1);
}

/* The sums of the worker's subtrees are in its lowest slots. */
ls_status ls_factors_sum_start(ls_factors *x, ls_group *g, const ls_action *a, ls_request **r_p,
                               ls_error *e) {
    float *sums = slot_of(x, a->bucket, a->round, 0);
    return ls_all_reduce_virtual_start(g,
                                       &(ls_virtual_sum){.V = a->comm.V,
                                                         .first = x->share->ranges,
                                                         .in = sums,
                                                         .stride = a->comm.count,
                                                         .out = sums,
                                                         .dtype = a->comm.dtype,
                                                         .count = a->comm.count},
                                       r_p, e);
}

/* ---- decoding ---- */

/* What elements [first, first + n) of the model share with the worker's part of the bucket. */
static bool clip(ls_range own, size_t *first_p, size_t *n_p) {
    size_t end = *first_p + *n_p, first = *first_p > own.first ? *first_p : own.first;
    if (end > own.end) end = own.end;
    if (first >= end) return false;
    *first_p = first;
    *n_p = end - first;
    return true;
}

/* Elements [at, at + n) of a piece: mean is that over the virtual workers. */
static void take_mean(const ls_factors_job *x, const ls_compute *c, size_t at, size_t n,
                      const float *mean, float *grads) {
    const ls_share *sh = x->factors->share;
    int worker = x->factors->worker;
    for (int i = 0; i < sh->workers[worker].nvws; i++) {
        float *errors = row(x, ls_share_vw(sh, worker, i), 1) + at;
        c->k->compress.subtract((int64_t)n, errors, mean, errors);
    }
    size_t first = at;
    if (!clip(ls_share_owned(sh, x->bucket, worker), &first, &n)) return;
    memcpy(grads + first, mean + (first - at), n * sizeof *mean);
    c->k->affine((int64_t)n, grads + first, (float)sh->V, 0.0f, grads + first);
}

static void decode_plain(const ls_factors_job *x, const ls_code_piece *q, float *grads) {
    const float *sum = slot_of(x->factors, x->bucket, 0, 0) + q->code_at / sizeof(float);
    size_t first = q->first, n = q->end - q->first;
    if (clip(ls_share_owned(x->factors->share, x->bucket, x->factors->worker), &first, &n))
        memcpy(grads + first, sum + (first - q->first), n * sizeof *sum);
}

static void decode_piece(const ls_factors_job *x, const ls_compute *c, int piece, void *arg) {
    const ls_share *sh = x->factors->share;
    const ls_code_piece *q = &sh->pieces[piece];
    float mean[LS_CODEC_PIECE], *grads = arg;
    int worker = x->factors->worker;
    coding z;
    if (!q->nfactor) {
        decode_plain(x, q, grads);
        return;
    }
    begin_coding(x, c, piece, &z);
    z.codec->absorb(&z.job, 1, second_in(x, slot_of(x->factors, x->bucket, 1, 0), q), sh->V);
    for (size_t at = 0, n = 0; at < z.job.n; at += n) {
        n = z.job.n - at < LS_CODEC_PIECE ? z.job.n - at : LS_CODEC_PIECE;
        z.codec->decode(&z.job, NULL, at, n, mean);
        take_mean(x, c, q->first + at, n, mean, grads);
    }
    for (int i = 0; i < sh->workers[worker].nvws; i++)
        memcpy(second_of_row(x, row(x, ls_share_vw(sh, worker, i), 1), q), z.job.shared,
               q->nfactor * sizeof(float));
}

void ls_factors_decode(const ls_factors_job *x, const ls_compute *c, float *grads) {
    each_piece(x, c, decode_piece, grads);
}
