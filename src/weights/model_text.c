/* model_text.c - see model_text.h. */
#include "weights/model_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "source/guard.h"
#include "weights/gguf_tokenizer.h"

enum { MOST = 1 << 28, MOST_TEMPLATE = 1 << 20 }; /* bytes */

/* The path of a file of the model's directory, or NULL: there is none. */
static char *find(const ls_weights *w, const char *name) {
    char *path = ls_file_is_dir(w->path) ? ls_format("%s/%s", w->path, name) : NULL;
    if (path && ls_file_exists(path)) return path;
    free(path);
    return NULL;
}

/* ---- the tokenizer ---- */

static ls_status read_file(const char *path, ls_tokenizer **t_p, ls_buf *json_p, ls_error *e) {
    ls_buf json = {0};
    ls_status s = ls_file_read(path, MOST, &json, e);
    if (s == LS_OK) s = ls_tokenizer_parse(json.data ? json.data : "", json.len, path, t_p, e);
    if (s == LS_OK && json_p) ls_buf_append(json_p, json.data, json.len);
    ls_buf_free(&json);
    return s;
}

static ls_status read_gguf(const ls_gguf *g, ls_tokenizer **t_p, ls_buf *json_p, ls_error *e) {
    LS_TRY(ls_gguf_read_tokenizer(g, t_p, e));
    if (json_p) ls_tokenizer_write(*t_p, json_p);
    return LS_OK;
}

ls_status ls_model_tokenizer(const ls_weights *w, ls_tokenizer **t_p, ls_buf *json_p, ls_error *e) {
    ls_tokenizer *t = NULL;
    char *path = find(w, LS_MODEL_TOKENIZER);
    ls_status s = LS_OK;
    if (path)
        s = read_file(path, &t, json_p, e);
    else if (w->is_gguf)
        s = read_gguf(&w->gguf, &t, json_p, e);
    else
        s = ls_fail(e, LS_EINVAL,
                    "%s: has no " LS_MODEL_TOKENIZER "; other forms of tokenizers can't be read",
                    w->path);
    free(path);
    if (s != LS_OK) return s;
    if (ls_tokenizer_vocab(t) > w->arch.vocab) {
        s = ls_fail(e, LS_EINVAL, "%s: the tokenizer has %u tokens, the model %lld", w->path,
                    ls_tokenizer_vocab(t), (long long)w->arch.vocab);
        ls_tokenizer_free(t);
        return s;
    }
    *t_p = t;
    return LS_OK;
}

/* ---- the chat template ---- */

static ls_status check_template(const char *path, const ls_buf *text, ls_error *e) {
    bool sound = text->len <= MOST_TEMPLATE && ls_utf8_is_valid(text->data, text->len) &&
                 !(text->len && memchr(text->data, 0, text->len));
    return sound ? LS_OK
                 : ls_fail(e, LS_EINVAL,
                           "%s: the chat template is not UTF-8 text of at most %d bytes", path,
                           MOST_TEMPLATE);
}

/* A text, or the one named default of a list of {"name", "template"}. */
static const char *template_of(const ls_json *o) {
    const ls_json *value = ls_json_get(o, "chat_template");
    for (size_t i = 0; value && ls_json_is_array(value) && i < ls_json_count(value); i++) {
        const ls_json *one = ls_json_at(value, i);
        const char *name = ls_json_text(ls_json_get(one, "name"));
        if (name && strcmp(name, "default") == 0) return ls_json_text(ls_json_get(one, "template"));
    }
    return value ? ls_json_text(value) : NULL;
}

static ls_status template_of_config(const char *path, ls_buf *out, ls_error *e) {
    ls_buf text = {0};
    ls_json *o = NULL;
    ls_status s = ls_file_read(path, MOST, &text, e);
    if (s == LS_OK) s = ls_json_parse(text.data ? text.data : "", text.len, path, &o, e);
    const char *found = s == LS_OK ? template_of(o) : NULL;
    if (found) ls_buf_append(out, found, strlen(found));
    ls_json_free(o);
    ls_buf_free(&text);
    return s;
}

static ls_status template_of_gguf(const ls_gguf *g, ls_buf *out, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(g, "tokenizer.chat_template");
    ls_gguf_text t = {0};
    if (!v) return LS_OK;
    if (v->is_array || !ls_gguf_text_at(v, 0, &t))
        return ls_fail(e, LS_EINVAL, "%s: tokenizer.chat_template must be a text", g->path);
    ls_buf_append(out, t.data, t.n);
    return ls_guard_check(e);
}

ls_status ls_model_template(const ls_weights *w, ls_buf *out, ls_error *e) {
    ls_buf text = {0};
    char *file = find(w, LS_MODEL_TEMPLATE), *config = find(w, LS_MODEL_TOKENIZER_CONFIG);
    const char *from = file ? file : config ? config : w->path;
    ls_status s = LS_OK;
    if (file) s = ls_file_read_text(file, MOST_TEMPLATE, &text, e);
    if (s == LS_OK && !file && config) s = template_of_config(config, &text, e);
    if (s == LS_OK && !file && !text.len && w->is_gguf) s = template_of_gguf(&w->gguf, &text, e);
    if (s == LS_OK) s = check_template(from, &text, e);
    if (s == LS_OK && text.len) ls_buf_append(out, text.data, text.len);
    ls_buf_free(&text);
    free(file);
    free(config);
    return s;
}

/* ---- writing ---- */

static void set_token(ls_json *o, const char *key, const ls_tokenizer *t, int64_t id) {
    size_t n = 0;
    if (id < 0 || id >= (int64_t)ls_tokenizer_vocab(t)) return;
    const uint8_t *bytes = ls_tokenizer_bytes(t, (uint32_t)id, &n);
    ls_json_set(o, key, ls_json_new_bytes((const char *)bytes, n));
}

static ls_status write_settings(const ls_architecture *a, const ls_tokenizer *t, const char *folder,
                                ls_error *e) {
    ls_json *o = ls_json_new_object();
    ls_buf text = {0};
    char *path = ls_format("%s/" LS_MODEL_TOKENIZER_CONFIG, folder);
    ls_json_set_text(o, "tokenizer_class", "PreTrainedTokenizerFast");
    ls_json_set(o, "clean_up_tokenization_spaces", ls_json_new_bool(false));
    ls_json_set_integer(o, "model_max_length", a->context);
    set_token(o, "bos_token", t, a->bos);
    set_token(o, "eos_token", t, a->neos ? a->eos[0] : LS_TOKEN_NONE);
    set_token(o, "pad_token", t, a->pad);
    ls_json_write(o, 2, &text);
    ls_buf_append(&text, "\n", 1);
    ls_status s = ls_file_write(path, text.data, text.len, e);
    free(path);
    ls_buf_free(&text);
    ls_json_free(o);
    return s;
}

static ls_status write_text(const char *folder, const char *name, const ls_buf *text, ls_error *e) {
    char *path = ls_format("%s/%s", folder, name);
    ls_status s = ls_file_write(path, text->data, text->len, e);
    free(path);
    return s;
}

ls_status ls_model_text_write(const ls_architecture *a, const ls_tokenizer *t, const ls_buf *json,
                              const ls_buf *template, const char *folder, ls_error *e) {
    LS_TRY(write_text(folder, LS_MODEL_TOKENIZER, json, e));
    LS_TRY(write_settings(a, t, folder, e));
    return template->len ? write_text(folder, LS_MODEL_TEMPLATE, template, e) : LS_OK;
}
