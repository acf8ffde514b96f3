/* gguf_model.c - see gguf_model.h. */
#include "weights/gguf_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { MOST_SEEN = 40, KEY = 128 };

/* The parameters of the llama3 rotation; all published models have these. */
static const ls_rotation llama3 = {
    .type = LS_ROPE_LLAMA3, .low = 1, .high = 4, .original_context = 8192};

/* There are no keys for these numbers of yarn in the families that are supported. */
static const double yarn_slow = 1, yarn_fast = 32;

typedef struct reader {
    const ls_gguf *g;
    const char *prefix; /* "llama" */
    ls_error *e;
    const ls_gguf_value *seen[MOST_SEEN];
    int nseen;
} reader;

/* ---- one key ---- */

/* The value of PREFIX.name; NULL: it is missing. */
static const ls_gguf_value *take(reader *r, const char *name) {
    char key[KEY];
    snprintf(key, sizeof key, "%s.%s", r->prefix, name);
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    if (v && r->nseen < MOST_SEEN) r->seen[r->nseen++] = v;
    return v;
}

static ls_status fail_missing(const reader *r, const char *name) {
    return ls_fail(r->e, LS_EINVAL, "%s: %s.%s is missing", r->g->path, r->prefix, name);
}

static ls_status fail_kind(const reader *r, const ls_gguf_value *v, const char *want) {
    return ls_fail(r->e, LS_EINVAL, "%s: %s is %s%s; it must be %s", r->g->path, v->key,
                   v->is_array ? "an array of " : "", ls_gguf_kind_name(v->kind), want);
}

static ls_status take_size_if(reader *r, const char *name, int64_t *value_p) {
    const ls_gguf_value *v = take(r, name);
    if (!v || (!v->is_array && ls_gguf_integer(v, 0, value_p))) return LS_OK;
    return fail_kind(r, v, "one integer");
}

static ls_status take_size(reader *r, const char *name, int64_t *value_p) {
    const ls_gguf_value *v = take(r, name);
    if (!v) return fail_missing(r, name);
    return !v->is_array && ls_gguf_integer(v, 0, value_p) ? LS_OK : fail_kind(r, v, "one integer");
}

/* f32 as the decimal number that was meant. */
static ls_status take_number_if(reader *r, const char *name, double *value_p) {
    const ls_gguf_value *v = take(r, name);
    if (!v) return LS_OK;
    if (v->is_array || !ls_gguf_number(v, 0, value_p)) return fail_kind(r, v, "one number");
    if (v->kind == LS_GGUF_F32) *value_p = ls_shortest_f32((float)*value_p);
    return LS_OK;
}

static ls_status expect_size(reader *r, const char *name, int64_t want, const char *why) {
    int64_t got = want;
    LS_TRY(take_size_if(r, name, &got));
    if (got == want) return LS_OK;
    return ls_fail(r->e, LS_EINVAL, "%s: %s.%s is %lld; only %lld is supported: %s", r->g->path,
                   r->prefix, name, (long long)got, (long long)want, why);
}

static ls_status expect_number(reader *r, const char *name, double want) {
    double got = want;
    LS_TRY(take_number_if(r, name, &got));
    if (got == want) return LS_OK;
    return ls_fail(r->e, LS_EINVAL, "%s: %s.%s is %g; only %g is supported: llama.cpp has no other",
                   r->g->path, r->prefix, name, got, want);
}

/* ---- what kind of file ---- */

static ls_status expect_whole(const reader *r) {
    const ls_gguf_value *type = ls_gguf_find(r->g, "general.type");
    const ls_gguf_value *parts = ls_gguf_find(r->g, "split.count");
    int64_t n = 1;
    if (type && ls_gguf_is_text(type, "adapter"))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: is an adapter, without the model: `lockstep serve MODEL --adapter "
                       "NAME=%s` uses it, and model.adapter trains it further",
                       r->g->path, r->g->path);
    if (type && !ls_gguf_is_text(type, "model"))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: general.type is not 'model': it is a vocabulary or another part of one",
                       r->g->path);
    if (parts && (!ls_gguf_integer(parts, 0, &n) || n > 1))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: split.count is %lld: join the parts with llama-gguf-split --merge",
                       r->g->path, (long long)n);
    return LS_OK;
}

