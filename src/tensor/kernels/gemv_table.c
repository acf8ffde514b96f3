/* gemv_table.c - products of one row with a table [V, C], which are limited by reading the weights.
 *
 * Sixteen rows are processed at a time, a row a lane: blocks of 16 x 16 are transposed, with two
 * 16-bit values as one. Blocks of weights have loops of their own (gemv_rows.h); rows that
 * do not fill two strips are widened first, some values of sixteen rows at a time.
 */
#include "tensor/kernels/block_lanes.h"
#include "tensor/kernels/gemv_rows.h"

INLINE const void *element(ls_block_type type, const void *w, int64_t i) {
    return (const char *)w + i * (type == LS_BLOCK_F32 ? 4 : 2);
}

/* Sixteen rows of a table; if there are fewer, the last is repeated. */
typedef struct strip {
    const void *rows[LS_LANES];
    const float *x;
} strip;

enum { CELLS = LS_LANES * LS_LANES };

/* across [16][16]: value k + i of row r at i, r. n values, 1 to 16. */
INLINE void transpose_f32(const strip *s, int64_t k, int64_t n, float *across) {
    float copy[CELLS] = {0};
    for (int first = 0; first < LS_LANES; first += 4)
        for (int half = 0; half < LS_LANES; half += 8) {
            const float *lines[4];
            for (int i = 0; i < 4; i++) {
                float *own = copy + (first + i) * LS_LANES;
                lines[i] = element(LS_BLOCK_F32, s->rows[first + i], k);
                if (n < LS_LANES) lines[i] = memcpy(own, lines[i], (size_t)n * sizeof *own);
                lines[i] += half;
            }
            v_transpose4(lines, across + half * LS_LANES + first, LS_LANES);
        }
}

/* Two neighbouring values share a lane: across [8][16], values k + 2i and k + 2i + 1 of row r at
 * i, r. */
INLINE void transpose_pairs(const strip *s, int64_t k, int64_t n, float *across) {
    float pairs[CELLS / 2] = {0};
    for (int first = 0; first < LS_LANES; first += 4) {
        const float *lines[4];
        for (int i = 0; i < 4; i++) {
            float *own = pairs + (first + i) * 8;
            lines[i] = element(LS_BLOCK_BF16, s->rows[first + i], k);
            if (n < LS_LANES) lines[i] = memcpy(own, lines[i], (size_t)n * 2);
        }
        v_transpose4(lines, across + first, LS_LANES);
    }
}

/* The sums of sixteen rows: one chain each; or, in blocks, those of the blocks before, and the
 * chains of this one. */
typedef struct sums {
    v16 all, even, odd;
} sums;

INLINE void sums_add(int blocks, sums *s, int64_t k, v16 x, v16 w) {
    v16 *chain = !blocks ? &s->all : k & 1 ? &s->odd : &s->even;
    *chain = v_fma(x, w, *chain);
}

INLINE void sums_end_block(sums *s) {
    s->all = v_add(s->all, v_add(s->even, s->odd));
    s->even = s->odd = v_set1(0.0f);
}

/* Goes on over n values of each row, from value k on, which is even; n in 1..16. */
INLINE void strip_values(ls_block_type type, int blocks, const strip *s, int64_t k, int64_t n,
                         sums *sum) {
    const float *x = s->x;
    float across[CELLS];
    if (type == LS_BLOCK_F32) {
        transpose_f32(s, k, n, across);
        for (int64_t i = 0; i < n; i++)
            sums_add(blocks, sum, i, v_set1(x[k + i]), v_load(across + i * LS_LANES));
    } else {
        transpose_pairs(s, k, n, across);
        for (int64_t i = 0; i < n; i++) {
            v16 pair = v_load(across + i / 2 * LS_LANES);
            v16 w = type == LS_BLOCK_BF16 ? v_pick_bf16(pair, i & 1) : v_pick_f16(pair, i & 1);
            sums_add(blocks, sum, i, v_set1(x[k + i]), w);
        }
    }
    if (blocks && (n < LS_LANES || (k + LS_LANES) % LS_SUM_BLOCK == 0)) sums_end_block(sum);
}

/* The rows after the strip follow it in memory, so prefetch one strip length ahead. */
INLINE void strip_prefetch(ls_block_type type, const strip *s, int64_t k, int64_t C) {
    for (int i = 0; i < LS_LANES; i++) v_prefetch(element(type, s->rows[i], k + LS_LANES * C));
}

