/* network.c - see network.h. */
#include "networks/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/key.h"
#include "config/needs.h"
#include "layers/layers.h"
#include "layers/moe.h"
#include "model/frozen.h"
#include "model/types.h"
#include "networks/adapters.h"
#include "networks/chunked.h"
#include "networks/cut_gpt.h"
#include "networks/fields.h"
#include "networks/gpt2.h"
#include "networks/layer_table.h"
#include "networks/list.h"
#include "networks/llama.h"
#include "networks/losses.h"
#include "networks/model_metrics.h"
#include "networks/program_model.h"
#include "networks/recommenders.h"
#include "networks/sequence.h"
#include "networks/sliced.h"
#include "networks/usual.h"

enum { MOST_WIDTH = 16 }; /* of a text's row of numbers */

typedef struct network {
    const ls_config *c;
    ls_model *m;
    ls_names names;
    ls_fields fields; /* of model.input */
    ls_losses losses;
    ls_metric_list metrics;
} network;

static ls_list_at at_tree(network *n, const ls_config_tree *t) {
    (ls_model_at)(n->m, t->file, t->line);
    return (ls_list_at){n->m, t->file, &n->names};
}

/* ---- fields ---- */

static bool is_target_of_loss(const network *n, const char *name) {
    for (int i = 0; i < n->losses.n; i++)
        if (strcmp(n->losses.list[i].target, name) == 0) return true;
    return false;
}

/* Is the field something that predictions are compared with, or a weight? */
static bool is_target_of(const network *n, const char *name) {
    for (int i = 0; i < n->metrics.n; i++) {
        const char *target = n->metrics.list[i].item->target;
        if (target && strcmp(target, name) == 0) return true;
    }
    return is_target_of_loss(n, name) || strcmp(n->c->model.sample_weight, name) == 0;
}

static void declare(network *n, const ls_list_at *at, const ls_field *f) {
    ls_dims dims = {0};
    for (int i = 0; i < f->ndims; i++) dims.of[i] = f->dims[i];
    ls_names_add(at, f->name, (ls_input)(n->m, f->name, f->type, dims));
    if (ls_build_is_good(n->m)) n->m->inputs[n->m->ninputs - 1].ids = f->ids;
}

/* The targets come last. */
static void declare_fields(network *n) {
    ls_list_at at = at_tree(n, &n->c->model.input);
    for (int targets = 0; targets < 2; targets++)
        for (int i = 0; i < n->fields.n; i++)
            if (is_target_of(n, n->fields.list[i].name) == (targets == 1))
                declare(n, &at, &n->fields.list[i]);
}

static ls_value *named(network *n, const ls_field *f) {
    ls_list_at at = {n->m, "", &n->names};
    return ls_names_numbers(&at, ls_names_find(&at, f->name));
}

/* The fields [ninputs_p] that are no targets; the only one of all counts in any case. */
static void find_inputs(const network *n, const ls_field **inputs, int *ninputs_p) {
    *ninputs_p = 0;
    for (int i = 0; i < n->fields.n; i++)
        if (n->fields.n == 1 || !is_target_of(n, n->fields.list[i].name))
            inputs[(*ninputs_p)++] = &n->fields.list[i];
}

/* A row of a table for each id: of a text, which is no amount. */
static ls_value *embed(network *n, const ls_field *f) {
    ls_list_at at = {n->m, "", &n->names};
    int64_t width = f->ids < MOST_WIDTH ? f->ids : MOST_WIDTH;
    return (ls_embedding)(n->m, ls_names_find(&at, f->name),
                          (ls_embedding_options){
                              .name = f->name, .rows = f->ids, .width = width, .deviation = 1});
}

/* The input of an MLP: all inputs, flattened and concatenated. */
static ls_value *join(network *n, const ls_field *const *inputs, int ninputs) {
    ls_several x = {{0}};
    for (int i = 0; i < ninputs; i++) {
        const ls_field *f = inputs[i];
        bool is_taken = strcmp(f->name, "head") == 0; /* another layer's name */
        if (is_taken) (ls_scope)(n->m, "field");
        x.of[i] = (ls_flatten)(n->m, f->ids ? embed(n, f) : named(n, f));
        if (is_taken) ls_scope_end(n->m);
    }
    return ninputs == 1 ? x.of[0] : ls_several_concat(n->m, 0, &x);
}

