/* architecture.c - see architecture.h. */
#include "weights/architecture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"

static const struct {
    const char *name, *class;
} families[LS_NFAMILIES] = {
    [LS_FAMILY_LLAMA] = {"llama", "LlamaForCausalLM"},
    [LS_FAMILY_MISTRAL] = {"mistral", "MistralForCausalLM"},
    [LS_FAMILY_QWEN2] = {"qwen2", "Qwen2ForCausalLM"},
    [LS_FAMILY_QWEN3] = {"qwen3", "Qwen3ForCausalLM"},
    [LS_FAMILY_GPT2] = {"gpt2", "GPT2LMHeadModel"},
    [LS_FAMILY_MIXTRAL] = {"mixtral", "MixtralForCausalLM"},
    [LS_FAMILY_QWEN3_MOE] = {"qwen3_moe", "Qwen3MoeForCausalLM"},
    [LS_FAMILY_GEMMA3] = {"gemma3_text", "Gemma3ForCausalLM"},
    [LS_FAMILY_SMOLLM3] = {"smollm3", "SmolLM3ForCausalLM"},
    [LS_FAMILY_PHI3] = {"phi3", "Phi3ForCausalLM"},
};

const char *ls_family_name(ls_family f) { return families[f].name; }
const char *ls_family_class(ls_family f) { return families[f].class; }

bool ls_family_has_experts(ls_family f) {
    return f == LS_FAMILY_MIXTRAL || f == LS_FAMILY_QWEN3_MOE;
}

bool ls_family_named(const char *name, ls_family *f_p) {
    for (int i = 0; i < LS_NFAMILIES; i++)
        if (strcmp(families[i].name, name) == 0) {
            *f_p = (ls_family)i;
            return true;
        }
    return false;
}

bool ls_architecture_is_local(const ls_architecture *a, int64_t i) {
    return a->window && !(a->full_every && (i + 1) % a->full_every == 0);
}

void ls_architecture_set_windows(ls_architecture *a, int64_t every, double local_base) {
    const ls_rotation local = {.type = LS_ROPE_DEFAULT, .base = local_base};
    bool some = every > 1 && every <= a->layers;
    a->full_every = some ? every : 0;
    a->local_base = some ? local_base : 0;
    if (every == 1) a->window = 0;
    if (every > a->layers) a->rope = local;
}

int64_t ls_architecture_every(const ls_architecture *a) {
    return a->full_every ? a->full_every : a->window ? a->layers + 1 : 1;
}

void ls_architecture_set_no_rope(ls_architecture *a, int64_t every) {
    a->no_rope_every = every <= a->layers ? every : 0;
}

ls_rotation ls_architecture_rope(const ls_architecture *a, int64_t i) {
    if (a->no_rope_every && (i + 1) % a->no_rope_every == 0)
        return (ls_rotation){.type = LS_ROPE_NONE};
    if (!a->full_every || !ls_architecture_is_local(a, i)) return a->rope;
    return (ls_rotation){.type = LS_ROPE_DEFAULT, .base = a->local_base};
}

ls_token_ids ls_architecture_config_ids(const ls_architecture *a) {
    if (a->has_config_ids) return a->config_ids;
    ls_token_ids ids = {.bos = a->bos, .pad = a->pad, .neos = a->neos};
    memcpy(ids.eos, a->eos, sizeof ids.eos);
    return ids;
}

const char *ls_rope_type_name(ls_rope_type t) {
    static const char *const names[LS_NROPE_TYPES] = {"none",   "default", "linear",
                                                      "llama3", "yarn",    "longrope"};
    return names[t];
}

/* ---- checks ---- */

