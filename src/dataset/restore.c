/* restore.c - see restore.h. */
#include "dataset/restore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "dataset/corpus.h"
#include "dataset/data_files.h"

typedef struct restoring {
    const char *run, *checkpoint;
    const ls_config *config;
    char *tokenizer, *tokens; /* paths */
    bool has_tokenizer, has_tokens, has_record;
    ls_corpus_record record;
} restoring;

static const char HOW[] = "put one of them back, or name the text with --set data.path=FILE";

static ls_status refuse_text(const restoring *x, const ls_corpus *c, ls_error *e) {
    char was[64] = "";
    const ls_corpus_record *r = &x->record, *now = &c->record;
    bool known = x->has_record && r->has_text;
    bool val =
        known && r->has_validation && now->has_validation && ls_hash_same(r->text, now->text);
    if (known)
        snprintf(was, sizeof was, ", it had %llu",
                 (unsigned long long)(val ? r->validation_bytes : r->text_bytes));
    return ls_fail(e, LS_EINVAL,
                   "%s: is missing, and %s, with %llu bytes%s, is not the text that it was made "
                   "from; put one of them back, or name the text with --set data.%s=FILE",
                   x->tokens, val ? x->config->data.val_path : x->config->data.path,
                   (unsigned long long)(val ? now->validation_bytes : now->text_bytes), was,
                   val ? "val_path" : "path");
}

/* Is this what the run was trained on, as far as that can be known? */
static bool is_same(const restoring *x, const ls_corpus *c) {
    if (x->has_record) return ls_hash_same(c->record.tokens, x->record.tokens);
    if (!x->checkpoint) return true; /* nothing has been trained */
    return ls_file_is(x->tokenizer, c->tokenizer_json.data, c->tokenizer_json.len);
}

static ls_status make(const restoring *x, ls_error *e) {
    ls_corpus c;
    ls_error why = {0};
    bool encodes = x->has_tokenizer && (x->has_record || !x->checkpoint);
    ls_config config = *x->config;
    if (x->has_record && !x->record.ndocuments) config.data.documents = LS_DOCUMENTS_JOINED;
    ls_status s = ls_corpus_encode(&c, &config, encodes ? x->tokenizer : NULL, &why);
    if (s != LS_OK)
        return ls_fail(e, s, "%s: is missing, and can't be made from the text: %.300s; %s",
                       x->has_tokens ? x->tokenizer : x->tokens, why.msg, HOW);
    s = is_same(x, &c) ? ls_corpus_save(&c, x->run, e) : refuse_text(x, &c, e);
    if (s == LS_OK && !x->has_tokenizer)
        ls_log("%s: was missing; made again from %s", x->tokenizer, x->config->data.path);
    if (s == LS_OK && !x->has_tokens)
        ls_log("%s: was missing; made again from %s", x->tokens, x->config->data.path);
    ls_corpus_free(&c);
    return s;
}

static ls_status restore(restoring *x, ls_error *e) {
    bool copied = false;
    LS_TRY(ls_data_file_copy(x->run, x->checkpoint, LS_CORPUS_RECORD, &copied, e));
    LS_TRY(ls_corpus_record_read(x->run, &x->record, &x->has_record, e));
    x->has_tokens = ls_file_exists(x->tokens);
    LS_TRY(ls_data_file_copy(x->run, x->checkpoint, LS_TOKENIZER_FILE, &copied, e));
    x->has_tokenizer = ls_file_exists(x->tokenizer);
    return x->has_tokens && x->has_tokenizer ? LS_OK : make(x, e);
}

ls_status ls_restore_corpus(const char *run, const char *checkpoint, const ls_config *config,
                            ls_error *e) {
    restoring x = {.run = run, .checkpoint = checkpoint, .config = config};
    x.tokenizer = ls_format("%s/tokenizer.json", run);
    x.tokens = ls_format("%s/tokens.bin", run);
    ls_status s = restore(&x, e);
    free(x.tokenizer);
    free(x.tokens);
    return s;
}
