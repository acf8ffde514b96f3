/* gpt.c - see gpt.h. */
#include "model/gpt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

static const float STD = 0.02f;

/* Appends a tensor [d0, d1] (d1 = 0: a vector [d0]) to the flat buffer and gives it to `l`. */
static void add_param(ls_model *m, ls_layer *l, const char *name, int64_t d0, int64_t d1, float std,
                      float value) {
    ls_param *p = &m->params[m->nparams];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->ndims = d1 ? 2 : 1;
    p->dims[0] = d0;
    p->dims[1] = d1;
    p->count = (size_t)(d0 * (d1 ? d1 : 1));
    p->offset = m->nfloats;
    p->decay = d1 != 0;
    p->init_std = std;
    p->init_value = value;
    l->params[l->nparams] = m->nparams++;
    l->counts[l->nparams] = p->count;
    l->offsets[l->nparams++] = p->offset;
    m->nfloats += (p->count + 15) / 16 * 16;
    m->count += p->count;
}

static void add_block_param(ls_model *m, ls_layer *l, int64_t block, const char *name, int64_t d0,
                            int64_t d1, float std, float value) {
    char full[LS_NAME];
    snprintf(full, sizeof full, "h.%d.%s", (int)block, name);
    add_param(m, l, full, d0, d1, std, value);
}

static void add_block(ls_model *m, int64_t i, int64_t T, int64_t C, int64_t heads, float out_std) {
    ls_layer *a = &m->layers[m->nlayers++];
    snprintf(a->name, sizeof a->name, "h.%d.attn", (int)i);
    ls_attention_declare(a, T, C, heads);
    add_block_param(m, a, i, "ln_1.weight", C, 0, 0, 1);
    add_block_param(m, a, i, "ln_1.bias", C, 0, 0, 0);
    add_block_param(m, a, i, "attn.c_attn.weight", C, 3 * C, STD, 0);
    add_block_param(m, a, i, "attn.c_attn.bias", 3 * C, 0, 0, 0);
    add_block_param(m, a, i, "attn.c_proj.weight", C, C, out_std, 0);
    add_block_param(m, a, i, "attn.c_proj.bias", C, 0, 0, 0);
    ls_layer *f = &m->layers[m->nlayers++];
    snprintf(f->name, sizeof f->name, "h.%d.mlp", (int)i);
    ls_mlp_declare(f, T, C);
    add_block_param(m, f, i, "ln_2.weight", C, 0, 0, 1);
    add_block_param(m, f, i, "ln_2.bias", C, 0, 0, 0);
    add_block_param(m, f, i, "mlp.c_fc.weight", C, 4 * C, STD, 0);
    add_block_param(m, f, i, "mlp.c_fc.bias", 4 * C, 0, 0, 0);
    add_block_param(m, f, i, "mlp.c_proj.weight", 4 * C, C, out_std, 0);
    add_block_param(m, f, i, "mlp.c_proj.bias", C, 0, 0, 0);
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
    add_param(&m, embed, "wte.weight", V, C, STD, 0);
    add_param(&m, embed, "wpe.weight", T, C, STD, 0);

    float out_std = STD / sqrtf(2.0f * (float)L);
    for (int64_t i = 0; i < L; i++) add_block(&m, i, T, C, config->heads, out_std);

    ls_layer *head = &m.layers[m.nlayers++];
    snprintf(head->name, sizeof head->name, "head");
    ls_head_declare(head, T, C, V);
    add_param(&m, head, "ln_f.weight", C, 0, 0, 1);
    add_param(&m, head, "ln_f.bias", C, 0, 0, 0);
    head->params[head->nparams] = embed->params[0]; /* wte is tied */
    head->counts[head->nparams] = embed->counts[0];
    head->offsets[head->nparams++] = embed->offsets[0];

    m.nfloats = (m.nfloats + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK;
    *m_p = m;
    return LS_OK;
}

void ls_model_free(ls_model *m) {
    free(m->params);
    free(m->layers);
    *m = (ls_model){0};
}

void ls_model_init(const ls_model *m, uint64_t seed, size_t first, size_t end, float *params) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        size_t a = p->offset > first ? p->offset : first;
        size_t b = p->offset + p->count < end ? p->offset + p->count : end;
        if (a >= b) continue;
        if (p->init_std > 0)
            ls_random_normal(seed, LS_STREAM_INIT, (uint64_t)i, a - p->offset, b - a, p->init_std,
                             params + a);
        else
            for (size_t j = a; j < b; j++) params[j] = p->init_value;
    }
}

double ls_model_flops(const ls_model *m) {
    double sum = 0;
    for (int i = 0; i < m->nlayers; i++) sum += 3.0 * m->layers[i].forward_flops;
    return sum;
}

size_t ls_model_scratch_floats(const ls_model *m) {
    size_t most = 0;
    for (int i = 0; i < m->nlayers; i++)
        if (m->layers[i].scratch_floats > most) most = m->layers[i].scratch_floats;
    return most;
}
