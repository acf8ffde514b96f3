/* config_json.c - see config_json.h.
 *
 * Source: configuration_{llama,mistral,mixtral,qwen2,qwen3,qwen3_moe,gemma3,smollm3,phi3,gpt2}.py,
 * configuration_utils.py of transformers 4 and 5.
 */
#include "weights/config_json.h"

#include <stdlib.h>
#include <string.h>

#include "weights/config_rope.h"

/* ---- one key ---- */

static ls_status take_token(ls_published_keys *r, const char *key, int64_t *id_p) {
    return ls_published_size_if(r, key, id_p);
}

static ls_status take_eos(ls_published_keys *r, ls_architecture *a) {
    static const char key[] = "eos_token_id";
    const ls_json *v = ls_published_take(r, key);
    if (!v) return LS_OK;
    a->neos = 0;
    size_t n = ls_json_is_array(v) ? ls_json_count(v) : 1;
    if (n > LS_MAX_EOS) return ls_published_fail(r, key, "it has too many tokens");
    for (size_t i = 0; i < n; i++) {
        if (!ls_json_integer(ls_json_is_array(v) ? ls_json_at(v, i) : v, &a->eos[a->neos]))
            return ls_published_fail(r, key, "it must be an integer or a list of integers");
        a->neos += a->eos[a->neos] != LS_TOKEN_NONE; /* -1 stands for none */
    }
    return LS_OK;
}

/* ---- what files leave out ---- */

/* The values of keys that are missing, in all versions of transformers. Sizes that tensors don't
 * tell, such as the number of heads, have no default: they must be there. */
typedef struct defaults {
    int64_t context;
    double norm_eps, rope_base;
    int64_t kv_heads; /* llama: as many as heads */
    int64_t head_dim; /* 0: hidden_size / num_attention_heads */
    int64_t window;   /* 0: none */
    int64_t experts, experts_per_token;
} defaults;

static const defaults of_family[LS_NFAMILIES] = {
    [LS_FAMILY_LLAMA] = {.context = 2048, .norm_eps = 1e-6, .rope_base = 1e4},
    [LS_FAMILY_MISTRAL] =
        {.context = 131072, .norm_eps = 1e-6, .rope_base = 1e4, .kv_heads = 8, .window = 4096},
    [LS_FAMILY_MIXTRAL] = {.context = 131072,
                           .norm_eps = 1e-5,
                           .rope_base = 1e6,
                           .kv_heads = 8,
                           .experts = 8,
                           .experts_per_token = 2},
    [LS_FAMILY_QWEN2] = {.context = 32768, .norm_eps = 1e-6, .rope_base = 1e4, .kv_heads = 32},
    [LS_FAMILY_QWEN3] =
        {.context = 32768, .norm_eps = 1e-6, .rope_base = 1e4, .kv_heads = 32, .head_dim = 128},
    [LS_FAMILY_QWEN3_MOE] = {.context = 32768,
                             .norm_eps = 1e-6,
                             .rope_base = 1e4,
                             .kv_heads = 4,
                             .experts = 128,
                             .experts_per_token = 8},
    [LS_FAMILY_GEMMA3] = {.context = 131072,
                          .norm_eps = 1e-6,
                          .rope_base = 1e6,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .window = 4096},
    [LS_FAMILY_SMOLLM3] = {.context = 32768, .norm_eps = 1e-6, .rope_base = 2e6, .kv_heads = 4},
    [LS_FAMILY_PHI3] = {.context = 4096, .norm_eps = 1e-5, .rope_base = 1e4},
};

/* Of SmolLM3: the layers up to one without a rotation. */
enum { NO_ROPE_EVERY = 4 };
/* Of Gemma 3: the layers from one that sees all positions to the next, the square of what divides
 * scores. */
enum { FULL_EVERY = 6, QUERY_SCALAR = 256 };

/* ---- rotation ---- */

