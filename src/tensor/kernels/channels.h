/* channels.h - sums and products over the rows of up to 16 channels, for norms over pixels: group
 * norm and batch norm. Rows are C apart; n is the number of channels, 16 or fewer, and is known
 * when it is compiled where it is 16. */
#ifndef LS_TENSOR_KERNELS_CHANNELS_H
#define LS_TENSOR_KERNELS_CHANNELS_H

#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

#define UNROLL _Pragma("GCC unroll 4")

/* Four chains of each channel: row r belongs to chain r mod 4. */
typedef struct chains {
    v16 c[4];
} chains;

static inline chains chains_zero(void) {
    const v16 zero = v_set1(0.0f);
    return (chains){{zero, zero, zero, zero}};
}
static inline v16 chains_sum(const chains *s) {
    return v_add(v_add(s->c[0], s->c[2]), v_add(s->c[1], s->c[3]));
}

/* The sums of up to 16 channels over rows. */
INLINE v16 sum_of(const float *x, int64_t rows, int64_t C, int64_t n) {
    chains s = chains_zero();
    for (; rows > 3; rows -= 4, x += 4 * C)
        UNROLL for (int k = 0; k < 4; k++) s.c[k] = v_add(s.c[k], v_load_n(x + k * C, n));
    UNROLL for (int k = 0; k < 3; k++) if (k < rows) s.c[k] = v_add(s.c[k], v_load_n(x + k * C, n));
    return chains_sum(&s);
}

INLINE v16 add_square(v16 sum, v16 x, v16 mean) {
    v16 d = v_sub(x, mean);
    return v_fma(d, d, sum);
}

/* Sums of the squares of differences from the mean, by channel. */
INLINE v16 squares_of(const float *x, int64_t rows, int64_t C, int64_t n, v16 mean) {
    chains s = chains_zero();
    for (; rows > 3; rows -= 4, x += 4 * C)
        UNROLL for (int k = 0; k < 4; k++) s.c[k] =
            add_square(s.c[k], v_load_n(x + k * C, n), mean);
    UNROLL for (int k = 0; k < 3; k++) if (k < rows) s.c[k] =
        add_square(s.c[k], v_load_n(x + k * C, n), mean);
    return chains_sum(&s);
}

/* Up to 16 channels: what is the same for all rows. */
typedef struct channels {
    v16 mean, rstd, gamma, beta;
    int64_t n;
    bool relu;
} channels;

/* The normalized values of a row. */
INLINE v16 normalized(const channels *a, const float *x, int64_t n) {
    return v_mul(v_sub(v_load_n(x, n), a->mean), a->rstd);
}

INLINE void apply(const channels *a, const float *x, float *y, int64_t size, int64_t C, int64_t n) {
    const v16 zero = v_set1(0.0f);
    for (int64_t i = 0; i < size; i += C) {
        v16 out = v_fma(normalized(a, x + i, n), a->gamma, a->beta);
        v_store_n(y + i, a->relu ? v_max(zero, out) : out, n);
    }
}

/* A row's dy, through the ReLU that follows the norm: as relu_dx() (activation.c). */
INLINE v16 dy_of(const channels *a, const float *dy, v16 h, int64_t n) {
    v16 d = v_load_n(dy, n);
    if (!a->relu) return d;
    return v_select(v_set1(1e-45f), v_fma(h, a->gamma, a->beta), v_set1(0.0f), d);
}

/* Sums over rows. */
typedef struct back_sums {
    v16 dyh, dy;
} back_sums;

INLINE back_sums back_sums_of(const channels *a, const float *x, const float *dy, int64_t size,
                              int64_t C, int64_t n) {
    chains dyh = chains_zero(), plain = chains_zero();
    for (int64_t i = 0; i < size; i += 4 * C)
        UNROLL for (int k = 0; k < 4; k++) if (i + k * C < size) {
            v16 h = normalized(a, x + i + k * C, n), d = dy_of(a, dy + i + k * C, h, n);
            dyh.c[k] = v_fma(d, h, dyh.c[k]);
            plain.c[k] = v_add(plain.c[k], d);
        }
    return (back_sums){chains_sum(&dyh), chains_sum(&plain)};
}

/* The rows of `size` elements in backward. */
typedef struct back_rows {
    const float *x, *dy;
    float *dx;
    int64_t size, C;
} back_rows;

/* dx = rstd * (gamma * dy - means.dy - h * means.dyh). */
INLINE void apply_dx(const channels *a, const back_sums *means, const back_rows *r, int64_t n) {
    for (int64_t i = 0; i < r->size; i += r->C) {
        v16 h = normalized(a, r->x + i, n), d = dy_of(a, r->dy + i, h, n);
        d = v_sub(v_mul(d, a->gamma), means->dy);
        v_store_n(r->dx + i, v_mul(v_sub(d, v_mul(h, means->dyh)), a->rstd), n);
    }
}

#endif
