/* config_rope.c - see config_rope.h.
 *
 * Source: modeling_rope_utils.py and configuration_phi3.py of transformers 4 and 5.
 */
#include "weights/config_rope.h"

#include <stdlib.h>
#include <string.h>

/* Of Gemma 3: the base of the rotation in layers with a window. Of Phi-3:
 * original_max_position_embeddings. */
static const double local_base = 1e4;
enum { PHI_ORIGINAL = 4096 };

static ls_status rope_type_of(ls_published_keys *r, ls_rope_type *t_p) {
    const ls_json *v = ls_published_take(r, "rope_type"), *old = ls_published_take(r, "type");
    const char *name = ls_json_text(v ? v : old);
    if (v && old && (!name || !ls_json_text(old) || strcmp(name, ls_json_text(old)) != 0))
        return ls_published_fail(r, "type", "it differs from rope_type");
    for (int i = LS_ROPE_DEFAULT; name && i < LS_ROPE_LONGROPE; i++)
        if (strcmp(name, ls_rope_type_name((ls_rope_type)i)) == 0) {
            *t_p = (ls_rope_type)i;
            return LS_OK;
        }
    if (!v && !old) {
        *t_p = LS_ROPE_DEFAULT;
        return LS_OK;
    }
    return ls_published_fail(r, v ? "rope_type" : "type",
                             "default, linear, llama3 and yarn are supported");
}

/* As transformers reads them: a number that is 0 stands for none. */
static ls_status read_yarn(ls_published_keys *r, ls_rotation *rope) {
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
        if (ls_published_take(r, numbers[i].key))
            LS_TRY(ls_published_number(r, numbers[i].key, numbers[i].value_p));
        if (*numbers[i].value_p == 0) *numbers[i].value_p = numbers[i].usual;
    }
    LS_TRY(ls_published_size_if(r, "original_max_position_embeddings", &rope->original_context));
    LS_TRY(ls_published_bool_if(r, "truncate", &truncate));
    rope->exact = !truncate;
    rope->scale = ls_rope_scale(rope->factor);
    if (mscale != 0 && all != 0 && rope->factor > 1)
        rope->scale = (mscale * (rope->scale - 1) + 1) / (all * (rope->scale - 1) + 1);
    if (!ls_published_take(r, "attention_factor")) return LS_OK;
    LS_TRY(ls_published_number(r, "attention_factor", &scale));
    rope->scale = scale;
    return LS_OK;
}