static ls_status read_phi(ls_published_keys *r, ls_architecture *a) {
    LS_TRY(ls_published_expect_bool(r, "attention_bias", false));
    LS_TRY(ls_published_expect_bool(r, "mlp_bias", false));
    LS_TRY(ls_published_expect_bool(r, "lm_head_bias", false));
    LS_TRY(ls_published_expect_one(r, "full_attn_mod"));
    LS_TRY(ls_published_expect_one(r, "interpolate_factor"));
    ls_published_take(r, "auto_map"); /* programs that compute the same */
    LS_TRY(ls_published_size_if(r, "sliding_window", &a->window));
    if (ls_published_take(r, "sliding_window") && a->window < 1)
        return ls_published_fail(r, "sliding_window", "it must be null or above 0");
    return ls_config_rope_read_phi(r, of_family[a->family].rope_base, a);
}

/* no_rope_layers has 0 for each layer without a rotation, and else 1; without it each n-th layer
 * has none, for n = no_rope_layer_interval. */
static ls_status read_no_rope(ls_published_keys *r, ls_architecture *a) {
    static const char key[] = "no_rope_layers", interval[] = "no_rope_layer_interval";
    int64_t every = NO_ROPE_EVERY;
    LS_TRY(ls_published_size_if(r, interval, &every));
    if (every < 1) return ls_published_fail(r, interval, "it must be at least 1");
    const ls_json *list = ls_published_take(r, key);
    if (list && (!ls_json_is_array(list) || (int64_t)ls_json_count(list) != a->layers))
        return ls_fail(r->e, LS_EINVAL, "%s: %s must be a list of one number for each layer",
                       r->what, key);
    if (list) every = a->layers + 1;
    for (int64_t i = 0; list && i < a->layers; i++) {
        int64_t turns = -1;
        if (!ls_json_integer(ls_json_at(list, (size_t)i), &turns) || turns < 0 || turns > 1)
            return ls_fail(r->e, LS_EINVAL, "%s: %s: layer %lld has another value than 0 and 1",
                           r->what, key, (long long)i);
        if (!turns && every > a->layers) every = i + 1;
        if (!turns != ((i + 1) % every == 0))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: %s: layer %lld is %lld: only a list whose each %lldth layer is 0, "
                           "and no other, is supported",
                           r->what, key, (long long)i, (long long)turns, (long long)every);
    }
    ls_architecture_set_no_rope(a, every);
    return LS_OK;
}

/* ---- windows ---- */

/* All layers have the window or none has it. */
static ls_status check_layer_types(ls_published_keys *r, const ls_architecture *a) {
    const ls_json *list = ls_published_take(r, "layer_types");
    if (!list) return LS_OK;
    if (!ls_json_is_array(list) || (int64_t)ls_json_count(list) != a->layers)
        return ls_fail(r->e, LS_EINVAL, "%s: layer_types must be a list of one type for each layer",
                       r->what);
    const char *want = a->window ? "sliding_attention" : "full_attention";
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *type = ls_json_text(ls_json_at(list, i));
        if (!type || strcmp(type, want) != 0)
            return ls_fail(r->e, LS_EINVAL,
                           "%s: layer_types: layer %zu is '%s', not '%s'; all layers must have the "
                           "same, by sliding_window",
                           r->what, i, type ? type : "?", want);
    }
    return LS_OK;
}

/* Qwen: layers from max_window_layers on have the window, if use_sliding_window. Of Qwen 3 MoE some
 * versions of transformers give it to all layers, whatever that key says. */
static ls_status read_qwen_window(ls_published_keys *r, ls_architecture *a) {
    bool uses = false;
    int64_t window = 0, first = -1;
    LS_TRY(ls_published_bool_if(r, "use_sliding_window", &uses));
    LS_TRY(ls_published_size_if(r, "sliding_window", &window));
    LS_TRY(ls_published_size_if(r, "max_window_layers", &first));
    if (!uses || (first >= a->layers && a->family != LS_FAMILY_QWEN3_MOE)) return LS_OK;
    bool by_layer = ls_json_given(r->o, "layer_types") != NULL; /* which then decides */
    if (!by_layer && first != 0)
        return ls_published_fail(r, "max_window_layers",
                                 "a window in some layers only is not supported: use 0, or "
                                 "use_sliding_window false");
    if (window < 1) return ls_published_fail(r, "sliding_window", "use_sliding_window needs one");
    a->window = window;
    return LS_OK;
}

