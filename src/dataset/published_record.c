/* published_record.c - see published_record.h. */
#include "dataset/published_record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "weights/config_json.h"
#include "weights/model_chat.h"
#include "weights/model_text.h"

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

static void set_bytes(ls_json *o, const char *key, const ls_buf *text) {
    ls_json_set(o, key, ls_json_new_bytes(text->data, text->len));
}

static ls_json *describe(const ls_weights *w, const ls_model_text *t) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "config", ls_config_json_new(&w->arch, "float32"));
    ls_json_set(o, "generation", ls_generation_json_new(&w->arch));
    set_bytes(o, "template", &t->templates.main);
    set_bytes(o, "tool_template", &t->templates.tools);
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++)
        ls_json_set(o, ls_special_token_name((ls_special_token)k),
                    t->special[k] ? ls_json_new_bytes(t->special[k], strlen(t->special[k]))
                                  : ls_json_new_null());
    return o;
}

static ls_status of_model(const char *from, ls_json **o_p, ls_error *e) {
    ls_weights w = {0};
    ls_model_text t = {0};
    LS_TRY(ls_weights_open(from, &w, e));
    ls_status s = ls_model_text_read(&w, &t, e);
    if (s == LS_OK) *o_p = describe(&w, &t);
    ls_model_text_free(&t);
    ls_weights_close(&w);
    return s;
}

/* A copy of the origin's file; NULL: it has none. */
static ls_status of_run(const char *from, ls_json **o_p, ls_error *e) {
    char *path = find(from);
    ls_status s = path ? ls_json_read(path, LS_PUBLISHED_NBYTES, o_p, e) : LS_OK;
    free(path);
    return s;
}

/* The model is trained with the template of data.template. */
static ls_status take_template(const char *file, ls_json *o, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read_text(file, LS_TEMPLATE_BYTES, &text, e));
    set_bytes(o, "template", &text);
    ls_json_set_text(o, "tool_template", "");
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
static ls_status take_special(const ls_json *o, ls_special_token k, const char *path,
                              ls_published_record *r, ls_error *e) {
    const char *key = ls_special_token_name(k);
    const ls_json *v = ls_json_get(o, key);
    r->says[k] = v != NULL;
    if (!v || ls_json_is_null(v)) return LS_OK;
    if (!ls_json_text(v))
        return ls_fail(e, LS_EINVAL, "%s: is damaged: %s is not a text", path, key);
    r->special[k] = ls_strdup(ls_json_text(v));
    return LS_OK;
}

static ls_status take_templates(const ls_json *o, const char *path, ls_model_templates *t,
                                ls_error *e) {
    const ls_json *tools = ls_json_get(o, "tool_template");
    const char *text = ls_json_text(ls_json_get(o, "template")), *other = ls_json_text(tools);
    if (!text || (tools && !other))
        return ls_fail(e, LS_EINVAL, "%s: is damaged: %s is missing or not a text", path,
                       text ? "tool_template" : "template");
    ls_buf_append(&t->main, text, strlen(text));
    if (other) ls_buf_append(&t->tools, other, strlen(other));
    return LS_OK;
}

static ls_status parse(const char *path, const ls_json *o, ls_published_record *r, ls_error *e) {
    const ls_json *config = ls_json_get(o, "config"), *generation = ls_json_get(o, "generation");
    if (!config) return ls_fail(e, LS_EINVAL, "%s: is damaged: config is missing", path);
    LS_TRY(take_templates(o, path, &r->templates, e));
    LS_TRY(ls_config_json_read(config, path, &r->arch, e));
    if (generation) LS_TRY(ls_generation_json_read(generation, path, &r->arch, e));
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++)
        LS_TRY(take_special(o, (ls_special_token)k, path, r, e));
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
    ls_status s = file ? ls_file_read(file, LS_PUBLISHED_NBYTES, &text, e) : LS_OK;
    if (s == LS_OK && file) s = ls_published_record_parse(text.data, text.len, file, r_p, e);
    ls_buf_free(&text);
    free(file);
    return s;
}

void ls_published_record_free(ls_published_record *r) {
    ls_model_templates_free(&r->templates);
    for (int k = 0; k < LS_NSPECIAL_TOKENS; k++) free(r->special[k]);
}

char *ls_published_special(const ls_published_record *r, const ls_tokenizer *t,
                           ls_special_token k) {
    if (!r->says[k]) return ls_special_token_of(&r->arch, t, k);
    return r->special[k] ? ls_strdup(r->special[k]) : NULL;
}

/* ---- conversations ---- */

static ls_status drop_format(ls_chat_format *f, const ls_error *e) {
    ls_chat_format_free(f);
    return e->code;
}

ls_status ls_chat_format_of_record(const ls_published_record *r, const ls_tokenizer *t,
                                   const char *file, ls_chat_format *f_p, ls_error *e) {
    ls_chat_format f = {.tokenizer = t, .end = LS_NO_TOKEN};
    const ls_architecture *a = &r->arch;
    if (file)
        LS_TRY(ls_file_chat_format(t, file, &f, e));
    else if (ls_chat_format_parse(&f, &r->templates, LS_PUBLISHED_RECORD, e) != LS_OK)
        return drop_format(&f, e);
    f.bos = ls_published_special(r, t, LS_BOS_TOKEN);
    f.eos = ls_published_special(r, t, LS_EOS_TOKEN);
    if (f.eos) f.end = ls_special_token_id(t, f.eos);
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
    else if (*c->model.from && access(c->model.from, R_OK) == 0)
        s = ls_chat_format_of_model(c->model.from, t, file, f_p, e);
    else
        s = format_of_file(t, file ? file : c->data.template, f_p, e);
    ls_published_record_free(&r);
    return s;
}
