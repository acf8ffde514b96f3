/* evaluated.c - see evaluated.h. */
#include "infer/evaluated.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "config/relations.h"
#include "dataset/dataset.h"
#include "dataset/reference.h"
#include "infer/conversations.h"
#include "infer/published.h"
#include "infer/results.h"
#include "model/types.h"
#include "source/text.h"
#include "storage/checkpoint.h"

/* Adds the loss of a bigram model of the text, for comparison. */
static ls_status add_bigram(const ls_trained *t, const ls_corpus *c, ls_evaluated *m, ls_error *e) {
    size_t nval = (size_t)c->nval * (size_t)t->config.model.context + 1;
    double bigram = 0, nbytes = 0;
    LS_TRY(ls_corpus_bigram(c, nval, &bigram, &nbytes, e));
    m->has_bigram = true;
    m->bigram = ls_evaluation_of(bigram * (double)(nval - 1), nbytes, nval - 1, 1);
    return LS_OK;
}

/* Checks that the reference of preference pairs, with which their loss compares, is there. */
static ls_status check_reference(const char *run, const ls_trained *t, const ls_dataset *d,
                                 ls_error *e) {
    if (!ls_config_has_pairs(&t->config) || d->text.chats.has_reference) return LS_OK;
    return ls_fail(e, LS_EIO,
                   "%s/" LS_REFERENCE_FILE ": is missing; resuming the run (--resume) restores it",
                   run);
}

/* The value that --set gives this key, "data.path="; NULL: none. */
static const char *set_value(const ls_evaluated_request *q, const char *key) {
    const char *value = NULL;
    for (int i = 0; i < q->nsets; i++)
        if (strncmp(q->sets[i], key, strlen(key)) == 0) value = q->sets[i] + strlen(key);
    return value;
}

/* The tokens of a text, or of conversations, are the run's own file. */
static ls_status check_set_files(const ls_evaluated_request *q, const ls_trained *t, ls_error *e) {
    static const char *const keys[] = {"data.path=", "data.val_path=", "data.mix="};
    for (int i = 0; i < 3 && ls_config_has_corpus(&t->config); i++)
        if (set_value(q, keys[i]))
            return ls_fail(e, LS_EINVAL,
                           "--set %.*s: the run is evaluated on the tokens that it has saved; "
                           "use %s to evaluate on another file",
                           (int)strlen(keys[i]) - 1, keys[i],
                           ls_config_has_chats(&t->config) ? "--chat FILE" : "--data FILE");
    return LS_OK;
}

/* The first confusion matrix of the model; NULL: it has none. */
static const ls_measure *find_matrix(const ls_model *m) {
    for (int i = 0; i < m->nmeasures; i++)
        if (m->measures[i].kind == LS_MEASURE_CONFUSION) return &m->measures[i];
    return NULL;
}

/* The number of samples; for texts that of their tokens, for conversations that of the tokens which
 * the loss counts. */
static int64_t count_samples(const ls_trained *t, const ls_dataset *d, const ls_evaluated *m,
                             const double *records) {
    if (!m->has_tokens) return (int64_t)d->nval;
    double ntargets = (double)t->model.weighing.ntargets, counted = 0;
    if (!d->text.has_chats || ntargets == 0)
        return (int64_t)((double)d->nval * ls_config_units(&t->config));
    for (uint64_t i = 0; i < d->nval; i++)
        counted += records[i * ls_record_size(&t->model) + LS_RECORD_WEIGHT];
    return (int64_t)(counted * ntargets + 0.5);
}

/* Evaluates on the validation part of the data; with --output also writes pictures. */
static ls_status measure(const ls_evaluated_request *q, const ls_trained *t, const ls_dataset *d,
                         ls_evaluated *m, ls_error *e) {
    const char *dir = q->output;
    double *records = NULL;
    LS_TRY(ls_trained_evaluate_data(t, d, &m->model, &records, e));
    const ls_measure *x = find_matrix(&t->model);
    m->count = count_samples(t, d, m, records);
    if (x) {
        m->classes = ls_results_confusion(&t->model, d, x, records);
        m->names = ls_classes_copy(
            &(ls_classes){(char **)(uintptr_t)m->classes.names, m->classes.nnames, false});
        m->classes.names = m->names.names;
    }
    ls_status s = d->samples ? ls_samples_verify(d->samples, e) : LS_OK;
    if (s == LS_OK && dir) {
        s = ls_file_make_dirs(dir, e);
        if (s == LS_OK) ls_results_write(&t->model, d, records, dir);
    }
    free(records);
    return s;
}