const char *ls_gguf_family_name(ls_family f) {
    switch (f) {
    case LS_FAMILY_MISTRAL:
    case LS_FAMILY_MIXTRAL: return ls_family_name(LS_FAMILY_LLAMA);
    case LS_FAMILY_QWEN3_MOE: return "qwen3moe";
    case LS_FAMILY_GEMMA3: return "gemma3";
    default: return ls_family_name(f);
    }
}

static ls_status read_family(reader *r, ls_architecture *a) {
    const ls_gguf_value *v = ls_gguf_find(r->g, "general.architecture");
    if (!v) return ls_fail(r->e, LS_EINVAL, "%s: general.architecture is missing", r->g->path);
    for (int f = 0; f < LS_NFAMILIES; f++)
        if (ls_gguf_is_text(v, ls_gguf_family_name((ls_family)f))) {
            a->family = (ls_family)f; /* the first of a name */
            r->prefix = ls_gguf_family_name(a->family);
            return expect_whole(r);
        }
    ls_gguf_text name = {"?", 1};
    ls_gguf_text_at(v, 0, &name);
    return ls_fail(
        r->e, LS_EINVAL,
        "%s: general.architecture is '%.*s'; llama, qwen2, qwen3, qwen3moe, gemma3, smollm3, "
        "phi3 and gpt2 are supported",
        r->g->path, (int)(name.n < 40 ? name.n : 40), name.data);
}

static ls_status refuse_unknown(const reader *r) {
    size_t n = strlen(r->prefix);
    for (size_t i = 0; i < r->g->nvalues; i++) {
        const ls_gguf_value *v = &r->g->values[i];
        if (strncmp(v->key, r->prefix, n) != 0 || v->key[n] != '.') continue;
        bool seen = false;
        for (int k = 0; k < r->nseen; k++) seen |= r->seen[k] == v;
        if (!seen)
            return ls_fail(r->e, LS_EINVAL, "%s: %s is not supported: it may change the model",
                           r->g->path, v->key);
    }
    return LS_OK;
}

static bool has_tensor(const reader *r, const char *name) {
    return ls_gguf_find_tensor(r->g, name) != NULL;
}

/* ---- rotation ---- */

/* rope_freqs.weight: all 1, or those of llama3 with the largest as the factor. */
static ls_status read_divisors(const reader *r, ls_architecture *a) {
    const ls_gguf_tensor *t = ls_gguf_find_tensor(r->g, LS_GGUF_DIVISORS);
    if (!t) return LS_OK;
    int64_t n = a->head_dim / 2;
    if (t->type != 0 || t->count != n)
        return ls_fail(r->e, LS_EINVAL, "%s: tensor '" LS_GGUF_DIVISORS "' must be F32 [%lld]",
                       r->g->path, (long long)n);
    float most = 1;
    for (int64_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, t->data + i * (int64_t)sizeof x, sizeof x);
        most = x > most ? x : most;
    }
    ls_rotation rope = llama3;
    rope.base = a->rope.base;
    rope.factor = ls_shortest_f32(most);
    bool same = isfinite(most);
    for (int64_t i = 0; same && i < n; i++) {
        float x;
        memcpy(&x, t->data + i * (int64_t)sizeof x, sizeof x);
        double want = ls_rope_divisor(&rope, a->head_dim, i);
        same = fabs((double)x - want) <= 1e-4 * want;
    }
    if (!same || (most > 1 && a->rope.type != LS_ROPE_DEFAULT))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: tensor '" LS_GGUF_DIVISORS "' does not have the divisors of rope_type "
                       "llama3 with low_freq_factor 1, high_freq_factor 4 and 8192 positions; no "
                       "others are supported",
                       r->g->path);
    if (most > 1) a->rope = rope;
    return LS_OK;
}

/* llama.cpp multiplies attn_factor with 0.1 ln(factor) + 1. */
static ls_status read_yarn(reader *r, ls_architecture *a) {
    double own = 1;
    a->rope.type = LS_ROPE_YARN;
    a->rope.low = yarn_slow;
    a->rope.high = yarn_fast;
    a->rope.original_context = a->context;
    LS_TRY(take_size_if(r, "rope.scaling.original_context_length", &a->rope.original_context));
    LS_TRY(take_number_if(r, "rope.scaling.attn_factor", &own));
    LS_TRY(expect_number(r, "rope.scaling.yarn_beta_slow", yarn_slow));
    LS_TRY(expect_number(r, "rope.scaling.yarn_beta_fast", yarn_fast));
    LS_TRY(expect_number(r, "rope.scaling.yarn_ext_factor", 1));
    a->rope.scale = own * ls_rope_scale(a->rope.factor);
    return LS_OK;
}

