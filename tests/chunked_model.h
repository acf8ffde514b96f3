/* chunked_model.h - a language model whose samples are cut into chunks, or whose slices divide their
 * rows, for tests. */
#ifndef LS_TEST_CHUNKED_MODEL_H
#define LS_TEST_CHUNKED_MODEL_H

#include "config/config.h"
#include "networks/network.h"
#include "test.h"

enum { CHUNKS = 3, PARTS = 3 };

/* Samples of `rows` + 1 tokens, of which CHUNKS is a divisor. Two heads of keys and values are fewer
 * than chunks. */
static inline ls_config parted_config(int64_t rows, int64_t vocab, bool tied) {
    ls_config c;
    ls_config_defaults(&c);
    c.model.kind = LS_MODEL_LLAMA;
    c.model.layers = 2;
    c.model.width = 24;
    c.model.heads = 4;
    c.model.head_dim = 6;
    c.model.kv_heads = 2;
    c.model.ffn = 20;
    c.model.context = rows;
    c.model.vocab = vocab;
    c.model.bias = LS_BIAS_ALL;
    c.model.head = tied ? LS_HEAD_TIED : LS_HEAD_OWN;
    return c;
}

static inline void parted_make(const ls_config *c, ls_model *m_p) {
    ls_error e = {0};
    assert_ls_ok(ls_network_create_cut(c, m_p, &e), e);
}

static inline void chunked_make(int64_t rows, int64_t vocab, bool tied, ls_model *m_p) {
    ls_config c = parted_config(rows, vocab, tied);
    c.parallel.context_virtual = CHUNKS;
    parted_make(&c, m_p);
}

/* PARTS slices, which divide the rows of samples, too. */
static inline void sequence_make(int64_t rows, int64_t vocab, ls_model *m_p) {
    ls_config c = parted_config(rows, vocab, true);
    c.model.heads = 6;
    c.model.head_dim = 4;
    c.model.kv_heads = PARTS;
    c.parallel.tensor_virtual = PARTS;
    c.parallel.sequence = true;
    parted_make(&c, m_p);
}

#endif
