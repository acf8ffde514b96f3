/* published_config.h - config.json files as they are published, and with a key changed: for tests
 * of what reads and writes them. */
#ifndef LS_TEST_PUBLISHED_CONFIG_H
#define LS_TEST_PUBLISHED_CONFIG_H

#include <string.h>

#include "test.h"
#include "weights/config_json.h"

/* As published: SmolLM2-135M-Instruct (version 4), Llama 3.1 8B (version 4), Mistral 7B v0.1,
 * Qwen2.5 0.5B, Qwen3 0.6B, GPT-2; shortened. */
static const char smollm[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, \"attention_dropout\": "
    "0.0, \"bos_token_id\": 1, \"eos_token_id\": 2, \"hidden_act\": \"silu\", \"hidden_size\": "
    "576, "
    "\"initializer_range\": 0.041, \"intermediate_size\": 1536, \"is_llama_config\": true, "
    "\"max_position_embeddings\": 8192, \"mlp_bias\": false, \"model_type\": \"llama\", "
    "\"num_attention_heads\": 9, \"num_hidden_layers\": 30, \"num_key_value_heads\": 3, "
    "\"pad_token_id\": 2, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, \"rope_interleaved\": "
    "false, \"rope_scaling\": null, \"rope_theta\": 100000, \"tie_word_embeddings\": true, "
    "\"torch_dtype\": \"bfloat16\", \"transformers.js_config\": {\"dtype\": \"q4\"}, "
    "\"transformers_version\": \"4.42.3\", \"use_cache\": true, \"vocab_size\": 49152}";
static const char llama3[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"bos_token_id\": 128000, \"eos_token_id\": "
    "[128001, 128008, 128009], \"hidden_act\": \"silu\", \"hidden_size\": 4096, "
    "\"intermediate_size\": 14336, \"max_position_embeddings\": 131072, \"model_type\": \"llama\", "
    "\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
    "\"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 8.0, \"low_freq_factor\": 1.0, "
    "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192, \"rope_type\": "
    "\"llama3\"}, \"rope_theta\": 500000.0, \"tie_word_embeddings\": false, \"vocab_size\": "
    "128256}";
static const char mistral[] =
    "{\"architectures\": [\"MistralForCausalLM\"], \"bos_token_id\": 1, \"eos_token_id\": 2, "
    "\"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336, "
    "\"max_position_embeddings\": 32768, \"model_type\": \"mistral\", \"num_attention_heads\": 32, "
    "\"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-05, "
    "\"rope_theta\": 10000.0, \"sliding_window\": 4096, \"tie_word_embeddings\": false, "
    "\"vocab_size\": 32000}";
static const char qwen2[] =
    "{\"architectures\": [\"Qwen2ForCausalLM\"], \"attention_dropout\": 0.0, \"bos_token_id\": "
    "151643, \"eos_token_id\": 151645, \"hidden_act\": \"silu\", \"hidden_size\": 896, "
    "\"intermediate_size\": 4864, \"max_position_embeddings\": 32768, \"max_window_layers\": 21, "
    "\"model_type\": \"qwen2\", \"num_attention_heads\": 14, \"num_hidden_layers\": 24, "
    "\"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-06, \"rope_theta\": 1000000.0, "
    "\"sliding_window\": 32768, \"tie_word_embeddings\": true, \"use_mrope\": false, "
    "\"use_sliding_window\": false, \"vocab_size\": 151936}";
static const char qwen3[] =
    "{\"architectures\": [\"Qwen3ForCausalLM\"], \"attention_bias\": false, \"bos_token_id\": "
    "151643, \"eos_token_id\": 151645, \"head_dim\": 128, \"hidden_act\": \"silu\", "
    "\"hidden_size\": 1024, \"intermediate_size\": 3072, \"max_position_embeddings\": 40960, "
    "\"max_window_layers\": 28, \"model_type\": \"qwen3\", \"num_attention_heads\": 16, "
    "\"num_hidden_layers\": 28, \"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-06, "
    "\"rope_scaling\": null, \"rope_theta\": 1000000, \"sliding_window\": null, "
    "\"tie_word_embeddings\": true, \"use_sliding_window\": false, \"vocab_size\": 151936}";
static const char gpt2[] =
    "{\"activation_function\": \"gelu_new\", \"architectures\": [\"GPT2LMHeadModel\"], "
    "\"attn_pdrop\": 0.1, \"bos_token_id\": 50256, \"embd_pdrop\": 0.1, \"eos_token_id\": 50256, "
    "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"model_type\": \"gpt2\", "
    "\"n_ctx\": 1024, \"n_embd\": 768, \"n_head\": 12, \"n_layer\": 12, \"n_positions\": 1024, "
    "\"resid_pdrop\": 0.1, \"summary_type\": \"cls_index\", \"task_specific_params\": "
    "{\"text-generation\": {\"do_sample\": true}}, \"vocab_size\": 50257}";
static const char mixtral[] =
    "{\"architectures\": [\"MixtralForCausalLM\"], \"bos_token_id\": 1, \"eos_token_id\": 2, "
    "\"hidden_act\": \"silu\", \"hidden_size\": 4096, \"intermediate_size\": 14336, "
    "\"max_position_embeddings\": 32768, \"model_type\": \"mixtral\", \"num_attention_heads\": 32, "
    "\"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
    "\"num_local_experts\": 8, \"output_router_logits\": false, \"rms_norm_eps\": 1e-05, "
    "\"rope_theta\": 1000000.0, \"router_aux_loss_coef\": 0.02, \"sliding_window\": null, "
    "\"tie_word_embeddings\": false, \"vocab_size\": 32000}";
static const char qwen3_moe[] =
    "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"attention_bias\": false, \"bos_token_id\": "
    "151643, \"decoder_sparse_step\": 1, \"eos_token_id\": 151645, \"head_dim\": 128, "
    "\"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 6144, "
    "\"max_position_embeddings\": 40960, \"max_window_layers\": 48, \"mlp_only_layers\": [], "
    "\"model_type\": \"qwen3_moe\", \"moe_intermediate_size\": 768, \"norm_topk_prob\": true, "
    "\"num_attention_heads\": 32, \"num_experts\": 128, \"num_experts_per_tok\": 8, "
    "\"num_hidden_layers\": 48, \"num_key_value_heads\": 4, \"output_router_logits\": false, "
    "\"rms_norm_eps\": 1e-06, \"rope_scaling\": null, \"rope_theta\": 1000000.0, "
    "\"router_aux_loss_coef\": 0.001, \"sliding_window\": null, \"tie_word_embeddings\": false, "
    "\"use_sliding_window\": false, \"vocab_size\": 151936}";
/* Gemma 3 270M, in the forms of transformers 4.57 and of its first versions. */
#define GEMMA3                                                                                     \
    "{\"architectures\": [\"Gemma3ForCausalLM\"], \"attention_bias\": false, \"bos_token_id\": "   \
    "2, "                                                                                          \
    "\"eos_token_id\": [1, 106], \"final_logit_softcapping\": null, \"head_dim\": 256, "           \
    "\"hidden_activation\": \"gelu_pytorch_tanh\", \"hidden_size\": 640, \"intermediate_size\": "  \
    "2048, \"max_position_embeddings\": 32768, \"model_type\": \"gemma3_text\", "                  \
    "\"num_attention_heads\": 4, \"num_hidden_layers\": 18, \"num_key_value_heads\": 1, "          \
    "\"pad_token_id\": 0, \"query_pre_attn_scalar\": 256, \"rms_norm_eps\": 1e-06, "               \
    "\"rope_local_base_freq\": 10000.0, \"rope_theta\": 1000000.0, \"sliding_window\": 512, "      \
    "\"vocab_size\": 262144, "
#define LOCAL  "\"sliding_attention\", "
#define LOCALS LOCAL LOCAL LOCAL LOCAL LOCAL
#define FULL   "\"full_attention\""
static const char gemma3[] =
    GEMMA3 "\"_sliding_window_pattern\": 6, \"use_bidirectional_attention\": false, "
           "\"layer_types\": [" LOCALS FULL ", " LOCALS FULL ", " LOCALS FULL "]}";
static const char gemma3_first[] =
    GEMMA3 "\"sliding_window_pattern\": 6, \"cache_implementation\": "
           "\"hybrid\", \"rope_scaling\": null}";
/* SmolLM3 3B */
#define FOUR  "1, 1, 1, 0"
#define FOURS FOUR ", " FOUR ", " FOUR
static const char smollm3[] =
    "{\"architectures\": [\"SmolLM3ForCausalLM\"], \"attention_bias\": false, "
    "\"bos_token_id\": 128000, \"eos_token_id\": 128012, \"hidden_act\": \"silu\", "
    "\"hidden_size\": 2048, \"intermediate_size\": 11008, \"max_position_embeddings\": 65536, "
    "\"max_window_layers\": 28, \"mlp_bias\": false, \"model_type\": \"smollm3\", "
    "\"no_rope_layer_interval\": 4, \"no_rope_layers\": [" FOURS ", " FOURS ", " FOURS "], "
    "\"num_attention_heads\": 16, \"num_hidden_layers\": 36, \"num_key_value_heads\": 4, "
    "\"pad_token_id\": 128004, \"pretraining_tp\": 2, \"rms_norm_eps\": 1e-06, "
    "\"rope_scaling\": null, \"rope_theta\": 5000000.0, \"sliding_window\": null, "
    "\"use_sliding_window\": false, \"vocab_size\": 128256}";
/* Phi-4-mini, and Phi-3-mini 4k, with shorter lists and heads. */
#define SHORTS "1.0, 1.01, 1.1"
#define LONGS  "1, 1.118320672, 1.250641126"
static const char phi4_mini[] =
    "{\"architectures\": [\"Phi3ForCausalLM\"], \"attention_bias\": false, "
    "\"attention_dropout\": 0.0, \"auto_map\": {\"AutoConfig\": "
    "\"configuration_phi3.Phi3Config\"}, "
    "\"bos_token_id\": 199999, \"embd_pdrop\": 0.0, \"eos_token_id\": 199999, "
    "\"full_attn_mod\": 1, \"hidden_act\": \"silu\", \"hidden_size\": 192, "
    "\"intermediate_size\": 8192, \"interpolate_factor\": 1, \"lm_head_bias\": false, "
    "\"max_position_embeddings\": 131072, \"mlp_bias\": false, \"model_type\": \"phi3\", "
    "\"num_attention_heads\": 24, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
    "\"original_max_position_embeddings\": 4096, \"pad_token_id\": 199999, "
    "\"partial_rotary_factor\": 0.75, \"resid_pdrop\": 0.0, \"rms_norm_eps\": 1e-05, "
    "\"rope_scaling\": {\"long_factor\": [" LONGS "], \"short_factor\": [" SHORTS
    "], \"type\": \"longrope\"}, \"rope_theta\": 10000.0, \"sliding_window\": 262144, "
    "\"tie_word_embeddings\": true, \"vocab_size\": 200064}";
static const char phi3[] =
    "{\"architectures\": [\"Phi3ForCausalLM\"], \"bos_token_id\": 1, \"eos_token_id\": 32000, "
    "\"hidden_act\": \"silu\", \"hidden_size\": 3072, \"intermediate_size\": 8192, "
    "\"max_position_embeddings\": 4096, \"model_type\": \"phi3\", \"num_attention_heads\": 32, "
    "\"num_hidden_layers\": 32, \"num_key_value_heads\": 32, "
    "\"original_max_position_embeddings\": 4096, \"pad_token_id\": 32000, \"rms_norm_eps\": "
    "1e-05, \"rope_scaling\": null, \"rope_theta\": 10000.0, \"sliding_window\": 2047, "
    "\"tie_word_embeddings\": false, \"vocab_size\": 32064}";
static const char *const all[] = {smollm,  llama3,    mistral,   qwen2,  qwen3,
                                  gpt2,    mixtral,   qwen3_moe, gemma3, gemma3_first,
                                  smollm3, phi4_mini, phi3};
enum { NALL = sizeof all / sizeof *all };

static inline ls_status read_text(const char *text, ls_architecture *a, ls_error *e) {
    ls_json *o = NULL;
    LS_TRY(ls_json_parse(text, strlen(text), "config.json", &o, e));
    ls_status s = ls_config_json_read(o, "config.json", a, e);
    ls_json_free(o);
    return s;
}

static inline ls_architecture good(const char *text) {
    ls_architecture a;
    ls_error e = {0};
    assert_ls_ok(read_text(text, &a, &e), e);
    return a;
}

/* The config with member `key` set to `value`, or removed (NULL). */
static inline char *changed(const char *text, const char *key, const char *value) {
    ls_json *o = NULL;
    ls_error e = {0};
    ls_buf b = {0};
    assert_ls_ok(ls_json_parse(text, strlen(text), "base", &o, &e), e);
    const char *name = NULL;
    const ls_json *v = NULL;
    for (void *it = NULL; (it = ls_json_next(o, it, &name, &v));) {
        if (strcmp(name, key) == 0) continue;
        ls_buf_printf(&b, "%s\"%s\": ", b.len ? ", " : "{", name);
        ls_json_write(v, 0, &b);
    }
    if (value) ls_buf_printf(&b, ", \"%s\": %s", key, value);
    ls_buf_printf(&b, "}");
    ls_json_free(o);
    return b.data;
}

static inline ls_architecture good_with(const char *text, const char *key, const char *value) {
    char *other = changed(text, key, value);
    ls_architecture a = good(other);
    free(other);
    return a;
}

static inline void check_refused(const char *text, const char *key, const char *value,
                                 const char *want) {
    char *other = changed(text, key, value);
    ls_architecture a;
    ls_error e = {0};
    if (read_text(other, &a, &e) != LS_EINVAL || !strstr(e.msg, want))
        fail_msg("%s: %s: '%s' does not say '%s'", key, value ? value : "-", e.msg, want);
    assert_non_null(strstr(e.msg, "config.json: "));
    assert_null(strchr(e.msg, '\n'));
    free(other);
}

#endif
