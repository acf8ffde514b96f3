/* draw.c - what choosing a token needs of all tokens: maxima of their logits, their
 * probabilities. */
#include "tensor/kernels/term.h"
#include "tensor/kernels/variant.h"

void LS_K(maxima)(int64_t n, const float *x, float *most) {
    for (int64_t i = 0; i < n; i += LS_MAXIMA) {
        int64_t end = n - i < LS_MAXIMA ? n : i + LS_MAXIMA;
        v16 m = v_set1(-INFINITY);
        for (int64_t k = i; k < end; k += LS_LANES)
            m = v_max(v_keep(v_load_n(x + k, end - k), end - k, -INFINITY), m);
        *most++ = v_max_lane(m);
    }
}

/* y = e^((x - top) by); returns the sum. */
static float row_terms(int64_t n, const float *x, float top, float by, float *y) {
    v16 sum = v_set1(0.0f), vtop = v_set1(top), vby = v_set1(by);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 e = term(v_mul(v_sub(v_load_n(x + i, n - i), vtop), vby));
        sum = v_add(sum, v_keep(e, n - i, 0.0f));
        v_store_n(y + i, e, n - i);
    }
    return v_sum(sum);
}

/* Compilers make vectors of the eight chains. */
double LS_K(draw_weights)(int64_t n, const float *x, float top, float by, float *y) {
    float factor = 1.0f / row_terms(n, x, top, by, y);
    double sum[8] = {0}, all = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) {
            y[i + k] *= factor;
            sum[k] += (double)y[i + k];
        }
    for (int k = 0; i + k < n; k++) {
        y[i + k] *= factor;
        sum[k] += (double)y[i + k];
    }
    for (int k = 0; k < 8; k++) all += sum[k];
    return all;
}
