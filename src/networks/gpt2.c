/* gpt2.c - see gpt2.h. */
#include "networks/gpt2.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "layers/gpt.h"
#include "model/builder.h"

static const float STD = 0.02f;

enum { NO_BLOCK = -1 };

typedef struct tensor {
    const char *name;      /* in a block: follows "h.<block>." */
    int64_t rows, columns; /* columns 0: a vector */
    float std, value;      /* as in ls_param */
} tensor;

/* Appends the tensor to the parameters of the model and of `l`. */
static void add_param(ls_model *m, ls_layer *l, int64_t block, tensor t) {
    char name[LS_NAME];
    if (block == NO_BLOCK)
        snprintf(name, sizeof name, "%s", t.name);
    else
        snprintf(name, sizeof name, "h.%d.%s", (int)block, t.name);
    ls_model_add_param(m, l, name,
                       &(ls_param){.ndims = t.columns ? 2 : 1,
                                   .dims = {t.rows, t.columns},
                                   .decay = t.columns != 0,
                                   .init.std = t.std,
                                   .init.value = t.value});
}

/* The layer norm that `l` begins with. */
static void add_norm(ls_model *m, ls_layer *l, int64_t block, const char *weight,
                     const char *bias) {
    add_param(m, l, block, (tensor){.name = weight, .rows = l->C, .value = 1});
    add_param(m, l, block, (tensor){.name = bias, .rows = l->C});
}

static void add_block(ls_model *m, int64_t i, const ls_gpt_config *c) {
    int64_t T = c->context, C = c->width;
    float out_std = STD / sqrtf(2.0f * (float)c->layers);
    char name[LS_NAME];
    snprintf(name, sizeof name, "h.%d.attn", (int)i);
    ls_layer *a = ls_model_add_layer(m, name);
    ls_gpt_attention_declare(a, T, C, c->heads);
    add_norm(m, a, i, "ln_1.weight", "ln_1.bias");
    add_param(m, a, i, (tensor){"attn.c_attn.weight", C, 3 * C, STD, 0});
    add_param(m, a, i, (tensor){.name = "attn.c_attn.bias", .rows = 3 * C});
    add_param(m, a, i, (tensor){"attn.c_proj.weight", C, C, out_std, 0});
    add_param(m, a, i, (tensor){.name = "attn.c_proj.bias", .rows = C});
    snprintf(name, sizeof name, "h.%d.mlp", (int)i);
    ls_layer *f = ls_model_add_layer(m, name);
    ls_gpt_mlp_declare(f, T, C);
    add_norm(m, f, i, "ln_2.weight", "ln_2.bias");
    add_param(m, f, i, (tensor){"mlp.c_fc.weight", C, 4 * C, STD, 0});
    add_param(m, f, i, (tensor){.name = "mlp.c_fc.bias", .rows = 4 * C});
    add_param(m, f, i, (tensor){"mlp.c_proj.weight", 4 * C, C, out_std, 0});
    add_param(m, f, i, (tensor){.name = "mlp.c_proj.bias", .rows = C});
}

ls_status ls_gpt_create(const ls_gpt_config *config, ls_model *m_p, ls_error *e) {
    int64_t L = config->layers, C = config->width, V = config->vocab, T = config->context;
    if (L < 1 || C < 1 || V < 1 || T < 1 || config->heads < 1 || C % config->heads)
        return ls_fail(e, LS_EINVAL, "model.heads %lld must divide model.width %lld",
                       (long long)config->heads, (long long)C);
    double count = ((double)V + (double)T) * (double)C + 12.0 * (double)L * (double)C * (double)C;
    if (count > 1e12)
        return ls_fail(e, LS_EINVAL, "the model has %.3g parameters; at most 1e12 are possible",
                       count);
    ls_model m = {0};
    ls_layer *embed = ls_model_add_layer(&m, "embed");
    ls_gpt_embedding_declare(embed, T, C, V);
    add_param(&m, embed, NO_BLOCK, (tensor){"wte.weight", V, C, STD, 0});
    add_param(&m, embed, NO_BLOCK, (tensor){"wpe.weight", T, C, STD, 0});

    for (int64_t i = 0; i < L; i++) add_block(&m, i, config);

    ls_layer *head = ls_model_add_layer(&m, "head");
    ls_gpt_head_declare(head, T, C, V);
    add_norm(&m, head, NO_BLOCK, "ln_f.weight", "ln_f.bias");
    ls_build_shared(&m, head, m.layers[0].params[0]); /* wte is tied */

    m.sample_nbytes = (size_t)(T + 1) * sizeof(uint32_t);
    m.inputs = LS_NEW(ls_field);
    m.inputs[0] = (ls_field){
        .name = "tokens", .type = LS_U32, .ndims = 1, .dims = {T + 1}, .nbytes = m.sample_nbytes};
    m.classes[0] = (int)V;
    m.ninputs = 1;
    m.targets = T;
    for (int i = 1; i < m.nlayers; i++) { /* a chain */
        m.layers[i].ninputs = 1;
        m.layers[i].inputs[0] = i - 1;
    }
    LS_TRY(ls_model_link(&m, e)); /* can't fail */
    *m_p = m;
    return LS_OK;
}

void ls_gpt_drop(ls_model *m, float rate) {
    ls_gpt_embedding_drop(&m->layers[0], rate);
    for (int i = 1; i < m->nlayers - 1; i++) {
        int64_t block = (i - 1) / 2;
        if (i % 2)
            ls_gpt_attention_drop(&m->layers[i], rate, block);
        else
            ls_gpt_mlp_drop(&m->layers[i], rate, block);
    }
}
