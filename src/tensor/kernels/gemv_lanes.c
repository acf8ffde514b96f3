/* gemv_lanes.c - products of one row with rows of blocks, as strips have them (block_lanes.h).
 *
 * Two strips of sixteen rows are computed together. Numbers are scaled to the bits of
 * kernels/unpack.c: the product of a scale and a number is exact where a minimum is added, so that
 * is one multiply-add.
 */
#include "tensor/kernels/block_lanes.h"
#include "tensor/kernels/gemv_rows.h"

enum { STRIPS = LS_GEMV_LANE_STRIPS, AHEAD = 8192 /* bytes of strips */ };

/* A group of two strips. */
typedef struct group {
    ls_lane_rows rows[STRIPS];
    const uint8_t *ahead[STRIPS]; /* what is prefetched, part after part with each word */
    ls_lane_place at;
    v16 d[STRIPS][4], m[STRIPS]; /* of the half that is computed: gemv_scales(), minima */
} group;

/* In f32 one weight of each strip after the other, so that few registers hold weights; in bf16 by
 * the instruction for pairs. */
INLINE void add_word(int bf16, ls_lane_type t, const group *g, int k, const float *x,
                     gemv_sums sum[STRIPS]) {
    v16 word[STRIPS], w[STRIPS][4];
    UNROLL for (int s = 0; s < STRIPS; s++) word[s] = t.word(g->rows[s], g->at, k);
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 q = v_number(t.most, t.middle, word[s], i);
        w[s][i] = t.affine ? v_fma(q, g->d[s][i], g->m[s]) : v_mul(q, g->d[s][i]);
        if (!bf16) sum[s].all = v_fma(v_set1(x[i]), w[s][i], sum[s].all);
    }
    UNROLL for (int s = 0; s < STRIPS; s++) if (bf16) gemv_four(bf16, x, w[s], &sum[s]);
}

INLINE void take_scales(ls_lane_type t, const ls_lane_scales *of[STRIPS], int half, group *g) {
    UNROLL for (int s = 0; s < STRIPS; s++) {
        gemv_scales(v_load(of[s]->d[half]), t.most, g->d[s]);
        if (t.affine) g->m[s] = v_load(of[s]->m[half]);
    }
}

INLINE void add_half(int bf16, ls_lane_type t, group *g, int half, const float *x,
                     gemv_sums sum[STRIPS]) {
    const int64_t part = LS_LANES * 4 * t.nbytes / t.elements; /* less than a line */
    g->at.half = half;
    for (int k = 0; k < LS_LANE_WORDS / 2; k++, x += 4) {
        UNROLL for (int s = 0; s < STRIPS; s++) {
            v_prefetch(g->ahead[s]);
            g->ahead[s] += part;
        }
        add_word(bf16, t, g, k, x, sum);
    }
}

INLINE void add_group(int bf16, ls_lane_type t, const ls_lane_scales *of[STRIPS], group *g,
                      const float *x, gemv_sums sum[STRIPS]) {
    take_scales(t, of, 0, g);
    add_half(bf16, t, g, 0, x, sum);
    if (t.halves) take_scales(t, of, 1, g);
    add_half(bf16, t, g, 1, x + LS_LANE_GROUP / 2, sum);
    UNROLL for (int s = 0; s < STRIPS; s++) gemv_end_block(bf16, &sum[s]);
}

/* The rows from row v on. */
INLINE void rows_of(int bf16, ls_lane_type t, const ls_gemv_table_job *j, int64_t v) {
    const bool strips = j->w.strips;
    const int64_t nblocks = j->C / t.elements, nturns = t.elements / LS_LANE_GROUP / t.span;
    const int64_t row = nblocks * t.nbytes, strip = LS_LANES * row, block = LS_LANES * t.nbytes;
    const uint8_t *p = (const uint8_t *)(strips ? j->w.strips : j->w.data) + v * row;
    const float *x = j->x;
    uint8_t copy[STRIPS][LS_LANE_BLOCK];
    ls_lane_scales scales[STRIPS][LS_LANE_GROUPS];
    gemv_sums sum[STRIPS];
    UNROLL for (int s = 0; s < STRIPS; s++) sum[s] = gemv_sums_from(j->y + v + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++) {
        group g;
        UNROLL for (int s = 0; s < STRIPS; s++) {
            const uint8_t *at = p + (i * STRIPS + s) * block;
            g.ahead[s] = strips ? at + AHEAD : p + (STRIPS + s) * strip + i * block;
            if (!strips) {
                LS_K(lane_block)(j->w.type, p + s * strip + i * t.nbytes, row, copy[s]);
                at = copy[s];
            }
            g.rows[s] = (ls_lane_rows){.block = at};
            t.scales(at, scales[s]);
        }
        for (int k = 0; k < nturns; k++) UNROLL for (int n = 0; n < t.span; n++) {
                const ls_lane_scales *of[STRIPS] = {&scales[0][k * t.span + n],
                                                    &scales[1][k * t.span + n]};
                g.at = (ls_lane_place){.turn = k, .g = n};
                add_group(bf16, t, of, &g, x, sum);
                x += LS_LANE_GROUP;
            }
    }
    UNROLL for (int s = 0; s < STRIPS; s++) v_store(j->y + v + s * LS_LANES, sum[s].all);
}

INLINE void each_type(int bf16, const ls_gemv_table_job *j, int64_t v) {
#define ROWS(type) rows_of(bf16, lane_type_of(type), j, v)
    switch (j->w.type) {
        LS_LANE_CASES(ROWS);
    case LS_BLOCK_Q8_0: ROWS(LS_BLOCK_Q8_0); break;
    case LS_BLOCK_Q4_0: ROWS(LS_BLOCK_Q4_0); break;
    case LS_BLOCK_Q4_1: ROWS(LS_BLOCK_Q4_1); break;
    }
}

void LS_K(gemv_lane_rows)(const ls_gemv_table_job *j, int64_t v) {
#ifdef V_PAIRS
    if (j->bf16) {
        each_type(1, j, v);
        return;
    }
#endif
    each_type(0, j, v);
}
