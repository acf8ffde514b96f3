/* int8_rows.h - products of weights in blocks with a panel of rows in int8, for int8.c; the rule is
 * in tensor/int8.h.
 *
 * A row of weights is a lane. 32 elements of LS_VR rows are unpacked into eight registers, four
 * bytes a lane; then each row of the panel continues its chains with them. So a weight is unpacked
 * once for a panel, and all chains of a panel with some rows of weights stay in the nearest cache.
 *
 * Weights in strips (gemv_strips.c) are read in their order, as fast as memory delivers them, also
 * for one row. Of others, sixteen rows of a block at a time are copied as a strip has them.
 */
#ifndef LS_TENSOR_KERNELS_INT8_ROWS_H
#define LS_TENSOR_KERNELS_INT8_ROWS_H

#include "tensor/kernels/block_lanes.h"
#include "tensor/kernels/gemv_rows.h"

#ifdef LS_VARIANT_avx512
#define LS_INT8_VNNI
void LS_K(int8_rows_vnni)(const ls_int8_job *);
#endif

enum {
    WORDS = LS_LANE_WORDS,
    SIXTEEN = 16,
    REGISTERS = LS_LANES / LS_VR,     /* of a strip */
    CHAINS = LS_INT8_ROWS * LS_LANES, /* of a panel and a strip */
    AHEAD = 8192                      /* bytes of strips that are prefetched */
};

/* Scales of the rows of a register. */
typedef struct scales {
    vr d[2], m[2];
} scales;

/* 32 activations of each row of the panel. */
typedef struct panel {
    int64_t R;
    const ls_int8_block *x; /* [R] */
} panel;

INLINE vr add_products(vr chain, vr d, const ls_int8_block *x, vsum sum, int32_t less) {
    return r_fma(r_mul(d, r_set1(x->d)), r_of_sums(sum, less), chain);
}

/* Continues a row's chain with the sum of a group that has one scale. */
INLINE void add_sum(ls_lane_type t, scales s, const ls_int8_block *x, vsum sum, float *chain) {
    vr y = add_products(r_load(chain), s.d[0], x, sum, t.middle * x->sum);
    if (t.affine) y = r_fma(s.m[0], r_set1(x->shift), y);
    r_store(chain, y);
}

/* The same with scales for each half. */
INLINE void add_halves(ls_lane_type t, scales s, const ls_int8_block *x, const vb w[WORDS],
                       float *chain) {
    vsum first = b_dot(t.most, WORDS / 2, w, x->q);
    vsum second = b_dot(t.most, WORDS / 2, w + WORDS / 2, x->q + LS_INT8_GROUP / 2);
    const int32_t left = x->sum - x->first;
    vr y = add_products(r_load(chain), s.d[0], x, first, t.middle * x->first);
    if (t.affine) y = r_fma(s.m[0], r_set1(x->d * (float)x->first), y);
    y = add_products(y, s.d[1], x, second, t.middle * left);
    if (t.affine) y = r_fma(s.m[1], r_set1(x->d * (float)left), y);
    r_store(chain, y);
}

#ifdef LS_INT8_AMX
/* The sums of sixteen rows from row i on: a whole tile, or those that are left. */
#define ADD_SIXTEEN(c, a, i)                                                                       \
    do {                                                                                           \
        LS_AMX_ZERO(c);                                                                            \
        LS_AMX_LOAD(a, p.x[i].q, sizeof *p.x);                                                     \
        LS_AMX_INT8(c, a, 6);                                                                      \
        LS_AMX_STORE(c, sums[i], sizeof sums[i]);                                                  \
    } while (0)

/* Tiles 0 to 2 are the sums of sixteen rows, with 4 their activations; 3 and 5 of one to sixteen
 * rows that are left; 6 has the weights. */
INLINE void unit_config(int64_t R, ls_amx_config *c) {
    *c = ls_amx_whole_tiles();
    c->rows[3] = c->rows[5] = (uint8_t)((R - 1) % SIXTEEN + 1);
    c->row_nbytes[4] = c->row_nbytes[5] = LS_INT8_GROUP;
    c->rows[6] = WORDS;
}