bool ls_gguf_is_rotation(const char *name) {
    return strcmp(name, LS_GGUF_DIVISORS) == 0 || strcmp(name, LS_GGUF_SHORT) == 0 ||
           strcmp(name, LS_GGUF_LONG) == 0;
}

static ls_status read_list(const reader *r, const char *name, int64_t n, float *out) {
    const ls_gguf_tensor *t = ls_gguf_find_tensor(r->g, name);
    if (!t || t->type != 0 || t->count != n || n > LS_ROPE_PAIRS)
        return ls_fail(r->e, LS_EINVAL, "%s: tensor '%s' must be F32 [%lld] (at most %d)",
                       r->g->path, name, (long long)n, LS_ROPE_PAIRS);
    memcpy(out, t->data, (size_t)n * sizeof *out);
    return LS_OK;
}

/* Phi-3: longrope where the file has its two lists, else the default rotation. */
static ls_status read_phi_rope(reader *r, ls_architecture *a) {
    ls_rotation *rope = &a->rope;
    int64_t turned = a->head_dim, original = a->context;
    bool lists = has_tensor(r, LS_GGUF_SHORT) || has_tensor(r, LS_GGUF_LONG);
    *rope = (ls_rotation){.type = LS_ROPE_DEFAULT, .base = 10000, .scale = 1};
    LS_TRY(take_number_if(r, "rope.freq_base", &rope->base));
    LS_TRY(take_size_if(r, "rope.dimension_count", &turned));
    LS_TRY(take_size_if(r, "rope.scaling.original_context_length", &original));
    LS_TRY(take_number_if(r, "rope.scaling.attn_factor", &rope->scale));
    if (turned < 2 || turned > a->head_dim)
        return ls_fail(r->e, LS_EINVAL, "%s: phi3.rope.dimension_count is %lld, of heads of %lld",
                       r->g->path, (long long)turned, (long long)a->head_dim);
    if (original < 1)
        return ls_fail(r->e, LS_EINVAL,
                       "%s: phi3.rope.scaling.original_context_length is %lld; it must be above 0",
                       r->g->path, (long long)original);
    if (has_tensor(r, LS_GGUF_DIVISORS))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: tensor '" LS_GGUF_DIVISORS
                       "' is not supported in a model of the family phi3",
                       r->g->path);
    a->turned = turned == a->head_dim ? 0 : turned;
    if (!lists && rope->scale != 1)
        return ls_fail(r->e, LS_EINVAL,
                       "%s: phi3.rope.scaling.attn_factor is %g, but there is no tensor "
                       "'" LS_GGUF_SHORT "'",
                       r->g->path, rope->scale);
    rope->scale = lists ? rope->scale : 0;
    if (!lists) return LS_OK;
    rope->type = LS_ROPE_LONGROPE;
    rope->original_context = original;
    rope->factor = (double)a->context / (double)original;
    if ((float)rope->scale == (float)ls_longrope_scale(rope)) /* f32 in the file */
        rope->scale = ls_longrope_scale(rope);
    LS_TRY(read_list(r, LS_GGUF_SHORT, ls_architecture_pairs(a), a->divisors[LS_ROPE_SHORT]));
    return read_list(r, LS_GGUF_LONG, ls_architecture_pairs(a), a->divisors[LS_ROPE_LONG]);
}

/* llama.cpp reads the window of a file, and computes without one; transformers computes it. */
static ls_status read_phi(reader *r, ls_architecture *a) {
    LS_TRY(take_size_if(r, "attention.sliding_window", &a->window));
    if (!take(r, "attention.sliding_window"))
        ls_log("%s: has no phi3.attention.sliding_window: computing without a window", r->g->path);
    return read_phi_rope(r, a);
}