/* Do predictions need this input of the model? Else it is a label. */
static bool is_needed(const ls_trained *t, int input) {
    bool *layers = ls_alloc((size_t)t->model.nlayers), fields[LS_SOURCE_FIELDS];
    ls_prediction list[LS_PREDICTIONS];
    ls_predictions_need(&t->model, list, ls_predictions_of(&t->model, list), layers, fields);
    free(layers);
    return fields[input];
}

/* Samples of other files, read as the run reads its own. */
static ls_status open_samples(const ls_evaluated_request *q, const ls_trained *t, ls_dataset *d_p,
                              ls_error *e) {
    const char *labels = q->labels;
    int missing = -1;
    const ls_other_samples other = {
        .paths = q->data, .labels = labels ? labels : "", .dir = t->path, .missing_p = &missing};
    ls_error own = {0};
    ls_status s = ls_dataset_open_files(d_p, &t->config, &t->model, &other, &own);
    if (s != LS_OK && missing >= 0 && !is_needed(t, missing))
        return ls_fail(e, s, "%.400s; without labels there is `lockstep predict`", own.msg);
    if (s != LS_OK && e) *e = own;
    return s;
}

static ls_status eval_samples(const ls_evaluated_request *q, const ls_trained *t, ls_evaluated *m,
                              ls_error *e) {
    ls_dataset d;
    LS_TRY(open_samples(q, t, &d, e));
    m->data = q->data;
    ls_status s = measure(q, t, &d, m, e);
    ls_dataset_free(&d);
    return s;
}

/* What a published model is to read, as the run does. */
static ls_trained_samples samples_of(const ls_config *c) {
    return ls_config_has_pairs(c)   ? LS_READS_PAIRS
           : ls_config_has_chats(c) ? LS_READS_CHATS
                                    : LS_READS_TEXT;
}

/* The model that a run began with, which reads the samples of the run. */
static ls_status eval_before(const ls_evaluated_request *q, const ls_trained *t,
                             const ls_dataset *d, ls_evaluated *m, ls_error *e) {
    const char *path = ls_config_origin(&t->config);
    char *context = ls_format("model.context=%lld", (long long)t->config.model.context);
    const char *packing = t->config.data.packing ? "data.packing=on" : "data.packing=off";
    const char *const sets[] = {context, packing};
    bool published = ls_published_is(path);
    ls_trained_options o = {.evaluates = true,
                            .samples = published ? samples_of(&t->config) : LS_READS_OWN_DATA,
                            .sets = sets,
                            .nsets = published ? 2 : 0,
                            .device = q->device};
    ls_trained before;
    ls_status s = ls_trained_open(path, &o, &before, e);
    free(context);
    if (s != LS_OK) return s;
    if (before.model.sample_nbytes != t->model.sample_nbytes)
        s = ls_fail(e, LS_EINVAL, "--before: %s reads samples of another form than %s", path,
                    t->path);
    *m = (ls_evaluated){.checkpoint = ls_strdup(before.path),
                        .has_tokens = ls_config_has_token_losses(&t->config)};
    if (s == LS_OK) s = measure(q, &before, d, m, e);
    ls_trained_close(&before);
    return s;
}

/* Evaluates on the validation part of the run's own data, or on another data.val_path; and then the
 * model that it began with, as m[1], if that is wanted. */
static ls_status eval_run(const ls_evaluated_request *q, const char *run, const ls_trained *t,
                          ls_evaluated *m, ls_error *e) {
    ls_dataset d;
    const char *val_path = set_value(q, "data.val_path=");
    bool other = val_path && *val_path;
    if (t->is_published)
        return ls_fail(e, LS_EINVAL,
                       "%s: is a published model, without data: use --data FILE or --chat FILE",
                       run);
    LS_TRY(check_set_files(q, t, e));
    if (!other) LS_TRY(ls_trained_needs_own_data(t, e));
    LS_TRY((other ? ls_dataset_open_other : ls_dataset_open)(&d, run, &t->config, &t->model, e));
    m->has_tokens = ls_config_has_token_losses(&t->config);
    m->data = other ? val_path : NULL;
    ls_status s = check_reference(run, t, &d, e);
    if (s == LS_OK) s = measure(q, t, &d, m, e);
    if (s == LS_OK && ls_dataset_is_text(&d)) s = add_bigram(t, &d.text, m, e);
    if (s == LS_OK) s = ls_dataset_verify(&d, e);
    if (s == LS_OK && q->before) s = eval_before(q, t, &d, &m[1], e);
    ls_dataset_free(&d);
    return s;
}

