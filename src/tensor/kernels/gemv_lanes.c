/* gemv_lanes.c - products of one row with rows of blocks, or with their strips (block_lanes.h).
 *
 * Two strips of sixteen rows are computed together: a block of each is unpacked to the nearest
 * cache, then its numbers are widened and scaled to the bits of kernels/unpack.c. The product of a
 * scale and a number is exact where a minimum is added, so that is one multiply-add.
 */
#include "tensor/kernels/block_lanes.h"
#include "tensor/kernels/gemv_blocks.h"

enum { STRIPS = LS_GEMV_LANE_STRIPS, AHEAD = 8192 /* bytes of strips */ };

/* A group of two strips. */
typedef struct group {
    const ls_block_lanes *of[STRIPS];
    v16 d[STRIPS], m[STRIPS]; /* scales and minima of the half that is computed */
} group;

INLINE v16 word_of(const group *g, int s, int k) { return v_load(g->of[s]->words[k]); }

/* Number i of word k, scaled. */
INLINE v16 weight(ls_lane_type t, const group *g, int s, int k, int i) {
    const v16 word = word_of(g, s, k);
    if (t.most == 128) return v_mul(v_pick_i8(word, i), g->d[s]);
    const v16 q = t.most == 15 ? v_pick_u4(word, 2 * i) : v_pick_bits(word, 8 * i, 8);
    if (t.affine) return v_fma(q, g->d[s], g->m[s]);
    return v_mul(v_sub(q, v_set1((float)t.middle)), g->d[s]);
}

/* In f32 one weight of each strip after the other, so that few registers hold weights; in bf16 by
 * the instruction for pairs. */
INLINE void add_word(int bf16, ls_lane_type t, const group *g, int k, const float *x,
                     gemv_sums sum[STRIPS]) {
    if (!bf16) {
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int s = 0; s < STRIPS; s++) sum[s].all =
            v_fma(v_set1(x[i]), weight(t, g, s, k, i), sum[s].all);
        return;
    }
    UNROLL for (int s = 0; s < STRIPS; s++) {
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = weight(t, g, s, k, i);
        gemv_four(bf16, x, w, &sum[s]);
    }
}

INLINE void take_scales(ls_lane_type t, int half, group *g) {
    UNROLL for (int s = 0; s < STRIPS; s++) {
        g->d[s] = v_load(g->of[s]->d[half]);
        if (t.affine) g->m[s] = v_load(g->of[s]->m[half]);
    }
}

INLINE void add_group(int bf16, ls_lane_type t, group *g, const float *x, gemv_sums sum[STRIPS]) {
    take_scales(t, 0, g);
    UNROLL for (int k = 0; k < 4; k++, x += 4) add_word(bf16, t, g, k, x, sum);
    if (t.halves) take_scales(t, 1, g);
    UNROLL for (int k = 4; k < 8; k++, x += 4) add_word(bf16, t, g, k, x, sum);
    UNROLL for (int s = 0; s < STRIPS; s++) gemv_end_block(bf16, &sum[s]);
}

/* The rows from row v on. */
INLINE void rows_of(int bf16, ls_lane_type t, const ls_gemv_table_job *j, int64_t v) {
    const bool strips = j->w.strips;
    const int64_t nblocks = j->C / t.elements, ngroups = t.elements / LS_LANE_GROUP;
    const int64_t row = nblocks * t.nbytes, strip = LS_LANES * row, block = LS_LANES * t.nbytes;
    const uint8_t *p = (const uint8_t *)(strips ? j->w.strips : j->w.data) + v * row;
    const float *x = j->x;
    ls_block_lanes lanes[STRIPS][LS_LANE_GROUPS];
    gemv_sums sum[STRIPS];
    UNROLL for (int s = 0; s < STRIPS; s++) sum[s] = gemv_sums_from(j->y + v + s * LS_LANES);
    for (int64_t i = 0; i < nblocks; i++) {
        const uint8_t *ahead[STRIPS]; /* some blocks of strips; or the rows that follow */
        UNROLL for (int s = 0; s < STRIPS; s++) {
            const uint8_t *at =
                strips ? p + (i * STRIPS + s) * block : p + s * strip + i * t.nbytes;
            ahead[s] = strips ? at + AHEAD : p + (STRIPS + s) * strip + i * block;
            t.unpack(at, strips ? LS_IN_STRIP : row, lanes[s]);
        }
        for (int64_t k = 0; k < ngroups; k++, x += LS_LANE_GROUP) {
            group g = {.of = {&lanes[0][k], &lanes[1][k]}};
            UNROLL for (int s = 0; s < STRIPS; s++) gemv_prefetch_part(ahead[s], block, k, ngroups);
            add_group(bf16, t, &g, x, sum);
        }
    }
    UNROLL for (int s = 0; s < STRIPS; s++) v_store(j->y + v + s * LS_LANES, sum[s].all);
}

/* A loop for each kind of numbers: the assignments say what is constant in it. */
INLINE void each_shape(int bf16, const ls_gemv_table_job *j, int64_t v) {
    ls_lane_type t = lane_type_of(j->w.type);
    if (t.most == 128) {
        t.most = 128, t.affine = t.halves = false;
        rows_of(bf16, t, j, v);
    } else if (t.most == 15 && t.affine) {
        t.most = 15, t.affine = true, t.halves = false;
        rows_of(bf16, t, j, v);
    } else if (t.affine) {
        t.most = 31, t.affine = true;
        rows_of(bf16, t, j, v);
    } else {
        t.most = 63, t.affine = false;
        rows_of(bf16, t, j, v);
    }
}

void LS_K(gemv_lane_rows)(const ls_gemv_table_job *j, int64_t v) {
#ifdef V_PAIRS
    if (j->bf16) {
        each_shape(1, j, v);
        return;
    }
#endif
    each_shape(0, j, v);
}