/* rope_scaling or rope_parameters. The base stays if the object has none. */
static ls_status read_rope_object(const ls_published_keys *outer, const char *key, const ls_json *o,
                                  ls_rotation *rope) {
    char *what = ls_format("%s: %s", outer->what, key);
    ls_published_keys r = {.o = o, .what = what, .e = outer->e};
    ls_status s = LS_OK;
    if (!ls_json_is_object(o)) s = ls_fail(r.e, LS_EINVAL, "%s must be an object", what);
    if (s == LS_OK) s = rope_type_of(&r, &rope->type);
    if (s == LS_OK && ls_published_take(&r, "rope_theta"))
        s = ls_published_number(&r, "rope_theta", &rope->base);
    if (s == LS_OK && rope->type != LS_ROPE_DEFAULT)
        s = ls_published_number(&r, "factor", &rope->factor);
    if (s == LS_OK && rope->type == LS_ROPE_LLAMA3) {
        s = ls_published_number(&r, "low_freq_factor", &rope->low);
        if (s == LS_OK) s = ls_published_number(&r, "high_freq_factor", &rope->high);
        if (s == LS_OK)
            s = ls_published_size(&r, "original_max_position_embeddings", &rope->original_context);
    }
    if (s == LS_OK && rope->type == LS_ROPE_YARN) s = read_yarn(&r, rope);
    if (s == LS_OK) s = ls_published_expect_one(&r, "partial_rotary_factor");
    if (s == LS_OK) s = ls_published_refuse_unknown(&r, "the rotation");
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
ls_status ls_config_rope_read(ls_published_keys *r, double base, const ls_json *parameters,
                              ls_rotation *rope) {
    const ls_json *theta = ls_published_take(r, "rope_theta"),
                  *scaling = ls_published_take(r, "rope_scaling");
    ls_rotation old = {.type = LS_ROPE_DEFAULT, .base = base};
    if (theta) LS_TRY(ls_published_number(r, "rope_theta", &old.base));
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
ls_status ls_config_rope_read_gemma(ls_published_keys *r, double base, ls_rotation *rope,
                                    double *local_p) {
    static const char full[] = "full_attention", sliding[] = "sliding_attention";
    const ls_json *both = ls_published_take(r, "rope_parameters"), *value = NULL;
    const char *key = NULL;
    ls_rotation local = {.type = LS_ROPE_DEFAULT, .base = local_base};
    bool parted =
        ls_json_is_object(both) && (ls_json_get(both, full) || ls_json_get(both, sliding));
    const ls_json *written = ls_published_take(r, "rope_local_base_freq");
    if (written) LS_TRY(ls_published_number(r, "rope_local_base_freq", &local.base));
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
    return ls_config_rope_read(r, base, parted ? ls_json_get(both, full) : both, rope);
}

/* ---- the rotation of Phi-3 ---- */

/* The part of a head that is turned; *part_p: what another place of the file says, or 0. */
static ls_status take_part(ls_published_keys *r, double *part_p) {
    static const char key[] = "partial_rotary_factor";
    double part = 0;
    if (!ls_published_take(r, key)) return LS_OK;
    LS_TRY(ls_published_number(r, key, &part));
    if (!(part > 0 && part <= 1))
        return ls_published_fail(r, key, "it must be above 0 and at most 1");
    if (*part_p != 0 && part != *part_p)
        return ls_published_fail(r, key, "it differs from the other one of the file");
    *part_p = part;
    return LS_OK;
}

static ls_status take_divisors(ls_published_keys *r, const char *key, int64_t pairs, float *out) {
    const ls_json *list = ls_published_take(r, key);
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
static ls_status phi_type_of(ls_published_keys *r, ls_rope_type *t_p) {
    const ls_json *v = ls_published_take(r, "rope_type"), *old = ls_published_take(r, "type");
    const char *name = ls_json_text(v ? v : old);
    if (v && old && (!name || !ls_json_text(old) || strcmp(name, ls_json_text(old)) != 0))
        return ls_published_fail(r, "type", "it differs from rope_type");
    bool longrope = name && (strcmp(name, "longrope") == 0 || strcmp(name, "su") == 0);
    if (!longrope && (v || old) && !(name && strcmp(name, "default") == 0))
        return ls_published_fail(r, v ? "rope_type" : "type",
                                 "default and longrope (su) are supported in the family phi3");
    *t_p = longrope ? LS_ROPE_LONGROPE : LS_ROPE_DEFAULT;
    return LS_OK;
}

static void set_turned(ls_architecture *a, double part) {
    int64_t turned = (int64_t)((double)a->head_dim * part);
    a->turned = turned == a->head_dim ? 0 : turned;
}

static ls_status take_longrope(ls_published_keys *r, ls_architecture *a) {
    ls_rotation *rope = &a->rope;
    int64_t pairs = ls_architecture_pairs(a), original = rope->original_context;
    LS_TRY(take_divisors(r, "short_factor", pairs, a->divisors[LS_ROPE_SHORT]));
    LS_TRY(take_divisors(r, "long_factor", pairs, a->divisors[LS_ROPE_LONG]));
    LS_TRY(ls_published_size_if(r, "original_max_position_embeddings", &original));
    if (original != rope->original_context)
        return ls_published_fail(
            r, "original_max_position_embeddings",
            "it differs from that of the whole, which is 4096 where it is left out");
    if (original < 2)
        return ls_published_fail(r, "original_max_position_embeddings", "it is too small");
    rope->factor = (double)a->context / (double)original;
    if (ls_published_take(r, "factor")) LS_TRY(ls_published_number(r, "factor", &rope->factor));
    rope->scale = ls_longrope_scale(rope);
    return ls_published_take(r, "attention_factor")
               ? ls_published_number(r, "attention_factor", &rope->scale)
               : LS_OK;
}

/* rope_scaling or rope_parameters. */
static ls_status read_phi_object(const ls_published_keys *outer, const char *key, double *part_p,
                                 ls_architecture *a) {
    char *what = ls_format("%s: %s", outer->what, key);
    ls_published_keys r = {.o = ls_json_get(outer->o, key), .what = what, .e = outer->e};
    ls_status s = LS_OK;
    if (!ls_json_is_object(r.o)) s = ls_fail(r.e, LS_EINVAL, "%s must be an object", what);
    if (s == LS_OK) s = phi_type_of(&r, &a->rope.type);
    if (s == LS_OK && ls_published_take(&r, "rope_theta"))
        s = ls_published_number(&r, "rope_theta", &a->rope.base);
    if (s == LS_OK) s = take_part(&r, part_p);
    if (s == LS_OK) set_turned(a, *part_p != 0 ? *part_p : 1);
    if (s == LS_OK && a->rope.type == LS_ROPE_LONGROPE) s = take_longrope(&r, a);
    if (s == LS_OK) ls_published_take(&r, "original_max_position_embeddings");
    if (s == LS_OK) s = ls_published_refuse_unknown(&r, "the rotation");
    free(what);
    if (a->rope.type == LS_ROPE_DEFAULT) a->rope.original_context = 0;
    return s;
}

ls_status ls_config_rope_read_phi(ls_published_keys *r, double base, ls_architecture *a) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    const ls_json *theta = ls_published_take(r, "rope_theta");
    double part = 0;
    bool has = false;
    a->rope =
        (ls_rotation){.type = LS_ROPE_DEFAULT, .base = base, .original_context = PHI_ORIGINAL};
    LS_TRY(ls_published_size_if(r, "original_max_position_embeddings", &a->rope.original_context));
    if (theta) LS_TRY(ls_published_number(r, "rope_theta", &a->rope.base));
    LS_TRY(take_part(r, &part));
    ls_architecture is = *a;
    for (int i = 0; i < 2; i++) {
        ls_architecture x = *a;
        if (!ls_published_take(r, keys[i])) continue;
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
        return ls_published_fail(r, "partial_rotary_factor",
                                 "it turns no pair of a head's elements");
    *a = is;
    return LS_OK;
}
