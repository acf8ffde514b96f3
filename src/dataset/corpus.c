/* corpus.c - see corpus.h. */
#include "dataset/corpus.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/math.h"
#include "base/utf8.h"
#include "config/needs.h"
#include "config/relations.h"
#include "data/bigram.h"
#include "data/documents.h"
#include "dataset/data_files.h"
#include "dataset/published_record.h"
#include "dataset/reference.h"
#include "weights/model_chat.h"

static const char TOKENIZER[] = LS_TOKENIZER_FILE, TOKENS[] = "tokens.bin";

/* Tokens of the validation part, if the config decides. */
static size_t val_tokens(const ls_config *config, size_t n) {
    size_t least = (size_t)config->model.context + 1;
    size_t nval = (size_t)ls_math_times(config->data.val_fraction, (double)n);
    return nval < least ? least : nval;
}

/* Splits training from validation; both need at least one sample. */
static ls_status split(ls_corpus *c, const ls_config *config, const char *what, ls_error *e) {
    uint64_t T = (uint64_t)config->model.context, n = c->tokens.n, first = c->tokens.val_first;
    uint64_t nval = first ? n - first : val_tokens(config, n);
    if (n < nval + T + 1 || nval < T + 1)
        return ls_fail(e, LS_EINVAL,
                       "%s: has %llu tokens; training and validation need at least %llu each "
                       "(model.context %llu + 1): use a longer text or a shorter context",
                       what, (unsigned long long)n, (unsigned long long)(T + 1),
                       (unsigned long long)T);
    c->ntrain = (n - nval - 1) / T;
    c->val_first = (size_t)(n - nval);
    c->nval = (nval - 1) / T;
    uint32_t vocab = ls_tokenizer_vocab(c->tokenizer);
    c->nbytes = LS_NEW_ARRAY(uint32_t, vocab);
    for (uint32_t i = 0; i < vocab; i++)
        c->nbytes[i] = (uint32_t)ls_tokenizer_text_nbytes(c->tokenizer, i);
    return LS_OK;
}

static void set_record(ls_corpus *c) {
    c->record = (ls_corpus_record){.ntokens = c->tokens.n,
                                   .tokenizer =
                                       ls_hash_bytes(c->tokenizer_json.data, c->tokenizer_json.len),
                                   .tokens = c->tokens.hash};
}

static ls_status load_tokenizer(ls_corpus *c, const char *path, ls_error *e) {
    LS_TRY(ls_file_read(path, LS_TOKENIZER_NBYTES, &c->tokenizer_json, e));
    const char *json = c->tokenizer_json.data ? c->tokenizer_json.data : "";
    return ls_tokenizer_parse(json, c->tokenizer_json.len, path, &c->tokenizer, e);
}

static ls_status train_tokenizer(ls_corpus *c, const ls_config *config, const ls_text_cut *cut,
                                 const char *what, ls_error *e) {
    LS_TRY(ls_tokenizer_train_cut(cut, what, (uint32_t)config->model.vocab, &c->tokenizer, e));
    ls_tokenizer_write(c->tokenizer, &c->tokenizer_json);
    return LS_OK;
}

/* Does the text have several separate documents? */
static bool has_documents(const ls_config *config, const ls_text *text) {
    return config->data.documents == LS_DOCUMENTS_APART && text->ndocuments > 1;
}

static ls_status find_end(const ls_corpus *c, const char *tokenizer, uint32_t *end_p, ls_error *e) {
    *end_p = ls_tokenizer_end_of_text(c->tokenizer);
    if (*end_p != LS_NO_TOKEN) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: has no token that ends a text (such as " LS_END_OF_TEXT "), and data.path "
                   "has several documents: set data.documents: joined, which reads them as one "
                   "text, or train a tokenizer on them",
                   tokenizer);
}

/* end: the token behind each document, or LS_NO_TOKEN: all are one text. */
static ls_status encode(const ls_tokenizer *t, const ls_text *text, uint32_t end,
                        ls_token_list *list_p, ls_error *e) {
    ls_documents d = {text->documents, text->ndocuments, end};
    ls_bar bar = ls_bar_begin("tokenizing: bytes", text->nbytes);
    ls_encoding how = {
        .what = text->name, .documents = end == LS_NO_TOKEN ? NULL : &d, .bar = &bar};
    ls_status s = ls_tokenizer_encode(t, text->data, text->nbytes, &how, list_p, e);
    ls_bar_end(&bar);
    return s;
}

