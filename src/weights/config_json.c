/* config_json.c - see config_json.h.
 *
 * Source: configuration_{llama,mistral,mixtral,qwen2,qwen3,qwen3_moe,gemma3,smollm3,phi3,gpt2}.py,
 * configuration_utils.py and modeling_rope_utils.py of transformers 4 and 5.
 */
#include "weights/config_json.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SEEN = 64 };

typedef struct reader {
    const ls_json *o;
    const char *what;
    ls_error *e;
    const char *seen[MOST_SEEN]; /* keys that were asked for */
    int nseen;
} reader;

/* ---- one key ---- */

static bool is_null(const ls_json *v) {
    double number;
    return !v || (!ls_json_text(v) && !ls_json_number(v, &number) && !ls_json_is_bool(v) &&
                  !ls_json_is_object(v) && !ls_json_is_array(v));
}

/* The value; NULL: it is missing or null. */
static const ls_json *take(reader *r, const char *key) {
    if (r->nseen < MOST_SEEN) r->seen[r->nseen++] = key;
    const ls_json *v = ls_json_get(r->o, key);
    return is_null(v) ? NULL : v;
}

static ls_status fail_missing(const reader *r, const char *key) {
    return ls_fail(r->e, LS_EINVAL, "%s: %s is missing", r->what, key);
}

static ls_status fail_value(const reader *r, const char *key, const char *want) {
    ls_buf text = {0};
    const ls_json *v = ls_json_get(r->o, key);
    if (v) ls_json_write(v, 0, &text);
    ls_status s = ls_fail(r->e, LS_EINVAL, "%s: %s is %.80s; %s", r->what, key,
                          text.len ? text.data : "missing", want);
    ls_buf_free(&text);
    return s;
}

static ls_status take_size(reader *r, const char *key, int64_t *value_p) {
    const ls_json *v = take(r, key);
    if (!v) return fail_missing(r, key);
    return ls_json_integer(v, value_p) ? LS_OK : fail_value(r, key, "it must be an integer");
}

/* *value_p stays if it is missing or null. */
static ls_status take_size_if(reader *r, const char *key, int64_t *value_p) {
    const ls_json *v = take(r, key);
    if (!v || ls_json_integer(v, value_p)) return LS_OK;
    return fail_value(r, key, "it must be an integer");
}

static ls_status take_number(reader *r, const char *key, double *value_p) {
    const ls_json *v = take(r, key);
    if (!v) return fail_missing(r, key);
    return ls_json_number(v, value_p) ? LS_OK : fail_value(r, key, "it must be a number");
}

static ls_status take_bool_if(reader *r, const char *key, bool *value_p) {
    const ls_json *v = take(r, key);
    if (!v) return LS_OK;
    if (!ls_json_is_bool(v)) return fail_value(r, key, "it must be true or false");
    *value_p = ls_json_is_true(v);
    return LS_OK;
}

static ls_status take_token(reader *r, const char *key, int64_t *id_p) {
    return take_size_if(r, key, id_p);
}

/* Values that must be as given, or missing. */
static ls_status expect_text(reader *r, const char *key, const char *want) {
    const ls_json *v = take(r, key);
    if (!v) return LS_OK;
    if (ls_json_text(v) && strcmp(ls_json_text(v), want) == 0) return LS_OK;
    char *only = ls_format("only \"%s\" is supported", want);
    ls_status s = fail_value(r, key, only);
    free(only);
    return s;
}

static ls_status expect_bool(reader *r, const char *key, bool want) {
    bool got = want;
    LS_TRY(take_bool_if(r, key, &got));
    if (got == want) return LS_OK;
    return fail_value(r, key, want ? "only true is supported" : "only false is supported");
}

static ls_status expect_one(reader *r, const char *key) {
    double got = 1;
    const ls_json *v = take(r, key);
    if (!v || (ls_json_number(v, &got) && got == 1)) return LS_OK;
    return fail_value(r, key, "only 1 is supported");
}

