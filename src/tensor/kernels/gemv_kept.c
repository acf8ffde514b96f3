/* gemv_kept.c - products of the queries of one position with the keys and values that are kept of
 * all positions (layers/kept.h).
 *
 * Every score is a sum over the elements of a key, and every element of a result a sum over
 * positions: one chain, or blocks of LS_SUM_BLOCK (kernels.h), whose place among the positions is
 * absolute. Some queries and some vectors of keys or of values are computed at a time: each
 * vector that is read serves all these queries, and there are enough chains to hide the time of a
 * multiply-add.
 */
#include "tensor/kernels/gemv_inline.h"

enum { QUERIES = LS_V16S < 32 ? 2 : 4, VECTORS = QUERIES, PAGE = LS_KEPT_PAGE };

/* How many queries and vectors are computed at a time; are their sums in blocks? */
typedef struct shape {
    int blocks;
    ls_kept_type type;
    int nq, nv;
} shape;

/* What is stored at element `at` of a page's keys or values, and where the factors of 8 bits
 * are. */
typedef struct stored {
    const float *p;       /* the page's keys, or values */
    const float *factors; /* of 8 bits */
    int64_t first;        /* the first key that is wanted */
} stored;

INLINE stored stored_of(const ls_gemv_kept_job *j, const float *part) {
    return (stored){part, part + PAGE * j->D / 4, 0};
}

INLINE v16 load_bytes(const int8_t *p) {
    uint64_t lo, hi;
    memcpy(&lo, p, sizeof lo);
    memcpy(&hi, p + sizeof lo, sizeof hi);
    return v_of_i8(lo, hi);
}

/* 16 elements, before their factors. */
INLINE v16 load(shape h, stored s, int64_t at) {
    if (h.type == LS_KEPT_F16) return v_load_f16((const uint16_t *)(const void *)s.p + at);
    if (h.type == LS_KEPT_Q8) return load_bytes((const int8_t *)(const void *)s.p + at);
    return v_load(s.p + at);
}

/* The first n of 16, of which the others may be in no memory. */
INLINE v16 load_n(shape h, stored s, int64_t at, int64_t n) {
    uint16_t halves[LS_LANES] = {0};
    int8_t bytes[LS_LANES] = {0};
    if (n > LS_LANES) n = LS_LANES;
    if (h.type == LS_KEPT_F16) {
        memcpy(halves, (const uint16_t *)(const void *)s.p + at, (size_t)n * sizeof *halves);
        return v_load_f16(halves);
    }
    if (h.type == LS_KEPT_Q8) {
        memcpy(bytes, (const int8_t *)(const void *)s.p + at, (size_t)n);
        return load_bytes(bytes);
    }
    return v_load_n(s.p + at, n);
}

/* Sums of some queries and vectors; in blocks, the chains of a block's even and odd places. */
typedef struct sums {
    v16 all[QUERIES][VECTORS], chain[2][QUERIES][VECTORS];
} sums;

INLINE void clear(shape h, v16 x[QUERIES][VECTORS]) {
    UNROLL for (int a = 0; a < h.nq; a++) UNROLL for (int b = 0; b < h.nv; b++) x[a][b] =
        v_set1(0.0f);
}

INLINE void sums_begin(shape h, sums *s) {
    clear(h, s->all);
    clear(h, s->chain[0]);
    clear(h, s->chain[1]);
}

/* Adds products of place `at`: query a has x[a * x_row]. */
INLINE void sums_add(shape h, sums *s, int64_t at, const float *x, int64_t x_row,
                     const v16 w[VECTORS]) {
    v16(*to)[VECTORS] = h.blocks ? s->chain[at & 1] : s->all;
    UNROLL for (int a = 0; a < h.nq; a++) {
        v16 one = v_set1(x[a * x_row]);
        UNROLL for (int b = 0; b < h.nv; b++) to[a][b] = v_fma(one, w[b], to[a][b]);
    }
}

