/* peft_read.c - see peft_read.h. */
#include "storage/peft_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/suffix.h"
#include "networks/family.h"
#include "storage/adapter_gguf.h"
#include "storage/adapter_numbers.h"
#include "storage/peft_pattern.h"
#include "tensor/stored.h"

static const char PREFIX[] = "base_model.model.";
enum { WEIGHT = sizeof ".weight" - 1 };

static const ls_tensor *find(const ls_safetensors *f, const char *module, const char *rest) {
    char *name = ls_format("%s%s%s", PREFIX, module, rest);
    const ls_tensor *t = ls_safetensors_find(f, name);
    free(name);
    return t;
}

/* ---- the matrices of Phi-3, each of which is several layers here ---- */

/* As it is in Phi-3's files, if it can be there. */
static bool as_phi3(const ls_config *c, ls_architecture *a_p) {
    ls_error none = {0};
    return ls_family_of(c, a_p, &none) == LS_OK && ls_family_as_phi3(a_p);
}

/* Is the tensor that of a module which peft means by this name? */
static bool is_meant(const char *tensor, const char *module) {
    size_t all = strlen(tensor) - WEIGHT, n = strlen(module);
    return n <= all && strncmp(tensor + all - n, module, n) == 0 &&
           (n == all || tensor[all - n - 1] == '.');
}

/* The name of the tensor in the files that has a joined layer's. False: it is not joined. */
static bool find_joined(const ls_architecture *a, const char *module, ls_name *id_p) {
    for (int i = 0; ls_name_at(a, i, id_p); i++)
        if (strcmp(id_p->file, id_p->name) != 0 && is_meant(id_p->file, module)) return true;
    return false;
}

/* ---- adapter_config.json ---- */

typedef struct reading {
    ls_config *c;
    const ls_json *o;
    const char *path; /* of the file */
} reading;

/* What becomes of a key. There is no other: a key that is not listed is refused, for it may change
 * what the adapter computes, or how it is trained. */
typedef enum rule {
    USED,     /* read below */
    HARMLESS, /* changes neither, whatever it is */
    EMPTY,    /* only null, false, and lists, objects and texts without anything */
} rule;

/* Source: LoraConfig and PeftConfig of peft 0.3 to 0.21. Keys of initial weights have no effect
 * here, apart from init_lora_weights, and megatron_core has none without megatron_config. */
static const struct {
    const char *name;
    rule rule;
} keys[] = {
    {"alora_invocation_tokens", EMPTY},
    {"alpha_pattern", USED},
    {"arrow_config", EMPTY},
    {"auto_mapping", HARMLESS},
    {"base_model_name_or_path", USED},
    {"bias", USED},
    {"corda_config", HARMLESS},
    {"enable_lora", EMPTY},
    {"ensure_weight_tying", USED},
    {"eva_config", HARMLESS},
    {"exclude_modules", USED},
    {"fan_in_fan_out", EMPTY},
    {"inference_mode", HARMLESS},
    {"init_lora_weights", USED},
    {"kasa_config", EMPTY},
    {"layer_replication", EMPTY},
    {"layers_pattern", USED},
    {"layers_to_transform", USED},
    {"loftq_config", HARMLESS},
    {"lora_alpha", USED},
    {"lora_bias", EMPTY},
    {"lora_dropout", USED},
    {"lora_ga_config", HARMLESS},
    {"megatron_config", EMPTY},
    {"megatron_core", HARMLESS},
    {"merge_weights", HARMLESS},
    {"modules_to_save", USED},
    {"monteclora_config", EMPTY},
    {"peft_type", USED},
    {"peft_version", HARMLESS},
    {"qalora_group_size", HARMLESS},
    {"r", USED},
    {"rank_pattern", USED},
    {"revision", HARMLESS},
    {"runtime_config", HARMLESS},
    {"target_modules", USED},
    {"target_parameters", EMPTY},
    {"task_type", USED},
    {"trainable_token_indices", EMPTY},
    {"use_bdlora", EMPTY},
    {"use_dora", USED},
    {"use_qalora", EMPTY},
    {"use_rslora", USED},
    {"velora_config", EMPTY},
};

static bool rule_of(const char *name, rule *rule_p) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0) {
            *rule_p = keys[i].rule;
            return true;
        }
    return false;
}

static bool is_empty(const ls_json *v) {
    if (ls_json_is_array(v) || ls_json_is_object(v)) return ls_json_count(v) == 0;
    const char *text = ls_json_text(v);
    return text ? !*text : ls_json_is_null(v) || (ls_json_is_bool(v) && !ls_json_is_true(v));
}