static ls_status read_rope(reader *r, ls_architecture *a) {
    double factor = 0, old = 0;
    a->rope = (ls_rotation){.type = LS_ROPE_DEFAULT, .base = 10000}; /* llama.cpp's default */
    LS_TRY(take_number_if(r, "rope.freq_base", &a->rope.base));
    LS_TRY(take_number_if(r, "rope.scaling.factor", &factor));
    LS_TRY(take_number_if(r, "rope.scale_linear", &old));
    LS_TRY(expect_size(r, "rope.dimension_count", a->head_dim, "whole heads are rotated"));
    take(r, "rope.scaling.finetuned");               /* a note */
    take(r, "rope.scaling.original_context_length"); /* of yarn */
    const ls_gguf_value *type = take(r, "rope.scaling.type");
    bool none = type && ls_gguf_is_text(type, "none");
    bool yarn = type && ls_gguf_is_text(type, "yarn");
    if (type && !none && !yarn && !ls_gguf_is_text(type, "linear")) {
        ls_gguf_text name = {"?", 1};
        ls_gguf_text_at(type, 0, &name);
        return ls_fail(r->e, LS_EINVAL, "%s: %s is '%.*s'; none, linear and yarn are supported",
                       r->g->path, type->key, (int)(name.n < 40 ? name.n : 40), name.data);
    }
    if (factor == 0) factor = old;
    a->rope.factor = factor;
    if (yarn) {
        LS_TRY(read_yarn(r, a));
    } else if (!none && factor != 0 && factor != 1) {
        a->rope.type = LS_ROPE_LINEAR;
    } else {
        a->rope.factor = 0;
    }
    return read_divisors(r, a);
}

/* ---- the whole ---- */

static ls_status read_token(const reader *r, const char *key, int64_t *id_p) {
    const ls_gguf_value *v = ls_gguf_find(r->g, key);
    *id_p = LS_TOKEN_NONE;
    if (!v || (!v->is_array && ls_gguf_integer(v, 0, id_p))) return LS_OK;
    return fail_kind(r, v, "one integer");
}

/* Each of these ends an answer: of a text, of a turn, of a message to a tool. */
static const char *const ends[LS_GGUF_ENDS] = {
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

static void add_end(ls_architecture *a, int64_t id) {
    for (int i = 0; i < a->neos; i++)
        if (a->eos[i] == id) return;
    a->eos[a->neos++] = id;
}

static ls_status read_tokens(const reader *r, ls_architecture *a) {
    LS_TRY(read_token(r, "tokenizer.ggml.bos_token_id", &a->bos));
    LS_TRY(read_token(r, "tokenizer.ggml.padding_token_id", &a->pad));
    for (int i = 0; i < LS_GGUF_ENDS; i++) {
        int64_t id = LS_TOKEN_NONE;
        LS_TRY(read_token(r, ends[i], &id));
        if (id != LS_TOKEN_NONE) add_end(a, id);
    }
    return LS_OK;
}

/* How text is drawn: what llama.cpp calls the recommended sampling parameters. */
enum { TEMPERATURE, TOP_P, MIN_P, PENALTY, TOP_K, NSETTINGS };
static const char *const settings[] = {
    [TEMPERATURE] = "general.sampling.temp", [TOP_P] = "general.sampling.top_p",
    [MIN_P] = "general.sampling.min_p",      [PENALTY] = "general.sampling.penalty_repeat",
    [TOP_K] = "general.sampling.top_k",
};

static ls_status read_generation(const reader *r, ls_generation *g) {
    double values[NSETTINGS] = {0};
    for (int i = 0; i < NSETTINGS; i++) {
        const ls_gguf_value *v = ls_gguf_find(r->g, settings[i]);
        double most = i == TOP_P || i == MIN_P ? 1 : i == TOP_K ? INT32_MAX : 1000;
        if (!v) continue;
        if (v->is_array || !ls_gguf_number(v, 0, &values[i])) return fail_kind(r, v, "one number");
        if (v->kind == LS_GGUF_F32) values[i] = ls_shortest_f32((float)values[i]);
        if (!(values[i] >= 0 && values[i] <= most))
            return ls_fail(r->e, LS_EINVAL, "%s: %s is %g; it must be from 0 to %g", r->g->path,
                           settings[i], values[i], most);
        if (i == TEMPERATURE) g->greedy = values[i] == 0;
    }
    g->temperature = values[TEMPERATURE];
    g->top_p = values[TOP_P];
    g->min_p = values[MIN_P];
    g->penalty = values[PENALTY];
    g->top_k = (int64_t)values[TOP_K];
    return LS_OK;
}

static ls_status read_vocab(reader *r, ls_architecture *a) {
    const ls_gguf_tensor *t = ls_gguf_find_tensor(r->g, "token_embd.weight");
    if (!t || t->ndims != 2)
        return ls_fail(r->e, LS_EINVAL, "%s: has no tensor 'token_embd.weight' of two dimensions",
                       r->g->path);
    a->vocab = t->dims[1];
    return expect_size(r, "vocab_size", a->vocab, "token_embd.weight has as many rows");
}

static ls_status read_sizes(reader *r, ls_architecture *a) {
    bool gpt2 = a->family == LS_FAMILY_GPT2;
    const char *eps = gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    LS_TRY(take_size(r, "block_count", &a->layers));
    LS_TRY(take_size(r, "context_length", &a->context));
    LS_TRY(take_size(r, "embedding_length", &a->width));
    LS_TRY(take_size(r, "feed_forward_length", &a->ffn));
    LS_TRY(take_size(r, "attention.head_count", &a->heads));
    a->kv_heads = a->heads;
    LS_TRY(take_size_if(r, "attention.head_count_kv", &a->kv_heads));
    if (a->heads < 1 || a->width % a->heads) {
        if (!take(r, "attention.key_length"))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: %s.attention.head_count %lld does not divide embedding_length %lld",
                           r->g->path, r->prefix, (long long)a->heads, (long long)a->width);
    } else {
        a->head_dim = a->width / a->heads;
    }
    LS_TRY(take_size_if(r, "attention.key_length", &a->head_dim));
    LS_TRY(expect_size(r, "attention.value_length", a->head_dim, "it must be key_length"));
    if (!take(r, eps)) return fail_missing(r, eps);
    return take_number_if(r, eps, &a->norm_eps);
}