/* SmolLM3: layer_types say which layers have the window, if use_sliding_window; without them it is
 * those without a rotation. */
static ls_status read_smollm_window(ls_published_keys *r, ls_architecture *a) {
    bool uses = false;
    int64_t window = 0, unused = 0;
    const ls_json *types = ls_json_given(r->o, "layer_types");
    LS_TRY(ls_published_bool_if(r, "use_sliding_window", &uses));
    LS_TRY(ls_published_size_if(r, "sliding_window", &window));
    LS_TRY(ls_published_size_if(r, "max_window_layers", &unused));
    if (!uses || !window) return LS_OK;
    if (!types && a->no_rope_every)
        return ls_published_fail(
            r, "use_sliding_window",
            "without layer_types the layers that have no rotation have the window; "
            "only one in all layers is supported");
    const char *first = ls_json_is_array(types) ? ls_json_text(ls_json_at(types, 0)) : NULL;
    if (first && strcmp(first, "sliding_attention") == 0) a->window = window;
    return LS_OK;
}

static ls_status read_window(ls_published_keys *r, ls_architecture *a) {
    if (a->family == LS_FAMILY_MISTRAL || a->family == LS_FAMILY_MIXTRAL) {
        if (!ls_json_get(r->o, "sliding_window")) a->window = of_family[a->family].window;
        LS_TRY(ls_published_size_if(r, "sliding_window", &a->window));
    } else if (a->family == LS_FAMILY_SMOLLM3) {
        LS_TRY(read_smollm_window(r, a));
    } else if (a->family != LS_FAMILY_LLAMA) {
        LS_TRY(read_qwen_window(r, a));
    }
    return check_layer_types(r, a);
}

/* The layers up to the first one that sees all positions; the others must lie at the same
 * distances. */
static ls_status read_layer_types(ls_published_keys *r, const ls_architecture *a,
                                  int64_t *every_p) {
    const ls_json *list = ls_published_take(r, "layer_types");
    int64_t every = a->layers + 1;
    if (!list) return LS_OK;
    if (!ls_json_is_array(list) || (int64_t)ls_json_count(list) != a->layers)
        return ls_fail(r->e, LS_EINVAL, "%s: layer_types must be a list of one type for each layer",
                       r->what);
    for (int64_t i = 0; i < a->layers; i++) {
        const char *type = ls_json_text(ls_json_at(list, (size_t)i));
        bool full = type && strcmp(type, "full_attention") == 0;
        bool local = type && strcmp(type, "sliding_attention") == 0;
        if (!full && !local)
            return ls_fail(r->e, LS_EINVAL,
                           "%s: layer_types: layer %lld is '%.40s'; full_attention and "
                           "sliding_attention are supported",
                           r->what, (long long)i, type ? type : "?");
        if (full && every > a->layers) every = i + 1;
        if (full != ((i + 1) % every == 0))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: layer_types: layer %lld is '%s': only a list whose each %lldth "
                           "layer is full_attention, and no other, is supported",
                           r->what, (long long)i, type, (long long)every);
    }
    *every_p = every;
    return LS_OK;
}

static ls_status read_gemma_window(ls_published_keys *r, ls_architecture *a, double local) {
    int64_t every = FULL_EVERY;
    LS_TRY(ls_published_size_if(r, "sliding_window_pattern", &every));
    if (every < 1) return ls_published_fail(r, "sliding_window_pattern", "it must be at least 1");
    LS_TRY(read_layer_types(r, a, &every));
    bool missing = !ls_json_get(r->o, "sliding_window");
    a->window = missing ? of_family[a->family].window : 0;
    LS_TRY(ls_published_size_if(r, "sliding_window", &a->window));
    if (every > 1 && a->window < 1)
        return ls_published_fail(r, "sliding_window",
                                 "layers of sliding_attention need one, above 0");
    ls_architecture_set_windows(a, every, local);
    return LS_OK;
}

/* ---- the whole ---- */