INLINE void add_group_of_unit(ls_lane_type t, const vb w[WORDS], scales s, panel p, float *chains) {
    _Alignas(64) int32_t sums[LS_INT8_ROWS][LS_VR];
    LS_AMX_LOAD(6, w, sizeof *w);
    const int64_t last = (p.R - 1) / SIXTEEN * SIXTEEN;
    if (last > 0) ADD_SIXTEEN(0, 4, 0);
    if (last > SIXTEEN) ADD_SIXTEEN(1, 4, SIXTEEN);
    if (last > 2 * SIXTEEN) ADD_SIXTEEN(2, 4, 2 * SIXTEEN);
    ADD_SIXTEEN(3, 5, last);
    for (int64_t r = 0; r < p.R; r++, chains += LS_VR) {
        vsum sum;
        memcpy(&sum, sums[r], sizeof sum);
        add_sum(t, s, p.x + r, sum, chains);
    }
}
#endif

INLINE void add_group(ls_lane_type t, const vb w[WORDS], scales s, panel p, float *chains) {
#ifdef LS_INT8_AMX
    if (!t.halves) {
        add_group_of_unit(t, w, s, p, chains);
        return;
    }
#endif
    for (int64_t r = 0; r < p.R; r++, chains += LS_VR) {
        const ls_int8_block *x = p.x + r;
        if (t.halves)
            add_halves(t, s, x, w, chains);
        else
            add_sum(t, s, x, b_dot(t.most, WORDS, w, x->q), chains);
    }
}

/* ---- chains of whole strips of rows of weights: [registers][R][LS_VR] ---- */

/* How many of a register's rows are among the n. */
static size_t nlanes(int64_t n, int64_t first) {
    return (size_t)(n - first < 0 ? 0 : n - first < LS_VR ? n - first : LS_VR);
}

static void begin_chains(const ls_int8_job *j, int64_t v, int64_t n, float *chains) {
    for (int64_t first = 0; first < n || first % LS_LANES; first += LS_VR)
        for (int64_t r = 0; r < j->R; r++, chains += LS_VR) {
            const float *from = j->bias ? j->bias : j->y + r * j->ldy;
            size_t some = j->bias || j->add ? nlanes(n, first) : 0;
            memset(chains, 0, LS_VR * sizeof *chains);
            if (some) memcpy(chains, from + v + first, some * sizeof *chains);
        }
}

static void end_chains(const ls_int8_job *j, int64_t v, int64_t n, const float *chains) {
    for (int64_t first = 0; first < n; first += LS_VR)
        for (int64_t r = 0; r < j->R; r++, chains += LS_VR)
            memcpy(j->y + r * j->ldy + v + first, chains, nlanes(n, first) * sizeof *chains);
}

/* ---- strips ---- */

enum { STRIPS = LS_GEMV_STRIPS, SCALES = LS_LANES * 2 };

/* A block of a group of strips: 32 elements of its rows. */
typedef void strip_block(const uint8_t *p, panel x, float *chains);

INLINE void scales_at(const uint8_t *p, float d[STRIPS * LS_LANES]) {
    UNROLL for (int s = 0; s < STRIPS; s++, p += SCALES) {
        uint16_t half[LS_LANES];
        memcpy(half, p, sizeof half);
        v_store(d + s * LS_LANES, v_load_f16(half));
    }
}

INLINE void strips_q8_0(const uint8_t *p, panel x, float *chains) {
    float d[STRIPS * LS_LANES];
    scales_at(p, d);
    p += STRIPS * SCALES;
    for (int i = 0; i < STRIPS * REGISTERS; i++, chains += x.R * LS_VR) {
        const uint8_t *words = p + i / REGISTERS * WORDS * 4 * LS_LANES + i % REGISTERS * 4 * LS_VR;
        vb w[WORDS];
        UNROLL for (int k = 0; k < WORDS; k++) w[k] = b_signed(b_load(words + k * 4 * LS_LANES));
        add_group((ls_lane_type){.most = 128, .middle = LS_B_MIDDLE}, w,
                  (scales){.d = {r_load(d + i * LS_VR)}}, x, chains);
    }
}

INLINE void nibbles_at(const uint8_t *p, int i, vb w[WORDS]) {
    p += i / REGISTERS * WORDS / 2 * 4 * LS_LANES + i % REGISTERS * 4 * LS_VR;
    UNROLL for (int k = 0; k < WORDS / 2; k++) {
        vb both = b_load(p + k * 4 * LS_LANES);
        w[k] = b_nibbles(both, 0);
        w[WORDS / 2 + k] = b_nibbles(both, 1);
    }
}

