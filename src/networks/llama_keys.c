/* llama_keys.c - the keys of a config and the architecture that they describe: see llama.h. */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/log.h"
#include "config/key.h"
#include "networks/llama.h"
#include "weights/weights.h"

/* Two thirds of four times the width, in multiples of 64, unless the config says it. */
static int64_t ffn_of(const ls_config *c) {
    return c->model.ffn ? c->model.ffn : (8 * c->model.width / 3 + 63) / 64 * 64;
}

static ls_rotation rotation_of(const ls_config *c) {
    static const ls_rope_type types[] = {[LS_ROPES_DEFAULT] = LS_ROPE_DEFAULT,
                                         [LS_ROPES_LINEAR] = LS_ROPE_LINEAR,
                                         [LS_ROPES_LLAMA3] = LS_ROPE_LLAMA3,
                                         [LS_ROPES_YARN] = LS_ROPE_YARN,
                                         [LS_ROPES_LONGROPE] = LS_ROPE_LONGROPE};
    bool yarn = c->model.rope == LS_ROPES_YARN, usual = c->model.rope_scale == 0;
    ls_rotation r = {.type = types[c->model.rope],
                     .scale = c->model.rope_scale,
                     .exact = yarn && c->model.rope_truncate == LS_OFF,
                     .base = c->model.rope_base,
                     .factor = c->model.rope_factor,
                     .low = c->model.rope_low,
                     .high = c->model.rope_high,
                     .original_context = c->model.rope_original};
    if (yarn && usual) r.scale = ls_rope_scale(r.factor);
    if (r.type == LS_ROPE_LONGROPE && usual) r.scale = ls_longrope_scale(&r);
    return r;
}

bool ls_llama_read_divisors(const char *text, int64_t pairs, float *out) {
    int64_t n = 0;
    bool good = pairs <= LS_ROPE_PAIRS;
    char *all = ls_strdup(text), *rest = *text ? all : NULL;
    for (char *one; good && (one = strsep(&rest, "\n"));) {
        char *end = NULL;
        float x = strtof(one, &end);
        good = n < pairs && *one && !*end && x >= 1e-6f && x <= 1e6f;
        if (good) out[n++] = x;
    }
    free(all);
    return good && n == pairs;
}

static const char *list_of(const float *x, int64_t n) {
    ls_buf text = {0};
    for (int64_t i = 0; i < n; i++)
        ls_buf_printf(&text, "%s%.9g", i ? "\n" : "", ls_shortest_f32(x[i]));
    const char *list = ls_intern(text.data);
    ls_buf_free(&text);
    return list;
}

ls_architecture ls_llama_architecture(const ls_config *c) {
    int64_t heads = c->model.heads, bias = c->model.bias;
    ls_architecture a = {
        .family = LS_FAMILY_LLAMA,
        .layers = c->model.layers,
        .width = c->model.width,
        .ffn = ffn_of(c),
        .heads = heads,
        .kv_heads = c->model.kv_heads ? c->model.kv_heads : heads,
        .head_dim = c->model.head_dim ? c->model.head_dim : c->model.width / heads,
        .vocab = c->model.vocab,
        .context = c->model.context,
        .norm_eps = c->model.norm_eps,
        .rope = rotation_of(c),
        .turned = c->model.rope_dims,
        .no_rope_every = c->model.no_rope_every <= c->model.layers ? c->model.no_rope_every : 0,
        .window = c->model.window,
        .full_every = c->model.window ? c->model.full_attention_every : 0,
        .local_base =
            c->model.window && c->model.full_attention_every ? c->model.rope_local_base : 0,
        .query_scalar = c->model.query_scalar,
        .gemma = c->model.block == LS_BLOCKS_GEMMA3,
        .qkv_bias = bias == LS_BIAS_QKV || bias == LS_BIAS_ATTENTION || bias == LS_BIAS_ALL,
        .o_bias = bias == LS_BIAS_ATTENTION || bias == LS_BIAS_ALL,
        .mlp_bias = bias == LS_BIAS_MLP || bias == LS_BIAS_ALL,
        .qk_norm = c->model.qk_norm,
        .experts = c->model.experts,
        .experts_per_token = c->model.experts ? c->model.experts_per_token : 0,
        .norm_topk = c->model.experts && c->model.norm_topk,
        .router_aux_loss = c->model.experts ? c->model.router_aux_loss : 0,
        .adds_aux_loss = c->model.experts && c->model.router_aux_loss > 0,
        .tied = c->model.head == LS_HEAD_TIED,
        .bos = LS_TOKEN_NONE,
        .pad = LS_TOKEN_NONE};
    if (a.turned == a.head_dim) a.turned = 0;
    const char *const lists[] = {c->model.rope_short, c->model.rope_long};
    for (int k = 0; a.rope.type == LS_ROPE_LONGROPE && k < LS_NROPE_LISTS; k++)
        ls_llama_read_divisors(lists[k], ls_architecture_pairs(&a), a.divisors[k]);
    return a;
}

