/* chunked_model.h - language models whose samples are cut into chunks, or are computed together,
 * for tests. */
#ifndef LS_TEST_CHUNKED_MODEL_H
#define LS_TEST_CHUNKED_MODEL_H

#include "config/config.h"
#include "layers/fork.h"
#include "layers/layers.h"
#include "model/builder.h"
#include "networks/network.h"
#include "test.h"

enum { CHUNKS = 3 };

/* x [CHUNKS] += what a layer of chunk `chunk`, with parameters that no other chunk has, computes of
 * the rows of all chunks. */
static inline void add_own(ls_model *m, ls_value **x, int chunk, int64_t rows) {
    ls_value *of[CHUNKS], *y;
    for (int k = 0; k < CHUNKS; k++) {
        ls_build_chunk(m, k, CHUNKS);
        of[k] = ls_rms_norm(m, x[k], .name = "norm");
    }
    ls_build_chunk(m, chunk, CHUNKS);
    y = ls_concat(m, 0, of[0], of[1], of[2]);
    y = ls_linear(m, y, .name = "wide", .out = 40);
    y = ls_linear(m, ls_gelu(m, y), .name = "narrow", .out = 12, .no_bias = true);
    for (int k = 0; k < CHUNKS; k++) of[k] = ls_slice(m, y, .first = k * rows, .count = rows);
    for (int k = 0; k < CHUNKS; k++) {
        ls_build_chunk(m, k, CHUNKS);
        x[k] = ls_add(m, x[k], of[k]);
    }
}

/* x [CHUNKS] += products in two slices, whose parameters the chunks share. */
static inline void add_sliced(ls_model *m, ls_value **x) {
    for (int k = 0; k < CHUNKS; k++) {
        ls_value *of[2];
        ls_build_chunk(m, k, CHUNKS);
        ls_layers_fork(m, x[k], 2, of);
        for (int i = 0; i < 2; i++) {
            ls_build_slice(m, i, 2);
            ls_scope(m, "slice.%d", i);
            of[i] = ls_gelu(m, ls_linear(m, of[i], .name = "wide", .out = 10));
            of[i] = ls_linear(m, of[i], .name = "narrow", .out = 12, .no_bias = i > 0);
            ls_scope_end(m);
        }
        x[k] = ls_add(m, x[k], ls_layers_join(m, of, 2));
    }
}

/* Blocks of layers whose parameters the chunks share, some of which are slices, and of some that
 * chunk 0, or 2, has alone. */
static inline void own_make(int64_t rows, int64_t vocab, ls_model *m) {
    ls_error e = {0};
    int64_t part = rows / CHUNKS;
    ls_value *x[CHUNKS];
    *m = (ls_model){0};
    ls_value *tokens = ls_input(m, "tokens", LS_I32, LS_DIMS(rows + 1));
    for (int k = 0; k < CHUNKS; k++) {
        ls_value *words = ls_build_part(m, tokens, k * part, part);
        ls_build_chunk(m, k, CHUNKS);
        x[k] = ls_embedding(m, words, .name = "words", .rows = vocab, .width = 12, .deviation = 1);
    }
    for (int i = 0; i < 3; i++) {
        ls_scope(m, "block.%d", i);
        ls_scope(m, "first");
        add_own(m, x, 0, part);
        ls_scope_end(m);
        ls_scope(m, "last");
        add_own(m, x, CHUNKS - 1, part);
        ls_scope_end(m);
        if (i < 2) add_sliced(m, x);
        ls_scope_end(m);
    }
    ls_value *all = ls_build_part(m, tokens, 1, rows);
    for (int k = 0; k < CHUNKS; k++) {
        ls_linear_cross_entropy_options o = {.name = "head", .classes = vocab};
        ls_build_chunk(m, k, CHUNKS);
        ls_layers_chunk_cross_entropy(m, x[k], ls_build_part(m, tokens, 1 + k * part, part), all,
                                      o);
    }
    assert_ls_ok(ls_build_finish(m, &e), e);
}

/* With experts, of which each chunk and slice has some: chunks of a sample, of TOGETHER samples
 * that are computed together, or of both, and two slices. cut: false: the same model with layers of
 * whole samples. */
enum { TOGETHER = 2 };
typedef struct mixed_parts {
    int chunks, samples, slices;
    bool sequence;
} mixed_parts;
static inline void mixed_make(int64_t rows, int64_t vocab, mixed_parts parts, bool cut,
                              ls_model *m_p) {
    ls_error e = {0};
    ls_config c;
    ls_config_defaults(&c);
    c.model.kind = LS_MODEL_LLAMA;
    c.model.layers = 2;
    c.model.width = 24;
    c.model.heads = 4;
    c.model.head_dim = 6;
    c.model.kv_heads = 2; /* fewer than chunks */
    c.model.context = rows;
    c.model.vocab = vocab;
    c.model.head = parts.samples > 1 ? LS_HEAD_TIED : LS_HEAD_OWN;
    c.model.experts = 5;
    c.model.ffn = 12;
    c.model.shared_experts = 1;
    c.model.expert_capacity = 1;
    c.model.router_bias_rate = 0.02;
    c.train.micro_batch = parts.samples;
    c.parallel.context_virtual = parts.chunks;
    c.parallel.expert_virtual = parts.samples;
    c.parallel.tensor_virtual = parts.slices;
    c.parallel.sequence = cut && parts.sequence;
    if (cut)
        assert_ls_ok(ls_network_create_cut(&c, m_p, &e), e);
    else
        assert_ls_ok(ls_network_create(&c, m_p, &e), e);
}

#endif
