/* generate.c - see generate.h. */
#include "infer/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bar.h"
#include "base/cores.h"
#include "base/guard.h"
#include "base/log.h"
#include "config/differences.h"
#include "config/needs.h"
#include "config/relations.h"
#include "dataset/published_record.h"
#include "infer/published.h"
#include "infer/ranking.h"
#include "infer/text_writer.h"
#include "model/frozen.h"
#include "model/stored_table.h"
#include "model/types.h"
#include "networks/network.h"
#include "source/tables/csv_rules.h"
#include "storage/checkpoint.h"
#include "storage/model_step.h"
#include "tensor/int8.h"
#include "tensor/kernels.h"

enum { EVAL_SAMPLES = 4 };                               /* evaluated at once, by cores */
enum { DEVICE_SAMPLES = 64, DEVICE_NBYTES = 256 << 20 }; /* by a device, if they need no more */

/* Frozen parameters stay in the mapped files, unless they are rounded. */
static ls_status open_frozen(ls_trained *t, ls_error *e) {
    ls_dtype type = ls_config_compute(&t->config);
    if (t->model.frozen_count == 0) return LS_OK;
    if (t->is_published) return ls_pretrained_open(t->path, &t->model, &t->published, e);
    LS_TRY(ls_frozen_file_open(t->path, &t->model, &t->frozen_file, e));
    if (type == LS_F32) return LS_OK;
    t->rounded_nbytes = t->model.frozen_floats * ls_dtype_size(type);
    LS_TRY(ls_map(t->rounded_nbytes, "frozen parameters", &t->rounded, e));
    const ls_frozen_rounding r = {
        .model = &t->model, .compute = &t->compute, .type = type, .buffer = t->rounded};
    ls_frozen_round(&r, t->frozen_file.values);
    t->frozen = LS_NEW_ARRAY(ls_frozen_value, (size_t)t->model.nparams);
    ls_frozen_place_rounded(&t->model, type, t->rounded, t->frozen_file.values, t->frozen);
    return LS_OK;
}

/* The weights of a published model stay as its files have them: all are frozen. */
static ls_status create_model(ls_trained *t, ls_error *e) {
    t->config.model.sparse = 0; /* tables are read as a whole */
    LS_TRY(ls_network_create(&t->config, &t->model, e));
    if (!t->is_published || ls_config_compute(&t->config) != LS_F32) return LS_OK;
    ls_model_freeze(&t->model, "*");
    return ls_model_link(&t->model, e);
}

ls_frozen_value *ls_trained_frozen(const ls_trained *t) {
    if (t->published.values) return t->published.values;
    return t->frozen ? t->frozen : t->frozen_file.values;
}

/* Products with weights in blocks quantize their other operand, if the config asks for it. */
static ls_status quantize_activations(ls_trained *t, ls_error *e) {
    ls_frozen_value *values = ls_trained_frozen(t);
    int n = 0;
    if (t->config.infer.activations == LS_ACTIVATIONS_FLOAT) return LS_OK;
    for (int i = 0; values && i < t->model.nparams; i++) {
        bool quantized = t->model.params[i].frozen && ls_model_multiplies(&t->model, i) &&
                         ls_int8_takes(values[i].type);
        values[i].int8 = quantized;
        n += quantized;
    }
    if (n > 0) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%s: infer.activations: int8 acts on weights in blocks (Q8_0, Q4_0 ...), and the "
        "model has none%s; leave the key out",
        t->path,
        t->config.train.compute == LS_COMPUTE_F32 ? ""
                                                  : ", since train.compute rounds "
                                                    "them to 16 bits");
}

static int64_t choose_samples(const ls_trained *t) {
    int64_t n = t->evaluates ? DEVICE_SAMPLES : 1;
    if (!t->device) return EVAL_SAMPLES;
    while (n > 1 && ls_infer_nbytes(&t->model, LS_F32, n) > DEVICE_NBYTES) n /= 2;
    return n;
}

/* Says if a unit that would make products faster is not used. */
static void say_unused(const ls_trained *t) {
    const bool int8 = t->config.infer.activations != LS_ACTIVATIONS_FLOAT;
    const bool asked = int8 || t->config.train.compute == LS_COMPUTE_BF16;
    const char *unused = asked && !t->device ? ls_kernels_unused() : NULL;
    if (unused) ls_log("products in %s are slower: %s", int8 ? "int8" : "bf16", unused);
}

