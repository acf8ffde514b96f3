/* config_json_test.c - config.json of each family, in the forms of transformers 4 and 5; what is
 * not supported is refused by the name of its key. */
#include "weights/config_json.h"

#include <math.h>

#include "folder.h"
#include "test.h"
#include "weights/tensor_names.h"

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

static ls_status read_text(const char *text, ls_architecture *a, ls_error *e) {
    ls_json *o = NULL;
    LS_TRY(ls_json_parse(text, strlen(text), "config.json", &o, e));
    ls_status s = ls_config_json_read(o, "config.json", a, e);
    ls_json_free(o);
    return s;
}

static ls_architecture good(const char *text) {
    ls_architecture a;
    ls_error e = {0};
    assert_ls_ok(read_text(text, &a, &e), e);
    return a;
}

/* The config with member `key` set to `value`, or removed (NULL). */
static char *changed(const char *text, const char *key, const char *value) {
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

static ls_architecture good_with(const char *text, const char *key, const char *value) {
    char *other = changed(text, key, value);
    ls_architecture a = good(other);
    free(other);
    return a;
}

static void test_families(void **state) {
    (void)state;
    ls_architecture a = good(smollm);
    assert_true(a.family == LS_FAMILY_LLAMA && a.layers == 30 && a.width == 576 && a.ffn == 1536);
    assert_true(a.heads == 9 && a.kv_heads == 3 && a.head_dim == 64 && a.vocab == 49152);
    assert_true(a.context == 8192 && a.norm_eps == 1e-5 && a.tied && a.window == 0);
    assert_true(a.rope.type == LS_ROPE_DEFAULT && a.rope.base == 100000);
    assert_false(a.qkv_bias || a.o_bias || a.mlp_bias || a.qk_norm);
    assert_true(a.bos == 1 && a.pad == 2 && a.neos == 1 && a.eos[0] == 2);
    assert_int_equal(ls_architecture_count(&a), 134515008); /* as published */

    a = good(llama3);
    assert_true(a.rope.type == LS_ROPE_LLAMA3 && a.rope.factor == 8 && a.rope.low == 1);
    assert_true(a.rope.high == 4 && a.rope.original_context == 8192 && a.rope.base == 500000);
    assert_true(a.neos == 3 && a.eos[2] == 128009 && a.pad == LS_TOKEN_NONE && !a.tied);
    assert_int_equal(ls_architecture_count(&a), 8030261248);

    a = good(mistral);
    assert_true(a.family == LS_FAMILY_MISTRAL && a.window == 4096 && a.head_dim == 128);
    assert_int_equal(ls_architecture_count(&a), 7241732096);

    a = good(qwen2);
    assert_true(a.family == LS_FAMILY_QWEN2 && a.window == 0 && a.qkv_bias && !a.o_bias);
    assert_int_equal(ls_architecture_count(&a), 494032768);

    a = good(qwen3);
    assert_true(a.family == LS_FAMILY_QWEN3 && a.qk_norm && !a.qkv_bias && a.head_dim == 128);
    assert_int_equal(ls_architecture_count(&a), 596049920);

    a = good(mixtral);
    assert_true(a.family == LS_FAMILY_MIXTRAL && a.experts == 8 && a.experts_per_token == 2);
    assert_true(a.norm_topk && a.router_aux_loss == 0.02 && a.window == 0 && a.ffn == 14336);
    assert_int_equal(ls_architecture_count(&a), 46702792704);

    a = good(qwen3_moe);
    assert_true(a.family == LS_FAMILY_QWEN3_MOE && a.experts == 128 && a.experts_per_token == 8);
    assert_true(a.norm_topk && a.qk_norm && a.ffn == 768);
    assert_int_equal(ls_architecture_count(&a), 30532122624);
    assert_false(good_with(qwen3_moe, "norm_topk_prob", NULL).norm_topk);
    char *renamed = changed(qwen3_moe, "num_experts", NULL); /* transformers 5 */
    assert_int_equal(good_with(renamed, "num_local_experts", "128").experts, 128);
    free(renamed);

    a = good(gpt2);
    assert_true(a.family == LS_FAMILY_GPT2 && a.tied && a.ffn == 3072 && a.head_dim == 64);
    assert_true(a.rope.type == LS_ROPE_NONE && a.qkv_bias && a.o_bias && a.mlp_bias);
    assert_int_equal(ls_architecture_count(&a), 124439808);
}

static void check_refused(const char *text, const char *key, const char *value, const char *want) {
    char *other = changed(text, key, value);
    ls_architecture a;
    ls_error e = {0};
    if (read_text(other, &a, &e) != LS_EINVAL || !strstr(e.msg, want))
        fail_msg("%s: %s: '%s' does not say '%s'", key, value ? value : "-", e.msg, want);
    assert_non_null(strstr(e.msg, "config.json: "));
    assert_null(strchr(e.msg, '\n'));
    free(other);
}

static void test_rope(void **state) {
    (void)state;
    assert_true(good_with(smollm, "rope_theta", NULL).rope.base == 10000);
    ls_architecture a =
        good_with(smollm, "rope_scaling", "{\"type\": \"linear\", \"factor\": 2.5}");
    assert_true(a.rope.type == LS_ROPE_LINEAR && a.rope.factor == 2.5 && a.rope.base == 100000);
    /* version 5 */
    static const char five[] = "{\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": "
                               "32, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4, "
                               "\"original_max_position_embeddings\": 8192}";
    char *none = changed(smollm, "rope_theta", NULL);
    a = good_with(none, "rope_parameters", five);
    assert_true(a.rope.type == LS_ROPE_LLAMA3 && a.rope.base == 500000 && a.rope.factor == 32);
    assert_true(good_with(none, "rope_parameters", "{\"rope_type\": \"default\"}").rope.base ==
                1e4);
    free(none);
    a = good_with(smollm, "rope_parameters", "{\"rope_type\": \"default\"}");
    assert_true(a.rope.base == 100000);
    /* yarn, as transformers 5.24 reads it */
    a = good_with(smollm, "rope_scaling",
                  "{\"type\": \"yarn\", \"factor\": 4.0, "
                  "\"original_max_position_embeddings\": 32768}");
    assert_true(a.rope.type == LS_ROPE_YARN && a.rope.low == 1 && a.rope.high == 32);
    assert_true(a.rope.original_context == 32768 && !a.rope.exact);
    assert_true(fabs(a.rope.scale - 1.138629436111989) < 1e-15);
    assert_true(a.context == 8192 && ls_architecture_positions(&a) == 131072);
    a = good_with(smollm, "rope_parameters",
                  "{\"rope_type\": \"yarn\", \"factor\": 3, \"mscale\": 1.0, \"truncate\": false, "
                  "\"mscale_all_dim\": 0.5, \"beta_fast\": 16, \"beta_slow\": 0.5}");
    assert_true(a.rope.low == 0.5 && a.rope.high == 16 && a.rope.exact);
    assert_true(a.rope.original_context == 8192 && ls_architecture_positions(&a) == 24576);
    assert_true(fabs(a.rope.scale - 1.0520703576916368) < 1e-15);
    a = good_with(smollm, "rope_scaling",
                  "{\"type\": \"yarn\", \"factor\": 4.0, \"attention_factor\": 1.5}");
    assert_true(a.rope.scale == 1.5 && a.rope.original_context == 8192);
    /* both */
    a = good_with(smollm, "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 1e5}");
    assert_true(a.rope.base == 100000);
    check_refused(smollm, "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 1e4}",
                  "rope_parameters differs");
    check_refused(llama3, "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 5e5}",
                  "rope_parameters differs");
}

/* What transformers has for a key that is missing, by family. */
static void test_left_out(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double theta, eps;
        int64_t context, kv_heads;
    } cases[] = {{smollm, 1e4, 1e-6, 2048, 9},
                 {mistral, 1e4, 1e-6, 131072, 8},
                 {mixtral, 1e6, 1e-5, 131072, 8},
                 {qwen3, 1e4, 1e-6, 32768, 32},
                 {qwen3_moe, 1e4, 1e-6, 32768, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        assert_true(good_with(text, "rope_theta", NULL).rope.base == cases[i].theta);
        assert_true(good_with(text, "rms_norm_eps", NULL).norm_eps == cases[i].eps);
        assert_int_equal(good_with(text, "max_position_embeddings", NULL).context,
                         cases[i].context);
        good_with(text, "hidden_act", NULL);
        if (cases[i].text == qwen3) continue; /* its 16 heads can't have the 32 */
        assert_int_equal(good_with(text, "num_key_value_heads", NULL).kv_heads, cases[i].kv_heads);
        ls_architecture a = good_with(text, "num_key_value_heads", "null");
        assert_int_equal(a.kv_heads, a.heads);
    }
    assert_int_equal(good_with(qwen3, "head_dim", NULL).head_dim, 128);
    ls_architecture a = good_with(mixtral, "num_local_experts", NULL);
    assert_true(a.experts == 8 && !a.adds_aux_loss);
    assert_int_equal(good_with(mixtral, "num_experts_per_tok", NULL).experts_per_token, 2);
    assert_int_equal(good_with(qwen3_moe, "num_experts", NULL).experts, 128);
    assert_int_equal(good_with(qwen3_moe, "num_experts_per_tok", NULL).experts_per_token, 8);
    assert_true(good_with(mixtral, "router_aux_loss_coef", NULL).router_aux_loss == 0.001);
    assert_true(good_with(mixtral, "output_router_logits", "true").adds_aux_loss);
    assert_false(good_with(mixtral, "output_router_logits", NULL).adds_aux_loss);
    assert_true(good_with(gpt2, "layer_norm_epsilon", NULL).norm_eps == 1e-5);
}

static void test_rope_refused(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"type\": \"dynamic\", \"factor\": 4}", "rope_scaling: type is \"dynamic\""},
        {"{\"type\": \"yarn\"}", "rope_scaling: factor is missing"},
        {"{\"type\": \"yarn\", \"factor\": 0}", "the rotation's factor 0 is not positive"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"attention_factor\": 0}", "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"beta_slow\": 40}", "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"beta_slow\": 31.99999999999}",
         "rope_type yarn needs"}, /* the same in f32 */
        {"{\"type\": \"yarn\", \"factor\": 4, \"attention_factor\": 1e-60}",
         "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": -1}",
         "rope_type yarn needs"},
        {"{\"type\": \"yarn\", \"factor\": 4, \"finetuned\": true}", "finetuned is not supported"},
        {"{\"rope_type\": \"dynamic\", \"factor\": 4}", "rope_scaling: rope_type is \"dynamic\""},
        {"{\"rope_type\": \"longrope\"}", "rope_type is \"longrope\""},
        {"{\"rope_type\": 3}", "rope_type is 3"},
        {"{\"rope_type\": \"linear\", \"type\": \"dynamic\", \"factor\": 2}", "differs from"},
        {"{\"rope_type\": \"linear\"}", "rope_scaling: factor is missing"},
        {"{\"rope_type\": \"linear\", \"factor\": \"2\"}", "factor is \"2\""},
        {"{\"rope_type\": \"linear\", \"factor\": 0}", "factor 0 is not positive"},
        {"{\"rope_type\": \"linear\", \"factor\": 2, \"mscale\": 1}", "mscale is not supported"},
        {"{\"rope_type\": \"default\", \"factor\": 2}", "factor is not supported"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
         "\"original_max_position_embeddings\": 8192}",
         "high_freq_factor is missing"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
         "\"high_freq_factor\": 1, \"original_max_position_embeddings\": 8192}",
         "low_freq_factor < high_freq_factor"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
         "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 0}",
         "original_max_position_embeddings"},
        {"{\"full_attention\": {\"rope_type\": \"default\"}}", "full_attention is not supported"},
        {"{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}", "partial_rotary_factor"},
        {"[]", "rope_scaling must be an object"},
        {"\"linear\"", "rope_scaling must be an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(smollm, "rope_scaling", cases[i][0], cases[i][1]);
    check_refused(smollm, "rope_theta", "-1", "base -1 is not positive");
    check_refused(smollm, "rope_theta", "\"1e5\"", "rope_theta is \"1e5\"");
    check_refused(smollm, "partial_rotary_factor", "0.25", "partial_rotary_factor is 0.25");
}