/* Encodes the text with the tokenizer of a file. */
static ls_status encode_with(ls_corpus *c, const ls_config *config, const ls_text *text,
                             const char *tokenizer, ls_token_list *list_p, ls_error *e) {
    uint32_t end = LS_NO_TOKEN;
    LS_TRY(load_tokenizer(c, tokenizer, e));
    if (has_documents(config, text)) LS_TRY(find_end(c, tokenizer, &end, e));
    return encode(c->tokenizer, text, end, list_p, e);
}

/* Trains a tokenizer on the text, and encodes the text with it. */
static ls_status train_and_encode(ls_corpus *c, const ls_config *config, const ls_text *text,
                                  ls_token_list *list_p, ls_error *e) {
    ls_text_cut cut;
    ls_documents d = {text->documents, text->ndocuments, (uint32_t)config->model.vocab - 1};
    LS_TRY(has_documents(config, text)
               ? ls_text_cut_documents(text->data, &d, text->name, &cut, e)
               : ls_text_cut_make(text->data, text->nbytes, text->name, &cut, e));
    ls_status s = train_tokenizer(c, config, &cut, text->name, e);
    if (s == LS_OK) s = ls_tokenizer_encode_cut(c->tokenizer, &cut, text->name, list_p, e);
    ls_text_cut_free(&cut);
    return s;
}

/* The texts that a run is made from. */
typedef struct texts {
    ls_text training, validation; /* that of data.path, and that of data.val_path */
    bool has_validation;          /* else a part of the training text is held out */
} texts;

static void log_arranged(const texts *t, const ls_arranged *a, const char *end) {
    const char *name = t->training.name;
    size_t n = t->training.ndocuments;
    if (t->has_validation)
        ls_log("%s: %zu documents, a token %s behind each", name, n, end);
    else if (a->nheld)
        ls_log("%s: %zu documents, a token %s behind each; %zu of them %s held out", name, n, end,
               a->nheld, a->nheld == 1 ? "is" : "are");
    else
        ls_log("%s: %zu documents, a token %s behind each; none is short enough to be held out "
               "whole, so the end of the last one is",
               name, n, end);
}

/* Puts the documents' tokens in the order in which they are trained on, and logs that. */
static void arrange(ls_corpus *c, const ls_config *config, const texts *t, ls_token_list *list) {
    size_t nval = t->has_validation ? 0 : val_tokens(config, list->n);
    size_t least = (size_t)config->model.context + 1, nend = 0;
    ls_documents_tokens d = {list->ids, list->n, list->ends, t->training.ndocuments};
    if (list->n < nval + least) return; /* too short: split() says so */
    ls_arranged a = ls_documents_arrange(&d, nval, least, (uint64_t)config->train.seed);
    list->ids = d.ids;
    c->tokens.val_first = a.val_first;
    const uint8_t *name = ls_tokenizer_bytes(c->tokenizer, list->ids[list->n - 1], &nend);
    char *end = ls_format("%.*s", (int)nend, (const char *)name);
    log_arranged(t, &a, end);
    free(end);
}

/* ---- a text of its own for validation ---- */

static void log_validation(const texts *t, bool apart) {
    const ls_text *v = &t->validation;
    uint64_t shared = ls_text_count_shared(&t->training, v);
    if (v->ndocuments > 1)
        ls_log("%s: %zu documents for validation%s", v->name, v->ndocuments,
               apart ? "" : ", which are one text as the training part is");
    if (shared)
        ls_log("warning: %llu of the %zu texts for validation (%s) %s also in data.path: the "
               "validation loss is too low by them",
               (unsigned long long)shared, v->ndocuments, v->name, shared == 1 ? "is" : "are");
}

static ls_status check_length(const ls_text *text, const char *key, size_t n,
                              const ls_config *config, ls_error *e) {
    size_t least = (size_t)config->model.context + 1;
    if (n >= least) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: has %zu tokens; %s needs at least %zu (model.context %lld + 1): use a "
                   "longer text or a shorter context",
                   text->name, n, key, least, (long long)config->model.context);
}

/* Puts the tokens of the validation text behind those of the training text: with a token behind
 * each document if these have one, since the model has learnt that, or not, there. */