static ls_status take_eos(reader *r, ls_architecture *a) {
    static const char key[] = "eos_token_id";
    const ls_json *v = take(r, key);
    if (!v) return LS_OK;
    a->neos = 0;
    size_t n = ls_json_is_array(v) ? ls_json_count(v) : 1;
    if (n > LS_MAX_EOS) return fail_value(r, key, "it has too many tokens");
    for (size_t i = 0; i < n; i++) {
        if (!ls_json_integer(ls_json_is_array(v) ? ls_json_at(v, i) : v, &a->eos[a->neos]))
            return fail_value(r, key, "it must be an integer or a list of integers");
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
/* Of Phi-3: original_max_position_embeddings. */
enum { PHI_ORIGINAL = 4096 };
/* Of Gemma 3: the base of the rotation in layers with a window, the layers from one that sees all
 * positions to the next, the square of what divides scores. */
static const double local_base = 1e4;
enum { FULL_EVERY = 6, QUERY_SCALAR = 256 };

/* ---- rotation ---- */

static ls_status rope_type_of(reader *r, ls_rope_type *t_p) {
    const ls_json *v = take(r, "rope_type"), *old = take(r, "type");
    const char *name = ls_json_text(v ? v : old);
    if (v && old && (!name || !ls_json_text(old) || strcmp(name, ls_json_text(old)) != 0))
        return fail_value(r, "type", "it differs from rope_type");
    for (int i = LS_ROPE_DEFAULT; name && i < LS_ROPE_LONGROPE; i++)
        if (strcmp(name, ls_rope_type_name((ls_rope_type)i)) == 0) {
            *t_p = (ls_rope_type)i;
            return LS_OK;
        }
    if (!v && !old) {
        *t_p = LS_ROPE_DEFAULT;
        return LS_OK;
    }
    return fail_value(r, v ? "rope_type" : "type",
                      "default, linear, llama3 and yarn are supported");
}

static ls_status refuse_unknown(const reader *r, const char *what_it_may_change);

/* As transformers reads them: a number that is 0 stands for none. */
static ls_status read_yarn(reader *r, ls_rotation *rope) {
    double scale = 0, mscale = 0, all = 0;
    bool truncate = true;
    const struct {
        const char *key;
        double *value_p, usual;
    } numbers[] = {{"beta_fast", &rope->high, 32},
                   {"beta_slow", &rope->low, 1},
                   {"mscale", &mscale, 0},
                   {"mscale_all_dim", &all, 0}};
    for (int i = 0; i < 4; i++) {
        if (take(r, numbers[i].key)) LS_TRY(take_number(r, numbers[i].key, numbers[i].value_p));
        if (*numbers[i].value_p == 0) *numbers[i].value_p = numbers[i].usual;
    }
    LS_TRY(take_size_if(r, "original_max_position_embeddings", &rope->original_context));
    LS_TRY(take_bool_if(r, "truncate", &truncate));
    rope->exact = !truncate;
    rope->scale = ls_rope_scale(rope->factor);
    if (mscale != 0 && all != 0 && rope->factor > 1)
        rope->scale = (mscale * (rope->scale - 1) + 1) / (all * (rope->scale - 1) + 1);
    if (!take(r, "attention_factor")) return LS_OK;
    LS_TRY(take_number(r, "attention_factor", &scale));
    rope->scale = scale;
    return LS_OK;
}

/* rope_scaling or rope_parameters. The base stays if the object has none. */
static ls_status read_rope_object(const reader *outer, const char *key, const ls_json *o,
                                  ls_rotation *rope) {
    char *what = ls_format("%s: %s", outer->what, key);
    reader r = {.o = o, .what = what, .e = outer->e};
    ls_status s = LS_OK;
    if (!ls_json_is_object(o)) s = ls_fail(r.e, LS_EINVAL, "%s must be an object", what);
    if (s == LS_OK) s = rope_type_of(&r, &rope->type);
    if (s == LS_OK && take(&r, "rope_theta")) s = take_number(&r, "rope_theta", &rope->base);
    if (s == LS_OK && rope->type != LS_ROPE_DEFAULT) s = take_number(&r, "factor", &rope->factor);
    if (s == LS_OK && rope->type == LS_ROPE_LLAMA3) {
        s = take_number(&r, "low_freq_factor", &rope->low);
        if (s == LS_OK) s = take_number(&r, "high_freq_factor", &rope->high);
        if (s == LS_OK)
            s = take_size(&r, "original_max_position_embeddings", &rope->original_context);
    }
    if (s == LS_OK && rope->type == LS_ROPE_YARN) s = read_yarn(&r, rope);
    if (s == LS_OK) s = expect_one(&r, "partial_rotary_factor");
    if (s == LS_OK) s = refuse_unknown(&r, "the rotation");
    free(what);
    return s;
}

static bool same_rope(const ls_rotation *a, const ls_rotation *b) {
    return a->type == b->type && a->base == b->base && a->factor == b->factor && a->low == b->low &&
           a->high == b->high && a->original_context == b->original_context &&
           a->scale == b->scale && a->exact == b->exact;
}

/* The base is the family's in a file that leaves it out. parameters: what transformers 5 calls
 * rope_parameters; NULL: the file has none. */
static ls_status read_rope(reader *r, double base, const ls_json *parameters, ls_rotation *rope) {
    const ls_json *theta = take(r, "rope_theta"), *scaling = take(r, "rope_scaling");
    ls_rotation old = {.type = LS_ROPE_DEFAULT, .base = base};
    if (theta) LS_TRY(take_number(r, "rope_theta", &old.base));
    if (scaling) LS_TRY(read_rope_object(r, "rope_scaling", scaling, &old));
    *rope = old;
    if (!parameters) return LS_OK;
    *rope = (ls_rotation){.base = old.base};
    LS_TRY(read_rope_object(r, "rope_parameters", parameters, rope));
    if ((scaling && !same_rope(rope, &old)) || (theta && rope->base != old.base))
        return ls_fail(r->e, LS_EINVAL,
                       "%s: rope_parameters differs from rope_theta and rope_scaling", r->what);
    return LS_OK;
}

/* Gemma 3: rope_parameters of transformers 5 has two objects, for layers that see all positions and
 * for those with a window, whose rotation is always the default one. */
static ls_status read_gemma_rope(reader *r, ls_rotation *rope, double *local_p) {
    static const char full[] = "full_attention", sliding[] = "sliding_attention";
    const ls_json *both = take(r, "rope_parameters"), *value = NULL;
    const char *key = NULL;
    ls_rotation local = {.type = LS_ROPE_DEFAULT, .base = local_base};
    bool parted =
        ls_json_is_object(both) && (ls_json_get(both, full) || ls_json_get(both, sliding));
    const ls_json *written = take(r, "rope_local_base_freq");
    if (written) LS_TRY(take_number(r, "rope_local_base_freq", &local.base));
    const ls_rotation old = local;
    for (void *it = NULL; parted && (it = ls_json_next(both, it, &key, &value));)
        if (strcmp(key, full) != 0 && strcmp(key, sliding) != 0)
            return ls_fail(r->e, LS_EINVAL, "%s: rope_parameters: %s is not supported", r->what,
                           key);
    if (parted && ls_json_get(both, sliding))
        LS_TRY(read_rope_object(r, "rope_parameters", ls_json_get(both, sliding), &local));
    if (local.type != LS_ROPE_DEFAULT || (written && !same_rope(&local, &old)))
        return ls_fail(r->e, LS_EINVAL, "%s: rope_parameters: sliding_attention %s", r->what,
                       local.type != LS_ROPE_DEFAULT ? "is not of rope_type default"
                                                     : "differs from rope_local_base_freq");
    *local_p = local.base;
    return read_rope(r, of_family[LS_FAMILY_GEMMA3].rope_base,
                     parted ? ls_json_get(both, full) : both, rope);
}

/* ---- the rotation of Phi-3 ---- */

/* The part of a head that is turned; *part_p: what another place of the file says, or 0. */
static ls_status take_part(reader *r, double *part_p) {
    static const char key[] = "partial_rotary_factor";
    double part = 0;
    if (!take(r, key)) return LS_OK;
    LS_TRY(take_number(r, key, &part));
    if (!(part > 0 && part <= 1)) return fail_value(r, key, "it must be above 0 and at most 1");
    if (*part_p != 0 && part != *part_p)
        return fail_value(r, key, "it differs from the other one of the file");
    *part_p = part;
    return LS_OK;
}

static ls_status take_divisors(reader *r, const char *key, int64_t pairs, float *out) {
    const ls_json *list = take(r, key);
    double x = 0;
    bool good =
        ls_json_is_array(list) && (int64_t)ls_json_count(list) == pairs && pairs <= LS_ROPE_PAIRS;
    for (int64_t i = 0; good && i < pairs; i++) {
        good = ls_json_number(ls_json_at(list, (size_t)i), &x);
        out[i] = (float)x;
    }
    if (good) return LS_OK;
    return ls_fail(r->e, LS_EINVAL, "%s: %s must be a list of %lld numbers (at most %d)", r->what,
                   key, (long long)pairs, LS_ROPE_PAIRS);
}

/* "su" is what the first versions call longrope. Their "yarn" had another scale than that of later
 * ones. */
static ls_status phi_type_of(reader *r, ls_rope_type *t_p) {
    const ls_json *v = take(r, "rope_type"), *old = take(r, "type");
    const char *name = ls_json_text(v ? v : old);
    if (v && old && (!name || !ls_json_text(old) || strcmp(name, ls_json_text(old)) != 0))
        return fail_value(r, "type", "it differs from rope_type");
    bool longrope = name && (strcmp(name, "longrope") == 0 || strcmp(name, "su") == 0);
    if (!longrope && (v || old) && !(name && strcmp(name, "default") == 0))
        return fail_value(r, v ? "rope_type" : "type",
                          "default and longrope (su) are supported in the family phi3");
    *t_p = longrope ? LS_ROPE_LONGROPE : LS_ROPE_DEFAULT;
    return LS_OK;
}

static void set_turned(ls_architecture *a, double part) {
    int64_t turned = (int64_t)((double)a->head_dim * part);
    a->turned = turned == a->head_dim ? 0 : turned;
}

static ls_status take_longrope(reader *r, ls_architecture *a) {
    ls_rotation *rope = &a->rope;
    int64_t pairs = ls_architecture_pairs(a), original = rope->original_context;
    LS_TRY(take_divisors(r, "short_factor", pairs, a->divisors[LS_ROPE_SHORT]));
    LS_TRY(take_divisors(r, "long_factor", pairs, a->divisors[LS_ROPE_LONG]));
    LS_TRY(take_size_if(r, "original_max_position_embeddings", &original));
    if (original != rope->original_context)
        return fail_value(r, "original_max_position_embeddings",
                          "it differs from that of the whole, which is 4096 where it is left out");
    if (original < 2) return fail_value(r, "original_max_position_embeddings", "it is too small");
    rope->factor = (double)a->context / (double)original;
    if (take(r, "factor")) LS_TRY(take_number(r, "factor", &rope->factor));
    rope->scale = ls_longrope_scale(rope);
    return take(r, "attention_factor") ? take_number(r, "attention_factor", &rope->scale) : LS_OK;
}

/* rope_scaling or rope_parameters. */
static ls_status read_phi_object(const reader *outer, const char *key, double *part_p,
                                 ls_architecture *a) {
    char *what = ls_format("%s: %s", outer->what, key);
    reader r = {.o = ls_json_get(outer->o, key), .what = what, .e = outer->e};
    ls_status s = LS_OK;
    if (!ls_json_is_object(r.o)) s = ls_fail(r.e, LS_EINVAL, "%s must be an object", what);
    if (s == LS_OK) s = phi_type_of(&r, &a->rope.type);
    if (s == LS_OK && take(&r, "rope_theta")) s = take_number(&r, "rope_theta", &a->rope.base);
    if (s == LS_OK) s = take_part(&r, part_p);
    if (s == LS_OK) set_turned(a, *part_p != 0 ? *part_p : 1);
    if (s == LS_OK && a->rope.type == LS_ROPE_LONGROPE) s = take_longrope(&r, a);
    if (s == LS_OK) take(&r, "original_max_position_embeddings");
    if (s == LS_OK) s = refuse_unknown(&r, "the rotation");
    free(what);
    if (a->rope.type == LS_ROPE_DEFAULT) a->rope.original_context = 0;
    return s;
}

static ls_status read_phi_rope(reader *r, ls_architecture *a) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    const ls_json *theta = take(r, "rope_theta");
    double part = 0;
    bool has = false;
    a->rope = (ls_rotation){.type = LS_ROPE_DEFAULT,
                            .base = of_family[a->family].rope_base,
                            .original_context = PHI_ORIGINAL};
    LS_TRY(take_size_if(r, "original_max_position_embeddings", &a->rope.original_context));
    if (theta) LS_TRY(take_number(r, "rope_theta", &a->rope.base));
    LS_TRY(take_part(r, &part));
    ls_architecture is = *a;
    for (int i = 0; i < 2; i++) {
        ls_architecture x = *a;
        if (!take(r, keys[i])) continue;
        LS_TRY(read_phi_object(r, keys[i], &part, &x));
        if ((theta && x.rope.base != a->rope.base) ||
            (has && (!same_rope(&x.rope, &is.rope) ||
                     memcmp(x.divisors, is.divisors, sizeof x.divisors) != 0)))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: rope_parameters differs from rope_theta and rope_scaling", r->what);
        is = x;
        has = true;
    }
    if (!has) is.rope.original_context = 0;
    set_turned(&is, part != 0 ? part : 1);
    if (part != 0 && is.turned < 2 && (double)a->head_dim * part < 2)
        return fail_value(r, "partial_rotary_factor", "it turns no pair of a head's elements");
    *a = is;
    return LS_OK;
}

static ls_status read_phi(reader *r, ls_architecture *a) {
    LS_TRY(expect_bool(r, "attention_bias", false));
    LS_TRY(expect_bool(r, "mlp_bias", false));
    LS_TRY(expect_bool(r, "lm_head_bias", false));
    LS_TRY(expect_one(r, "full_attn_mod"));
    LS_TRY(expect_one(r, "interpolate_factor"));
    take(r, "auto_map"); /* programs that compute the same */
    LS_TRY(take_size_if(r, "sliding_window", &a->window));
    if (take(r, "sliding_window") && a->window < 1)
        return fail_value(r, "sliding_window", "it must be null or above 0");
    return read_phi_rope(r, a);
}

/* no_rope_layers has 0 for each layer without a rotation, and else 1; without it each n-th layer
 * has none, for n = no_rope_layer_interval. */
static ls_status read_no_rope(reader *r, ls_architecture *a) {
    static const char key[] = "no_rope_layers", interval[] = "no_rope_layer_interval";
    int64_t every = NO_ROPE_EVERY;
    LS_TRY(take_size_if(r, interval, &every));
    if (every < 1) return fail_value(r, interval, "it must be at least 1");
    const ls_json *list = take(r, key);
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
static ls_status check_layer_types(reader *r, const ls_architecture *a) {
    const ls_json *list = take(r, "layer_types");
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
static ls_status read_qwen_window(reader *r, ls_architecture *a) {
    bool uses = false;
    int64_t window = 0, first = -1;
    LS_TRY(take_bool_if(r, "use_sliding_window", &uses));
    LS_TRY(take_size_if(r, "sliding_window", &window));
    LS_TRY(take_size_if(r, "max_window_layers", &first));
    if (!uses || (first >= a->layers && a->family != LS_FAMILY_QWEN3_MOE)) return LS_OK;
    bool by_layer = !is_null(ls_json_get(r->o, "layer_types")); /* which then decides */
    if (!by_layer && first != 0)
        return fail_value(r, "max_window_layers",
                          "a window in some layers only is not supported: use 0, or "
                          "use_sliding_window false");
    if (window < 1) return fail_value(r, "sliding_window", "use_sliding_window needs one");
    a->window = window;
    return LS_OK;
}

/* SmolLM3: layer_types say which layers have the window, if use_sliding_window; without them it is
 * those without a rotation. */
static ls_status read_smollm_window(reader *r, ls_architecture *a) {
    bool uses = false;
    int64_t window = 0, unused = 0;
    const ls_json *types = ls_json_get(r->o, "layer_types");
    LS_TRY(take_bool_if(r, "use_sliding_window", &uses));
    LS_TRY(take_size_if(r, "sliding_window", &window));
    LS_TRY(take_size_if(r, "max_window_layers", &unused));
    if (!uses || !window) return LS_OK;
    if (is_null(types) && a->no_rope_every)
        return fail_value(r, "use_sliding_window",
                          "without layer_types the layers that have no rotation have the window; "
                          "only one in all layers is supported");
    const char *first = ls_json_is_array(types) ? ls_json_text(ls_json_at(types, 0)) : NULL;
    if (first && strcmp(first, "sliding_attention") == 0) a->window = window;
    return LS_OK;
}

static ls_status read_window(reader *r, ls_architecture *a) {
    if (a->family == LS_FAMILY_MISTRAL || a->family == LS_FAMILY_MIXTRAL) {
        if (!ls_json_get(r->o, "sliding_window")) a->window = of_family[a->family].window;
        LS_TRY(take_size_if(r, "sliding_window", &a->window));
    } else if (a->family == LS_FAMILY_SMOLLM3) {
        LS_TRY(read_smollm_window(r, a));
    } else if (a->family != LS_FAMILY_LLAMA) {
        LS_TRY(read_qwen_window(r, a));
    }
    return check_layer_types(r, a);
}

/* The layers up to the first one that sees all positions; the others must lie at the same
 * distances. */
static ls_status read_layer_types(reader *r, const ls_architecture *a, int64_t *every_p) {
    const ls_json *list = take(r, "layer_types");
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

static ls_status read_gemma_window(reader *r, ls_architecture *a, double local) {
    int64_t every = FULL_EVERY;
    LS_TRY(take_size_if(r, "sliding_window_pattern", &every));
    if (every < 1) return fail_value(r, "sliding_window_pattern", "it must be at least 1");
    LS_TRY(read_layer_types(r, a, &every));
    bool missing = !ls_json_get(r->o, "sliding_window");
    a->window = missing ? of_family[a->family].window : 0;
    LS_TRY(take_size_if(r, "sliding_window", &a->window));
    if (every > 1 && a->window < 1)
        return fail_value(r, "sliding_window", "layers of sliding_attention need one, above 0");
    ls_architecture_set_windows(a, every, local);
    return LS_OK;
}

/* ---- keys that change nothing ---- */

/* How transformers computes or trains, whose defaults for generation, and labels of other tasks. */
static const char *const ignored[] = {
    "attention_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "initializer_range",
    "use_cache",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "pretraining_tp",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "torchscript",
    "use_bfloat16",
    "tf_legacy_loss",
    "chunk_size_feed_forward",
    "is_decoder",
    "tie_encoder_decoder",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "task_specific_params",
    "tokenizer_class",
    "prefix",
    "decoder_start_token_id",
    "sep_token_id",
    "unk_token_id",
    "name_or_path",
    "gradient_checkpointing",
    "reorder_and_upcast_attn",
    "is_llama_config",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    "output_past",
    "cache_implementation",
    "model_max_length",
    "tie_last_hidden_states",
    "transformers.js_config",
};
/* Beginnings of such keys: notes of programs, and GPT-2's heads for other tasks. */
static const char *const ignored_begins[] = {"_", "unsloth_", "summary_"};

static bool is_known(const reader *r, const char *key) {
    for (int i = 0; i < r->nseen; i++)
        if (strcmp(r->seen[i], key) == 0) return true;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(ignored[i], key) == 0) return true;
    for (size_t i = 0; i < sizeof ignored_begins / sizeof *ignored_begins; i++)
        if (strncmp(key, ignored_begins[i], strlen(ignored_begins[i])) == 0) return true;
    return false;
}

static ls_status refuse_unknown(const reader *r, const char *what_it_may_change) {
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(r->o, it, &key, &value));)
        if (!is_null(value) && !is_known(r, key))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: %s is not supported: it may change %s; remove it if it does not",
                           r->what, key, what_it_may_change);
    return LS_OK;
}