/* Gemma 3. Without a window, llama.cpp computes soft-capped logits. How it divides scores is not in
 * the file: by the root of head_dim, but in the model of 62 layers. */
enum { FULL_EVERY = 6, LAYERS_27B = 62 };
static const double local_base = 10000;

static int64_t query_scalar_of(const ls_architecture *a) {
    int64_t scalar = a->layers == LAYERS_27B ? a->width / a->heads : a->head_dim;
    return scalar == a->head_dim ? 0 : scalar;
}

static ls_status read_gemma(reader *r, ls_architecture *a) {
    double local = local_base;
    int64_t every = FULL_EVERY;
    a->gemma = true;
    a->query_scalar = query_scalar_of(a);
    LS_TRY(take_size(r, "attention.sliding_window", &a->window));
    LS_TRY(take_size_if(r, "attention.sliding_window_pattern", &every));
    LS_TRY(take_number_if(r, "rope.freq_base_swa", &local));
    if (every < 1 || a->window < 1)
        return ls_fail(r->e, LS_EINVAL,
                       "%s: gemma3.attention.sliding_window is %lld, and sliding_window_pattern "
                       "%lld; they must be above 0",
                       r->g->path, (long long)a->window, (long long)every);
    ls_architecture_set_windows(a, every, local);
    return LS_OK;
}

/* SmolLM3: llama.cpp always computes each fourth layer without a rotation, and knows no divisors of
 * frequencies here. */
static int64_t no_rope_every_of(const ls_architecture *a) { return a->layers < 4 ? 0 : 4; }

static ls_status read_smollm(const reader *r, ls_architecture *a) {
    a->no_rope_every = no_rope_every_of(a);
    if (!has_tensor(r, LS_GGUF_DIVISORS)) return LS_OK;
    return ls_fail(r->e, LS_EINVAL,
                   "%s: tensor '" LS_GGUF_DIVISORS
                   "' is not supported in a model of the family smollm3",
                   r->g->path);
}

static ls_status refuse_kinds(reader *r) {
    const ls_gguf_value *layout = take(r, "tensor_data_layout");
    const ls_gguf_value *causal = take(r, "attention.causal");
    bool yes = true;
    if (layout && !ls_gguf_is_text(layout, "Meta AI original pth"))
        return ls_fail(r->e, LS_EINVAL, "%s: %s is not supported", r->g->path, layout->key);
    if (causal && (!ls_gguf_bool(causal, 0, &yes) || !yes))
        return ls_fail(r->e, LS_EINVAL, "%s: %s is not true", r->g->path, causal->key);
    if (strcmp(r->prefix, ls_gguf_family_name(LS_FAMILY_GEMMA3)) == 0 ||
        strcmp(r->prefix, ls_gguf_family_name(LS_FAMILY_PHI3)) == 0)
        return LS_OK;
    return expect_size(r, "attention.sliding_window", 0, "llama.cpp has no window here");
}