static ls_status append_validation(ls_corpus *c, const ls_config *config, const texts *t,
                                   ls_token_list *list, ls_error *e) {
    const ls_text *v = &t->validation;
    ls_token_list val = {0};
    uint32_t end = list->ends ? list->ids[list->n - 1] : LS_NO_TOKEN;
    LS_TRY(check_length(&t->training, "data.path", list->n, config, e));
    LS_TRY(encode(c->tokenizer, v, end, &val, e));
    ls_token_list_log_dropped(&val, v->name);
    ls_text_log_remarks(v);
    log_validation(t, list->ends != NULL);
    ls_status s = check_length(v, "data.val_path", val.n, config, e);
    if (s == LS_OK) {
        list->ids = ls_realloc(list->ids, (list->n + val.n) * sizeof *list->ids);
        memcpy(list->ids + list->n, val.ids, val.n * sizeof *val.ids);
        c->tokens.val_first = list->n;
        list->n += val.n;
    }
    free(val.ids);
    free(val.ends);
    return s;
}

/* ---- making ---- */

/* Keys that say how documents are found must find some. */
static ls_status check_keys(const ls_config *config, const texts *t, ls_error *e) {
    const ls_text *text = &t->training;
    if (text->ndocuments <= 1 && t->validation.ndocuments <= 1)
        LS_TRY(ls_config_refuse_written(config, "data.documents", "several documents", e));
    if (!text->njson && !t->validation.njson)
        LS_TRY(ls_config_refuse_written(config, "data.text",
                                        "files that end in .json, .jsonl or "
                                        ".ndjson",
                                        e));
    if (!*config->data.separator || text->nseparators) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: data.separator, \"%s\", is nowhere in it; correct it, or leave it out",
                   text->name, config->data.separator);
}

static ls_status check_texts(const ls_config *config, const texts *t, ls_error *e) {
    LS_TRY(check_keys(config, t, e));
    if (t->training.nbytes == 0)
        return ls_fail(e, LS_EINVAL, "%s: is empty; data.path needs a text to train on",
                       t->training.name);
    const ls_text *v = &t->validation;
    if (!t->has_validation) return LS_OK;
    if (v->nbytes == 0)
        return ls_fail(e, LS_EINVAL, "%s: is empty; data.val_path needs a text for validation",
                       v->name);
    return ls_utf8_check((const char *)v->data, v->nbytes, v->name, e); /* before much is done */
}

/* Takes the list's tokens over. */
static void take_tokens(ls_corpus *c, const texts *t, const ls_token_list *list) {
    uint64_t val_first = c->tokens.val_first;
    uint64_t nbytes = t->training.nbytes + t->validation.nbytes;
    c->encoded = list->ids;
    c->tokens = ls_tokens_hashed(list->ids, list->n, ls_tokenizer_vocab(c->tokenizer), nbytes);
    if (val_first) {
        c->tokens.val_first = val_first;
        ls_tokens_set_hash(&c->tokens);
    }
    set_record(c);
    c->record.has_text = true;
    c->record.text = ls_hash_bytes(t->training.data, t->training.nbytes);
    c->record.text_bytes = t->training.nbytes;
    c->record.ndocuments = list->ends ? t->training.ndocuments : 0;
    c->record.has_validation = t->has_validation;
    if (!t->has_validation) return;
    c->record.validation = ls_hash_bytes(t->validation.data, t->validation.nbytes);
    c->record.validation_bytes = t->validation.nbytes;
}

/* tokenizer: a file; NULL: one is trained. */
static ls_status make(ls_corpus *c, const ls_config *config, const texts *t, const char *tokenizer,
                      ls_error *e) {
    const ls_text *text = &t->training;
    ls_token_list list = {0};
    LS_TRY(check_texts(config, t, e));
    LS_TRY(tokenizer ? encode_with(c, config, text, tokenizer, &list, e)
                     : train_and_encode(c, config, text, &list, e));
    ls_token_list_log_dropped(&list, text->name);
    ls_text_log_remarks(text);
    if (list.ends) arrange(c, config, t, &list);
    ls_status s = t->has_validation ? append_validation(c, config, t, &list, e) : LS_OK;
    take_tokens(c, t, &list); /* also after an error: it frees them */
    free(list.ends);
    return s == LS_OK ? split(c, config, text->name, e) : s;
}

/* ---- conversations ---- */

static ls_status open_chats(ls_corpus *c, const ls_config *config, const char *what, ls_error *e) {
    LS_TRY(ls_chats_open(&c->tokens, config, what, &c->chats, e));
    c->has_chats = true;
    c->ntrain = c->chats.rows[0].nrows;
    c->nval = c->chats.rows[1].nrows;
    return LS_OK;
}

