/* chunked_model.h - a language model whose samples are cut into chunks, for tests. */
#ifndef LS_TEST_CHUNKED_MODEL_H
#define LS_TEST_CHUNKED_MODEL_H

#include "config/config.h"
#include "networks/network.h"
#include "test.h"

enum { CHUNKS = 3 };

/* Samples of `rows` + 1 tokens, of which CHUNKS is a divisor. Two heads of keys and values are fewer
 * than chunks. */
static inline void chunked_make(int64_t rows, int64_t vocab, bool tied, ls_model *m_p) {
    ls_config c;
    ls_error e = {0};
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
    c.parallel.context_virtual = CHUNKS;
    assert_ls_ok(ls_network_create_cut(&c, m_p, &e), e);
}

#endif