/* ---- the whole ---- */

static ls_status read_family(reader *r, ls_architecture *a) {
    const ls_json *type = take(r, "model_type");
    if (!type) return fail_missing(r, "model_type");
    if (ls_json_text(type) && strcmp(ls_json_text(type), "gemma3") == 0)
        return fail_value(r, "model_type",
                          "models that also read images are not supported, only Gemma 3's "
                          "gemma3_text (270M, 1B); a GGUF file has the text's part of this one");
    if (!ls_json_text(type) || !ls_family_named(ls_json_text(type), &a->family))
        return fail_value(r, "model_type",
                          "llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma3_text, smollm3, "
                          "phi3 and gpt2 are supported");
    const ls_json *classes = take(r, "architectures");
    if (!classes || ls_json_count(classes) == 0) return LS_OK;
    const char *class = ls_json_text(ls_json_at(classes, 0)), *want = ls_family_class(a->family);
    if (class && strcmp(class, want) == 0) return LS_OK;
    char *only = ls_format("only %s is supported", want);
    ls_status s = fail_value(r, "architectures", only);
    free(only);
    return s;
}

/* Objects of other programs, which change what weights or layers are. */
static ls_status refuse_kinds(reader *r) {
    static const char *const types[] = {"quantization_config", "quantization"}; /* and of MLX */
    for (int i = 0; i < 2; i++)
        if (take(r, types[i]))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: %s is not supported: the weights are of another program's types",
                           r->what, types[i]);
    const ls_json *pruned = take(r, "pruned_heads");
    if (pruned && ls_json_count(pruned))
        return fail_value(r, "pruned_heads", "only none are supported");
    LS_TRY(expect_bool(r, "is_encoder_decoder", false));
    return expect_bool(r, "add_cross_attention", false);
}

