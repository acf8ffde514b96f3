/* model_chat.c - see model_chat.h. */
#include "weights/model_chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "weights/model_text.h"

enum { MOST = 1 << 28 }; /* bytes of tokenizer_config.json */

/* A special token there: a text, or {"content": text}. NULL: none. */
static char *token_of(const ls_json *config, const char *key) {
    const ls_json *value = ls_json_get(config, key);
    const char *text =
        ls_json_text(ls_json_is_object(value) ? ls_json_get(value, "content") : value);
    return text ? ls_strdup(text) : NULL;
}

char *ls_token_text(const ls_tokenizer *t, int64_t id) {
    size_t n = 0;
    if (id < 0 || id >= (int64_t)ls_tokenizer_vocab(t)) return NULL;
    const uint8_t *bytes = ls_tokenizer_bytes(t, (uint32_t)id, &n);
    return ls_format("%.*s", (int)n, (const char *)bytes);
}

ls_status ls_model_special_tokens(const ls_weights *w, const ls_tokenizer *t, char **bos_p,
                                  char **eos_p, ls_error *e) {
    char *path = ls_format("%s/" LS_MODEL_TOKENIZER_CONFIG, w->path);
    ls_json *config = NULL;
    ls_status s = ls_file_is_dir(w->path) ? ls_json_read(path, MOST, &config, e) : LS_OK;
    if (s == LS_OK) {
        const ls_architecture *a = &w->arch;
        *bos_p = config ? token_of(config, "bos_token") : ls_token_text(t, a->bos);
        *eos_p = config ? token_of(config, "eos_token")
                        : ls_token_text(t, a->neos ? a->eos[0] : LS_TOKEN_NONE);
    }
    ls_json_free(config);
    free(path);
    return s;
}

static ls_status read_tokens(const ls_weights *w, ls_chat_format *f, ls_error *e) {
    LS_TRY(ls_model_special_tokens(w, f->tokenizer, &f->bos, &f->eos, e));
    if (f->eos) f->end = ls_tokenizer_find(f->tokenizer, f->eos);
    if (f->end == LS_NO_TOKEN && w->arch.neos) f->end = (uint32_t)w->arch.eos[0];
    return LS_OK;
}

static ls_status read_template(const ls_weights *w, const char *file, ls_chat_format *f,
                               ls_error *e) {
    ls_buf text = {0};
    char *name = file ? ls_strdup(file) : ls_format("%s: the chat template", w->path);
    ls_status s =
        file ? ls_file_read_text(file, LS_TEMPLATE_BYTES, &text, e) : ls_model_template(w, &text, e);
    if (s == LS_OK && text.len) s = ls_template_parse(text.data, text.len, name, &f->template, e);
    ls_buf_free(&text);
    free(name);
    return s;
}

ls_status ls_model_chat_format(const ls_weights *w, const ls_tokenizer *t, const char *file,
                               ls_chat_format *f_p, ls_error *e) {
    ls_chat_format f = {.tokenizer = t, .end = LS_NO_TOKEN};
    ls_status s = read_template(w, file, &f, e);
    if (s == LS_OK) s = read_tokens(w, &f, e);
    if (s == LS_OK)
        *f_p = f;
    else
        ls_chat_format_free(&f);
    return s;
}

ls_status ls_file_chat_format(const ls_tokenizer *t, const char *file, ls_chat_format *f_p,
                              ls_error *e) {
    ls_chat_format f = {.tokenizer = t, .end = LS_NO_TOKEN};
    ls_status s = read_template(NULL, file, &f, e);
    if (s == LS_OK)
        *f_p = f;
    else
        ls_chat_format_free(&f);
    return s;
}