INLINE void strips_q4_0(const uint8_t *p, panel x, float *chains) {
    float d[STRIPS * LS_LANES];
    scales_at(p, d);
    for (int i = 0; i < STRIPS * REGISTERS; i++, chains += x.R * LS_VR) {
        vb w[WORDS];
        nibbles_at(p + STRIPS * SCALES, i, w);
        add_group((ls_lane_type){.most = 15, .middle = 8}, w,
                  (scales){.d = {r_load(d + i * LS_VR)}}, x, chains);
    }
}

INLINE void strips_q4_1(const uint8_t *p, panel x, float *chains) {
    float d[STRIPS * LS_LANES], m[STRIPS * LS_LANES];
    scales_at(p, d);
    scales_at(p + STRIPS * SCALES, m);
    for (int i = 0; i < STRIPS * REGISTERS; i++, chains += x.R * LS_VR) {
        vb w[WORDS];
        nibbles_at(p + 2 * STRIPS * SCALES, i, w);
        add_group((ls_lane_type){.most = 15, .affine = true}, w,
                  (scales){.d = {r_load(d + i * LS_VR)}, .m = {r_load(m + i * LS_VR)}}, x, chains);
    }
}

/* R: that of the job, as a constant if it is 1. Returns the number of rows. */
INLINE int64_t each_strips(const ls_int8_job *j, int64_t R, strip_block *block, int64_t nbytes) {
    enum { ROWS = STRIPS * LS_LANES };
    float chains[STRIPS * CHAINS];
    const uint8_t *p = j->w.strips;
    const int64_t all = ROWS * nbytes, nblocks = j->C / LS_INT8_GROUP;
    int64_t v = 0;
    for (; v + ROWS <= j->V; v += ROWS) {
        begin_chains(j, v, ROWS, chains);
        for (int64_t i = 0; i < nblocks; i++, p += all) {
            for (int64_t k = 0; k < all; k += 64) v_prefetch(p + AHEAD + k);
            block(p, (panel){R, j->x + i * R}, chains);
        }
        end_chains(j, v, ROWS, chains);
    }
    return v;
}

INLINE int64_t all_strips(const ls_int8_job *j, int64_t R) {
    switch (j->w.type) {
    case LS_BLOCK_Q8_0: return each_strips(j, R, strips_q8_0, 34);
    case LS_BLOCK_Q4_0: return each_strips(j, R, strips_q4_0, 18);
    default: return each_strips(j, R, strips_q4_1, 20);
    }
}

/* ---- strips that are not in groups, and rows as files have them ---- */

/* The bytes of a word; those of 0 to `most` without the bits above. */
INLINE vb bytes_of(int most, v16 word) {
    const vr lanes = v_first(most == 128 ? word : v_mask(word, (uint32_t)most * LS_ONE));
    vb bytes;
    memcpy(&bytes, &lanes, sizeof bytes);
    return most == 128 ? b_signed(bytes) : bytes;
}

INLINE void lanes_add(ls_lane_type t, const ls_lane_scales *of, const uint8_t *block,
                      ls_lane_place at, panel x, float *chains) {
    for (int i = 0; i < REGISTERS; i++, chains += x.R * LS_VR) {
        const ls_lane_rows rows = {block, i * LS_VR, REGISTERS > 1};
        scales s = {.d = {r_load(of->d[0] + i * LS_VR)}};
        if (t.halves) s.d[1] = r_load(of->d[1] + i * LS_VR);
        if (t.affine) s.m[0] = r_load(of->m[0] + i * LS_VR);
        if (t.affine && t.halves) s.m[1] = r_load(of->m[1] + i * LS_VR);
        vb w[WORDS];
        UNROLL for (at.half = 0; at.half < 2; at.half++) UNROLL for (int k = 0; k < WORDS / 2; k++)
            w[WORDS / 2 * at.half + k] = bytes_of(t.most, t.word(rows, at, k));
        add_group(t, w, s, x, chains);
    }
}

