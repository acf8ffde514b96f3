/* gemv_strips.c - strips.h: strips are written, and multiplied with one row, or with two or three:
 * as fast as memory delivers them. */
#include "tensor/kernels/block_lanes.h"
#include "tensor/kernels/strips.h"

/* ---- writing ---- */

static void put_groups(layout l, int64_t V, int64_t C, const uint8_t *from, uint8_t *to) {
    const int64_t stride = C / GROUP * l.nbytes, strip = LS_LANES * stride;
    for (int64_t v = 0; v + STRIPS * LS_LANES <= V; v += STRIPS * LS_LANES, from += STRIPS * strip)
        for (const uint8_t *p = from; p < from + stride; p += l.nbytes) {
            for (int k = 0; k < l.nscales; k++)
                for (int s = 0; s < STRIPS; s++, to += SCALES)
                    LS_K(put_lane_f16)(p + s * strip + 2 * k, stride, to);
            for (int s = 0; s < STRIPS; s++, to += l.nwords * WORDS)
                LS_K(put_lane_words)(p + s * strip + 2 * l.nscales, stride, l.nwords, to);
        }
}

/* block_lanes.h */
static void put_pairs(ls_block_type type, int64_t V, int64_t C, const uint8_t *from, uint8_t *to) {
    enum { PAIR = 2 * LS_LANES };
    const ls_lane_type t = lane_type_of(type);
    const int64_t stride = C / t.elements * t.nbytes;
    for (int64_t v = 0; v + PAIR <= V; v += PAIR, from += PAIR * stride)
        for (int64_t at = 0; at < stride; at += t.nbytes)
            for (int64_t row = 0; row < PAIR; row += LS_LANES, to += LS_LANES * t.nbytes)
                LS_K(lane_block)(type, from + row * stride + at, stride, to);
}

void LS_K(gemv_strips)(ls_block_type type, int64_t V, int64_t C, const uint8_t *from, uint8_t *to) {
    if (ls_strips_in_groups(type))
        put_groups(layout_of(type), V, C, from, to);
    else
        put_pairs(type, V, C, from, to);
}

/* ---- products ---- */

/* Strip s of scales, or of minima. */
INLINE v16 scale_at(const uint8_t *p, int s) {
    return v_load_f16((const uint16_t *)(const void *)(p + s * SCALES));
}

INLINE block block_at(layout l, const uint8_t *p) {
    block b = {.words = p + l.nscales * STRIPS * SCALES};
    UNROLL for (int s = 0; s < STRIPS; s++) {
        if (l.nscales > 0) gemv_scales(scale_at(p, s), l.most, b.d[s]);
        if (l.nscales > 1) b.m[s] = scale_at(p + STRIPS * SCALES, s);
    }
    return b;
}

/* What weights are multiplied with: rows of x, 1 to FEW, all from the same value of k on. */
enum { FEW = LS_GEMV_FEW };
typedef struct factors {
    const float *x;
    int64_t ldx;
    int rows, bf16; /* both constant where a loop over weights is compiled */
} factors;

/* The sums of a group: of each row of x, those of each strip. */
typedef gemv_sums group_sums[FEW][STRIPS];

/* Four weights of each row of strip s. */
INLINE void add_four(factors f, weight_fn *weight, const block *b, int s, place at,
                     group_sums sum) {
    const float *x = f.x + 16 * at.half + 4 * at.four;
    v16 w[4];
    UNROLL for (int i = 0; i < 4; i++) w[i] = weight(b, s, at, i);
    UNROLL for (int r = 0; r < f.rows; r++) gemv_four(f.bf16, x + r * f.ldx, w, &sum[r][s]);
}

/* The same of all strips, for one row of x: a weight of each strip after the other, so that few
 * registers hold weights. */
INLINE void add_fours(const float *x, weight_fn *weight, const block *b, place at,
                      gemv_sums sum[STRIPS]) {
    x += 16 * at.half + 4 * at.four;
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int s = 0; s < STRIPS; s++) sum[s].all =
        v_fma(v_set1(x[i]), weight(b, s, at, i), sum[s].all);
}

INLINE void add_block(factors f, weight_fn *weight, const block *b, group_sums sum) {
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int four = 0; four < 4; four++) {
        const place at = {half, four};
        if (f.rows == 1 && !f.bf16)
            add_fours(f.x, weight, b, at, sum[0]);
        else
            UNROLL for (int s = 0; s < STRIPS; s++) add_four(f, weight, b, s, at, sum);
    }
}

/* y [rows, .], rows ldy apart: the chains go on from its values. */
INLINE void each_group(factors f, weight_fn *weight, layout l, const ls_gemv_table_job *j,
                       int64_t ldy) {
    const int64_t nblocks = j->C / GROUP, nbytes = STRIPS * LS_LANES * l.nbytes;
    const float *x = f.x;
    const uint8_t *p = j->w.strips;
    for (int64_t v = 0; v + STRIPS * LS_LANES <= j->V; v += STRIPS * LS_LANES) {
        group_sums sum;
        UNROLL for (int r = 0; r < f.rows; r++) UNROLL for (int s = 0; s < STRIPS; s++) sum[r][s] =
            gemv_sums_from(j->y + r * ldy + v + s * LS_LANES);
        for (int64_t i = 0; i < nblocks; i++, p += nbytes) {
            for (int k = 0; k < nbytes; k += LINE) v_prefetch(p + AHEAD + k);
            const block b = block_at(l, p);
            f.x = x + i * GROUP;
            add_block(f, weight, &b, sum);
            UNROLL for (int r = 0; r < f.rows; r++) UNROLL for (int s = 0; s < STRIPS; s++)
                gemv_end_block(f.bf16, &sum[r][s]);
        }
        UNROLL for (int r = 0; r < f.rows; r++) UNROLL for (int s = 0; s < STRIPS; s++)
            v_store(j->y + r * ldy + v + s * LS_LANES, sum[r][s].all);
    }
}

INLINE void all_groups(factors f, const ls_gemv_table_job *j, int64_t ldy) {
    switch (j->w.type) {
    case LS_BLOCK_Q8_0: each_group(f, weight_q8_0, layout_of(LS_BLOCK_Q8_0), j, ldy); break;
    case LS_BLOCK_Q4_0: each_group(f, weight_q4_0, layout_of(LS_BLOCK_Q4_0), j, ldy); break;
    case LS_BLOCK_Q4_1: each_group(f, weight_q4_1, layout_of(LS_BLOCK_Q4_1), j, ldy); break;
    case LS_BLOCK_BF16: each_group(f, weight_bf16, layout_of(LS_BLOCK_BF16), j, ldy); break;
    default: each_group(f, weight_f16, layout_of(LS_BLOCK_F16), j, ldy); break;
    }
}

int64_t LS_K(gemv_strip_rows)(const ls_gemv_table_job *j) {
#ifdef V_PAIRS
    if (j->bf16)
        all_groups((factors){j->x, 0, 1, 1}, j, 0);
    else
#endif
        all_groups((factors){j->x, 0, 1, 0}, j, 0);
    return j->V / (STRIPS * LS_LANES) * (STRIPS * LS_LANES);
}

void LS_K(gemv_few)(const ls_gemv_few_job *j) {
    if (j->rows == 2)
        all_groups((factors){j->table.x, j->ldx, 2, 0}, &j->table, j->ldy);
    else
        all_groups((factors){j->table.x, j->ldx, 3, 0}, &j->table, j->ldy);
}
