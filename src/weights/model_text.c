/* model_text.c - see model_text.h. */
#include "weights/model_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "weights/gguf_tokenizer.h"

enum { MOST = 1 << 28 }; /* bytes */

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
    char *path = ls_model_file(w, LS_MODEL_TOKENIZER);
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

/* ---- special tokens ---- */

static const char MAP[] = "special_tokens_map.json";

const char *ls_special_token_name(ls_special_token k) {
    static const char *const names[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    return names[k];
}

char *ls_special_token_of(const ls_architecture *a, const ls_tokenizer *t, ls_special_token k) {
    int64_t id = k == LS_BOS_TOKEN              ? a->bos
                 : k == LS_EOS_TOKEN && a->neos ? a->eos[0]
                 : k == LS_PAD_TOKEN            ? a->pad
                                                : LS_TOKEN_NONE;
    size_t n = 0;
    if (id < 0 || id >= (int64_t)ls_tokenizer_vocab(t)) return NULL;
    const uint8_t *bytes = ls_tokenizer_bytes(t, (uint32_t)id, &n);
    return ls_format("%.*s", (int)n, (const char *)bytes);
}

uint32_t ls_special_token_id(const ls_tokenizer *t, const char *text) {
    uint32_t id = ls_tokenizer_find(t, text), n = ls_tokenizer_vocab(t);
    size_t nbytes = 0, length = strlen(text);
    if (id != LS_NO_TOKEN) return id;
    for (id = 0; id < n; id++) {
        const uint8_t *bytes = ls_tokenizer_bytes(t, id, &nbytes);
        if (nbytes == length && memcmp(bytes, text, length) == 0) return id;
    }
    return LS_NO_TOKEN;
}

/* A text, {"content": text}, or null: none. */
static ls_status take_special(const char *path, const ls_json *o, ls_special_token k, char **text_p,
                              ls_error *e) {
    const char *key = ls_special_token_name(k);
    const ls_json *value = ls_json_get(o, key);
    const char *text =
        ls_json_text(ls_json_is_object(value) ? ls_json_get(value, "content") : value);
    if (!text && !ls_json_is_null(value))
        return ls_fail(e, LS_EINVAL, "%s: %s is not a text, or an object with one as content", path,
                       key);
    free(*text_p);
    *text_p = text ? ls_strdup(text) : NULL;
    return LS_OK;
}

/* Takes those that a file says, which may be missing; *old_p: it is from before the tokenizer's
 * other tokens were written there. */
static ls_status take_file(const ls_weights *w, const char *name, char *special[], bool *old_p,
                           ls_error *e) {
    char *path = ls_model_file(w, name);
    ls_json *o = NULL;
    ls_status s = path ? ls_json_read(path, MOST, &o, e) : LS_OK;
    for (int k = 0; s == LS_OK && k < LS_NSPECIAL_TOKENS; k++)
        if (ls_json_get(o, ls_special_token_name((ls_special_token)k)))
            s = take_special(path, o, (ls_special_token)k, &special[k], e);
    *old_p = !ls_json_get(o, "added_tokens_decoder");
    ls_json_free(o);
    free(path);
    return s;
}

ls_status ls_model_special_tokens(const ls_weights *w, const ls_tokenizer *t,
                                  char *special[LS_NSPECIAL_TOKENS], ls_error *e) {
    bool old = false;
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++)
        special[k] = ls_special_token_of(&w->arch, t, (ls_special_token)k);
    ls_status s = take_file(w, LS_MODEL_TOKENIZER_CONFIG, special, &old, e);
    if (s == LS_OK && old) s = take_file(w, MAP, special, &old, e);
    for (int k = 0; s != LS_OK && k < LS_NSPECIAL_TOKENS; k++) {
        free(special[k]);
        special[k] = NULL;
    }
    return s;
}

/* ---- all ---- */

ls_status ls_model_text_read(const ls_weights *w, ls_model_text *t_p, ls_error *e) {
    ls_model_text t = {0};
    ls_status s = ls_model_tokenizer(w, &t.tokenizer, &t.json, e);
    if (s == LS_OK) s = ls_model_special_tokens(w, t.tokenizer, t.special, e);
    if (s == LS_OK) s = ls_model_templates_read(w, &t.templates, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_model_text_free(&t);
    return s;
}

void ls_model_text_free(ls_model_text *t) {
    ls_tokenizer_free(t->tokenizer);
    ls_buf_free(&t->json);
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++) free(t->special[k]);
    ls_model_templates_free(&t->templates);
    *t = (ls_model_text){0};
}

/* ---- writing ---- */

static ls_status write_settings(const ls_architecture *a, const ls_model_text *t,
                                const char *folder, ls_error *e) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "tokenizer_class", "PreTrainedTokenizerFast");
    ls_json_set_bool(o, "clean_up_tokenization_spaces", false);
    ls_json_set_integer(o, "model_max_length", a->context);
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++)
        ls_json_set(o, ls_special_token_name((ls_special_token)k),
                    t->special[k] ? ls_json_new_bytes(t->special[k], strlen(t->special[k]))
                                  : ls_json_new_null());
    return ls_json_write_in(o, folder, LS_MODEL_TOKENIZER_CONFIG, e);
}

ls_status ls_model_text_write(const ls_architecture *a, const ls_model_text *t, const char *folder,
                              ls_error *e) {
    char *path = ls_format("%s/" LS_MODEL_TOKENIZER, folder);
    ls_status s = ls_file_write(path, t->json.data, t->json.len, e);
    free(path);
    if (s == LS_OK) s = write_settings(a, t, folder, e);
    return s == LS_OK ? ls_model_templates_write(&t->templates, folder, e) : s;
}