/* Where 16 rows from v on begin. */
typedef struct where {
    const uint8_t *p;
    int64_t stride, step; /* between rows, or 0 in a strip; between blocks */
} where;

INLINE where rows_at(const ls_int8_job *j, ls_lane_type t, bool strips, int64_t v) {
    enum { PAIR = 2 * LS_LANES };
    const int64_t row = j->C / t.elements * t.nbytes, block = LS_LANES * t.nbytes;
    const int64_t pair = v / PAIR * PAIR;
    if (strips && pair + PAIR <= j->V)
        return (where){(const uint8_t *)j->w.strips + pair * row + (v > pair ? block : 0), 0,
                       2 * block};
    return (where){(const uint8_t *)j->w.data + v * row, row, t.nbytes};
}

/* The block of n rows, 1 to 16, as a strip has it: at `to`. */
static void block_of_rows(const ls_int8_job *j, int64_t nbytes, where w, int64_t n, uint8_t *to) {
    uint8_t rows[LS_LANE_BLOCK] = {0};
    if (n == LS_LANES) {
        LS_K(lane_block)(j->w.type, w.p, w.stride, to);
        return;
    }
    for (int64_t r = 0; r < n; r++) memcpy(rows + r * nbytes, w.p + r * w.stride, (size_t)nbytes);
    LS_K(lane_block)(j->w.type, rows, nbytes, to);
}

/* At most 16 rows from v on. R: as in each_strips(). */
INLINE void sixteen_rows(const ls_int8_job *j, int64_t R, ls_lane_type t, bool strips, int64_t v) {
    const int64_t ngroups = t.elements / LS_INT8_GROUP, nturns = ngroups / t.span,
                  nbytes = LS_LANES * t.nbytes;
    const int64_t n = j->V - v < LS_LANES ? j->V - v : LS_LANES;
    const ls_int8_block *x = j->x;
    where w = rows_at(j, t, strips, v);
    const uint8_t *next = w.p + LS_LANES * w.stride; /* the rows that follow */
    float chains[CHAINS];
    uint8_t copy[LS_LANE_BLOCK];
    ls_lane_scales groups[LS_LANE_GROUPS];
    begin_chains(j, v, n, chains);
    for (int64_t i = 0; i < j->C / t.elements; i++, w.p += w.step) {
        const uint8_t *block = w.stride ? copy : w.p;
        const uint8_t *ahead = w.stride ? next + i * nbytes : w.p + 4 * w.step;
        if (w.stride) block_of_rows(j, t.nbytes, w, n, copy);
        t.scales(block, groups);
        for (int k = 0; k < nturns; k++) {
            UNROLL for (int g = 0; g < t.span; g++, x += R) {
                gemv_prefetch_part(ahead, nbytes, k * t.span + g, ngroups);
                lanes_add(t, &groups[k * t.span + g], block, (ls_lane_place){.turn = k, .g = g},
                          (panel){R, x}, chains);
            }
        }
    }
    end_chains(j, v, n, chains);
}

INLINE void each_rows(const ls_int8_job *j, int64_t R, ls_lane_type t, bool strips, int64_t v) {
    if (t.most == 128) t.middle = LS_B_MIDDLE;
    for (; v < j->V; v += LS_LANES) sixteen_rows(j, R, t, strips, v);
}

/* strips: rows from v on are in strips. */
INLINE void all_rows(const ls_int8_job *j, int64_t R, bool strips, int64_t v) {
#define ROWS(type) each_rows(j, R, lane_type_of(type), strips, v)
    switch (j->w.type) {
        LS_LANE_CASES(ROWS);
    case LS_BLOCK_Q8_0: ROWS(LS_BLOCK_Q8_0); break;
    case LS_BLOCK_Q4_0: ROWS(LS_BLOCK_Q4_0); break;
    case LS_BLOCK_Q4_1: ROWS(LS_BLOCK_Q4_1); break;
    }
}

INLINE void int8_rows(const ls_int8_job *j) {
    const bool strips = j->w.strips, groups = strips && ls_strips_in_groups(j->w.type);
    int64_t v = 0;
    if (groups) v = j->R == 1 ? all_strips(j, 1) : all_strips(j, j->R);
    if (j->R == 1)
        all_rows(j, 1, strips && !groups, v);
    else
        all_rows(j, j->R, strips && !groups, v);
}

#endif