static void test_windows(void **state) {
    (void)state;
    assert_true(good_with(mistral, "sliding_window", "null").window == 0);
    assert_true(good_with(mistral, "sliding_window", NULL).window == 4096);
    check_refused(mistral, "sliding_window", "-1", "window");
    check_refused(smollm, "sliding_window", "4096", "sliding_window is not supported");
    check_refused(qwen2, "use_sliding_window", "true", "max_window_layers is 21");
    char *text = changed(qwen2, "use_sliding_window", "true");
    assert_true(good_with(text, "max_window_layers", "0").window == 32768);
    assert_true(good_with(text, "max_window_layers", "24").window == 0);
    char *without = changed(text, "sliding_window", "null");
    check_refused(without, "max_window_layers", "0", "sliding_window is null");
    free(without);
    free(text);
    /* version 5 lists the layers */
    ls_buf full = {0}, sliding = {0};
    for (int i = 0; i < 24; i++) {
        ls_buf_printf(&full, "%s\"full_attention\"", i ? ", " : "[");
        ls_buf_printf(&sliding, "%s\"%s_attention\"", i ? ", " : "[", i < 20 ? "sliding" : "full");
    }
    ls_buf_printf(&full, "]");
    ls_buf_printf(&sliding, "]");
    assert_true(good_with(qwen2, "layer_types", full.data).window == 0);
    check_refused(qwen2, "layer_types", sliding.data,
                  "layer_types: layer 0 is 'sliding_attention'");
    check_refused(qwen3, "layer_types", full.data, "one type for each layer");
    check_refused(qwen2, "layer_types", "\"full_attention\"", "layer_types must be a list");
    ls_buf_free(&full);
    ls_buf_free(&sliding);
}

