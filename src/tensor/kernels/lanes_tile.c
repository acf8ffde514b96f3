/* lanes_tile.c - strips that are not in groups (block_lanes.h): they are multiplied with some rows,
 * or written as a tile of floats for products with many, as strips_tile.c does it with the others.
 */
#include "tensor/kernels/block_lanes.h"
#include "tensor/kernels/gemv_rows.h"

/* Rows of the table that are in a register, and how often a strip has as many. */
enum { WIDTH = LS_VR, PARTS = LS_LANES / LS_VR };

/* A table in strips. */
typedef struct strip_table {
    const uint8_t *strips;
    int64_t nblocks, nbytes; /* of a row; of a strip's block */
} strip_table;

INLINE strip_table table_of(ls_lane_type t, const void *strips, int64_t C) {
    return (strip_table){strips, C / t.elements, LS_LANES * t.nbytes};
}

/* Block i of the strip that has row v. */
INLINE const uint8_t *block_at(strip_table t, int64_t v, int64_t i) {
    const int64_t strip = v / LS_LANES;
    return t.strips + ((strip / 2 * t.nblocks + i) * 2 + strip % 2) * t.nbytes;
}

/* LS_VR rows of a strip's block, and the scales and minima of sixteen of their elements. */
typedef struct part {
    ls_lane_rows rows;
    ls_lane_place at;
    v16 d[4], m;
} part;

INLINE void take_scales(ls_lane_type t, const ls_lane_scales *of, part *p) {
    const int half = t.halves ? p->at.half : 0;
    gemv_scales(v_of_first(r_load(of->d[half] + p->rows.first)), t.most, p->d);
    if (t.affine) p->m = v_of_first(r_load(of->m[half] + p->rows.first));
}

/* Number i of word k of each row, scaled to the bits of kernels/unpack.c. */
INLINE vr weight(ls_lane_type t, const part *p, v16 word, int i) {
    const v16 q = v_number(t.most, t.middle, word, i);
    return v_first(t.affine ? v_fma(q, p->d[i], p->m) : v_mul(q, p->d[i]));
}

/* ---- a tile's columns as floats ---- */

/* 32 weights of the rows: out [32], each [WIDTH], `width` apart. */
INLINE void put_group(ls_lane_type t, const ls_lane_scales *of, part p, int64_t width, float *out) {
    UNROLL for (p.at.half = 0; p.at.half < 2; p.at.half++) {
        take_scales(t, of, &p);
        for (int k = 0; k < 4; k++, out += 4 * width) {
            const v16 word = t.word(p.rows, p.at, k);
            UNROLL for (int i = 0; i < 4; i++) r_store(out + i * width, weight(t, &p, word, i));
        }
    }
}

INLINE void put_tile(ls_lane_type t, const ls_strip_part *j, float *out) {
    const strip_table w = table_of(t, j->strips, j->C);
    const int ngroups = (int)(t.elements / LS_LANE_GROUP), nturns = ngroups / t.span;
    ls_lane_scales scales[LS_LANE_GROUPS];
    for (int64_t k = 0; k < j->depth; k += t.elements)
        for (int64_t n = 0; n < j->n; n += WIDTH) {
            const int64_t v = j->v + n;
            const uint8_t *block = block_at(w, v, (j->k + k) / t.elements);
            part p = {.rows = {block, (int)(v % LS_LANES), PARTS > 1}};
            float *to = out + k * j->n + n;
            t.scales(block, scales);
            for (p.at.turn = 0; p.at.turn < nturns; p.at.turn++) {
                UNROLL for (int g = 0; g < t.span; g++, to += LS_LANE_GROUP * j->n) {
                    const int group = p.at.turn * t.span + g;
                    p.at.g = g;
                    gemv_prefetch_part(block + 4 * w.nbytes, w.nbytes, group, ngroups);
                    put_group(t, &scales[group], p, j->n, to);
                }
            }
        }
}

void LS_K(unpack_lanes)(const ls_strip_part *j, float *out) {
#define PUT(type) put_tile(lane_type_of(type), j, out)
    switch (j->type) { LS_LANE_CASES(PUT); }
}

/* ---- products with some rows ---- */

/* sum [rows] += 32 weights of the rows times x [32][rows]. */
INLINE void add_group(ls_lane_type t, const ls_lane_scales *of, part p, int rows, const float *x,
                      float sum[LS_GEMM_SOME][WIDTH]) {
    vr sums[LS_GEMM_SOME];
    UNROLL for (int r = 0; r < rows; r++) sums[r] = r_load(sum[r]);
    UNROLL for (p.at.half = 0; p.at.half < 2; p.at.half++) {
        take_scales(t, of, &p);
        for (int k = 0; k < 4; k++, x += 4 * rows) {
            const v16 word = t.word(p.rows, p.at, k);
            UNROLL for (int i = 0; i < 4; i++) {
                const vr w = weight(t, &p, word, i);
                UNROLL for (int r = 0; r < rows; r++) sums[r] =
                    r_fma(r_set1(x[i * rows + r]), w, sums[r]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) r_store(sum[r], sums[r]);
}

/* The sums of a strip, which stay in L1. */
typedef float strip_sums[PARTS][LS_GEMM_SOME][WIDTH];

INLINE void add_block(ls_lane_type t, int rows, const uint8_t *block, const float *x,
                      const uint8_t *ahead, strip_sums sum) {
    const int ngroups = (int)(t.elements / LS_LANE_GROUP), nturns = ngroups / t.span;
    ls_lane_scales scales[LS_LANE_GROUPS];
    t.scales(block, scales);
    for (int turn = 0; turn < nturns; turn++) {
        UNROLL for (int g = 0; g < t.span; g++, x += LS_LANE_GROUP * rows) {
            const int group = turn * t.span + g;
            gemv_prefetch_part(ahead, LS_LANES * t.nbytes, group, ngroups);
            for (int i = 0; i < PARTS; i++) {
                const part p = {.rows = {block, i * WIDTH, PARTS > 1}, .at = {turn, g, 0}};
                add_group(t, &scales[group], p, rows, x, sum[i]);
            }
        }
    }
}

INLINE void add_rows(ls_lane_type t, int rows, const ls_gemm_some_job *j) {
    const strip_table w = table_of(t, j->strips, j->C);
    strip_sums sum = {0};
    for (int64_t v = 0; v < j->V; v += LS_LANES) {
        for (int64_t m = 0; m < j->M; m++)
            for (int i = 0; i < PARTS; i++)
                r_store(sum[i][m], r_load(j->y + m * j->ldy + v + i * WIDTH));
        for (int64_t k = 0; k < w.nblocks; k++) {
            const uint8_t *block = block_at(w, v, k);
            add_block(t, rows, block, j->x + k * t.elements * rows, block + 4 * w.nbytes, sum);
        }
        for (int64_t m = 0; m < j->M; m++)
            for (int i = 0; i < PARTS; i++)
                r_store(j->y + m * j->ldy + v + i * WIDTH, r_load(sum[i][m]));
    }
}

INLINE void all_types(int rows, const ls_gemm_some_job *j) {
#define ADD(type) add_rows(lane_type_of(type), rows, j)
    switch (j->type) { LS_LANE_CASES(ADD); }
}

void LS_K(lanes_some)(const ls_gemm_some_job *j) {
    if (j->room == 4)
        all_types(4, j);
    else
        all_types(8, j);
}
