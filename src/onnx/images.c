/* images.c - layers of images [height, width, channels], with channels first as ONNX has them. What
 * is no image, [.., C], counts as one of a row of pixels. */
#include <stdlib.h>
#include <string.h>

#include "onnx/kinds.h"

/* The weights of a convolution, [kernel_h, kernel_w, in, out], as [out, in, kernel_h, kernel_w]: of
 * a transposed one, whose `in` are those of its output, this is ONNX's order, too. */
static const char *kernels(ls_onnx_writer *w, const ls_layer *l) {
    const ls_param *p = &w->m->params[l->params[0]];
    int64_t h = p->dims[0], wide = p->dims[1], in = p->dims[2], out = p->dims[3];
    float *own = NULL;
    if (w->params[l->params[0]]) return w->params[l->params[0]];
    float *y = LS_NEW_ARRAY(float, p->count);
    const float *x = ls_onnx_param_values(w, l->params[0], &own);
    for (int64_t place = 0; place < h * wide; place++)
        for (int64_t c = 0; c < in; c++)
            for (int64_t k = 0; k < out; k++)
                y[(k * in + c) * h * wide + place] = x[(place * in + c) * out + k];
    free(own);
    w->params[l->params[0]] =
        ls_onnx_own_numbers(w->g, p->name, (ls_onnx_shape){4, {out, in, h, wide}}, y);
    return w->params[l->params[0]];
}

static void set_window(ls_onnx_writer *w, const int64_t *size, const int64_t *stride,
                       const int64_t *pad) {
    const int64_t pads[] = {pad[0], pad[1], pad[0], pad[1]};
    ls_onnx_set_ints(w->g, "kernel_shape", 2, size);
    ls_onnx_set_ints(w->g, "strides", 2, stride);
    ls_onnx_set_ints(w->g, "pads", 4, pads);
}

static const char *convolve(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f, const char *op,
                            ls_onnx_shape in) {
    const ls_conv *v = f->conv;
    const char *x = ls_onnx_read_planes(w, l, 0, in), *weight = kernels(w, l);
    const char *y = f->bias ? LS_ONNX_ADD(w->g, op, x, weight, ls_onnx_param(w, l, f->bias))
                            : LS_ONNX_ADD(w->g, op, x, weight);
    set_window(w, (const int64_t[]){v->kernel_h, v->kernel_w},
               (const int64_t[]){v->stride_h, v->stride_w}, (const int64_t[]){v->pad_h, v->pad_w});
    ls_onnx_set_int(w->g, "group", v->groups);
    return y;
}

void ls_onnx_write_conv2d(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const ls_conv *v = f->conv;
    ls_onnx_shape in = {3, {v->h, v->w, v->in}};
    ls_onnx_set_planes(w, l, convolve(w, l, f, "Conv", in));
}

/* The numbers of rows and columns that only the size of the output decides. */
void ls_onnx_write_conv2d_transposed(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    const ls_conv *v = f->conv;
    int64_t h = ls_conv_out_h(v), wide = ls_conv_out_w(v);
    ls_onnx_shape in = {3, {h, wide, v->out}};
    const int64_t more[] = {v->h - ((h - 1) * v->stride_h + v->kernel_h - 2 * v->pad_h),
                            v->w - ((wide - 1) * v->stride_w + v->kernel_w - 2 * v->pad_w)};
    const char *y = convolve(w, l, f, "ConvTranspose", in);
    ls_onnx_set_ints(w->g, "output_padding", 2, more);
    ls_onnx_set_planes(w, l, y);
}

/* ---- windows ---- */

static void pool(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f, const char *op) {
    const ls_pooling *p = f->pooling;
    ls_onnx_shape in = {3, {p->in[0], p->in[1], p->C}};
    const char *y = LS_ONNX_ADD(w->g, op, ls_onnx_read_planes(w, l, 0, in));
    set_window(w, p->window, p->stride, p->padding);
    if (p->count_padding && strcmp(op, "AveragePool") == 0)
        ls_onnx_set_int(w->g, "count_include_pad", 1);
    ls_onnx_set_planes(w, l, y);
}

void ls_onnx_write_max_pool(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    pool(w, l, f, "MaxPool");
}

