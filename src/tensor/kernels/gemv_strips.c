/* gemv_strips.c - strips.h: strips are written, and multiplied with one row, or with two or three:
 * as fast as memory delivers them. */
#include "tensor/kernels/strips.h"

/* ---- writing ---- */

static void put_scale(const uint8_t *from, int64_t stride, uint8_t *to) {
    for (int i = 0; i < LS_LANES; i++) memcpy(to + 2 * i, from + i * stride, 2);
}

static void put_words(const uint8_t *from, int64_t stride, int n, uint8_t *to) {
    for (int i = 0; i < n; i += 4, from += 16) {
        v16 words[4];
        v_rows4(from, stride, words);
        for (int k = 0; k < 4; k++, to += WORDS) {
            float lanes[LS_LANES];
            v_store(lanes, words[k]);
            memcpy(to, lanes, sizeof lanes);
        }
    }
}

void LS_K(gemv_strips)(ls_block_type type, int64_t V, int64_t C, const uint8_t *from, uint8_t *to) {
    const layout l = layout_of(type);
    const int64_t stride = C / GROUP * l.nbytes, strip = LS_LANES * stride;
    for (int64_t v = 0; v + STRIPS * LS_LANES <= V; v += STRIPS * LS_LANES, from += STRIPS * strip)
        for (const uint8_t *p = from; p < from + stride; p += l.nbytes) {
            for (int k = 0; k < l.nscales; k++)
                for (int s = 0; s < STRIPS; s++, to += SCALES)
                    put_scale(p + s * strip + 2 * k, stride, to);
            for (int s = 0; s < STRIPS; s++, to += l.nwords * WORDS)
                put_words(p + s * strip + 2 * l.nscales, stride, l.nwords, to);
        }
}

/* ---- products ---- */

/* Not by memcpy() to lanes: compilers copy these in halves of a register, for which its load
 * waits. */
INLINE v16 words_at(const uint8_t *p) { return v_load((const float *)(const void *)p); }