static ls_value *one_input(network *n) {
    const ls_field *inputs[LS_SOURCE_FIELDS];
    int ninputs = 0;
    find_inputs(n, inputs, &ninputs);
    at_tree(n, &n->c->model.input);
    if (ninputs > 1 && n->c->model.kind != LS_MODEL_MLP)
        return ls_build_fail(n->m,
                             "model.input has the fields '%s' and '%s'; one is possible, beside "
                             "the target of the loss ('%s')",
                             inputs[0]->name, inputs[1]->name, n->losses.list[0].target);
    bool none = !ninputs || is_target_of_loss(n, inputs[0]->name);
    if (none && strcmp(n->c->model.input.file, "data") == 0)
        return ls_build_fail(
            n->m,
            "the data have no field that the model can read beside '%s', the target "
            "of the loss; lines above say which columns are left out",
            n->losses.list[0].target);
    if (none) return ls_build_fail(n->m, "model.input has no field beside the target of the loss");
    return n->c->model.kind == LS_MODEL_MLP ? join(n, inputs, ninputs) : named(n, inputs[0]);
}

/* A field that nothing reads is a mistake: the sample would have it for nothing. */
static void check_used(network *n) {
    at_tree(n, &n->c->model.input);
    for (int i = 0; i < n->fields.n; i++) {
        const ls_named *field = &n->names.list[i];
        if (!field->is_used && ls_build_is_good(n->m))
            ls_build_fail(n->m, "model.input: nothing reads the field '%s'", field->name);
    }
}

/* The scale of the only loss's target; NULL: it has none. */
static const ls_field_scale *scale_of_target(const network *n) {
    const char *target = n->losses.list[0].target;
    if (n->fields.n < 2 || n->losses.n > 1 || n->c->model.kind == LS_MODEL_LAYERS) return NULL;
    return ls_loss_has_scale(&n->losses.list[0]) ? ls_scales_find(&n->names.scales, target) : NULL;
}

/* Each field that data.normalize names must be one that it scales. */
static void check_scales(network *n) {
    at_tree(n, &n->c->data.normalize);
    for (int i = 0; i < n->names.scales.n && ls_build_is_good(n->m); i++) {
        const char *name = n->names.scales.list[i].field;
        const ls_field *f = ls_fields_find(&n->fields, name);
        bool is_target = f && n->fields.n > 1 && is_target_of(n, name);
        if (!f)
            ls_build_fail(n->m, "data.normalize: model.input has no field '%.60s'", name);
        else if (is_target && (!scale_of_target(n) || !is_target_of_loss(n, name)))
            ls_build_fail(n->m,
                          "data.normalize: '%.60s' is a target; that of the only loss can be "
                          "scaled, if it is mean_squared_error and model.kind is not layers",
                          name);
        else if (!is_target && (f->ids || ls_field_is_image(f)))
            ls_build_fail(n->m,
                          "data.normalize: '%.60s' has %s, which are not scaled; leave it out",
                          name, f->ids ? "ids" : "pixels");
    }
}

/* ---- layers ---- */

/* The numbers that the loss compares with its target. */
static int64_t out_of(const network *n) {
    const ls_loss_wanted *loss = &n->losses.list[0];
    const ls_field *target = ls_fields_find(&n->fields, loss->target);
    int64_t out = loss->of_classes ? n->c->model.classes : 1;
    for (int i = 0; target && !loss->of_classes && i < target->ndims; i++) out *= target->dims[i];
    return out;
}