/* ---- experts ---- */

/* Feed-forward layers without experts between those with them are not supported. */
static ls_status expect_all_experts(reader *r) {
    int64_t step = 1;
    const ls_json *dense = take(r, "mlp_only_layers");
    if (dense && (!ls_json_is_array(dense) || ls_json_count(dense)))
        return fail_value(r, "mlp_only_layers", "only an empty list is supported");
    LS_TRY(take_size_if(r, "decoder_sparse_step", &step));
    return step == 1 ? LS_OK : fail_value(r, "decoder_sparse_step", "only 1 is supported");
}

/* The number of experts has one of two names. */
static ls_status read_experts(reader *r, ls_architecture *a) {
    bool qwen = a->family == LS_FAMILY_QWEN3_MOE;
    double jitter = 0;
    if (!ls_family_has_experts(a->family)) return LS_OK;
    int64_t other = -1;
    a->experts = of_family[a->family].experts;
    a->experts_per_token = of_family[a->family].experts_per_token;
    LS_TRY(take_size_if(r, "num_experts", &other));
    if (other >= 0) a->experts = other;
    LS_TRY(take_size_if(r, "num_local_experts", &a->experts));
    if (other >= 0 && other != a->experts)
        return fail_value(r, "num_local_experts", "it differs from num_experts");
    LS_TRY(take_size_if(r, "num_experts_per_tok", &a->experts_per_token));
    if (take(r, "router_aux_loss_coef"))
        LS_TRY(take_number(r, "router_aux_loss_coef", &a->router_aux_loss));
    LS_TRY(take_bool_if(r, "output_router_logits", &a->adds_aux_loss));
    if (take(r, "router_jitter_noise")) LS_TRY(take_number(r, "router_jitter_noise", &jitter));
    if (jitter != 0) return fail_value(r, "router_jitter_noise", "only 0 is supported");
    a->norm_topk = !qwen;
    if (!qwen) return LS_OK;
    LS_TRY(take_bool_if(r, "norm_topk_prob", &a->norm_topk));
    LS_TRY(take_size(r, "moe_intermediate_size", &a->ffn));
    return expect_all_experts(r);
}

