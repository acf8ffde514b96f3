/* config_json_write.c - writes config.json and generation_config.json; see config_json.h. */
#include "weights/config_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_rope_numbers(ls_json *o, const ls_rotation *r) {
    ls_json_set_text(o, "rope_type", ls_rope_type_name(r->type));
    if (r->type == LS_ROPE_DEFAULT) return;
    ls_json_set_number(o, "factor", r->factor);
    if (r->type == LS_ROPE_LINEAR) return;
    bool yarn = r->type == LS_ROPE_YARN;
    ls_json_set_number(o, yarn ? "beta_slow" : "low_freq_factor", r->low);
    ls_json_set_number(o, yarn ? "beta_fast" : "high_freq_factor", r->high);
    if (yarn) ls_json_set_number(o, "attention_factor", r->scale);
    if (yarn && r->exact) ls_json_set_bool(o, "truncate", false);
    ls_json_set_integer(o, "original_max_position_embeddings", r->original_context);
}

static ls_json *new_parameters(const ls_rotation *r) {
    ls_json *o = ls_json_new_object();
    ls_json_set_number(o, "rope_theta", r->base);
    set_rope_numbers(o, r);
    return o;
}

/* Programs that know one form ignore the other. */
static void set_rope(ls_json *o, const ls_rotation *r) {
    ls_json *scaling = ls_json_new_null();
    if (r->type != LS_ROPE_DEFAULT) {
        ls_json_free(scaling);
        scaling = ls_json_new_object();
        set_rope_numbers(scaling, r);
    }
    ls_json_set_number(o, "rope_theta", r->base);
    ls_json_set(o, "rope_scaling", scaling);
}

/* ---- the rotation of Phi-3 ---- */

/* What transformers multiplies the width of a head with, and rounds down. Files have 9 digits. */
static double part_of(const ls_architecture *a) {
    const double width = (double)a->head_dim;
    char text[32];
    if (!a->turned) return 1;
    snprintf(text, sizeof text, "%.9g", (double)a->turned / width);
    double part = strtod(text, NULL);
    return (int64_t)(width * part) == a->turned ? part : part + 1e-8;
}

static void set_divisors(ls_json *o, const ls_architecture *a) {
    static const char *const keys[] = {
        [LS_ROPE_SHORT] = "short_factor", [LS_ROPE_LONG] = "long_factor"};
    for (int k = 0; k < LS_NROPE_LISTS; k++) {
        ls_json *list = ls_json_new_array();
        for (int64_t i = 0; i < ls_architecture_pairs(a); i++)
            ls_json_push(list, ls_json_new_number(ls_shortest_f32(a->divisors[k][i])));
        ls_json_set(o, keys[k], list);
    }
}

/* The lists, and the numbers that are others than those which follow from the contexts: older
 * programs take no more than three keys in rope_scaling. */
static void set_longrope(ls_json *o, const ls_architecture *a) {
    const ls_rotation *r = &a->rope;
    double usual = (double)a->context / (double)r->original_context;
    set_divisors(o, a);
    if ((float)r->factor != (float)usual) ls_json_set_number(o, "factor", r->factor);
    if ((float)r->scale != (float)ls_longrope_scale(r))
        ls_json_set_number(o, "attention_factor", r->scale);
}

static void set_phi_rope(ls_json *o, const ls_architecture *a) {
    const ls_rotation *r = &a->rope;
    ls_json *parameters = ls_json_new_object(), *scaling = ls_json_new_null();
    int64_t original = r->original_context ? r->original_context : a->context;
    ls_json_set_number(parameters, "rope_theta", r->base);
    ls_json_set_text(parameters, "rope_type", ls_rope_type_name(r->type));
    ls_json_set_number(parameters, "partial_rotary_factor", part_of(a));
    if (r->type == LS_ROPE_LONGROPE) {
        ls_json_free(scaling);
        scaling = ls_json_new_object();
        ls_json_set_text(scaling, "type", ls_rope_type_name(r->type));
        set_longrope(scaling, a);
        set_longrope(parameters, a);
        ls_json_set_integer(parameters, "original_max_position_embeddings", original);
    }
    ls_json_set_number(o, "rope_theta", r->base);
    ls_json_set_number(o, "partial_rotary_factor", part_of(a));
    ls_json_set_integer(o, "original_max_position_embeddings", original);
    ls_json_set(o, "rope_scaling", scaling);
    ls_json_set(o, "rope_parameters", parameters);
}