static ls_status read_family(ls_published_keys *r, ls_architecture *a) {
    const ls_json *type = ls_published_take(r, "model_type");
    if (!type) return ls_published_missing(r, "model_type");
    if (ls_json_text(type) && strcmp(ls_json_text(type), "gemma3") == 0)
        return ls_published_fail(
            r, "model_type",
            "models that also read images are not supported, only Gemma 3's "
            "gemma3_text (270M, 1B); a GGUF file has the text's part of this one");
    if (!ls_json_text(type) || !ls_family_named(ls_json_text(type), &a->family))
        return ls_published_fail(
            r, "model_type",
            "llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma3_text, smollm3, "
            "phi3 and gpt2 are supported");
    const ls_json *classes = ls_published_take(r, "architectures");
    if (!classes || ls_json_count(classes) == 0) return LS_OK;
    const char *class = ls_json_text(ls_json_at(classes, 0)), *want = ls_family_class(a->family);
    if (class && strcmp(class, want) == 0) return LS_OK;
    char *only = ls_format("only %s is supported", want);
    ls_status s = ls_published_fail(r, "architectures", only);
    free(only);
    return s;
}

/* Objects of other programs, which change what weights or layers are. */
static ls_status refuse_kinds(ls_published_keys *r) {
    static const char *const types[] = {"quantization_config", "quantization"}; /* and of MLX */
    for (int i = 0; i < 2; i++)
        if (ls_published_take(r, types[i]))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: %s is not supported: the weights are of another program's types",
                           r->what, types[i]);
    const ls_json *pruned = ls_published_take(r, "pruned_heads");
    if (pruned && ls_json_count(pruned))
        return ls_published_fail(r, "pruned_heads", "only none are supported");
    LS_TRY(ls_published_expect_bool(r, "is_encoder_decoder", false));
    return ls_published_expect_bool(r, "add_cross_attention", false);
}

/* ---- experts ---- */

/* Feed-forward layers without experts between those with them are not supported. */
static ls_status expect_all_experts(ls_published_keys *r) {
    int64_t step = 1;
    const ls_json *dense = ls_published_take(r, "mlp_only_layers");
    if (dense && (!ls_json_is_array(dense) || ls_json_count(dense)))
        return ls_published_fail(r, "mlp_only_layers", "only an empty list is supported");
    LS_TRY(ls_published_size_if(r, "decoder_sparse_step", &step));
    return step == 1 ? LS_OK : ls_published_fail(r, "decoder_sparse_step", "only 1 is supported");
}

/* The number of experts has one of two names. */
static ls_status read_experts(ls_published_keys *r, ls_architecture *a) {
    bool qwen = a->family == LS_FAMILY_QWEN3_MOE;
    double jitter = 0;
    if (!ls_family_has_experts(a->family)) return LS_OK;
    int64_t other = -1;
    a->experts = of_family[a->family].experts;
    a->experts_per_token = of_family[a->family].experts_per_token;
    LS_TRY(ls_published_size_if(r, "num_experts", &other));
    if (other >= 0) a->experts = other;
    LS_TRY(ls_published_size_if(r, "num_local_experts", &a->experts));
    if (other >= 0 && other != a->experts)
        return ls_published_fail(r, "num_local_experts", "it differs from num_experts");
    LS_TRY(ls_published_size_if(r, "num_experts_per_tok", &a->experts_per_token));
    if (ls_published_take(r, "router_aux_loss_coef"))
        LS_TRY(ls_published_number(r, "router_aux_loss_coef", &a->router_aux_loss));
    LS_TRY(ls_published_bool_if(r, "output_router_logits", &a->adds_aux_loss));
    if (ls_published_take(r, "router_jitter_noise"))
        LS_TRY(ls_published_number(r, "router_jitter_noise", &jitter));
    if (jitter != 0) return ls_published_fail(r, "router_jitter_noise", "only 0 is supported");
    a->norm_topk = !qwen;
    if (!qwen) return LS_OK;
    LS_TRY(ls_published_bool_if(r, "norm_topk_prob", &a->norm_topk));
    LS_TRY(ls_published_size(r, "moe_intermediate_size", &a->ffn));
    return expect_all_experts(r);
}

