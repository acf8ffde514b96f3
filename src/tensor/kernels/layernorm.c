/* layernorm.c - layer norm, forward and backward. Ba, Kiros & Hinton, arXiv 1607.06450. */
#include "tensor/kernels/variant.h"

static const float EPS = 1e-5f; /* GPT-2's */

void LS_K(layernorm)(int64_t rows, int64_t C, const float *x, const float *gamma, const float *beta,
                     float *y, float *mean, float *rstd) {
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        v16 sum = v_set1(0.0f);
        for (int64_t i = 0; i < C; i += LS_LANES) sum = v_add(sum, v_load_n(x + i, C - i));
        float mu = v_sum(sum) / (float)C;
        v16 square = v_set1(0.0f), vmu = v_set1(mu);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 d = v_keep(v_sub(v_load_n(x + i, C - i), vmu), C - i, 0.0f);
            square = v_fma(d, d, square);
        }
        float rs = 1.0f / sqrtf(v_sum(square) / (float)C + EPS);
        v16 vrs = v_set1(rs);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 hat = v_mul(v_sub(v_load_n(x + i, C - i), vmu), vrs);
            v16 out = v_fma(hat, v_load_n(gamma + i, C - i), v_load_n(beta + i, C - i));
            v_store_n(y + i, out, C - i);
        }
        mean[r] = mu;
        rstd[r] = rs;
    }
}

/* With g = dy * gamma and h = (x - mean) * rstd: dx = rstd * (g - mean(g) - h * mean(g * h)). */
void LS_K(layernorm_dx)(int64_t rows, int64_t C, const float *dy, const float *x,
                        const float *gamma, const float *mean, const float *rstd,
                        const float *residual, float *dx) {
    for (int64_t r = 0; r < rows; r++, dy += C, x += C, dx += C) {
        v16 sum_g = v_set1(0.0f), sum_gh = v_set1(0.0f);
        v16 vmu = v_set1(mean[r]), vrs = v_set1(rstd[r]);
        for (int64_t i = 0; i < C; i += LS_LANES) { /* g is 0 beyond the row */
            v16 g = v_mul(v_load_n(dy + i, C - i), v_load_n(gamma + i, C - i));
            v16 h = v_mul(v_sub(v_load_n(x + i, C - i), vmu), vrs);
            sum_g = v_add(sum_g, g);
            sum_gh = v_fma(g, h, sum_gh);
        }
        v16 mean_g = v_set1(v_sum(sum_g) / (float)C), mean_gh = v_set1(v_sum(sum_gh) / (float)C);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 g = v_mul(v_load_n(dy + i, C - i), v_load_n(gamma + i, C - i));
            v16 h = v_mul(v_sub(v_load_n(x + i, C - i), vmu), vrs);
            v16 d = v_sub(v_sub(g, mean_g), v_mul(h, mean_gh));
            v16 from = residual ? v_load_n(residual + r * C + i, C - i) : v_set1(0.0f);
            v_store_n(dx + i, v_fma(d, vrs, from), C - i);
        }
    }
}

void LS_K(layernorm_dparams)(int64_t rows, int64_t C, int64_t c0, int64_t c1, const float *dy,
                             const float *x, const float *mean, const float *rstd, float *dgamma,
                             float *dbeta) {
    for (int64_t c = c0; c < c1; c += LS_LANES) {
        int64_t n = c1 - c;
        v16 dg = dgamma ? v_load_n(dgamma + c, n) : v_set1(0.0f);
        v16 db = dbeta ? v_load_n(dbeta + c, n) : v_set1(0.0f);
        for (int64_t r = 0; r < rows; r++) {
            v16 g = v_load_n(dy + r * C + c, n);
            v16 h = v_sub(v_load_n(x + r * C + c, n), v_set1(mean[r]));
            dg = v_fma(g, v_mul(h, v_set1(rstd[r])), dg);
            db = v_add(db, g);
        }
        if (dgamma) v_store_n(dgamma + c, dg, n);
        if (dbeta) v_store_n(dbeta + c, db, n);
    }
}