/* ---- conversations and pairs ---- */

/* The template that a --set names; NULL: none does. */
static const char *set_template(const ls_evaluated_request *q, const ls_trained *t) {
    bool given = set_value(q, "data.template=") && *t->config.data.template;
    return given ? t->config.data.template : NULL;
}

/* The model that a run began with. */
static ls_status find_reference(const ls_evaluated_request *q, const ls_trained *t,
                                const char **path_p, ls_error *e) {
    const ls_config *c = &t->config;
    *path_p = q->reference;
    if (*path_p) return LS_OK;
    if (t->is_published || *c->model.adapter)
        return ls_fail(e, LS_EINVAL,
                       "the loss of pairs compares with a reference: give the model before it was "
                       "trained on preferences with --reference");
    *path_p = ls_config_origin(c);
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
                            .nsets = ls_published_is(path) ? 2 : 0,
                            .like = &t->config,
                            .device = t->device};
    ls_status s = ls_trained_open(path, &o, &r, e);
    if (s == LS_OK) {
        s = ls_trained_shorten(&r, t->config.model.context, e);
        if (s == LS_OK) s = check_same_samples(t, &r, e);
        if (s == LS_OK) s = ls_trained_refer(&r, d, e);
        ls_trained_close(&r);
    }
    free(sets[0]);
    free(sets[1]);
    return s;
}

/* Evaluates on all conversations, or pairs, of a file. */
static ls_status eval_chats(const ls_evaluated_request *q, ls_trained *t, ls_evaluated *m,
                            ls_error *e) {
    ls_dataset d;
    bool pairs = ls_config_has_pairs(&t->config);
    m->has_tokens = !pairs;
    m->data = q->chat;
    m->unit = pairs ? "pairs" : "conversations";
    if (pairs) LS_TRY(find_reference(q, t, &m->reference, e));
    LS_TRY(ls_trained_chats(t, m->data, set_template(q, t), &d, e));
    ls_status s = pairs ? refer(m->reference, t, &d, e) : LS_OK;
    if (s == LS_OK) s = measure(q, t, &d, m, e);
    ls_dataset_free(&d);
    return s;
}

static ls_status eval_text(const char *path, const ls_trained *t, ls_evaluated *m, ls_error *e) {
    ls_text text;
    ls_token_list tokens = {0};
    LS_TRY(ls_trained_needs_text(t, "--data", e));
    LS_TRY(ls_corpus_open_text(path, &t->config, &text, e));
    ls_status s = ls_corpus_encode_text(t->tokenizer, &t->config, &text, &tokens, e);
    if (s == LS_OK) s = ls_trained_evaluate(t, tokens.ids, tokens.n, path, &m->model, e);
    if (s == LS_OK) s = ls_text_check(&text, e);
    m->has_tokens = true;
    m->data = path;
    m->file_tokens = tokens.n;
    m->count = (int64_t)m->model.nsamples * t->config.model.context;
    free(tokens.ids);
    free(tokens.ends);
    ls_text_close(&text);
    return s;
}

static ls_status choose_samples(const ls_evaluated_request *q, ls_trained_samples *s_p,
                                ls_error *e) {
    const char *data = q->data, *chats = q->chat;
    if (data && chats) return ls_fail(e, LS_EINVAL, "give --data or --chat, not both");
    *s_p = data                        ? LS_READS_TEXT
           : !chats                    ? LS_READS_OWN_DATA
           : ls_chats_are_pairs(chats) ? LS_READS_PAIRS
                                       : LS_READS_CHATS;
    if (!q->reference || *s_p == LS_READS_PAIRS) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "--reference is for a file of chosen and rejected answers (--chat)");
}

/* context: of a published model, in place of its own; 0: its own, or what --set says. */
static ls_status open_model(const ls_evaluated_request *q, const char *path,
                            const ls_trained_options *how, int64_t context, ls_trained *t_p,
                            ls_error *e) {
    ls_trained_options o = *how;
    int n = q->nsets;
    char *own = ls_format("model.context=%lld", (long long)context);
    const char **sets = LS_NEW_ARRAY(const char *, (size_t)n + 1);
    for (int i = 0; i < n; i++) sets[i] = q->sets[i];
    if (context && ls_published_is(path)) sets[n++] = own;
    o.sets = sets;
    o.nsets = n;
    ls_status s = ls_trained_open(path, &o, t_p, e);
    free(sets);
    free(own);
    return s;
}