/* The family llama with experts is Mixtral. The factor of the auxiliary loss is that of configs
 * without one. */
static ls_status read_experts(reader *r, ls_architecture *a) {
    LS_TRY(take_size_if(r, "expert_count", &a->experts));
    if (a->family == LS_FAMILY_LLAMA && a->experts) a->family = LS_FAMILY_MIXTRAL;
    if (!ls_family_has_experts(a->family)) {
        LS_TRY(expect_size(r, "expert_count", 0, "this family has no experts"));
        return expect_size(r, "expert_used_count", 0, "this family has no experts");
    }
    LS_TRY(take_size(r, "expert_used_count", &a->experts_per_token));
    if (a->family == LS_FAMILY_QWEN3_MOE)
        LS_TRY(take_size(r, "expert_feed_forward_length", &a->ffn));
    a->norm_topk = true;
    a->router_aux_loss = 0.001;
    return expect_size(r, "expert_gating_func", 1, "a softmax");
}

ls_status ls_gguf_read_architecture(const ls_gguf *g, ls_architecture *a_p, ls_error *e) {
    reader r = {.g = g, .e = e};
    ls_architecture a = {0};
    LS_TRY(read_family(&r, &a));
    LS_TRY(read_sizes(&r, &a));
    LS_TRY(read_experts(&r, &a));
    LS_TRY(refuse_kinds(&r));
    LS_TRY(read_vocab(&r, &a));
    bool gpt2 = a.family == LS_FAMILY_GPT2, gemma = a.family == LS_FAMILY_GEMMA3;
    bool phi = a.family == LS_FAMILY_PHI3;
    if (!gpt2 && !phi) LS_TRY(read_rope(&r, &a));
    if (phi) LS_TRY(read_phi(&r, &a));
    if (gemma) LS_TRY(read_gemma(&r, &a));
    if (a.family == LS_FAMILY_SMOLLM3) LS_TRY(read_smollm(&r, &a));
    a.qkv_bias = gpt2 || has_tensor(&r, "blk.0.attn_q.bias");
    a.o_bias = gpt2 || has_tensor(&r, "blk.0.attn_output.bias");
    a.mlp_bias = gpt2 || has_tensor(&r, "blk.0.ffn_up.bias");
    a.qk_norm = a.family == LS_FAMILY_QWEN3 || a.family == LS_FAMILY_QWEN3_MOE || gemma;
    a.tied = !has_tensor(&r, "output.weight");
    LS_TRY(read_tokens(&r, &a));
    LS_TRY(read_generation(&r, &a.generation));
    LS_TRY(refuse_unknown(&r));
    LS_TRY(ls_architecture_check(&a, g->path, e));
    *a_p = a;
    return LS_OK;
}

/* ---- writing ---- */

static void put_size(ls_gguf_writer *w, const char *prefix, const char *name, int64_t value) {
    char key[KEY];
    snprintf(key, sizeof key, "%s.%s", prefix, name);
    ls_gguf_put_u32(w, key, (uint32_t)value);
}

static void put_number(ls_gguf_writer *w, const char *prefix, const char *name, double value) {
    char key[KEY];
    snprintf(key, sizeof key, "%s.%s", prefix, name);
    ls_gguf_put_f32(w, key, (float)value);
}

/* llama_ftype of llama.h */
static uint32_t file_type(ls_block_type type) {
    static const uint32_t types[LS_NBLOCK_TYPES] = {
        [LS_BLOCK_F32] = 0,   [LS_BLOCK_F16] = 1,     [LS_BLOCK_BF16] = 32,  [LS_BLOCK_Q8_0] = 7,
        [LS_BLOCK_Q4_0] = 2,  [LS_BLOCK_Q4_1] = 3,    [LS_BLOCK_Q5_0] = 8,   [LS_BLOCK_Q5_1] = 9,
        [LS_BLOCK_Q4_K] = 15, [LS_BLOCK_Q5_K] = 17,   [LS_BLOCK_Q6_K] = 18,  [LS_BLOCK_Q3_K] = 12,
        [LS_BLOCK_Q2_K] = 10, [LS_BLOCK_IQ4_NL] = 25, [LS_BLOCK_IQ4_XS] = 30};
    return types[type];
}

