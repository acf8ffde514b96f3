/* gpt.c - see gpt.h. */
#include "model/gpt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static const float STD = 0.02f;

enum { NO_BLOCK = -1 };

typedef struct tensor {
    const char *name;      /* in a block: follows "h.<block>." */
    int64_t rows, columns; /* columns 0: a vector */
    float std, value;      /* as in ls_param */
} tensor;

/* Appends the tensor to the flat buffer and adds it to the parameters of `l`. */
static void add_param(ls_model *m, ls_layer *l, int64_t block, tensor t) {
    ls_param *p = &m->params[m->nparams];
    if (block == NO_BLOCK)
        snprintf(p->name, sizeof p->name, "%s", t.name);
    else
        snprintf(p->name, sizeof p->name, "h.%d.%s", (int)block, t.name);
    p->ndims = t.columns ? 2 : 1;
    p->dims[0] = t.rows;
    p->dims[1] = t.columns;
    p->count = (size_t)(t.rows * (t.columns ? t.columns : 1));
    p->offset = m->nfloats;
    p->decay = t.columns != 0;
    p->init_std = t.std;
    p->init_value = t.value;
    l->params[l->nparams] = m->nparams++;
    l->counts[l->nparams] = p->count;
    l->offsets[l->nparams++] = p->offset;
    m->nfloats += (p->count + 15) / 16 * 16;
    m->count += p->count;
}

/* The layer norm that `l` begins with. */
static void add_norm(ls_model *m, ls_layer *l, int64_t block, const char *weight,
                     const char *bias) {
    add_param(m, l, block, (tensor){.name = weight, .rows = l->C, .value = 1});
    add_param(m, l, block, (tensor){.name = bias, .rows = l->C});
}

static void add_block(ls_model *m, int64_t i, int64_t T, int64_t C, int64_t heads) {
    float out_std = STD / sqrtf(2.0f * (float)m->config.layers);
    ls_layer *a = &m->layers[m->nlayers++];
    snprintf(a->name, sizeof a->name, "h.%d.attn", (int)i);
    ls_attention_declare(a, T, C, heads);
    add_norm(m, a, i, "ln_1.weight", "ln_1.bias");
    add_param(m, a, i, (tensor){"attn.c_attn.weight", C, 3 * C, STD, 0});
    add_param(m, a, i, (tensor){.name = "attn.c_attn.bias", .rows = 3 * C});
    add_param(m, a, i, (tensor){"attn.c_proj.weight", C, C, out_std, 0});
    add_param(m, a, i, (tensor){.name = "attn.c_proj.bias", .rows = C});
    ls_layer *f = &m->layers[m->nlayers++];
    snprintf(f->name, sizeof f->name, "h.%d.mlp", (int)i);
    ls_mlp_declare(f, T, C);
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
    ls_model m = {.config = *config};
    m.params = LS_NEW_ARRAY(ls_param, (size_t)(12 * L + 4));
    m.layers = LS_NEW_ARRAY(ls_layer, (size_t)(2 * L + 2));

    ls_layer *embed = &m.layers[m.nlayers++];
    snprintf(embed->name, sizeof embed->name, "embed");
    ls_embedding_declare(embed, T, C, V);
    add_param(&m, embed, NO_BLOCK, (tensor){"wte.weight", V, C, STD, 0});
    add_param(&m, embed, NO_BLOCK, (tensor){"wpe.weight", T, C, STD, 0});

    for (int64_t i = 0; i < L; i++) add_block(&m, i, T, C, config->heads);

    ls_layer *head = &m.layers[m.nlayers++];
    snprintf(head->name, sizeof head->name, "head");
    ls_head_declare(head, T, C, V);
    add_norm(&m, head, NO_BLOCK, "ln_f.weight", "ln_f.bias");
    head->params[head->nparams] = embed->params[0]; /* wte is tied */
    head->counts[head->nparams] = embed->counts[0];
    head->offsets[head->nparams++] = embed->offsets[0];

    m.sample_nbytes = (size_t)(T + 1) * sizeof(uint32_t);
    m.targets = T;
    for (int i = 1; i < m.nlayers; i++) { /* a chain */
        m.layers[i].ninputs = 1;
        m.layers[i].inputs[0] = i - 1;
    }
    LS_TRY(ls_model_link(&m, e)); /* can't fail */
    *m_p = m;
    return LS_OK;
}