static ls_status expect_null(ls_published_keys *r, const char *key, const char *what) {
    return ls_published_take(r, key) ? ls_published_fail(r, key, what) : LS_OK;
}

static ls_status read_gemma(ls_published_keys *r, ls_architecture *a) {
    static const char cap[] = "soft-capping is not supported, only null is";
    double local = 0;
    int64_t scalar = QUERY_SCALAR;
    a->gemma = true;
    LS_TRY(ls_published_expect_text(r, "hidden_activation", "gelu_pytorch_tanh"));
    LS_TRY(expect_null(r, "attn_logit_softcapping", cap));
    LS_TRY(expect_null(r, "final_logit_softcapping", cap));
    LS_TRY(ls_published_expect_bool(r, "use_bidirectional_attention", false));
    LS_TRY(ls_published_size_if(r, "query_pre_attn_scalar", &scalar));
    if (scalar < 1) return ls_published_fail(r, "query_pre_attn_scalar", "it must be above 0");
    a->query_scalar = scalar == a->head_dim ? 0 : scalar;
    LS_TRY(ls_config_rope_read_gemma(r, of_family[a->family].rope_base, &a->rope, &local));
    return read_gemma_window(r, a, local);
}

static ls_status read_llama(ls_published_keys *r, ls_architecture *a) {
    bool smollm = a->family == LS_FAMILY_SMOLLM3, gemma = a->family == LS_FAMILY_GEMMA3;
    bool llama = a->family == LS_FAMILY_LLAMA, phi = a->family == LS_FAMILY_PHI3;
    bool qwen3 = a->family == LS_FAMILY_QWEN3 || a->family == LS_FAMILY_QWEN3_MOE;
    bool bias = false;
    const defaults *of = &of_family[a->family];
    LS_TRY(ls_published_size(r, "hidden_size", &a->width));
    LS_TRY(ls_published_size(r, "intermediate_size", &a->ffn));
    LS_TRY(read_experts(r, a));
    LS_TRY(ls_published_size(r, "num_hidden_layers", &a->layers));
    LS_TRY(ls_published_size(r, "num_attention_heads", &a->heads));
    a->context = of->context;
    a->norm_eps = of->norm_eps;
    LS_TRY(ls_published_size_if(r, "max_position_embeddings", &a->context));
    if (ls_published_take(r, "rms_norm_eps"))
        LS_TRY(ls_published_number(r, "rms_norm_eps", &a->norm_eps));
    LS_TRY(ls_published_expect_text(r, "hidden_act", gemma ? "gelu_pytorch_tanh" : "silu"));
    /* null stands for as many as heads */
    a->kv_heads =
        ls_json_get(r->o, "num_key_value_heads") || llama || phi ? a->heads : of->kv_heads;
    LS_TRY(ls_published_size_if(r, "num_key_value_heads", &a->kv_heads));
    a->head_dim = of->head_dim;
    if (!ls_published_take(r, "head_dim") && !a->head_dim) {
        if (qwen3) return ls_published_missing(r, "head_dim"); /* versions differ */
        if (a->heads < 1 || a->width % a->heads)
            return ls_published_fail(r, "num_attention_heads", "it must divide hidden_size");
        a->head_dim = a->width / a->heads;
    }
    LS_TRY(ls_published_size_if(r, "head_dim", &a->head_dim));
    if (llama || smollm || qwen3 || gemma) LS_TRY(ls_published_bool_if(r, "attention_bias", &bias));
    if (llama || smollm) LS_TRY(ls_published_bool_if(r, "mlp_bias", &a->mlp_bias));
    a->qkv_bias = bias || a->family == LS_FAMILY_QWEN2;
    a->o_bias = bias;
    a->qk_norm = qwen3 || gemma;
    LS_TRY(ls_published_expect_bool(r, "rope_interleaved", false));
    LS_TRY(ls_published_expect_bool(r, "use_mrope", false));
    if (phi) return read_phi(r, a);
    LS_TRY(ls_published_expect_one(r, "partial_rotary_factor"));
    if (gemma) return read_gemma(r, a);
    LS_TRY(
        ls_config_rope_read(r, of->rope_base, ls_published_take(r, "rope_parameters"), &a->rope));
    if (a->rope.type == LS_ROPE_YARN && !a->rope.original_context)
        a->rope.original_context = a->context;
    if (smollm) LS_TRY(read_no_rope(r, a));
    return read_window(r, a);
}

