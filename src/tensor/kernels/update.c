/* update.c - updates of optimizers: new parameters from a gradient and from states; their average.
 */
#include "tensor/kernels/variant.h"

/* Adam's states and the ratio that it subtracts, for the gradient g. Kingma & Ba, "Adam: a method
 * for stochastic optimization", ICLR 2015, algorithm 1. */
static inline v16 adam_ratio(int64_t n, const ls_update_scalars *s, v16 g, float *m, float *v) {
    v16 mi = v_fma(v_load_n(m, n), v_set1(s->beta1), v_mul(g, v_set1(1.0f - s->beta1)));
    v16 vi = v_fma(v_load_n(v, n), v_set1(s->beta2), v_mul(v_mul(g, g), v_set1(1.0f - s->beta2)));
    v16 denominator = v_add(v_sqrt(v_mul(vi, v_set1(s->correct2))), v_set1(s->eps));
    v_store_n(m, mi, n);
    v_store_n(v, vi, n);
    return v_div(v_mul(mi, v_set1(s->correct1)), denominator);
}

/* Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2; decay is
 * scaled by the learning rate, as in PyTorch. */
void LS_K(adamw)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
                 float *const *states) {
    float *m = states[0], *v = states[1];
    const v16 minus_lr = v_set1(-s->lr), keep = v_set1(1.0f - s->lr * s->weight_decay);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 g = v_mul(v_load_n(grad + i, n - i), v_set1(s->grad_scale));
        v16 ratio = adam_ratio(n - i, s, g, m + i, v + i);
        v16 p = v_fma(ratio, minus_lr, v_mul(v_load_n(param + i, n - i), keep));
        v_store_n(param + i, p, n - i);
    }
}

/* The gradient with the derivative of the penalty weight_decay / 2 |param|^2. */
static inline v16 penalized(int64_t n, const ls_update_scalars *s, const float *grad, v16 p) {
    v16 g = v_mul(v_load_n(grad, n), v_set1(s->grad_scale));
    return v_fma(p, v_set1(s->weight_decay), g);
}

void LS_K(adam)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
                float *const *states) {
    float *m = states[0], *v = states[1];
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 p = v_load_n(param + i, n - i);
        v16 ratio = adam_ratio(n - i, s, penalized(n - i, s, grad + i, p), m + i, v + i);
        v_store_n(param + i, v_fma(ratio, v_set1(-s->lr), p), n - i);
    }
}

void LS_K(sgd)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
               float *const *states) {
    (void)states;
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 p = v_load_n(param + i, n - i);
        v_store_n(param + i, v_fma(penalized(n - i, s, grad + i, p), v_set1(-s->lr), p), n - i);
    }
}

/* The velocity begins at 0, and is not scaled by 1 - momentum. Sutskever, Martens, Dahl & Hinton,
 * "On the importance of initialization and momentum in deep learning", ICML 2013, with the learning
 * rate outside of the velocity, as in PyTorch. */
void LS_K(momentum)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
                    float *const *states) {
    float *velocity = states[0];
    const v16 momentum = v_set1(s->momentum), minus_lr = v_set1(-s->lr);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 p = v_load_n(param + i, n - i), g = penalized(n - i, s, grad + i, p);
        v16 b = v_fma(v_load_n(velocity + i, n - i), momentum, g);
        v_store_n(velocity + i, b, n - i);
        if (s->nesterov) b = v_fma(b, momentum, g);
        v_store_n(param + i, v_fma(b, minus_lr, p), n - i);
    }
}

/* -1, 0 or 1; two products, so that the smallest denormal number becomes more than 1. */
static inline v16 sign_of(v16 x) {
    const v16 large = v_set1(0x1p127f);
    return v_max(v_min(v_mul(v_mul(x, large), large), v_set1(1.0f)), v_set1(-1.0f));
}

/* Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023, algorithm 2. */
void LS_K(lion)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
                float *const *states) {
    float *m = states[0];
    const v16 beta1 = v_set1(s->beta1), rest1 = v_set1(1.0f - s->beta1);
    const v16 beta2 = v_set1(s->beta2), rest2 = v_set1(1.0f - s->beta2);
    const v16 minus_lr = v_set1(-s->lr), keep = v_set1(1.0f - s->lr * s->weight_decay);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 g = v_mul(v_load_n(grad + i, n - i), v_set1(s->grad_scale));
        v16 mi = v_load_n(m + i, n - i);
        v16 step = sign_of(v_fma(mi, beta1, v_mul(g, rest1)));
        v16 p = v_fma(step, minus_lr, v_mul(v_load_n(param + i, n - i), keep));
        v_store_n(m + i, v_fma(mi, beta2, v_mul(g, rest2)), n - i);
        v_store_n(param + i, p, n - i);
    }
}

/* Duchi, Hazan & Singer, "Adaptive subgradient methods for online learning and stochastic
 * optimization", JMLR 12, 2011, with the sum from 0, as in PyTorch. */
void LS_K(adagrad)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
                   float *const *states) {
    float *sum = states[0];
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 p = v_load_n(param + i, n - i), g = penalized(n - i, s, grad + i, p);
        v16 squares = v_fma(g, g, v_load_n(sum + i, n - i));
        v16 ratio = v_div(g, v_add(v_sqrt(squares), v_set1(s->eps)));
        v_store_n(sum + i, squares, n - i);
        v_store_n(param + i, v_fma(ratio, v_set1(-s->lr), p), n - i);
    }
}

/* Defazio et al., "The road less scheduled", NeurIPS 2024, algorithm 1: z goes against the gradient
 * at y, which is the parameter; x is the average of z; y is between them:
 * z = z - lr d, x = x + weight (z - x), y = z + beta1 (x - z). */
void LS_K(schedule_free)(int64_t n, const ls_update_scalars *s, const float *grad, float *param,
                         float *const *states) {
    float *z = states[0], *v = states[1], *x = states[2];
    const v16 minus_lr = v_set1(-s->lr), beta2 = v_set1(s->beta2), rest2 = v_set1(1.0f - s->beta2);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 y = v_load_n(param + i, n - i),
            g = v_mul(v_load_n(grad + i, n - i), v_set1(s->grad_scale));
        v16 zi = s->first ? y : v_load_n(z + i, n - i), xi = s->first ? y : v_load_n(x + i, n - i);
        v16 vi = v_fma(v_load_n(v + i, n - i), beta2, v_mul(v_mul(g, g), rest2));
        v16 below = v_add(v_sqrt(v_mul(vi, v_set1(s->correct2))), v_set1(s->eps));
        zi = v_fma(v_fma(y, v_set1(s->weight_decay), v_div(g, below)), minus_lr, zi);
        xi = v_fma(v_sub(zi, xi), v_set1(s->weight), xi);
        v_store_n(z + i, zi, n - i);
        v_store_n(v + i, vi, n - i);
        v_store_n(x + i, xi, n - i);
        v_store_n(param + i, v_fma(v_sub(xi, zi), v_set1(s->beta1), zi), n - i);
    }
}

void LS_K(ema)(int64_t n, float weight, const float *x, float *mean) {
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 was = v_load_n(mean + i, n - i);
        v16 change = v_sub(v_load_n(x + i, n - i), was);
        v_store_n(mean + i, v_fma(change, v_set1(weight), was), n - i);
    }
}
