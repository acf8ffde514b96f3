/* peft_read.c - see peft_read.h. */
#include "storage/peft_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "source/guard.h"
#include "tensor/stored.h"

static const char PREFIX[] = "base_model.model.";

/* ---- adapter_config.json ---- */

typedef struct reading {
    ls_config *c;
    const ls_json *o;
    const char *path; /* of the file */
} reading;

/* Keys that change what an adapter computes, and their only values that are possible here. */
static ls_status check_fixed(const reading *r, ls_error *e) {
    static const char *const empty[] = {"rank_pattern",        "alpha_pattern",
                                        "layers_to_transform", "layers_pattern",
                                        "exclude_modules",     "target_parameters",
                                        "layer_replication",   "trainable_token_indices",
                                        "megatron_config",     "alora_invocation_tokens",
                                        "arrow_config"};
    const char *type = ls_json_text(ls_json_get(r->o, "peft_type"));
    const char *bias = ls_json_text(ls_json_get(r->o, "bias"));
    if (!type || strcmp(type, "LORA") != 0)
        return ls_fail(e, LS_EINVAL, "%s: peft_type is %s; adapters of type LORA can be trained",
                       r->path, type ? type : "missing");
    if (bias && strcmp(bias, "none") != 0)
        return ls_fail(e, LS_EINVAL, "%s: bias is %.40s; none is possible", r->path, bias);
    if (ls_json_is_true(ls_json_get(r->o, "fan_in_fan_out")) ||
        ls_json_is_true(ls_json_get(r->o, "lora_bias")))
        return ls_fail(e, LS_EINVAL, "%s: fan_in_fan_out and lora_bias are not possible", r->path);
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const ls_json *v = ls_json_get(r->o, empty[i]);
        if (v && (ls_json_count(v) || ls_json_text(v)))
            return ls_fail(e, LS_EINVAL, "%s: %s is set; adapters here have none", r->path,
                           empty[i]);
    }
    return LS_OK;
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
static ls_status append(const reading *r, char *list, const char *key, const char *name,
                        ls_error *e) {
    size_t used = strlen(list);
    if (!name || !*name || strchr(name, '\n'))
        return ls_fail(e, LS_EINVAL, "%s: %s is not a list of names", r->path, key);
    if (used + strlen(name) + 2 > LS_CONFIG_TEXT)
        return ls_fail(e, LS_EINVAL, "%s: %s has more than %d bytes", r->path, key, LS_CONFIG_TEXT);
    snprintf(list + used, LS_CONFIG_TEXT - used, "%s%s", used ? "\n" : "", name);
    return LS_OK;
}

static ls_status take_targets(const reading *r, ls_error *e) {
    const ls_json *list = ls_json_get(r->o, "target_modules");
    const char *word = ls_json_text(list);
    if (word && strcmp(word, "all-linear") != 0)
        return ls_fail(e, LS_EINVAL, "%s: target_modules is a regular expression; name the layers",
                       r->path);
    if (!word && !ls_json_count(list))
        return ls_fail(e, LS_EINVAL, "%s: has no target_modules", r->path);
    if (word) return append(r, r->c->lora.targets, "target_modules", word, e);
    for (size_t i = 0; i < ls_json_count(list); i++)
        LS_TRY(
            append(r, r->c->lora.targets, "target_modules", ls_json_text(ls_json_at(list, i)), e));
    return LS_OK;
}

/* A tied embedding is two layers in peft, and one here. */
static ls_status take_saved(const reading *r, ls_error *e) {
    const ls_json *list = ls_json_get(r->o, "modules_to_save");
    bool tied = r->c->model.head == LS_HEAD_TIED, head = false, embedding = false;
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *name = ls_json_text(ls_json_at(list, i));
        bool is_head = name && strcmp(name, "lm_head") == 0;
        head = head || is_head;
        embedding = embedding || (name && strstr(name, "embed_tokens"));
        if (!is_head || !tied) LS_TRY(append(r, r->c->lora.train, "modules_to_save", name, e));
    }
    if (!tied || head == embedding) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%s: modules_to_save has one of embed_tokens and lm_head, which are one matrix in "
        "this model",
        r->path);
}

static ls_status take_numbers(const reading *r, ls_error *e) {
    ls_config *c = r->c;
    if (!ls_json_integer(ls_json_get(r->o, "r"), &c->lora.rank) || c->lora.rank < 1 ||
        c->lora.rank > 65536)
        return ls_fail(e, LS_EINVAL, "%s: r is no rank", r->path);
    if (!ls_json_number(ls_json_get(r->o, "lora_alpha"), &c->lora.alpha) || !(c->lora.alpha > 0))
        return ls_fail(e, LS_EINVAL, "%s: lora_alpha is not a number above 0", r->path);
    if (!ls_json_number(ls_json_get(r->o, "lora_dropout"), &c->lora.dropout)) c->lora.dropout = 0;
    if (!(c->lora.dropout >= 0 && c->lora.dropout < 1))
        return ls_fail(e, LS_EINVAL, "%s: lora_dropout is not from 0 to below 1", r->path);
    c->lora.rs = ls_json_is_true(ls_json_get(r->o, "use_rslora"));
    c->lora.dora = ls_json_is_true(ls_json_get(r->o, "use_dora"));
    return LS_OK;
}