/* False: no word of model.bias means it. */
static bool bias_of(const ls_architecture *a, ls_bias_kind *bias_p) {
    *bias_p = a->o_bias ? LS_BIAS_ATTENTION : a->qkv_bias ? LS_BIAS_QKV : LS_BIAS_NONE;
    if (a->mlp_bias) *bias_p = a->o_bias ? LS_BIAS_ALL : LS_BIAS_MLP;
    return !(a->o_bias && !a->qkv_bias) && !(a->mlp_bias && a->qkv_bias && !a->o_bias);
}

static ls_status fail_untrained(const ls_config *c, const ls_architecture *a, const char *what,
                                ls_error *e) {
    return ls_fail(e, LS_EINVAL, "model.from: %s: models of family %s%s can't be trained",
                   c->model.from, ls_family_name(a->family), what);
}

static ls_status set_llama(ls_config *c, const ls_architecture *a, ls_error *e) {
    const ls_rotation *r = &a->rope;
    if (!bias_of(a, &c->model.bias)) return fail_untrained(c, a, " with these biases", e);
    c->model.kind = LS_MODEL_LLAMA;
    c->model.kv_heads = a->kv_heads;
    c->model.head_dim = a->head_dim;
    c->model.ffn = a->ffn;
    c->model.norm_eps = a->norm_eps;
    c->model.no_rope_every = a->no_rope_every;
    c->model.window = a->window;
    c->model.full_attention_every = a->full_every;
    if (a->full_every) c->model.rope_local_base = a->local_base;
    c->model.query_scalar = a->query_scalar;
    c->model.block = a->gemma ? LS_BLOCKS_GEMMA3 : LS_BLOCKS_LLAMA;
    c->model.qk_norm = a->qk_norm;
    c->model.experts = a->experts;
    if (a->experts) {
        c->model.experts_per_token = a->experts_per_token;
        c->model.norm_topk = a->norm_topk;
        c->model.router_aux_loss = a->adds_aux_loss ? a->router_aux_loss : 0;
        c->model.router_aux_scope = LS_ROUTERS_ALL;
    }
    c->model.head = a->tied ? LS_HEAD_TIED : LS_HEAD_OWN;
    c->model.rope_base = r->base;
    c->model.rope = r->type == LS_ROPE_LLAMA3     ? LS_ROPES_LLAMA3
                    : r->type == LS_ROPE_YARN     ? LS_ROPES_YARN
                    : r->type == LS_ROPE_LINEAR   ? LS_ROPES_LINEAR
                    : r->type == LS_ROPE_LONGROPE ? LS_ROPES_LONGROPE
                                                  : LS_ROPES_DEFAULT;
    if (r->type != LS_ROPE_DEFAULT) c->model.rope_factor = r->factor;
    if (r->type == LS_ROPE_LLAMA3 || r->type == LS_ROPE_YARN) {
        c->model.rope_low = r->low;
        c->model.rope_high = r->high;
        c->model.rope_original = r->original_context;
    }
    c->model.rope_dims = a->turned;
    if (r->type == LS_ROPE_LONGROPE) {
        c->model.rope_original = r->original_context;
        c->model.rope_scale = r->scale;
        c->model.rope_short = list_of(a->divisors[LS_ROPE_SHORT], ls_architecture_pairs(a));
        c->model.rope_long = list_of(a->divisors[LS_ROPE_LONG], ls_architecture_pairs(a));
    }
    if (r->type == LS_ROPE_YARN) {
        c->model.rope_scale = r->scale;
        c->model.rope_truncate = r->exact ? LS_OFF : LS_ON;
    }
    return LS_OK;
}

