/* piece.c - cuts the flat gradient into pieces, each of which is encoded by itself.
 *
 * A piece is the part of one parameter that lies in one chunk. Chunks are cut from the end of the
 * flat gradient, and buckets hold whole chunks (bucket.c). So pieces depend on the model and on the
 * kind of code, and neither on workers nor on the size of buckets. A chunk of elements fits into the
 * cache of a core, so that the passes over a piece read memory once.
 *
 * With factors of low rank a piece is a whole matrix, which one bucket has.
 *
 * Small parameters, running values of norms and, for factors, vectors and matrices of which two
 * factors have more than half of the elements, are summed as they are.
 */
#include <stdlib.h>

#include "compress/codec.h"
#include "plan/plan.h"

enum { CHUNK = 64 * LS_BLOCK };

bool ls_plan_compresses(const ls_plan *p) { return p->c.compress.on; }

bool ls_plan_has_errors(const ls_plan *p) {
    return p->c.compress.on && p->c.compress.how.feedback != LS_FEEDBACK_NONE;
}

bool ls_plan_sums_momentum(const ls_plan *p, int64_t step) {
    return p->c.compress.on && p->c.compress.momentum > 0 && step >= p->c.compress.warmup;
}

size_t ls_plan_chunk(const ls_plan_config *c) {
    return c->compress.how.kind == LS_COMPRESS_POWERSGD ? LS_BLOCK : CHUNK;
}

size_t ls_plan_bucket_unit(const ls_plan_config *c) {
    return c->compress.on || c->deltas.on ? ls_plan_chunk(c) : LS_BLOCK;
}

static size_t cols_of(const ls_param *x) {
    return x->ndims < 2 ? x->count : x->count / (size_t)x->dims[0];
}

/* Are its factors too large to be worth while? */
static bool has_large_factors(const ls_plan *p, const ls_param *x) {
    int rank = p->c.compress.how.rank;
    size_t cols = cols_of(x), sides = cols + x->count / cols;
    return 2 * sides * (size_t)(rank ? rank : LS_CODEC_RANK) >= x->count;
}

static bool is_plain(const ls_plan *p, const ls_param *x) {
    bool factors = ls_plan_has_factors(p);
    if (factors && (!ls_plan_is_matrix(x) || has_large_factors(p, x))) return true;
    return x->momentum > 0 || x->count < p->c.compress.min_count;
}

/* Codes are of whole words. */
static size_t code_nbytes(const ls_plan *p, const ls_plan_piece *x) {
    if (x->plain) return (x->end - x->first) * sizeof(float);
    ls_compression how = ls_plan_piece_how(p, x, 0);
    const ls_codec *codec = ls_codec_of(how.kind);
    size_t n = x->end - x->first;
    return ((x->nfactor ? codec->nbytes(&how, n, 0) : ls_codec_nbytes(codec, &how, n)) + 3) / 4 * 4;
}

/* The floats of the second factor. */
static size_t nfactor_of(const ls_plan *p, const ls_plan_piece *x) {
    if (!ls_plan_has_factors(p) || x->plain) return 0;
    ls_compression how = ls_plan_piece_how(p, x, 0);
    return ls_codec_of(how.kind)->nbytes(&how, x->end - x->first, 1) / sizeof(float);
}

/* Appends the pieces of a bucket. *factor_at_p: the place of the next second factor. */
static void cut(ls_plan *p, const ls_bucket *b, int *n_p, int *capacity_p, size_t *factor_at_p) {
    const ls_model *m = p->c.model;
    size_t chunk = ls_plan_chunk(&p->c), at = 0;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *param = &m->params[i];
        size_t last = param->offset + param->count;
        size_t first = param->offset > b->first ? param->offset : b->first;
        size_t end = last < b->end ? last : b->end;
        for (size_t next = 0; !param->frozen && first < end; first = next) {
            next = m->nfloats - (m->nfloats - first - 1) / chunk * chunk; /* of this chunk */
            if (next > end || (ls_plan_has_factors(p) && !is_plain(p, param))) next = end;
            if (*n_p == *capacity_p) {
                *capacity_p = *capacity_p ? 2 * *capacity_p : 64;
                p->pieces = ls_realloc(p->pieces, (size_t)*capacity_p * sizeof *p->pieces);
            }
            ls_plan_piece *x = &p->pieces[(*n_p)++];
            *x = (ls_plan_piece){.first = first,
                                 .end = next,
                                 .cols = cols_of(param),
                                 .plain = is_plain(p, param),
                                 .code_at = at,
                                 .factor_at = *factor_at_p};
            x->nfactor = nfactor_of(p, x);
            x->code_nbytes = code_nbytes(p, x);
            *factor_at_p += x->nfactor;
            at += x->code_nbytes;
        }
    }
}

void ls_plan_cut_pieces(ls_plan *p) {
    int n = 0, capacity = 0;
    size_t factor_at = 0;
    p->pieces_from = LS_NEW_ARRAY(int, (size_t)p->nbuckets + 1);
    for (int k = 0; k < p->nbuckets; k++) {
        cut(p, &p->buckets[k], &n, &capacity, &factor_at);
        p->pieces_from[k + 1] = n;
    }
}

int ls_plan_pieces(const ls_plan *p, int bucket, const ls_plan_piece **pieces_p) {
    *pieces_p = p->pieces + p->pieces_from[bucket];
    return p->pieces_from[bucket + 1] - p->pieces_from[bucket];
}

/* The settings of a whole chunk are good (plan.c), so are those of a part. */
ls_compression ls_plan_piece_how(const ls_plan *p, const ls_plan_piece *x, int64_t step) {
    ls_compression how = p->c.compress.how;
    ls_error e;
    size_t n = x->end - x->first;
    how.seed += x->first;
    how.step = (uint64_t)step;
    if (how.kind == LS_COMPRESS_POWERSGD) how.rows = (n + x->cols - 1) / x->cols;
    if (ls_compression_complete(&how, n, &how, &e) != LS_OK) abort();
    return how;
}