static ls_status read_gpt2(ls_published_keys *r, ls_architecture *a) {
    LS_TRY(ls_published_size(r, "n_embd", &a->width));
    LS_TRY(ls_published_size(r, "n_layer", &a->layers));
    LS_TRY(ls_published_size(r, "n_head", &a->heads));
    LS_TRY(ls_published_size(r, "n_positions", &a->context));
    int64_t n_ctx = a->context;
    LS_TRY(ls_published_size_if(r, "n_ctx", &n_ctx));
    if (n_ctx != a->context) return ls_published_fail(r, "n_ctx", "it must be n_positions");
    if (a->heads < 1 || a->width % a->heads)
        return ls_published_fail(r, "n_head", "it must divide n_embd");
    a->ffn = a->width > 0 && a->width < 1 << 24 ? 4 * a->width : 0;
    LS_TRY(ls_published_size_if(r, "n_inner", &a->ffn));
    a->norm_eps = 1e-5;
    if (ls_published_take(r, "layer_norm_epsilon"))
        LS_TRY(ls_published_number(r, "layer_norm_epsilon", &a->norm_eps));
    LS_TRY(ls_published_expect_text(r, "activation_function", "gelu_new"));
    LS_TRY(ls_published_expect_bool(r, "scale_attn_weights", true));
    LS_TRY(ls_published_expect_bool(r, "scale_attn_by_inverse_layer_idx", false));
    a->kv_heads = a->heads;
    a->head_dim = a->width / a->heads;
    a->qkv_bias = a->o_bias = a->mlp_bias = true;
    return LS_OK;
}

/* The defaults of transformers. */
static void set_defaults(ls_architecture *a) {
    bool llama = a->family == LS_FAMILY_LLAMA || a->family == LS_FAMILY_MISTRAL ||
                 a->family == LS_FAMILY_MIXTRAL;
    bool gpt2 = a->family == LS_FAMILY_GPT2, gemma = a->family == LS_FAMILY_GEMMA3;
    bool smollm = a->family == LS_FAMILY_SMOLLM3, phi = a->family == LS_FAMILY_PHI3;
    a->tied = gpt2 || gemma || smollm;
    a->pad = gemma ? 0 : smollm ? 128004 : phi ? 32000 : LS_TOKEN_NONE;
    a->bos = llama || phi ? 1 : gpt2 ? 50256 : gemma ? 2 : smollm ? 128000 : LS_TOKEN_NONE;
    a->eos[0] = llama ? 2 : gemma ? 1 : smollm ? 128001 : phi ? 32000 : 50256;
    a->neos = llama || gpt2 || gemma || smollm || phi;
    a->router_aux_loss = ls_family_has_experts(a->family) ? 0.001 : 0;
}

/* A default id belongs to the usual vocabulary; null stands for no token. */
static void drop_defaults(const ls_published_keys *r, ls_architecture *a) {
    const ls_json *bos = ls_json_get(r->o, "bos_token_id");
    const ls_json *eos = ls_json_get(r->o, "eos_token_id");
    const ls_json *pad = ls_json_get(r->o, "pad_token_id");
    if (ls_json_is_null(pad) || (!pad && a->pad >= a->vocab)) a->pad = LS_TOKEN_NONE;
    if (ls_json_is_null(bos) || (!bos && a->bos >= a->vocab)) a->bos = LS_TOKEN_NONE;
    if (ls_json_is_null(eos) || (!eos && a->neos && a->eos[0] >= a->vocab)) a->neos = 0;
}

