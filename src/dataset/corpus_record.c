/* corpus_record.c - see corpus_record.h. */
#include "dataset/corpus_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/record_advice.h"

enum { MAX_RECORD = 1 << 16 };

static const char FORMAT[] = "lockstep corpus";

static void set_text(ls_json *o, const char *key, uint64_t nbytes, ls_hash h) {
    ls_json *text = ls_json_new_object();
    ls_json_set_integer(text, "bytes", (int64_t)nbytes);
    ls_json_set_hash(text, "xxh3_128", h);
    ls_json_set(o, key, text);
}

void ls_corpus_record_write(const ls_corpus_record *r, ls_buf *out) {
    ls_json *o = ls_json_new_object();
    ls_json *tokenizer = ls_json_new_object(), *tokens = ls_json_new_object();
    ls_json_set_text(o, "format", FORMAT);
    ls_json_set_integer(o, "version", 1);
    ls_json_set_hash(tokenizer, "xxh3_128", r->tokenizer);
    ls_json_set_integer(tokens, "count", (int64_t)r->ntokens);
    ls_json_set_hash(tokens, "xxh3_128", r->tokens);
    if (r->has_text) set_text(o, "text", r->text_bytes, r->text);
    if (r->has_validation) set_text(o, "validation", r->validation_bytes, r->validation);
    ls_json_set(o, "tokenizer", tokenizer);
    ls_json_set(o, "tokens", tokens);
    if (r->ndocuments) ls_json_set_integer(o, "documents", (int64_t)r->ndocuments);
    ls_json_write(o, 2, out);
    ls_buf_append(out, "\n", 1);
    ls_json_free(o);
}

static bool read_hash(const ls_json *o, ls_hash *h_p) {
    const char *text = ls_json_text(ls_json_get(o, "xxh3_128"));
    return text && ls_hash_parse(text, h_p);
}

static bool read_count(const ls_json *o, const char *key, uint64_t *n_p) {
    int64_t n = -1;
    if (!ls_json_integer(ls_json_get(o, key), &n) || n < 0) return false;
    *n_p = (uint64_t)n;
    return true;
}

/* Reads the length and hash of a text. The record may lack the text. */
static bool read_text(const ls_json *o, bool *there_p, uint64_t *nbytes_p, ls_hash *h_p) {
    *there_p = o != NULL;
    return !o || (read_hash(o, h_p) && read_count(o, "bytes", nbytes_p));
}

static ls_status parse(const char *path, const ls_json *o, ls_corpus_record *r, ls_error *e) {
    const char *format = ls_json_text(ls_json_get(o, "format"));
    const ls_json *text = ls_json_get(o, "text"), *validation = ls_json_get(o, "validation");
    const ls_json *tokens = ls_json_get(o, "tokens");
    int64_t version = 0;
    if (!format || strcmp(format, FORMAT) != 0 ||
        !ls_json_integer(ls_json_get(o, "version"), &version) || version != 1)
        return ls_fail(e, LS_EINVAL, "%s: is not the record of a corpus, version 1", path);
    if (ls_json_get(o, "documents") && !read_count(o, "documents", &r->ndocuments))
        return ls_fail(e, LS_EINVAL, "%s: its number of documents is invalid", path);
    if (!read_hash(ls_json_get(o, "tokenizer"), &r->tokenizer) || !read_hash(tokens, &r->tokens) ||
        !read_count(tokens, "count", &r->ntokens) ||
        !read_text(text, &r->has_text, &r->text_bytes, &r->text) ||
        !read_text(validation, &r->has_validation, &r->validation_bytes, &r->validation))
        return ls_fail(e, LS_EINVAL, "%s: a hash or a count is missing or invalid", path);
    return LS_OK;
}

ls_status ls_corpus_record_read(const char *dir, ls_corpus_record *r_p, bool *there_p,
                                ls_error *e) {
    char *path = ls_format("%s/" LS_CORPUS_RECORD, dir);
    ls_corpus_record r = {0};
    ls_json *j = NULL;
    ls_status s = ls_json_read(path, MAX_RECORD, &j, e);
    if (j) s = parse(path, j, &r, e);
    if (s == LS_OK) {
        *r_p = r;
        *there_p = j != NULL;
    }
    ls_json_free(j);
    free(path);
    return ls_record_advise(dir, s, e);
}
