/* model_templates.c - see model_templates.h. */
#include "weights/model_templates.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"

enum { MOST_CONFIG = 1 << 28, MOST_TEMPLATE = 1 << 20 }; /* bytes */

#define TOOLS_FOLDER "additional_chat_templates"
#define TOOLS_FILE   TOOLS_FOLDER "/tool_use.jinja"
#define GGUF_MAIN    "tokenizer.chat_template"
#define GGUF_TOOLS   "tokenizer.chat_template.tool_use"
#define GGUF_NAMES   "tokenizer.chat_templates"

static ls_status check(const char *path, const ls_buf *text, ls_error *e) {
    bool sound = text->len <= MOST_TEMPLATE && ls_utf8_is_valid(text->data, text->len) &&
                 !(text->len && memchr(text->data, 0, text->len));
    return sound ? LS_OK
                 : ls_fail(e, LS_EINVAL,
                           "%s: the chat template is not UTF-8 text of at most %d bytes", path,
                           MOST_TEMPLATE);
}

/* ---- files of their own ---- */

static ls_status read_file(const ls_weights *w, const char *name, ls_buf *out, ls_error *e) {
    char *path = ls_model_file(w, name);
    ls_status s = LS_OK;
    if (path) s = ls_file_read_text(path, MOST_TEMPLATE, out, e);
    if (s == LS_OK) s = check(path, out, e);
    free(path);
    return s;
}

/* ---- tokenizer_config.json ---- */

/* The place for a template, by its name. */
static ls_buf *place_of(ls_model_templates *t, const char *name) {
    if (name && strcmp(name, "default") == 0) return &t->main;
    return name && strcmp(name, "tool_use") == 0 ? &t->tools : NULL;
}

static ls_status take_list(const char *path, const ls_json *list, ls_model_templates *t,
                           ls_error *e) {
    ls_buf others = {0};
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const ls_json *one = ls_json_at(list, i);
        const char *name = ls_json_text(ls_json_get(one, "name"));
        const char *text = ls_json_text(ls_json_get(one, "template"));
        ls_buf *place = place_of(t, name);
        if (!name || !text)
            return ls_fail(e, LS_EINVAL,
                           "%s: chat_template: element %zu has no name and template, which are "
                           "texts",
                           path, i);
        if (place && !place->len) ls_buf_append(place, text, strlen(text));
        if (!place) ls_buf_printf(&others, "%s'%s'", others.len ? ", " : "", name);
    }
    ls_status s = LS_OK;
    if (ls_json_count(list) && !t->main.len)
        s = ls_fail(e, LS_EINVAL,
                    "%s: chat_template is a list without one named 'default'; there are %s%s%s; "
                    "name the one to use so",
                    path, t->tools.len ? "'tool_use'" : "", t->tools.len && others.len ? ", " : "",
                    others.len ? others.data : "");
    else if (others.len)
        ls_log("%s: chat templates that are not used: %s", path, others.data);
    ls_buf_free(&others);
    return s;
}

static ls_status take_config(const char *path, const ls_json *o, ls_model_templates *t,
                             ls_error *e) {
    const ls_json *value = ls_json_get(o, "chat_template");
    const char *text = ls_json_text(value);
    if (!value || ls_json_is_null(value)) return LS_OK;
    if (text)
        ls_buf_append(&t->main, text, strlen(text));
    else if (ls_json_is_array(value))
        return take_list(path, value, t, e);
    else
        return ls_fail(e, LS_EINVAL,
                       "%s: chat_template must be a text, or a list of texts with names", path);
    return LS_OK;
}

/* Files of their own come first. */
static ls_status read_config(const ls_weights *w, ls_model_templates *t, ls_error *e) {
    char *path = ls_model_file(w, LS_MODEL_TOKENIZER_CONFIG);
    ls_model_templates said = {0};
    ls_json *o = NULL;
    if (!path) return LS_OK;
    ls_status s = ls_json_read(path, MOST_CONFIG, &o, e);
    if (s == LS_OK && o) s = take_config(path, o, &said, e);
    if (s == LS_OK) s = check(path, &said.main, e);
    if (s == LS_OK) s = check(path, &said.tools, e);
    if (s == LS_OK && !t->tools.len) ls_buf_append(&t->tools, said.tools.data, said.tools.len);
    if (s == LS_OK) ls_buf_append(&t->main, said.main.data, said.main.len);
    ls_model_templates_free(&said);
    ls_json_free(o);
    free(path);
    return s;
}

/* ---- GGUF ---- */

static ls_status read_key(const ls_gguf *g, const char *key, ls_buf *out, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(g, key);
    ls_gguf_text t = {0};
    if (!v) return LS_OK;
    if (v->is_array || !ls_gguf_text_at(v, 0, &t))
        return ls_fail(e, LS_EINVAL, "%s: %s must be a text", g->path, key);
    ls_buf_append(out, t.data, t.n);
    LS_TRY(ls_guard_check(e));
    return check(g->path, out, e);
}

void ls_model_templates_put(const ls_model_templates *t, ls_gguf_writer *w) {
    const ls_gguf_text name = {"tool_use", strlen("tool_use")};
    if (t->main.len) ls_gguf_put_text(w, GGUF_MAIN, t->main.data);
    if (!t->tools.len) return;
    ls_gguf_put_text(w, GGUF_TOOLS, t->tools.data);
    ls_gguf_put_texts(w, GGUF_NAMES, &name, 1);
}

/* ---- all ---- */

ls_status ls_model_templates_read(const ls_weights *w, ls_model_templates *t_p, ls_error *e) {
    ls_model_templates t = {0};
    ls_status s = read_file(w, LS_MODEL_TEMPLATE, &t.main, e);
    if (s == LS_OK) s = read_file(w, TOOLS_FILE, &t.tools, e);
    if (s == LS_OK && !t.main.len) s = read_config(w, &t, e);
    if (s == LS_OK && !t.main.len && w->is_gguf) {
        s = read_key(&w->gguf, GGUF_MAIN, &t.main, e);
        if (s == LS_OK && !t.tools.len) s = read_key(&w->gguf, GGUF_TOOLS, &t.tools, e);
    }
    if (s == LS_OK)
        *t_p = t;
    else
        ls_model_templates_free(&t);
    return s;
}

static ls_status write_file(const char *folder, const char *name, const ls_buf *text, ls_error *e) {
    char *path = ls_format("%s/%s", folder, name);
    ls_status s = ls_file_write(path, text->data, text->len, e);
    free(path);
    return s;
}

ls_status ls_model_templates_write(const ls_model_templates *t, const char *folder, ls_error *e) {
    if (t->main.len) LS_TRY(write_file(folder, LS_MODEL_TEMPLATE, &t->main, e));
    if (!t->tools.len) return LS_OK;
    char *path = ls_format("%s/" TOOLS_FOLDER, folder);
    ls_status s = ls_file_make_dirs(path, e);
    free(path);
    return s == LS_OK ? write_file(folder, TOOLS_FILE, &t->tools, e) : s;
}

void ls_model_templates_free(ls_model_templates *t) {
    ls_buf_free(&t->main);
    ls_buf_free(&t->tools);
}
