/* pooling.c - maxima and means of windows of NHWC images, forward and backward. The gradient of an
 * input pixel is gathered from the windows that cover it. */
#include "tensor/kernels/each.h"
#include "tensor/kernels/variant.h"

/* Indices [from, to) along one dimension. */
typedef struct range {
    int64_t from, to;
} range;

/* The input pixels of window `o` along dimension d. */
static inline range window_of(const ls_pooling *p, int d, int64_t o) {
    int64_t start = o * p->stride[d] - p->padding[d], end = start + p->window[d];
    return (range){start > 0 ? start : 0, end < p->in[d] ? end : p->in[d]};
}

/* The windows that cover input pixel i along dimension d. */
static inline range windows_over(const ls_pooling *p, int d, int64_t i) {
    int64_t at = i + p->padding[d], before = at - p->window[d];
    int64_t from = before < 0 ? 0 : before / p->stride[d] + 1, to = at / p->stride[d] + 1;
    return (range){from, to < p->out[d] ? to : p->out[d]};
}

/* The place of input pixel (iy, ix) in window (oy, ox). */
static inline int64_t place_of(const ls_pooling *p, const int64_t i[2], int64_t oy, int64_t ox) {
    int64_t r = i[0] + p->padding[0] - oy * p->stride[0];
    int64_t s = i[1] + p->padding[1] - ox * p->stride[1];
    return r * p->window[1] + s;
}

static void take_greater(int64_t C, const float *x, uint16_t place, float *y, uint16_t *best) {
    EACH for (int64_t c = 0; c < C; c++) {
        float a = x[c], b = y[c];
        int take = (a > b) | (a != a);
        y[c] = take ? a : b;
        best[c] = take ? place : best[c];
    }
}

static void max_window(const ls_pooling *p, const float *x, int64_t oy, int64_t ox, float *y,
                       uint16_t *best) {
    range rows = window_of(p, 0, oy), columns = window_of(p, 1, ox);
    for (int64_t iy = rows.from; iy < rows.to; iy++)
        for (int64_t ix = columns.from; ix < columns.to; ix++) {
            const float *pixel = x + (iy * p->in[1] + ix) * p->C;
            uint16_t place = (uint16_t)place_of(p, (int64_t[]){iy, ix}, oy, ox);
            if (iy == rows.from && ix == columns.from) {
                memcpy(y, pixel, (size_t)p->C * sizeof *y);
                for (int64_t c = 0; c < p->C; c++) best[c] = place;
            } else {
                take_greater(p->C, pixel, place, y, best);
            }
        }
}

void LS_K(max_pooling)(const ls_pooling *p, const float *x, float *y, uint16_t *place) {
    for (int64_t s = 0; s < p->samples; s++, x += p->in[0] * p->in[1] * p->C)
        for (int64_t oy = 0; oy < p->out[0]; oy++)
            for (int64_t ox = 0; ox < p->out[1]; ox++, y += p->C, place += p->C)
                max_window(p, x, oy, ox, y, place);
}

static void add_where(int64_t C, const float *dy, const uint16_t *best, int place, float *dx) {
    EACH for (int64_t c = 0; c < C; c++) dx[c] = dx[c] + (best[c] == place ? dy[c] : 0.0f);
}

static void max_pixel_dx(const ls_pooling *p, const float *dy, const uint16_t *best,
                         const int64_t i[2], float *dx) {
    range rows = windows_over(p, 0, i[0]), columns = windows_over(p, 1, i[1]);
    memset(dx, 0, (size_t)p->C * sizeof *dx);
    for (int64_t oy = rows.from; oy < rows.to; oy++)
        for (int64_t ox = columns.from; ox < columns.to; ox++) {
            int64_t at = (oy * p->out[1] + ox) * p->C;
            add_where(p->C, dy + at, best + at, (int)place_of(p, i, oy, ox), dx);
        }
}

