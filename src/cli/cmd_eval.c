/* cmd_eval.c - lockstep eval */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "config/relations.h"
#include "infer/conversations.h"
#include "infer/published.h"
#include "model/shape.h"
#include "source/text.h"
#include "storage/checkpoint.h"
#include "storage/dataset.h"
#include "storage/reference.h"

enum { DATA, CHAT, REFERENCE, EMA, SET, JSON };

/* The result of an evaluation. */
typedef struct measured {
    const char *checkpoint;
    bool ema, has_tokens;
    const char *data;      /* a file; NULL: the validation part of the run's data */
    const char *val_path;  /* of samples in place of that part; NULL: none */
    int64_t count;         /* of tokens, or of samples */
    size_t file_tokens;    /* tokens of that file; 0: it has conversations */
    const char *reference; /* of the pairs of that file; NULL: it has no pairs */
    ls_evaluation model, bigram;
    bool has_bigram;
} measured;

static void set_level(ls_json *o, const char *key, const measured *m, const ls_evaluation *v) {
    ls_json *level = ls_json_new_object();
    ls_json_set_number(level, "loss", v->loss);
    if (m->has_tokens) ls_json_set_number(level, "perplexity", exp(v->loss));
    if (v->bits_per_byte > 0) ls_json_set_number(level, "bits_per_byte", v->bits_per_byte);
    ls_json *metrics = ls_json_new_object();
    for (int i = 0; i < v->nmetrics; i++)
        ls_json_set_number(metrics, v->metrics[i].name, v->metrics[i].value);
    if (v->nmetrics)
        ls_json_set(level, "metrics", metrics);
    else
        ls_json_free(metrics);
    ls_json_set(o, key, level);
}

static void print_json(const measured *m) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "checkpoint", ls_json_new_path(m->checkpoint));
    ls_json_set_text(o, "weights", m->ema ? "ema" : "last");
    const char *data = m->data ? m->data : m->val_path;
    ls_json_set(o, "data", data ? ls_json_new_path(data) : ls_json_new_null());
    if (m->reference) ls_json_set(o, "reference", ls_json_new_path(m->reference));
    ls_json_set_integer(o, m->has_tokens ? "tokens" : "samples", m->count);
    set_level(o, "model", m, &m->model);
    if (m->has_bigram) set_level(o, "bigram", m, &m->bigram);
    ls_print_json(o);
    ls_json_free(o);
}

static void print_level(const char *name, const measured *m, const ls_evaluation *v) {
    ls_print("%-8s loss %.4f", name, v->loss);
    if (m->has_tokens) ls_print(" nats/token, perplexity %.3f", exp(v->loss));
    if (v->bits_per_byte > 0) ls_print(", %.4f bits/byte", v->bits_per_byte);
    ls_buf metrics = {0};
    ls_evaluation_print(v, &metrics);
    ls_print("%s\n", metrics.len ? metrics.data : "");
    ls_buf_free(&metrics);
}

static void print(const measured *m, bool json) {
    if (json) {
        print_json(m);
        return;
    }
    if (m->reference)
        ls_print("%s on the %lld pair%s of %s, beside %s\n", m->checkpoint, (long long)m->count,
                 ls_plural(m->count), m->data, m->reference);
    else if (m->data && !m->file_tokens)
        ls_print("%s on the conversations of %s\n", m->checkpoint, m->data);
    else if (m->data)
        ls_print("%s on %s: %lld of %zu tokens, in whole contexts\n", m->checkpoint, m->data,
                 (long long)m->count, m->file_tokens);
    else
        ls_print("%s: %lld %s of %s\n", m->checkpoint, (long long)m->count,
                 m->has_tokens ? "tokens" : "samples",
                 m->val_path ? m->val_path : "the validation part");
    print_level(m->ema ? "average" : "model", m, &m->model);
    if (m->has_bigram) print_level("bigram", m, &m->bigram);
}

/* Of a text: the level of a bigram model. */
static ls_status add_bigram(const ls_trained *t, const ls_corpus *c, measured *m, ls_error *e) {
    size_t nval = (size_t)c->nval * (size_t)t->config.model.context + 1;
    double bigram = 0, nbytes = 0;
    LS_TRY(ls_corpus_bigram(c, nval, &bigram, &nbytes, e));
    m->has_bigram = true;
    m->bigram = ls_evaluation_of(bigram * (double)(nval - 1), nbytes, nval - 1, 1);
    return LS_OK;
}

/* Of pairs: the numbers with which their loss compares. */
static ls_status check_reference(const char *run, const ls_trained *t, const ls_dataset *d,
                                 ls_error *e) {
    if (!ls_config_has_pairs(&t->config) || d->text.chats.has_reference) return LS_OK;
    return ls_fail(e, LS_EIO,
                   "%s/" LS_REFERENCE_FILE ": is missing; resuming the run (--resume) restores it",
                   run);
}

