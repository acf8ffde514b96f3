/* elementwise.c - GELU, sums, sums of squares. */
#include "tensor/kernels/variant.h"

/* GELU(x) = x * s with s = sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3), which is the tanh form.
 * Hendrycks & Gimpel, arXiv 1606.08415. */
static inline v16 gelu_sigmoid(v16 x) {
    v16 x2 = v_mul(x, x);
    v16 poly = v_fma(x2, v_set1(0.044715f), v_set1(1.0f));
    v16 minus2u = v_mul(v_mul(x, poly), v_set1(-1.5957691216057308f));
    return v_div(v_set1(1.0f), v_add(v_set1(1.0f), v_exp(minus2u)));
}

void LS_K(gelu)(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i);
        v_store_n(y + i, v_mul(a, gelu_sigmoid(a)), n - i);
    }
}

/* d/dx [x s(2u)] = s + x s (1 - s) 2u'. */
void LS_K(gelu_back)(int64_t n, const float *x, const float *dy, float *dx, float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i), s = gelu_sigmoid(a);
        v16 slope = v_fma(v_mul(a, a), v_set1(3.0f * 0.044715f), v_set1(1.0f));
        slope = v_mul(slope, v_set1(1.5957691216057308f));
        v16 bell = v_mul(v_mul(a, s), v_sub(v_set1(1.0f), s));
        v16 d = v_fma(bell, slope, s);
        v_store_n(dx + i, v_mul(v_load_n(dy + i, n - i), d), n - i);
        v_store_n(y + i, v_mul(a, s), n - i);
    }
}

void LS_K(column_sum)(int64_t rows, int64_t C, int64_t c0, int64_t c1, const float *x, float *sum) {
    for (int64_t c = c0; c < c1; c += LS_LANES) {
        v16 s = v_load_n(sum + c, c1 - c);
        for (int64_t r = 0; r < rows; r++) s = v_add(s, v_load_n(x + r * C + c, c1 - c));
        v_store_n(sum + c, s, c1 - c);
    }
}

void LS_K(add)(int64_t n, const float *a, const float *b, float *out) {
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(out + i, v_add(v_load_n(a + i, n - i), v_load_n(b + i, n - i)), n - i);
}

float LS_K(sum_squares)(int64_t n, const float *x) {
    v16 sum = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i);
        sum = v_fma(a, a, sum);
    }
    return v_sum(sum);
}
