/* published_record.c - see published_record.h. */
#include "storage/published_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "weights/config_json.h"
#include "weights/model_chat.h"
#include "weights/model_text.h"

enum { MOST = 16 << 20 }; /* bytes */

/* The path of the file, or NULL: there is none. */
static char *find(const char *path) {
    for (int i = 0; i < 2; i++) {
        char *at = i ? ls_format("%s/../../" LS_PUBLISHED_RECORD, path)
                     : ls_format("%s/" LS_PUBLISHED_RECORD, path);
        if (ls_file_exists(at)) return at;
        free(at);
    }
    return NULL;
}

/* ---- writing ---- */

static void set_text_or_null(ls_json *o, const char *key, const char *text) {
    ls_json_set(o, key, text ? ls_json_new_text(text) : ls_json_new_null());
}

static ls_json *describe(const ls_weights *w, const ls_buf *template, const char *bos,
                         const char *eos) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "config", ls_config_json_new(&w->arch, "float32"));
    ls_json_set(o, "generation", ls_generation_json_new(&w->arch));
    ls_json_set(o, "template", ls_json_new_bytes(template->data, template->len));
    set_text_or_null(o, "bos_token", bos);
    set_text_or_null(o, "eos_token", eos);
    return o;
}

static ls_status of_model(const char *from, ls_json **o_p, ls_error *e) {
    ls_weights w = {0};
    ls_buf template = {0};
    ls_tokenizer *t = NULL;
    char *bos = NULL, *eos = NULL;
    LS_TRY(ls_weights_open(from, &w, e));
    ls_status s = ls_model_template(&w, &template, e);
    if (s == LS_OK) s = ls_model_tokenizer(&w, &t, NULL, e);
    if (s == LS_OK) s = ls_model_special_tokens(&w, t, &bos, &eos, e);
    if (s == LS_OK) *o_p = describe(&w, &template, bos, eos);
    free(bos);
    free(eos);
    ls_tokenizer_free(t);
    ls_buf_free(&template);
    ls_weights_close(&w);
    return s;
}

/* A copy of the origin's file; NULL: it has none. */
static ls_status of_run(const char *from, ls_json **o_p, ls_error *e) {
    char *path = find(from);
    ls_status s = path ? ls_json_read(path, MOST, o_p, e) : LS_OK;
    free(path);
    return s;
}

/* The model is trained with the template of data.template. */
static ls_status take_template(const char *file, ls_json *o, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read_text(file, LS_TEMPLATE_BYTES, &text, e));
    ls_json_set(o, "template", ls_json_new_bytes(text.data, text.len));
    ls_buf_free(&text);
    return LS_OK;
}

static ls_status make(const ls_config *c, const char *path, ls_error *e) {
    ls_json *o = NULL;
    ls_buf text = {0};
    ls_status s = LS_OK;
    if (*c->train.from)
        s = of_run(c->train.from, &o, e);
    else if (*c->model.from)
        s = of_model(c->model.from, &o, e);
    if (s == LS_OK && o && *c->data.template) s = take_template(c->data.template, o, e);
    if (s == LS_OK && o) {
        ls_json_write(o, 2, &text);
        ls_buf_append(&text, "\n", 1);
        s = ls_file_replace(path, text.data, text.len, e);
    }
    ls_buf_free(&text);
    ls_json_free(o);
    return s;
}

ls_status ls_published_record_make(const char *run, const ls_config *c, ls_error *e) {
    char *path = ls_format("%s/" LS_PUBLISHED_RECORD, run);
    ls_status s = ls_file_exists(path) ? LS_OK : make(c, path, e);
    free(path);
    return s;
}

/* ---- reading ---- */

/* A text or null. */
static ls_status take_token(const ls_json *o, const char *key, const char *path, char **text_p,
                            ls_error *e) {
    const ls_json *v = ls_json_get(o, key);
    if (!v || ls_json_is_null(v)) return LS_OK;
    if (!ls_json_text(v))
        return ls_fail(e, LS_EINVAL, "%s: is damaged: %s is not a text", path, key);
    *text_p = ls_strdup(ls_json_text(v));
    return LS_OK;
}