/* The value that --set gives this key, "data.path="; NULL: none. */
static const char *set_value(const ls_args *a, const char *key) {
    const char *value = NULL;
    for (int i = 0; i < a->options[SET].n; i++)
        if (strncmp(a->options[SET].values[i], key, strlen(key)) == 0)
            value = a->options[SET].values[i] + strlen(key);
    return value;
}

/* The tokens of a text, or of conversations, are the run's own file. */
static ls_status check_set_files(const ls_args *a, const ls_trained *t, ls_error *e) {
    static const char *const keys[] = {"data.path=", "data.val_path=", "data.mix="};
    for (int i = 0; i < 3 && ls_config_has_corpus(&t->config); i++)
        if (set_value(a, keys[i]))
            return ls_fail(e, LS_EINVAL,
                           "--set %.*s: the run is evaluated on the tokens that it has saved; "
                           "use %s to evaluate on another file",
                           (int)strlen(keys[i]) - 1, keys[i],
                           ls_config_has_chats(&t->config) ? "--chat FILE" : "--data FILE");
    return LS_OK;
}

/* Evaluates on the validation part of the run's own data, or on another data.val_path. */
static ls_status eval_run(const ls_args *a, const char *run, const ls_trained *t, ls_error *e) {
    ls_dataset d;
    const char *val_path = set_value(a, "data.val_path=");
    bool json = cli_given(a, JSON), other = val_path && *val_path;
    if (t->is_published)
        return ls_fail(e, LS_EINVAL,
                       "%s: is a published model, without data: use --data FILE or --chat FILE",
                       run);
    LS_TRY(check_set_files(a, t, e));
    LS_TRY((other ? ls_dataset_open_other : ls_dataset_open)(&d, run, &t->config, &t->model, e));
    measured m = {.checkpoint = t->path,
                  .ema = t->ema,
                  .has_tokens = ls_config_has_token_losses(&t->config),
                  .val_path = other ? val_path : NULL};
    m.count = (int64_t)((double)d.nval * (m.has_tokens ? ls_config_units(&t->config) : 1));
    ls_status s = check_reference(run, t, &d, e);
    if (s == LS_OK) s = ls_trained_evaluate_data(t, &d, &m.model, e);
    if (s == LS_OK && ls_dataset_is_text(&d)) s = add_bigram(t, &d.text, &m, e);
    if (s == LS_OK) s = ls_dataset_verify(&d, e);
    if (s == LS_OK) print(&m, json);
    ls_dataset_free(&d);
    return s;
}

/* ---- conversations and pairs ---- */

/* The template that a --set names; NULL: none does. */
static const char *set_template(const ls_args *a, const ls_trained *t) {
    bool given = set_value(a, "data.template=") && *t->config.data.template;
    return given ? t->config.data.template : NULL;
}

/* The model that a run began with. */
static ls_status find_reference(const ls_args *a, const ls_trained *t, const char **path_p,
                                ls_error *e) {
    const ls_config *c = &t->config;
    *path_p = cli_value(a, REFERENCE);
    if (*path_p) return LS_OK;
    if (t->is_published || *c->model.adapter)
        return ls_fail(e, LS_EINVAL,
                       "the loss of pairs compares with a reference: give the model before it was "
                       "trained on preferences with --reference");
    *path_p = *c->train.from ? c->train.from : c->model.from;
    if (ls_file_exists(*path_p)) return LS_OK;
    return ls_fail(e, LS_EIO,
                   "%s: is missing; the run began with it, and pairs compare with it: give it, "
                   "or a copy, with --reference",
                   *path_p);
}

/* The reference reads the same samples, and computes as the model does. */
static ls_status check_same_samples(const ls_trained *t, const ls_trained *r, ls_error *e) {
    const ls_config *a = &t->config, *b = &r->config;
    if (a->model.context == b->model.context && a->model.vocab == b->model.vocab) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--reference: %s: has a context of %lld and %lld tokens, %s %lld and %lld; both "
                   "must be the same",
                   r->path, (long long)b->model.context, (long long)b->model.vocab, t->path,
                   (long long)a->model.context, (long long)a->model.vocab);
}

static ls_status refer(const char *path, const ls_trained *t, ls_dataset *d, ls_error *e) {
    ls_trained r;
    char *sets[] = {ls_format("model.context=%lld", (long long)t->config.model.context),
                    ls_format("train.compute=%s", ls_dtype_name(ls_config_compute(&t->config)))};
    ls_trained_options o = {.samples = LS_READS_PAIRS,
                            .sets = (const char *const *)sets,
                            .nsets = ls_published_is(path) ? 2 : 0};
    ls_status s = ls_trained_open(path, &o, &r, e);
    if (s == LS_OK) {
        s = check_same_samples(t, &r, e);
        if (s == LS_OK) s = ls_trained_refer(&r, d, e);
        ls_trained_close(&r);
    }
    free(sets[0]);
    free(sets[1]);
    return s;
}