/* The chains of n rows, from `start` on, or from 0. */
INLINE v16 start_of(const float *start, int64_t n) {
    return start ? v_load_n(start, n < LS_LANES ? n : LS_LANES) : v_set1(0.0f);
}

INLINE void table_product(ls_block_type type, int blocks, const ls_gemv_table_job *j) {
    const int64_t V = j->V, C = j->C;
    for (int64_t v = 0; v < V; v += LS_LANES) {
        int64_t n = V - v, k = 0;
        strip s;
        s.x = j->x;
        for (int i = 0; i < LS_LANES; i++)
            s.rows[i] = element(type, j->w.data, (i < n ? v + i : V - 1) * C);
        sums sum = {start_of(j->bias ? j->bias + v : NULL, n), v_set1(0.0f), v_set1(0.0f)};
        for (; k + LS_LANES <= C; k += LS_LANES) {
            if (n >= 2 * LS_LANES) strip_prefetch(type, &s, k, C);
            strip_values(type, blocks, &s, k, LS_LANES, &sum);
        }
        if (k < C)
            strip_values(type, blocks, &s, k, C - k, &sum);
        else if (blocks && C % LS_SUM_BLOCK)
            sums_end_block(&sum);
        v_store_n(j->y + v, sum.all, n);
    }
}

#ifdef V_PAIRS

/* Strips of sixteen rows of weights in bf16, a row a lane, by the instruction for pairs: four words
 * of each row at a time. Whole blocks. */
enum { PAIR_STRIPS = 2, WORDS = 4, AT_ONCE = 2 * WORDS };

INLINE void pair_words(const ls_gemv_table_job *j, int64_t k, const uint8_t *w,
                       vr chains[2][PAIR_STRIPS]) {
    int64_t stride = j->C * 2;
    v16 words[PAIR_STRIPS][WORDS];
    UNROLL for (int s = 0; s < PAIR_STRIPS; s++)
        v_rows4(w + s * LS_LANES * stride + k * 2, stride, words[s]);
    UNROLL for (int i = 0; i < WORDS; i += 2) {
        const float *x = j->x + k + 2 * i;
        const vr even = r_set1_word(x), odd = r_set1_word(x + 1);
        UNROLL for (int s = 0; s < PAIR_STRIPS; s++) {
            const v16 first = words[s][i], second = words[s][i + 1];
            chains[0][s] = r_dot(even, r_even_words(first, second), chains[0][s]);
            chains[1][s] = r_dot(odd, r_odd_words(first, second), chains[1][s]);
        }
    }
}

/* Returns the number of rows that it has computed. */
static int64_t pair_rows(const ls_gemv_table_job *j) {
    enum { ROWS_OF = PAIR_STRIPS * LS_LANES };
    int64_t v = 0, row = j->C * 2;
    if (j->C % LS_SUM_BLOCK) return 0;
    for (; v + ROWS_OF <= j->V; v += ROWS_OF) {
        const uint8_t *w = (const uint8_t *)j->w.data + v * row;
        vr sum[PAIR_STRIPS], chains[2][PAIR_STRIPS];
        UNROLL for (int s = 0; s < PAIR_STRIPS; s++) {
            sum[s] = j->bias ? r_load(j->bias + v + s * LS_LANES) : r_set1(0);
            chains[0][s] = chains[1][s] = r_set1(0);
        }
        for (int64_t k = 0; k < j->C; k += AT_ONCE) {
            const uint8_t *ahead = w + ROWS_OF * (row + k * 2); /* of the strips that follow */
            for (int i = 0; i < ROWS_OF * 4 * WORDS; i += 64) v_prefetch_far(ahead + i);
            pair_words(j, k, w, chains);
            if ((k + AT_ONCE) % LS_SUM_BLOCK) continue;
            UNROLL for (int s = 0; s < PAIR_STRIPS; s++) {
                sum[s] = r_add(sum[s], r_add(chains[0][s], chains[1][s]));
                chains[0][s] = chains[1][s] = r_set1(0);
            }
        }
        UNROLL for (int s = 0; s < PAIR_STRIPS; s++) r_store(j->y + v + s * LS_LANES, sum[s]);
    }
    return v;
}

#else
static int64_t pair_rows(const ls_gemv_table_job *j) {
    (void)j;
    return 0;
}
#endif

