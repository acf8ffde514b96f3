/* gemv_rows.h - what products of one row with rows of blocks or strips share: gemv_table.c,
 * gemv_lanes.c, gemv_strips.c. A row is a lane.
 */
#ifndef LS_TENSOR_KERNELS_GEMV_ROWS_H
#define LS_TENSOR_KERNELS_GEMV_ROWS_H

#include "tensor/kernels/gemv_inline.h"

/* Strips of a group (strips.h), which are computed together: one chain would wait for its own
 * multiply-adds. */
enum { LS_GEMV_STRIPS = LS_V16S < 32 ? 2 : 4 };

/* The rows of LS_GEMV_LANE_STRIPS strips from row v on, from the chains in y, which it completes:
 * gemv_lanes.c. */
enum { LS_GEMV_LANE_STRIPS = 2 };
void LS_K(gemv_lane_rows)(const ls_gemv_table_job *, int64_t v);

/* From the chains in y, which it completes; returns how many of the rows the strips have. Types:
 * gemv_strips.c. */
int64_t LS_K(gemv_strip_rows)(const ls_gemv_table_job *);

/* The scales for byte i of a word, whose numbers v_number() makes larger by a power of two. */
INLINE void gemv_scales(v16 d, int most, v16 out[4]) {
    UNROLL for (int i = 0; i < 4; i++) {
        const int raised = v_raised(most, i);
        out[i] = raised ? v_mul(d, v_set1(1.0f / (float)(1 << raised))) : d;
    }
}

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

#endif