/* What computes, with its memory. */
static ls_status open_infer(ls_trained *t, ls_error *e) {
    t->infer = (ls_infer){.model = &t->model,
                          .compute = &t->compute,
                          .dtype = ls_config_compute(&t->config),
                          .params = t->params,
                          .frozen = ls_trained_frozen(t)};
    if (t->device) LS_TRY(ls_placed_open(&t->placed, t->device, &t->infer, e));
    return ls_infer_open_memory(&t->infer, choose_samples(t), "activations", e);
}

static ls_status load_weights(ls_trained *t, ls_error *e) {
    LS_TRY(create_model(t, e));
    void *p = NULL;
    ls_dtype type = ls_config_compute(&t->config);
    t->params_nbytes = t->model.nfloats * sizeof(float);
    LS_TRY(ls_map(t->params_nbytes, "weights", &p, e));
    t->params = p;
    ls_train_state s = {.model = &t->model, .flat = {1, {t->params}}, .ema = t->ema};
    LS_TRY(t->is_published ? ls_pretrained_load(t->path, &s, e)
                           : ls_checkpoint_load(t->path, &s, e));
    if (!t->is_published) ls_model_step_log(&t->config, s.step, t->path);
    LS_TRY(ls_compute_init(&t->compute, ls_cores(), ls_model_scratch_floats(&t->model), e));
    if (type != LS_F32) /* convert to the type that training computes with */
        LS_TRY(
            ls_table_round(&t->compute, type, t->model.nfloats, &t->params, &t->params_nbytes, e));
    LS_TRY(open_frozen(t, e));
    LS_TRY(quantize_activations(t, e));
    say_unused(t);
    return open_infer(t, e);
}

static ls_config_sets sets_of(const ls_trained_options *o) {
    return (ls_config_sets){o->sets, o->nsets, o->sets_from ? o->sets_from : "--set"};
}

static bool is_other(const ls_config_tree *a, const ls_config_tree *b) {
    return strcmp(a->text, b->text) != 0;
}

/* Does data.missing take means? */
static ls_status takes_means(const ls_config *c, bool *takes_p, ls_error *e) {
    const ls_config_tree *t = &c->data.missing_by;
    ls_csv_rules r = {0};
    ls_status s = ls_csv_rules_read_missing(t->text, t->file, t->line, &r, e);
    *takes_p = c->data.missing == LS_MISSING_MEAN;
    for (size_t i = 0; s == LS_OK && i < r.nrules; i++)
        *takes_p = *takes_p || r.rules[i].rule == LS_MISSING_MEAN;
    ls_csv_rules_free(&r);
    return s;
}

/* Other files may be written in another form than those of the run, with the same columns, and lack
 * other values; their means are those that the run has. */
static ls_status take_form(ls_config *was, const ls_config *c, const char *from, bool *other_p,
                           ls_error *e) {
    bool had = false, takes = false;
    bool other = is_other(&was->data.missing_by, &c->data.missing_by) ||
                 was->data.missing != c->data.missing;
    if (other) {
        LS_TRY(takes_means(was, &had, e));
        LS_TRY(takes_means(c, &takes, e));
    }
    if (takes && !had)
        return ls_fail(
            e, LS_EINVAL,
            "%s data.missing: the run was trained without means (data.missing: mean), so "
            "there are none to stand for missing values; set drop, which leaves such "
            "rows out",
            from);
    *other_p = other || is_other(&was->data.csv, &c->data.csv) || strcmp(was->data.na, c->data.na);
    was->data.csv = c->data.csv;
    was->data.na = c->data.na;
    was->data.missing = c->data.missing;
    was->data.missing_by = c->data.missing_by;
    return LS_OK;
}

ls_status ls_trained_needs_own_data(const ls_trained *t, ls_error *e) {
    if (!t->other_form) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--set data.csv, data.na, data.missing: the run's own data are read as it was "
                   "trained; name other files");
}

/* Applies "KEY=VALUE" settings, of keys that may differ from those that the weights are trained
 * with. */
static ls_status change_config(ls_trained *t, const ls_trained_options *o, ls_error *e) {
    ls_config *was = LS_NEW(ls_config), *c = &t->config;
    ls_config_sets sets = sets_of(o);
    *was = *c;
    ls_status s = ls_config_set_all(c, &sets, e);
    if (s == LS_OK) s = take_form(was, c, sets.from, &t->other_form, e);
    const char *fixed = s == LS_OK ? ls_config_find_fixed(was, c) : NULL;
    if (fixed)
        s = ls_fail(e, LS_EINVAL,
                    "%s %s: the run is trained with another value; an evaluation can't change it",
                    sets.from, fixed);
    free(was);
    return s;
}

static void set_generation(ls_trained *t, const ls_architecture *a) {
    t->generation = a->generation;
    for (int i = 0; i < a->neos; i++) t->ends[t->nends++] = (uint32_t)a->eos[i];
}

