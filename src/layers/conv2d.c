/* conv2d.c - convolutions of images, and transposed ones (tensor/conv.h).
 *
 * params: weight [kernel_h, kernel_w, in / groups, out], bias [out]. Backward reads x, and saves
 * nothing else. A transposed convolution computes what the gradient of a convolution does: from an
 * image of the convolution's outputs to one of its inputs. */
#include <math.h>

#include "model/builder.h"
#include "model/row_ops.h"
#include "tensor/conv.h"

enum { W, BIAS };

static const ls_conv *conv_of(const ls_layer *l) { return &LS_LAYER_OWN_OF(ls_conv, l); }

static const float *bias_of(const ls_layer *l, const ls_layer_call *c) {
    return l->nparams > BIAS ? ls_layer_param(l, c, BIAS) : NULL;
}

static ls_gemm_start chains_of(const ls_layer_call *c) {
    return c->grads_start ? LS_GEMM_ZERO : LS_GEMM_ADD;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_conv_job j = {.n = c->n,
                     .start = l->nparams > BIAS ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                     .x = c->x[0],
                     .w = ls_layer_param(l, c, W),
                     .bias = bias_of(l, c),
                     .y = c->y};
    ls_conv_forward(c->compute, conv_of(l), &j);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_conv_job j = {.n = c->n,
                     .x = c->x[0],
                     .w = ls_layer_param(l, c, W),
                     .dy = c->dy,
                     .dx = c->dx[0],
                     .dw = ls_layer_grad(l, c, W)};
    if (j.dx) ls_conv_back_x(c->compute, conv_of(l), &j);
    j.start = chains_of(c);
    if (j.dw) ls_conv_back_w(c->compute, conv_of(l), &j);
    if (l->nparams <= BIAS || !ls_layer_trains(l, BIAS)) return;
    j.db = ls_layer_grad(l, c, BIAS);
    ls_conv_back_bias(c->compute, conv_of(l), &j);
}

static void describe(const ls_layer *l, ls_facts *f) {
    *f = (ls_facts){.conv = conv_of(l), .bias = l->nparams > BIAS ? BIAS : 0};
}

static const ls_layer_ops ops = {
    .kind = "conv2d", .forward = forward, .backward = backward, .describe = describe};

/* ---- transposed: x has the place of the convolution's dy, y that of its dx ---- */

static void transposed_forward(const ls_layer *l, const ls_layer_call *c) {
    ls_conv_job j = {.n = c->n,
                     .start = l->nparams > BIAS ? LS_GEMM_BIAS : LS_GEMM_ZERO,
                     .dy = c->x[0],
                     .w = ls_layer_param(l, c, W),
                     .bias = bias_of(l, c),
                     .dx = c->y};
    ls_conv_back_x(c->compute, conv_of(l), &j);
}

/* The bias has a value for each channel of y, the convolution's input. */
static void transposed_backward(const ls_layer *l, const ls_layer_call *c) {
    const ls_conv *v = conv_of(l);
    ls_conv_job j = {.n = c->n,
                     .x = c->dy,
                     .w = ls_layer_param(l, c, W),
                     .dy = c->x[0],
                     .y = c->dx[0],
                     .dw = ls_layer_grad(l, c, W)};
    if (j.y) ls_conv_forward(c->compute, v, &j);
    j.start = chains_of(c);
    if (j.dw) ls_conv_back_w(c->compute, v, &j);
    if (l->nparams > BIAS && ls_layer_trains(l, BIAS))
        ls_rows_column_sum(c, c->n * v->h * v->w, ls_matrix_of(c->dy, v->in),
                           ls_layer_grad(l, c, BIAS));
}

static const ls_layer_ops transposed_ops = {.kind = "conv2d_transposed",
                                            .forward = transposed_forward,
                                            .backward = transposed_backward,
                                            .describe = describe};

/* ---- the calls ---- */

static bool is_image(ls_model *m, const ls_value *x) {
    if (x->ndims != 3)
        ls_build_fail(m, "the input is %s; an image [height, width, channels] is needed",
                      ls_dims_write(x->dims).text);
    return x->ndims == 3;
}

/* The given options, with defaults in place of zeros. */
static ls_conv2d_options complete(ls_conv2d_options o) {
    if (!o.kernel_w) o.kernel_w = o.kernel;
    if (!o.stride) o.stride = 1;
    if (!o.groups) o.groups = 1;
    return o;
}

/* Products of one sample; the columns of a product are those of all groups together, or of 16
 * channels where each is a group. */