/* How the model that the run begins with writes conversations. */
static ls_status read_format(const ls_corpus *c, const ls_config *config, ls_chat_format *f_p,
                             ls_error *e) {
    const char *file = *config->data.template ? config->data.template : NULL;
    if (!*config->model.from) {
        LS_TRY(ls_chat_format_of_run(config->train.from, config, c->tokenizer, file, f_p, e));
        if (f_p->template) return LS_OK;
        ls_chat_format_free(f_p);
        return ls_fail(e, LS_EINVAL,
                       "data.template is missing: the run of train.from has no chat template");
    }
    ls_weights w = {0};
    LS_TRY(ls_weights_open(config->model.from, &w, e));
    ls_status s = ls_model_chat_format(&w, c->tokenizer, file, f_p, e);
    ls_weights_close(&w);
    return s;
}

/* Encodes the files that the config names. */
static ls_status encode_lines(ls_corpus *c, const ls_config *config, const ls_chat_format *f,
                              ls_error *e) {
    ls_chats_read r = {0};
    size_t n = 0;
    LS_TRY(ls_chats_encode(config, f, &c->encoded, &n, &r, e));
    c->tokens =
        ls_tokens_hashed(c->encoded, n, (uint32_t)config->model.vocab * LS_CHATS_FLAGS, r.nbytes);
    set_record(c);
    c->record.has_text = true;
    c->record.text = r.hash;
    c->record.text_bytes = r.nbytes;
    ls_chats_log(&r, config);
    ls_chats_read_free(&r);
    return open_chats(c, config, ls_chats_path(config), e);
}

static ls_status encode_chats(ls_corpus *c, const ls_config *config, const char *tokenizer,
                              ls_error *e) {
    ls_chat_format f = {0};
    uint32_t vocab = (uint32_t)config->model.vocab;
    LS_TRY(load_tokenizer(c, tokenizer, e));
    if (ls_tokenizer_vocab(c->tokenizer) > vocab)
        return ls_fail(e, LS_EINVAL, "%s: has %u tokens, model.vocab is %u", tokenizer,
                       ls_tokenizer_vocab(c->tokenizer), vocab);
    LS_TRY(read_format(c, config, &f, e));
    ls_status s = encode_lines(c, config, &f, e);
    ls_chat_format_free(&f);
    return s;
}

ls_status ls_corpus_of_chats(ls_corpus *c, const ls_config *config, const ls_chat_format *f,
                             ls_error *e) {
    *c = (ls_corpus){0};
    ls_status s = encode_lines(c, config, f, e);
    if (s != LS_OK) ls_corpus_free(c);
    return s;
}

ls_status ls_corpus_chat_row(const ls_corpus *c, int part, uint64_t i, void *sample, ls_error *e) {
    return ls_chats_row(&c->chats, &c->tokens, part, i, sample, e);
}

ls_status ls_corpus_chat_train(const void *corpus, const ls_draw *d, size_t nbytes, void *sample,
                               ls_error *e) {
    (void)nbytes;
    return ls_corpus_chat_row(corpus, 0, d->sample, sample, e);
}

/* ---- reading ---- */

/* How texts are read. */
static ls_text_options text_options_of(const ls_config *config) {
    bool any = config->data.format == LS_DATA_AUTO;
    return (ls_text_options){.separator = config->data.separator,
                             .column = config->data.text,
                             .cache = *config->data.cache ? config->data.cache : NULL,
                             .json = any ? LS_TEXT_JSON_COLUMN : LS_TEXT_JSON_AS_IS,
                             .skip_damaged = config->data.damaged == LS_DAMAGED_SKIP};
}

ls_status ls_corpus_open_text(const char *paths, const ls_config *config, ls_text *t_p,
                              ls_error *e) {
    ls_text_options o = text_options_of(config);
    o.json = LS_TEXT_JSON_EITHER;
    return ls_text_open(paths, &o, t_p, e);
}

ls_status ls_corpus_encode_text(const ls_tokenizer *t, const ls_config *config, const ls_text *text,
                                ls_token_list *list_p, ls_error *e) {
    bool apart = has_documents(config, text);
    uint32_t end = apart ? ls_tokenizer_end_of_text(t) : LS_NO_TOKEN;
    if (apart && end == LS_NO_TOKEN)
        ls_log("%s: its %zu documents are one text, since the tokenizer has no token that ends one",
               text->name, text->ndocuments);
    LS_TRY(encode(t, text, end, list_p, e));
    ls_token_list_log_dropped(list_p, text->name);
    ls_text_log_remarks(text);
    return LS_OK;
}