static bool reads_chats(const ls_trained_options *o) {
    return o->samples == LS_READS_CHATS || o->samples == LS_READS_PAIRS;
}

static void read_pairs(ls_config *c) {
    c->train.loss = LS_TRAIN_LOSS_DPO;
    c->data.packing = false; /* a sample is one pair */
}

static ls_status open_published(ls_trained *t, const ls_trained_options *o, ls_error *e) {
    if (o->ema)
        return ls_fail(e, LS_EINVAL, "%s: is a published model, without an average of its weights",
                       t->path);
    ls_config_sets sets = sets_of(o);
    LS_TRY(ls_published_config(t->path, &sets, &t->config, e));
    if (t->config.lora.rank || *t->config.model.adapter)
        return ls_fail(e, LS_EINVAL,
                       "%s %s: %s is a published model, which is read without adapters; a run "
                       "has them, and `lockstep export RUN --merge` adds them to the weights",
                       sets.from, t->config.lora.rank ? "lora.rank" : "model.adapter", t->path);
    t->config.data.format = reads_chats(o) ? LS_DATA_CHAT : LS_DATA_TEXT;
    if (o->like) t->config.infer.activations = o->like->infer.activations;
    if (o->samples == LS_READS_PAIRS) read_pairs(&t->config);
    LS_TRY(ls_published_tokenizer(t->path, &t->tokenizer, e));
    LS_TRY(load_weights(t, e));
    set_generation(t, &t->published.files.arch);
    return LS_OK;
}

/* A run on texts has learned that its documents end with this token. */
static void add_end_of_text(ls_trained *t) {
    bool reads = t->tokenizer && ls_config_has_text(&t->config);
    uint32_t end = reads ? ls_tokenizer_end_of_text(t->tokenizer) : LS_NO_TOKEN;
    for (int i = 0; i < t->nends; i++)
        if (t->ends[i] == end) return;
    if (end != LS_NO_TOKEN && t->nends < LS_MAX_EOS) t->ends[t->nends++] = end;
}

/* A run draws and ends a text as the model does that it began with. */
static ls_status read_generation(ls_trained *t, ls_error *e) {
    ls_published_record r = {0};
    LS_TRY(ls_published_record_read(t->path, &r, e));
    if (r.there) set_generation(t, &r.arch);
    ls_published_record_free(&r);
    add_end_of_text(t);
    return LS_OK;
}

static ls_status open_trained(ls_trained *t, const ls_trained_options *o, ls_error *e) {
    char *config = ls_format("%s/config.yaml", t->path);
    char *tokenizer = ls_format("%s/tokenizer.json", t->path);
    ls_status s = ls_config_read(config, &t->config, e);
    if (s == LS_OK) ls_config_forget_written(&t->config);
    if (s == LS_OK && o->nsets) s = change_config(t, o, e);
    if (s == LS_OK) s = ls_config_check(&t->config, config, e);
    if (o->in_f32) {
        t->config.train.compute = LS_COMPUTE_F32;
        t->config.infer.activations = LS_ACTIVATIONS_FLOAT;
    }
    if (o->like) t->config.infer.activations = o->like->infer.activations;
    bool has_text = s == LS_OK && ls_config_has_corpus(&t->config);
    if (has_text && o->samples == LS_READS_TEXT) t->config.data.format = LS_DATA_TEXT;
    if (o->samples != LS_READS_OWN_DATA) t->config.train.loss = LS_TRAIN_LOSS_AUTO;
    if (o->samples == LS_READS_PAIRS) read_pairs(&t->config);
    if (s == LS_OK && reads_chats(o) && !ls_config_has_chats(&t->config))
        s = ls_fail(e, LS_EINVAL, "%s: was not trained on conversations (data.format: chat)",
                    t->path);
    if (s == LS_OK) s = load_weights(t, e); /* checks the files against the manifest */
    if (has_text && s == LS_OK) s = ls_tokenizer_load(tokenizer, &t->tokenizer, e);
    if (has_text && s == LS_OK &&
        !ls_config_fits_tokens(&t->config, ls_tokenizer_vocab(t->tokenizer)))
        s = ls_fail(e, LS_EINVAL, "%s: has %u tokens, model.vocab is %lld", tokenizer,
                    ls_tokenizer_vocab(t->tokenizer), (long long)t->config.model.vocab);
    if (s == LS_OK) s = read_generation(t, e);
    free(config);
    free(tokenizer);
    return s;
}

