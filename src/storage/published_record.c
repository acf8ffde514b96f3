/* published_record.c - see published_record.h. */
#include "storage/published_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "weights/config_json.h"
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

static ls_status put_model(const char *from, ls_buf *out, ls_error *e) {
    ls_weights w = {0};
    ls_buf template = {0};
    LS_TRY(ls_weights_open(from, &w, e));
    ls_status s = ls_model_template(&w, &template, e);
    if (s == LS_OK) {
        ls_json *o = ls_json_new_object();
        ls_json_set(o, "config", ls_config_json_new(&w.arch, "float32"));
        ls_json_set(o, "template", ls_json_new_bytes(template.data, template.len));
        ls_json_write(o, 2, out);
        ls_buf_append(out, "\n", 1);
        ls_json_free(o);
    }
    ls_buf_free(&template);
    ls_weights_close(&w);
    return s;
}

static ls_status put_copy(const char *from, ls_buf *out, ls_error *e) {
    char *path = find(from);
    ls_status s = path ? ls_file_read(path, MOST, out, e) : LS_OK;
    free(path);
    return s;
}

ls_status ls_published_record_make(const char *run, const ls_config *c, ls_error *e) {
    char *path = ls_format("%s/" LS_PUBLISHED_RECORD, run);
    ls_buf text = {0};
    ls_status s = LS_OK;
    if (!ls_file_exists(path)) {
        if (*c->train.from)
            s = put_copy(c->train.from, &text, e);
        else if (*c->model.from)
            s = put_model(c->model.from, &text, e);
        if (s == LS_OK && text.len) s = ls_file_replace(path, text.data, text.len, e);
    }
    ls_buf_free(&text);
    free(path);
    return s;
}

/* ---- reading ---- */

static ls_status parse(const char *path, const ls_json *o, ls_published_record *r, ls_error *e) {
    const char *template = ls_json_text(ls_json_get(o, "template"));
    const ls_json *config = ls_json_get(o, "config");
    if (!config || !template)
        return ls_fail(e, LS_EINVAL, "%s: is damaged: config or template is missing", path);
    LS_TRY(ls_config_json_read(config, path, &r->arch, e));
    ls_buf_append(&r->template, template, strlen(template));
    r->there = true;
    return LS_OK;
}

ls_status ls_published_record_read(const char *path, ls_published_record *r_p, ls_error *e) {
    char *file = find(path);
    ls_published_record r = {0};
    ls_json *o = NULL;
    ls_status s = LS_OK;
    if (file) s = ls_json_read(file, MOST, &o, e);
    if (s == LS_OK && file) s = parse(file, o, &r, e);
    ls_json_free(o);
    free(file);
    if (s == LS_OK)
        *r_p = r;
    else
        ls_published_record_free(&r);
    return s;
}

void ls_published_record_free(ls_published_record *r) { ls_buf_free(&r->template); }
