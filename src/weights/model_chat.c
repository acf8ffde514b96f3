/* model_chat.c - see model_chat.h. */
#include "weights/model_chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "weights/model_text.h"

static ls_status read_tokens(const ls_weights *w, ls_chat_format *f, ls_error *e) {
    char *special[LS_NSPECIAL_TOKENS];
    LS_TRY(ls_model_special_tokens(w, f->tokenizer, special, e));
    f->bos = special[LS_BOS_TOKEN];
    f->eos = special[LS_EOS_TOKEN];
    free(special[LS_PAD_TOKEN]);
    free(special[LS_UNK_TOKEN]);
    if (f->eos) f->end = ls_special_token_id(f->tokenizer, f->eos);
    if (f->end == LS_NO_TOKEN && w->arch.neos) f->end = (uint32_t)w->arch.eos[0];
    return LS_OK;
}

static ls_status read_file(const char *file, ls_chat_format *f, ls_error *e) {
    ls_buf text = {0};
    ls_status s = ls_file_read_text(file, LS_TEMPLATE_BYTES, &text, e);
    if (s == LS_OK && text.len) s = ls_template_parse(text.data, text.len, file, &f->template, e);
    ls_buf_free(&text);
    return s;
}

ls_status ls_chat_format_parse(ls_chat_format *f, const ls_model_templates *t, const char *what,
                               ls_error *e) {
    char *name = ls_format("%s: the chat template", what);
    ls_status s = LS_OK;
    if (t->main.len) s = ls_template_parse(t->main.data, t->main.len, name, &f->template, e);
    if (s == LS_OK && t->tools.len)
        s = ls_template_parse(t->tools.data, t->tools.len, name, &f->tool_template, e);
    free(name);
    return s;
}

static ls_status read_templates(const ls_weights *w, ls_chat_format *f, ls_error *e) {
    ls_model_templates t = {0};
    LS_TRY(ls_model_templates_read(w, &t, e));
    ls_status s = ls_chat_format_parse(f, &t, w->path, e);
    ls_model_templates_free(&t);
    return s;
}

ls_status ls_model_chat_format(const ls_weights *w, const ls_tokenizer *t, const char *file,
                               ls_chat_format *f_p, ls_error *e) {
    ls_chat_format f = {.tokenizer = t, .end = LS_NO_TOKEN};
    ls_status s = file ? read_file(file, &f, e) : read_templates(w, &f, e);
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
    ls_status s = read_file(file, &f, e);
    if (s == LS_OK)
        *f_p = f;
    else
        ls_chat_format_free(&f);
    return s;
}
