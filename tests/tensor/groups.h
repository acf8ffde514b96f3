/* groups.h - calls the f32 kernels once each, in groups (layer_groups.h has more), on ordinary and
 * on extreme numbers: kernels_test.c compares the results with formulas, variant_bits.c between
 * variants. For other types, see elements.h. */
#ifndef LS_TEST_GROUPS_H
#define LS_TEST_GROUPS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/min.h"
#include "base/random.h"
#include "tensor/block_scales.h"
#include "tensor/gemv.h"
#include "tensor/kernels.h"
#include "tensor/stored.h"

enum {
    ROWS = 3,
    MAX_N = 211,
    CELLS = ROWS * MAX_N + 260, /* odd: arrays of `values` begin at all offsets in a vector */
    NIN = 4,
    NOUT = 8,
};

/* Inputs, and what the kernels write: each array is followed by cells that must stay UNTOUCHED. */
typedef struct values {
    float in[NIN][CELLS];
    float out[NOUT][CELLS];
} values;

static const float UNTOUCHED = -77.25f;

static inline void fill(values *v, bool wild) {
    static const float odd[] = {1e18f,  -1e18f,  3e8f, -100.0f, 88.5f, -0.0f,
                                1e-41f, -1e-41f, 0.0f, 1e-20f,  -3e8f, FLT_MIN};
    for (uint64_t i = 0; i < NIN; i++) {
        ls_random_normal((ls_random_place){5, LS_STREAM_SAMPLE, i, 0}, CELLS, 2.0f, v->in[i]);
        for (size_t j = 0; wild && j < CELLS; j++)
            if ((j * 7 + i) % 5 < 2) v->in[i][j] = odd[(j + 5 * i) % 12];
    }
    for (int i = 0; i < NOUT; i++)
        for (int j = 0; j < CELLS; j++) v->out[i][j] = UNTOUCHED;
}

/* Output i starts as a copy of input j. */
static inline void start_from(values *v, int i, int j, int64_t n) {
    memcpy(v->out[i], v->in[j], (size_t)n * sizeof(float));
}

/* ---- calls each group of kernels once, on rows of n, with outputs in v->out ---- */

typedef void group_fn(const ls_kernels *, int64_t n, values *);

static inline void do_layernorm(const ls_kernels *k, int64_t n, values *v) {
    int64_t rows = n ? ROWS : 0; /* an empty row has no mean */
    float *mean = v->out[1], *rstd = v->out[2];
    k->layernorm(rows, n, v->in[0], v->in[1], v->in[2], v->out[0], mean, rstd);
    k->layernorm_dx(rows, n, v->in[3], v->in[0], v->in[1], mean, rstd, NULL, v->out[3]);
    start_from(v, 4, 2, rows * n); /* in place of the residual */
    k->layernorm_dx(rows, n, v->in[3], v->in[0], v->in[1], mean, rstd, v->out[4], v->out[4]);
    start_from(v, 5, 2, n);
    start_from(v, 6, 1, n);
    k->layernorm_dparams(rows, n, n / 3, n, v->in[3], v->in[0], mean, rstd, v->out[5], v->out[6]);
}

static inline void do_sums(const ls_kernels *k, int64_t n, values *v) {
    start_from(v, 0, 1, n);
    k->column_sum(ROWS, n, n / 3, n - n / 4, v->in[0], v->out[0]);
    k->add(n, v->in[0], v->in[1], v->out[1]);
    start_from(v, 2, 0, n);
    k->add(n, v->out[2], v->out[2], v->out[2]);
    v->out[3][0] = k->sum_squares(n, v->in[0]);
    start_from(v, 4, 1, n);
    k->ema(n, 0.25f, v->in[0], v->out[4]);
    k->squares_and_dot(n, v->in[0], v->in[1], v->out[5]);
}

static inline void do_gelu(const ls_kernels *k, int64_t n, values *v) {
    k->gelu(n, v->in[0], v->out[0]);
    k->gelu_back(n, v->in[0], v->in[1], v->out[1], v->out[3]);
    start_from(v, 2, 1, n);
    k->gelu_back(n, v->in[0], v->out[2], v->out[2], v->out[4]); /* in place of dy */
}