/* A number of the target's scale becomes one of its own. */
static ls_value *unscale(network *n, ls_value *x) {
    const ls_field_scale *s = scale_of_target(n);
    if (!s || !ls_build_is_good(n->m)) return x;
    float most = LS_SCALE_TARGET_MOST, least = LS_SCALE_TARGET_LEAST;
    if (s->n > 1 || !(s->deviation[0] <= most && s->deviation[0] >= least))
        return ls_build_fail(n->m,
                             "data.normalize: the target '%s' needs one mean and one deviation, "
                             "from %g to %g; leave it out",
                             s->field, (double)least, (double)most);
    n->losses.list[0].divisor = s->deviation[0] * s->deviation[0];
    return ls_layers_unscale(n->m, x, s->deviation[0], s->mean[0]);
}

static ls_value *build_layers(network *n) {
    int64_t out = out_of(n);
    ls_value *x = one_input(n);
    if (!ls_build_is_good(n->m)) return ls_build_failed(n->m);
    switch (n->c->model.kind) {
    case LS_MODEL_MLP: return ls_mlp_build(n->c, n->m, x, out);
    case LS_MODEL_CNN: return ls_cnn_build(n->c, n->m, x, out);
    case LS_MODEL_RESNET: return ls_resnet_build(n->c, n->m, x, out);
    case LS_MODEL_VIT: return ls_vit_build(n->c, n->m, x, out);
    case LS_MODEL_GPT2:
    case LS_MODEL_LLAMA:
    case LS_MODEL_FACTORS:
    case LS_MODEL_TWO_TOWERS:
    case LS_MODEL_DLRM:
    case LS_MODEL_WIDE_DEEP:
    case LS_MODEL_PROGRAM:
    case LS_MODEL_LAYERS: break;
    }
    return x;
}

static ls_value *build_usual(network *n) { return unscale(n, build_layers(n)); }

static ls_value *build_recommender(network *n, const char *const *fields) {
    ls_list_at at = at_tree(n, &n->c->model.input);
    ls_value *x[LS_RECOMMENDER_FIELDS];
    for (int i = 0; i < LS_RECOMMENDER_FIELDS; i++) {
        x[i] = ls_names_find(&at, fields[i]);
        if (!x[i] && strcmp(fields[i], "x") != 0)
            return ls_build_fail(n->m, "model.input has no field '%s', which model.kind reads",
                                 fields[i]);
    }
    return ls_recommender_build(n->c, n->m, x);
}

/* The first layer reads the only input, unless it names what it reads. */
static ls_value *build_list(network *n) {
    const ls_config_tree *t = &n->c->model.list;
    const ls_field *inputs[LS_SOURCE_FIELDS];
    ls_yaml_node *root = NULL;
    ls_error e = {0};
    ls_value *x = NULL;
    bool is_ids = false;
    int ninputs = 0;
    find_inputs(n, inputs, &ninputs);
    ls_list_at at = at_tree(n, t);
    if (ls_yaml_parse_tree(t->text, t->file, t->line, &root, &e) != LS_OK)
        return ls_build_fail(n->m, "%s", e.msg);
    if (ninputs == 1 && ls_list_has_input(root, &is_ids)) x = ls_names_find(&at, inputs[0]->name);
    if (root->kind != LS_YAML_LIST || root->nitems == 0)
        x = ls_build_fail(n->m, "model.layers: a list of layers is expected");
    else
        x = ls_list_build(&at, root, x);
    ls_yaml_node_free(root);
    return x;
}

static ls_value *build_kind(network *n) {
    const char *const *fields = ls_recommender_fields(n->c->model.kind);
    if (fields) return build_recommender(n, fields);
    return n->c->model.kind == LS_MODEL_LAYERS ? build_list(n) : build_usual(n);
}

/* ---- losses, weights, metrics ---- */

static void build_weight(network *n) {
    ls_list_at at = {n->m, "", &n->names};
    const char *name = n->c->model.sample_weight;
    (ls_model_at)(n->m, "", 0);
    if (*name) (ls_sample_weight)(n->m, ls_target_get(&at, name, false));
}