static ls_status fail_key(const reading *r, const char *key, const char *why, ls_error *e) {
    const ls_json *value = ls_json_get(r->o, key);
    ls_buf text = {0};
    if (value) ls_json_write(value, 0, &text);
    ls_status s = ls_fail(e, LS_EINVAL, "%s: %s is %.60s; %s", r->path, key,
                          text.len ? text.data : "missing", why);
    ls_buf_free(&text);
    return s;
}

static ls_status check_keys(const reading *r, ls_error *e) {
    const char *name = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(r->o, it, &name, &value));) {
        rule is = HARMLESS;
        bool known = rule_of(name, &is);
        if (!known && !ls_json_is_null(value))
            return ls_fail(e, LS_EINVAL,
                           "%s: the key %.60s is not known: it may change what the adapter "
                           "computes; remove it if it does not",
                           r->path, name);
        if (is == EMPTY && !is_empty(value))
            return fail_key(r, name, "adapters here can't have it; it must be empty", e);
    }
    return LS_OK;
}

/* A text, which a missing key or null leaves NULL. */
static ls_status take_text(const reading *r, const char *key, const char **text_p, ls_error *e) {
    const ls_json *v = ls_json_get(r->o, key);
    *text_p = ls_json_text(v);
    return !v || *text_p || ls_json_is_null(v) ? LS_OK : fail_key(r, key, "it must be a text", e);
}

/* true or false; else it stays. */
static ls_status take_bool(const reading *r, const char *key, bool *value_p, ls_error *e) {
    const ls_json *v = ls_json_get(r->o, key);
    if (!v || ls_json_is_null(v)) return LS_OK;
    if (!ls_json_is_bool(v)) return fail_key(r, key, "it must be true or false", e);
    *value_p = ls_json_is_true(v);
    return LS_OK;
}

/* With these peft gives A and B their first values, and the file has later ones. All others change
 * the weights of the base as well, or train one matrix alone. */
static ls_status check_init(const reading *r, ls_error *e) {
    static const char *const same[] = {"gaussian", "eva", "orthogonal"},
                             key[] = "init_lora_weights";
    const ls_json *v = ls_json_get(r->o, key);
    const char *word = ls_json_text(v);
    for (size_t i = 0; word && i < sizeof same / sizeof *same; i++)
        if (strcmp(word, same[i]) == 0) return LS_OK;
    if (!v || ls_json_is_null(v) || ls_json_is_bool(v)) return LS_OK;
    return fail_key(r, key,
                    "true, false, gaussian, eva and orthogonal are possible, which leave the "
                    "base's weights as they are; peft's save_pretrained() converts others with "
                    "path_initial_model_for_weight_conversion",
                    e);
}

static ls_status check_fixed(const reading *r, ls_error *e) {
    const char *type = NULL, *bias = NULL, *task = NULL;
    LS_TRY(take_text(r, "peft_type", &type, e));
    LS_TRY(take_text(r, "bias", &bias, e));
    LS_TRY(take_text(r, "task_type", &task, e));
    if (!type || strcmp(type, "LORA") != 0)
        return ls_fail(e, LS_EINVAL, "%s: peft_type is %.40s; adapters of type LORA can be trained",
                       r->path, type ? type : "missing");
    LS_TRY(check_keys(r, e));
    if (bias && strcmp(bias, "none") != 0) return fail_key(r, "bias", "none is possible", e);
    if (task && strcmp(task, "CAUSAL_LM") != 0)
        return fail_key(r, "task_type", "CAUSAL_LM is possible", e);
    return check_init(r, e);
}

/* An adapter that names the directory of another model. A name of a hub can't be compared. */
static ls_status check_base(const reading *r, ls_error *e) {
    const char *base = ls_json_text(ls_json_get(r->o, "base_model_name_or_path"));
    char *real = base && *base ? realpath(base, NULL) : NULL;
    bool same = !real || strcmp(real, r->c->model.from) == 0;
    free(real);
    if (same) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: is an adapter of %s, and model.from is %s", r->path, base,
                   r->c->model.from);
}

/* Appends a name to a list of the config. */
static ls_status append(const reading *r, const char **list, const char *key, const char *name,
                        ls_error *e) {
    if (!name || !*name || strchr(name, '\n'))
        return ls_fail(e, LS_EINVAL, "%s: %s is not a list of names", r->path, key);
    char *all = ls_format("%s%s%s", *list, **list ? "\n" : "", name);
    bool fits = strlen(all) < LS_CONFIG_TREE;
    if (fits) *list = ls_intern(all);
    free(all);
    if (fits) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s has more than %d bytes", r->path, key, LS_CONFIG_TREE - 1);
}

