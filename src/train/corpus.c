/* corpus.c - see corpus.h. */
#include "train/corpus.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

static const char TOKENIZER[] = "tokenizer.json", TOKENS[] = "tokens.bin";

/* Cuts training from validation; both need at least one sample. */
static ls_status split(ls_corpus *c, const ls_config *config, const char *what, ls_error *e) {
    uint64_t T = (uint64_t)config->model.context, n = c->n;
    uint64_t nval = (uint64_t)((double)n * config->data.val_fraction);
    if (nval < T + 1) nval = T + 1;
    if (n < nval + T + 1)
        return ls_fail(e, LS_EINVAL,
                       "%s: has %llu tokens; training and validation need at least %llu each "
                       "(model.context %llu + 1): use a longer text or a shorter context",
                       what, (unsigned long long)n, (unsigned long long)(T + 1),
                       (unsigned long long)T);
    c->train = c->ids;
    c->ntrain = (n - nval - 1) / T;
    c->val = c->ids + (n - nval);
    c->nval = (nval - 1) / T;
    uint32_t vocab = ls_tokenizer_vocab(c->tokenizer);
    c->nbytes = LS_NEW_ARRAY(uint32_t, vocab);
    for (uint32_t i = 0; i < vocab; i++) {
        size_t nbytes = 0;
        ls_tokenizer_bytes(c->tokenizer, i, &nbytes);
        c->nbytes[i] = (uint32_t)nbytes;
    }
    return LS_OK;
}

static ls_status make(ls_corpus *c, const ls_config *config, const ls_mapped *text, ls_error *e) {
    const char *path = config->data.path;
    if (text->nbytes == 0)
        return ls_fail(e, LS_EINVAL, "%s: is empty; data.path needs a text to train on", path);
    ls_cut cut;
    LS_TRY(ls_cut_make(text->data, text->nbytes, path, &cut, e));
    ls_status s =
        ls_tokenizer_train_cut(&cut, path, (uint32_t)config->model.vocab, &c->tokenizer, e);
    if (s == LS_OK)
        s = ls_tokenizer_encode_cut(c->tokenizer, &cut, path, &c->encoded, &c->nencoded, e);
    ls_cut_free(&cut);
    LS_TRY(s);
    ls_tokenizer_write(c->tokenizer, &c->tokenizer_json);
    c->source_bytes = text->nbytes;
    c->ids = c->encoded;
    c->n = c->nencoded;
    return split(c, config, path, e);
}

ls_status ls_corpus_make(ls_corpus *c, const ls_config *config, ls_error *e) {
    *c = (ls_corpus){0};
    ls_mapped text;
    LS_TRY(ls_file_map(config->data.path, &text, e));
    ls_status s = make(c, config, &text, e);
    ls_file_unmap(&text);
    if (s != LS_OK) ls_corpus_free(c);
    return s;
}

static ls_status save_tokens(const ls_corpus *c, const char *path, ls_error *e) {
    char *fresh = ls_format("%s.new", path);
    unlink(fresh); /* of a program that was killed */
    ls_status s =
        ls_tokens_write(fresh, c->ids, c->n, ls_tokenizer_vocab(c->tokenizer), c->source_bytes, e);
    if (s == LS_OK) s = ls_file_rename(fresh, path, e);
    free(fresh);
    return s;
}

bool ls_corpus_is_saved(const char *run) {
    char *tokenizer = ls_format("%s/%s", run, TOKENIZER), *tokens = ls_format("%s/%s", run, TOKENS);
    bool there = ls_file_exists(tokenizer) && ls_file_exists(tokens);
    free(tokenizer);
    free(tokens);
    return there;
}

ls_status ls_corpus_save(const ls_corpus *c, const char *run, ls_error *e) {
    char *tokenizer = ls_format("%s/%s", run, TOKENIZER), *tokens = ls_format("%s/%s", run, TOKENS);
    ls_status s = LS_OK;
    if (!ls_file_exists(tokenizer))
        s = ls_file_replace(tokenizer, c->tokenizer_json.data, c->tokenizer_json.len, e);
    if (s == LS_OK && !ls_file_exists(tokens)) s = save_tokens(c, tokens, e);
    free(tokenizer);
    free(tokens);
    return s;
}

static ls_status open_files(ls_corpus *c, const char *tokenizer, const char *tokens,
                            const ls_config *config, ls_error *e) {
    LS_TRY(ls_tokenizer_load(tokenizer, &c->tokenizer, e));
    ls_tokenizer_write(c->tokenizer, &c->tokenizer_json);
    LS_TRY(ls_tokens_open(tokens, &c->tokens, e));
    uint32_t vocab = ls_tokenizer_vocab(c->tokenizer);
    if (c->tokens.vocab != vocab || vocab != config->model.vocab)
        return ls_fail(e, LS_EINVAL,
                       "%s: is for %u tokens, the tokenizer has %u, model.vocab is %lld", tokens,
                       c->tokens.vocab, vocab, (long long)config->model.vocab);
    c->ids = c->tokens.ids;
    c->n = c->tokens.n;
    c->source_bytes = c->tokens.source_bytes;
    return split(c, config, tokens, e);
}

ls_status ls_corpus_open(ls_corpus *c, const char *run, const ls_config *config, ls_error *e) {
    *c = (ls_corpus){0};
    char *tokenizer = ls_format("%s/%s", run, TOKENIZER), *tokens = ls_format("%s/%s", run, TOKENS);
    ls_status s = open_files(c, tokenizer, tokens, config, e);
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
    *c = (ls_corpus){0};
}

double ls_corpus_sample_bytes(const ls_corpus *c, const uint32_t *sample, int64_t T) {
    double sum = 0;
    for (int64_t t = 1; t <= T; t++) sum += c->nbytes[sample[t]];
    return sum;
}
