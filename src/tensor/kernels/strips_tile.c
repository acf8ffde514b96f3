/* strips_tile.c - strips.h: they are multiplied with some rows, or written as a tile of floats for
 * products with many. Strips that are not in groups: lanes_tile.c. */
#include "tensor/kernels/strips.h"

/* Rows of the table that are in a register, and how often a group has as many. */
enum { WIDTH = LS_VR, PARTS = STRIPS * LS_LANES / LS_VR };

INLINE v16 some_scales(const uint8_t *p) {
    uint16_t lanes[LS_LANES] = {0};
    memcpy(lanes, p, LS_VR * sizeof *lanes);
    return v_load_f16(lanes);
}

INLINE const uint8_t *words_of(const uint8_t *p, int64_t row, layout l) {
    p += l.nscales * STRIPS * SCALES;
    return p + row / LS_LANES * l.nwords * WORDS + row % LS_LANES * 4;
}

/* The rows from `row` on of a block of a group at p. */
INLINE block rows_at(layout l, const uint8_t *p, int64_t row) {
    block b = {.words = words_of(p, row, l), .part = true};
    if (l.nscales > 0) gemv_scales(some_scales(p + 2 * row), l.most, b.d[0]);
    if (l.nscales > 1) b.m[0] = some_scales(p + STRIPS * SCALES + 2 * row);
    return b;
}

/* ---- a tile's columns as floats ---- */

/* The words and scales of rows from `row` on, which are read some blocks later. */
INLINE void fetch(const uint8_t *p, int64_t row, layout l) {
    for (int i = 0; i < l.nscales; i++) v_prefetch(p + i * STRIPS * SCALES + 2 * row);
    p = words_of(p, row, l);
    for (int i = 0; i < l.nwords; i++) v_prefetch(p + i * WORDS);
}

/* 32 weights of LS_VR rows: out [GROUP], each [WIDTH], `width` apart. */
INLINE void put_weights(weight_fn *weight, const block *b, int64_t width, float *out) {
    UNROLL for (int half = 0; half < 2; half++) for (int k = 0; k < 4; k++, out += 4 * width) {
        v16 w[4]; /* all before one is stored, which might change the words */
        UNROLL for (int i = 0; i < 4; i++) w[i] = weight(b, 0, (place){half, k}, i);
        UNROLL for (int i = 0; i < 4; i++) r_store(out + i * width, v_first(w[i]));
    }
}

INLINE void each_block(weight_fn *weight, layout l, const ls_strip_part *j, float *out) {
    enum { ROWS = STRIPS * LS_LANES, BLOCKS = 4 };
    const int64_t step = ROWS * l.nbytes, group = j->C / GROUP * step;
    const uint8_t *p = (const uint8_t *)j->strips + j->k / GROUP * step;
    for (int64_t i = 0; i < j->depth; i += GROUP, p += step)
        for (int64_t n = 0, v = j->v; n < j->n; n += WIDTH, v += WIDTH) {
            const uint8_t *at = p + v / ROWS * group;
            if (v % LS_LANES == 0) fetch(at + BLOCKS * step, v % ROWS, l);
            const block b = rows_at(l, at, v % ROWS);
            put_weights(weight, &b, j->n, out + i * j->n + n);
        }
}

void LS_K(unpack_strips)(const ls_strip_part *j, float *out) {
    switch (j->type) {
    case LS_BLOCK_Q8_0: each_block(weight_q8_0, layout_of(LS_BLOCK_Q8_0), j, out); break;
    case LS_BLOCK_Q4_0: each_block(weight_q4_0, layout_of(LS_BLOCK_Q4_0), j, out); break;
    case LS_BLOCK_Q4_1: each_block(weight_q4_1, layout_of(LS_BLOCK_Q4_1), j, out); break;
    case LS_BLOCK_BF16: each_block(weight_bf16, layout_of(LS_BLOCK_BF16), j, out); break;
    case LS_BLOCK_F16: each_block(weight_f16, layout_of(LS_BLOCK_F16), j, out); break;
    default: LS_K(unpack_lanes)(j, out); break;
    }
}

