/* mlp_model.h - a classifier of vectors of bytes, for tests, and its samples.
 *
 *     input -> fc1 -> gelu -+-> fc2 -> sum -> fc3 -> loss
 *                           +-----------+
 */
#ifndef LS_TEST_MLP_MODEL_H
#define LS_TEST_MLP_MODEL_H

#include <stdio.h>

#include "base/random.h"
#include "data/order.h"
#include "model/model.h"
#include "test.h"

enum { MLP_BYTES = 13, MLP_WIDTH = 20, MLP_CLASSES = 7, MLP_CLASS_AT = 16, MLP_SAMPLE = 24 };

static inline int mlp_linear(ls_model *m, const char *name, int from, int64_t in, int64_t out) {
    char weight[LS_NAME], bias[LS_NAME];
    ls_layer *l = ls_model_add_layer(m, name);
    ls_linear_declare(l, 1, in, out);
    l->inputs[0] = from;
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    ls_model_add_param(m, l, weight,
                       &(ls_param){.ndims = 2, .dims = {in, out}, .decay = true, .init_std = 0.3f});
    ls_model_add_param(m, l, bias, &(ls_param){.ndims = 1, .dims = {out}});
    return m->nlayers - 1;
}

static inline void mlp_make(ls_model *m) {
    ls_error e = {0};
    *m = (ls_model){.sample_nbytes = MLP_SAMPLE, .targets = 1};
    ls_input_declare(ls_model_add_layer(m, "input"), MLP_BYTES, 0, 1 / 128.0f, -1);
    int x = mlp_linear(m, "fc1", 0, MLP_BYTES, MLP_WIDTH);
    ls_layer *l = ls_model_add_layer(m, "gelu");
    ls_gelu_declare(l, 1, MLP_WIDTH);
    l->inputs[0] = x;
    int gelu = m->nlayers - 1;
    x = mlp_linear(m, "fc2", gelu, MLP_WIDTH, MLP_WIDTH);
    l = ls_model_add_layer(m, "sum");
    ls_add_declare(l, 1, MLP_WIDTH, 2);
    l->inputs[0] = gelu;
    l->inputs[1] = x;
    x = mlp_linear(m, "fc3", m->nlayers - 1, MLP_WIDTH, MLP_CLASSES);
    l = ls_model_add_layer(m, "loss");
    ls_classify_declare(l, MLP_CLASSES, MLP_CLASS_AT);
    l->inputs[0] = x;
    assert_ls_ok(ls_model_link(m, &e), e);
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
