/* rmsnorm.c - RMS norm, forward and backward. Zhang & Sennrich, arXiv 1910.07467. */
#include "tensor/kernels/variant.h"

void LS_K(rms_norm)(const ls_rms_norm_job *m) {
    int64_t C = m->C;
    for (int64_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * C;
        v16 square = v_set1(0.0f);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 a = v_load_n(x + i, C - i);
            square = v_fma(a, a, square);
        }
        m->rstd[r] = 1.0f / sqrtf(v_sum(square) / (float)C + m->eps);
        v16 rs = v_set1(m->rstd[r]);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 h = v_mul(v_load_n(x + i, C - i), rs);
            v_store_n(m->y + r * C + i, v_mul(h, v_load_n(m->gamma + i, C - i)), C - i);
        }
    }
}

/* With g = dy * gamma and h = x * rstd: dx = rstd * (g - h * mean(g * h)). */
void LS_K(rms_norm_dx)(const ls_rms_norm_job *m) {
    int64_t C = m->C;
    for (int64_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * C, *dy = m->dy + r * C;
        v16 sum_gh = v_set1(0.0f), rs = v_set1(m->rstd[r]);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 g = v_mul(v_load_n(dy + i, C - i), v_load_n(m->gamma + i, C - i));
            sum_gh = v_fma(g, v_mul(v_load_n(x + i, C - i), rs), sum_gh);
        }
        v16 mean_gh = v_set1(v_sum(sum_gh) / (float)C);
        for (int64_t i = 0; i < C; i += LS_LANES) {
            v16 g = v_mul(v_load_n(dy + i, C - i), v_load_n(m->gamma + i, C - i));
            v16 h = v_mul(v_load_n(x + i, C - i), rs);
            v16 from = m->residual ? v_load_n(m->residual + r * C + i, C - i) : v_set1(0.0f);
            v16 d = v_sub(g, v_mul(h, mean_gh));
            v_store_n(m->dx + r * C + i, v_fma(d, rs, from), C - i);
        }
    }
}

void LS_K(rms_norm_dparams)(const ls_rms_norm_job *m) {
    for (int64_t c = m->from; c < m->to; c += LS_LANES) {
        int64_t n = m->to - c;
        v16 dg = v_load_n(m->dgamma + c, n);
        for (int64_t r = 0; r < m->rows; r++) {
            v16 h = v_mul(v_load_n(m->x + r * m->C + c, n), v_set1(m->rstd[r]));
            dg = v_fma(v_load_n(m->dy + r * m->C + c, n), h, dg);
        }
        v_store_n(m->dgamma + c, dg, n);
    }
}