static ls_status open_texts(const ls_config *config, texts *t, ls_error *e) {
    ls_text_options o = text_options_of(config);
    t->has_validation = *config->data.val_path;
    LS_TRY(ls_text_open(config->data.path, &o, &t->training, e));
    return t->has_validation ? ls_text_open(config->data.val_path, &o, &t->validation, e) : LS_OK;
}

static ls_status encode_texts(ls_corpus *c, const ls_config *config, const char *tokenizer,
                              ls_error *e) {
    texts t = {0};
    ls_status s = open_texts(config, &t, e);
    if (s == LS_OK) s = make(c, config, &t, tokenizer, e);
    if (s == LS_OK) s = ls_text_check(&t.training, e);
    if (s == LS_OK) s = ls_text_check(&t.validation, e);
    ls_text_close(&t.training);
    ls_text_close(&t.validation);
    return s;
}

ls_status ls_corpus_encode(ls_corpus *c, const ls_config *config, const char *tokenizer,
                           ls_error *e) {
    *c = (ls_corpus){0};
    bool chats = ls_config_has_chats(config);
    ls_status s =
        chats ? encode_chats(c, config, tokenizer, e) : encode_texts(c, config, tokenizer, e);
    if (s != LS_OK) ls_corpus_free(c);
    return s;
}

ls_status ls_corpus_make(ls_corpus *c, const ls_config *config, ls_error *e) {
    const char *from = ls_config_origin(config);
    char *tokenizer = *from ? ls_format("%s/" LS_TOKENIZER_FILE, from) : NULL;
    ls_status s = ls_corpus_encode(c, config, tokenizer, e);
    free(tokenizer);
    return s;
}

static ls_status save_tokens(const ls_corpus *c, const char *path, ls_error *e) {
    char *fresh = ls_file_only_fresh_name(path);
    ls_status s = ls_tokens_save(&c->tokens, fresh, e);
    if (s == LS_OK) s = ls_file_rename(fresh, path, e);
    free(fresh);
    return s;
}

bool ls_corpus_is_saved(const char *run) {
    return ls_file_exists_in(run, TOKENIZER) && ls_file_exists_in(run, TOKENS);
}

static ls_status save_reference(const ls_corpus *c, const char *run, ls_error *e) {
    ls_buf text = {0};
    ls_reference_write(&c->chats, c->record.tokens, &text);
    ls_status s = ls_data_file_write(run, LS_REFERENCE_FILE, &text, e);
    ls_buf_free(&text);
    return s;
}

ls_status ls_corpus_save(const ls_corpus *c, const char *run, ls_error *e) {
    char *tokens = ls_format("%s/%s", run, TOKENS);
    ls_buf record = {0};
    ls_corpus_record_write(&c->record, &record);
    ls_status s = ls_data_file_write(run, TOKENIZER, &c->tokenizer_json, e);
    if (s == LS_OK && !ls_file_exists(tokens)) s = save_tokens(c, tokens, e);
    if (s == LS_OK) s = ls_data_file_write(run, LS_CORPUS_RECORD, &record, e);
    if (s == LS_OK && c->chats.has_reference) s = save_reference(c, run, e);
    ls_buf_free(&record);
    free(tokens);
    return s;
}

static ls_status check_exists(const char *path, ls_error *e) {
    if (ls_file_exists(path)) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: is missing; resuming the run (--resume) restores it", path);
}

/* A damaged file can be made again; a file that can't be read may be good. */
static ls_status fail_damaged(const ls_error *why, const char *again, ls_error *e) {
    if (why->code != LS_EINVAL) return ls_fail(e, why->code, "%s", why->msg);
    return ls_fail(e, why->code, "%.380s; remove it: --resume %s", why->msg, again);
}

