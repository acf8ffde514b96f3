/* config_json_test.c - config.json of each family, in the forms of transformers 4 and 5; what is
 * not supported is refused by the name of its key. */
#include "weights/config_json.h"

#include "folder.h"
#include "weights/published_config.h"
#include "weights/tensor_names.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families), cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_windows),  cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_smollm3),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_load),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