static void test_gemma3(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        ls_architecture a = good(i ? gemma3_first : gemma3);
        assert_true(a.family == LS_FAMILY_GEMMA3 && a.gemma && a.qk_norm && a.tied);
        assert_true(a.window == 512 && a.full_every == 6 && a.query_scalar == 0);
        assert_true(a.rope.base == 1e6 && a.local_base == 1e4 && a.bos == 2 && a.neos == 2);
        for (int k = 0; k < 18; k++) {
            assert_int_equal(ls_architecture_is_local(&a, k), k != 5 && k != 11 && k != 17);
            assert_true(ls_architecture_rope(&a, k).base == (k % 6 == 5 ? 1e6 : 1e4));
        }
        assert_int_equal(ls_architecture_count(&a), 268098176); /* as published */
    }
    ls_architecture a = good_with(gemma3_first, "query_pre_attn_scalar", "168");
    assert_true(a.query_scalar == 168);
    a = good_with(gemma3_first, "sliding_window_pattern", NULL);
    assert_true(a.full_every == 6);
    a = good_with(gemma3_first, "sliding_window_pattern", "4"); /* the last layers are local */
    assert_true(a.full_every == 4 && ls_architecture_is_local(&a, 17));
    a = good_with(gemma3_first, "sliding_window_pattern", "1");
    assert_true(a.window == 0 && a.full_every == 0 && a.rope.base == 1e6);
    a = good_with(gemma3_first, "sliding_window_pattern", "19"); /* all layers are */
    assert_true(a.window == 512 && a.full_every == 0 && a.rope.base == 1e4);
    a = good_with(gemma3_first, "rope_scaling", "{\"rope_type\": \"linear\", \"factor\": 8.0}");
    assert_true(ls_architecture_rope(&a, 5).factor == 8);
    assert_true(ls_architecture_rope(&a, 4).type == LS_ROPE_DEFAULT);
    /* version 5 */
    char *four = changed(gemma3, "rope_theta", NULL);
    char *five = changed(four, "rope_local_base_freq", NULL);
    a = good_with(
        five, "rope_parameters",
        "{\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 4, \"rope_theta\": "
        "5e5}, \"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 2e4}}");
    assert_true(a.rope.type == LS_ROPE_LINEAR && a.rope.base == 5e5 && a.local_base == 2e4);
    check_refused(five, "rope_parameters", "{\"full_attention\": {}, \"other\": {}}",
                  "rope_parameters: other is not supported");
    check_refused(five, "rope_parameters",
                  "{\"sliding_attention\": {\"rope_type\": \"linear\", \"factor\": 2}}",
                  "sliding_attention is not of rope_type default");
    check_refused(five, "rope_parameters", "{\"full_attention\": 3}", "must be an object");
    check_refused(gemma3, "rope_parameters", "{\"sliding_attention\": {\"rope_theta\": 5}}",
                  "differs from rope_local_base_freq");
    free(four);
    free(five);
    static const char *const refused[][3] = {
        {"sliding_window_pattern", "0", "sliding_window_pattern is 0; it must be at least 1"},
        {"sliding_window_pattern", "-6", "sliding_window_pattern is -6"},
        {"sliding_window", "-1", "sliding_window is -1; layers of sliding_attention need one"},
        {"sliding_window", "null", "sliding_window is null"},
        {"sliding_window", "3e10", "sliding_window"},
        {"layer_types", "[" FULL "]", "one type for each layer"},
        {"final_logit_softcapping", "30.0", "final_logit_softcapping is 30.0; soft-capping is not"},
        {"attn_logit_softcapping", "50", "attn_logit_softcapping is 50; soft-capping is not"},
        {"query_pre_attn_scalar", "0", "query_pre_attn_scalar is 0; it must be above 0"},
        {"hidden_activation", "\"silu\"", "only \"gelu_pytorch_tanh\" is supported"},
        {"use_bidirectional_attention", "true", "use_bidirectional_attention is true"},
        {"rope_local_base_freq", "0", "base 0 of the rotation in layers with a window"},
        {"model_type", "\"gemma3\"", "models that also read images are not supported"},
        {"model_type", "\"gemma2\"", "model_type is \"gemma2\""}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(gemma3_first, refused[i][0], refused[i][1], refused[i][2]);
    check_refused(gemma3, "layer_types",
                  "[" LOCALS FULL ", " LOCALS FULL ", " LOCALS "\"chunked_attention\"]",
                  "layer 17 is 'chunked_attention'");
    check_refused(gemma3, "layer_types", "[" LOCALS FULL ", " FULL ", " LOCALS LOCALS FULL "]",
                  "layer 6 is 'full_attention': only a list whose each 6th layer");
}