/* An error in a file may be due to damage: then reports the damage instead. */
static ls_status report_damage(const char *path, ls_status s, ls_error *e) {
    ls_checkpoint_info i;
    ls_error why = {0};
    ls_status damaged = ls_checkpoint_verify(path, &i, &why);
    return damaged == LS_OK ? s : ls_fail(e, damaged, "%s", why.msg);
}

/* A file that is truncated while it is read is an error. */
static ls_status open_strips(ls_trained *t, bool later, ls_error *e) {
    LS_TRY(ls_strips_open(&t->model, &t->compute, ls_config_compute(&t->config),
                          ls_trained_frozen(t), &t->strips, e));
    while (!later && ls_strips_next(&t->strips)) {
    }
    return ls_guard_check(e);
}

ls_status ls_trained_open(const char *path, const ls_trained_options *o, ls_trained *t_p,
                          ls_error *e) {
    ls_trained t = {.ema = o->ema,
                    .evaluates = o->evaluates,
                    .device = o->device,
                    .is_published = ls_published_is(path)};
    if (t.is_published)
        t.path = ls_strdup(path);
    else
        LS_TRY(ls_checkpoint_resolve(path, &t.path, e));
    *t_p = t;
    ls_status s = t.is_published ? open_published(t_p, o, e) : open_trained(t_p, o, e);
    if (s == LS_OK && o->writes && !o->device && t_p->model.frozen_count > 0)
        s = open_strips(t_p, o->strips_later, e);
    if (s != LS_OK && !t.is_published) s = report_damage(t.path, s, e);
    if (s != LS_OK) ls_trained_close(t_p);
    return s;
}

ls_status ls_trained_place(ls_trained *t, const char *device, ls_error *e) {
    ls_infer_close_memory(&t->infer);
    t->device = device;
    return open_infer(t, e);
}

void ls_trained_close(ls_trained *t) {
    ls_infer_close_memory(&t->infer);
    ls_placed_close(&t->placed);
    if (t->compute.pool) ls_compute_close(&t->compute);
    ls_unmap(t->params, t->params_nbytes);
    ls_unmap(t->rounded, t->rounded_nbytes);
    ls_strips_close(&t->strips);
    free(t->frozen);
    ls_frozen_file_close(&t->frozen_file);
    ls_pretrained_close(&t->published);
    ls_model_free(&t->model);
    ls_tokenizer_free(t->tokenizer);
    free(t->path);
    *t = (ls_trained){0};
}

/* The parameters of this kind don't depend on the context: the weights stay where they are. */
ls_status ls_trained_shorten(ls_trained *t, int64_t context, ls_error *e) {
    if (context >= t->config.model.context) return LS_OK;
    ls_infer_close_memory(&t->infer);
    ls_model_free(&t->model);
    t->config.model.context = context;
    LS_TRY(create_model(t, e));
    return open_infer(t, e);
}

ls_status ls_trained_needs_text(const ls_trained *t, const char *what, ls_error *e) {
    if (t->tokenizer) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: was trained on samples of files, without a tokenizer; %s is for runs on a "
                   "text",
                   t->path, what);
}

size_t ls_trained_ntokens(const ls_trained *t) {
    size_t rows = (size_t)t->config.model.vocab, tokens = ls_tokenizer_used(t->tokenizer);
    return rows < tokens ? rows : tokens;
}

const char *ls_written_end_name(ls_written_end end) {
    static const char *const names[] = {[LS_END_LENGTH] = "length",
                                        [LS_END_TOKEN] = "end",
                                        [LS_END_STOP] = "stop",
                                        [LS_END_ASKED] = "asked"};
    return names[end];
}

const ls_sampler_rule LS_RULE_UNKNOWN = {-1, -1, -1, -1, -1};

/* The first that is known: the user's, the model's, or the other. */
static double first_known(double given, double model, double otherwise) {
    return given >= 0 ? given : model > 0 ? model : otherwise;
}

void ls_trained_complete_rule(const ls_trained *t, const ls_sampler_rule *otherwise,
                              ls_sampler_rule *r) {
    const ls_generation *g = &t->generation;
    double temperature = g->greedy ? 0 : otherwise->temperature;
    r->temperature = first_known(r->temperature, g->greedy ? 0 : g->temperature, temperature);
    r->top_p = first_known(r->top_p, g->top_p, otherwise->top_p);
    r->min_p = first_known(r->min_p, g->min_p, otherwise->min_p);
    r->penalty = first_known(r->penalty, g->penalty, otherwise->penalty);
    if (r->top_k < 0) r->top_k = g->top_k > 0 ? g->top_k : otherwise->top_k;
}