static void declare_cost(ls_layer *l, const ls_conv *v, bool transposed) {
    int64_t pixels = ls_conv_out_h(v) * ls_conv_out_w(v);
    int64_t depth = v->kernel_h * v->kernel_w * (v->in / v->groups);
    ls_work forward = {
        .kind = LS_WORK_PRODUCT, .M = pixels, .N = v->out, .K = depth, .times = 1, .in_f32 = true};
    ls_work dx = {.kind = LS_WORK_PRODUCT_DX,
                  .M = v->h * v->w,
                  .N = v->in,
                  .K = v->kernel_h * v->kernel_w * (v->out / v->groups),
                  .times = 1.0 / (double)(v->stride_h * v->stride_w),
                  .in_f32 = true};
    ls_work dw = {.kind = LS_WORK_PRODUCT_DW,
                  .M = depth,
                  .N = v->out,
                  .K = pixels,
                  .times = 1,
                  .in_f32 = true};
    ls_works *f = &l->cost.forward, *b = &l->cost.backward;
    l->cost.flops = 2.0 * (double)(pixels * v->out * depth);
    f->list[f->n++] = transposed ? dx : forward;
    f->list[0].kind = LS_WORK_PRODUCT;
    b->list[b->n++] = transposed ? forward : dx;
    b->list[0].kind = LS_WORK_PRODUCT_DX;
    b->list[b->n++] = dw;
    ls_works_grads(b, 1u << W);
    if (l->nparams <= BIAS) return;
    ls_works_pass(b, LS_WORK_COLUMN_SUM, transposed ? v->h * v->w * v->in : pixels * v->out);
    ls_works_grads(b, 1u << BIAS);
}

/* The convolution is complete; fan_in: the number of terms of an output. */
static ls_value *add(ls_model *m, ls_layer *l, const ls_conv *v, const ls_conv2d_options *o,
                     double fan_in) {
    ls_error e = {0};
    bool transposed = l->ops == &transposed_ops;
    if (ls_conv_check(v, &e) != LS_OK) return ls_build_fail(m, "%s", e.msg);
    LS_LAYER_OWN_AS(ls_conv, l) = *v;
    l->traits.only_first_reads = true;
    l->traits.on_device = true;
    ls_build_param(m, l, "weight",
                   &(ls_param){.ndims = 4,
                               .dims = {v->kernel_h, v->kernel_w, v->in / v->groups, v->out},
                               .decay = true,
                               .init.std = (float)sqrt(2 / fan_in)});
    if (!o->no_bias) ls_build_param(m, l, "bias", &(ls_param){.ndims = 1, .dims = {o->channels}});
    declare_cost(l, v, transposed);
    if (transposed) return ls_build_value(m, LS_DIMS(v->h, v->w, v->in));
    return ls_build_value(m, LS_DIMS(ls_conv_out_h(v), ls_conv_out_w(v), v->out));
}

/* Padding that keeps the size if the stride is 1 and the kernel is odd. */
static int64_t pad_of(const ls_conv2d_options *o, int64_t kernel) {
    return o->pad == LS_NO_PAD ? 0 : o->pad ? o->pad : kernel / 2;
}

ls_value *(ls_conv2d)(ls_model *m, ls_value *x, ls_conv2d_options given) {
    ls_layer *l = ls_build_layer(m, "conv2d", given.name, &x, 1);
    if (!l || !is_image(m, x)) return ls_build_failed(m);
    ls_conv2d_options o = complete(given);
    ls_conv v = {.h = x->dims.of[0],
                 .w = x->dims.of[1],
                 .in = x->dims.of[2],
                 .out = o.channels,
                 .kernel_h = o.kernel,
                 .kernel_w = o.kernel_w,
                 .stride_h = o.stride,
                 .stride_w = o.stride,
                 .pad_h = pad_of(&o, o.kernel),
                 .pad_w = pad_of(&o, o.kernel_w),
                 .groups = o.groups};
    l->ops = &ops;
    return add(m, l, &v, &o, (double)(v.kernel_h * v.kernel_w * v.in) / (double)v.groups);
}

/* ---- sizes of a transposed convolution ---- */

/* Sets the size of the output, and the padding: unless it is given, the output is `stride` times as
 * large as the input. */
static void size_of(const ls_conv2d_options *o, int64_t in, int64_t kernel, int64_t *size_p,
                    int64_t *pad_p) {
    int64_t excess = kernel - o->stride;
    *pad_p = o->pad == LS_NO_PAD ? 0 : o->pad ? o->pad : excess > 0 ? (excess + 1) / 2 : 0;
    *size_p = o->pad ? (in - 1) * o->stride + kernel - 2 * *pad_p : in * o->stride;
}

ls_value *(ls_conv2d_transposed)(ls_model *m, ls_value *x, ls_conv2d_options given) {
    ls_layer *l = ls_build_layer(m, "conv2d_transposed", given.name, &x, 1);
    if (!l || !is_image(m, x)) return ls_build_failed(m);
    ls_conv2d_options o = complete(given);
    ls_conv v = {.in = o.channels,
                 .out = x->dims.of[2],
                 .kernel_h = o.kernel,
                 .kernel_w = o.kernel_w,
                 .stride_h = o.stride,
                 .stride_w = o.stride,
                 .groups = o.groups};
    size_of(&o, x->dims.of[0], o.kernel, &v.h, &v.pad_h);
    size_of(&o, x->dims.of[1], o.kernel_w, &v.w, &v.pad_w);
    if (!o.pad && o.stride == 1 && (o.kernel % 2 == 0 || o.kernel_w % 2 == 0))
        return ls_build_fail(m, "an even kernel with stride 1 can't keep the size; give a padding");
    l->ops = &transposed_ops;
    double terms = (double)(v.kernel_h * v.kernel_w * v.out) / (double)v.groups;
    return add(m, l, &v, &o, fmax(1, terms / (double)(o.stride * o.stride)));
}