static ls_status take(const reading *r, ls_error *e) {
    LS_TRY(check_fixed(r, e));
    LS_TRY(check_base(r, e));
    LS_TRY(take_numbers(r, e));
    LS_TRY(take_targets(r, e));
    return take_saved(r, e);
}

static ls_status make_absolute(ls_config *c, ls_error *e) {
    char *path = realpath(c->model.adapter, NULL);
    ls_status s = LS_OK;
    if (!path)
        return ls_fail(e, LS_EIO, "model.adapter: %s: can't be opened: %s", c->model.adapter,
                       strerror(errno));
    if (strlen(path) < sizeof c->model.adapter)
        snprintf(c->model.adapter, sizeof c->model.adapter, "%s", path);
    else
        s = ls_fail(e, LS_EINVAL, "model.adapter: the path is longer than %d bytes",
                    LS_CONFIG_TEXT - 1);
    free(path);
    return s;
}

ls_status ls_peft_adopt(ls_config *c, ls_error *e) {
    ls_json *o = NULL;
    if (!*c->model.adapter) return LS_OK;
    if (c->lora.rank)
        return ls_fail(e, LS_EINVAL,
                       "model.adapter has its own rank and targets; leave the keys of lora out");
    LS_TRY(make_absolute(c, e));
    char *path = ls_format("%s/adapter_config.json", c->model.adapter);
    ls_status s = ls_json_read(path, 1 << 20, &o, e);
    if (s == LS_OK && !o) s = ls_fail(e, LS_EIO, "%s: does not exist", path);
    if (s == LS_OK) s = take(&(reading){c, o, path}, e);
    ls_json_free(o);
    free(path);
    return s;
}

/* ---- adapter_model.safetensors ---- */

/* Copies the tensor's owned part to its place. */
static void copy(const ls_train_state *s, const ls_param *p, const ls_tensor *t, float *room) {
    bool all = !s->owned || s->all_params;
    ls_stored_read(ls_kernels_at(0), (ls_stored){.data = t->data, .type = t->type}, 0,
                   (int64_t)p->count, room);
    for (int k = 0; k < (all ? 1 : s->nowned); k++) {
        size_t first = p->offset, end = p->offset + p->count;
        if (!all && s->owned[k].first > first) first = s->owned[k].first;
        if (!all && s->owned[k].end < end) end = s->owned[k].end;
        if (first < end)
            memcpy(s->flat.of[0] + first, room + (first - p->offset), (end - first) * sizeof *room);
    }
}

static ls_status load_param(const ls_safetensors *f, const ls_train_state *s, const ls_param *p,
                            const char *path, ls_error *e) {
    char *name = ls_format("%s%s", PREFIX, p->name);
    const ls_tensor *t = ls_safetensors_find(f, name);
    bool same = t && t->ndims == p->ndims && t->type != LS_NBLOCK_TYPES;
    for (int d = 0; same && d < p->ndims; d++) same = t->dims[d] == p->dims[d];
    free(name);
    if (!same)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no tensor %s%s of the model's shape: it is the adapter of another "
                       "model",
                       path, PREFIX, p->name);
    float *room = LS_NEW_ARRAY(float, p->count);
    copy(s, p, t, room);
    free(room);
    return LS_OK;
}

static ls_status load_all(const ls_safetensors *f, const ls_train_state *s, const char *path,
                          ls_error *e) {
    size_t n = 0;
    for (int i = 0; i < s->model->nparams; i++) {
        if (s->model->params[i].frozen) continue;
        LS_TRY(load_param(f, s, &s->model->params[i], path, e));
        n++;
    }
    const ls_tensor *head = ls_safetensors_find(f, "base_model.model.lm_head.weight");
    const ls_tensor *same = ls_safetensors_find(f, "base_model.model.model.embed_tokens.weight");
    bool tied = head && same && head->count == same->count && head->type == same->type &&
                memcmp(head->data, same->data, ls_tensor_nbytes(head)) == 0;
    if (f->n == n || (f->n == n + 1 && tied)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has %zu tensors, and the model trains %zu of them", path,
                   f->n, n);
}

ls_status ls_peft_load(const char *folder, const ls_train_state *s, ls_error *e) {
    ls_safetensors f;
    char *path = ls_format("%s/adapter_model.safetensors", folder);
    ls_status status = ls_safetensors_open_any(path, &f, e);
    if (status == LS_OK) {
        status = load_all(&f, s, path, e);
        if (status == LS_OK) status = ls_guard_check(e);
        ls_safetensors_close(&f);
    }
    free(path);
    return status;
}
