/* strips_tile.c - strips.h: they are multiplied with some rows, or written as a tile of floats for
 * products with many. */
#include "tensor/kernels/strips.h"

/* Rows of the table that are in a register, and how often a group has as many. */
enum { WIDTH = LS_VR, PARTS = STRIPS * LS_LANES / LS_VR };

/* LS_VR rows of a strip: their words or scales are the first lanes, the others are zeros. */
INLINE v16 some_words(const uint8_t *p) {
    return v_of_first(r_load((const float *)(const void *)p));
}

INLINE v16 some_scales(const uint8_t *p) {
    uint16_t lanes[LS_LANES] = {0};
    memcpy(lanes, p, LS_VR * sizeof *lanes);
    return v_load_f16(lanes);
}

INLINE const uint8_t *words_of(const uint8_t *p, int64_t row, int nwords) {
    return p + row / LS_LANES * nwords * WORDS + row % LS_LANES * 4;
}

/* Where a block's values go: with rows 0 to out [GROUP], each [WIDTH], `width` apart; else they are
 * multiplied with x [GROUP][rows] and added to sum [rows]. */
typedef struct taker {
    float *out;
    int64_t width;
    const float *x;
    int rows; /* constant where a loop is compiled */
    vr *sum;
} taker;

/* The values k to k + 4. */
INLINE void take4(taker t, int k, const v16 w[4]) {
    if (t.rows == 0)
        UNROLL for (int i = 0; i < 4; i++) r_store(t.out + (k + i) * t.width, v_first(w[i]));
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int r = 0; r < t.rows; r++) t.sum[r] =
        r_fma(r_set1(t.x[(k + i) * t.rows + r]), v_first(w[i]), t.sum[r]);
}

/* The 32 elements, in order, of rows from `row` on of a block of a group at p. */
typedef void block_fn(const uint8_t *p, int64_t row, taker t);

INLINE void block_q8_0(const uint8_t *p, int64_t row, taker t) {
    const v16 d = some_scales(p + 2 * row);
    p = words_of(p + STRIPS * SCALES, row, 8);
    for (int k = 0; k < 8; k++) {
        const v16 words = some_words(p + k * WORDS);
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = v_mul(v_pick_i8(words, i), d);
        take4(t, 4 * k, w);
    }
}

/* The low nibbles of sixteen bytes are elements 0 to 15, the high ones 16 to 31. */
INLINE void block_q4_0(const uint8_t *p, int64_t row, taker t) {
    const v16 d = some_scales(p + 2 * row);
    p = words_of(p + STRIPS * SCALES, row, 4);
    UNROLL for (int high = 0; high < 2; high++) for (int k = 0; k < 4; k++) {
        const v16 words = some_words(p + k * WORDS);
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = v_mul(v_pick_s4(words, 2 * i + high), d);
        take4(t, high * GROUP / 2 + 4 * k, w);
    }
}

INLINE void block_q4_1(const uint8_t *p, int64_t row, taker t) {
    const v16 d = some_scales(p + 2 * row), m = some_scales(p + STRIPS * SCALES + 2 * row);
    p = words_of(p + 2 * STRIPS * SCALES, row, 4);
    UNROLL for (int high = 0; high < 2; high++) for (int k = 0; k < 4; k++) {
        const v16 words = some_words(p + k * WORDS);
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = v_fma(v_pick_u4(words, 2 * i + high), d, m);
        take4(t, high * GROUP / 2 + 4 * k, w);
    }
}

INLINE void block_halves(ls_block_type type, const uint8_t *p, int64_t row, taker t) {
    p = words_of(p, row, 16);
    for (int k = 0; k < 16; k += 2) {
        const v16 first = some_words(p + k * WORDS), second = some_words(p + (k + 1) * WORDS);
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = half_of(type, i < 2 ? first : second, i & 1);
        take4(t, 2 * k, w);
    }
}

INLINE void block_bf16(const uint8_t *p, int64_t row, taker t) {
    block_halves(LS_BLOCK_BF16, p, row, t);
}

INLINE void block_f16(const uint8_t *p, int64_t row, taker t) {
    block_halves(LS_BLOCK_F16, p, row, t);
}