static ls_status check_sizes(const ls_architecture *a, const char *what, ls_error *e) {
    const struct {
        const char *name;
        int64_t value, most;
    } sizes[] = {{"layers", a->layers, 10000},       {"width", a->width, 1 << 20},
                 {"feed-forward", a->ffn, 1 << 22},  {"heads", a->heads, 1 << 16},
                 {"KV heads", a->kv_heads, 1 << 16}, {"elements of a head", a->head_dim, 1 << 16},
                 {"vocabulary", a->vocab, 1 << 26},  {"context", a->context, INT32_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].most)
            return ls_fail(e, LS_EINVAL, "%s: %s: %lld is not from 1 to %lld", what, sizes[i].name,
                           (long long)sizes[i].value, (long long)sizes[i].most);
    if (a->heads % a->kv_heads)
        return ls_fail(e, LS_EINVAL, "%s: %lld KV heads don't divide %lld heads", what,
                       (long long)a->kv_heads, (long long)a->heads);
    if (a->heads * a->head_dim > 1 << 22)
        return ls_fail(e, LS_EINVAL, "%s: %lld heads of %lld elements are too many", what,
                       (long long)a->heads, (long long)a->head_dim);
    if (a->window < 0 || a->window > INT32_MAX)
        return ls_fail(e, LS_EINVAL, "%s: a window of %lld positions is impossible", what,
                       (long long)a->window);
    if (a->full_every && (!a->window || a->full_every < 2 || a->full_every > 1 << 20))
        return ls_fail(e, LS_EINVAL, "%s: all positions in 1 of %lld layers is impossible", what,
                       (long long)a->full_every);
    if (a->no_rope_every && (a->no_rope_every < 2 || a->no_rope_every > a->layers))
        return ls_fail(e, LS_EINVAL, "%s: no rotation in 1 of %lld layers is not supported", what,
                       (long long)a->no_rope_every);
    if (a->query_scalar < 0 || a->query_scalar > 1 << 20)
        return ls_fail(e, LS_EINVAL, "%s: query_pre_attn_scalar is %lld; it must be from 1 to %d",
                       what, (long long)a->query_scalar, 1 << 20);
    if (!((float)a->norm_eps > 0 && a->norm_eps < 1))
        return ls_fail(e, LS_EINVAL,
                       "%s: the norms' epsilon (%s) is %g; it must be above 0, in f32 too, and "
                       "below 1",
                       what, a->family == LS_FAMILY_GPT2 ? "layer_norm_epsilon" : "rms_norm_eps",
                       a->norm_eps);
    return LS_OK;
}

static bool is_positive(double x) { return isfinite(x) && x > 0; }

static ls_status check_longrope(const ls_architecture *a, const char *what, ls_error *e) {
    const ls_rotation *r = &a->rope;
    int64_t pairs = ls_architecture_pairs(a);
    if (pairs > LS_ROPE_PAIRS)
        return ls_fail(
            e, LS_EINVAL,
            "%s: rope_type longrope turns %lld pairs of a head; at most %d are supported", what,
            (long long)pairs, LS_ROPE_PAIRS);
    bool good = r->base > 1 && r->original_context > 1 && r->original_context <= 1 << 20 &&
                r->factor >= 1e-3 && r->factor <= 1e6 && (float)r->scale > 0 &&
                (float)r->scale <= 1e6f; /* the limits of the keys of a config, too */
    for (int k = 0; k < LS_NROPE_LISTS; k++)
        for (int64_t i = 0; i < pairs; i++)
            good = good && a->divisors[k][i] >= 1e-6f && a->divisors[k][i] <= 1e6f;
    if (good) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: rope_type longrope needs numbers from 1e-6 to 1e6 in short_factor and "
                   "long_factor, a factor from 1e-3 to 1e6, an attention_factor from 0 to 1e6, "
                   "rope_theta above 1 and original_max_position_embeddings from 2 to 1048576",
                   what);
}