INLINE void sums_end_block(shape h, sums *s) {
    UNROLL for (int a = 0; a < h.nq; a++) UNROLL for (int b = 0; b < h.nv; b++) s->all[a][b] =
        v_add(s->all[a][b], v_add(s->chain[0][a][b], s->chain[1][a][b]));
    clear(h, s->chain[0]);
    clear(h, s->chain[1]);
}

/* Sums that have got `n` places. */
INLINE void sums_end(shape h, sums *s, int64_t n) {
    if (h.blocks && n % LS_SUM_BLOCK) sums_end_block(h, s);
}

/* Scores of 16 nv keys of a page. n: how many of them are stored. */
INLINE void scores(shape h, const ls_gemv_kept_job *j, const float *q, stored keys, int64_t n,
                   float *s) {
    sums sum;
    v16 factors[VECTORS];
    UNROLL for (int b = 0; b < VECTORS; b++) factors[b] = v_set1(1.0f);
    sums_begin(h, &sum);
    for (int64_t i = 0; i < j->D; i++) {
        v16 key[VECTORS];
        UNROLL for (int b = 0; b < h.nv; b++) {
            int64_t at = keys.first + b * LS_LANES;
            key[b] = load(h, keys, i * PAGE + at);
            if (h.type != LS_KEPT_Q8) continue;
            if (i % LS_KEPT_BLOCK == 0)
                factors[b] = v_load(keys.factors + i / LS_KEPT_BLOCK * PAGE + at);
            key[b] = v_mul(key[b], factors[b]);
        }
        sums_add(h, &sum, i, q + i, j->D, key);
        if (h.blocks && (i + 1) % LS_SUM_BLOCK == 0) sums_end_block(h, &sum);
    }
    sums_end(h, &sum, j->D);
    UNROLL for (int a = 0; a < h.nq; a++) UNROLL for (int b = 0; b < h.nv; b++)
        v_store_n(s + a * j->s_row + b * LS_LANES, sum.all[a][b], n - b * LS_LANES);
}

/* n keys of a page. */
INLINE void page_scores(shape h, const ls_gemv_kept_job *j, const float *q, stored keys, int64_t n,
                        float *s) {
    int64_t i = 0;
    for (; i + VECTORS * LS_LANES <= n; i += VECTORS * LS_LANES) {
        keys.first = i;
        scores((shape){h.blocks, h.type, h.nq, VECTORS}, j, q, keys, VECTORS * LS_LANES, s + i);
    }
    for (; i < n; i += LS_LANES) {
        keys.first = i;
        scores((shape){h.blocks, h.type, h.nq, 1}, j, q, keys, n - i, s + i);
    }
}

INLINE void some_scores(shape h, const ls_gemv_kept_job *j, int64_t query, int64_t first,
                        int64_t end) {
    for (int64_t t = first; t < end; t += PAGE)
        page_scores(h, j, j->q + query * j->D, stored_of(j, j->kept + t / PAGE * j->page),
                    end - t < PAGE ? end - t : PAGE, j->s + query * j->s_row + t);
}

INLINE void all_scores(int blocks, ls_kept_type type, const ls_gemv_kept_job *j, int64_t first,
                       int64_t end) {
    int64_t i = 0;
    for (; i + QUERIES <= j->queries; i += QUERIES)
        some_scores((shape){blocks, type, QUERIES, 0}, j, i, first, end);
    switch (j->queries - i) {
    case 3: some_scores((shape){blocks, type, QUERIES > 3 ? 3 : 1, 0}, j, i, first, end); break;
    case 2: some_scores((shape){blocks, type, 2, 0}, j, i, first, end); break;
    case 1: some_scores((shape){blocks, type, 1, 0}, j, i, first, end); break;
    default: break;
    }
}