/* ---- products with some rows ---- */

/* The sums of a group's rows with those of x. */
typedef float group_sums[PARTS][LS_GEMM_SOME][WIDTH];

INLINE void begin_sums(const ls_gemm_some_job *j, int64_t v, group_sums sum) {
    for (int64_t m = 0; m < j->M; m++)
        for (int part = 0; part < PARTS; part++)
            r_store(sum[part][m], r_load(j->y + m * j->ldy + v + part * WIDTH));
}

INLINE void end_sums(const ls_gemm_some_job *j, int64_t v, group_sums sum) {
    for (int64_t m = 0; m < j->M; m++)
        for (int part = 0; part < PARTS; part++)
            r_store(j->y + m * j->ldy + v + part * WIDTH, r_load(sum[part][m]));
}

/* sum [rows] += 32 weights of LS_VR rows times x [GROUP][rows]. */
INLINE void add_block(weight_fn *weight, int rows, const block *b, const float *x,
                      float sum[LS_GEMM_SOME][WIDTH]) {
    vr sums[LS_GEMM_SOME];
    UNROLL for (int r = 0; r < rows; r++) sums[r] = r_load(sum[r]);
    UNROLL for (int half = 0; half < 2; half++) for (int k = 0; k < 4; k++, x += 4 * rows)
        UNROLL for (int i = 0; i < 4; i++) {
        const vr w = v_first(weight(b, 0, (place){half, k}, i));
        UNROLL for (int r = 0; r < rows; r++) sums[r] = r_fma(r_set1(x[i * rows + r]), w, sums[r]);
    }
    UNROLL for (int r = 0; r < rows; r++) r_store(sum[r], sums[r]);
}

/* The table is read from the first byte to the last; sums of a group stay in L1. */
INLINE void each_group(weight_fn *weight, layout l, int rows, const ls_gemm_some_job *j) {
    const int64_t step = STRIPS * LS_LANES * l.nbytes;
    const uint8_t *p = j->strips;
    group_sums sum = {0};
    for (int64_t v = 0; v < j->V; v += STRIPS * LS_LANES) {
        begin_sums(j, v, sum);
        for (int64_t k = 0; k < j->C; k += GROUP, p += step) {
            for (int64_t i = 0; i < step; i += LINE) v_prefetch(p + AHEAD + i);
            for (int part = 0; part < PARTS; part++) {
                const block b = rows_at(l, p, part * WIDTH);
                add_block(weight, rows, &b, j->x + k * rows, sum[part]);
            }
        }
        end_sums(j, v, sum);
    }
}

INLINE void all_groups(int rows, const ls_gemm_some_job *j) {
    switch (j->type) {
    case LS_BLOCK_Q8_0: each_group(weight_q8_0, layout_of(LS_BLOCK_Q8_0), rows, j); break;
    case LS_BLOCK_Q4_0: each_group(weight_q4_0, layout_of(LS_BLOCK_Q4_0), rows, j); break;
    case LS_BLOCK_Q4_1: each_group(weight_q4_1, layout_of(LS_BLOCK_Q4_1), rows, j); break;
    case LS_BLOCK_BF16: each_group(weight_bf16, layout_of(LS_BLOCK_BF16), rows, j); break;
    default: each_group(weight_f16, layout_of(LS_BLOCK_F16), rows, j); break;
    }
}

void LS_K(gemm_some)(const ls_gemm_some_job *j) {
    if (!ls_strips_in_groups(j->type)) {
        LS_K(lanes_some)(j);
        return;
    }
    switch (j->room) {
    case 4: all_groups(4, j); break;
    case 6: all_groups(6, j); break;
    default: all_groups(8, j); break;
    }
}
