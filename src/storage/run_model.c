/* run_model.c - see run_model.h. */
#include "storage/run_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/relations.h"
#include "dataset/data_files.h"
#include "dataset/published_record.h"
#include "layers/linear.h"
#include "layers/lora_merge.h"
#include "model/tensor_part.h"
#include "networks/family.h"
#include "networks/network.h"
#include "storage/checkpoint.h"
#include "storage/model_step.h"
#include "weights/model_text.h"

enum { MOST = 1 << 28 }; /* bytes of a tokenizer.json */

/* ---- weights ---- */

static ls_status check_adapters(const ls_run_model *r, ls_error *e) {
    bool has = r->config.lora.rank > 0;
    if (has == r->merges) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        has ? "%s: has adapters: --merge adds them to the weights, --to peft writes them "
              "alone"
            : "%s: has no adapters to merge (lora.rank is 0); leave --merge out",
        r->path);
}

/* A parameter that a published model doesn't have. */
static ls_status check_params(const ls_run_model *r, ls_error *e) {
    ls_name id;
    LS_TRY(check_adapters(r, e));
    for (int i = 0; i < r->model.nparams; i++) {
        char name[LS_NAME];
        bool known = r->model.params[i].adapter;
        ls_tensor_part_name(&r->model.params[i], name);
        for (int k = 0; !known && ls_name_at(&r->arch, k, &id); k++)
            known = strcmp(id.param, name) == 0;
        if (!known)
            return ls_fail(e, LS_EINVAL,
                           "%s: has a parameter '%s', which models of the family %s don't have",
                           r->path, r->model.params[i].name, ls_family_name(r->arch.family));
    }
    return LS_OK;
}

static ls_status load_weights(ls_run_model *r, bool ema, ls_error *e) {
    void *p = NULL;
    if (r->merges) LS_TRY(ls_compute_init(&r->compute, 1, 0, e));
    LS_TRY(ls_map(r->model.nfloats * sizeof *r->params, "weights", &p, e));
    r->params = p;
    ls_train_state s = {.model = &r->model, .flat = {1, {r->params}}, .ema = ema};
    LS_TRY(ls_checkpoint_load(r->path, &s, e));
    ls_model_step_log(&r->config, s.step, r->path);
    if (r->model.frozen_count == 0) return LS_OK;
    LS_TRY(ls_map(r->model.frozen_floats * sizeof *r->frozen, "frozen weights", &p, e));
    r->frozen = p;
    return ls_checkpoint_load_frozen(r->path, &r->model, r->frozen, e);
}

/* ---- the text's side ---- */

static ls_status read_tokenizer(ls_run_model *r, ls_error *e) {
    char *path = ls_format("%s/" LS_TOKENIZER_FILE, r->path);
    ls_status s = LS_OK;
    if (ls_file_exists(path)) s = ls_file_read(path, MOST, &r->text.json, e);
    if (s == LS_OK && r->text.json.len)
        s = ls_tokenizer_parse(r->text.json.data, r->text.json.len, path, &r->text.tokenizer, e);
    free(path);
    return s;
}

static void take_origin(ls_run_model *r, const ls_architecture *a) {
    /* one that is tuned stays in the family whose files have its name, not in that of its parts */
    if (a->family == LS_FAMILY_PHI3) r->arch.family = a->family;
    r->arch.bos = a->bos;
    r->arch.pad = a->pad;
    r->arch.neos = a->neos;
    r->arch.generation = a->generation;
    r->arch.config_ids = a->config_ids;
    r->arch.has_config_ids = a->has_config_ids;
    memcpy(r->arch.eos, a->eos, sizeof r->arch.eos);
    /* GPT-2 has learned as many positions as the run's samples have */
    if (r->arch.family != LS_FAMILY_GPT2) r->arch.context = a->context;
}

/* A run on tokens has no tokenizer, but the model that it began with does. */
static ls_status read_tokenizer_of(const char *from, ls_run_model *r, ls_error *e) {
    ls_weights w = {0};
    if (r->text.tokenizer || !*from || access(from, R_OK) != 0) return LS_OK;
    LS_TRY(ls_weights_open(from, &w, e));
    ls_status s = ls_model_tokenizer(&w, &r->text.tokenizer, &r->text.json, e);
    ls_weights_close(&w);
    return s;
}

static void take_text(ls_run_model *r, ls_published_record *o) {
    r->text.templates = o->templates;
    o->templates = (ls_model_templates){0};
    if (!r->text.tokenizer) return;
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++)
        r->text.special[k] = ls_published_special(o, r->text.tokenizer, (ls_special_token)k);
}

/* Documents of a run's own tokenizer end with this token. */
static void take_end(ls_run_model *r) {
    uint32_t end = r->text.tokenizer ? ls_tokenizer_end_of_text(r->text.tokenizer) : LS_NO_TOKEN;
    if (end == LS_NO_TOKEN) return;
    r->arch.eos[0] = end;
    r->arch.neos = 1;
    r->text.special[LS_EOS_TOKEN] = ls_special_token_of(&r->arch, r->text.tokenizer, LS_EOS_TOKEN);
}