/* ---- a tile's columns as floats ---- */

/* The words and scales of rows from `row` on, which are read some blocks later. */
INLINE void fetch(const uint8_t *p, int64_t row, layout l) {
    for (int i = 0; i < l.nscales; i++) v_prefetch(p + i * STRIPS * SCALES + 2 * row);
    p = words_of(p + l.nscales * STRIPS * SCALES, row, l.nwords);
    for (int i = 0; i < l.nwords; i++) v_prefetch(p + i * WORDS);
}

INLINE void each_block(block_fn *block, layout l, const ls_strip_part *j, float *out) {
    enum { ROWS = STRIPS * LS_LANES, BLOCKS = 4 };
    const int64_t step = ROWS * l.nbytes, group = j->C / GROUP * step;
    const uint8_t *p = (const uint8_t *)j->strips + j->k / GROUP * step;
    for (int64_t i = 0; i < j->depth; i += GROUP, p += step)
        for (int64_t n = 0, v = j->v; n < j->n; n += WIDTH, v += WIDTH) {
            const uint8_t *at = p + v / ROWS * group;
            if (v % LS_LANES == 0) fetch(at + BLOCKS * step, v % ROWS, l);
            block(at, v % ROWS, (taker){.out = out + i * j->n + n, .width = j->n});
        }
}

void LS_K(unpack_strips)(const ls_strip_part *j, float *out) {
    switch (j->type) {
    case LS_BLOCK_Q8_0: each_block(block_q8_0, layout_of(LS_BLOCK_Q8_0), j, out); break;
    case LS_BLOCK_Q4_0: each_block(block_q4_0, layout_of(LS_BLOCK_Q4_0), j, out); break;
    case LS_BLOCK_Q4_1: each_block(block_q4_1, layout_of(LS_BLOCK_Q4_1), j, out); break;
    case LS_BLOCK_BF16: each_block(block_bf16, layout_of(LS_BLOCK_BF16), j, out); break;
    default: each_block(block_f16, layout_of(LS_BLOCK_F16), j, out); break;
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

INLINE void add_block(block_fn *block, int rows, const uint8_t *p, int part, const float *x,
                      float sum[LS_GEMM_SOME][WIDTH]) {
    vr sums[LS_GEMM_SOME];
    UNROLL for (int r = 0; r < rows; r++) sums[r] = r_load(sum[r]);
    block(p, part * WIDTH, (taker){.x = x, .rows = rows, .sum = sums});
    UNROLL for (int r = 0; r < rows; r++) r_store(sum[r], sums[r]);
}

/* The table is read from the first byte to the last; sums of a group stay in L1. */
INLINE void each_group(block_fn *block, int64_t nbytes, int rows, const ls_gemm_some_job *j) {
    const int64_t step = STRIPS * LS_LANES * nbytes;
    const uint8_t *p = j->strips;
    group_sums sum = {0};
    for (int64_t v = 0; v < j->V; v += STRIPS * LS_LANES) {
        begin_sums(j, v, sum);
        for (int64_t k = 0; k < j->C; k += GROUP, p += step) {
            for (int64_t i = 0; i < step; i += LINE) v_prefetch(p + AHEAD + i);
            for (int part = 0; part < PARTS; part++)
                add_block(block, rows, p, part, j->x + k * rows, sum[part]);
        }
        end_sums(j, v, sum);
    }
}

INLINE void all_groups(int rows, const ls_gemm_some_job *j) {
    switch (j->type) {
    case LS_BLOCK_Q8_0: each_group(block_q8_0, 34, rows, j); break;
    case LS_BLOCK_Q4_0: each_group(block_q4_0, 18, rows, j); break;
    case LS_BLOCK_Q4_1: each_group(block_q4_1, 20, rows, j); break;
    case LS_BLOCK_BF16: each_group(block_bf16, 64, rows, j); break;
    default: each_group(block_f16, 64, rows, j); break;
    }
}

void LS_K(gemm_some)(const ls_gemm_some_job *j) {
    switch (j->room) {
    case 4: all_groups(4, j); break;
    case 6: all_groups(6, j); break;
    default: all_groups(8, j); break;
    }
}
