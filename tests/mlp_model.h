/* mlp_model.h - a classifier of vectors of bytes, for tests, and its samples.
 *
 *     input -> fc1 -> gelu -+-> fc2 -> sum -> fc3 -> loss
 *                           +-----------+
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
