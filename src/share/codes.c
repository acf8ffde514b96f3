/* codes.c - see codes.h.
 *
 * The flat gradient is cut into pieces, each of which is encoded by itself. A piece is the part of
 * one parameter that lies in one chunk. Chunks are cut from the end of the flat gradient, and
 * buckets hold whole chunks (bucket.c). So pieces depend on the model and on the kind of code, and
 * neither on workers nor on the size of buckets. A chunk of elements fits into the cache of a core,
 * so that the passes over a piece read memory once. A bucket's code is those of its pieces, one
 * after the other.
 *
 * Small parameters, running values of norms and, for factors, vectors and matrices of which two
 * factors have more than half of the elements, are summed as they are.
 *
 * Factors (compress/powersgd.c). A piece is a whole matrix, which one bucket has. A factor is
 * summed over the virtual workers before the next is computed, so a bucket has two Encodes and two
 * exchanges. Exchanges of first factors run beside Backward; what follows them comes after the last
 * Backward (plan/reduction.c). Decode needs both sums. The second factor of a step is where the
 * next step begins: it is part of the state, and each virtual worker's errors have it at their end.
 */
#include "share/codes.h"

#include <stdlib.h>

#include "base/round_up.h"
#include "compress/codec.h"
#include "share/mesh.h"

enum { CHUNK = 64 * LS_BLOCK };

bool ls_share_sums_momentum(const ls_share *sh, int64_t step) {
    return sh->compress.on && sh->compress.momentum > 0 && step >= sh->compress.warmup;
}

size_t ls_share_chunk(const ls_share_config *c) {
    return c->compress.how.kind == LS_COMPRESS_POWERSGD ? LS_BLOCK : CHUNK;
}

size_t ls_share_bucket_unit(const ls_share_config *c) {
    return c->compress.on || c->sync.deltas.on ? ls_share_chunk(c) : LS_BLOCK;
}

static size_t cols_of(const ls_param *x) {
    return x->ndims < 2 ? x->count : x->count / (size_t)x->dims[0];
}

/* Are its factors too large to be worth while? */
static bool has_large_factors(const ls_share *sh, const ls_param *x) {
    int rank = sh->compress.how.rank;
    size_t cols = cols_of(x), sides = cols + x->count / cols;
    return 2 * sides * (size_t)(rank ? rank : LS_CODEC_RANK) >= x->count;
}

static bool is_plain(const ls_share *sh, const ls_param *x) {
    bool factors = sh->has_factors;
    if (factors && (!ls_share_is_matrix(x) || has_large_factors(sh, x))) return true;
    return x->momentum > 0 || x->count < sh->compress.min_count;
}

/* Codes are of whole words. */
static size_t code_nbytes(const ls_share *sh, const ls_code_piece *x) {
    if (x->plain) return (x->end - x->first) * sizeof(float);
    ls_compression how = ls_share_piece_how(sh, x, 0);
    const ls_codec *codec = ls_codec_of(how.kind);
    size_t n = x->end - x->first;
    return ls_round_up(x->nfactor ? codec->nbytes(&how, n, 0) : ls_codec_nbytes(codec, &how, n), 4);
}

/* The floats of the second factor. */
static size_t nfactor_of(const ls_share *sh, const ls_code_piece *x) {
    if (!sh->has_factors || x->plain) return 0;
    ls_compression how = ls_share_piece_how(sh, x, 0);
    return ls_codec_of(how.kind)->nbytes(&how, x->end - x->first, 1) / sizeof(float);
}

/* Appends the pieces of a bucket. *factor_at_p: the place of the next second factor. */
static void cut(ls_share *sh, const ls_bucket *b, int *n_p, int *capacity_p, size_t *factor_at_p) {
    const ls_model *m = sh->model;
    size_t chunk = ls_share_chunk(sh->config), at = 0;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *param = &m->params[i];
        size_t last = param->offset + param->count;
        size_t first = param->offset > b->first ? param->offset : b->first;
        size_t end = last < b->end ? last : b->end;
        for (size_t next = 0; !param->frozen && first < end; first = next) {
            next = m->nfloats - (m->nfloats - first - 1) / chunk * chunk; /* of this chunk */
            if (next > end || (sh->has_factors && !is_plain(sh, param))) next = end;
            if (*n_p == *capacity_p) {
                *capacity_p = *capacity_p ? 2 * *capacity_p : 64;
                sh->pieces = ls_realloc(sh->pieces, (size_t)*capacity_p * sizeof *sh->pieces);
            }
            ls_code_piece *x = &sh->pieces[(*n_p)++];
            *x = (ls_code_piece){.first = first,
                                 .end = next,
                                 .cols = cols_of(param),
                                 .plain = is_plain(sh, param),
                                 .code_at = at,
                                 .factor_at = *factor_at_p};
            x->nfactor = nfactor_of(sh, x);
            x->code_nbytes = code_nbytes(sh, x);
            *factor_at_p += x->nfactor;
            at += x->code_nbytes;
        }
    }
}

void ls_share_cut_pieces(ls_share *sh) {
    int n = 0, capacity = 0;
    size_t factor_at = 0;
    sh->pieces_from = LS_NEW_ARRAY(int, (size_t)sh->nbuckets + 1);
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_bucket *b = &sh->buckets[k];
        b->factors.first = factor_at;
        cut(sh, b, &n, &capacity, &factor_at);
        b->factors.end = factor_at;
        sh->pieces_from[k + 1] = n;
        if (n > sh->pieces_from[k])
            b->code_nbytes = sh->pieces[n - 1].code_at + sh->pieces[n - 1].code_nbytes;
    }
    sh->nfactors = factor_at;
}

