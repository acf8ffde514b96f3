/* family.c - see family.h. */
#include "networks/family.h"

#include "networks/llama.h"

static ls_architecture gpt2_of(const ls_config *c) {
    return (ls_architecture){.family = LS_FAMILY_GPT2,
                             .layers = c->model.layers,
                             .width = c->model.width,
                             .ffn = 4 * c->model.width,
                             .heads = c->model.heads,
                             .kv_heads = c->model.heads,
                             .head_dim = c->model.width / c->model.heads,
                             .vocab = c->model.vocab,
                             .context = c->model.context,
                             .norm_eps = 1e-5,
                             .qkv_bias = true,
                             .o_bias = true,
                             .mlp_bias = true,
                             .tied = true,
                             .bos = LS_TOKEN_NONE,
                             .pad = LS_TOKEN_NONE};
}

static ls_family choose(const ls_architecture *a) {
    if (a->gemma) return LS_FAMILY_GEMMA3;
    if (a->turned || a->rope.type == LS_ROPE_LONGROPE) return LS_FAMILY_PHI3;
    if (a->experts) return a->qk_norm ? LS_FAMILY_QWEN3_MOE : LS_FAMILY_MIXTRAL;
    if (a->qk_norm) return LS_FAMILY_QWEN3;
    if (a->qkv_bias && !a->o_bias) return LS_FAMILY_QWEN2;
    if (a->no_rope_every) return LS_FAMILY_SMOLLM3;
    return a->window ? LS_FAMILY_MISTRAL : LS_FAMILY_LLAMA;
}

static ls_status check_experts(const ls_architecture *a, ls_error *e) {
    bool mixtral = a->family == LS_FAMILY_MIXTRAL;
    const char *with = mixtral && a->qkv_bias      ? "biases"
                       : mixtral && !a->norm_topk  ? "weights of experts as they are"
                       : a->qkv_bias && !a->o_bias ? "biases of q, k and v alone"
                       : a->mlp_bias               ? "biases of the feed-forward layer"
                                                   : NULL;
    if (!with) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "no family of published models has experts%s and %s: it can't be exported",
                   mixtral ? "" : ", norms of q and k", with);
}

static ls_status check_phi(const ls_architecture *a, ls_error *e) {
    bool other = a->rope.type != LS_ROPE_DEFAULT && a->rope.type != LS_ROPE_LONGROPE;
    const char *with = a->gemma                                  ? "a block of Gemma 3"
                       : a->experts                              ? "experts"
                       : a->qk_norm                              ? "norms of q and k"
                       : a->qkv_bias || a->o_bias || a->mlp_bias ? "biases"
                       : a->no_rope_every                        ? "model.no_rope_every"
                       : a->heads * a->head_dim != a->width ? "another width than that of all heads"
                       : other                              ? "another model.rope"
                                                            : NULL;
    if (!with) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "no family of published models has %s and %s: it can't be exported",
                   a->turned ? "model.rope_dims" : "model.rope longrope", with);
}

static ls_status check(const ls_architecture *a, ls_error *e) {
    bool gemma = a->family == LS_FAMILY_GEMMA3;
    if (a->turned || a->rope.type == LS_ROPE_LONGROPE) return check_phi(a, e);
    if (gemma && (!a->qk_norm || a->mlp_bias || a->qkv_bias != a->o_bias))
        return ls_fail(
            e, LS_EINVAL,
            "no family of published models has a block of Gemma 3 %s: it can't be exported",
            a->qk_norm ? "with these biases" : "without norms of q and k");
    if (!gemma && (a->full_every || a->query_scalar))
        return ls_fail(
            e, LS_EINVAL,
            "no family of published models has %s without a block of Gemma 3: it can't be "
            "exported",
            a->full_every ? "a window in some layers only" : "model.query_scalar");
    if (a->no_rope_every && a->family != LS_FAMILY_SMOLLM3)
        return ls_fail(
            e, LS_EINVAL,
            "no family of published models has model.no_rope_every and %s: it can't be exported",
            gemma        ? "a block of Gemma 3"
            : a->experts ? "experts"
            : a->qk_norm ? "norms of q and k"
                         : "biases of q, k and v alone");
    if (a->experts) return check_experts(a, e);
    if (a->family == LS_FAMILY_SMOLLM3) return LS_OK;
    bool llama = a->family == LS_FAMILY_LLAMA, mistral = a->family == LS_FAMILY_MISTRAL;
    const char *with = a->mlp_bias && !llama    ? "biases of the feed-forward layer"
                       : mistral && a->qkv_bias ? "biases"
                       : a->qk_norm && a->qkv_bias && !a->o_bias ? "biases of q, k and v alone"
                                                                 : NULL;
    if (!with) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "no family of published models has %s and %s: it can't be exported",
                   a->qk_norm ? "norms of q and k"
                   : mistral  ? "a window"
                              : "biases of q, k and v",
                   with);
}

ls_status ls_family_of(const ls_config *c, ls_architecture *a_p, ls_error *e) {
    if (c->model.kind != LS_MODEL_GPT2 && c->model.kind != LS_MODEL_LLAMA)
        return ls_fail(e, LS_EINVAL,
                       "only models of kind gpt2 and llama have a published form; `lockstep export "
                       "--to onnx` writes any network, and `lockstep ckpt export` its weights");
    ls_architecture a = c->model.kind == LS_MODEL_GPT2 ? gpt2_of(c) : ls_llama_architecture(c);
    if (a.family != LS_FAMILY_GPT2) a.family = choose(&a);
    if (a.family != LS_FAMILY_GPT2) LS_TRY(check(&a, e));
    *a_p = a;
    return LS_OK;
}

bool ls_family_as_phi3(ls_architecture *a) {
    bool may = a->family == LS_FAMILY_LLAMA || a->family == LS_FAMILY_MISTRAL ||
               a->family == LS_FAMILY_PHI3;
    if (may) a->family = LS_FAMILY_PHI3;
    return may;
}