static void set_id(ls_json *o, const char *key, int64_t id) {
    ls_json_set(o, key, id == LS_TOKEN_NONE ? ls_json_new_null() : ls_json_new_integer(id));
}

static void set_tokens(ls_json *o, const ls_token_ids *t) {
    set_id(o, "bos_token_id", t->bos);
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < t->neos; i++) ls_json_push(list, ls_json_new_integer(t->eos[i]));
    if (t->neos > 1) {
        ls_json_set(o, "eos_token_id", list);
    } else {
        ls_json_free(list);
        set_id(o, "eos_token_id", t->neos ? t->eos[0] : LS_TOKEN_NONE);
    }
    set_id(o, "pad_token_id", t->pad);
}

static void set_experts(ls_json *o, const ls_architecture *a) {
    bool qwen = a->family == LS_FAMILY_QWEN3_MOE;
    ls_json_set_integer(o, qwen ? "num_experts" : "num_local_experts", a->experts);
    ls_json_set_integer(o, "num_experts_per_tok", a->experts_per_token);
    ls_json_set_number(o, "router_aux_loss_coef", a->router_aux_loss);
    ls_json_set_bool(o, "output_router_logits", a->adds_aux_loss);
    if (!qwen) return;
    ls_json_set_integer(o, "moe_intermediate_size", a->ffn);
    ls_json_set_bool(o, "norm_topk_prob", a->norm_topk);
    ls_json_set_integer(o, "decoder_sparse_step", 1);
    ls_json_set(o, "mlp_only_layers", ls_json_new_array());
}

/* Where no layer has the window, any number stands for it. */
static void set_gemma(ls_json *o, const ls_architecture *a) {
    ls_json *types = ls_json_new_array(), *both = ls_json_new_object();
    const ls_rotation local = {.type = LS_ROPE_DEFAULT,
                               .base = a->full_every ? a->local_base
                                       : a->window   ? a->rope.base
                                                     : 10000};
    for (int64_t i = 0; i < a->layers; i++)
        ls_json_push(types, ls_json_new_text(ls_architecture_is_local(a, i) ? "sliding_attention"
                                                                            : "full_attention"));
    ls_json_set(both, "full_attention", new_parameters(&a->rope));
    ls_json_set(both, "sliding_attention", new_parameters(&local));
    ls_json_set_text(o, "hidden_activation", "gelu_pytorch_tanh");
    ls_json_set_integer(o, "query_pre_attn_scalar",
                        a->query_scalar ? a->query_scalar : a->head_dim);
    ls_json_set_integer(o, "sliding_window", a->window ? a->window : a->context);
    ls_json_set_integer(o, "sliding_window_pattern", ls_architecture_every(a));
    ls_json_set(o, "layer_types", types);
    ls_json_set_number(o, "rope_local_base_freq", local.base);
    ls_json_set(o, "rope_parameters", both);
    ls_json_set(o, "attn_logit_softcapping", ls_json_new_null());
    ls_json_set(o, "final_logit_softcapping", ls_json_new_null());
}

/* Programs that know one key of the two may not know the other. */
static void set_smollm(ls_json *o, const ls_architecture *a) {
    ls_json *turns = ls_json_new_array(), *types = ls_json_new_array();
    for (int64_t i = 0; i < a->layers; i++) {
        bool none = ls_architecture_rope(a, i).type == LS_ROPE_NONE;
        ls_json_push(turns, ls_json_new_integer(!none));
        ls_json_push(types, ls_json_new_text(a->window ? "sliding_attention" : "full_attention"));
    }
    ls_json_set(o, "no_rope_layers", turns);
    ls_json_set_integer(o, "no_rope_layer_interval",
                        a->no_rope_every ? a->no_rope_every : a->layers + 1);
    ls_json_set(o, "layer_types", types);
}