/* A joined one means its parts: qkv_proj means q_proj, k_proj and v_proj. */
static ls_status take_target(const reading *r, const char *module, ls_error *e) {
    const char **list = &r->c->lora.targets;
    ls_architecture a;
    ls_name id;
    char part[LS_NAME_MOST];
    if (!module || !*module || !as_phi3(r->c, &a) || !find_joined(&a, module, &id))
        return append(r, list, "target_modules", module, e);
    size_t before = strlen(id.file) - WEIGHT - strlen(module);
    for (int k = 0; ls_name_part(&a, id.file, k, part); k++) {
        part[strlen(part) - WEIGHT] = 0;
        LS_TRY(append(r, list, "target_modules", part + before, e));
    }
    return LS_OK;
}

/* Are the layers not named, but said by an expression or by numbers? Then they are those of which
 * the file has adapters. */
static bool is_by_file(const reading *r) {
    static const char *const keys_by_file[] = {"exclude_modules", "layers_to_transform"};
    const char *word = ls_json_text(ls_json_get(r->o, "target_modules"));
    bool is = word && strcmp(word, "all-linear") != 0;
    for (int i = 0; i < 2; i++) {
        const ls_json *value = ls_json_given(r->o, keys_by_file[i]);
        is = is || (value && !is_empty(value));
    }
    return is;
}

static ls_status take_targets(const reading *r, ls_error *e) {
    const ls_json *list = ls_json_get(r->o, "target_modules");
    const char *word = ls_json_text(list);
    if (!word && !ls_json_count(list))
        return ls_fail(e, LS_EINVAL, "%s: has no target_modules", r->path);
    if (is_by_file(r)) return LS_OK;
    if (word) return append(r, &r->c->lora.targets, "target_modules", word, e);
    for (size_t i = 0; i < ls_json_count(list); i++)
        LS_TRY(take_target(r, ls_json_text(ls_json_at(list, i)), e));
    return LS_OK;
}

/* peft trains each module whose name ends so, at a dot or not, and all that is in it: "norm" also
 * means input_layernorm. This is the pattern of their parameters. */
static ls_status append_saved(const reading *r, const char *name, ls_error *e) {
    ls_buf pattern = {0};
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0) name += sizeof PREFIX - 1;
    ls_buf_append(&pattern, "*", 1);
    for (const char *c = name; *c; c++)
        ls_buf_printf(&pattern, "%s%c", strchr("*?[\\", *c) ? "\\" : "", *c);
    ls_buf_append(&pattern, ".*", 2);
    ls_status s = append(r, &r->c->lora.train, "modules_to_save", pattern.data, e);
    ls_buf_free(&pattern);
    return s;
}

/* A tied embedding is two layers in peft, and one here. */
static ls_status take_saved(const reading *r, ls_error *e) {
    const ls_json *list = ls_json_get(r->o, "modules_to_save");
    bool tied = r->c->model.head == LS_HEAD_TIED, head = false, embedding = false, ties = false;
    LS_TRY(take_bool(r, "ensure_weight_tying", &ties, e));
    if (list && !ls_json_is_array(list) && !ls_json_is_null(list))
        return fail_key(r, "modules_to_save", "it must be a list of names", e);
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        if (!name || !*name || strchr(name, '\n'))
            return fail_key(r, "modules_to_save", "it must be a list of names", e);
        bool is_head = ls_has_suffix("base_model.model.lm_head", name);
        bool is_embedding = ls_has_suffix("base_model.model.model.embed_tokens", name);
        head = head || is_head;
        embedding = embedding || is_embedding;
        if (!is_head || !tied || is_embedding) LS_TRY(append_saved(r, name, e));
    }
    if (tied && head && !embedding && ties) LS_TRY(append_saved(r, "embed_tokens", e));
    if (!tied || head == embedding || ties) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%s: modules_to_save has one of embed_tokens and lm_head, which are one matrix in "
        "this model",
        r->path);
}