static ls_status read_origin(ls_run_model *r, ls_error *e) {
    ls_published_record o = {0};
    LS_TRY(ls_published_record_read(r->path, &o, e));
    if (o.there) take_origin(r, &o.arch);
    ls_status s = read_tokenizer_of(r->config.model.from, r, e);
    if (o.there) take_text(r, &o);
    if (!o.there) take_end(r);
    ls_published_record_free(&o);
    return s;
}

/* ---- the whole ---- */

static ls_status open_run(ls_run_model *r, bool ema, ls_error *e) {
    char *config = ls_format("%s/config.yaml", r->path);
    ls_status s = ls_config_load_saved(config, NULL, 0, &r->config, e);
    free(config);
    if (s == LS_OK) s = ls_family_of(&r->config, &r->arch, e);
    if (s == LS_OK) s = ls_network_create(&r->config, &r->model, e);
    if (s == LS_OK) s = check_params(r, e);
    if (s == LS_OK) s = load_weights(r, ema, e);
    if (s == LS_OK) s = read_tokenizer(r, e);
    return s == LS_OK ? read_origin(r, e) : s;
}

ls_status ls_run_model_open(const char *path, ls_run_model_options o, ls_run_model *r_p,
                            ls_error *e) {
    ls_run_model *r = r_p;
    *r = (ls_run_model){.merges = o.merge};
    LS_TRY(ls_checkpoint_resolve(path, &r->path, e));
    ls_status s = open_run(r, o.ema, e);
    if (s != LS_OK) ls_run_model_close(r);
    return s;
}

void ls_run_model_close(ls_run_model *r) {
    if (r->compute.pool) ls_compute_close(&r->compute);
    ls_unmap(r->params, r->model.nfloats * sizeof *r->params);
    ls_unmap(r->frozen, r->model.frozen_floats * sizeof *r->frozen);
    ls_model_free(&r->model);
    ls_model_text_free(&r->text);
    free(r->path);
    *r = (ls_run_model){0};
}

static const float *values_of(const ls_run_model *r, int param) {
    const ls_param *p = &r->model.params[param];
    return (p->frozen ? r->frozen : r->params) + p->offset;
}

/* Adds the adapter of the layer with this weight, if it has one, to these rows. */
static void merge(const ls_run_model *r, int param, int64_t first, int64_t end, float *out) {
    int numbers[3];
    for (int i = 0; r->merges && i < r->model.nlayers; i++) {
        const ls_layer *l = &r->model.layers[i];
        if (l->nparams == 0 || l->params[0] != param || !ls_lora_find(l, numbers)) continue;
        ls_lora_values v = {.layer = l};
        v.a = values_of(r, l->params[numbers[0]]);
        v.b = values_of(r, l->params[numbers[1]]);
        if (numbers[2]) v.magnitude = values_of(r, l->params[numbers[2]]);
        ls_lora_merge(&v, &r->compute, first, end - first, out);
    }
}

/* Rows [first, end) of a tensor, as far as slice `param` of it has them. */
static void copy_slice(const ls_run_model *r, int param, size_t first, size_t end, float *out) {
    const ls_param *p = &r->model.params[param];
    const float *x = values_of(r, param);
    for (size_t i = 0; i < p->count;) {
        size_t at = 0, n = ls_tensor_part_run(p, i, &at);
        size_t a = at > first ? at : first, b = at + n < end ? at + n : end;
        if (a < b) memcpy(out + (a - first), x + i + (a - at), (b - a) * sizeof *out);
        i += n;
    }
}

/* Does the parameter contain this expert's matrix? *row_p: the matrix's first row there, if the
 * parameter has several experts. */
static bool has_expert(const ls_param *p, const ls_name *n, int64_t *row_p) {
    int64_t expert = n->expert > 0 ? n->expert : 0, first = p->cut.part.all ? p->cut.part.first : 0;
    *row_p = (expert - first) * n->dims[0];
    return p->ndims < 3 || (expert >= first && expert < first + p->dims[0]);
}

static ls_status rows(const void *arg, const ls_name *n, int64_t first, int64_t end, float *out,
                      ls_error *e) {
    const ls_run_model *r = arg;
    int64_t width = n->ndims > 1 ? n->dims[1] : 1;
    bool sliced = false;
    for (int i = 0; i < r->model.nparams; i++) {
        const ls_param *p = &r->model.params[i];
        char name[LS_NAME];
        ls_tensor_part_name(p, name);
        int64_t part = 0;
        if (strcmp(name, n->param) != 0 || !has_expert(p, n, &part)) continue;
        if (p->cut.part.all && p->ndims < 3) {
            copy_slice(r, i, (size_t)(first * width), (size_t)(end * width), out);
            sliced = true;
            continue;
        }
        memcpy(out, values_of(r, i) + (part + first) * width,
               (size_t)((end - first) * width) * sizeof *out);
        merge(r, i, first, end, out);
        return LS_OK;
    }
    if (sliced) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has no parameter '%s'", r->path, n->name);
}

ls_model_source ls_source_of_run(const ls_run_model *r) {
    return (ls_model_source){&r->arch, rows, r};
}
