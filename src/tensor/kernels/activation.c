/* activation.c - ReLU, sigmoid, tanh, SiLU, SiLU as a gate, and their derivatives. */
#include "tensor/kernels/sigmoid.h"
#include "tensor/kernels/variant.h"

void LS_K(relu)(int64_t n, const float *x, float *y) {
    const v16 zero = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(y + i, v_max(zero, v_load_n(x + i, n - i)), n - i);
}

/* At 0 the derivative is 0; where y is NaN, 1. */
void LS_K(relu_dx)(int64_t n, const float *y, const float *dy, float *dx) {
    const v16 least = v_set1(1e-45f), zero = v_set1(0.0f); /* the least positive number */
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 d = v_select(least, v_load_n(y + i, n - i), zero, v_load_n(dy + i, n - i));
        v_store_n(dx + i, d, n - i);
    }
}

void LS_K(sigmoid)(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(y + i, v_sigmoid(v_load_n(x + i, n - i)), n - i);
}

/* dy * y * (1 - y). */
void LS_K(sigmoid_dx)(int64_t n, const float *y, const float *dy, float *dx) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 s = v_load_n(y + i, n - i);
        v16 slope = v_mul(s, v_sub(v_set1(1.0f), s));
        v_store_n(dx + i, v_mul(v_load_n(dy + i, n - i), slope), n - i);
    }
}

/* Up to 5/8 a polynomial, x + x^3 p(x^2), beyond it 1 - 2 / (e^2|x| + 1) with the sign of x.
 * Moshier, Cephes `tanhf`. NaN takes the polynomial. */
static inline v16 tanh_of(v16 x) {
    const v16 zero = v_set1(0.0f), one = v_set1(1.0f);
    v16 size = v_max(x, v_sub(zero, x)), square = v_mul(x, x);
    v16 p = v_set1(-5.70498872745e-3f);
    p = v_fma(p, square, v_set1(2.06390887954e-2f));
    p = v_fma(p, square, v_set1(-5.37397155531e-2f));
    p = v_fma(p, square, v_set1(1.33314422036e-1f));
    p = v_fma(p, square, v_set1(-3.33332819422e-1f));
    v16 near = v_fma(v_mul(p, square), x, x);
    v16 e = v_exp(v_add(size, size));
    v16 far = v_sub(one, v_div(v_set1(2.0f), v_add(e, one)));
    far = v_select(zero, x, v_sub(zero, far), far);
    return v_select(size, v_set1(0.625f), far, near);
}

void LS_K(tanh)(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(y + i, tanh_of(v_load_n(x + i, n - i)), n - i);
}

/* dy * (1 - y^2). */
void LS_K(tanh_dx)(int64_t n, const float *y, const float *dy, float *dx) {
    const v16 zero = v_set1(0.0f), one = v_set1(1.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 t = v_load_n(y + i, n - i);
        v16 slope = v_fma(v_sub(zero, t), t, one);
        v_store_n(dx + i, v_mul(v_load_n(dy + i, n - i), slope), n - i);
    }
}

void LS_K(silu)(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i);
        v_store_n(y + i, v_mul(a, v_sigmoid(a)), n - i);
    }
}

/* dy * (s + x s (1 - s)) with s = sigmoid(x). */
void LS_K(silu_dx)(int64_t n, const float *x, const float *dy, float *dx) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 a = v_load_n(x + i, n - i), s = v_sigmoid(a);
        v16 slope = v_fma(v_mul(a, s), v_sub(v_set1(1.0f), s), s);
        v_store_n(dx + i, v_mul(v_load_n(dy + i, n - i), slope), n - i);
    }
}

void LS_K(silu_gate)(int64_t n, const float *gate, const float *x, float *y) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 g = v_load_n(gate + i, n - i);
        v_store_n(y + i, v_mul(v_mul(g, v_sigmoid(g)), v_load_n(x + i, n - i)), n - i);
    }
}

/* dx = dy SiLU(gate); dgate = dy x (s + gate s (1 - s)) with s = sigmoid(gate). */
void LS_K(silu_gate_dx)(int64_t n, const float *gate, const float *x, const float *dy, float *dgate,
                        float *dx) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 g = v_load_n(gate + i, n - i), s = v_sigmoid(g), d = v_load_n(dy + i, n - i);
        v16 y = v_mul(g, s), slope = v_fma(y, v_sub(v_set1(1.0f), s), s);
        v16 by_gate = v_mul(v_mul(d, v_load_n(x + i, n - i)), slope);
        v_store_n(dx + i, v_mul(d, y), n - i);
        v_store_n(dgate + i, by_gate, n - i);
    }
}
