/* gemv_kept.c - products of the queries of one position with the keys and values that are kept of
 * all positions (layers/kept.h).
 *
 * Every score is a chain over the elements of a key, and every element of a result a chain over
 * positions. Some queries and some vectors of keys or of values are computed at a time: each
 * vector that is read serves all these queries, and there are enough chains to hide the time of a
 * multiply-add.
 */
#include "tensor/kernels/gemv_inline.h"

enum { QUERIES = LS_V16S < 32 ? 2 : 4, VECTORS = QUERIES, PAGE = LS_KEPT_PAGE };

/* Scores of 16 nv keys of a page, for nq queries. n: how many of them are stored. */
INLINE void scores(int nq, int nv, const ls_gemv_kept_job *j, const float *q, const float *keys,
                   int64_t n, float *s) {
    v16 sum[QUERIES][VECTORS];
    UNROLL for (int a = 0; a < nq; a++) UNROLL for (int b = 0; b < nv; b++) sum[a][b] =
        v_set1(0.0f);
    for (int64_t i = 0; i < j->D; i++) {
        v16 key[VECTORS];
        UNROLL for (int b = 0; b < nv; b++) key[b] = v_load(keys + i * PAGE + b * LS_LANES);
        UNROLL for (int a = 0; a < nq; a++) {
            v16 x = v_set1(q[a * j->D + i]);
            UNROLL for (int b = 0; b < nv; b++) sum[a][b] = v_fma(x, key[b], sum[a][b]);
        }
    }
    UNROLL for (int a = 0; a < nq; a++) UNROLL for (int b = 0; b < nv; b++)
        v_store_n(s + a * j->s_row + b * LS_LANES, sum[a][b], n - b * LS_LANES);
}

/* n keys of a page. */
INLINE void page_scores(int nq, const ls_gemv_kept_job *j, const float *q, const float *keys,
                        int64_t n, float *s) {
    int64_t i = 0;
    for (; i + VECTORS * LS_LANES <= n; i += VECTORS * LS_LANES)
        scores(nq, VECTORS, j, q, keys + i, VECTORS * LS_LANES, s + i);
    for (; i < n; i += LS_LANES) scores(nq, 1, j, q, keys + i, n - i, s + i);
}

INLINE void all_scores(int nq, const ls_gemv_kept_job *j, int64_t query, int64_t first,
                       int64_t end) {
    for (int64_t t = first; t < end; t += PAGE)
        page_scores(nq, j, j->q + query * j->D, j->kept + t / PAGE * j->page,
                    end - t < PAGE ? end - t : PAGE, j->s + query * j->s_row + t);
}

void LS_K(kept_scores)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    int64_t i = 0;
    for (; i + QUERIES <= j->queries; i += QUERIES) all_scores(QUERIES, j, i, first, end);
    switch (j->queries - i) {
    case 3: all_scores(QUERIES > 3 ? 3 : 1, j, i, first, end); break;
    case 2: all_scores(2, j, i, first, end); break;
    case 1: all_scores(1, j, i, first, end); break;
    default: break;
    }
}

/* n columns of the results of nq queries: 16 nv, or at most 16. */
INLINE void mixed(int nq, int nv, const ls_gemv_kept_job *j, int64_t query, int64_t seen,
                  int64_t column, int64_t n) {
    const float *s = j->s + query * j->s_row;
    v16 sum[QUERIES][VECTORS];
    UNROLL for (int a = 0; a < nq; a++) UNROLL for (int b = 0; b < nv; b++) sum[a][b] =
        v_set1(0.0f);
    for (int64_t t = 0; t < seen;) {
        const float *v = j->kept + t / PAGE * j->page + PAGE * j->D + column;
        int64_t end = t + PAGE < seen ? t + PAGE : seen;
        for (; t < end; t++, v += j->D) {
            v16 value[VECTORS];
            UNROLL for (int b = 0; b < nv; b++) value[b] =
                nv > 1 ? v_load(v + b * LS_LANES) : v_load_n(v, n);
            UNROLL for (int a = 0; a < nq; a++) {
                v16 x = v_set1(s[a * j->s_row + t]);
                UNROLL for (int b = 0; b < nv; b++) sum[a][b] = v_fma(x, value[b], sum[a][b]);
            }
        }
    }
    UNROLL for (int a = 0; a < nq; a++) UNROLL for (int b = 0; b < nv; b++)
        v_store_n(j->y + (query + a) * j->D + column + b * LS_LANES, sum[a][b], n - b * LS_LANES);
}

INLINE void all_mixed(int nq, const ls_gemv_kept_job *j, int64_t query, int64_t seen, int64_t first,
                      int64_t end) {
    for (; first + VECTORS * LS_LANES <= end; first += VECTORS * LS_LANES)
        mixed(nq, VECTORS, j, query, seen, first, VECTORS * LS_LANES);
    for (; first < end; first += LS_LANES)
        mixed(nq, 1, j, query, seen, first, end - first < LS_LANES ? end - first : LS_LANES);
}

void LS_K(kept_mix)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    int64_t i = 0;
    for (; i + QUERIES <= j->queries; i += QUERIES) all_mixed(QUERIES, j, i, seen, first, end);
    switch (j->queries - i) {
    case 3: all_mixed(QUERIES > 3 ? 3 : 1, j, i, seen, first, end); break;
    case 2: all_mixed(2, j, i, seen, first, end); break;
    case 1: all_mixed(1, j, i, seen, first, end); break;
    default: break;
    }
}
