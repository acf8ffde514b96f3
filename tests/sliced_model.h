/* sliced_model.h - a model of blocks whose products are cut into slices, for tests.
 *
 *     words -> norm -> fork -> slice k: wide.k -> gelu -> narrow.k -> join -> add -> ... -> head
 *
 * SLICED_WORDS samples are tokens. */
#ifndef LS_TEST_SLICED_MODEL_H
#define LS_TEST_SLICED_MODEL_H

#include "layers/fork.h"
#include "model/builder.h"
#include "test.h"

enum { SLICES = 5, SLICED_BLOCKS = 3, SLICED_WIDTH = 24 };

static inline ls_value *sliced_block(ls_model *m, ls_value *x) {
    ls_value *of[SLICES];
    ls_layers_fork(m, ls_rms_norm(m, x, .name = "norm"), SLICES, of);
    for (int k = 0; k < SLICES; k++) {
        ls_build_slice(m, k, SLICES);
        ls_scope(m, "slice.%d", k);
        of[k] = ls_gelu(m, ls_linear(m, of[k], .name = "wide", .out = 8));
        of[k] = ls_linear(m, of[k], .name = "narrow", .out = SLICED_WIDTH, .no_bias = k > 0);
        ls_scope_end(m);
    }
    return ls_add(m, x, ls_layers_join(m, of, SLICES));
}

static inline void sliced_make(int64_t T, int64_t vocab, ls_model *m) {
    ls_error e = {0};
    *m = (ls_model){0};
    ls_value *tokens = ls_input(m, "tokens", LS_I32, LS_DIMS(T + 1));
    ls_value *words = ls_build_part(m, tokens, 0, T), *next = ls_build_part(m, tokens, 1, T);
    ls_value *embedding = ls_embedding(m, words, .name = "words", .rows = vocab,
                                       .width = SLICED_WIDTH, .deviation = 1);
    ls_value *x = embedding;
    for (int i = 0; i < SLICED_BLOCKS; i++) {
        ls_scope(m, "block.%d", i);
        x = sliced_block(m, x);
        ls_scope_end(m);
    }
    ls_linear_cross_entropy(m, x, next, .name = "head", .tied = embedding);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

#endif