/* The first query sees one key, half of them, or all. */
static inline void do_softmax(const ls_kernels *k, int64_t n, values *v, int64_t first) {
    start_from(v, 0, 0, ROWS * n);
    k->softmax_causal(ROWS, n, first, 0.3f, v->out[0], v->out[1]);
    start_from(v, 2, 0, ROWS * n);
    k->softmax_causal_again(ROWS, n, first, 0.3f, v->out[2], v->out[1]);
    start_from(v, 3, 1, ROWS * n);
    k->softmax_causal_dx(ROWS, n, 0.3f, v->out[0], v->out[3]);
}
static inline void do_softmax_one(const ls_kernels *k, int64_t n, values *v) {
    do_softmax(k, n, v, 0);
}
static inline void do_softmax_half(const ls_kernels *k, int64_t n, values *v) {
    do_softmax(k, n, v, n / 2);
}
static inline void do_softmax_all(const ls_kernels *k, int64_t n, values *v) {
    do_softmax(k, n, v, n);
}

static inline void do_cross_entropy(const ls_kernels *k, int64_t n, values *v) {
    if (n == 0) return; /* there must be a target */
    v->out[2][0] = k->cross_entropy(n, v->in[0], v->out[1]);
    start_from(v, 0, 0, n);
    k->cross_entropy_dx(n, v->out[0], v->out[1], n / 2, 0.125f);
}

static const float DRAW_BY = 0.7f;

/* Outputs: the maxima; the sum's 8 bytes; the weights. */
static inline void do_draw(const ls_kernels *k, int64_t n, values *v) {
    float top = -INFINITY;
    k->maxima(ROWS * n, v->in[0], v->out[0]);
    for (int64_t i = 0; i < ROWS * n; i++) top = fmaxf(top, v->in[0][i]);
    double sum = k->draw_weights(ROWS * n, v->in[0], top, DRAW_BY, v->out[2]);
    memcpy(v->out[1], &sum, sizeof sum);
}

static const ls_update_scalars SCALARS = {.lr = 1e-3f,
                                          .beta1 = 0.9f,
                                          .beta2 = 0.95f,
                                          .eps = 1e-8f,
                                          .weight_decay = 0.1f,
                                          .momentum = 0.8f,
                                          .correct1 = 1 / (1 - 0.81f),
                                          .correct2 = 1 / (1 - 0.9025f),
                                          .grad_scale = 0.7f,
                                          .weight = 0.3f,
                                          .nesterov = true};

/* The weights in output 0, the states in outputs 1 to 3. */
static inline void do_update(const ls_kernels *k, int64_t n, values *v, ls_update_rule rule) {
    float *const states[] = {v->out[1], v->out[2], v->out[3]};
    start_from(v, 0, 1, n);
    start_from(v, 1, 2, n);
    start_from(v, 3, 0, n);
    for (int64_t i = 0; i < n; i++) v->out[2][i] = fabsf(v->in[3][i]); /* a mean of squares */
    for (int64_t i = 0; rule == LS_RULE_ADAGRAD && i < n; i++) v->out[1][i] = fabsf(v->out[1][i]);
    k->update[rule](n, &SCALARS, v->in[0], v->out[0], states);
}
static inline void do_adamw(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_ADAMW);
}
static inline void do_adam(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_ADAM);
}
static inline void do_sgd(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_SGD);
}
static inline void do_momentum(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_MOMENTUM);
}
static inline void do_lion(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_LION);
}
static inline void do_adagrad(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_ADAGRAD);
}
static inline void do_schedule_free(const ls_kernels *k, int64_t n, values *v) {
    do_update(k, n, v, LS_RULE_SCHEDULE_FREE);
}

/* Sums continue from the values in y. The weights are representable in 16 bits, so that no sum is
 * NaN. */
static inline void do_gemv(const ls_kernels *k, int64_t n, values *v) {
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    static const ls_block_type halves[] = {LS_BLOCK_F32, LS_BLOCK_BF16, LS_BLOCK_F16};
    float w[ROWS * MAX_N];
    uint16_t half[ROWS * MAX_N];
    for (int64_t i = 0; i < ROWS * n; i++) w[i] = fminf(fmaxf(v->in[1][i], -100.0f), 100.0f);
    for (int i = 0; i < 3; i++) {
        if (i > 0) k->narrow(types[i], (size_t)(ROWS * n), w, half);
        const void *weights = i > 0 ? (const void *)half : w;
        start_from(v, 2 * i, 3, n);
        k->gemv(types[i], ROWS, n, v->in[0], weights, n, v->out[2 * i]);
        k->gemv_table(&(ls_gemv_table_job){.w = {.data = weights, .type = halves[i]},
                                           .V = ROWS,
                                           .C = n,
                                           .x = v->in[0],
                                           .y = v->out[2 * i + 1]});
    }
}