static ls_status open_files(ls_corpus *c, const char *tokenizer, const char *tokens,
                            const ls_config *config, ls_error *e) {
    LS_TRY(check_exists(tokenizer, e));
    LS_TRY(check_exists(tokens, e));
    ls_error why = {0};
    ls_status s = load_tokenizer(c, tokenizer, &why);
    if (s != LS_OK) return fail_damaged(&why, "takes the copy of a checkpoint", e);
    s = ls_tokens_open(tokens, &c->tokens, &why);
    if (s != LS_OK) return fail_damaged(&why, "makes it again from the text", e);
    set_record(c);
    uint32_t vocab = ls_tokenizer_vocab(c->tokenizer);
    bool chats = ls_config_has_chats(config);
    uint32_t numbers = chats ? (uint32_t)config->model.vocab * LS_CHATS_FLAGS : vocab;
    if (c->tokens.vocab != numbers || !ls_config_fits_tokens(config, vocab))
        return ls_fail(e, LS_EINVAL,
                       "%s: is for %u tokens, the tokenizer has %u, model.vocab is %lld", tokens,
                       c->tokens.vocab, vocab, (long long)config->model.vocab);
    return chats ? open_chats(c, config, tokens, e) : split(c, config, tokens, e);
}

static ls_status fail_differs(const char *run, const char *name, ls_hash got, ls_hash want,
                              const char *again, ls_error *e) {
    char a[LS_HASH_TEXT], b[LS_HASH_TEXT];
    ls_hash_text(got, a);
    ls_hash_text(want, b);
    return ls_fail(
        e, LS_EINVAL,
        "%s/%s: is not the one that this run was trained with (its hash is %s, " LS_CORPUS_RECORD
        " has %s); put that back, or remove it: --resume %s",
        run, name, a, b, again);
}

static ls_status check_record(ls_corpus *c, const char *run, ls_error *e) {
    ls_corpus_record r = {0};
    bool there = false;
    LS_TRY(ls_corpus_record_read(run, &r, &there, e));
    if (!there) return LS_OK; /* a run from before there was a record */
    if (!ls_hash_same(r.tokens, c->record.tokens))
        return fail_differs(run, TOKENS, c->record.tokens, r.tokens, "makes it again from the text",
                            e);
    if (!ls_hash_same(r.tokenizer, c->record.tokenizer))
        return fail_differs(run, TOKENIZER, c->record.tokenizer, r.tokenizer,
                            "takes the copy of a checkpoint", e);
    c->record = r;
    return LS_OK;
}

ls_status ls_corpus_open(ls_corpus *c, const char *run, const ls_config *config, ls_error *e) {
    *c = (ls_corpus){0};
    char *tokenizer = ls_format("%s/%s", run, TOKENIZER), *tokens = ls_format("%s/%s", run, TOKENS);
    ls_status s = open_files(c, tokenizer, tokens, config, e);
    if (s == LS_OK) s = check_record(c, run, e);
    bool there = false; /* a run that has not begun its first step lacks it */
    if (s == LS_OK && c->chats.reference)
        s = ls_reference_read(run, c->record.tokens, &c->chats, &there, e);
    free(tokenizer);
    free(tokens);
    if (s != LS_OK) ls_corpus_free(c);
    return s;
}

void ls_corpus_free(ls_corpus *c) {
    ls_tokenizer_free(c->tokenizer);
    ls_buf_free(&c->tokenizer_json);
    ls_tokens_close(&c->tokens);
    free(c->encoded);
    free(c->nbytes);
    ls_chats_close(&c->chats);
    *c = (ls_corpus){0};
}

double ls_corpus_sample_bytes(const ls_corpus *c, const uint32_t *sample, int64_t T) {
    double sum = 0;
    for (int64_t t = 1; t <= T; t++) sum += c->nbytes[sample[t]];
    return sum;
}

ls_status ls_corpus_val_sample(const ls_corpus *c, int64_t T, uint64_t i, uint32_t *out,
                               ls_error *e) {
    return ls_tokens_read(&c->tokens, c->val_first + i * (uint64_t)T, (size_t)T + 1, out, e);
}

ls_status ls_corpus_bigram(const ls_corpus *c, size_t nval, double *loss_p, double *nbytes_p,
                           ls_error *e) {
    uint32_t *ids = NULL;
    double nbytes = 0;
    LS_TRY(ls_tokens_read_first(&c->tokens, c->val_first + nval, &ids, e));
    const uint32_t *val = ids + c->val_first;
    for (size_t i = 1; i < nval; i++) nbytes += c->nbytes[val[i]];
    *loss_p = ls_bigram_loss(ids, c->val_first, val, nval, c->tokens.vocab);
    *nbytes_p = nbytes;
    free(ids);
    return LS_OK;
}