void ls_onnx_write_average_pool(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    pool(w, l, f, "AveragePool");
}

/* [.., C] as an image; an image is as it is. */
static ls_onnx_shape image_of(ls_onnx_shape dims, int64_t C) {
    if (dims.n == 3 && dims.of[2] == C) return dims;
    return (ls_onnx_shape){3, {ls_onnx_count(dims) / C, 1, C}};
}

void ls_onnx_write_mean_pool(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t C = (int64_t)l->y_floats;
    ls_onnx_shape in = image_of(w->values[l->inputs[0]].dims, C);
    (void)f;
    if (!ls_onnx_has_planes(w, l, 0, in)) {
        ls_onnx_shape pixels = {2, {ls_onnx_count(in) / C, C}};
        const char *x = ls_onnx_read(w, l, 0, pixels);
        ls_onnx_set(w, l, ls_onnx_reduce(w, "ReduceMean", x, 1, false), (ls_onnx_shape){1, {C}});
        return;
    }
    const char *y = LS_ONNX_ADD(w->g, "GlobalAveragePool", ls_onnx_read_planes(w, l, 0, in));
    y = ls_onnx_reshape(w, y, (ls_onnx_shape){2, {-1, C}});
    ls_onnx_set(w, l, y, (ls_onnx_shape){1, {C}});
}

/* ---- norms ---- */

/* y is the layer's result as an image of this shape, channels first. */
static void set_image(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f, const char *y,
                      ls_onnx_shape image) {
    ls_onnx_shape dims = ls_onnx_output_dims(l);
    if (f->relu) y = LS_ONNX_ADD(w->g, "Relu", y);
    if (dims.n == 3) {
        ls_onnx_set_planes(w, l, y);
        return;
    }
    ls_onnx_set(w, l, ls_onnx_transpose(w, y, 4, (const int64_t[]){0, 2, 3, 1}), image);
}

/* Each group as a channel, whose numbers get mean 0 and deviation 1. */
void ls_onnx_write_group_norm(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    int64_t C = l->C, G = f->groups;
    ls_onnx_shape in = image_of(ls_onnx_output_dims(l), C);
    float *ones = LS_NEW_ARRAY(float, (size_t)G), *zeros = LS_NEW_ARRAY(float, (size_t)G);
    for (int64_t i = 0; i < G; i++) ones[i] = 1;
    const char *x = ls_onnx_read_planes(w, l, 0, in);
    x = ls_onnx_reshape(w, x, (ls_onnx_shape){3, {-1, G, ls_onnx_count(in) / G}});
    const char *scale = ls_onnx_vector(w->g, "ones", G, ones);
    const char *shift = ls_onnx_vector(w->g, "zeros", G, zeros);
    free(ones);
    free(zeros);
    const char *y = LS_ONNX_ADD(w->g, "InstanceNormalization", x, scale, shift);
    ls_onnx_set_real(w->g, "epsilon", f->eps);
    y = ls_onnx_reshape(w, y, (ls_onnx_shape){4, {-1, C, in.of[0], in.of[1]}});
    const int64_t behind[] = {1, 2};
    const char *weight = ls_onnx_expand(w, ls_onnx_param(w, l, 0), 2, behind);
    const char *bias = ls_onnx_expand(w, ls_onnx_param(w, l, 1), 2, behind);
    y = LS_ONNX_ADD(w->g, "Add", LS_ONNX_ADD(w->g, "Mul", y, weight), bias);
    set_image(w, l, f, y, in);
}

/* By the running values. */
void ls_onnx_write_batch_norm(ls_onnx_writer *w, const ls_layer *l, const ls_facts *f) {
    ls_onnx_shape in = image_of(ls_onnx_output_dims(l), l->C);
    const char *x = ls_onnx_read_planes(w, l, 0, in);
    const char *y =
        LS_ONNX_ADD(w->g, "BatchNormalization", x, ls_onnx_param(w, l, 0), ls_onnx_param(w, l, 1),
                    ls_onnx_param(w, l, 2), ls_onnx_param(w, l, 3));
    ls_onnx_set_real(w->g, "epsilon", f->eps);
    set_image(w, l, f, y, in);
}
