/* sliced_model.h - a model of blocks whose products are cut into slices, for tests.
 *
 *     words -> norm -> fork -> slice k: wide.k -> gelu -> narrow.k -> join -> add -> ... -> head
 *
 * One block has experts in place of wide.k and narrow.k, and a router. Samples are tokens. */
#ifndef LS_TEST_SLICED_MODEL_H
#define LS_TEST_SLICED_MODEL_H

#include "layers/fork.h"
#include "layers/moe.h"
#include "model/builder.h"
#include "test.h"

enum { SLICES = 5, SLICED_BLOCKS = 3, SLICED_WIDTH = 24, SLICED_EXPERTS = 7 };

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

static inline ls_value *sliced_experts(ls_model *m, ls_value *x) {
    static const char *const names[SLICES] = {"experts.0", "experts.1", "experts.2", "experts.3",
                                              "experts.4"};
    ls_moe_options o = {.experts = SLICED_EXPERTS, .per_token = 3, .width = 8, .balance = 0.1f};
    o.capacity = 0.8f;
    o.bias_rate = 0.01f;
    ls_value *of[SLICES], *logits_of[SLICES], *scores_of[SLICES];
    ls_value *y = ls_rms_norm(m, x, .name = "norm");
    ls_router_values r = ls_layers_route(m, y, &o);
    ls_layers_fork(m, y, SLICES, of);
    ls_layers_fork(m, r.logits, SLICES, logits_of);
    ls_layers_fork(m, r.scores, SLICES, scores_of);
    for (int k = 0; k < SLICES; k++) {
        ls_experts_slice own = {.name = names[k],
                                .first = SLICED_EXPERTS * k / SLICES,
                                .end = SLICED_EXPERTS * (k + 1) / SLICES};
        ls_build_slice(m, k, SLICES);
        of[k] = ls_layers_experts_slice(m, of[k], (ls_router_values){logits_of[k], scores_of[k]},
                                        &o, own);
    }
    y = ls_layers_join(m, of, SLICES);
    ls_layers_router_balance(m, r, &o);
    return ls_add(m, x, y);
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
        x = i == 1 ? sliced_experts(m, x) : sliced_block(m, x);
        ls_scope_end(m);
    }
    ls_linear_cross_entropy(m, x, next, .name = "head", .tied = embedding);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

#endif
