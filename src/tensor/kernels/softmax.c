/* softmax.c - rows of attention scores and of logits. */
#include "tensor/kernels/variant.h"

static float row_max(int64_t n, const float *x) {
    v16 m = v_set1(-INFINITY);
    for (int64_t i = 0; i < n; i += LS_LANES)
        m = v_max(m, v_keep(v_load_n(x + i, n - i), n - i, -INFINITY));
    return v_max_lane(m);
}

/* x[i] = exp(scale * x[i] - max) * factor for i < n; returns the sum before the factor. */
static float row_exp(int64_t n, float *x, float scale, float max, float factor) {
    v16 sum = v_set1(0.0f), vscale = v_set1(scale), vmax = v_set1(-max), f = v_set1(factor);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 e = v_exp(v_fma(v_load_n(x + i, n - i), vscale, vmax));
        e = v_keep(e, n - i, 0.0f);
        sum = v_add(sum, e);
        v_store_n(x + i, v_mul(e, f), n - i);
    }
    return v_sum(sum);
}

static void row_scale(int64_t n, float *x, float factor) {
    v16 f = v_set1(factor);
    for (int64_t i = 0; i < n; i += LS_LANES)
        v_store_n(x + i, v_mul(v_load_n(x + i, n - i), f), n - i);
}

/* Returns how many keys query `first` + r sees, and sets the rest to zero. */
static int64_t row_mask(int64_t r, int64_t first, int64_t width, float *s) {
    int64_t seen = first + r + 1 < width ? first + r + 1 : width;
    memset(s + seen, 0, (size_t)(width - seen) * sizeof *s);
    return seen;
}

void LS_K(softmax_causal)(int64_t rows, int64_t width, int64_t first, float scale, float *s,
                          float *stat) {
    for (int64_t r = 0; r < rows; r++, s += width, stat += 2) {
        int64_t seen = row_mask(r, first, width, s);
        stat[0] = row_max(seen, s) * scale; /* scale > 0 */
        stat[1] = 1.0f / row_exp(seen, s, scale, stat[0], 1.0f);
        row_scale(seen, s, stat[1]);
    }
}

void LS_K(softmax_causal_again)(int64_t rows, int64_t width, int64_t first, float scale, float *s,
                                const float *stat) {
    for (int64_t r = 0; r < rows; r++, s += width, stat += 2)
        row_exp(row_mask(r, first, width, s), s, scale, stat[0], stat[1]);
}

void LS_K(softmax_causal_dx)(int64_t rows, int64_t width, float scale, const float *p, float *dp) {
    for (int64_t r = 0; r < rows; r++, p += width, dp += width) {
        v16 sum = v_set1(0.0f);
        for (int64_t i = 0; i < width; i += LS_LANES)
            sum = v_fma(v_load_n(p + i, width - i), v_load_n(dp + i, width - i), sum);
        v16 dot = v_set1(v_sum(sum)), vscale = v_set1(scale);
        for (int64_t i = 0; i < width; i += LS_LANES) {
            v16 d = v_sub(v_load_n(dp + i, width - i), dot);
            d = v_mul(v_mul(v_load_n(p + i, width - i), d), vscale);
            v_store_n(dp + i, d, width - i);
        }
    }
}

float LS_K(cross_entropy)(int64_t n, const float *x, float stat[2]) {
    stat[0] = row_max(n, x);
    v16 sum = v_set1(0.0f), vmax = v_set1(stat[0]);
    for (int64_t i = 0; i < n; i += LS_LANES) {
        v16 e = v_exp(v_sub(v_load_n(x + i, n - i), vmax));
        sum = v_add(sum, v_keep(e, n - i, 0.0f));
    }
    float total = v_sum(sum);
    stat[1] = 1.0f / total;
    return total;
}

void LS_K(cross_entropy_dx)(int64_t n, float *x, const float stat[2], int64_t target, float scale) {
    row_exp(n, x, 1.0f, stat[0], stat[1]);
    if (target >= 0) x[target] = x[target] - 1.0f;
    row_scale(n, x, scale);
}
