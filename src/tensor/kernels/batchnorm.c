/* batchnorm.c - batch norm over a set of rows, forward and backward. Ioffe & Szegedy, arXiv
 * 1502.03167. */
#include "tensor/kernels/variant.h"

void LS_K(batch_norm_stats)(const ls_batch_norm_job *b) {
    const v16 count = v_set1((float)b->rows);
    for (int64_t c = b->from; c < b->to; c += LS_LANES) {
        int64_t n = b->to - c;
        v16 sum = v_set1(0.0f), square = v_set1(0.0f);
        for (int64_t r = 0; r < b->rows; r++) sum = v_add(sum, v_load_n(b->x + r * b->C + c, n));
        v16 mu = v_div(sum, count);
        for (int64_t r = 0; r < b->rows; r++) {
            v16 d = v_sub(v_load_n(b->x + r * b->C + c, n), mu);
            square = v_fma(d, d, square);
        }
        v_store_n(b->mean + c, mu, n);
        v_store_n(b->variance + c, v_div(square, count), n);
    }
}

void LS_K(batch_norm_rstd)(const ls_batch_norm_job *b) {
    for (int64_t c = b->from; c < b->to; c += LS_LANES) {
        int64_t n = b->to - c;
        v16 root = v_sqrt(v_add(v_load_n(b->variance + c, n), v_set1(b->eps)));
        v_store_n(b->rstd + c, v_div(v_set1(1.0f), root), n);
    }
}

/* The normalized values of columns [c, c + n) of row r. */
static inline v16 normalized(const ls_batch_norm_job *b, int64_t r, int64_t c, int64_t n) {
    v16 d = v_sub(v_load_n(b->x + r * b->C + c, n), v_load_n(b->mean + c, n));
    return v_mul(d, v_load_n(b->rstd + c, n));
}

void LS_K(batch_norm_apply)(const ls_batch_norm_job *b) {
    for (int64_t r = b->from; r < b->to; r++)
        for (int64_t c = 0; c < b->C; c += LS_LANES) {
            int64_t n = b->C - c;
            v16 gamma = v_load_n(b->gamma + c, n), beta = v_load_n(b->beta + c, n);
            v_store_n(b->y + r * b->C + c, v_fma(normalized(b, r, c, n), gamma, beta), n);
        }
}

void LS_K(batch_norm_sums)(const ls_batch_norm_job *b) {
    for (int64_t c = b->from; c < b->to; c += LS_LANES) {
        int64_t n = b->to - c;
        v16 dyh = v_set1(0.0f), plain = v_set1(0.0f);
        for (int64_t r = 0; r < b->rows; r++) {
            v16 d = v_load_n(b->dy + r * b->C + c, n);
            dyh = v_fma(d, normalized(b, r, c, n), dyh);
            plain = v_add(plain, d);
        }
        v_store_n(b->sum_dyh + c, dyh, n);
        v_store_n(b->sum_dy + c, plain, n);
    }
}

/* dx = gamma * rstd * (dy - mean(dy) - h * mean(dy * h)). */
void LS_K(batch_norm_dx)(const ls_batch_norm_job *b) {
    const v16 count = v_set1((float)b->rows);
    for (int64_t r = b->from; r < b->to; r++)
        for (int64_t c = 0; c < b->C; c += LS_LANES) {
            int64_t n = b->C - c, at = r * b->C + c;
            v16 mean_dy = v_div(v_load_n(b->sum_dy + c, n), count);
            v16 mean_dyh = v_div(v_load_n(b->sum_dyh + c, n), count);
            v16 slope = v_mul(v_load_n(b->gamma + c, n), v_load_n(b->rstd + c, n));
            v16 d = v_sub(v_load_n(b->dy + at, n), mean_dy);
            d = v_sub(d, v_mul(normalized(b, r, c, n), mean_dyh));
            v_store_n(b->dx + at, v_mul(d, slope), n);
        }
}