static void test_smollm3(void **state) {
    (void)state;
    ls_architecture a = good(smollm3);
    assert_true(a.family == LS_FAMILY_SMOLLM3 && a.no_rope_every == 4 && a.tied && a.window == 0);
    assert_true(a.rope.base == 5e6 && a.head_dim == 128 && a.eos[0] == 128012 && a.pad == 128004);
    for (int k = 0; k < 36; k++)
        assert_int_equal(ls_architecture_rope(&a, k).type,
                         k % 4 == 3 ? LS_ROPE_NONE : LS_ROPE_DEFAULT);
    assert_int_equal(ls_architecture_count(&a), 3075098624); /* as published */
    char *without = changed(smollm3, "no_rope_layers", "null");
    assert_true(good_with(without, "no_rope_layer_interval", NULL).no_rope_every == 4);
    assert_true(good_with(without, "no_rope_layer_interval", "5").no_rope_every == 5);
    assert_true(good_with(without, "no_rope_layer_interval", "37").no_rope_every == 0);
    check_refused(without, "no_rope_layer_interval", "0", "it must be at least 1");
    check_refused(without, "no_rope_layer_interval", "1", "no rotation in 1 of 1 layers");
    free(without);
    /* the list decides; left out: rope_theta and others */
    assert_true(good_with(smollm3, "no_rope_layer_interval", "7").no_rope_every == 4);
    assert_true(good_with(smollm3, "rope_theta", NULL).rope.base == 2e6);
    assert_true(good_with(smollm3, "num_key_value_heads", NULL).kv_heads == 4);
    a = good_with(smollm3, "rope_scaling",
                  "{\"type\": \"yarn\", \"factor\": 2.0, \"original_max_position_embeddings\": "
                  "65536}"); /* as its card says */
    assert_true(a.rope.type == LS_ROPE_YARN && ls_architecture_positions(&a) == 131072);
    static const char *const refused[][3] = {
        {"no_rope_layers", "[1, 1, 1, 0]", "a list of one number for each layer"},
        {"no_rope_layers", "7", "a list of one number for each layer"},
        {"no_rope_layers", "[" FOURS ", " FOURS ", " FOUR ", " FOUR ", 1, 1, 0, 1]",
         "layer 34 is 0: only a list whose each 4th layer is 0"},
        {"no_rope_layers", "[" FOURS ", " FOURS ", " FOUR ", " FOUR ", 1, 1, 1, 2]",
         "layer 35 has another value than 0 and 1"},
        {"attention_multiplier", "2", "attention_multiplier is not supported"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(smollm3, refused[i][0], refused[i][1], refused[i][2]);
    /* a window: in the layers without a rotation, in those that are listed, in all or in none */
    char *uses = changed(smollm3, "use_sliding_window", "true"), *one = uses;
    assert_true(good(uses).window == 0);
    uses = changed(uses, "sliding_window", "512");
    free(one);
    check_refused(uses, "layer_types", "null", "the layers that have no rotation have the window");
    ls_buf list[2] = {{0}};
    for (int i = 0; i < 36; i++) {
        ls_buf_printf(&list[0], "%s\"sliding_attention\"", i ? ", " : "[");
        ls_buf_printf(&list[1], "%s\"%s_attention\"", i ? ", " : "[",
                      i % 4 < 3 ? "full" : "sliding");
    }
    for (int i = 0; i < 2; i++) ls_buf_printf(&list[i], "]");
    assert_true(good_with(uses, "layer_types", list[0].data).window == 512);
    check_refused(uses, "layer_types", list[1].data, "layer 3 is 'sliding_attention'");
    check_refused(smollm3, "layer_types", list[0].data, "layer 0 is 'sliding_attention'");
    for (int i = 0; i < 2; i++) ls_buf_free(&list[i]);
    free(uses);
}

/* rope_scaling with another value of a key. */
static char *scaling(const char *key, const char *value) {
    static const char text[] =
        "{\"long_factor\": [" LONGS "], \"short_factor\": [" SHORTS "], \"type\": \"longrope\"}";
    return changed(text, key, value);
}

static ls_architecture phi_with(const char *key, const char *value) {
    char *o = scaling(key, value);
    ls_architecture a = good_with(phi4_mini, "rope_scaling", o);
    free(o);
    return a;
}

static void test_phi3(void **state) {
    (void)state;
    ls_architecture a = good(phi4_mini), b = good(phi3);
    assert_true(a.family == LS_FAMILY_PHI3 && a.rope.type == LS_ROPE_LONGROPE && a.turned == 6);
    assert_true(a.head_dim == 8 && a.window == 262144 && a.tied && a.rope.original_context == 4096);
    assert_true(a.rope.factor == 32 && ls_architecture_pairs(&a) == 3);
    /* the root of 1 + ln 32 / ln 4096, which is that of 17 / 12 */
    assert_true(fabs(a.rope.scale - 1.1902380714238083) < 1e-15);
    assert_true(a.divisors[LS_ROPE_SHORT][2] == 1.1f);
    assert_true(a.divisors[LS_ROPE_LONG][1] == 1.118320672f);
    assert_ptr_equal(ls_architecture_divisors(&a), a.divisors[LS_ROPE_LONG]);
    a.context = 4096; /* as a run with this model.context */
    assert_ptr_equal(ls_architecture_divisors(&a), a.divisors[LS_ROPE_SHORT]);
    assert_true(b.rope.type == LS_ROPE_DEFAULT && b.turned == 0 && b.window == 2047 && !b.tied);
    assert_null(ls_architecture_divisors(&b));
    assert_true(good_with(phi3, "sliding_window", "null").window == 0);
    assert_true(good_with(phi3, "num_key_value_heads", NULL).kv_heads == 32);
    assert_true(good_with(phi4_mini, "original_max_position_embeddings", NULL).rope.factor == 32);
    assert_true(phi_with("type", "\"su\"").rope.type == LS_ROPE_LONGROPE);
    assert_true(phi_with("factor", "8").rope.scale < 1.119); /* sqrt(1 + 3 / 12) */
    assert_true(phi_with("attention_factor", "1.5").rope.scale == 1.5);
    assert_true(good_with(phi3, "partial_rotary_factor", "0.4").turned == 38); /* of 96 */
    static const char *const refused[][3] = {
        {"partial_rotary_factor", "0", "it must be above 0 and at most 1"},
        {"partial_rotary_factor", "1.5", "it must be above 0 and at most 1"},
        {"partial_rotary_factor", "1", "short_factor must be a list of 4 numbers"},
        {"partial_rotary_factor", "1e-9", "it turns no pair of a head's elements"},
        {"original_max_position_embeddings", "1", "it is too small"},
        {"sliding_window", "0", "it must be null or above 0"},
        {"attention_bias", "true", "only false is supported"},
        {"lm_head_bias", "true", "only false is supported"},
        {"full_attn_mod", "2", "only 1 is supported"},

        {"rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 10000.0}",
         "rope_parameters differs from rope_theta and rope_scaling"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(i == 3 ? phi3 : phi4_mini, refused[i][0], refused[i][1], refused[i][2]);
    check_refused(phi3, "head_dim", "16", "32 heads of 16 elements don't make up a width of 3072");
    check_refused(phi3, "partial_rotary_factor", "0.35", "turns 33 of a head's 96 elements");
    static const char *const scalings[][3] = {
        {"type", "\"yarn\"", "default and longrope (su) are supported in the family phi3"},
        {"type", "7", "default and longrope (su) are supported in the family phi3"},
        {"short_factor", "[1, 2]", "short_factor must be a list of 3 numbers"},
        {"short_factor", NULL, "short_factor must be a list of 3 numbers"},
        {"long_factor", "[1, \"2\", 3]", "long_factor must be a list of 3 numbers"},
        {"factor", "1e7", "a factor from 1e-3 to 1e6"},
        {"long_factor", "[1, 0, 3]", "numbers from 1e-6 to 1e6 in short_factor and long_factor"},
        {"attention_factor", "0", "an attention_factor from 0 to 1e6"},
        {"original_max_position_embeddings", "2048", "it differs from that of the whole"},
        {"partial_rotary_factor", "0.5", "it differs from the other one of the file"},
        {"short_mscale", "1.2", "short_mscale is not supported"}};
    for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++) {
        char *o = scaling(scalings[i][0], scalings[i][1]);
        check_refused(phi4_mini, "rope_scaling", o, scalings[i][2]);
        free(o);
    }
    check_refused(llama3, "rope_scaling", "{\"type\": \"longrope\"}",
                  "default, linear, llama3 and yarn are supported");
    check_refused(llama3, "partial_rotary_factor", "0.75", "only 1 is supported");
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *base, *key, *value, *want;
    } cases[] = {
        {smollm, "model_type", "\"gemma\"", "model_type is \"gemma\""},
        {smollm, "model_type", "\"qwen2_moe\"", "model_type is \"qwen2_moe\""},
        {smollm, "model_type", NULL, "model_type is missing"},
        {smollm, "model_type", "3", "model_type is 3"},
        {smollm, "architectures", "[\"LlamaForSequenceClassification\"]", "architectures is"},
        {smollm, "architectures", "[\"LlamaModel\"]", "only LlamaForCausalLM"},
        {smollm, "hidden_act", "\"gelu\"", "hidden_act is \"gelu\"; only \"silu\""},
        {smollm, "hidden_size", NULL, "hidden_size is missing"},
        {smollm, "hidden_size", "576.5", "hidden_size is 576.5; it must be an integer"},
        {smollm, "hidden_size", "\"576\"", "hidden_size is \"576\""},
        {smollm, "hidden_size", "577", "num_attention_heads is 9; it must divide hidden_size"},
        {smollm, "hidden_size", "0", "width: 0 is not from 1"},
        {smollm, "hidden_size", "-576", "-576 is not from 1"},
        {smollm, "hidden_size", "9223372036854775807", "num_attention_heads"},
        {smollm, "num_hidden_layers", "99999999", "layers: 99999999"},
        {smollm, "num_attention_heads", "0", "num_attention_heads is 0"},
        {smollm, "num_key_value_heads", "2", "2 KV heads don't divide 9 heads"},
        {smollm, "num_key_value_heads", "0", "KV heads: 0"},
        {smollm, "head_dim", "63", "heads have 63 elements"},
        {smollm, "intermediate_size", NULL, "intermediate_size is missing"},
        {smollm, "vocab_size", "1e9", "vocab_size is 1e9; it must"},
        {smollm, "vocab_size", "1000000000", "vocabulary: 1000000000"},
        {smollm, "rms_norm_eps", "-1", "(rms_norm_eps) is -1"},
        {smollm, "rms_norm_eps", "0", "(rms_norm_eps) is 0; it must be above 0"},
        {smollm, "rms_norm_eps", "1e-60", "(rms_norm_eps) is 1e-60; it must be above 0, in f32"},
        {gpt2, "layer_norm_epsilon", "0", "(layer_norm_epsilon) is 0; it must be above 0"},
        {smollm, "attention_bias", "1", "attention_bias is 1; it must be true or false"},
        {smollm, "eos_token_id", "49152", "eos_token_id 49152 is no token"},
        {smollm, "eos_token_id", "[1, \"2\"]", "eos_token_id is [1, \"2\"]"},
        {smollm, "eos_token_id", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", "too many"},
        {smollm, "pad_token_id", "-2", "pad_token_id -2 is no token"},
        {smollm, "bos_token_id", "\"1\"", "bos_token_id is \"1\""},
        {smollm, "num_experts", "8", "num_experts is not supported: it may change the model"},
        {smollm, "num_local_experts", "8", "num_local_experts is not supported"},
        {smollm, "attention_multiplier", "0.5", "attention_multiplier is not supported"},
        {smollm, "quantization_config", "{\"bits\": 4}", "quantization_config is not supported"},
        {smollm, "auto_map", "{}", "auto_map is not supported"},
        {smollm, "rope_interleaved", "true", "rope_interleaved is true; only false"},
        {smollm, "is_encoder_decoder", "true", "is_encoder_decoder is true"},
        {smollm, "pruned_heads", "{\"0\": [1]}", "pruned_heads"},
        {mistral, "attention_bias", "true", "attention_bias is not supported"},
        {qwen2, "mlp_bias", "true", "mlp_bias is not supported"},
        {qwen3_moe, "head_dim", NULL, "head_dim is missing"},
        {mixtral, "num_experts", "7", "num_local_experts is 8; it differs from num_experts"},
        {smollm, "quantization", "{\"bits\": 4}", "quantization is not supported"},
        {mixtral, "num_local_experts", "129", "129 experts; at most 128 are supported"},
        {mixtral, "num_local_experts", "0", "0 experts, and the family mixtral has some"},
        {mixtral, "num_experts_per_tok", "9", "num_experts_per_tok is 9; there are 8 experts"},
        {mixtral, "num_experts_per_tok", "0", "num_experts_per_tok is 0; there are 8 experts"},
        {mixtral, "router_jitter_noise", "0.1", "router_jitter_noise is 0.1; only 0"},
        {mixtral, "router_aux_loss_coef", "-1", "router_aux_loss_coef is -1"},
        {mixtral, "moe_intermediate_size", "64", "moe_intermediate_size is not supported"},
        {qwen3_moe, "moe_intermediate_size", NULL, "moe_intermediate_size is missing"},
        {qwen3_moe, "mlp_only_layers", "[3]", "mlp_only_layers is [3]; only an empty list"},
        {qwen3_moe, "decoder_sparse_step", "2", "decoder_sparse_step is 2; only 1"},
        {gpt2, "activation_function", "\"relu\"", "activation_function is \"relu\""},
        {gpt2, "scale_attn_by_inverse_layer_idx", "true", "scale_attn_by_inverse_layer_idx"},
        {gpt2, "scale_attn_weights", "false", "scale_attn_weights is false; only true"},
        {gpt2, "add_cross_attention", "true", "add_cross_attention is true"},
        {gpt2, "n_ctx", "512", "n_ctx is 512; it must be n_positions"},
        {gpt2, "n_head", "7", "n_head is 7; it must divide n_embd"},
        {gpt2, "rope_theta", "10000", "rope_theta is not supported"},
        {gpt2, "n_layer", NULL, "n_layer is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i].base, cases[i].key, cases[i].value, cases[i].want);
    ls_architecture a;
    ls_error e;
    assert_ls_fails(read_text("[]", &a, &e), LS_EINVAL, "is not a JSON object", e);
}

/* What does not change the model, and null, is taken as it is. */
static void test_accepted(void **state) {
    (void)state;
    static const char *const keys[][2] = {{"attention_dropout", "0.5"}, {"_name_or_path", "\"x\""},
                                          {"unsloth_version", "\"1\""}, {"num_experts", "null"},
                                          {"temperature", "0.7"},       {"pruned_heads", "{}"},
                                          {"torch_dtype", "\"float8\""}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        good_with(smollm, keys[i][0], keys[i][1]);
    assert_true(good_with(smollm, "num_key_value_heads", "null").kv_heads == 9);
    assert_true(good_with(smollm, "num_key_value_heads", NULL).kv_heads == 9);
    assert_true(good_with(smollm, "head_dim", "32").head_dim == 32);
    ls_architecture a = good_with(smollm, "attention_bias", "true");
    assert_true(a.qkv_bias && a.o_bias && !a.mlp_bias);
    a = good_with(smollm, "mlp_bias", "true");
    assert_true(!a.qkv_bias && a.mlp_bias);
    assert_true(good_with(smollm, "eos_token_id", "null").neos == 0);
    assert_true(good_with(smollm, "bos_token_id", "null").bos == LS_TOKEN_NONE);
    assert_true(good_with(smollm, "pad_token_id", "-1").pad == LS_TOKEN_NONE);
    a = good_with(gpt2, "eos_token_id", NULL);
    assert_true(a.neos == 1 && a.eos[0] == 50256);
    a = good_with(gpt2, "n_inner", "100");
    assert_true(a.ffn == 100);
    assert_false(good_with(gpt2, "tie_word_embeddings", "false").tied);
    a = good_with(gpt2, "eos_token_id", "[-1, 7, -1]"); /* no tokens */
    assert_true(a.neos == 1 && a.eos[0] == 7);
    assert_true(good_with(gpt2, "eos_token_id", "-1").neos == 0);
    char *small = changed(gpt2, "vocab_size", "100"), *ids = changed(small, "eos_token_id", NULL);
    a = good_with(ids, "bos_token_id", NULL); /* transformers' default is beyond it */
    assert_true(a.neos == 0 && a.bos == LS_TOKEN_NONE);
    free(small);
    free(ids);
}

static ls_buf text_of(const ls_architecture *a) {
    ls_json *o = ls_config_json_new(a, "float32");
    ls_buf text = {0};
    ls_json_write(o, 2, &text);
    ls_json_free(o);
    return text;
}

/* By what is written of them: structs have padding. */
static void is_same(const ls_architecture *a, const ls_architecture *b) {
    ls_buf one = text_of(a), other = text_of(b);
    assert_string_equal(one.data, other.data);
    assert_null(ls_architecture_difference(a, b));
    ls_buf_free(&one), ls_buf_free(&other);
}

/* What is written is read as the same, with either of its forms of the rotation alone. */
static void test_written(void **state) {
    (void)state;
    for (size_t i = 0; i < NALL; i++) {
        ls_architecture a = good(all[i]), b;
        if (i == 2) a.rope = (ls_rotation){.type = LS_ROPE_LINEAR, .base = 1e4, .factor = 1.5};
        ls_buf text = text_of(&a);
        b = good(text.data);
        is_same(&a, &b);
        if (a.family == LS_FAMILY_GEMMA3) {
            b = good_with(text.data, "layer_types", NULL);
            is_same(&a, &b);
            b = good_with(text.data, "sliding_window_pattern", NULL);
            is_same(&a, &b);
        }
        if (a.family == LS_FAMILY_SMOLLM3) {
            b = good_with(text.data, "no_rope_layers", NULL);
            is_same(&a, &b);
        }
        if (a.family != LS_FAMILY_GPT2) {
            b = good_with(text.data, "rope_parameters", NULL);
            is_same(&a, &b);
            char *five = changed(text.data, "rope_scaling", NULL);
            b = good_with(five, "rope_theta", NULL);
            is_same(&a, &b);
            free(five);
        }
        ls_buf_free(&text);
    }
}

static void test_generation(void **state) {
    (void)state;
    ls_architecture a = good(smollm), b = a;
    ls_error e = {0};
    char *path = ls_format("%s/generation_config.json", folder);
    assert_ls_ok(ls_generation_json_load(path, &a, &e), e); /* there is none */
    assert_memory_equal(&a, &b, sizeof a);
    static const char text[] = "{\"eos_token_id\": [7, 9], \"temperature\": 0.6}";
    assert_ls_ok(ls_file_replace(path, text, sizeof text - 1, &e), e);
    assert_ls_ok(ls_generation_json_load(path, &a, &e), e);
    assert_true(a.neos == 2 && a.eos[0] == 7 && a.eos[1] == 9);
    ls_json *o = ls_generation_json_new(&a);
    ls_buf out = {0};
    ls_json_write(o, 0, &out);
    ls_json_free(o);
    assert_string_equal(out.data, "{\"bos_token_id\": 1, \"eos_token_id\": [7, 9], "
                                  "\"pad_token_id\": 2, \"do_sample\": true, "
                                  "\"temperature\": 0.6}");
    ls_buf_free(&out);
    static const char *const bad[] = {"[]",
                                      "{\"eos_token_id\": \"x\"}",
                                      "{\"eos_token_id\": 999999}",
                                      "{",
                                      "{\"temperature\": \"hot\"}",
                                      "{\"temperature\": -1}",
                                      "{\"top_p\": 1.5}",
                                      "{\"top_k\": 1e300}",
                                      "{\"do_sample\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ls_ok(ls_file_replace(path, bad[i], strlen(bad[i]), &e), e);
        assert_ls_fails(ls_generation_json_load(path, &b, &e), LS_EINVAL, path, e);
    }
    free(path);
}

static ls_generation generation_of(const char *text) {
    ls_architecture a = good(smollm);
    ls_error e = {0};
    ls_json *o = NULL;
    assert_ls_ok(ls_json_parse(text, strlen(text), "x", &o, &e), e);
    assert_ls_ok(ls_generation_json_read(o, "x", &a, &e), e);
    ls_json_free(o);
    return a.generation;
}

/* How text is drawn, as Qwen's file says it; a model that does not draw. */
static void test_drawing(void **state) {
    (void)state;
    ls_generation g = generation_of("{\"do_sample\": true, \"repetition_penalty\": 1.05, "
                                    "\"temperature\": 0.7, \"top_k\": 20, \"top_p\": 0.8, "
                                    "\"min_p\": null}");
    assert_true(g.temperature == 0.7 && g.top_k == 20 && g.top_p == 0.8 && g.penalty == 1.05);
    assert_true(g.min_p == 0 && !g.greedy);
    assert_true(generation_of("{\"do_sample\": false, \"temperature\": 0.7}").greedy);
    assert_true(generation_of("{\"temperature\": 0}").greedy);
    g = generation_of("{\"top_p\": 0.9}");
    assert_true(!g.greedy && g.temperature == 0 && g.top_p == 0.9);
}

static void test_load(void **state) {
    (void)state;
    ls_architecture a;
    ls_error e;
    char *path = ls_format("%s/config.json", folder);
    assert_ls_fails(ls_config_json_load(path, &a, &e), LS_EIO, path, e);
    assert_ls_ok(ls_file_replace(path, "{", 1, &e), e);
    assert_ls_fails(ls_config_json_load(path, &a, &e), LS_EINVAL, path, e);
    assert_ls_ok(ls_file_replace(path, gpt2, sizeof gpt2 - 1, &e), e);
    assert_ls_ok(ls_config_json_load(path, &a, &e), e);
    assert_int_equal(a.width, 768);
    free(path);
}

/* ---- the architecture itself ---- */

static void test_divisors(void **state) {
    (void)state;
    ls_rotation r = good(llama3).rope;
    for (int64_t i = 0; i < 64; i++) {
        double f = pow(500000, -2.0 * (double)i / 128), length = 2 * acos(-1) / f, want = 8;
        if (length < 2048) want = 1;
        double s = (8192 / length - 1) / 3;
        if (length >= 2048 && length <= 8192) want = 1 / ((1 - s) / 8 + s);
        assert_true(fabs(ls_rope_divisor(&r, 128, i) - want) < 1e-9);
    }
    /* transformers 5.24: frequencies without yarn over those with it */
    const ls_rotation yarns[] = {
        {.base = 1e6, .factor = 4, .low = 1, .high = 32, .original_context = 32768},
        {.base = 1e4, .factor = 8, .low = 0.5, .high = 16, .original_context = 64, .exact = true}};
    static const struct {
        int rotation, head_dim, i;
        double want;
    } recorded[] = {{0, 128, 20, 1},        {0, 128, 24, 1.046154}, {0, 128, 28, 1.283019},
                    {0, 128, 32, 1.658537}, {0, 128, 36, 2.344827}, {0, 128, 40, 4},
                    {0, 128, 63, 4},        {1, 16, 0, 1},          {1, 16, 1, 1.501991},
                    {1, 16, 2, 3.015990},   {1, 16, 3, 8}};
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        r = yarns[recorded[i].rotation];
        r.type = LS_ROPE_YARN;
        double got = ls_rope_divisor(&r, recorded[i].head_dim, recorded[i].i);
        assert_true(fabs(got - recorded[i].want) < 2e-6);
    }
    r = good(llama3).rope;
    r.type = LS_ROPE_LINEAR;
    assert_true(ls_rope_divisor(&r, 128, 63) == 8);
    r.type = LS_ROPE_DEFAULT;
    assert_true(ls_rope_divisor(&r, 128, 63) == 1);
}

static void test_shortest(void **state) {
    (void)state;
    static const double numbers[] = {1e-5, 1e-6, 500000, 0.1, 1.5, 0, 1, 123456.7, 1e-5};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(ls_shortest_f32((float)numbers[i]) == numbers[i]);
    float x = nextafterf(1, 2);
    assert_true((float)ls_shortest_f32(x) == x);
}

static void test_difference(void **state) {
    (void)state;
    ls_architecture a = good(mistral), b = a;
    a.window = b.window = 0;
    b.family = LS_FAMILY_LLAMA;
    b.bos = 5;
    b.norm_eps = (double)(float)1e-5;
    assert_null(ls_architecture_difference(&a, &b));
    b.layers = 7;
    char *text = ls_architecture_difference(&a, &b);
    assert_string_equal(text, "layers: 32, not 7");
    free(text);
    b = a;
    b.rope.base = 5e5;
    text = ls_architecture_difference(&a, &b);
    assert_non_null(strstr(text, "base of the rotation: 10000, not 500000"));
    free(text);
    b = good(qwen2);
    text = ls_architecture_difference(&a, &b);
    assert_non_null(strstr(text, "the family is mistral, not qwen2"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),   cmocka_unit_test(test_rope),
        cmocka_unit_test(test_left_out),   cmocka_unit_test(test_rope_refused),
        cmocka_unit_test(test_windows),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_gemma3),     cmocka_unit_test(test_smollm3),
        cmocka_unit_test(test_phi3),       cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_written),    cmocka_unit_test(test_generation),
        cmocka_unit_test(test_drawing),    cmocka_unit_test(test_load),
        cmocka_unit_test(test_divisors),   cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_difference),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
