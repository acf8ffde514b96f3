/* gemv_bf16.c - products of one row in bf16, to the bits of gemm_bf16.c: loops in blocks while the
 * processor takes numbers below 1.2e-38 as zeros, or plain C.
 *
 * All operands are bf16 already: those of x in f32, weights in either type.
 */
#include "tensor/kernels/bf16.h"
#include "tensor/kernels/variant.h"

void LS_K(round_bf16)(int64_t n, const float *x, float *y) {
    EACH for (int64_t i = 0; i < n; i++) y[i] = bf16_round(x[i]);
}

INLINE const void *weight_at(bool half, const void *w, int64_t i) {
    return (const char *)w + i * (half ? 2 : 4);
}

INLINE float weight(bool half, const void *w, int64_t i) {
    return half ? f32_of_bf16(((const uint16_t *)w)[i]) : ((const float *)w)[i];
}

/* Adds products with weights that are `step` apart. */
static void exact_add(const ls_gemv_table_job *j, int64_t first, int64_t step, bf16_sum *s) {
    bool half = j->w.type == LS_BLOCK_BF16;
    const void *w = weight_at(half, j->w.data, first);
    for (int64_t k = 0; k < j->C; k++) bf16_add(s, j->x[k], weight(half, w, k * step));
}

static float exact_sum(const ls_gemv_table_job *j, int64_t first, int64_t step, float start) {
    bf16_sum s = {.sum = start};
    exact_add(j, first, step, &s);
    return bf16_sum_of(&s);
}

static void exact_columns(const ls_gemv_table_job *j, int64_t ld, const float *from) {
    for (int64_t i = 0; i < j->V; i++) j->y[i] = exact_sum(j, i, ld, from[i]);
}

static void exact_rows(const ls_gemv_table_job *j) {
    for (int64_t i = 0; i < j->V; i++)
        j->y[i] = exact_sum(j, i * j->C, 1, j->bias ? j->bias[i] : 0.0f);
}

static void exact_scores(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    for (int64_t i = 0; i < j->queries; i++)
        for (int64_t t = first; t < end; t++) {
            const float *key = j->kept + t / LS_KEPT_PAGE * j->page + t % LS_KEPT_PAGE;
            const ls_gemv_table_job one = {
                .w = {.data = key, .type = LS_BLOCK_F32}, .C = j->D, .x = j->q + i * j->D};
            j->s[i * j->s_row + t] = exact_sum(&one, 0, LS_KEPT_PAGE, 0.0f);
        }
}

static void exact_mix(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    for (int64_t i = 0; i < j->queries; i++)
        for (int64_t c = first; c < end; c++) {
            bf16_sum sum = {0};
            for (int64_t t = 0; t < seen; t += LS_KEPT_PAGE) {
                const float *values =
                    j->kept + t / LS_KEPT_PAGE * j->page + LS_KEPT_PAGE * j->D + c;
                const ls_gemv_table_job some = {.w = {.data = values, .type = LS_BLOCK_F32},
                                                .C = seen - t < LS_KEPT_PAGE ? seen - t
                                                                             : LS_KEPT_PAGE,
                                                .x = j->s + i * j->s_row + t};
                exact_add(&some, 0, j->D, &sum);
            }
            j->y[i * j->D + c] = bf16_sum_of(&sum);
        }
}

#ifdef V_FLUSH

void LS_K(kept_scores_bf16)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    v_flush_state mode = v_flush_begin();
    LS_K(kept_scores_in_blocks)(j, first, end);
    if (!v_flush_end(mode)) exact_scores(j, first, end);
}

void LS_K(kept_mix_bf16)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    v_flush_state mode = v_flush_begin();
    LS_K(kept_mix_in_blocks)(j, seen, first, end);
    if (!v_flush_end(mode)) exact_mix(j, seen, first, end);
}

/* Where results may have to be computed again: some at a time. */
enum { COLUMNS = V_FLUSH_REPEATS ? 256 : 1 << 30, ROWS = V_FLUSH_REPEATS ? 64 : 1 << 30 };

static void some_columns(const ls_gemv_table_job *j, int64_t ld) {
    float before[V_FLUSH_REPEATS ? COLUMNS : 1];
    bool half = j->w.type == LS_BLOCK_BF16;
    if (V_FLUSH_REPEATS) memcpy(before, j->y, (size_t)j->V * sizeof *before);
    v_flush_state mode = v_flush_begin();
    LS_K(gemv_in_blocks)(half ? LS_BF16 : LS_F32, j->C, j->V, j->x, j->w.data, ld, j->y);
    if (!v_flush_end(mode)) exact_columns(j, ld, before);
}

static void some_rows(const ls_gemv_table_job *j) {
    v_flush_state mode = v_flush_begin();
    LS_K(gemv_table_in_blocks)(j);
    if (!v_flush_end(mode)) exact_rows(j);
}

#else

void LS_K(kept_scores_bf16)(const ls_gemv_kept_job *j, int64_t first, int64_t end) {
    exact_scores(j, first, end);
}

void LS_K(kept_mix_bf16)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end) {
    exact_mix(j, seen, first, end);
}

enum { COLUMNS = 1 << 30, ROWS = 1 << 30 };

static void some_columns(const ls_gemv_table_job *j, int64_t ld) { exact_columns(j, ld, j->y); }
static void some_rows(const ls_gemv_table_job *j) { exact_rows(j); }

#endif

void LS_K(gemv_bf16)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                     float *y) {
    bool half = type == LS_BF16;
    for (int64_t i = 0; i < N; i += COLUMNS) {
        ls_gemv_table_job j = {
            .w = {.data = weight_at(half, w, i), .type = half ? LS_BLOCK_BF16 : LS_BLOCK_F32},
            .V = N - i < COLUMNS ? N - i : COLUMNS,
            .C = K,
            .x = x,
            .y = y + i};
        some_columns(&j, ld);
    }
}

/* `pairs`: by the instruction for pairs, which tables of blocks need. */
static void table(const ls_gemv_table_job *whole, bool pairs) {
    bool half = whole->w.type == LS_BLOCK_BF16;
    if (!half && whole->w.type != LS_BLOCK_F32) {
        ls_gemv_table_job blocks = *whole;
        blocks.bf16 = pairs;
        some_rows(&blocks);
        return;
    }
    for (int64_t i = 0; i < whole->V; i += ROWS) {
        ls_gemv_table_job j = *whole;
        j.bf16 = pairs;
        j.w.data = weight_at(half, j.w.data, i * j.C);
        j.V = j.V - i < ROWS ? j.V - i : ROWS;
        if (j.bias) j.bias += i;
        j.y += i;
        some_rows(&j);
    }
}

void LS_K(gemv_table_bf16)(const ls_gemv_table_job *j) { table(j, false); }
#ifdef V_PAIRS
void LS_K(pairs_gemv_table)(const ls_gemv_table_job *j) { table(j, true); }
#endif