static ls_status check_rope(const ls_architecture *a, const char *what, ls_error *e) {
    const ls_rotation *r = &a->rope;
    if (r->type == LS_ROPE_NONE) return LS_OK;
    if (a->head_dim % 2)
        return ls_fail(e, LS_EINVAL, "%s: heads have %lld elements; a rotation needs pairs", what,
                       (long long)a->head_dim);
    if (!is_positive(r->base))
        return ls_fail(e, LS_EINVAL, "%s: the rotation's base %g is not positive", what, r->base);
    if (a->full_every && !is_positive(a->local_base))
        return ls_fail(e, LS_EINVAL,
                       "%s: the base %g of the rotation in layers with a window is "
                       "not positive",
                       what, a->local_base);
    if (r->type != LS_ROPE_DEFAULT && !is_positive(r->factor))
        return ls_fail(e, LS_EINVAL, "%s: the rotation's factor %g is not positive", what,
                       r->factor);
    if (r->type == LS_ROPE_LLAMA3 && !(is_positive(r->low) && is_positive(r->high) &&
                                       (float)r->low < (float)r->high && r->original_context > 0))
        return ls_fail(e, LS_EINVAL,
                       "%s: rope_type llama3 needs 0 < low_freq_factor < high_freq_factor and "
                       "original_max_position_embeddings above 0",
                       what);
    if (r->type == LS_ROPE_YARN && a->gemma)
        return ls_fail(e, LS_EINVAL, "%s: the family %s has no rotation of rope_type yarn", what,
                       ls_family_name(a->family));
    if (r->type == LS_ROPE_YARN &&
        !(is_positive(r->low) && is_positive(r->high) && (float)r->low < (float)r->high &&
          r->base > 1 && r->original_context > 0 && (float)r->scale > 0 && (float)r->scale <= 1e6f))
        return ls_fail(e, LS_EINVAL,
                       "%s: rope_type yarn needs 0 < beta_slow < beta_fast, an attention_factor "
                       "from 0 to 1e6, rope_theta above 1 and original_max_position_embeddings "
                       "above 0",
                       what);
    if (a->turned < 0 || a->turned % 2 || a->turned > a->head_dim)
        return ls_fail(e, LS_EINVAL,
                       "%s: the rotation turns %lld of a head's %lld elements; it must be an even "
                       "number of them",
                       what, (long long)a->turned, (long long)a->head_dim);
    return r->type == LS_ROPE_LONGROPE ? check_longrope(a, what, e) : LS_OK;
}

static ls_status check_experts(const ls_architecture *a, const char *what, ls_error *e) {
    if (ls_family_has_experts(a->family) != (a->experts > 0))
        return ls_fail(e, LS_EINVAL, "%s: %lld experts, and the family %s has %s", what,
                       (long long)a->experts, ls_family_name(a->family),
                       a->experts ? "none" : "some");
    if (a->experts < 0 || a->experts > LS_EXPERTS_IN_A_MODEL)
        return ls_fail(e, LS_EINVAL, "%s: %lld experts; at most %d are supported", what,
                       (long long)a->experts, LS_EXPERTS_IN_A_MODEL);
    if (a->experts && (a->experts_per_token < 1 || a->experts_per_token > a->experts))
        return ls_fail(e, LS_EINVAL, "%s: num_experts_per_tok is %lld; there are %lld experts",
                       what, (long long)a->experts_per_token, (long long)a->experts);
    if (!(a->router_aux_loss >= 0 && a->router_aux_loss <= 1000))
        return ls_fail(e, LS_EINVAL, "%s: router_aux_loss_coef is %g; it is from 0 to 1000", what,
                       a->router_aux_loss);
    return LS_OK;
}

