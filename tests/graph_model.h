/* graph_model.h - a model that is no chain, for tests: a GPT of two blocks whose layers are wired
 * in another way, with a sum before the head.
 *
 *     embed -> h.0.attn -> h.1.attn -> h.1.mlp -+-> sum -> head
 *     embed -> h.0.mlp -------------------------+
 *     embed ------------------------------------+
 *
 * The sum reads the output of h.1.mlp twice.
 */
#ifndef LS_TEST_GRAPH_MODEL_H
#define LS_TEST_GRAPH_MODEL_H

#include "base/mem.h"
#include "layers/layers.h"
#include "networks/gpt2.h"
#include "test.h"

enum { GRAPH_SUM = 5, GRAPH_HEAD = 6, GRAPH_LAYERS = 7 };

static inline void graph_make(const ls_gpt_config *c, ls_model *m) {
    static const int inputs[GRAPH_SUM] = {0, 0, 0, 1, 3};
    ls_error e = {0};
    assert_int_equal(c->layers, 2);
    assert_ls_ok(ls_gpt_create(c, m, &e), e);
    m->layers = ls_realloc(m->layers, GRAPH_LAYERS * sizeof *m->layers);
    m->nlayers = GRAPH_LAYERS;
    m->layers[GRAPH_HEAD] = m->layers[GRAPH_SUM];
    m->layers[GRAPH_SUM] = (ls_layer){.name = "sum"};
    ls_add_declare(&m->layers[GRAPH_SUM], c->context, c->width, 4);
    const int sum[] = {4, 2, 0, 4};
    memcpy(m->layers[GRAPH_SUM].inputs, sum, sizeof sum);
    for (int i = 1; i < GRAPH_SUM; i++) m->layers[i].inputs[0] = inputs[i];
    m->layers[GRAPH_HEAD].inputs[0] = GRAPH_SUM;
    assert_ls_ok(ls_model_link(m, &e), e);
}

#endif