/* What is missing has peft's default. */
static ls_status take_numbers(const reading *r, ls_error *e) {
    ls_config *c = r->c;
    const ls_json *dropout = ls_json_get(r->o, "lora_dropout"), *rank = ls_json_get(r->o, "r");
    const ls_json *alpha = ls_json_get(r->o, "lora_alpha");
    bool rs = false, dora = false;
    c->lora.rank = 8;
    c->lora.alpha = 8;
    if (rank && !ls_json_integer(rank, &c->lora.rank)) c->lora.rank = 0;
    if (c->lora.rank < 1 || c->lora.rank > 65536) return fail_key(r, "r", "it is no rank", e);
    if ((alpha && !ls_json_number(alpha, &c->lora.alpha)) || !(c->lora.alpha > 0))
        return fail_key(r, "lora_alpha", "it is not a number above 0", e);
    c->lora.dropout = 0;
    if (dropout && !ls_json_is_null(dropout) && !ls_json_number(dropout, &c->lora.dropout))
        return fail_key(r, "lora_dropout", "it must be a number", e);
    if (!(c->lora.dropout >= 0 && c->lora.dropout < 1))
        return fail_key(r, "lora_dropout", "it is not from 0 to below 1", e);
    LS_TRY(take_bool(r, "use_rslora", &rs, e));
    LS_TRY(take_bool(r, "use_dora", &dora, e));
    c->lora.rs = rs;
    c->lora.dora = dora;
    return LS_OK;
}

/* ---- layers that the file says ---- */

typedef struct patterns {
    ls_peft_pattern *rank, *alpha;
} patterns;

static ls_status read_pattern(const reading *r, const char *key, ls_peft_pattern **p_p,
                              ls_error *e) {
    char *where = ls_format("%s: %s", r->path, key);
    ls_status s = ls_peft_pattern_read(ls_json_get(r->o, key), key[0] == 'r', where, p_p, e);
    free(where);
    return s;
}

static bool has_a(const ls_safetensors *f, char *tensor) {
    tensor[strlen(tensor) - WEIGHT] = 0;
    return find(f, tensor, ".lora_A.weight") != NULL;
}

/* The layers of which the file has an adapter, or one of the tensor that they are in. */
static ls_status number_layers(const reading *r, const ls_safetensors *f, const patterns *p,
                               ls_error *e) {
    const double rank = (double)r->c->lora.rank, alpha = r->c->lora.alpha;
    ls_adapter_numbers all = {.rank = r->c->lora.rank, .alpha = alpha};
    ls_architecture a;
    ls_name id;
    char layer[LS_NAME_MOST];
    LS_TRY(ls_family_of(r->c, &a, e));
    (void)ls_family_as_phi3(&a);
    for (int i = 0; ls_name_at(&a, i, &id); i++) {
        if (!ls_adapter_takes(&id, layer)) continue;
        const char *module = has_a(f, id.name) ? id.name : has_a(f, id.file) ? id.file : NULL;
        if (module)
            ls_adapter_numbers_add(&all, layer,
                                   (int64_t)ls_peft_pattern_number(p->rank, module, rank),
                                   ls_peft_pattern_number(p->alpha, module, alpha));
    }
    bool found = ls_peft_pattern_is_found(p->rank) && ls_peft_pattern_is_found(p->alpha);
    ls_status s = found ? ls_adapter_numbers_set(&all, r->path, r->c, e)
                        : ls_fail(e, LS_EINVAL,
                                  "%s: rank_pattern or alpha_pattern has expressions that are too "
                                  "large; name the layers",
                                  r->path);
    if (s == LS_OK && is_by_file(r)) s = ls_adapter_numbers_target(&all, &a, r->path, r->c, e);
    if (s == LS_OK && !all.n)
        s = ls_fail(e, LS_EINVAL,
                    "%s: adapter_model.safetensors has no adapter of a linear layer "
                    "of this model",
                    r->path);
    free(all.list);
    return s;
}

static ls_status take_layers(const reading *r, ls_error *e) {
    patterns p = {NULL, NULL};
    ls_safetensors f;
    bool reads = is_by_file(r) || ls_json_count(ls_json_get(r->o, "rank_pattern")) ||
                 ls_json_count(ls_json_get(r->o, "alpha_pattern"));
    char *path = ls_format("%s/adapter_model.safetensors", r->c->model.adapter);
    r->c->lora.rank_pattern = r->c->lora.alpha_pattern = "";
    ls_status s = read_pattern(r, "rank_pattern", &p.rank, e);
    if (s == LS_OK) s = read_pattern(r, "alpha_pattern", &p.alpha, e);
    if (s == LS_OK && reads && (s = ls_safetensors_open_any(path, &f, e)) == LS_OK) {
        s = number_layers(r, &f, &p, e);
        ls_safetensors_close(&f);
    }
    ls_peft_pattern_free(p.rank);
    ls_peft_pattern_free(p.alpha);
    free(path);
    return s;
}