/* What a family has in all its models. */
static ls_status check_family(const ls_architecture *a, const char *what, ls_error *e) {
    bool gpt2 = a->family == LS_FAMILY_GPT2, qwen2 = a->family == LS_FAMILY_QWEN2;
    bool qwen3 = a->family == LS_FAMILY_QWEN3 || a->family == LS_FAMILY_QWEN3_MOE;
    bool gemma = a->family == LS_FAMILY_GEMMA3, phi = a->family == LS_FAMILY_PHI3;
    bool smollm = a->family == LS_FAMILY_SMOLLM3, llama = a->family == LS_FAMILY_LLAMA || smollm;
    bool free_bias = llama || qwen3 || gemma;
    bool qkv = gpt2 || qwen2 || (free_bias && a->qkv_bias);
    bool o = gpt2 || (free_bias && a->qkv_bias);
    bool mlp = gpt2 || (llama && a->mlp_bias);
    if (a->qkv_bias != qkv || a->o_bias != o || a->mlp_bias != mlp)
        return ls_fail(e, LS_EINVAL, "%s: no model of the family %s has these biases", what,
                       ls_family_name(a->family));
    if (a->gemma != gemma)
        return ls_fail(e, LS_EINVAL, "%s: a block of the family %s has %s norms", what,
                       ls_family_name(a->family), gemma ? "four" : "two");
    if (a->qk_norm != (qwen3 || gemma))
        return ls_fail(e, LS_EINVAL, "%s: in the family %s, q and k have %s norms", what,
                       ls_family_name(a->family), a->qk_norm ? "no" : "their own");
    if (gpt2 != (a->rope.type == LS_ROPE_NONE))
        return ls_fail(e, LS_EINVAL, "%s: the family %s has %s rotation", what,
                       ls_family_name(a->family), gpt2 ? "no" : "a");
    if (!phi && (a->turned || a->rope.type == LS_ROPE_LONGROPE))
        return ls_fail(
            e, LS_EINVAL, "%s: the family %s has no rotation %s", what, ls_family_name(a->family),
            a->turned ? "of a part of a head (partial_rotary_factor)" : "of rope_type longrope");
    if (phi && a->rope.type != LS_ROPE_DEFAULT && a->rope.type != LS_ROPE_LONGROPE)
        return ls_fail(e, LS_EINVAL, "%s: the family %s has no rotation of rope_type %s", what,
                       ls_family_name(a->family), ls_rope_type_name(a->rope.type));
    if ((gpt2 && a->kv_heads != a->heads) || ((gpt2 || phi) && a->heads * a->head_dim != a->width))
        return ls_fail(e, LS_EINVAL,
                       "%s: %lld heads of %lld elements don't make up a width of %lld", what,
                       (long long)a->heads, (long long)a->head_dim, (long long)a->width);
    if (((a->full_every || a->query_scalar) && !gemma) || (a->no_rope_every && !smollm))
        return ls_fail(e, LS_EINVAL, "%s: in the family %s, all layers are alike", what,
                       ls_family_name(a->family));
    if (a->window && (gpt2 || a->family == LS_FAMILY_LLAMA))
        return ls_fail(e, LS_EINVAL, "%s: the family %s has no window", what,
                       ls_family_name(a->family));
    return LS_OK;
}

static ls_status check_token(const ls_architecture *a, const char *name, int64_t id,
                             const char *what, ls_error *e) {
    if (id >= LS_TOKEN_NONE && id < a->vocab) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s %lld is no token of a vocabulary of %lld", what, name,
                   (long long)id, (long long)a->vocab);
}

ls_status ls_architecture_check(const ls_architecture *a, const char *what, ls_error *e) {
    LS_TRY(check_sizes(a, what, e));
    LS_TRY(check_rope(a, what, e));
    LS_TRY(check_family(a, what, e));
    LS_TRY(check_experts(a, what, e));
    LS_TRY(check_token(a, "bos_token_id", a->bos, what, e));
    LS_TRY(check_token(a, "pad_token_id", a->pad, what, e));
    for (int i = 0; i < a->neos; i++) LS_TRY(check_token(a, "eos_token_id", a->eos[i], what, e));
    return LS_OK;
}

/* ---- comparing ---- */

static bool near(double a, double b) { return (float)a == (float)b; }