static void put_rope(ls_gguf_writer *w, const char *prefix, const ls_architecture *a) {
    char key[KEY];
    put_size(w, prefix, "rope.dimension_count", a->turned ? a->turned : a->head_dim);
    put_number(w, prefix, "rope.freq_base", a->rope.base);
    const ls_rotation *r = &a->rope;
    if (a->family == LS_FAMILY_PHI3)
        put_size(w, prefix, "rope.scaling.original_context_length",
                 r->original_context ? r->original_context : a->context);
    if (r->type == LS_ROPE_LONGROPE) put_number(w, prefix, "rope.scaling.attn_factor", r->scale);
    if (r->type != LS_ROPE_LINEAR && r->type != LS_ROPE_YARN) return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", prefix);
    ls_gguf_put_text(w, key, ls_rope_type_name(r->type));
    put_number(w, prefix, "rope.scaling.factor", r->factor);
    if (r->type == LS_ROPE_LINEAR) return;
    put_size(w, prefix, "rope.scaling.original_context_length", r->original_context);
    if (r->scale != ls_rope_scale(r->factor))
        put_number(w, prefix, "rope.scaling.attn_factor", r->scale / ls_rope_scale(r->factor));
}

static void put_gemma(ls_gguf_writer *w, const char *prefix, const ls_architecture *a) {
    put_size(w, prefix, "attention.sliding_window", a->window ? a->window : a->context);
    put_size(w, prefix, "attention.sliding_window_pattern", ls_architecture_every(a));
    put_number(w, prefix, "rope.freq_base_swa",
               a->full_every ? a->local_base
               : a->window   ? a->rope.base
                             : local_base);
}

static void put_tokens(ls_gguf_writer *w, const ls_architecture *a) {
    if (a->bos >= 0) ls_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)a->bos);
    for (int i = 0; i < a->neos && i < LS_GGUF_ENDS; i++)
        ls_gguf_put_u32(w, ends[i], (uint32_t)a->eos[i]);
    if (a->pad >= 0) ls_gguf_put_u32(w, "tokenizer.ggml.padding_token_id", (uint32_t)a->pad);
}

static void put_generation(ls_gguf_writer *w, const ls_generation *g) {
    const double values[NSETTINGS] = {[TEMPERATURE] = g->greedy ? 0 : g->temperature,
                                      [TOP_P] = g->top_p,
                                      [MIN_P] = g->min_p,
                                      [PENALTY] = g->penalty};
    for (int i = 0; i < TOP_K; i++)
        if (values[i] > 0 || (i == TEMPERATURE && g->greedy))
            ls_gguf_put_f32(w, settings[i], (float)values[i]);
    if (g->top_k > 0) ls_gguf_put_u32(w, settings[TOP_K], (uint32_t)g->top_k);
}

/* GGUF has no key for a window of these families; in a context of its length it changes nothing.
 * llama.cpp's server takes no more positions than the context. */
static int64_t context_of(const ls_architecture *a) {
    bool phi = a->family == LS_FAMILY_PHI3;
    bool fits = a->gemma || !a->window || a->window >= a->context;
    if (phi && !fits)
        ls_log("llama.cpp computes this family without the window of %lld positions: its texts "
               "that are longer differ",
               (long long)a->window);
    if (fits || phi) return ls_architecture_positions(a);
    ls_log(
        "GGUF has no key for the window of %lld positions: the context is written as %lld instead "
        "of %lld",
        (long long)a->window, (long long)a->window, (long long)a->context);
    return a->window;
}

void ls_gguf_put_architecture(ls_gguf_writer *w, const ls_architecture *a, ls_block_type type) {
    bool gpt2 = a->family == LS_FAMILY_GPT2;
    const char *p = ls_gguf_family_name(a->family);
    ls_gguf_put_text(w, "general.architecture", p);
    ls_gguf_put_text(w, "general.type", "model");
    ls_gguf_put_u32(w, "general.file_type", file_type(type));
    ls_gguf_put_u32(w, "general.quantization_version", 2);
    put_size(w, p, "vocab_size", a->vocab);
    put_size(w, p, "context_length", context_of(a));
    put_size(w, p, "embedding_length", a->width);
    put_size(w, p, "block_count", a->layers);
    put_size(w, p, "feed_forward_length", a->ffn);
    put_size(w, p, "attention.head_count", a->heads);
    if (a->experts) {
        put_size(w, p, "expert_count", a->experts);
        put_size(w, p, "expert_used_count", a->experts_per_token);
    }
    if (a->family == LS_FAMILY_QWEN3_MOE) put_size(w, p, "expert_feed_forward_length", a->ffn);
    if (!gpt2) {
        put_size(w, p, "attention.head_count_kv", a->kv_heads);
        put_size(w, p, "attention.key_length", a->head_dim);
        put_size(w, p, "attention.value_length", a->head_dim);
        put_rope(w, p, a);
    }
    if (a->gemma) put_gemma(w, p, a);
    if (a->family == LS_FAMILY_PHI3) put_size(w, p, "attention.sliding_window", a->window);
    put_number(w, p, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
               a->norm_eps);
    put_tokens(w, a);
    put_generation(w, &a->generation);
}