/* The first rows may be computed by pairs. */
static void bf16_product(const ls_gemv_table_job *whole) {
    ls_gemv_table_job j = *whole;
    int64_t done = whole->bf16 ? pair_rows(whole) : 0;
    j.w.data = element(LS_BLOCK_BF16, j.w.data, done * j.C);
    j.V -= done;
    if (j.bias) j.bias += done;
    j.y += done;
    table_product(LS_BLOCK_BF16, 1, &j);
}

/* ---- rows whose chains are in y ---- */

static void begin_chains(const ls_gemv_table_job *j) {
    if (j->bias && j->bias != j->y)
        memcpy(j->y, j->bias, (size_t)j->V * sizeof *j->y);
    else if (!j->bias)
        memset(j->y, 0, (size_t)j->V * sizeof *j->y);
}

/* 16-bit floats in f32: the rows that strips have, then the others. */
static void half_product(const ls_gemv_table_job *whole) {
    ls_gemv_table_job j = *whole;
    int64_t done = 0;
    if (j.w.strips) {
        begin_chains(&j);
        done = LS_K(gemv_strip_rows)(&j);
        j.bias = j.y;
    }
    j.w.data = element(j.w.type, j.w.data, done * j.C);
    j.V -= done;
    if (j.bias) j.bias += done;
    j.y += done;
    if (j.w.type == LS_BLOCK_BF16)
        table_product(LS_BLOCK_BF16, 0, &j);
    else
        table_product(LS_BLOCK_F16, 0, &j);
}

/* ---- blocks ---- */

/* n rows, 1 to 16, by their values in f32: chains go on from those in y. */
static void widened_rows(const ls_gemv_table_job *j, int64_t first, int64_t n) {
    enum { DEPTH = LS_BLOCK_MOST };
    const ls_lane_type b = lane_type_of(j->w.type);
    ls_unpack_kernel *unpack = LS_K(ls_kernels).unpack[j->w.type];
    float values[LS_LANES * DEPTH];
    int64_t row = j->C / b.elements * b.nbytes;
    const uint8_t *w = (const uint8_t *)j->w.data + first * row;
    for (int64_t k = 0; k < j->C; k += DEPTH) {
        int64_t depth = j->C - k < DEPTH ? j->C - k : DEPTH;
        float *sum = j->y + first;
        ls_gemv_table_job part = {
            {.data = values, .type = LS_BLOCK_F32}, n, depth, j->x + k, sum, sum, j->bf16, NULL};
        for (int64_t i = 0; i < n; i++)
            unpack(depth / b.elements, w + i * row + k / b.elements * b.nbytes, values + i * depth);
        if (j->bf16) LS_K(round_bf16)(n * depth, values, values);
        (j->bf16 ? LS_K(gemv_table_bf16) : LS_K(gemv_table))(&part);
    }
}

static void block_product(const ls_gemv_table_job *j) {
    enum { ROWS = LS_GEMV_LANE_STRIPS * LS_LANES };
    const ls_lane_type b = lane_type_of(j->w.type);
    const bool groups = ls_strips_in_groups(j->w.type);
    const int64_t V = j->V, row = j->C / b.elements * b.nbytes;
    ls_gemv_table_job rest = *j; /* the rows that are not in groups */
    int64_t v = 0;
    begin_chains(j);
    if (groups && j->w.strips) v = LS_K(gemv_strip_rows)(j);
    if (groups) rest.w.strips = NULL;
    /* Rows that follow are prefetched while these are computed. */
    const uint8_t *read = rest.w.strips ? rest.w.strips : rest.w.data;
    gemv_prefetch_part(read + v * row, (V - v < ROWS ? V - v : ROWS) * row, 0, 1);
    for (; v + ROWS <= V; v += ROWS) LS_K(gemv_lane_rows)(&rest, v);
    for (; v < V; v += LS_LANES) widened_rows(j, v, V - v < LS_LANES ? V - v : LS_LANES);
}

void LS_K(gemv_table)(const ls_gemv_table_job *j) {
    if (j->V == 0) return;
    switch (j->w.type) {
    case LS_BLOCK_F32: table_product(LS_BLOCK_F32, 0, j); break;
    case LS_BLOCK_BF16:
    case LS_BLOCK_F16: half_product(j); break;
    default: block_product(j); break;
    }
}

void LS_K(gemv_table_in_blocks)(const ls_gemv_table_job *j) {
    if (j->V == 0) return;
    switch (j->w.type) {
    case LS_BLOCK_F32: table_product(LS_BLOCK_F32, 1, j); break;
    case LS_BLOCK_BF16: bf16_product(j); break;
    default: block_product(j); break;
    }
}
