/* peft.c - see peft.h. */
#include "storage/peft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fresh.h"
#include "base/json.h"
#include "networks/adapters.h"
#include "storage/adapter_numbers.h"
#include "storage/joined_adapters.h"
#include "storage/run_adapters.h"
#include "storage/state.h"

typedef struct exporting {
    const char *base; /* NULL: none */
    ls_run_adapters run;
    ls_architecture arch;
    ls_joined_adapters joined;
    ls_tensor *list;
    size_t n;
} exporting;

/* ---- names ---- */

static const char *last_part(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool has_adapter(const ls_model *m, const char *layer) {
    char of[LS_NAME];
    for (int i = 0; i < m->nparams; i++) {
        if (!m->params[i].adapter) continue;
        ls_adapter_layer(&m->params[i], of);
        if (strcmp(of, layer) == 0) return true;
    }
    return false;
}

/* Do all linear layers whose names end like this one have an adapter? */
static bool all_have(const ls_model *m, const char *layer) {
    for (int i = 0; i < m->nlayers; i++) {
        const ls_layer *l = &m->layers[i];
        if (strcmp(l->ops->kind, "linear") == 0 &&
            strcmp(last_part(l->name), last_part(layer)) == 0 && !has_adapter(m, l->name))
            return false;
    }
    return true;
}

static bool has_text(const ls_json *list, const char *text) {
    for (size_t i = 0; i < ls_json_count(list); i++)
        if (strcmp(ls_json_text(ls_json_at(list, i)), text) == 0) return true;
    return false;
}

/* ---- adapter_config.json ---- */

/* Do all blocks have an adapter of the joined layer with this name? */
static bool all_joined(const exporting *x, const char *name) {
    int64_t n = 0;
    for (size_t i = 0; i < x->joined.n; i++)
        n += strcmp(last_part(x->joined.list[i].layer), name) == 0;
    return n == x->arch.layers;
}

/* Joined adapters have their own rank, and the alpha with which the scale is that of a part. */
static void set_numbers(const exporting *x, ls_json *o) {
    const ls_config *c = &x->run.config;
    ls_adapter_numbers all = {.rank = c->lora.rank, .alpha = c->lora.alpha};
    char layer[LS_NAME];
    for (size_t i = 0; i < x->joined.n; i++) {
        const ls_joined_adapter *j = &x->joined.list[i];
        const double times = c->lora.rs ? sqrt((double)j->parts) : (double)j->parts;
        ls_adapter_numbers_add(&all, j->layer, j->rank, j->alpha * times);
    }
    for (int i = 0; i < x->run.model.nparams; i++) {
        const ls_param *p = &x->run.model.params[i];
        if (!ls_adapter_is_a(p) || ls_joined_adapters_has(&x->arch, p)) continue;
        ls_adapter_layer(p, layer);
        ls_adapter_numbers_add(&all, layer, p->dims[0], ls_adapters_alpha(c, layer));
    }
    ls_json *ranks = ls_adapter_numbers_ranks(&all), *alphas = ls_adapter_numbers_alphas(&all);
    ls_json_set_integer(o, "r", all.rank);
    ls_json_set_number(o, "lora_alpha", all.alpha);
    ls_json_set(o, "rank_pattern", ranks);
    ls_json_set(o, "alpha_pattern", alphas);
    free(all.list);
}

/* "q_proj" if all layers of that name have an adapter; else their whole names. */
static ls_json *targets_of(const exporting *x) {
    const ls_model *m = &x->run.model;
    ls_json *list = ls_json_new_array();
    char layer[LS_NAME];
    for (size_t i = 0; i < x->joined.n; i++) {
        const char *whole = x->joined.list[i].layer, *last = last_part(whole);
        const char *name = all_joined(x, last) ? last : whole;
        if (!has_text(list, name)) ls_json_push(list, ls_json_new_text(name));
    }
    for (int i = 0; i < m->nparams; i++) {
        if (!m->params[i].adapter || ls_joined_adapters_has(&x->arch, &m->params[i])) continue;
        ls_adapter_layer(&m->params[i], layer);
        const char *name = all_have(m, layer) ? last_part(layer) : layer;
        if (!has_text(list, name)) ls_json_push(list, ls_json_new_text(name));
    }
    return list;
}

/* The layers that are trained as a whole, of which peft makes copies. A tied embedding is two
 * layers there. */
static ls_json *saved_of(const exporting *x) {
    ls_json *list = ls_json_new_array();
    char layer[LS_NAME];
    for (int i = 0; i < x->run.model.nparams; i++) {
        const ls_param *p = &x->run.model.params[i];
        if (p->adapter || p->frozen) continue;
        ls_adapter_layer(p, layer);
        if (!has_text(list, layer)) ls_json_push(list, ls_json_new_text(layer));
        if (strcmp(layer, "model.embed_tokens") == 0 && x->run.config.model.head == LS_HEAD_TIED)
            ls_json_push(list, ls_json_new_text("lm_head"));
    }
    if (ls_json_count(list)) return list;
    ls_json_free(list);
    return ls_json_new_null();
}

static ls_status write_config(const exporting *x, const char *folder, ls_error *e) {
    const ls_config *c = &x->run.config;
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "peft_type", "LORA");
    ls_json_set_text(o, "task_type", "CAUSAL_LM");
    ls_json_set(o, "base_model_name_or_path",
                x->base ? ls_json_new_path(x->base) : ls_json_new_null());
    set_numbers(x, o);
    ls_json_set_number(o, "lora_dropout", c->lora.dropout);
    ls_json_set_bool(o, "use_rslora", c->lora.rs);
    ls_json_set_bool(o, "use_dora", c->lora.dora);
    ls_json_set(o, "target_modules", targets_of(x));
    ls_json_set(o, "modules_to_save", saved_of(x));
    ls_json_set_text(o, "bias", "none");
    ls_json_set_bool(o, "fan_in_fan_out", false);
    ls_json_set_bool(o, "init_lora_weights", true);
    ls_json_set_bool(o, "inference_mode", true);
    return ls_json_write_in(o, folder, "adapter_config.json", e);
}