static ls_status take(const reading *r, ls_error *e) {
    LS_TRY(check_fixed(r, e));
    LS_TRY(check_base(r, e));
    LS_TRY(take_numbers(r, e));
    LS_TRY(take_targets(r, e));
    LS_TRY(take_layers(r, e));
    return take_saved(r, e);
}

ls_status ls_peft_adopt(ls_config *c, ls_error *e) {
    ls_json *o = NULL;
    char *path = ls_format("%s/adapter_config.json", c->model.adapter);
    ls_status s = ls_json_read(path, 1 << 20, &o, e);
    if (s == LS_OK && !o) s = ls_fail(e, LS_EIO, "%s: does not exist", path);
    if (s == LS_OK) s = take(&(reading){c, o, path}, e);
    ls_json_free(o);
    free(path);
    return s;
}

/* ---- adapter_model.safetensors ---- */

typedef struct loading {
    const ls_safetensors *f;
    const char *path; /* of the file */
    const ls_train_state *s;
    const ls_architecture *phi3; /* or NULL */
} loading;

/* Where a file has a parameter: all of a tensor, or, from row `first` on, some of its rows. */
typedef struct source {
    const ls_tensor *t;
    int64_t first, rows;
} source;

/* Joined matrices have one A. */
static source source_of(const loading *x, const ls_param *p) {
    source whole = {find(x->f, p->name, ""), 0, p->dims[0]};
    ls_name id;
    bool is_a = false;
    if (whole.t || !p->adapter || !x->phi3 || !ls_adapter_gguf_base(x->phi3, p, &id, &is_a))
        return whole;
    const char *rest = p->name + strlen(id.name) - WEIGHT;
    id.file[strlen(id.file) - WEIGHT] = 0;
    return (source){find(x->f, id.file, rest), id.first, is_a ? p->dims[0] : id.rows};
}

/* *n_p: tensors of the file that have been read, each of which counts once. */
static ls_status load_param(const loading *x, const ls_param *p, size_t *n_p, ls_error *e) {
    const source from = source_of(x, p);
    const ls_tensor *t = from.t;
    bool same = t && t->ndims == p->ndims && t->type != LS_NBLOCK_TYPES && t->dims[0] == from.rows;
    for (int d = 1; same && d < p->ndims; d++) same = t->dims[d] == p->dims[d];
    if (!same)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no tensor %s%s of the model's shape: it is the adapter of another "
                       "model",
                       x->path, PREFIX, p->name);
    float *room = LS_NEW_ARRAY(float, p->count);
    int64_t width = (int64_t)p->count / p->dims[0];
    int64_t first = from.rows == p->dims[0] ? 0 : from.first * width;
    ls_stored_read(ls_kernels_at(0), (ls_stored){.data = t->data, .type = t->type}, first,
                   (int64_t)p->count, room);
    ls_state_put(x->s, x->s->flat.of[0], p->offset, p->offset + p->count, room);
    free(room);
    *n_p += from.first == 0;
    return LS_OK;
}

static ls_status load_all(const loading *x, ls_error *e) {
    const ls_safetensors *f = x->f;
    const char *path = x->path;
    size_t n = 0;
    for (int i = 0; i < x->s->model->nparams; i++)
        if (!x->s->model->params[i].frozen) LS_TRY(load_param(x, &x->s->model->params[i], &n, e));
    const ls_tensor *head = ls_safetensors_find(f, "base_model.model.lm_head.weight");
    const ls_tensor *same = ls_safetensors_find(f, "base_model.model.model.embed_tokens.weight");
    bool tied = head && same && head->count == same->count && head->type == same->type &&
                memcmp(head->data, same->data, ls_tensor_nbytes(head)) == 0;
    if (f->n == n || (f->n == n + 1 && tied)) return LS_OK;
    if (f->n == n + 1 && head && same)
        return ls_fail(e, LS_EINVAL,
                       "%s: embed_tokens and lm_head differ, and are one matrix in this model",
                       path);
    return ls_fail(e, LS_EINVAL, "%s: has %zu tensors, and the model trains %zu of them", path,
                   f->n, n);
}

ls_status ls_peft_load(const ls_config *c, const ls_train_state *s, ls_error *e) {
    ls_safetensors f;
    ls_architecture a;
    char *path = ls_format("%s/adapter_model.safetensors", c->model.adapter);
    ls_status status = ls_safetensors_open_any(path, &f, e);
    if (status == LS_OK) {
        status = load_all(&(loading){&f, path, s, as_phi3(c, &a) ? &a : NULL}, e);
        if (status == LS_OK) status = ls_guard_check(e);
        ls_safetensors_close(&f);
    }
    free(path);
    return status;
}