static void set_llama(ls_json *o, const ls_architecture *a) {
    bool smollm = a->family == LS_FAMILY_SMOLLM3, llama = a->family == LS_FAMILY_LLAMA || smollm;
    if (!a->gemma) ls_json_set_text(o, "hidden_act", "silu");
    ls_json_set_integer(o, "hidden_size", a->width);
    ls_json_set_integer(o, "intermediate_size", a->ffn);
    ls_json_set_integer(o, "num_hidden_layers", a->layers);
    ls_json_set_integer(o, "num_attention_heads", a->heads);
    ls_json_set_integer(o, "num_key_value_heads", a->kv_heads);
    ls_json_set_integer(o, "head_dim", a->head_dim);
    ls_json_set_integer(o, "max_position_embeddings", a->context);
    ls_json_set_number(o, "rms_norm_eps", a->norm_eps);
    if (llama || a->qk_norm) ls_json_set_bool(o, "attention_bias", a->qkv_bias);
    if (llama) ls_json_set_bool(o, "mlp_bias", a->mlp_bias);
    if (a->experts) set_experts(o, a);
    if (a->family == LS_FAMILY_PHI3) {
        set_phi_rope(o, a);
        ls_json_set(o, "sliding_window",
                    a->window ? ls_json_new_integer(a->window) : ls_json_new_null());
        return;
    }
    set_rope(o, &a->rope);
    if (a->gemma) {
        set_gemma(o, a);
        return;
    }
    ls_json_set(o, "rope_parameters", new_parameters(&a->rope));
    if (a->family == LS_FAMILY_LLAMA) return;
    ls_json_set(o, "sliding_window",
                a->window ? ls_json_new_integer(a->window) : ls_json_new_null());
    if (a->family == LS_FAMILY_MISTRAL || a->family == LS_FAMILY_MIXTRAL) return;
    ls_json_set_bool(o, "use_sliding_window", a->window != 0);
    if (smollm) {
        set_smollm(o, a);
        return;
    }
    ls_json_set_integer(o, "max_window_layers", a->window ? 0 : a->layers);
}

static void set_gpt2(ls_json *o, const ls_architecture *a) {
    ls_json_set_text(o, "activation_function", "gelu_new");
    ls_json_set_integer(o, "n_embd", a->width);
    ls_json_set_integer(o, "n_inner", a->ffn);
    ls_json_set_integer(o, "n_layer", a->layers);
    ls_json_set_integer(o, "n_head", a->heads);
    ls_json_set_integer(o, "n_positions", a->context);
    ls_json_set_integer(o, "n_ctx", a->context);
    ls_json_set_number(o, "layer_norm_epsilon", a->norm_eps);
}

ls_json *ls_config_json_new(const ls_architecture *a, const char *dtype) {
    ls_json *o = ls_json_new_object(), *classes = ls_json_new_array();
    ls_json_push(classes, ls_json_new_text(ls_family_class(a->family)));
    ls_json_set(o, "architectures", classes);
    ls_json_set_text(o, "model_type", ls_family_name(a->family));
    ls_json_set_text(o, "torch_dtype", dtype);
    ls_json_set_integer(o, "vocab_size", a->vocab);
    if (a->family == LS_FAMILY_GPT2)
        set_gpt2(o, a);
    else
        set_llama(o, a);
    ls_json_set_bool(o, "tie_word_embeddings", a->tied);
    const ls_token_ids ids = ls_architecture_config_ids(a);
    set_tokens(o, &ids);
    return o;
}

static void set_if(ls_json *o, const char *key, double value) {
    if (value > 0) ls_json_set_number(o, key, value);
}

ls_json *ls_generation_json_new(const ls_architecture *a) {
    const ls_generation *g = &a->generation;
    ls_json *o = ls_json_new_object();
    bool draws = g->temperature > 0 || g->top_p > 0 || g->min_p > 0 || g->top_k > 0;
    ls_token_ids ids = {.bos = a->bos, .pad = a->pad, .neos = a->neos};
    memcpy(ids.eos, a->eos, sizeof ids.eos);
    set_tokens(o, &ids);
    if (g->greedy || draws) ls_json_set_bool(o, "do_sample", !g->greedy);
    set_if(o, "temperature", g->temperature);
    if (g->top_k > 0) ls_json_set_integer(o, "top_k", g->top_k);
    set_if(o, "top_p", g->top_p);
    set_if(o, "min_p", g->min_p);
    set_if(o, "repetition_penalty", g->penalty);
    return o;
}