/* Evaluates on all conversations, or pairs, of a file. */
static ls_status eval_chats(const ls_args *a, const ls_trained *t, ls_error *e) {
    ls_dataset d;
    bool pairs = ls_config_has_pairs(&t->config);
    measured m = {
        .checkpoint = t->path, .ema = t->ema, .has_tokens = !pairs, .data = cli_value(a, CHAT)};
    if (pairs) LS_TRY(find_reference(a, t, &m.reference, e));
    LS_TRY(ls_trained_chats(t, m.data, set_template(a, t), &d, e));
    m.count = (int64_t)((double)d.nval * (m.has_tokens ? ls_config_units(&t->config) : 1));
    ls_status s = pairs ? refer(m.reference, t, &d, e) : LS_OK;
    if (s == LS_OK) s = ls_trained_evaluate_data(t, &d, &m.model, e);
    if (s == LS_OK) print(&m, cli_given(a, JSON));
    ls_dataset_free(&d);
    return s;
}

static ls_status eval_file(const char *path, const ls_trained *t, bool json, ls_error *e) {
    ls_text text;
    ls_token_list tokens = {0};
    ls_evaluation v;
    LS_TRY(ls_trained_needs_text(t, "--data", e));
    LS_TRY(ls_corpus_open_text(path, &t->config, &text, e));
    ls_status s = ls_corpus_encode_text(t->tokenizer, &t->config, &text, &tokens, e);
    if (s == LS_OK) s = ls_trained_evaluate(t, tokens.ids, tokens.n, path, &v, e);
    if (s == LS_OK) s = ls_text_check(&text, e);
    if (s == LS_OK) {
        measured m = {.checkpoint = t->path,
                      .ema = t->ema,
                      .has_tokens = true,
                      .data = path,
                      .file_tokens = tokens.n,
                      .model = v};
        m.count = (int64_t)v.nsamples * t->config.model.context;
        print(&m, json);
    }
    free(tokens.ids);
    free(tokens.ends);
    ls_text_close(&text);
    return s;
}

static ls_status choose_samples(const ls_args *a, ls_trained_samples *s_p, ls_error *e) {
    const char *data = cli_value(a, DATA), *chats = cli_value(a, CHAT);
    if (data && chats) return ls_fail(e, LS_EINVAL, "give --data or --chat, not both");
    *s_p = data                        ? LS_READS_TEXT
           : !chats                    ? LS_READS_OWN_DATA
           : ls_chats_are_pairs(chats) ? LS_READS_PAIRS
                                       : LS_READS_CHATS;
    if (!cli_given(a, REFERENCE) || *s_p == LS_READS_PAIRS) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--reference is for a file of chosen and rejected answers (--chat)");
}

static int run(const ls_args *a) {
    ls_error e = {0};
    ls_trained t;
    ls_trained_samples samples = LS_READS_OWN_DATA;
    const char *data = cli_value(a, DATA);
    if (choose_samples(a, &samples, &e) != LS_OK) return cli_fail(&e);
    ls_trained_options o = {.ema = cli_given(a, EMA),
                            .samples = samples,
                            .sets = a->options[SET].values,
                            .nsets = a->options[SET].n};
    if (ls_trained_open(a->words[0], &o, &t, &e) != LS_OK) return cli_fail(&e);
    bool json = cli_given(a, JSON);
    char *dir = ls_checkpoint_run(a->words[0]);
    ls_status s = data                           ? eval_file(data, &t, json, &e)
                  : samples == LS_READS_OWN_DATA ? eval_run(a, dir, &t, &e)
                                                 : eval_chats(a, &t, &e);
    free(dir);
    ls_trained_close(&t);
    return s == LS_OK ? 0 : cli_fail(&e);
}

const ls_command cmd_eval = {
    .name = "eval",
    .words = "RUN|MODEL",
    .min_words = 1,
    .max_words = 1,
    .summary = "measure a trained model's loss",
    .about =
        "Prints the loss of the run's newest checkpoint, or of the given checkpoint\n"
        "(RUN/checkpoints/best), on the validation part of the run's data; of a text, beside\n"
        "that of a bigram model of the same tokens, and with --data on another text. A run on\n"
        "samples of files is evaluated on others with --set data.val_path=FILE.\n"
        "\n"
        "MODEL is a published model, a GGUF file or a directory (docs/pretrained.md); it needs\n"
        "--data or --chat. Its context is 4096 tokens, or what it allows; --set\n"
        "model.context=N.",
    .options = {[DATA] = {"data", 0, "FILE", "evaluate on this UTF-8 text"},
                [CHAT] = {"chat", 0, "FILE",
                          "evaluate on these conversations, of a model with a chat template "
                          "(docs/training.md), or on pairs of a chosen and a rejected answer"},
                [REFERENCE] = {"reference", 0, "RUN|MODEL",
                               "what a loss of pairs compares with (default: the model that the "
                               "run began with)"},
                [EMA] = {"ema", 0, NULL, "use the average of the weights (optim.ema)"},
                [SET] = {"set", 0, "KEY=VALUE",
                         "override a key of the run's config, e.g. data.path or model.metrics; "
                         "repeatable"},
                [JSON] = {"json", 0, NULL, "for programs: one JSON object (docs/json.md)"}},
    .run = run,
};