/* ---- adapter_model.safetensors ---- */

static ls_status add(exporting *x, const ls_param *p, const float *values, const char *name,
                     ls_error *e) {
    ls_tensor t = ls_state_tensor(p, NULL, values);
    int n = snprintf(t.name, sizeof t.name, "base_model.model.%s", name);
    if (n >= (int)sizeof t.name)
        return ls_fail(e, LS_EINVAL, "the name %s is too long for a file of peft", name);
    x->list[x->n++] = t;
    return LS_OK;
}

static ls_status add_joined(exporting *x, const ls_joined_adapter *j, ls_error *e) {
    for (int b = 0; b < 2; b++) {
        ls_param p = {.ndims = 2, .count = (size_t)(b ? j->rows * j->rank : j->rank * j->width)};
        p.dims[0] = b ? j->rows : j->rank;
        p.dims[1] = b ? j->rank : j->width;
        char *name = ls_format("%s.lora_%c.weight", j->layer, b ? 'B' : 'A');
        ls_status s = add(x, &p, b ? j->b : j->a, name, e);
        free(name);
        LS_TRY(s);
    }
    return LS_OK;
}

static ls_status list_tensors(exporting *x, ls_error *e) {
    const ls_model *m = &x->run.model;
    bool tied = x->run.config.model.head == LS_HEAD_TIED;
    x->list = LS_NEW_ARRAY(ls_tensor, (size_t)m->nparams + 1 + 2 * x->joined.n);
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        const float *values = x->run.params + p->offset;
        if (p->frozen && p->adapter)
            return ls_fail(e, LS_EINVAL, "%s: %s is frozen; peft has no form for that",
                           x->run.checkpoint, p->name);
        if (ls_joined_adapters_has(&x->arch, p)) continue;
        if (!p->frozen) LS_TRY(add(x, p, values, p->name, e));
        if (!p->frozen && tied && strcmp(p->name, "model.embed_tokens.weight") == 0)
            LS_TRY(add(x, p, values, "lm_head.weight", e));
    }
    for (size_t i = 0; i < x->joined.n; i++) LS_TRY(add_joined(x, &x->joined.list[i], e));
    return LS_OK;
}

static ls_status write_all(exporting *x, const char *folder, ls_error *e) {
    char *path = ls_format("%s/adapter_model.safetensors", folder);
    ls_status s = write_config(x, folder, e);
    if (s == LS_OK) s = ls_safetensors_write(path, x->list, x->n, e);
    free(path);
    return s;
}

/* ---- the run ---- */

static const char *base_of(const ls_config *c) {
    const char *base = *c->model.from ? c->model.from : c->train.from;
    return *base ? base : NULL;
}

ls_status ls_peft_export(const char *from, bool ema, const char *base, const char *to,
                         ls_peft_written *w_p, ls_error *e) {
    exporting *x = LS_NEW(exporting);
    ls_fresh folder = {0};
    ls_status s = ls_run_adapters_open(from, ema, &x->run, e);
    if (s == LS_OK) x->base = base ? base : base_of(&x->run.config);
    if (s == LS_OK) s = ls_run_adapters_architecture(&x->run, &x->arch, e);
    if (s == LS_OK) s = ls_joined_adapters_make(&x->run, &x->arch, &x->joined, e);
    if (s == LS_OK) s = list_tensors(x, e);
    if (s == LS_OK) s = ls_fresh_begin(to, LS_FRESH_DIRECTORY, &folder, e);
    if (s == LS_OK) {
        s = write_all(x, folder.at, e);
        if (s == LS_OK)
            s = ls_fresh_end(&folder, e);
        else
            ls_fresh_discard(&folder);
    }
    if (s == LS_OK) {
        *w_p = (ls_peft_written){.ntensors = x->n, .base = x->base ? ls_strdup(x->base) : NULL};
        for (size_t i = 0; i < x->n; i++) w_p->count += x->list[i].count;
    }
    ls_joined_adapters_free(&x->joined);
    ls_run_adapters_close(&x->run);
    free(x->list);
    free(x);
    return s;
}