static ls_status check_loss(double nats, const char *what, ls_error *e) {
    if (isfinite(nats)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: the model's loss on it is %g: its weights are useless", what,
                   nats);
}

static ls_status add_ranks(const ls_trained *t, const ls_dataset *d, ls_evaluation *v_p,
                           ls_error *e) {
    ls_ranking *r = NULL;
    if (!ls_ranking_is_wanted(&t->model)) return LS_OK;
    LS_TRY(ls_ranking_open(&t->infer, d, 0, &r, e));
    uint64_t n = ls_ranking_users(r);
    size_t record = ls_ranking_size(r);
    double *records = LS_NEW_ARRAY(double, n *record);
    ls_status s = LS_OK;
    for (uint64_t i = 0; s == LS_OK && i < n; i++)
        s = ls_ranking_record(r, i, records + i * record, e);
    if (s == LS_OK) ls_ranking_add(r, records, v_p);
    free(records);
    ls_ranking_close(r);
    return s;
}

ls_status ls_trained_evaluate_data(const ls_trained *t, const ls_dataset *d, ls_evaluation *v_p,
                                   double **records_p, ls_error *e) {
    size_t record = ls_record_size(&t->model);
    uint64_t most = (uint64_t)t->infer.n;
    char *samples = ls_alloc(most * d->sample_nbytes);
    double *records = LS_NEW_ARRAY(double, d->nval *record), nbytes = 0;
    ls_status s = LS_OK;
    ls_bar bar = ls_bar_begin("evaluating", d->nval);
    for (uint64_t i = 0; s == LS_OK && i < d->nval; i += most) {
        uint64_t k = d->nval - i < most ? d->nval - i : most;
        for (uint64_t j = 0; s == LS_OK && j < k; j++) {
            char *sample = samples + j * d->sample_nbytes;
            s = ls_dataset_val_sample(d, i + j, sample, e);
            if (s == LS_OK && ls_dataset_is_text(d)) nbytes += ls_dataset_text_nbytes(d, sample);
        }
        if (s == LS_OK)
            s = ls_infer_records(&t->infer, (int64_t)k, samples, records + i * record, e);
        ls_bar_at(&bar, i + k);
    }
    ls_bar_end(&bar);
    if (s == LS_OK) *v_p = ls_evaluation_of_records(&t->model, records, d->nval, nbytes);
    if (s == LS_OK) s = add_ranks(t, d, v_p, e);
    if (s == LS_OK) s = ls_guard_check(e);
    if (s == LS_OK) s = check_loss(v_p->loss, t->path, e);
    free(samples);
    if (s == LS_OK && records_p)
        *records_p = records;
    else
        free(records);
    return s;
}

ls_status ls_trained_evaluate(const ls_trained *t, const uint32_t *tokens, size_t n,
                              const char *what, ls_evaluation *v_p, ls_error *e) {
    int64_t T = t->config.model.context, ntargets = t->model.weighing.ntargets;
    if (n < (size_t)T + 1)
        return ls_fail(e, LS_EINVAL, "%s: has %zu tokens, shorter than one context (%lld + 1)%s",
                       what, n, (long long)T,
                       t->is_published ? "; --set model.context=N sets a shorter one" : "");
    size_t nsamples = (n - 1) / (size_t)T;
    size_t most = (size_t)t->infer.n;
    uint32_t *samples = LS_NEW_ARRAY(uint32_t, most * (size_t)(T + 1));
    double nats = 0, nbytes = 0, *losses = LS_NEW_ARRAY(double, most);
    ls_bar bar = ls_bar_begin("evaluating", nsamples);
    for (size_t i = 0; i < nsamples; i += most) {
        size_t k = nsamples - i < most ? nsamples - i : most;
        for (size_t j = 0; j < k; j++)
            memcpy(samples + j * (size_t)(T + 1), tokens + (i + j) * (size_t)T,
                   (size_t)(T + 1) * sizeof *samples);
        ls_infer_losses(&t->infer, (int64_t)k, samples, losses);
        for (size_t j = 0; j < k; j++) /* some models' losses are means */
            nats += losses[j] * (double)(ntargets ? ntargets : 1);
        ls_bar_at(&bar, i + k);
    }
    ls_bar_end(&bar);
    for (size_t i = 1; i <= nsamples * (size_t)T; i++)
        nbytes += (double)ls_tokenizer_text_nbytes(t->tokenizer, tokens[i]);
    free(samples);
    free(losses);
    LS_TRY(ls_infer_check(&t->infer, e));
    LS_TRY(check_loss(nats, what, e));
    *v_p = ls_evaluation_of(nats, nbytes, nsamples, T);
    return LS_OK;
}