/* In bf16: weights in bf16, and in f32 with its values. */
static inline void do_gemv_bf16(const ls_kernels *k, int64_t n, values *v) {
    static float x[ROWS * MAX_N], w[ROWS * MAX_N];
    static uint16_t half[ROWS * MAX_N];
    k->round_bf16(ROWS * n, v->in[0], x);
    k->round_bf16(ROWS * n, v->in[1], w);
    k->narrow(LS_BF16, (size_t)(ROWS * n), w, half);
    for (int i = 0; i < 2; i++) {
        const void *weights = i ? (const void *)half : w;
        start_from(v, 2 * i, 3, n);
        k->gemv_bf16(i ? LS_BF16 : LS_F32, ROWS, n, x, weights, n, v->out[2 * i]);
        k->gemv_table_bf16(
            &(ls_gemv_table_job){.w = {.data = weights, .type = i ? LS_BLOCK_BF16 : LS_BLOCK_F32},
                                 .V = ROWS,
                                 .C = n,
                                 .x = x,
                                 .y = v->out[2 * i + 1]});
    }
    memcpy(v->out[4], x, (size_t)(ROWS * n) * sizeof *x);
    k->gemv_table_bf16(
        &(ls_gemv_table_job){.w = {.data = half, .type = LS_BLOCK_BF16}, /* for many short rows */
                             .V = ROWS * n / 16,
                             .C = 16,
                             .x = x,
                             .bias = v->in[2],
                             .y = v->out[5]});
    k->to_bf16(ROWS * n, v->in[0], half);
    k->widen(LS_BF16, (size_t)(ROWS * n), half, v->out[6]);
}

typedef void blocks_fn(const ls_kernels *, const ls_gemv_table_job *);

/* Blocks of any bytes, but with scales that are finite, of the types from `first` on: of n rows,
 * each has two blocks of 256. Odd numbers of rows are read from strips, where the type has them. */
static inline void do_blocks(const ls_kernels *k, int64_t n, values *v, blocks_fn *fn,
                             ls_block_type first) {
    enum { DEPTH = 2 * LS_BLOCK_MOST, NBYTES = DEPTH / 32 * 34 };
    static uint8_t w[MAX_N * NBYTES], strips[MAX_N * NBYTES];
    float x[DEPTH];
    for (int i = 0; i < DEPTH; i++) x[i] = fminf(fmaxf(v->in[0][i % MAX_N], -1e9f), 1e9f);
    for (int i = 0; i < NOUT && (int)first + i < LS_NBLOCK_TYPES; i++) {
        ls_block_type type = (ls_block_type)((int)first + i);
        int64_t elements = ls_block_elements(type), nblocks = n * (DEPTH / elements);
        int64_t each = (int64_t)ls_block_nbytes(type, elements), nbytes = nblocks * each;
        for (int64_t j = 0; j < nbytes; j++) {
            uint32_t bits;
            memcpy(&bits, &v->in[1][j % MAX_N], sizeof bits);
            w[j] = (uint8_t)((bits ^ (uint32_t)j * 2654435761u) >> 24);
        }
        for (int64_t j = 0; j < nblocks; j++)
            for (int s = 0, at = 0; s < block_scales(type, &at); s++)
                w[j * each + at + 2 * s + 1] &= 0xbf;
        const float *bias = i % 2 ? v->in[2] : NULL;
        ls_stored table = {.data = w, .type = type};
        if (n % 2 && ls_gemv_has_strips(type, DEPTH)) {
            k->gemv_strips(type, n, DEPTH, w, strips);
            table.strips = strips;
        }
        fn(k, &(ls_gemv_table_job){
                  .w = table, .V = n, .C = DEPTH, .x = x, .bias = bias, .y = v->out[i]});
    }
}

