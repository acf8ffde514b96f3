/* gemv_blocks.h - products of one row with rows of blocks, for gemv_table.c.
 *
 * A row is a lane. 16 bytes of each row are read as four words, which are transposed; then a word's
 * bytes, or some of its bits, are picked in all lanes at once, widened and scaled.
 */
#ifndef LS_TENSOR_KERNELS_GEMV_BLOCKS_H
#define LS_TENSOR_KERNELS_GEMV_BLOCKS_H

#include "tensor/kernels/gemv_inline.h"

/* Strips of sixteen rows that are computed together, at most: one chain would wait for its own
 * multiply-adds. */
enum { LS_GEMV_STRIPS = LS_V16S < 32 ? 2 : 4 };

/* Computes the rows of some strips of a table [., C]. sum: where their chains start, then their
 * values. */
typedef void ls_gemv_rows(int strips, int64_t C, const float *x, const uint8_t *w, float *sum);

/* 2 or LS_GEMV_STRIPS strips: gemv_blocks.c. */
ls_gemv_rows LS_K(gemv_rows_q8_0), LS_K(gemv_rows_q4_0), LS_K(gemv_rows_q4_1);
#ifdef V_PAIRS
/* Products in bf16: x has bf16 values, weights are rounded to bf16 as they are scaled. */
ls_gemv_rows LS_K(gemv_rows_q8_0_bf16), LS_K(gemv_rows_q4_0_bf16), LS_K(gemv_rows_q4_1_bf16);
#endif

/* The rows of LS_GEMV_LANE_STRIPS strips from row v on, from the chains in y, which it completes:
 * gemv_lanes.c, for types without rows above. */
enum { LS_GEMV_LANE_STRIPS = 2 };
void LS_K(gemv_lane_rows)(const ls_gemv_table_job *, int64_t v);

/* From the chains in y, which it completes; returns how many of the rows the strips have. Types:
 * gemv_strips.c. */
int64_t LS_K(gemv_strip_rows)(const ls_gemv_table_job *);

/* Sums of rows, a row a lane: one chain; in bf16 the sum of the blocks before, and the chains of
 * this one (LS_SUM_BLOCK in kernels.h). */
typedef struct gemv_sums {
    v16 all, even, odd;
} gemv_sums;

INLINE gemv_sums gemv_sums_from(const float *start) {
    return (gemv_sums){v_load(start), v_set1(0.0f), v_set1(0.0f)};
}

/* Adds four products; in bf16 by the instruction for pairs. */
INLINE void gemv_four(int bf16, const float *x, const v16 w[4], gemv_sums *s) {
#ifdef V_PAIRS
    if (bf16) {
        s->even = r_add_two(x, w[0], w[2], s->even);
        s->odd = r_add_two(x + 1, w[1], w[3], s->odd);
        return;
    }
#endif
    (void)bf16;
    s->all = v_fma(v_set1(x[1]), w[1], v_fma(v_set1(x[0]), w[0], s->all));
    s->all = v_fma(v_set1(x[3]), w[3], v_fma(v_set1(x[2]), w[2], s->all));
}

INLINE void gemv_end_block(int bf16, gemv_sums *s) {
    if (!bf16) return;
    s->all = v_add(s->all, v_add(s->even, s->odd));
    s->even = s->odd = v_set1(0.0f);
}

/* Prefetches part k of n of these bytes: all at once would occupy what waits for memory. */
INLINE void gemv_prefetch_part(const uint8_t *p, int64_t nbytes, int64_t k, int64_t n) {
    enum { LINE = 64 };
    for (int64_t i = k * nbytes / n / LINE * LINE; i < (k + 1) * nbytes / n; i += LINE)
        v_prefetch(p + i);
}

/* Prefetches part i, of nbytes, of the strips at w, which are the next. */
INLINE void gemv_prefetch(const uint8_t *w, int64_t nbytes, int64_t i) {
    const uint8_t *p = w + nbytes * i, *end = p + nbytes;
    for (; p < end; p += 64) v_prefetch(p);
}

#endif