ls_status ls_gguf_check(const ls_architecture *a, ls_error *e) {
    const ls_rotation *r = &a->rope;
    if (a->experts && !a->norm_topk)
        return ls_fail(e, LS_EINVAL,
                       "GGUF can't hold this mixture of experts: in llama.cpp the weights of a "
                       "token's experts have the sum 1, and here they don't (norm_topk_prob is "
                       "false); write safetensors");
    if (a->gemma && a->query_scalar != query_scalar_of(a))
        return ls_fail(e, LS_EINVAL,
                       "GGUF has no key for attention that divides scores by the root of %lld "
                       "(query_pre_attn_scalar), with heads of %lld elements; write safetensors",
                       (long long)(a->query_scalar ? a->query_scalar : a->head_dim),
                       (long long)a->head_dim);
    bool smollm = a->family == LS_FAMILY_SMOLLM3;
    if (smollm && a->no_rope_every != no_rope_every_of(a))
        return ls_fail(e, LS_EINVAL,
                       "GGUF has no key for the layers without a rotation, in llama.cpp each "
                       "fourth one, but here 1 of %lld%s; write safetensors",
                       (long long)a->no_rope_every, a->no_rope_every ? "" : " (none)");
    if (smollm && (a->qkv_bias || a->mlp_bias))
        return ls_fail(e, LS_EINVAL,
                       "GGUF has no biases in a model of the family smollm3; write safetensors");
    if ((smollm && r->type == LS_ROPE_LLAMA3) ||
        (a->gemma && (r->type == LS_ROPE_LLAMA3 || r->type == LS_ROPE_YARN)))
        return ls_fail(e, LS_EINVAL,
                       "GGUF has no keys for the rotation %s in a model of the family %s; "
                       "write safetensors",
                       ls_rope_type_name(r->type), ls_family_name(a->family));
    if (r->type == LS_ROPE_YARN && (r->exact || r->low != yarn_slow || r->high != yarn_fast))
        return ls_fail(e, LS_EINVAL,
                       "GGUF has no keys for the rotation yarn with beta_slow %g, beta_fast %g%s, "
                       "but for that with 1 and 32; write safetensors",
                       r->low, r->high, r->exact ? " and truncate false" : "");
    if (r->type != LS_ROPE_LLAMA3) return LS_OK;
    bool known = r->low == llama3.low && r->high == llama3.high &&
                 r->original_context == llama3.original_context;
    if (known && ls_rope_divisor(r, a->head_dim, a->head_dim / 2 - 1) == r->factor) return LS_OK;
    if (known)
        return ls_fail(e, LS_EINVAL,
                       "GGUF can't hold this model's rotation: of heads of %lld elements and base "
                       "%g none is divided by the whole factor of llama3, %g; write safetensors",
                       (long long)a->head_dim, r->base, r->factor);
    return ls_fail(e, LS_EINVAL,
                   "GGUF has no keys for the rotation llama3 with low_freq_factor %g, "
                   "high_freq_factor %g and %lld positions, but for that with 1, 4 and 8192; write "
                   "safetensors",
                   r->low, r->high, (long long)r->original_context);
}

int64_t ls_gguf_put_divisors(ls_gguf_writer *w, const ls_architecture *a) {
    int64_t n = ls_architecture_pairs(a);
    if (a->rope.type == LS_ROPE_LONGROPE) {
        ls_gguf_put_tensor(w, LS_GGUF_SHORT, LS_BLOCK_F32, 1, &n);
        ls_gguf_put_tensor(w, LS_GGUF_LONG, LS_BLOCK_F32, 1, &n);
        return n;
    }
    if (a->rope.type != LS_ROPE_LLAMA3) return 0;
    ls_gguf_put_tensor(w, LS_GGUF_DIVISORS, LS_BLOCK_F32, 1, &n);
    return n;
}