int ls_share_pieces(const ls_share *sh, int bucket, const ls_code_piece **pieces_p) {
    *pieces_p = sh->pieces + sh->pieces_from[bucket];
    return sh->pieces_from[bucket + 1] - sh->pieces_from[bucket];
}

/* The settings of a whole chunk are good (check.c), so are those of a part. */
ls_compression ls_share_piece_how(const ls_share *sh, const ls_code_piece *x, int64_t step) {
    ls_compression how = sh->compress.how;
    ls_error e;
    size_t n = x->end - x->first;
    how.seed += x->first;
    how.step = (uint64_t)step;
    if (how.kind == LS_COMPRESS_POWERSGD) how.rows = (n + x->cols - 1) / x->cols;
    if (ls_compression_complete(&how, n, &how, &e) != LS_OK) abort();
    return how;
}

/* ---- which codes are whose ---- */

/* Those that have codes are `unit` apart. */
static int unit_of(const ls_share *sh) { return sh->task == LS_TASK_TRAIN ? 1 : sh->island_vws; }

bool ls_share_is_coded(const ls_share *sh, int vw) { return vw % unit_of(sh) == 0; }

int ls_share_coded_before(const ls_share *sh, int vw) {
    return (vw + unit_of(sh) - 1) / unit_of(sh);
}

static int first_coded(const ls_share *sh, int worker) {
    return ls_share_coded_before(sh, ls_share_vw(sh, worker, 0));
}

int ls_share_ncoded(const ls_share *sh, int worker) {
    int end = ls_share_vw(sh, worker, 0) + sh->workers[worker].nvws;
    return ls_share_coded_before(sh, end) - first_coded(sh, worker);
}

int ls_share_coded(const ls_share *sh, int worker, int i) {
    return (first_coded(sh, worker) + i) * unit_of(sh);
}

ls_range ls_share_code_part(const ls_share *sh, int bucket, int worker) {
    const ls_code_piece *x = NULL;
    int n = ls_share_pieces(sh, bucket, &x), i = 0;
    ls_range own = ls_share_owned(sh, bucket, worker), part = {0, 0};
    if (own.first == own.end) return part;
    while (i < n && x[i].end <= own.first) i++;
    if (i < n) part.first = part.end = x[i].code_at;
    for (; i < n && x[i].first < own.end; i++) part.end = x[i].code_at + x[i].code_nbytes;
    return part;
}

static size_t part_nbytes(const ls_share *sh, int bucket, int worker) {
    ls_range part = ls_share_code_part(sh, bucket, worker);
    return part.end - part.first;
}

/* Is each virtual worker's code sent by itself? Factors are summed on their way. */
static bool sends_by_itself(const ls_share *sh) { return sh->sends_codes && !sh->has_factors; }

size_t ls_share_own_codes_nbytes(const ls_share *sh, int worker) {
    size_t sum = 0;
    for (int k = 0; sends_by_itself(sh) && k < sh->nbuckets; k++)
        sum += (size_t)ls_share_ncoded(sh, worker) * sh->buckets[k].code_nbytes;
    return sum;
}

size_t ls_share_all_codes_nbytes(const ls_share *sh, int worker) {
    size_t sum = 0;
    for (int k = 0; sends_by_itself(sh) && k < sh->nbuckets; k++)
        sum += (size_t)ls_share_coded_before(sh, sh->V) * part_nbytes(sh, k, worker);
    return sum;
}

size_t ls_share_sent_codes_nbytes(const ls_share *sh, int worker) {
    size_t most = 0;
    bool sends = sends_by_itself(sh) && sh->shards_moments;
    for (int k = 0; sends && k < sh->nbuckets; k++) {
        size_t sum = 0;
        for (int w = 0; w < sh->nworkers; w++)
            sum += (size_t)ls_share_ncoded(sh, worker) * part_nbytes(sh, k, w);
        if (sum > most) most = sum;
    }
    return most;
}

/* ---- factors ---- */

size_t ls_share_round_floats(const ls_share *sh, int bucket, int round) {
    const ls_bucket *b = &sh->buckets[bucket];
    return round ? b->factors.end - b->factors.first : b->code_nbytes / sizeof(float);
}

size_t ls_share_factors_nbytes(const ls_share *sh, int worker) {
    size_t floats = 0, slots = (size_t)sh->workers[worker].nslots;
    if (!sh->has_factors) return 0;
    for (int k = 0; k < sh->nbuckets; k++)
        for (int round = 0; round < sh->encodings; round++)
            floats += (slots + 1) * ls_share_round_floats(sh, k, round);
    return floats * sizeof(float);
}

bool ls_share_is_matrix(const ls_param *x) {
    return x->ndims >= 2 && !x->frozen && !x->window.rows;
}

void ls_share_place_matrices(ls_model *m) {
    for (int i = 0; i < m->nparams; i++)
        m->params[i].cut.undivided = ls_share_is_matrix(&m->params[i]);
    ls_model_place(m);
}

const ls_code_piece *ls_share_factor_of(const ls_share *sh, const ls_param *x) {
    int n = sh->has_factors ? sh->pieces_from[sh->nbuckets] : 0;
    for (int i = 0; i < n; i++)
        if (sh->pieces[i].nfactor && sh->pieces[i].first == x->offset) return &sh->pieces[i];
    return NULL;
}