/* The sizes that kind gpt2 leaves open are all that its published models differ in. */
static ls_status set_gpt2(ls_config *c, const ls_architecture *a, ls_error *e) {
    if (a->ffn != 4 * a->width)
        return fail_untrained(c, a, " whose feed-forward layer is not 4 times the width", e);
    if (!a->tied) return fail_untrained(c, a, " with a head of its own", e);
    if ((float)a->norm_eps != 1e-5f)
        return fail_untrained(c, a, " with another layer_norm_epsilon than 1e-05", e);
    c->model.kind = LS_MODEL_GPT2;
    return LS_OK;
}

/* A run's config could not be read again with other numbers. */
static ls_status check_numbers(const ls_config *c, ls_error *e) {
    const ls_config_key *k = NULL;
    char range[LS_KEY_RANGE];
    for (int i = 0; (k = ls_config_key_at(i)); i++) {
        if (strncmp(k->name, "model.", 6) != 0 || ls_config_key_in_range(c, k)) continue;
        ls_config_key_write_range(k, range);
        return ls_fail(e, LS_EINVAL, "model.from: %s: its %s is not supported: a config has %s",
                       c->model.from, k->name, range);
    }
    return LS_OK;
}

static ls_status set_keys(ls_config *c, const ls_architecture *a, ls_error *e) {
    LS_TRY((a->family == LS_FAMILY_GPT2 ? set_gpt2 : set_llama)(c, a, e));
    c->model.layers = a->layers;
    c->model.width = a->width;
    c->model.heads = a->heads;
    c->model.vocab = a->vocab;
    if (c->model.context > ls_architecture_positions(a))
        return ls_fail(
            e, LS_EINVAL, "model.context is %lld; %s was trained with at most %lld positions",
            (long long)c->model.context, c->model.from, (long long)ls_architecture_positions(a));
    return check_numbers(c, e);
}

/* ---- keys that are written beside model.from ---- */

/* Training decides these, whatever the model was trained with. */
static bool may_differ(const char *key) {
    return strcmp(key, "model.router_aux_loss") == 0 || strcmp(key, "model.router_aux_scope") == 0;
}

/* 0 is the usual number of these, whatever it is. */
static bool is_usual(const ls_config *c, const ls_config_key *k) {
    const void *at = (const char *)c + k->offset;
    bool may = at == &c->model.kv_heads || at == &c->model.head_dim || at == &c->model.ffn;
    return may && !ls_config_key_whole(c, k);
}

static ls_status fail_other(const ls_config *c, const ls_config *was, const ls_config_key *k,
                            ls_error *e) {
    ls_buf asked = {0}, has = {0};
    ls_config_key_write(was, k, &asked);
    ls_config_key_write(c, k, &has);
    ls_status s =
        ls_fail(e, LS_EINVAL,
                "%s is %.60s, and %.60s in the model of model.from, %.300s: leave the key "
                "out",
                k->name, asked.data, has.data, c->model.from);
    ls_buf_free(&asked);
    ls_buf_free(&has);
    return s;
}

/* A file that is written for another model, and now has model.from by --set, has keys of that: they
 * are named. Else the model's architecture can't be asked for in another way. */
static ls_status compare_written(ls_config *c, const ls_config *was, ls_error *e) {
    ls_buf names = {0};
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < LS_NCONFIG_KEYS; i++) {
        const ls_config_key *k = &ls_config_keys[i];
        bool asked = was->written[i] == LS_WRITTEN, acted = was->written[i] == LS_WRITTEN_AND_ACTS;
        if (!asked && !acted) continue;
        if (strncmp(k->name, "model.", strlen("model.")) != 0 || k->type == LS_KEY_TREE) continue;
        if (ls_config_key_is_equal(c, was, k) || is_usual(was, k)) continue;
        if (may_differ(k->name))
            ls_config_key_copy(c, was, k);
        else if (asked)
            s = fail_other(c, was, k, e);
        else
            ls_buf_printf(&names, "%s%s", names.len ? ", " : "", k->name);
    }
    if (s == LS_OK && names.len)
        ls_log("model.from decides %s; the config's are not used", names.data);
    ls_buf_free(&names);
    return s;
}

ls_status ls_llama_adopt(ls_config *c, ls_error *e) {
    if (!*c->model.from) return LS_OK;
    ls_weights w = {0};
    ls_config *was = LS_NEW(ls_config);
    *was = *c;
    ls_status s = ls_weights_open(c->model.from, &w, e);
    if (s == LS_OK) s = set_keys(c, &w.arch, e);
    if (s == LS_OK) s = compare_written(c, was, e);
    ls_weights_close(&w);
    free(was);
    return s;
}
