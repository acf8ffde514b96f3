/* image.h - convolutions of random sizes and their operands, for conv_test.c and variant_bits.c. */
#ifndef LS_TEST_IMAGE_H
#define LS_TEST_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "tensor/conv.h"

typedef struct image {
    ls_conv v;
    int64_t n;
    size_t nx, ny, nw;                 /* floats of x, of y, of w */
    float *x, *w, *dy, *bias, *bias_x; /* inputs */
    float *before;                     /* what outputs hold before a call: nx + ny + nw + out */
    float *y, *dx, *dw, *db;
} image;

/* Allocates memory of exactly `n` floats, so that sanitizers see what is read beyond. */
static inline float *image_floats(size_t n, uint64_t stream) {
    float *p = malloc(n * sizeof *p + (n == 0));
    if (!p) abort();
    if (n) ls_random_normal((ls_random_place){17, LS_STREAM_SAMPLE, stream, 0}, n, 1.0f, p);
    return p;
}

static inline image make_image(const ls_conv *v, int64_t n) {
    image p = {.v = *v, .n = n};
    p.nx = (size_t)(n * v->h * v->w * v->in);
    p.ny = (size_t)(n * ls_conv_out_h(v) * ls_conv_out_w(v) * v->out);
    p.nw = (size_t)(v->kernel_h * v->kernel_w * (v->in / v->groups) * v->out);
    p.x = image_floats(p.nx, 1);
    p.w = image_floats(p.nw, 2);
    p.dy = image_floats(p.ny, 3);
    p.bias = image_floats((size_t)v->out, 4);
    p.bias_x = image_floats((size_t)v->in, 5);
    p.before = image_floats(p.nx + p.ny + p.nw + (size_t)v->out, 6);
    p.y = image_floats(p.ny, 7);
    p.dx = image_floats(p.nx, 8);
    p.dw = image_floats(p.nw, 9);
    p.db = image_floats((size_t)v->out, 10);
    return p;
}

static inline void drop_image(image *p) {
    float *const all[] = {p->x,      p->w, p->dy, p->bias, p->bias_x,
                          p->before, p->y, p->dx, p->dw,   p->db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* Puts random numbers into the outputs, always the same: outputs continue from them, or they are
 * overwritten. */
static inline void reset_image(image *p) {
    memcpy(p->y, p->before, p->ny * sizeof(float));
    memcpy(p->dx, p->before + p->ny, p->nx * sizeof(float));
    memcpy(p->dw, p->before + p->ny + p->nx, p->nw * sizeof(float));
    memcpy(p->db, p->before + p->ny + p->nx + p->nw, (size_t)p->v.out * sizeof(float));
}

/* All four calls for the samples [first, first + n). */
static inline void run_image(const ls_compute *c, image *p, ls_gemm_start start, int64_t first,
                             int64_t n) {
    int64_t x = p->v.h * p->v.w * p->v.in;
    int64_t y = ls_conv_out_h(&p->v) * ls_conv_out_w(&p->v) * p->v.out;
    ls_conv_job job = {.n = n,
                       .start = start,
                       .x = p->x + first * x,
                       .w = p->w,
                       .dy = p->dy + first * y,
                       .bias = p->bias,
                       .y = p->y + first * y,
                       .dx = p->dx + first * x,
                       .dw = p->dw,
                       .db = p->db};
    ls_conv_forward(c, &p->v, &job);
    job.bias = p->bias_x;
    ls_conv_back_x(c, &p->v, &job);
    if (first > 0) job.start = LS_GEMM_ADD;
    ls_conv_back_w(c, &p->v, &job);
    ls_conv_back_bias(c, &p->v, &job);
}

#endif