ls_status ls_config_json_read(const ls_json *o, const char *what, ls_architecture *a_p,
                              ls_error *e) {
    ls_published_keys r = {.o = o, .what = what, .e = e};
    ls_architecture a = {0};
    if (!ls_json_is_object(o)) return ls_fail(e, LS_EINVAL, "%s: is not a JSON object", what);
    LS_TRY(read_family(&r, &a));
    LS_TRY(refuse_kinds(&r));
    set_defaults(&a);
    LS_TRY(ls_published_size(&r, "vocab_size", &a.vocab));
    LS_TRY(a.family == LS_FAMILY_GPT2 ? read_gpt2(&r, &a) : read_llama(&r, &a));
    LS_TRY(ls_published_bool_if(&r, "tie_word_embeddings", &a.tied));
    LS_TRY(take_token(&r, "bos_token_id", &a.bos));
    LS_TRY(take_token(&r, "pad_token_id", &a.pad));
    LS_TRY(take_eos(&r, &a));
    LS_TRY(ls_published_refuse_unknown(&r, "the model"));
    drop_defaults(&r, &a);
    LS_TRY(ls_architecture_check(&a, what, e));
    *a_p = a;
    return LS_OK;
}

ls_status ls_config_json_load(const char *path, ls_architecture *a_p, ls_error *e) {
    ls_json *o = NULL;
    LS_TRY(ls_json_read(path, LS_CONFIG_JSON_MOST, &o, e));
    if (!o) return ls_fail(e, LS_EIO, "%s: does not exist", path);
    ls_status s = ls_config_json_read(o, path, a_p, e);
    ls_json_free(o);
    return s;
}

/* ---- generation_config.json ---- */

/* A number up to `most`; 0: not given. */
static ls_status take_setting(ls_published_keys *r, const char *key, double most, double *value_p) {
    const ls_json *v = ls_published_take(r, key);
    double value = 0;
    if (!v) return LS_OK;
    if (!ls_json_number(v, &value) || !(value >= 0 && value <= most))
        return ls_published_fail(
            r, key, most == 1 ? "it must be from 0 to 1" : "it must be from 0 to 1000");
    *value_p = value;
    return LS_OK;
}

static ls_status take_generation(ls_published_keys *r, ls_generation *g) {
    *g = (ls_generation){0};
    bool draws = true;
    double top_k = 0, temperature = -1;
    LS_TRY(take_setting(r, "temperature", 1000, &temperature));
    LS_TRY(take_setting(r, "top_p", 1, &g->top_p));
    LS_TRY(take_setting(r, "min_p", 1, &g->min_p));
    LS_TRY(take_setting(r, "repetition_penalty", 1000, &g->penalty));
    LS_TRY(take_setting(r, "top_k", 1e9, &top_k));
    LS_TRY(ls_published_bool_if(r, "do_sample", &draws));
    g->top_k = (int64_t)top_k;
    g->temperature = temperature > 0 ? temperature : 0;
    g->greedy = !draws || temperature == 0;
    return LS_OK;
}

ls_status ls_generation_json_read(const ls_json *o, const char *what, ls_architecture *a,
                                  ls_error *e) {
    ls_published_keys r = {.o = o, .what = what, .e = e};
    if (!ls_json_is_object(o)) return ls_fail(e, LS_EINVAL, "%s: is not a JSON object", what);
    const ls_token_ids config = ls_architecture_config_ids(a);
    LS_TRY(take_eos(&r, a));
    LS_TRY(take_token(&r, "bos_token_id", &a->bos));
    LS_TRY(take_token(&r, "pad_token_id", &a->pad));
    a->has_config_ids = a->bos != config.bos || a->pad != config.pad || a->neos != config.neos ||
                        memcmp(a->eos, config.eos, (size_t)a->neos * sizeof *a->eos) != 0;
    if (a->has_config_ids) a->config_ids = config;
    LS_TRY(take_generation(&r, &a->generation));
    return ls_architecture_check(a, what, e);
}

ls_status ls_generation_json_load(const char *path, ls_architecture *a, ls_error *e) {
    ls_json *o = NULL;
    LS_TRY(ls_json_read(path, LS_CONFIG_JSON_MOST, &o, e));
    if (!o) return LS_OK;
    ls_status s = ls_generation_json_read(o, path, a, e);
    ls_json_free(o);
    return s;
}
