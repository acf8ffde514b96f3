/* conv_device.c - see conv_device.h. */
#include "tensor/conv_device.h"

#include <assert.h>

enum { TILE = 64, SHAPE = 12 };

/* A kernel that computes rows x (columns of each of the convolution's groups); the arguments from
 * number SHAPE on are its own. */
static ls_device_call call_of(ls_device_kernel kernel, const ls_conv *v, int64_t n, int64_t rows,
                              int64_t columns) {
    int64_t tiles = ls_device_groups(rows, TILE) * v->groups;
    return (ls_device_call){.kernel = kernel,
                            .groups_x = tiles * ls_device_groups(columns / v->groups, TILE),
                            .groups_y = 1,
                            .args = {{.l = n},
                                     {.l = v->h},
                                     {.l = v->w},
                                     {.l = v->in},
                                     {.l = v->out},
                                     {.l = v->kernel_h},
                                     {.l = v->kernel_w},
                                     {.l = v->stride_h},
                                     {.l = v->stride_w},
                                     {.l = v->pad_h},
                                     {.l = v->pad_w},
                                     {.l = v->groups}}};
}

static const float *bias_of(const ls_conv_job *j) {
    assert(j->start != LS_GEMM_ADD);
    return j->start == LS_GEMM_BIAS ? j->bias : NULL;
}

void ls_conv_device_forward(const ls_compute *c, const ls_conv *v, const ls_conv_job *j) {
    int64_t pixels = j->n * ls_conv_out_h(v) * ls_conv_out_w(v);
    ls_device_call call = call_of(LS_KERNEL_conv, v, j->n, pixels, v->out);
    call.args[SHAPE].from = j->x;
    call.args[SHAPE + 1].from = j->w;
    call.args[SHAPE + 2].from = bias_of(j);
    call.args[SHAPE + 3].p = j->y;
    ls_compute_launch(c, &call);
}

/* The pixels at `phase` and every `stride` from there. */
static int64_t pixels_at(int64_t phase, int64_t size, int64_t stride) {
    return phase < size ? (size - phase + stride - 1) / stride : 0;
}

void ls_conv_device_back_x(const ls_compute *c, const ls_conv *v, const ls_conv_job *j) {
    for (int64_t y = 0; y < v->stride_h; y++)
        for (int64_t x = 0; x < v->stride_w; x++) {
            int64_t pixels =
                j->n * pixels_at(y, v->h, v->stride_h) * pixels_at(x, v->w, v->stride_w);
            ls_device_call call = call_of(LS_KERNEL_conv_dx, v, j->n, pixels, v->in);
            call.args[SHAPE].l = y;
            call.args[SHAPE + 1].l = x;
            call.args[SHAPE + 2].from = j->dy;
            call.args[SHAPE + 3].from = j->w;
            call.args[SHAPE + 4].from = bias_of(j);
            call.args[SHAPE + 5].p = j->dx;
            ls_compute_launch(c, &call);
        }
}

void ls_conv_device_back_w(const ls_compute *c, const ls_conv *v, const ls_conv_job *j) {
    int64_t rows = v->kernel_h * v->kernel_w * (v->in / v->groups);
    ls_device_call call = call_of(LS_KERNEL_conv_dw, v, j->n, rows, v->out);
    call.args[SHAPE].l = j->start == LS_GEMM_ADD;
    call.args[SHAPE + 1].from = j->x;
    call.args[SHAPE + 2].from = j->dy;
    call.args[SHAPE + 3].p = j->dw;
    ls_compute_launch(c, &call);
}

void ls_conv_device_back_bias(const ls_compute *c, const ls_conv *v, const ls_conv_job *j) {
    enum { ITEMS = 256 };
    LS_LAUNCH(c, LS_KERNEL_column_sum, ls_device_groups(v->out, ITEMS), 1,
              {.l = j->n * ls_conv_out_h(v) * ls_conv_out_w(v)}, {.l = v->out}, {.from = j->dy},
              {.l = v->out}, {.l = j->start == LS_GEMM_ADD}, {.p = j->db});
}
