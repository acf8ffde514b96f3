/* draw.c - what choosing a token needs of all tokens: maxima of their logits, the sum of their
 * probabilities. */
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

/* Compilers make vectors of the eight chains. */
double LS_K(sum_wide)(int64_t n, const float *x) {
    double sum[8] = {0}, all = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) sum[k] += (double)x[i + k];
    for (int k = 0; i + k < n; k++) sum[k] += (double)x[i + k];
    for (int k = 0; k < 8; k++) all += sum[k];
    return all;
}