void LS_K(max_pooling_dx)(const ls_pooling *p, const float *dy, const uint16_t *place, float *dx) {
    int64_t outputs = p->out[0] * p->out[1] * p->C;
    for (int64_t s = 0; s < p->samples; s++, dy += outputs, place += outputs)
        for (int64_t iy = 0; iy < p->in[0]; iy++)
            for (int64_t ix = 0; ix < p->in[1]; ix++, dx += p->C)
                max_pixel_dx(p, dy, place, (int64_t[]){iy, ix}, dx);
}

/* The number by which window (oy, ox) divides. */
static inline float divisor(const ls_pooling *p, int64_t oy, int64_t ox) {
    range rows = window_of(p, 0, oy), columns = window_of(p, 1, ox);
    if (p->count_padding) return (float)(p->window[0] * p->window[1]);
    return (float)((rows.to - rows.from) * (columns.to - columns.from));
}

static void average_window(const ls_pooling *p, const float *x, int64_t oy, int64_t ox, float *y) {
    range rows = window_of(p, 0, oy), columns = window_of(p, 1, ox);
    v16 count = v_set1(divisor(p, oy, ox));
    for (int64_t c = 0; c < p->C; c += LS_LANES) {
        v16 sum = v_set1(0.0f);
        for (int64_t iy = rows.from; iy < rows.to; iy++)
            for (int64_t ix = columns.from; ix < columns.to; ix++)
                sum = v_add(sum, v_load_n(x + (iy * p->in[1] + ix) * p->C + c, p->C - c));
        v_store_n(y + c, v_div(sum, count), p->C - c);
    }
}

void LS_K(average_pooling)(const ls_pooling *p, const float *x, float *y) {
    for (int64_t s = 0; s < p->samples; s++, x += p->in[0] * p->in[1] * p->C)
        for (int64_t oy = 0; oy < p->out[0]; oy++)
            for (int64_t ox = 0; ox < p->out[1]; ox++, y += p->C) average_window(p, x, oy, ox, y);
}

static void average_pixel_dx(const ls_pooling *p, const float *dy, int64_t iy, int64_t ix,
                             float *dx) {
    range rows = windows_over(p, 0, iy), columns = windows_over(p, 1, ix);
    for (int64_t c = 0; c < p->C; c += LS_LANES) {
        v16 sum = v_set1(0.0f);
        for (int64_t oy = rows.from; oy < rows.to; oy++)
            for (int64_t ox = columns.from; ox < columns.to; ox++) {
                v16 d = v_load_n(dy + (oy * p->out[1] + ox) * p->C + c, p->C - c);
                sum = v_add(sum, v_div(d, v_set1(divisor(p, oy, ox))));
            }
        v_store_n(dx + c, sum, p->C - c);
    }
}

void LS_K(average_pooling_dx)(const ls_pooling *p, const float *dy, float *dx) {
    for (int64_t s = 0; s < p->samples; s++, dy += p->out[0] * p->out[1] * p->C)
        for (int64_t iy = 0; iy < p->in[0]; iy++)
            for (int64_t ix = 0; ix < p->in[1]; ix++, dx += p->C)
                average_pixel_dx(p, dy, iy, ix, dx);
}

void LS_K(mean_pooling)(int64_t samples, int64_t pixels, int64_t C, const float *x, float *y) {
    const v16 count = v_set1((float)pixels);
    for (int64_t s = 0; s < samples; s++, x += pixels * C, y += C)
        for (int64_t c = 0; c < C; c += LS_LANES) {
            v16 sum = v_set1(0.0f);
            for (int64_t p = 0; p < pixels; p++) sum = v_add(sum, v_load_n(x + p * C + c, C - c));
            v_store_n(y + c, v_div(sum, count), C - c);
        }
}

void LS_K(mean_pooling_dx)(int64_t samples, int64_t pixels, int64_t C, const float *dy, float *dx) {
    const v16 count = v_set1((float)pixels);
    for (int64_t s = 0; s < samples; s++, dy += C, dx += pixels * C)
        for (int64_t c = 0; c < C; c += LS_LANES) {
            v16 d = v_div(v_load_n(dy + c, C - c), count);
            for (int64_t p = 0; p < pixels; p++) v_store_n(dx + p * C + c, d, C - c);
        }
}