static ls_status expect_null(reader *r, const char *key, const char *what) {
    return take(r, key) ? fail_value(r, key, what) : LS_OK;
}

static ls_status read_gemma(reader *r, ls_architecture *a) {
    static const char cap[] = "soft-capping is not supported, only null is";
    double local = 0;
    int64_t scalar = QUERY_SCALAR;
    a->gemma = true;
    LS_TRY(expect_text(r, "hidden_activation", "gelu_pytorch_tanh"));
    LS_TRY(expect_null(r, "attn_logit_softcapping", cap));
    LS_TRY(expect_null(r, "final_logit_softcapping", cap));
    LS_TRY(expect_bool(r, "use_bidirectional_attention", false));
    LS_TRY(take_size_if(r, "query_pre_attn_scalar", &scalar));
    if (scalar < 1) return fail_value(r, "query_pre_attn_scalar", "it must be above 0");
    a->query_scalar = scalar == a->head_dim ? 0 : scalar;
    LS_TRY(read_gemma_rope(r, &a->rope, &local));
    return read_gemma_window(r, a, local);
}

static ls_status read_llama(reader *r, ls_architecture *a) {
    bool smollm = a->family == LS_FAMILY_SMOLLM3, gemma = a->family == LS_FAMILY_GEMMA3;
    bool llama = a->family == LS_FAMILY_LLAMA, phi = a->family == LS_FAMILY_PHI3;
    bool qwen3 = a->family == LS_FAMILY_QWEN3 || a->family == LS_FAMILY_QWEN3_MOE;
    bool bias = false;
    const defaults *of = &of_family[a->family];
    LS_TRY(take_size(r, "hidden_size", &a->width));
    LS_TRY(take_size(r, "intermediate_size", &a->ffn));
    LS_TRY(read_experts(r, a));
    LS_TRY(take_size(r, "num_hidden_layers", &a->layers));
    LS_TRY(take_size(r, "num_attention_heads", &a->heads));
    a->context = of->context;
    a->norm_eps = of->norm_eps;
    LS_TRY(take_size_if(r, "max_position_embeddings", &a->context));
    if (take(r, "rms_norm_eps")) LS_TRY(take_number(r, "rms_norm_eps", &a->norm_eps));
    LS_TRY(expect_text(r, "hidden_act", gemma ? "gelu_pytorch_tanh" : "silu"));
    /* null stands for as many as heads */
    a->kv_heads =
        ls_json_get(r->o, "num_key_value_heads") || llama || phi ? a->heads : of->kv_heads;
    LS_TRY(take_size_if(r, "num_key_value_heads", &a->kv_heads));
    a->head_dim = of->head_dim;
    if (!take(r, "head_dim") && !a->head_dim) {
        if (qwen3) return fail_missing(r, "head_dim"); /* versions differ */
        if (a->heads < 1 || a->width % a->heads)
            return fail_value(r, "num_attention_heads", "it must divide hidden_size");
        a->head_dim = a->width / a->heads;
    }
    LS_TRY(take_size_if(r, "head_dim", &a->head_dim));
    if (llama || smollm || qwen3 || gemma) LS_TRY(take_bool_if(r, "attention_bias", &bias));
    if (llama || smollm) LS_TRY(take_bool_if(r, "mlp_bias", &a->mlp_bias));
    a->qkv_bias = bias || a->family == LS_FAMILY_QWEN2;
    a->o_bias = bias;
    a->qk_norm = qwen3 || gemma;
    LS_TRY(expect_bool(r, "rope_interleaved", false));
    LS_TRY(expect_bool(r, "use_mrope", false));
    if (phi) return read_phi(r, a);
    LS_TRY(expect_one(r, "partial_rotary_factor"));
    if (gemma) return read_gemma(r, a);
    LS_TRY(read_rope(r, of->rope_base, take(r, "rope_parameters"), &a->rope));
    if (a->rope.type == LS_ROPE_YARN && !a->rope.original_context)
        a->rope.original_context = a->context;
    if (smollm) LS_TRY(read_no_rope(r, a));
    return read_window(r, a);
}

