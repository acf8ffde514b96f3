/* elementwise.c - GELU, sums, products, sums of squares. */
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

void LS_K(multiply)(int64_t n, const float *a, const float *b, float *out) {
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(out + i, v_mul(v_load_n(a + i, n - i), v_load_n(b + i, n - i)), n - i);
}

void LS_K(affine)(int64_t n, const float *x, float scale, float shift, float *y) {
    const v16 a = v_set1(scale), b = v_set1(shift);
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(y + i, v_fma(v_load_n(x + i, n - i), a, b), n - i);
}

/* y = x * a + b of n elements. */
static inline void bytes_row(int64_t n, const uint8_t *x, const float *a, const float *b,
                             float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        float t[LS_LANES] = {0};
        if (n - i >= LS_LANES)
            for (int j = 0; j < LS_LANES; j++) t[j] = x[i + j];
        else
            for (int64_t j = 0; i + j < n; j++) t[j] = x[i + j];
        v16 out = v_fma(v_load(t), v_load_n(a + i, n - i), v_load_n(b + i, n - i));
        v_store_n(y + i, out, n - i);
    }
}

/* With few channels, several pixels make one row, whose scales repeat. */
void LS_K(bytes_affine)(int64_t pixels, int64_t C, const uint8_t *x, const float *scale,
                        const float *shift, float *y) {
    enum { ROW = 256 };
    float a[ROW], b[ROW];
    int64_t together = C > 0 && C <= ROW / 2 ? ROW / C : 1;
    for (int64_t i = 0; together > 1 && i < together * C; i++)
        a[i] = scale[i % C], b[i] = shift[i % C];
    for (int64_t p = 0; p < pixels; p += together) {
        int64_t n = (pixels - p < together ? pixels - p : together) * C;
        bytes_row(n, x + p * C, together > 1 ? a : scale, together > 1 ? b : shift, y + p * C);
    }
}

float LS_K(sum_squares)(int64_t n, const float *x) {
    v16 sum = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i);
        sum = v_fma(a, a, sum);
    }
    return v_sum(sum);
}

void LS_K(squares_and_dot)(int64_t n, const float *x, const float *y, float out[2]) {
    v16 squares = v_set1(0.0f), dot = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i);
        squares = v_fma(a, a, squares);
        dot = v_fma(a, v_load_n(y + i, n - i), dot);
    }
    out[0] = v_sum(squares);
    out[1] = v_sum(dot);
}
