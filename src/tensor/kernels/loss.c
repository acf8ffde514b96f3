/* loss.c - softmax of whole rows, and losses over rows. Label smoothing: Szegedy et al., arXiv
 * 1512.00567. */
#include "base/math.h"
#include "tensor/kernels/each.h"
#include "tensor/kernels/sigmoid.h"
#include "tensor/kernels/term.h"
#include "tensor/kernels/variant.h"

static float greatest(int64_t n, const float *x) {
    v16 m = v_set1(-INFINITY);
    for (int64_t i = 0; i < n; i += LS_LANES)
        m = v_max(m, v_keep(v_load_n(x + i, n - i), n - i, -INFINITY));
    return v_max_lane(m);
}

/* The maximum, and 1/sum of e^(x - maximum), which is returned. */
static float row_stat(int64_t n, const float *x, float stat[2]) {
    stat[0] = greatest(n, x);
    v16 sum = v_set1(0.0f), max = v_set1(stat[0]);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 e = term(v_sub(v_load_n(x + i, n - i), max));
        sum = v_add(sum, v_keep(e, n - i, 0.0f));
    }
    float total = v_sum(sum);
    stat[1] = 1.0f / total;
    return total;
}

/* y = (softmax(x) - shift) * factor. */
static void row_softmax(int64_t n, const float *x, const float stat[2], const float by[2],
                        float *y) {
    v16 max = v_set1(stat[0]), inverse = v_set1(stat[1]);
    v16 shift = v_set1(by[0]), factor = v_set1(by[1]);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 p = v_mul(term(v_sub(v_load_n(x + i, n - i), max)), inverse);
        v_store_n(y + i, v_mul(v_sub(p, shift), factor), n - i);
    }
}

void LS_K(softmax)(int64_t rows, int64_t n, const float *x, float *y) {
    static const float plain[2] = {0.0f, 1.0f};
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        float stat[2];
        row_stat(n, x, stat);
        row_softmax(n, x, stat, plain, y);
    }
}

static float row_sum(int64_t n, const float *x) {
    v16 sum = v_set1(0.0f);
    for (int64_t i = 0; i < n; i += LS_LANES) sum = v_add(sum, v_load_n(x + i, n - i));
    return v_sum(sum);
}

static float row_factor(const ls_loss_rows *l, int64_t r) {
    return l->weight ? l->scale * l->weight[r] : l->scale;
}

void LS_K(smoothed_cross_entropy)(const ls_loss_rows *l) {
    for (int64_t r = 0; r < l->rows; r++) {
        const float *x = l->x + r * l->n;
        l->losses[r] = 0.0;
        if (l->label[r] < 0) continue;
        double log_sum = ls_math_log((double)row_stat(l->n, x, l->stat + 2 * r));
        double right = (double)x[l->label[r]], max = (double)l->stat[2 * r];
        double loss = log_sum + (max - right);
        if (l->smoothing > 0.0f) {
            double mean = (double)row_sum(l->n, x) / (double)l->n;
            loss += (double)l->smoothing * (right - mean);
        }
        l->losses[r] = isnan(x[l->label[r]]) || isnan(l->stat[2 * r + 1]) ? (double)NAN : loss;
    }
}

void LS_K(smoothed_cross_entropy_dx)(const ls_loss_rows *l) {
    float everywhere = l->smoothing / (float)l->n, at_label = 1.0f - l->smoothing;
    for (int64_t r = 0; r < l->rows; r++) {
        float *dx = l->dx + r * l->n, by[2] = {everywhere, row_factor(l, r)};
        if (l->label[r] < 0) {
            memset(dx, 0, (size_t)l->n * sizeof *dx);
            continue;
        }
        const float *x = l->x + r * l->n;
        float own = x[l->label[r]];
        row_softmax(l->n, x, l->stat + 2 * r, by, dx);
        by[0] += at_label;
        row_softmax(1, &own, l->stat + 2 * r, by, dx + l->label[r]);
    }
}

/* The sum of n <= 16 losses, continued from `sum`. */
static double binary_losses(int64_t n, const float *x, const float *t, double sum) {
    float e[LS_LANES];
    double logs[LS_LANES];
    v16 a = v_load_n(x, n);
    v_store(e, term(v_min(a, v_sub(v_set1(0.0f), a)))); /* e^-|x| */
    EACH for (int i = 0; i < LS_LANES; i++) logs[i] = ls_math_log(1.0 + (double)e[i]);
    for (int64_t i = 0; i < n && i < LS_LANES; i++) {
        double wide = (double)x[i], positive = wide > 0.0 ? wide : 0.0;
        sum = sum + ((positive - wide * (double)t[i]) + logs[i]);
    }
    return sum;
}

void LS_K(binary_cross_entropy)(const ls_loss_rows *l) {
    for (int64_t r = 0; r < l->rows; r++) {
        const float *x = l->x + r * l->n, *t = l->target + r * l->n;
        double sum = 0.0;
        for (int64_t i = 0; i < l->n; i += LS_LANES)
            sum = binary_losses(l->n - i, x + i, t + i, sum);
        l->losses[r] = sum;
    }
}

void LS_K(binary_cross_entropy_dx)(const ls_loss_rows *l) {
    for (int64_t r = 0; r < l->rows; r++) {
        const v16 factor = v_set1(row_factor(l, r));
        for (int64_t i = 0; i < l->n; i += LS_LANES) {
            int64_t at = r * l->n + i, n = l->n - i;
            v16 d = v_sub(v_sigmoid(v_load_n(l->x + at, n)), v_load_n(l->target + at, n));
            v_store_n(l->dx + at, v_mul(d, factor), n);
        }
    }
}

void LS_K(squared_error)(const ls_loss_rows *l) {
    for (int64_t r = 0; r < l->rows; r++) {
        const float *x = l->x + r * l->n, *t = l->target + r * l->n;
        double sum = 0.0;
        for (int64_t i = 0; i < l->n; i++) {
            double d = (double)x[i] - (double)t[i];
            sum = sum + d * d;
        }
        l->losses[r] = sum;
    }
}

void LS_K(squared_error_dx)(const ls_loss_rows *l) {
    for (int64_t r = 0; r < l->rows; r++) {
        const v16 factor = v_set1(2.0f * row_factor(l, r));
        for (int64_t i = 0; i < l->n; i += LS_LANES) {
            int64_t at = r * l->n + i, n = l->n - i;
            v16 d = v_sub(v_load_n(l->x + at, n), v_load_n(l->target + at, n));
            v_store_n(l->dx + at, v_mul(d, factor), n);
        }
    }
}