void LS_K(kept_scores)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    switch (j->type) {
    case LS_KEPT_F16: all_scores(0, LS_KEPT_F16, j, first, end); break;
    case LS_KEPT_Q8: all_scores(0, LS_KEPT_Q8, j, first, end); break;
    default: all_scores(0, LS_KEPT_F32, j, first, end); break;
    }
}

void LS_K(kept_scores_in_blocks)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    all_scores(1, LS_KEPT_F32, j, first, end);
}

/* n columns of the results: 16 nv, or at most 16. */
INLINE void mixed(shape h, const ls_gemv_kept_job *j, int64_t query, int64_t seen, int64_t column,
                  int64_t n) {
    const float *s = j->s + query * j->s_row;
    int64_t nblocks = ls_kept_blocks(j->D);
    sums sum;
    sums_begin(h, &sum);
    for (int64_t t = 0; t < seen;) {
        stored v = stored_of(j, j->kept + t / PAGE * j->page + ls_kept_half(h.type, j->D));
        int64_t end = t + PAGE < seen ? t + PAGE : seen, at = column;
        const float *factors = v.factors + column / LS_KEPT_BLOCK;
        for (; t < end; t++, at += j->D, factors += nblocks) {
            v16 value[VECTORS];
            UNROLL for (int b = 0; b < h.nv; b++) {
                value[b] = h.nv > 1 ? load(h, v, at + b * LS_LANES) : load_n(h, v, at, n);
                if (h.type == LS_KEPT_Q8)
                    value[b] = v_mul(
                        value[b],
                        v_set1(factors[(column % LS_KEPT_BLOCK + b * LS_LANES) / LS_KEPT_BLOCK]));
            }
            sums_add(h, &sum, t, s + t, j->s_row, value);
            if (h.blocks && (t + 1) % LS_SUM_BLOCK == 0) sums_end_block(h, &sum);
        }
    }
    sums_end(h, &sum, seen);
    UNROLL for (int a = 0; a < h.nq; a++) UNROLL for (int b = 0; b < h.nv; b++) v_store_n(
        j->y + (query + a) * j->D + column + b * LS_LANES, sum.all[a][b], n - b * LS_LANES);
}

INLINE void some_mixed(shape h, const ls_gemv_kept_job *j, int64_t query, int64_t seen,
                       int64_t first, int64_t end) {
    for (; first + VECTORS * LS_LANES <= end; first += VECTORS * LS_LANES)
        mixed((shape){h.blocks, h.type, h.nq, VECTORS}, j, query, seen, first, VECTORS * LS_LANES);
    for (; first < end; first += LS_LANES)
        mixed((shape){h.blocks, h.type, h.nq, 1}, j, query, seen, first,
              end - first < LS_LANES ? end - first : LS_LANES);
}

INLINE void all_mixed(int blocks, ls_kept_type type, const ls_gemv_kept_job *j, int64_t seen,
                      int64_t first, int64_t end) {
    int64_t i = 0;
    for (; i + QUERIES <= j->queries; i += QUERIES)
        some_mixed((shape){blocks, type, QUERIES, 0}, j, i, seen, first, end);
    switch (j->queries - i) {
    case 3:
        some_mixed((shape){blocks, type, QUERIES > 3 ? 3 : 1, 0}, j, i, seen, first, end);
        break;
    case 2: some_mixed((shape){blocks, type, 2, 0}, j, i, seen, first, end); break;
    case 1: some_mixed((shape){blocks, type, 1, 0}, j, i, seen, first, end); break;
    default: break;
    }
}

void LS_K(kept_mix)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    switch (j->type) {
    case LS_KEPT_F16: all_mixed(0, LS_KEPT_F16, j, seen, first, end); break;
    case LS_KEPT_Q8: all_mixed(0, LS_KEPT_Q8, j, seen, first, end); break;
    default: all_mixed(0, LS_KEPT_F32, j, seen, first, end); break;
    }
}

void LS_K(kept_mix_in_blocks)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    all_mixed(1, LS_KEPT_F32, j, seen, first, end);
}