static void build_ends(network *n, ls_value *last) {
    ls_list_at at = at_tree(n, &n->c->model.loss);
    ls_losses_build(&n->losses, &at, last, n->c->model.classes);
    if (ls_build_is_good(n->m)) build_weight(n);
    at = at_tree(n, &n->c->model.metrics);
    if (ls_build_is_good(n->m)) ls_metrics_build(&n->metrics, &at, &n->losses, last);
    if (ls_build_is_good(n->m)) check_used(n);
    if (ls_build_is_good(n->m) && n->names.pixels.channels && !n->names.reads_pixels)
        ls_build_fail(n->m,
                      "data.normalize: no layer reads the bytes of an image as numbers; leave "
                      "it out, or name fields of numbers: {age: {mean: 38.2, deviation: 13.6}}");
}

static ls_status build(network *n, ls_error *e) {
    const ls_config *c = n->c;
    LS_TRY(ls_losses_read(c, &n->losses, e));
    LS_TRY(ls_metrics_read(c, &n->metrics, e));
    LS_TRY(ls_fields_read(&c->model.input, &n->fields, e));
    LS_TRY(ls_pixels_read(c, &n->names.pixels, e));
    LS_TRY(ls_scales_read(c, &n->names.scales, e));
    declare_fields(n);
    check_scales(n);
    ls_value *x = build_kind(n);
    if (ls_build_is_good(n->m)) build_ends(n, x);
    ls_layers_note_loads(n->m);
    return ls_build_finish(n->m, e);
}

static ls_status create(const ls_config *c, bool cut, ls_model *m_p, ls_error *e) {
    LS_TRY(ls_sequence_check(c, e));
    if (c->model.kind == LS_MODEL_LLAMA) return ls_llama_create(c, cut, m_p, e);
    LS_TRY(ls_chunked_check(c, e));
    bool chunks = cut && c->parallel.context_virtual > 1;
    if (c->model.kind == LS_MODEL_GPT2 && (chunks || c->parallel.tensor_virtual > 1))
        return ls_cut_gpt_create(c, !cut, m_p, e);
    if (c->model.kind == LS_MODEL_GPT2) {
        ls_gpt_config shape = {c->model.layers, c->model.width, c->model.heads, c->model.context,
                               c->model.vocab};
        LS_TRY(ls_gpt_create(&shape, m_p, e));
        if (c->model.dropout > 0) ls_gpt_drop(m_p, (float)c->model.dropout);
        return LS_OK;
    }
    LS_TRY(ls_sliced_check(c, &(ls_sliced_sizes){0}, e));
    if (c->model.kind == LS_MODEL_PROGRAM) return ls_program_create(c, m_p, e);
    if (ls_network_is_open(c))
        return ls_fail(
            e, LS_EINVAL,
            "model.input or model.classes is missing, or data.normalize is auto: set them, or "
            "data.path to data that have them");
    ls_model m = {.sparse_batch = c->model.sparse ? c->train.batch : 0};
    network n = {.c = c, .m = &m};
    ls_status s = build(&n, e);
    if (s == LS_OK && !m.table_rows)
        s = ls_config_refuse_written(c, "model.sparse", "layers that read rows of tables by ids",
                                     e);
    ls_losses_free(&n.losses);
    ls_metrics_free(&n.metrics);
    ls_names_free(&n.names);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}

/* ---- lora.*, train.freeze ---- */

static ls_status freeze_one(ls_model *m, const char *pattern, ls_error *e) {
    if (ls_model_freeze(m, pattern) > 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "train.freeze: '%.60s' matches no parameter%s%s", pattern,
                   m->nparams ? "; their names are like " : "",
                   m->nparams ? m->params[0].name : "");
}

/* What begins as norms of other weights is set in the flat buffer of trained parameters. */
static ls_status check_norms(const ls_model *m, ls_error *e) {
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].init.norms_of && m->params[i].frozen)
            return ls_fail(e, LS_EINVAL, "train.freeze: %s is trained; it can't be frozen",
                           m->params[i].name);
    return LS_OK;
}

