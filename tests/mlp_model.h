/* mlp_model.h - classifiers of vectors of bytes, for tests, and their samples.
 *
 *     input -> fc1 -> gelu -+-> fc2 -> sum -> fc3 -> loss
 *                           +-----------+
 *
 * norms_make(): one whose layers are followed by batch norms and layers of our own, whose Backward
 * can't be split.
 */
#ifndef LS_TEST_MLP_MODEL_H
#define LS_TEST_MLP_MODEL_H

#include "base/random.h"
#include "data/order.h"
#include "model/builder.h"
#include "test.h"

enum { MLP_BYTES = 13, MLP_WIDTH = 20, MLP_CLASSES = 7, MLP_CLASS_AT = 64 };

static inline void mlp_make(ls_model *m) {
    ls_error e = {0};
    *m = (ls_model){0};
    ls_value *bytes = ls_input(m, "bytes", LS_U8, LS_DIMS(MLP_BYTES));
    ls_value *class = ls_input(m, "class", LS_I32, LS_SCALAR);
    ls_value *x = ls_affine(m, bytes, 1 / 128.0f, -1);
    x = ls_gelu(m, ls_linear(m, x, .name = "fc1", .out = MLP_WIDTH));
    x = ls_add(m, x, ls_linear(m, x, .name = "fc2", .out = MLP_WIDTH));
    ls_cross_entropy(m, ls_linear(m, x, .name = "fc3", .out = MLP_CLASSES), class, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(m, &e), e);
    assert_int_equal(m->inputs[1].offset, MLP_CLASS_AT);
}

/* y = x * scale, with one number for each channel. */
static inline void mlp_scale_forward(const ls_layer_args *a) {
    int64_t width = a->param[0].count;
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++)
        a->out[i] = a->in[0].data[i] * a->param[0].data[i % width];
}

static inline void mlp_scale_backward(const ls_layer_args *a) {
    int64_t width = a->param[0].count;
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++) {
        a->din[0][i] = a->dout[i] * a->param[0].data[i % width];
        a->dparam[0][i % width] += a->dout[i] * a->in[0].data[i];
    }
}

/* Some blocks of the gradient have parameters of several stages, and some those of one kind
 * alone. */
enum { NORMS_WIDTH = 36, NORMS_WIDE = 1100, NORMS_BLOCKS = 4 };

static inline void norms_make(ls_model *m) {
    static const ls_layer_kind scale = {.name = "scale",
                                        .nparams = 1,
                                        .forward = mlp_scale_forward,
                                        .backward = mlp_scale_backward};
    ls_error e = {0};
    *m = (ls_model){0};
    ls_value *bytes = ls_input(m, "bytes", LS_U8, LS_DIMS(MLP_BYTES));
    ls_value *class = ls_input(m, "class", LS_I32, LS_SCALAR);
    ls_value *x = ls_affine(m, bytes, 1 / 128.0f, -1);
    x = ls_linear(m, x, .name = "stem", .out = 2 * NORMS_WIDTH);
    x = ls_reshape(m, x, LS_DIMS(2, NORMS_WIDTH));
    for (int i = 0; i < NORMS_BLOCKS; i++) {
        int64_t width = i == 1 ? NORMS_WIDE : NORMS_WIDTH;
        ls_scope(m, "block.%d", i);
        x = ls_linear(m, x, .name = "fc", .out = width);
        x = ls_batch_norm(m, x, .name = "norm", .relu = i % 2);
        x = ls_own_layer(m, &scale, x, .params = {LS_PARAM("scale", LS_NORMAL(0.5f), width)});
        ls_scope_end(m);
    }
    x = ls_linear(m, ls_mean(m, x, 0), .name = "head", .out = MLP_CLASSES);
    ls_cross_entropy(m, x, class, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

/* A sample, for the loader: random bytes, and a class that follows from two of them. */
static inline ls_status mlp_read(const void *unused, const ls_draw *d, size_t nbytes, void *sample,
                                 ls_error *e) {
    (void)unused, (void)e;
    unsigned char *x = sample;
    memset(x, 0, nbytes);
    for (uint64_t k = 0; k < MLP_BYTES; k++) {
        uint32_t r[4];
        ls_random_words(99, LS_STREAM_FAKE, d->sample, k, r);
        x[k] = (unsigned char)r[0];
    }
    int32_t class = x[0] * MLP_CLASSES / 256;
    if (x[1] > 200) class = 0;
    memcpy(x + MLP_CLASS_AT, &class, sizeof class);
    return LS_OK;
}

#endif
