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
    int blocks, nq, nv;
} shape;

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
INLINE void scores(shape h, const ls_gemv_kept_job *j, const float *q, const float *keys, int64_t n,
                   float *s) {
    sums sum;
    sums_begin(h, &sum);
    for (int64_t i = 0; i < j->D; i++) {
        v16 key[VECTORS];
        UNROLL for (int b = 0; b < h.nv; b++) key[b] = v_load(keys + i * PAGE + b * LS_LANES);
        sums_add(h, &sum, i, q + i, j->D, key);
        if (h.blocks && (i + 1) % LS_SUM_BLOCK == 0) sums_end_block(h, &sum);
    }
    sums_end(h, &sum, j->D);
    UNROLL for (int a = 0; a < h.nq; a++) UNROLL for (int b = 0; b < h.nv; b++)
        v_store_n(s + a * j->s_row + b * LS_LANES, sum.all[a][b], n - b * LS_LANES);
}

/* n keys of a page. */
INLINE void page_scores(shape h, const ls_gemv_kept_job *j, const float *q, const float *keys,
                        int64_t n, float *s) {
    int64_t i = 0;
    for (; i + VECTORS * LS_LANES <= n; i += VECTORS * LS_LANES)
        scores((shape){h.blocks, h.nq, VECTORS}, j, q, keys + i, VECTORS * LS_LANES, s + i);
    for (; i < n; i += LS_LANES) scores((shape){h.blocks, h.nq, 1}, j, q, keys + i, n - i, s + i);
}

INLINE void some_scores(shape h, const ls_gemv_kept_job *j, int64_t query, int64_t first,
                        int64_t end) {
    for (int64_t t = first; t < end; t += PAGE)
        page_scores(h, j, j->q + query * j->D, j->kept + t / PAGE * j->page,
                    end - t < PAGE ? end - t : PAGE, j->s + query * j->s_row + t);
}

INLINE void all_scores(int blocks, const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    int64_t i = 0;
    for (; i + QUERIES <= j->queries; i += QUERIES)
        some_scores((shape){blocks, QUERIES, 0}, j, i, first, end);
    switch (j->queries - i) {
    case 3: some_scores((shape){blocks, QUERIES > 3 ? 3 : 1, 0}, j, i, first, end); break;
    case 2: some_scores((shape){blocks, 2, 0}, j, i, first, end); break;
    case 1: some_scores((shape){blocks, 1, 0}, j, i, first, end); break;
    default: break;
    }
}

void LS_K(kept_scores)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    all_scores(0, j, first, end);
}

void LS_K(kept_scores_in_blocks)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    all_scores(1, j, first, end);
}

/* n columns of the results: 16 nv, or at most 16. */
INLINE void mixed(shape h, const ls_gemv_kept_job *j, int64_t query, int64_t seen, int64_t column,
                  int64_t n) {
    const float *s = j->s + query * j->s_row;
    sums sum;
    sums_begin(h, &sum);
    for (int64_t t = 0; t < seen;) {
        const float *v = j->kept + t / PAGE * j->page + PAGE * j->D + column;
        int64_t end = t + PAGE < seen ? t + PAGE : seen;
        for (; t < end; t++, v += j->D) {
            v16 value[VECTORS];
            UNROLL for (int b = 0; b < h.nv; b++) value[b] =
                h.nv > 1 ? v_load(v + b * LS_LANES) : v_load_n(v, n);
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
        mixed((shape){h.blocks, h.nq, VECTORS}, j, query, seen, first, VECTORS * LS_LANES);
    for (; first < end; first += LS_LANES)
        mixed((shape){h.blocks, h.nq, 1}, j, query, seen, first,
              end - first < LS_LANES ? end - first : LS_LANES);
}

INLINE void all_mixed(int blocks, const ls_gemv_kept_job *j, int64_t seen, int64_t first,
                      int64_t end) {
    int64_t i = 0;
    for (; i + QUERIES <= j->queries; i += QUERIES)
        some_mixed((shape){blocks, QUERIES, 0}, j, i, seen, first, end);
    switch (j->queries - i) {
    case 3: some_mixed((shape){blocks, QUERIES > 3 ? 3 : 1, 0}, j, i, seen, first, end); break;
    case 2: some_mixed((shape){blocks, 2, 0}, j, i, seen, first, end); break;
    case 1: some_mixed((shape){blocks, 1, 0}, j, i, seen, first, end); break;
    default: break;
    }
}

void LS_K(kept_mix)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    all_mixed(0, j, seen, first, end);
}

void LS_K(kept_mix_in_blocks)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    all_mixed(1, j, seen, first, end);
}