/* Frozen parameters of a published model stay in its files, which have no adapters. */
static ls_status check_adapters(const ls_config *c, const ls_model *m, ls_error *e) {
    for (int i = 0; *c->model.from && i < m->nparams; i++)
        if (m->params[i].adapter && m->params[i].frozen)
            return ls_fail(
                e, LS_EINVAL,
                "train.freeze: %s is an adapter of a published model (model.from), which "
                "is trained; use patterns that do not match it",
                m->params[i].name);
    return LS_OK;
}

static int count_trained(const ls_model *m) {
    int n = 0;
    for (int i = 0; i < m->nparams; i++) n += !m->params[i].frozen;
    return n;
}

static ls_status freeze(const ls_config *c, ls_model *m, ls_error *e) {
    char *patterns = ls_strdup(c->train.freeze), *rest = *patterns ? patterns : NULL, *pattern;
    ls_status s = ls_adapters_freeze(c, m, e);
    int trained = count_trained(m);
    while (s == LS_OK && (pattern = strsep(&rest, "\n"))) s = freeze_one(m, pattern, e);
    if (s == LS_OK && count_trained(m) == trained)
        s = ls_config_refuse_written(
            c, "train.freeze", "parameters that are trained, which lora.rank has frozen already",
            e);
    if (s == LS_OK) s = check_norms(m, e);
    if (s == LS_OK) s = check_adapters(c, m, e);
    if (s == LS_OK && (*patterns || c->lora.rank)) s = ls_model_link(m, e);
    free(patterns);
    return s;
}

static ls_status create_frozen(const ls_config *c, bool cut, ls_model *m_p, ls_error *e) {
    ls_model m;
    LS_TRY(create(c, cut, &m, e));
    ls_status s = freeze(c, &m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_model_free(&m);
    return s;
}

ls_status ls_network_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    ls_config whole = *c;
    LS_TRY(ls_sequence_check(c, e));
    whole.parallel.sequence = false;
    return create_frozen(&whole, false, m_p, e);
}

ls_status ls_network_create_cut(const ls_config *c, ls_model *m_p, ls_error *e) {
    return create_frozen(c, true, m_p, e);
}

/* Products of fewer rows read the weights too often: with samples of 64 tokens a step of 12 M
 * parameters takes a tenth to a third longer one by one than four at a time, and an MLP's 2 to 5
 * times as long. */
enum { PRODUCT_ROWS = 256 };

/* Rows that a sample adds to the products of the layer that computes most; a convolution multiplies
 * each sample alone. */
static int64_t rows_of(const ls_model *m) {
    const ls_layer *most = &m->layers[0];
    for (int i = 1; i < m->nlayers; i++)
        if (m->layers[i].cost.flops > most->cost.flops) most = &m->layers[i];
    bool alone = most->cost.forward.n > 0 && most->cost.forward.list[0].M > 0;
    return alone || most->T < 1 ? PRODUCT_ROWS : most->T;
}

void ls_network_choose_micro(ls_config *c) {
    ls_model m;
    bool open = ls_config_leaves_out(c, "train.micro_batch");
    int64_t samples = c->train.batch / c->train.virtual_workers, *micro = &c->train.micro_batch;
    int64_t together = c->parallel.expert_virtual;
    if (open) ls_config_note_chosen(c, "train.micro_batch");
    if (samples <= 1 || *micro > samples || !(open || ls_config_compute(c) == LS_BF16)) return;
    if (open && samples % together == 0 && *micro < together) *micro = together;
    if (ls_network_create_cut(c, &m, NULL) != LS_OK) return;
    if (open && c->parallel.mesh_pipe == 1) /* the stages of a pipeline need many of them */
        while (*micro * rows_of(&m) < PRODUCT_ROWS && *micro < samples) *micro *= 2;
    int64_t unit = ls_model_unit_samples(&m, ls_config_compute(c));
    *micro = (*micro + unit - 1) / unit * unit;
    bool joins = open && !c->train.nphases && ls_model_find_joining(&m);
    if (*micro > samples || joins) *micro = samples;
    ls_model_free(&m);
}