static ls_status parse(const char *path, const ls_json *o, ls_published_record *r, ls_error *e) {
    const char *template = ls_json_text(ls_json_get(o, "template"));
    const ls_json *config = ls_json_get(o, "config"), *generation = ls_json_get(o, "generation");
    if (!config || !template)
        return ls_fail(e, LS_EINVAL, "%s: is damaged: config or template is missing", path);
    LS_TRY(ls_config_json_read(config, path, &r->arch, e));
    if (generation) LS_TRY(ls_generation_json_read(generation, path, &r->arch, e));
    ls_buf_append(&r->template, template, strlen(template));
    LS_TRY(take_token(o, "bos_token", path, &r->bos, e));
    LS_TRY(take_token(o, "eos_token", path, &r->eos, e));
    r->has_tokens = ls_json_get(o, "eos_token") != NULL;
    r->there = true;
    return LS_OK;
}

ls_status ls_published_record_parse(const char *text, size_t nbytes, const char *what,
                                    ls_published_record *r_p, ls_error *e) {
    ls_published_record r = {0};
    ls_json *o = NULL;
    LS_TRY(ls_json_parse(text, nbytes, what, &o, e));
    ls_status s = parse(what, o, &r, e);
    ls_json_free(o);
    if (s == LS_OK)
        *r_p = r;
    else
        ls_published_record_free(&r);
    return s;
}

ls_status ls_published_record_read(const char *path, ls_published_record *r_p, ls_error *e) {
    char *file = find(path);
    ls_buf text = {0};
    *r_p = (ls_published_record){0};
    ls_status s = file ? ls_file_read(file, MOST, &text, e) : LS_OK;
    if (s == LS_OK && file) s = ls_published_record_parse(text.data, text.len, file, r_p, e);
    ls_buf_free(&text);
    free(file);
    return s;
}

void ls_published_record_free(ls_published_record *r) {
    ls_buf_free(&r->template);
    free(r->bos);
    free(r->eos);
}

/* ---- conversations ---- */

ls_status ls_chat_format_of_record(const ls_published_record *r, const ls_tokenizer *t,
                                   const char *file, ls_chat_format *f_p, ls_error *e) {
    ls_chat_format f = {.tokenizer = t, .end = LS_NO_TOKEN};
    const ls_architecture *a = &r->arch;
    if (file)
        LS_TRY(ls_file_chat_format(t, file, &f, e));
    else if (r->template.len)
        LS_TRY(ls_template_parse(r->template.data, r->template.len,
                                 LS_PUBLISHED_RECORD ": the chat template", &f.template, e));
    f.bos = r->has_tokens ? (r->bos ? ls_strdup(r->bos) : NULL) : ls_token_text(t, a->bos);
    f.eos = r->has_tokens ? (r->eos ? ls_strdup(r->eos) : NULL)
                          : ls_token_text(t, a->neos ? a->eos[0] : LS_TOKEN_NONE);
    if (f.eos) f.end = ls_tokenizer_find(t, f.eos);
    if (f.end == LS_NO_TOKEN && a->neos) f.end = (uint32_t)a->eos[0];
    ls_chat_format_set_ends(&f, a->eos, a->neos);
    *f_p = f;
    return LS_OK;
}

ls_status ls_chat_format_of_model(const char *path, const ls_tokenizer *t, const char *file,
                                  ls_chat_format *f_p, ls_error *e) {
    ls_weights w = {0};
    LS_TRY(ls_weights_open(path, &w, e));
    ls_status s = ls_model_chat_format(&w, t, file, f_p, e);
    if (s == LS_OK) ls_chat_format_set_ends(f_p, w.arch.eos, w.arch.neos);
    ls_weights_close(&w);
    return s;
}

static ls_status format_of_file(const ls_tokenizer *t, const char *file, ls_chat_format *f_p,
                                ls_error *e) {
    ls_chat_format f = {.tokenizer = t, .end = LS_NO_TOKEN};
    if (*file) LS_TRY(ls_file_chat_format(t, file, &f, e));
    ls_chat_format_set_ends(&f, NULL, 0);
    *f_p = f;
    return LS_OK;
}

ls_status ls_chat_format_of_run(const char *path, const ls_config *c, const ls_tokenizer *t,
                                const char *file, ls_chat_format *f_p, ls_error *e) {
    ls_published_record r = {0};
    ls_status s = LS_OK;
    LS_TRY(ls_published_record_read(path, &r, e));
    if (r.there)
        s = ls_chat_format_of_record(&r, t, file, f_p, e);
    else if (*c->model.from && ls_file_exists(c->model.from))
        s = ls_chat_format_of_model(c->model.from, t, file, f_p, e);
    else
        s = format_of_file(t, file ? file : c->data.template, f_p, e);
    ls_published_record_free(&r);
    return s;
}