static inline void blocks_in_f32(const ls_kernels *k, const ls_gemv_table_job *j) {
    k->gemv_table(j);
}
static inline void do_gemv_blocks(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_in_f32, LS_BLOCK_Q8_0);
}
static inline void do_gemv_more(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_in_f32, LS_BLOCK_Q3_K);
}

/* Kernels that can't round blocks in a product get their rounded values. */
static inline void blocks_in_bf16(const ls_kernels *k, const ls_gemv_table_job *given) {
    enum { MOST = MAX_N * 2 * LS_BLOCK_MOST };
    static float x[2 * LS_BLOCK_MOST], rounded[MOST];
    ls_gemv_table_job j = *given;
    k->round_bf16(j.C, j.x, x);
    j.x = x;
    if (k->bf16_depth == 1) {
        ls_stored_read(k, j.w, 0, j.V * j.C, rounded);
        k->round_bf16(j.V * j.C, rounded, rounded);
        j.w = (ls_stored){.data = rounded, .type = LS_BLOCK_F32};
    }
    k->gemv_table_bf16(&j);
}
static inline void do_gemv_blocks_bf16(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_in_bf16, LS_BLOCK_Q8_0);
}
static inline void do_gemv_more_bf16(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_in_bf16, LS_BLOCK_Q3_K);
}

/* Of the whole groups of strips: products with three to five rows, x and x from later values on;
 * then values of the last sixteen rows, as many as results have room. */
static inline void blocks_with_some(const ls_kernels *k, const ls_gemv_table_job *j) {
    enum { DEPTH = LS_BLOCK_MOST, ROOM = 8, SIXTEEN = 16 };
    static float x[2 * DEPTH * ROOM], tile[DEPTH * SIXTEEN];
    const int64_t V = j->V / LS_GEMV_GROUP * LS_GEMV_GROUP,
                  M = j->V % 4 == 1 ? 3 : ls_min(5, CELLS / ls_max(V, 1));
    const int64_t room = M > 4 ? 8 : 4;
    if (!j->w.strips || V == 0) return;
    for (int64_t i = 0; i < j->C * room; i++) x[i] = j->x[(i / room + 37 * (i % room)) % j->C];
    for (int64_t i = 0; i < M * V; i++) j->y[i] = j->x[i % j->C];
    k->gemm_some(&(ls_gemm_some_job){.type = j->w.type,
                                     .strips = j->w.strips,
                                     .V = V,
                                     .C = j->C,
                                     .M = M,
                                     .room = room,
                                     .ldy = V,
                                     .x = x,
                                     .y = j->y});
    k->unpack_strips(&(ls_strip_part){.type = j->w.type,
                                      .strips = j->w.strips,
                                      .C = j->C,
                                      .v = V - SIXTEEN,
                                      .n = SIXTEEN,
                                      .k = DEPTH,
                                      .depth = DEPTH},
                     tile);
    for (int64_t i = M * V; i < CELLS; i++) j->y[i] = tile[i * 7 % (DEPTH * SIXTEEN)];
}
static inline void do_some(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_with_some, LS_BLOCK_Q8_0);
}
static inline void do_some_more(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_with_some, LS_BLOCK_Q3_K);
}

/* A panel of three rows, with some sizes of as many as results have room: x, turned around. */
static inline void blocks_in_int8(const ls_kernels *k, const ls_gemv_table_job *j) {
    enum { MOST = 2 * LS_BLOCK_MOST };
    static ls_int8_block blocks[LS_INT8_ROWS * MOST / LS_INT8_GROUP];
    float x[MOST];
    int64_t R = j->V % 32 == 1 ? ls_min(CELLS / j->V, 53) : 3;
    for (int64_t r = 0; r < R; r++) {
        for (int64_t i = 0; i < j->C; i++) x[i] = j->x[(i + 37 * r) % j->C];
        k->int8_quantize(j->C, x, blocks + r, R);
    }
    k->int8_rows(&(ls_int8_job){.w = j->w,
                                .V = j->V,
                                .C = j->C,
                                .R = R,
                                .x = blocks,
                                .bias = j->bias,
                                .y = j->y,
                                .ldy = j->V});
}
static inline void do_int8(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_in_int8, LS_BLOCK_Q8_0);
}
static inline void do_int8_more(const ls_kernels *k, int64_t n, values *v) {
    do_blocks(k, n, v, blocks_in_int8, LS_BLOCK_Q3_K);
}