/* Strip s of scales, or of minima. */
INLINE v16 scale_at(const uint8_t *p, int s) {
    return v_load_f16((const uint16_t *)(const void *)(p + s * SCALES));
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

INLINE factors factors_from(factors f, int64_t k) {
    f.x += k;
    return f;
}

/* Four weights of each row of strip s, for k to k + 4. */
INLINE void add_four(factors f, int64_t k, const v16 w[4], int s, group_sums sum) {
    UNROLL for (int r = 0; r < f.rows; r++) gemv_four(f.bf16, f.x + r * f.ldx + k, w, &sum[r][s]);
}

/* What is added for a block of a group at p: 32 elements of each row. */
typedef void block_fn(factors f, const uint8_t *p, group_sums sum);

INLINE void block_q8_0(factors f, const uint8_t *p, group_sums sum) {
    v16 d[STRIPS];
    UNROLL for (int s = 0; s < STRIPS; s++) d[s] = scale_at(p, s);
    p += STRIPS * SCALES;
    UNROLL for (int k = 0; k < 8; k++) {
        v16 words[STRIPS];
        UNROLL for (int s = 0; s < STRIPS; s++) words[s] = words_at(p + (8 * s + k) * WORDS);
        UNROLL for (int s = 0; s < STRIPS; s++) {
            v16 w[4];
            UNROLL for (int i = 0; i < 4; i++) w[i] = v_mul(v_pick_i8(words[s], i), d[s]);
            add_four(f, 4 * k, w, s, sum);
        }
    }
}

/* The low nibbles of sixteen bytes are elements 0 to 15, the high ones 16 to 31. */
INLINE void add_centred(factors f, int high, const uint8_t *p, const v16 d[STRIPS],
                        group_sums sum) {
    UNROLL for (int k = 0; k < 4; k++) {
        v16 words[STRIPS];
        UNROLL for (int s = 0; s < STRIPS; s++) words[s] = words_at(p + (4 * s + k) * WORDS);
        UNROLL for (int s = 0; s < STRIPS; s++) {
            v16 w[4];
            UNROLL for (int i = 0; i < 4; i++) w[i] =
                v_mul(v_pick_s4(words[s], 2 * i + high), d[s]);
            add_four(f, 4 * k, w, s, sum);
        }
    }
}

INLINE void block_q4_0(factors f, const uint8_t *p, group_sums sum) {
    v16 d[STRIPS];
    UNROLL for (int s = 0; s < STRIPS; s++) d[s] = scale_at(p, s);
    p += STRIPS * SCALES;
    add_centred(f, 0, p, d, sum);
    add_centred(factors_from(f, GROUP / 2), 1, p, d, sum);
}

typedef struct affine {
    v16 d[STRIPS], m[STRIPS];
} affine;

INLINE void add_affine(factors f, int high, const uint8_t *p, const affine *a, group_sums sum) {
    UNROLL for (int k = 0; k < 4; k++) {
        v16 words[STRIPS];
        UNROLL for (int s = 0; s < STRIPS; s++) words[s] = words_at(p + (4 * s + k) * WORDS);
        UNROLL for (int s = 0; s < STRIPS; s++) {
            v16 w[4];
            UNROLL for (int i = 0; i < 4; i++) w[i] =
                v_fma(v_pick_u4(words[s], 2 * i + high), a->d[s], a->m[s]);
            add_four(f, 4 * k, w, s, sum);
        }
    }
}

INLINE void block_q4_1(factors f, const uint8_t *p, group_sums sum) {
    affine a;
    UNROLL for (int s = 0; s < STRIPS; s++) {
        a.d[s] = scale_at(p, s);
        a.m[s] = scale_at(p + STRIPS * SCALES, s);
    }
    p += 2 * STRIPS * SCALES;
    add_affine(f, 0, p, &a, sum);
    add_affine(factors_from(f, GROUP / 2), 1, p, &a, sum);
}

INLINE void block_halves(ls_block_type type, factors f, const uint8_t *p, group_sums sum) {
    UNROLL for (int k = 0; k < 16; k += 2) UNROLL for (int s = 0; s < STRIPS; s++) {
        const uint8_t *at = p + (16 * s + k) * WORDS;
        const v16 first = words_at(at), second = words_at(at + WORDS);
        v16 w[4];
        UNROLL for (int i = 0; i < 4; i++) w[i] = half_of(type, i < 2 ? first : second, i & 1);
        add_four(f, 2 * k, w, s, sum);
    }
}

INLINE void block_bf16(factors f, const uint8_t *p, group_sums sum) {
    block_halves(LS_BLOCK_BF16, f, p, sum);
}

INLINE void block_f16(factors f, const uint8_t *p, group_sums sum) {
    block_halves(LS_BLOCK_F16, f, p, sum);
}

/* y [rows, .], rows ldy apart: the chains go on from its values. */
INLINE void each_group(factors f, block_fn *block, int64_t nbytes, const ls_gemv_table_job *j,
                       int64_t ldy) {
    const int64_t nblocks = j->C / GROUP;
    const uint8_t *p = j->w.strips;
    for (int64_t v = 0; v + STRIPS * LS_LANES <= j->V; v += STRIPS * LS_LANES) {
        group_sums sum;
        UNROLL for (int r = 0; r < f.rows; r++) UNROLL for (int s = 0; s < STRIPS; s++) sum[r][s] =
            gemv_sums_from(j->y + r * ldy + v + s * LS_LANES);
        for (int64_t i = 0; i < nblocks; i++, p += STRIPS * LS_LANES * nbytes) {
            for (int k = 0; k < STRIPS * LS_LANES * nbytes; k += LINE) v_prefetch(p + AHEAD + k);
            block(factors_from(f, i * GROUP), p, sum);
            UNROLL for (int r = 0; r < f.rows; r++) UNROLL for (int s = 0; s < STRIPS; s++)
                gemv_end_block(f.bf16, &sum[r][s]);
        }
        UNROLL for (int r = 0; r < f.rows; r++) UNROLL for (int s = 0; s < STRIPS; s++)
            v_store(j->y + r * ldy + v + s * LS_LANES, sum[r][s].all);
    }
}

INLINE void all_groups(factors f, const ls_gemv_table_job *j, int64_t ldy) {
    switch (j->w.type) {
    case LS_BLOCK_Q8_0: each_group(f, block_q8_0, 34, j, ldy); break;
    case LS_BLOCK_Q4_0: each_group(f, block_q4_0, 18, j, ldy); break;
    case LS_BLOCK_Q4_1: each_group(f, block_q4_1, 20, j, ldy); break;
    case LS_BLOCK_BF16: each_group(f, block_bf16, 64, j, ldy); break;
    default: each_group(f, block_f16, 64, j, ldy); break;
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