static ls_status read_gpt2(reader *r, ls_architecture *a) {
    LS_TRY(take_size(r, "n_embd", &a->width));
    LS_TRY(take_size(r, "n_layer", &a->layers));
    LS_TRY(take_size(r, "n_head", &a->heads));
    LS_TRY(take_size(r, "n_positions", &a->context));
    int64_t n_ctx = a->context;
    LS_TRY(take_size_if(r, "n_ctx", &n_ctx));
    if (n_ctx != a->context) return fail_value(r, "n_ctx", "it must be n_positions");
    if (a->heads < 1 || a->width % a->heads)
        return fail_value(r, "n_head", "it must divide n_embd");
    a->ffn = a->width > 0 && a->width < 1 << 24 ? 4 * a->width : 0;
    LS_TRY(take_size_if(r, "n_inner", &a->ffn));
    a->norm_eps = 1e-5;
    if (take(r, "layer_norm_epsilon")) LS_TRY(take_number(r, "layer_norm_epsilon", &a->norm_eps));
    LS_TRY(expect_text(r, "activation_function", "gelu_new"));
    LS_TRY(expect_bool(r, "scale_attn_weights", true));
    LS_TRY(expect_bool(r, "scale_attn_by_inverse_layer_idx", false));
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
static void drop_defaults(const reader *r, ls_architecture *a) {
    const ls_json *bos = ls_json_get(r->o, "bos_token_id");
    const ls_json *eos = ls_json_get(r->o, "eos_token_id");
    const ls_json *pad = ls_json_get(r->o, "pad_token_id");
    if ((pad && is_null(pad)) || (!pad && a->pad >= a->vocab)) a->pad = LS_TOKEN_NONE;
    if ((bos && is_null(bos)) || (!bos && a->bos >= a->vocab)) a->bos = LS_TOKEN_NONE;
    if ((eos && is_null(eos)) || (!eos && a->neos && a->eos[0] >= a->vocab)) a->neos = 0;
}

ls_status ls_config_json_read(const ls_json *o, const char *what, ls_architecture *a_p,
                              ls_error *e) {
    reader r = {.o = o, .what = what, .e = e};
    ls_architecture a = {0};
    if (!ls_json_is_object(o)) return ls_fail(e, LS_EINVAL, "%s: is not a JSON object", what);
    LS_TRY(read_family(&r, &a));
    LS_TRY(refuse_kinds(&r));
    set_defaults(&a);
    LS_TRY(take_size(&r, "vocab_size", &a.vocab));
    LS_TRY(a.family == LS_FAMILY_GPT2 ? read_gpt2(&r, &a) : read_llama(&r, &a));
    LS_TRY(take_bool_if(&r, "tie_word_embeddings", &a.tied));
    LS_TRY(take_token(&r, "bos_token_id", &a.bos));
    LS_TRY(take_token(&r, "pad_token_id", &a.pad));
    LS_TRY(take_eos(&r, &a));
    LS_TRY(refuse_unknown(&r, "the model"));
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
static ls_status take_setting(reader *r, const char *key, double most, double *value_p) {
    const ls_json *v = take(r, key);
    double value = 0;
    if (!v) return LS_OK;
    if (!ls_json_number(v, &value) || !(value >= 0 && value <= most))
        return fail_value(r, key,
                          most == 1 ? "it must be from 0 to 1" : "it must be from 0 to 1000");
    *value_p = value;
    return LS_OK;
}

static ls_status take_generation(reader *r, ls_generation *g) {
    *g = (ls_generation){0};
    bool draws = true;
    double top_k = 0, temperature = -1;
    LS_TRY(take_setting(r, "temperature", 1000, &temperature));
    LS_TRY(take_setting(r, "top_p", 1, &g->top_p));
    LS_TRY(take_setting(r, "min_p", 1, &g->min_p));
    LS_TRY(take_setting(r, "repetition_penalty", 1000, &g->penalty));
    LS_TRY(take_setting(r, "top_k", 1e9, &top_k));
    LS_TRY(take_bool_if(r, "do_sample", &draws));
    g->top_k = (int64_t)top_k;
    g->temperature = temperature > 0 ? temperature : 0;
    g->greedy = !draws || temperature == 0;
    return LS_OK;
}

ls_status ls_generation_json_read(const ls_json *o, const char *what, ls_architecture *a,
                                  ls_error *e) {
    reader r = {.o = o, .what = what, .e = e};
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