/* Opens a model and evaluates it: m[0], and with --before on the run's own data m[1]. context: as
 * above. */
static ls_status eval_model(const ls_evaluated_request *q, const char *path,
                            ls_trained_samples samples, int64_t context, ls_evaluated *m,
                            ls_error *e) {
    ls_trained t;
    const ls_trained_options o = {
        .ema = q->ema, .evaluates = true, .samples = samples, .device = q->device};
    const char *data = q->data;
    LS_TRY(open_model(q, path, &o, context, &t, e));
    *m = (ls_evaluated){.checkpoint = ls_strdup(t.path), .ema = t.ema};
    if (t.tokenizer) m->context = t.config.model.context;
    ls_status s = LS_OK;
    if (data) {
        s = t.tokenizer ? eval_text(data, &t, m, e) : eval_samples(q, &t, m, e);
    } else if (samples == LS_READS_OWN_DATA) {
        char *dir = ls_checkpoint_run(path);
        s = eval_run(q, dir, &t, m, e);
        free(dir);
    } else {
        s = eval_chats(q, &t, m, e);
    }
    ls_trained_close(&t);
    return s;
}

/* The model that the run began with: free() it. */
static ls_status find_before(const char *run, char **path_p, ls_error *e) {
    char *path = NULL, *file = NULL;
    ls_config *c = LS_NEW(ls_config);
    if (ls_published_is(run))
        return ls_fail(e, LS_EINVAL, "--before: %s is a published model; name a run", run);
    ls_status s = ls_checkpoint_resolve(run, &path, e);
    if (s == LS_OK) file = ls_format("%s/config.yaml", path);
    if (s == LS_OK) s = ls_config_read(file, c, e);
    const char *from = ls_config_origin(c);
    if (s == LS_OK && !*from)
        s = ls_fail(e, LS_EINVAL, "--before: %s began with no other model (train.from, model.from)",
                    run);
    if (s == LS_OK) *path_p = ls_strdup(from);
    free(path);
    free(file);
    free(c);
    return s;
}

static ls_status check_words(const ls_evaluated_request *q, ls_trained_samples samples,
                             ls_error *e) {
    bool own = samples == LS_READS_OWN_DATA;
    if (q->before && q->nmodels > 1)
        return ls_fail(e, LS_EINVAL, "--before: is for one run; name the models themselves");
    if (q->output && (q->nmodels > 1 || q->before))
        return ls_fail(e, LS_EINVAL, "--output: pictures are of one model");
    if (q->labels && !q->data)
        return ls_fail(e, LS_EINVAL, "--labels: are those of --data, which is missing");
    if (own && q->nmodels > 1 && !set_value(q, "data.val_path="))
        return ls_fail(e, LS_EINVAL,
                       "several models are compared on the same data: give --data FILE or --chat "
                       "FILE");
    return LS_OK;
}

/* Texts are cut into contexts. (Conversations that are cut have a line of their own.) */
static void note_contexts(const ls_evaluated *m, int n) {
    for (int i = 1; i < n; i++) {
        if (m[i].context == m[0].context) continue;
        ls_log("warning: %s reads the text in contexts of %lld tokens, %s in contexts of %lld: "
               "their losses are not of the same samples; a published model takes --set "
               "model.context=N",
               m[0].checkpoint, (long long)m[0].context, m[i].checkpoint, (long long)m[i].context);
        return;
    }
}

ls_status ls_evaluate_models(const ls_evaluated_request *q, ls_evaluated *m, int *n_p,
                             ls_error *e) {
    ls_trained_samples samples = LS_READS_OWN_DATA;
    char *before = NULL;
    LS_TRY(choose_samples(q, &samples, e));
    LS_TRY(check_words(q, samples, e));
    if (q->before) LS_TRY(find_before(q->models[0], &before, e));
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < q->nmodels; i++, ++*n_p)
        s = eval_model(q, q->models[i], samples, 0, &m[i], e);
    if (s == LS_OK && before && samples != LS_READS_OWN_DATA) /* in the run's context */
        s = eval_model(q, before, samples, m[0].context, &m[(*n_p)], e);
    if (s == LS_OK && before) ++*n_p;
    if (s == LS_OK && samples == LS_READS_TEXT) note_contexts(m, *n_p);
    free(before);
    return s;
}

void ls_evaluated_free(ls_evaluated *m) {
    free(m->checkpoint);
    free(m->classes.counts);
    ls_classes_free(&m->names);
    *m = (ls_evaluated){0};
}