char *ls_architecture_difference(const ls_architecture *a, const ls_architecture *b) {
    ls_family x = a->family, y = b->family;
    if (x == LS_FAMILY_MISTRAL) x = LS_FAMILY_LLAMA;
    if (y == LS_FAMILY_MISTRAL) y = LS_FAMILY_LLAMA;
    if (x != y)
        return ls_format("the family is %s, not %s", ls_family_name(a->family),
                         ls_family_name(b->family));
    const struct {
        const char *name;
        int64_t a, b;
    } integers[] = {
        {"layers", a->layers, b->layers},
        {"width", a->width, b->width},
        {"feed-forward", a->ffn, b->ffn},
        {"heads", a->heads, b->heads},
        {"KV heads", a->kv_heads, b->kv_heads},
        {"elements of a head", a->head_dim, b->head_dim},
        {"vocabulary", a->vocab, b->vocab},
        {"context", a->context, b->context},
        {"window", a->window, b->window},
        {"layers up to one that sees all positions", a->full_every, b->full_every},
        {"layers up to one without a rotation", a->no_rope_every, b->no_rope_every},
        {"block of Gemma 3", a->gemma, b->gemma},
        {"divisor of scores, squared", a->query_scalar, b->query_scalar},
        {"biases of q, k and v", a->qkv_bias, b->qkv_bias},
        {"bias of attention's output", a->o_bias, b->o_bias},
        {"biases of the feed-forward", a->mlp_bias, b->mlp_bias},
        {"norms of q and k", a->qk_norm, b->qk_norm},
        {"experts", a->experts, b->experts},
        {"experts of a token", a->experts_per_token, b->experts_per_token},
        {"weights of experts with the sum 1", a->norm_topk, b->norm_topk},
        {"tied embedding", a->tied, b->tied},
        {"elements of a head that are turned", a->turned, b->turned},
        {"original context of the rotation", a->rope.original_context, b->rope.original_context},
        {"exact bounds of the rotation", a->rope.exact, b->rope.exact}};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (integers[i].a != integers[i].b)
            return ls_format("%s: %lld, not %lld", integers[i].name, (long long)integers[i].a,
                             (long long)integers[i].b);
    if (a->rope.type != b->rope.type)
        return ls_format("the rotation's type is %s, not %s", ls_rope_type_name(a->rope.type),
                         ls_rope_type_name(b->rope.type));
    const struct {
        const char *name;
        double a, b;
    } reals[] = {{"epsilon of the norms", a->norm_eps, b->norm_eps},
                 {"base of the rotation", a->rope.base, b->rope.base},
                 {"base of the rotation in layers with a window", a->local_base, b->local_base},
                 {"factor of the rotation", a->rope.factor, b->rope.factor},
                 {"low factor of the rotation", a->rope.low, b->rope.low},
                 {"high factor of the rotation", a->rope.high, b->rope.high},
                 {"scale of the rotation", a->rope.scale, b->rope.scale}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (!near(reals[i].a, reals[i].b))
            return ls_format("%s: %.9g, not %.9g", reals[i].name, reals[i].a, reals[i].b);
    for (int k = 0; k < LS_NROPE_LISTS; k++)
        for (int i = 0; i < LS_ROPE_PAIRS; i++)
            if (!near((double)a->divisors[k][i], (double)b->divisors[k][i]))
                return ls_format("%s of the rotation: element %d is %.9g, not %.9g",
                                 k == LS_ROPE_LONG ? "long_factor" : "short_factor", i,
                                 (double)a->divisors[k][i], (double)b->divisors[k][i]);
    return NULL;
}

void ls_architecture_describe(const ls_architecture *a, ls_buf *out) {
    ls_buf_printf(out, "%s: %lld layers, width %lld, feed-forward %lld, %lld heads of %lld",
                  ls_family_name(a->family), (long long)a->layers, (long long)a->width,
                  (long long)a->ffn, (long long)a->heads, (long long)a->head_dim);
    if (a->kv_heads != a->heads) ls_buf_printf(out, ", %lld KV heads", (long long)a->kv_heads);
    ls_buf_printf(out, ", %lld tokens, context %lld", (long long)a->vocab, (long long)a->context);
    if (a->experts)
        ls_buf_printf(out, ", %lld experts, %lld for a token", (long long)a->experts,
                      (long long)a->experts_per_token);
    if (a->window) ls_buf_printf(out, ", window %lld", (long long)a->window);
    if (a->full_every) ls_buf_printf(out, " but in 1 of %lld layers", (long long)a->full_every);
    if (a->rope.type != LS_ROPE_NONE) ls_buf_printf(out, ", rope base %.9g", a->rope.base);
    if (a->full_every) ls_buf_printf(out, ", %.9g with a window", a->local_base);
    if (a->rope.type > LS_ROPE_DEFAULT)
        ls_buf_printf(out, " (%s, factor %.9g)", ls_rope_type_name(a->rope.type), a->rope.factor);
    if (a->turned) ls_buf_printf(out, " of %lld elements of a head", (long long)a->turned);
    if (a->no_rope_every)
        ls_buf_printf(out, ", none in 1 of %lld layers", (long long)a->no_rope_every);
    ls_buf_printf(out, ", epsilon %.9g, %s embedding", a->norm_eps, a->tied ? "tied" : "untied");
}

/* ---- numbers ---- */

static const double two_pi = 6.283185307179586;

/* The frequency whose wave turns so often in the original context: a fraction. */
static double turning(const ls_rotation *r, int64_t head_dim, double turns) {
    double waves = (double)r->original_context / (turns * two_pi);
    return (double)head_dim * ls_math_log(waves) / (2 * ls_math_log(r->base));
}

static double kept_by_yarn(const ls_rotation *r, int64_t head_dim, int64_t i) {
    double a = turning(r, head_dim, r->high), b = turning(r, head_dim, r->low);
    if (!r->exact) a = floor(a), b = ceil(b);
    if (a < 0) a = 0;
    if (b > (double)(head_dim - 1)) b = (double)(head_dim - 1);
    if (a == b) b += 0.001;
    float passed = ((float)i - (float)a) / (float)(b - a);
    return (double)(1 - (passed < 0 ? 0 : passed > 1 ? 1 : passed));
}

double ls_rope_kept(const ls_rotation *r, int64_t head_dim, int64_t i) {
    if (r->type == LS_ROPE_LINEAR) return 0;
    if (r->type == LS_ROPE_YARN) return kept_by_yarn(r, head_dim, i);
    if (r->type != LS_ROPE_LLAMA3) return 1;
    double f = ls_math_exp(-2.0 * (double)i / (double)head_dim * ls_math_log(r->base));
    double wavelength = two_pi / f, original = (double)r->original_context;
    if (wavelength < original / r->high) return 1;
    if (wavelength > original / r->low) return 0;
    return (original / wavelength - r->low) / (r->high - r->low);
}

double ls_rope_divisor(const ls_rotation *r, int64_t head_dim, int64_t i) {
    double s = ls_rope_kept(r, head_dim, i);
    return s == 0 ? r->factor : 1 / ((1 - s) / r->factor + s);
}

double ls_rope_scale(double factor) { return factor > 1 ? 0.1 * ls_math_log(factor) + 1 : 1; }

double ls_longrope_scale(const ls_rotation *r) {
    if (!(r->factor > 1 && r->original_context > 1)) return 1;
    return sqrt(1 + ls_math_log(r->factor) / ls_math_log((double)r->original_context));
}

int64_t ls_architecture_pairs(const ls_architecture *a) {
    return (a->turned ? a->turned : a->head_dim) / 2;
}

const float *ls_architecture_divisors(const ls_architecture *a) {
    if (a->rope.type != LS_ROPE_LONGROPE) return NULL;
    return a->divisors[a->context > a->rope.original_context ? LS_ROPE_LONG : LS_ROPE_SHORT];
}

int64_t ls_architecture_positions(const ls_architecture *a) {
    double stretched = (double)a->rope.original_context * a->rope.factor;
    if (a->rope.type != LS_ROPE_YARN || stretched <= (double)a->context) return a->context;
    return stretched < INT32_MAX ? (int64_t)stretched : INT32_MAX;
}

double ls_shortest_f32(float x) {
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x) return strtod(text, NULL);
    }
    return (double)x;
}