/* Four queries of n elements over a chunk of keys and values, and some of the next: scores from
 * each chunk on, and as many columns of the mixed values as there are. */
static inline void do_kept(const ls_kernels *k, int64_t n, values *v, bool bf16,
                           ls_kept_type type) {
    enum { QUERIES = 4, SEEN = LS_KEPT_PAGE + 21, S_ROW = 2 * LS_KEPT_PAGE };
    static float kept[2 * 2 * LS_KEPT_PAGE * MAX_N], q[QUERIES * MAX_N], s[QUERIES * S_ROW];
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        kept[i] = v->in[i % 3][i % CELLS] + 0.01f * (float)(i % 17);
    for (int64_t i = 0; i < QUERIES * n; i++)
        q[i] = v->in[3][i % CELLS] - 0.1f * (float)(i / CELLS);
    for (int i = 0; i < QUERIES * S_ROW; i++) s[i] = UNTOUCHED;
    if (bf16) k->round_bf16((int64_t)(sizeof kept / sizeof *kept), kept, kept);
    if (bf16) k->round_bf16(QUERIES * n, q, q);
    static uint16_t halves[2 * 2 * LS_KEPT_PAGE * MAX_N];
    k->narrow(LS_F16, sizeof halves / sizeof *halves, kept, halves);
    ls_gemv_kept_job j = {.queries = QUERIES,
                          .D = n,
                          .type = type,
                          .kept = type == LS_KEPT_F16 ? (const float *)(const void *)halves : kept,
                          .page = 2 * ls_kept_half(type, n),
                          .q = q,
                          .s = s,
                          .s_row = S_ROW,
                          .y = v->out[1]};
    (bf16 ? k->kept_scores_bf16 : k->kept_scores)(&j, 0, SEEN);
    memcpy(v->out[0], s, sizeof s);
    (bf16 ? k->kept_scores_bf16 : k->kept_scores)(&j, LS_KEPT_PAGE, SEEN);
    for (int i = 0; i < QUERIES * S_ROW; i++) s[i] = v->in[1][i];
    if (bf16) k->round_bf16(QUERIES * S_ROW, s, s);
    (bf16 ? k->kept_mix_bf16 : k->kept_mix)(&j, SEEN, 0, n);
    j.queries = 3;
    j.y = v->out[2];
    (bf16 ? k->kept_mix_bf16 : k->kept_mix)(&j, SEEN - 30, n / 3, n);
}

static inline void do_gemv_kept(const ls_kernels *k, int64_t n, values *v) {
    do_kept(k, n, v, false, LS_KEPT_F32);
}
static inline void do_kept_bf16(const ls_kernels *k, int64_t n, values *v) {
    do_kept(k, n, v, true, LS_KEPT_F32);
}
static inline void do_kept_f16(const ls_kernels *k, int64_t n, values *v) {
    do_kept(k, n, v, false, LS_KEPT_F16);
}
static inline void do_kept_q8(const ls_kernels *k, int64_t n, values *v) {
    do_kept(k, n, v, false, LS_KEPT_Q8);
}

/* Tiles [tile_m, tile_n] of a matrix with rows 4 longer. */
static inline void do_gemm_parts(const ls_kernels *k, int64_t n, values *v) {
    k->pack_a(n, ROWS, v->in[0], ROWS, 1, v->out[0]);
    k->pack_a(n, ROWS, v->in[0], 1, n, v->out[1]);
    k->pack_b(ROWS, n, v->in[1], n, 1, v->out[2]);
    k->pack_b(ROWS, n, v->in[1], 1, ROWS, v->out[3]);
    int64_t depth = n < 10 ? n : 10, ldc = k->tile_n + 4;
    start_from(v, 4, 3, k->tile_m * ldc);
    k->gemm_tile(depth, v->in[0], 1, k->tile_m, v->in[1], NULL, v->out[4], ldc);
    k->gemm_tile(depth, v->in[0], 1, k->tile_m, v->in[1], v->in[2], v->out[5], ldc);
    v->out[6][0] = k->fma_peak(n % 4);
    v->out[7][0] = (float)k->tile_m;
    v->out[7][1] = (float)k->tile_n;
}

#endif
