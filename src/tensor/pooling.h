/* pooling.h - operands of the kernels that pool neighbouring pixels; the pool of threads is pool.h.
 *
 * Images are NHWC. Window, stride and padding are {height, width}. The window of output pixel
 * (oy, ox) begins at input pixel (oy * stride - padding, ox * stride - padding); its places are
 * numbered row by row. Places outside of the image are skipped.
 */
#ifndef LS_TENSOR_POOLING_H
#define LS_TENSOR_POOLING_H

#include <stdbool.h>
#include <stdint.h>

/* The most places of a window of max pooling. */
enum { LS_POOLING_MOST_PLACES = 65536 };

/* padding < window, so that each window has a pixel; stride >= 1. */
typedef struct ls_pooling {
    int64_t samples, C;
    int64_t in[2], out[2]; /* height, width; out by ls_pooling_out() */
    int64_t window[2], stride[2], padding[2];
    bool count_padding; /* averages divide by the window's size, also where it is partly outside */
} ls_pooling;

/* The size of the output along one dimension; 0 if the window doesn't fit. */
static inline int64_t ls_pooling_out(int64_t in, int64_t window, int64_t stride, int64_t padding) {
    int64_t free = in + 2 * padding - window;
    return free < 0 ? 0 : free / stride + 1;
}

typedef struct ls_pooling_kernels {
    /* y = the window's maximum, `place` its place: the first of equals. A NaN is greater than all
     * else. x [samples, in, C]; y, place [samples, out, C]. */
    void (*max)(const ls_pooling *, const float *x, float *y, uint16_t *place);
    /* dx = the sum of dy of the windows whose maximum the pixel is, one chain in their order. */
    void (*max_dx)(const ls_pooling *, const float *dy, const uint16_t *place, float *dx);
    /* y = the window's mean; the sum is one chain in the order of places. */
    void (*average)(const ls_pooling *, const float *x, float *y);
    void (*average_dx)(const ls_pooling *, const float *dy, float *dx);
    /* y [samples, C] = the mean over x [samples, pixels, C], one chain over pixels; pixels >= 1. */
    void (*mean)(int64_t samples, int64_t pixels, int64_t C, const float *x, float *y);
    void (*mean_dx)(int64_t samples, int64_t pixels, int64_t C, const float *dy, float *dx);
} ls_pooling_kernels;

#endif
